"""``[tool.irrun]`` in pyproject.toml, as irrun check reads it."""

from pathlib import Path

import pytest

from nets import Net


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    """a.xml and models/b.xml, each with an IR303 and an IR401."""
    (tmp_path / "models").mkdir()
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Add", [x, x], [("I64", "3")], name="sum"))
    net.save(tmp_path, "a")
    net.save(tmp_path / "models", "b")


def found(call, *args) -> list[str]:
    result = call("check", "a.xml", "models", *args, "--format", "concise")
    assert result.exit_code in (0, 1), result.output
    rows = [line.split(":") for line in result.stdout.splitlines()]
    return sorted(f"{Path(row[0]).stem} {row[3][1:6]}" for row in rows)


EVERY = ["a IR303", "a IR401", "b IR303", "b IR401"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", EVERY),
        ("select = []", EVERY),
        ('select = ["IR4"]', ["a IR401", "b IR401"]),
        ('ignore = ["dims-mismatch"]', ["a IR303", "b IR303"]),
        ('select = ["IR4"]\nignore = ["IR401"]', []),
        ('per-file-ignores = {"models/*" = ["IR401"]}', ["a IR303", "a IR401", "b IR303"]),
        ('per-file-ignores = {"b.xml" = ["IR"]}', ["a IR303", "a IR401"]),
        ('per-file-ignores = {"**/*.xml" = ["IR401"]}', ["a IR303", "b IR303"]),
        ('per-file-ignores = {"models/**/b.xml" = ["IR401"]}', ["a IR303", "a IR401", "b IR303"]),
        ('per-file-ignores = {"*" = ["IR401"], "a.*" = ["IR303"]}', ["b IR303"]),
        ('per-file-ignores = {"models" = ["IR401"], "?" = ["IR303"]}', EVERY),
    ],
)
def test_settings(settings, expected, call):
    Path("pyproject.toml").write_text(f"[tool.irrun]\n{settings}\n")
    assert found(call) == expected


def test_the_command_line_comes_first(call):
    Path("pyproject.toml").write_text('[tool.irrun]\nselect = ["IR4"]\nignore = ["IR1"]')
    assert found(call, "--select", "IR3") == ["a IR303", "b IR303"]
    assert found(call, "--ignore", "IR401") == []


def test_a_folder_above(call, tmp_path, monkeypatch):
    Path("pyproject.toml").write_text('[tool.irrun]\nper-file-ignores = {"models/b.xml" = ["IR401"]}')
    Path("models/pyproject.toml").write_text("[tool.other]\nselect = 1")
    monkeypatch.chdir("models")
    for path in ("b.xml", tmp_path / "models" / "b.xml", "../models/b.xml"):
        assert "IR401" not in call("check", path).stdout
    assert "IR401" in call("check", "../a.xml").stdout


def test_that_a_file_cannot_be_read_is_not_hidden(call):
    Path("pyproject.toml").write_text('[tool.irrun]\nselect = ["IR4"]\nper-file-ignores = {"*" = ["IR"]}')
    assert call("check", "nosuch.xml").exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.irrun]\nselekt = []", "tool.irrun has no key selekt; did you mean select?"),
        ("[tool.irrun]\nextra = 1", "tool.irrun has no key extra; its keys are select, ignore, per-file-ignores"),
        ('[tool.irrun]\nselect = "IR4"', "tool.irrun.select is not a list of codes"),
        ("[tool.irrun]\nignore = [401]", "tool.irrun.ignore is not a list of codes"),
        ('[tool.irrun]\nignore = ["IR999"]', "IR999 is not a code"),
        ("[tool.irrun]\nper-file-ignores = []", "tool.irrun.per-file-ignores is not a table"),
        ('[tool.irrun.per-file-ignores]\n"*" = "IR4"', "tool.irrun.per-file-ignores is not a list of codes"),
        ("[tool]\nirrun = 1", "tool.irrun is not a table"),
        ("[tool.irrun", "pyproject.toml: Expected"),
    ],
)
def test_wrong_settings(text, said, call):
    Path("pyproject.toml").write_text(text)
    result = call("check", "a.xml")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())

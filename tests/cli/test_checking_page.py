"""docs/checking.md tells the truth, and the pre-commit hook calls what there is."""

import re
import shlex
from pathlib import Path

from irrun.cli.check import command
from nets import Net
from places import ROOT

PAGE = (ROOT / "docs" / "checking.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def net(tmp_path: Path, name: str) -> Path:
    model = Net()
    x = model.parameter("f32", "2", name="x")
    model.result(model.add("Add", [x, x], [("I64", "3")], name="sum"))
    return model.save(tmp_path, name)


def test_every_format_is_described():
    (formats,) = (p.type.choices for p in command.params if p.name == "form")  # type: ignore[attr-defined]
    table = PAGE.split("## Formats")[1].split("\n\n")[1]
    assert set(re.findall(r"^\| `([a-z][a-z-]*)`", table, re.MULTILINE)) | {"text"} == {*formats}


def test_the_settings(call, tmp_path):
    (settings,) = blocks("toml")
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "models" / "legacy").mkdir(parents=True)
    for path, status in ((tmp_path, 1), (tmp_path / "models" / "legacy", 0)):
        assert call("check", net(path, "net")).exit_code == status
    assert call("check", net(tmp_path, "draft")).exit_code == 0


def test_the_comments(call, tmp_path):
    (comments,) = blocks("xml")
    same_line, line_before, _ = comments.splitlines()
    path = net(tmp_path, "net")
    lines = path.read_text().split("\n")
    number = next(i for i, line in enumerate(lines) if "<dim>3</dim>" in line)
    lines[number] += same_line.removeprefix("<dim>48</dim>")
    assert "I64" in lines[number - 1]
    lines.insert(number - 1, line_before)
    path.write_text("\n".join(lines))
    assert call("check", path, "--format", "concise").stdout == ""


def test_commands_exist(call, tmp_path):
    (tmp_path / "models").mkdir()
    net(tmp_path / "models", "net")
    (entry,) = re.findall(r"^  entry: (.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE)
    commands = re.findall(r"(irrun check models [^>\n]*)", "".join(blocks("yaml")))
    assert len(commands) == 2
    for line in (f"{entry} models/net.xml", *commands):
        result = call(*shlex.split(line)[1:])
        assert result.exit_code == ("--exit-zero" not in line), line
        assert "IR401" in result.stdout
    (hook,) = re.findall(r"^- id: (.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE)
    assert f"- id: {hook}\n" in PAGE

"""The pages of ``irrun explain``: every code has one, its wrong example gives that code, and its right one nothing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import irrun
from irrun.cli import cli
from irrun.codes import CODES
from irrun.diagnostics import IrrunError
from irrun.opdef import registry
from oracle import Oracle

FOLDER = Path(irrun.__file__).parent / "explanations"


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example registers is forgotten after it."""
    registry.all_ops()
    monkeypatch.setattr(registry, "_registry", {key: dict(versions) for key, versions in registry._registry.items()})


def test_every_code_has_a_page() -> None:
    """To add one: a file named after the code, in which prose says why it matters, and two headings stand.

    Below ``## Wrong`` stands an example that gives the code and no other, below ``## Right`` one that gives nothing;
    what both need comes before, in the order in which it is needed. ``xml`` is saved as net.xml, ``python NAME`` under that name, other ``python`` is
    run; ``sh`` holds the command, which otherwise is ``irrun check net.xml``.
    """
    pages = {path.stem for path in FOLDER.glob("*.md")}
    missing = sorted(CODES.keys() - pages)
    assert not missing, f"write irrun/explanations/{missing[0]}.md (and for {missing}); see {__file__}"
    assert not pages - CODES.keys(), "pages of codes that do not exist"


PAGES = sorted(FOLDER.glob("*.md"))


def _parts(page: Path) -> tuple[str, str, str]:
    """What both examples of a page need, the wrong one and the right one."""
    match = re.fullmatch(r"(.+?)\n## Wrong\n(.+?)\n## Right\n(.+)", page.read_text("utf-8"), re.DOTALL)
    assert match, "a page has the headings ## Wrong and ## Right"
    return match[1], match[2], match[3]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(len(line) <= 120 for line in page.read_text("utf-8").splitlines())
    before, wrong, right = _parts(page)
    assert not before.startswith("```"), "a page begins with why the finding matters"
    for name, example, expected in (("wrong", wrong, {page.stem}), ("right", right, set[str]())):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        found, said = _run(before + example)
        assert found == expected, said


def _is_a_file_of_openvino(page: Path) -> bool:
    """Whether the right example is an IR file that OpenVINO can read, with the weights beside it if it has any."""
    before, _, right = _parts(page)
    return "<net" in before + right and "-w" not in right


@pytest.mark.parametrize("page", [page for page in PAGES if _is_a_file_of_openvino(page)], ids=lambda page: page.stem)
def test_openvino_reads_what_is_right(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, oracle: Oracle
) -> None:
    monkeypatch.chdir(tmp_path)
    before, _, right = _parts(page)
    _run(before + right)
    oracle(tmp_path / "net.xml", [], "reshape")


def _run(text: str) -> tuple[set[str], str]:
    """The codes that an example gives, and all that was printed."""
    commands = ["irrun check net.xml"] if "net.xml" in text or "```xml" in text else []
    variables: dict[str, object] = {}
    said = ""
    for language, name, code in re.findall(r"```(\w+) ?(\S*)\n(.*?)```", text, re.DOTALL):
        if language == "sh":
            commands = code.strip().splitlines()
        elif language == "python" and not name:
            try:
                exec(compile(code, "example", "exec"), variables)
            except IrrunError as error:
                said += "".join(f"{d.severity}[{d.code} {d.name}]: {d.message}\n" for d in error.diagnostics)
        else:
            Path(name or "net.xml").write_text(code.removesuffix("\n"), "utf-8")
    for command in commands:
        program, *args = shlex.split(command)
        assert program == "irrun"
        result = CliRunner().invoke(cli, args)
        assert result.exit_code in (0, 1, 2, 3), result.output
        assert not result.output.startswith("Usage"), result.output
        said += result.output
    return set(re.findall(r"^(?:error|warning)\[(IR\d+) ", said, re.MULTILINE)), said


@pytest.mark.parametrize("code", CODES)
def test_explain_prints_the_page(code: str) -> None:
    result = CliRunner().invoke(cli, ["explain", code])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{code} {CODES[code].name} (")
    assert "\nWrong\n" in result.stdout
    assert "\nRight\n" in result.stdout
    assert "```" not in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith("    "))

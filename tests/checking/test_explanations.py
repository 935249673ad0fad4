"""The pages of ``irrun explain``: each code has one, whose wrong example gives the code where it says, and right one nothing.

To add a page, write ``irrun/explanations/IRnnn.md``: a paragraph that says what the finding means and how to correct its
cause, then why it matters. Below ``## Wrong`` stands an example that gives the code and no other, below ``## Right`` one
that gives nothing; what both need comes before, in the order in which it is needed.

- ``xml`` is the file net.xml, ``LANGUAGE NAME`` the file of that name. A mark in a file (``tests/help/marks.py``) says that
  a finding must be in this file, on this line.
- ``sh`` holds the commands, which otherwise are ``irrun check net.xml``. A mark says that this command reports the code.
- ``python`` without a name is run. A mark says that the error comes from this line, or that the file which the line
  writes has the finding.
"""

from __future__ import annotations

import re
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from irrun.cli import cli
from irrun.codes import CODES
from irrun.diagnostics import IrrunError
from irrun.opdef import registry
from marks import EXPLANATIONS, Block, Explanation, Mark
from oracle import Oracle
from places import ROOT

FOLDER = ROOT / "irrun" / "explanations"


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an example registers or imports is forgotten after it."""
    registry.all_ops()
    monkeypatch.setattr(registry, "_registry", {key: dict(versions) for key, versions in registry._registry.items()})
    before = set(sys.modules)
    yield
    for name in [name for name in sys.modules if name.startswith("irrun_plugin_") and name not in before]:
        del sys.modules[name]


def test_every_code_has_a_page() -> None:
    pages = {page.code for page in EXPLANATIONS}
    missing = sorted(CODES.keys() - pages)
    assert not missing, f"write irrun/explanations/{missing[0]}.md (and for {missing}); see {__file__}"
    assert not pages - CODES.keys(), "pages of codes that do not exist"


pages = pytest.mark.parametrize("page", EXPLANATIONS, ids=lambda page: page.code)


@pages
def test_examples(page: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(len(line) <= 120 for line in (FOLDER / f"{page.code}.md").read_text("utf-8").splitlines())
    if page.code == "IR610":
        pytest.importorskip("onnxruntime", reason="ONNX models need the extra `onnx`")
    assert "\n\n" in page.prose.strip(), "a page begins with what the finding means, and why it matters"
    assert not [mark for block in (*page.shared, *page.right) for mark in block.marks], "what is right has no mark"
    for name, blocks in (("wrong", page.wrong), ("right", page.right)):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        found, said = _run([*page.shared, *blocks])
        expected = [(block, mark) for block in blocks for mark in block.marks]
        if name == "wrong":
            assert {mark.code for _, mark in expected} == {page.code}, "a mark names the code of the page"
        for finding in found:
            assert any(_is_expected(finding, *one) for one in expected), f"{finding} has no mark\n{said}"
        for one in expected:
            assert any(_is_expected(finding, *one) for finding in found), f"{one} is not found\n{said}"


@dataclass(frozen=True)
class _Finding:
    code: str
    file: str | None
    line: int | None
    by: Block | None
    """The block whose command or call reports it; None for the command that no page writes down."""
    by_line: int | None


def _is_expected(finding: _Finding, block: Block, mark: Mark) -> bool:
    if finding.code != mark.code:
        return False
    if block.file is not None:
        return (finding.file, finding.line) == (block.file, mark.line)
    return (finding.by, finding.by_line) == (block, mark.line) or (finding.by is None and block.language == "python")


def _is_a_file_of_openvino(page: Explanation) -> bool:
    """Whether the right example is an IR file that OpenVINO can read, with the weights beside it if it has any."""
    text = "\n".join(block.code for block in (*page.shared, *page.right))
    return "<net" in text and "-w" not in text


@pytest.mark.parametrize(
    "page", [page for page in EXPLANATIONS if _is_a_file_of_openvino(page)], ids=lambda page: page.code
)
def test_openvino_reads_what_is_right(
    page: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, oracle: Oracle
) -> None:
    monkeypatch.chdir(tmp_path)
    _run([*page.shared, *page.right])
    oracle(tmp_path / "net.xml", [], "reshape")


def _run(blocks: Sequence[Block]) -> tuple[list[_Finding], str]:
    """Return the findings that an example gives, and all that was printed."""
    # the last block of commands counts: each example of a page has its own
    (last,) = [block for block in blocks if block.language == "sh"][-1:] or [None]
    commands = [(last, *row) for row in enumerate(last.code.splitlines(), 1)] if last else []
    if not last and any("net.xml" in f"{block.file} {block.code}" for block in blocks):
        commands = [(None, 0, "irrun check net.xml")]
    variables: dict[str, object] = {}
    found: list[_Finding] = []
    for block in blocks:
        if block.file is not None:
            Path(block.file).write_text(block.code, "utf-8")
        elif block.language == "python":
            try:
                exec(compile(block.code, "example", "exec"), variables)
            except IrrunError as error:
                line = next(at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == "example")
                found += [_Finding(d.code, d.file, d.line, block, line) for d in error.diagnostics]
    said = ""
    for block, number, command in commands:
        program, *args = shlex.split(command, comments=True)
        assert program == "irrun"
        result = CliRunner().invoke(cli, args)
        assert result.exit_code in (0, 1, 2, 3), result.output
        assert not result.output.startswith("Usage"), result.output
        said += result.output
        for code, file, line in re.findall(
            r"^(?:error|warning)\[(IR\d+) .*\n(?: *--> (.*?)(?::(\d+):\d+)?\n)?", result.output, re.MULTILINE
        ):
            found.append(_Finding(code, file or None, int(line) if line else None, block, number or None))
    return found, said


@pytest.mark.parametrize("code", CODES)
def test_explain_prints_the_page(code: str) -> None:
    result = CliRunner().invoke(cli, ["explain", code])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{code} {CODES[code].name} (")
    assert "\nWrong\n" in result.stdout
    assert "\nRight\n" in result.stdout
    assert "```" not in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith("    "))

"""Broken files, one fault each: what is reported must be exactly that, on its very line.

A file of ``invalid/`` says what is expected of it by a comment on the line of the fault; those that are no
XML, or that a comment would mend, stand in the table below.
"""

import re
from pathlib import Path

import pytest

import irrun
from irrun.codes import CODES
from irrun.diagnostics import IrrunError
from places import INVALID

FOLDER = INVALID
FILES = sorted(FOLDER.glob("*.xml"))

UNREADABLE: dict[str, list[tuple[str, int, int]]] = {
    "not_xml_cut_short": [("IR001", 28, 4)],
    "not_xml_dim_not_closed": [("IR001", 9, 6)],
    "not_xml_wrong_closing_tag": [("IR001", 19, 6)],
    "not_xml_bare_ampersand": [("IR001", 13, 29)],
    "empty": [("IR001", 1, 1)],
    "doctype": [("IR002", 2, 1)],
    "doctype_billion_laughs": [("IR002", 2, 1)],
    "too_deep": [("IR005", 56, 763)],
    "encoding_latin_1": [("IR006", 13, 24)],
    "encoding_unknown": [("IR006", 1, 1)],
    "fragment_irregular": [("IR008", 1, 32), ("IR008", 13, 15)],
}

# faults of the file as a whole, or of edges that name no layer
WITHOUT_LAYER = {"IR003", "IR004", "IR107", "IR501", "IR506"}


def expected(path: Path) -> set[tuple[str, int | None]]:
    text = path.read_text()
    found: set[tuple[str, int | None]] = {
        (code, None) for code in re.findall(r"<!-- expect of the file: (\w+) -->", text)
    }
    for number, line in enumerate(text.split("\n"), 1):
        found |= {(code, number) for code in re.findall(r"<!-- expect: (\w+) -->", line)}
    return found


@pytest.mark.parametrize("path", [p for p in FILES if p.stem not in UNREADABLE], ids=lambda p: p.stem)
def test_reported_on_its_line_and_nothing_else(path: Path) -> None:
    report = irrun.check(path)
    assert {(d.code, d.line) for d in report} == expected(path), "\n".join(map(str, report))
    assert len(report) == 1
    (found,) = report
    assert found.severity == CODES[found.code].kind.severity
    assert found.file == str(path)
    if found.layer is not None:
        assert f'"{found.layer}"' in found.message
    else:
        assert found.code in WITHOUT_LAYER or found.message.startswith(("an edge", "<net> has a second"))


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable(name: str) -> None:
    assert [(d.code, d.line, d.column) for d in irrun.check(FOLDER / f"{name}.xml")] == UNREADABLE[name]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_messages(path: Path) -> None:
    """Lower case but for names, one sentence without a full stop, no Python in it; only ``help`` proposes."""
    for d in irrun.check(path):
        for text in (d.message, d.help or "x"):
            assert not text.endswith((".", " ", "\n"))
            assert "\n" not in text
            assert not re.search(r"<class|Error\(|None\b|ElementType\(|Dim\(|0x[0-9a-f]{6}", text), text
        assert len(d.message) < 200
        assert " 1 inputs" not in d.message
        assert " 1 outputs" not in d.message


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_what_check_calls_an_error_does_not_compile(path: Path) -> None:
    """But for wrong declarations, which OpenVINO ignores, and so does running."""
    report = irrun.check(path)
    if report.ok:
        irrun.compile(path)
    if not any(d.blocks for d in report):
        return
    with pytest.raises(IrrunError) as caught:
        irrun.compile(path)
    assert {(d.code, d.line) for d in caught.value.diagnostics} <= {(d.code, d.line) for d in report}


def test_every_code_that_a_file_can_cause_has_a_file() -> None:
    """The others are about running (6xx), comparing (7xx), folders (8xx), and a path that cannot be opened."""
    seen = {code for path in FILES if path.stem not in UNREADABLE for code, _ in expected(path)}
    seen |= {code for rows in UNREADABLE.values() for code, _, _ in rows}
    assert seen == {code for code in CODES if not code.startswith(("IR6", "IR7", "IR8"))} - {"IR000", "IR011"}
    assert len(FILES) > 150

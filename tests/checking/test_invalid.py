"""Broken models: what is reported must be exactly what their marks say, each on its very line.

A model is a file of ``invalid/``, or the wrong example of a page of ``irrun explain``. ``tests/help/marks.py`` says how
a mark looks.
"""

import re
from pathlib import Path

import pytest

import irrun
from grouped import each
from irrun.codes import CODES, Kind
from irrun.diagnostics import IrrunError
from marks import BROKEN, FILES, BrokenModel

broken_models = each("model", BROKEN, ids=lambda model: model.name)

# faults of the file as a whole, or of edges that name no layer
WITHOUT_LAYER = {"IR003", "IR004", "IR008", "IR107", "IR501", "IR506"}


@broken_models
def test_reported_at_its_marks_and_nothing_else(model: BrokenModel, tmp_path: Path) -> None:
    path = model.place(tmp_path)
    report = irrun.check(path)
    expected = model.marks
    assert expected, "no line is marked with the code of the finding"
    assert sorted((d.code, d.line or 0) for d in report) == sorted((m.code, m.line or 0) for m in expected), report
    assert {(d.code, d.line, d.column) for d in report} >= {
        (m.code, m.line, m.column) for m in expected if m.column is not None
    }
    for found in report:
        assert found.severity == CODES[found.code].kind.severity
        assert found.file == str(path)
        if found.layer is not None:
            assert f'"{found.layer}"' in found.message
        elif found.code not in WITHOUT_LAYER and found.kind is not Kind.UNREADABLE:
            assert found.message.startswith(("an edge", "<net> has a second", "the runtime option"))


@broken_models
def test_messages(model: BrokenModel, tmp_path: Path) -> None:
    """Lower case but for names, one sentence without a full stop, no Python in it; only ``help`` proposes."""
    for d in irrun.check(model.place(tmp_path)):
        for text in (d.message, d.help or "x"):
            assert not text.endswith((".", " ", "\n"))
            assert "\n" not in text
            assert not re.search(r"<class|Error\(|None\b|ElementType\(|Dim\(|0x[0-9a-f]{6}", text), text
        assert len(d.message) < 200
        assert " 1 inputs" not in d.message
        assert " 1 outputs" not in d.message


@broken_models
def test_what_check_calls_an_error_does_not_compile(model: BrokenModel, tmp_path: Path) -> None:
    """But for wrong declarations, which OpenVINO ignores, and so does running."""
    path = model.place(tmp_path)
    report = irrun.check(path)
    if report.ok:
        irrun.compile(path)
    if not any(d.blocks for d in report):
        return
    with pytest.raises(IrrunError) as caught:
        irrun.compile(path)
    assert {(d.code, d.line) for d in caught.value.diagnostics} <= {(d.code, d.line) for d in report}


def test_every_code_that_a_file_can_cause_has_a_file() -> None:
    """The others are about running (6xx), comparing (7xx), folders (8xx), targets (9xx), and a path that cannot be opened."""
    seen = {code for model in BROKEN for code in model.codes}
    assert seen == {code for code in CODES if not code.startswith(("IR6", "IR7", "IR8", "IR9"))} - {"IR000", "IR011"}
    assert len(FILES) > 150

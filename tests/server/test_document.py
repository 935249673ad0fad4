"""The first answer after an edit of a large model: it finds what a check of the whole text finds."""

import re
from pathlib import Path

import pytest

from irrun.server import document
from irrun.server.document import Document
from places import ROOT

PATH = ROOT / "samples" / "convnet.xml"
TEXT = PATH.read_text("utf-8")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Document:
    """convnet.xml, checked once, and then as if it were too large to be checked at each edit."""
    monkeypatch.setattr(document, "_AT_ONCE", 0)
    opened = Document(PATH.as_uri(), PATH, TEXT, "utf-16")
    opened.settle(opened.begin().check())
    assert opened.findings == []
    return opened


def change(opened: Document, old: str, new: str, number: int = 0) -> None:
    """Replace one occurrence of a text, of those from 0, and let the document answer."""
    text = opened.text.data.decode()
    start = [match.start() for match in re.finditer(re.escape(old), text)][number]
    begin, end = (opened.text.position(len(text[:at].encode())) for at in (start, start + len(old)))
    opened.edit((begin, end), new)
    opened.answer()


def shown(opened: Document) -> set[tuple[str, int, int, str]]:
    return {(f.diagnostic.code, f.start, f.end, f.diagnostic.message) for f in opened.findings}


def checked(opened: Document) -> set[tuple[str, int, int, str]]:
    """Check all of the text, and return the findings."""
    opened.settle(opened.begin().check())
    return shown(opened)


@pytest.mark.parametrize(
    ("old", "new", "number"),
    [
        ("<dim>28</dim>", "<dim>29</dim>", 4),
        ("<dim>28</dim>", "<dim>2</dim>", 5),
        ('precision="FP32"', 'precision="FP16"', 6),
        ('type="ReLU"', 'type="Relu6"', 0),
        ('strides="2, 2"', 'strides="2, 1"', 0),
        ('auto_broadcast="numpy"', 'auto_broadcast="nunpy"', 1),
        ('name="block1/add"', 'name=""', 0),
        ('special_zero="true"', "", 0),
        ('from-layer="4"', 'from-layer="2"', 0),
        ('to-port="1"', 'to-port="7"', 1),
    ],
)
def test_the_first_answer_is_that_of_a_check(large: Document, old: str, new: str, number: int) -> None:
    change(large, old, new, number)
    first = shown(large)
    assert first == checked(large)
    assert new in ("", 'name=""', 'from-layer="2"') or first


def test_the_edited_text_is_not_well_formed(large: Document) -> None:
    """The error is at its line, and other findings stay."""
    change(large, '<layer id="5"', '<layer id="5" type="ReLU"', 0)
    first = shown(large)
    assert {code for code, *_ in first} == {"IR001"}
    assert {large.text.place(start)[0] for _, start, *_ in first} == {
        TEXT[: TEXT.index('<layer id="5"')].count("\n") + 1
    }
    assert first == checked(large)
    change(large, ' type="ReLU"', "", 0)
    assert shown(large) == set()


def test_findings_move_with_the_text(large: Document) -> None:
    change(large, "<dim>28</dim>", "<dim>29</dim>", 4)
    (before,) = checked(large)
    change(large, "\t<edges>", "\n\n\t<edges>")
    assert shown(large) == {before}
    change(large, "<layers>", "<!-- one\ntwo -->\n<layers>")
    assert {(start - before[1], end - before[2]) for _, start, end, _ in shown(large)} == {
        (17, 17)
    }  # the length of the comment and its line ends
    change(large, "<dim>29</dim>", "<dim>28</dim>")
    assert shown(large) == set()


def test_edits_while_a_version_is_checked(large: Document) -> None:
    """The findings of an older version are shown where their lines are now, with those of the edits since."""
    version = large.begin()
    change(large, "<layers>", "\n\n<layers>")
    change(large, "<dim>28</dim>", "<dim>29</dim>", 4)
    expected = shown(large)
    large.settle(version.check())
    assert shown(large) == expected
    assert checked(large) == expected


def test_a_fix_of_the_first_answer(large: Document) -> None:
    change(large, "<dim>28</dim>", "<dim>29</dim>", 4)
    (finding,) = large.findings
    (edit,) = finding.remedies[0].changes
    assert large.text.data[edit.start : edit.end] == b"29"
    assert (edit.text, finding.remedies[0].is_safe) == ("28", True)


def test_a_model_in_another_encoding(tmp_path: Path) -> None:
    """The editor decodes the file: its declaration no longer says how the text is encoded."""
    text = TEXT.replace('<?xml version="1.0"?>', '<?xml version="1.0" encoding="iso-8859-1"?>').replace("image", "é")
    opened = Document("file:///m.xml", tmp_path / "m.xml", text.replace("<dim>28</dim>", "<dim>9</dim>", 1), "utf-16")
    opened.settle(opened.begin().check())
    finding = next(f for f in opened.findings if f.diagnostic.code == "IR401")
    assert "é" in finding.diagnostic.message
    (edit,) = finding.remedies[0].changes
    assert opened.text.data[edit.start : edit.end] == b"9"

"""Diagnostics as text."""

import pytest

from irrun.base.source import Source, Span
from irrun.base.text import printable
from irrun.checking.render import concise, record, text
from irrun.diagnostics import Diagnostic


def found(line: str, column: int, end: int, number: int = 1, **more: object) -> Diagnostic:
    source = Source("net.xml", ("\n" * (number - 1) + line).encode())
    span = Span(number, column, end)
    return Diagnostic("IR401", "error", "it is wrong", file="net.xml", span=span, source=source, **more)  # type: ignore[arg-type]


def test_all_parts():
    diagnostic = found("  <dim>48</dim>", 3, 16, 57, notes=("first", "", "second"), help="declare 50")
    assert text(diagnostic).plain == (
        "error[IR401 dims-mismatch]: it is wrong\n"
        "  --> net.xml:57:3\n"
        "   |\n"
        "57 |   <dim>48</dim>\n"
        "   |   ^^^^^^^^^^^^^\n"
        "   = first\n"
        "   = second\n"
        "   = help: declare 50\n"
    )
    assert concise(diagnostic) == "net.xml:57:3: IR401 it is wrong"
    assert record(diagnostic)["notes"] == ["first", "second"]


def test_without_a_place():
    nowhere = Diagnostic("IR501", "error", "net.bin is missing", file="net.xml", help="put it there")
    assert text(nowhere).plain == (
        "error[IR501 weights-missing]: net.bin is missing\n --> net.xml\n  = help: put it there\n"
    )
    assert concise(nowhere) == "net.xml: IR501 net.bin is missing"
    assert record(nowhere)["line"] is None
    assert concise(Diagnostic("IR501", "error", "gone")) == "IR501 gone"


def test_a_file_that_is_not_there_has_no_place():
    nofile = Diagnostic("IR000", "error", "cannot read a.xml: no such file", file="a.xml", help="check the path")
    assert text(nofile).plain == "error[IR000 unreadable]: cannot read a.xml: no such file\n  = help: check the path\n"


@pytest.mark.parametrize(
    ("line", "column", "end", "shown", "carets"),
    [
        ("\t\t<dim>1</dim>", 3, 15, "        <dim>1</dim>", "        ^^^^^^^^^^^^"),
        ("<a 名前='x'/>", 8, 9, "<a 名前='x'/>", "         ^"),
        ("<a 名前='x'/>", 4, 6, "<a 名前='x'/>", "   ^^^^"),
        ("<a\u009b b='x'/>", 5, 6, "<a\\x9b b='x'/>", "       ^"),
        ("<a/>", 9, 12, "<a/>", "    ^"),
        ("", 1, 2, "", "^"),
    ],
    ids=["tabs", "after-wide", "wide", "control", "past-the-end", "empty"],
)
def test_the_carets_stand_below_what_is_marked(line, column, end, shown, carets):
    lines = text(found(line, column, end)).plain.splitlines()
    assert lines[3].rstrip() == f"1 | {shown}".rstrip()
    assert lines[4] == f"  | {carets}"


@pytest.mark.parametrize("column", [1, 50, 5_000, 100_000])
def test_a_line_of_megabytes_is_shown_in_part(column):
    line = "<x/>" * 25_000
    lines = text(found(line, column, column + 4)).plain.splitlines()
    assert len(lines[3]) < 140
    start = lines[4].index("^")
    assert lines[3][start : start + 4] == line[column - 1 : column + 3]
    long = text(found(line, 1, 90_000)).plain.splitlines()
    assert len(long[4]) < 140


def test_printable():
    assert printable("名 é") == "名 é"
    assert printable("a\nb\x9b\u2028\udcff") == "a\\nb\\x9b\\u2028\\udcff"
    assert concise(Diagnostic("IR501", "error", "a\nb", file="x\ny")).count("\n") == 0

"""Findings that a comment in the file says to ignore."""

from pathlib import Path

import pytest

import irrun
from irrun.api import load_all
from irrun.checking import ignore
from irrun.checking.checker import check
from irrun.ir.parse import Parsed
from nets import Net


def wrong(tmp_path: Path) -> Path:
    """Its Add declares I64 and [3] instead of FP32 and [2]: IR303 and, a line below, IR401."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Add", [x, x], [("I64", "3")], name="sum"))
    return net.save(tmp_path)


def codes(path: Path) -> list[str]:
    return [d.code for d in irrun.check(path)]


def with_comment(path: Path, comment: str, before: bool) -> Path:
    """The comment on the line of the wrong dim, or on a line of its own before it."""
    lines = path.read_text().split("\n")
    number = next(i for i, line in enumerate(lines) if "<dim>3</dim>" in line)
    if before:
        lines.insert(number, comment)
    else:
        lines[number] += comment
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("before", [False, True], ids=["same-line", "line-before"])
@pytest.mark.parametrize(
    ("comment", "ignored"),
    [
        ("<!-- irrun: ignore IR401 -->", True),
        ("<!--irrun:ignore IR401-->", True),
        ("<!-- irrun: ignore ir401 -->", True),
        ("<!-- irrun: ignore IR4 -->", True),
        ("<!-- irrun: ignore IR303, IR401 -->", True),
        ("<!-- irrun: ignore IR303 IR401 -->", True),
        ("<!-- irrun: ignore IR401 the plugin pads it -->", True),
        ("<!-- irrun: ignore -->", True),
        ("<!-- why --> <!-- irrun: ignore IR401 --> ", True),
        ("<!-- irrun: ignore IR303 --><!-- irrun: ignore IR401 -->", True),
        ("<!-- irrun: ignore IR303 -->", False),
        ("<!-- irrun: ignore IR4011 -->", False),
        ("<!-- irrun: ignore the dims -->", False),
        ("<!-- irrun: ignore not IR401 -->", False),
        ("<!-- irrun: ignored -->", False),
        ("<!-- irrun: IR401 -->", False),
        ("<!-- IR401 -->", False),
    ],
)
def test_comment(comment: str, ignored: bool, before: bool, tmp_path: Path) -> None:
    assert codes(wrong(tmp_path)) == ["IR303", "IR401"]
    found = codes(with_comment(wrong(tmp_path), comment, before))
    assert ("IR401" not in found) == ignored
    assert before or "IR303" in found  # its line is the one before


def test_a_comment_behind_something_concerns_its_own_line_only(tmp_path: Path) -> None:
    path = wrong(tmp_path)
    lines = path.read_text().split("\n")
    number = next(i for i, line in enumerate(lines) if "<dim>3</dim>" in line)
    lines[number - 1] += "<!-- irrun: ignore -->"
    path.write_text("\n".join(lines))
    assert codes(path) == ["IR401"]


def test_a_model_that_was_read_is_treated_alike(tmp_path: Path) -> None:
    path = with_comment(wrong(tmp_path), "<!-- irrun: ignore IR401 -->", before=False)
    assert [d.code for d in irrun.check(irrun.read_model(path))] == ["IR303"]


def test_what_cannot_be_read_is_not_ignored(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_text("<!-- irrun: ignore -->\n<net version='5'/> <!-- irrun: ignore -->")
    assert codes(path) == ["IR004"]


def test_examples_of_a_page(tmp_path: Path) -> None:
    example = '<layer type="ReLU"><input><port id="0"><dim>3</dim></port></input>\n<output><port id="1"><dim>4</dim></port></output></layer>\n'
    page = tmp_path / "page.txt"
    page.write_text(f"Text\n{example}Text\n" + example.replace("</layer>", "</layer><!-- irrun: ignore IR401 -->"))
    assert [(d.code, d.line) for d in irrun.check(page)] == [("IR401", 3)]


def test_a_long_line_takes_no_time(tmp_path: Path) -> None:
    path = wrong(tmp_path)
    hostile = "<!-- irrun: ignore " + "IR1 " * 200_000, "<![CDATA[" + "<!-- irrun: ignore" * 100_000 + "]]>"
    lines = path.read_text().split("\n")
    number = next(i for i, line in enumerate(lines) if "<dim>3</dim>" in line)
    lines[number] += f"<rt_info>{hostile[1]}</rt_info>{hostile[0]}\n-->"
    path.write_text("\n".join(lines))
    assert codes(path) == ["IR303", "IR401"]


def test_a_line_with_all_examples_of_a_page_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    codes_of = ignore._ignored_codes

    def counted(line: str) -> tuple[str, ...]:
        read.append(len(line))
        return codes_of(line)

    monkeypatch.setattr(ignore, "_ignored_codes", counted)
    path = tmp_path / "page.md"
    one = '<layer type="ReLU"><input><port id="0"><dim>2</dim></port></input><output><port id="1"><dim>3</dim></port>'
    path.write_text(f"```xml\n{f'{one}</output></layer>' * 9}\n```\n")
    found = [d.code for one in load_all(path) if isinstance(one, Parsed) for d in check(one)]
    assert found == ["IR401"] * 9
    assert len(read) <= 2

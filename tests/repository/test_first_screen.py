"""The README: short, with a picture of a finding first, three lines that say what irrun does, and an honest table."""

import importlib.util
import re
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from places import ROOT

README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def terminal() -> ModuleType:
    spec = importlib.util.spec_from_file_location("terminal", ROOT / "docs" / "terminal.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _lines(svg: str) -> list[str]:
    """Return the texts of a picture, line by line."""
    rows: dict[float, dict[float, str]] = {}
    for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        row = rows.setdefault(float(element.get("y", "0")), {})
        row[float(element.get("x", "0"))] = (element.text or "").replace("\xa0", " ")
    return ["".join(rows[y][x] for x in sorted(rows[y])).rstrip() for y in sorted(rows)]


def test_the_picture_shows_what_the_command_prints(terminal: ModuleType) -> None:
    stored = terminal.PICTURE.read_text("utf-8")
    made = terminal.drawn(terminal.finding())
    assert _lines(stored) == _lines(made), "draw it anew: python docs/terminal.py"
    colours = [set(re.findall(r"fill: (#\w+)", svg)) for svg in (stored, made)]
    assert colours[0] == colours[1]


def test_the_picture_shows_a_finding(terminal: ModuleType) -> None:
    lines = "\n".join(_lines(terminal.PICTURE.read_text("utf-8")))
    for part in ("$ irrun check samples/wrong_dim.xml", "error[IR401 dims-mismatch]", "samples/wrong_dim.xml:39:6",
                 "<dim>48</dim>", "^^^^^^^^^^^^^", "Broadcast-3 gives [1,16,50,50]", "declare 50"):  # fmt: skip
        assert part in lines


def test_the_picture_fetches_nothing(terminal: ModuleType) -> None:
    stored = terminal.PICTURE.read_text("utf-8")
    assert "@font-face" not in stored
    assert set(re.findall(r"https?://[\w.]+", stored)) <= {"http://www.w3.org", "https://www.textualize.io"}


def test_the_readme_opens_with_the_picture_and_three_lines(terminal: ModuleType) -> None:
    title, picture, lines, *_ = README.split("\n\n")
    assert title == "# irrun"
    assert re.fullmatch(r"!\[[^]]+\]\(docs/_static/finding\.svg\)", picture)
    assert terminal.PICTURE == ROOT / "docs" / "_static" / "finding.svg"
    assert [line.split()[1] for line in lines.splitlines()] == ["**Check**", "**Run**", "**Compare**"]
    assert all(len(line) <= 120 for line in lines.splitlines())


def test_the_readme_is_read_in_three_minutes() -> None:
    assert len(README.encode()) <= 9 * 1024, "move what is longer to the page of its subject"
    assert len(re.findall(r"^!\[", README, re.MULTILINE)) == 3
    assert README.index("## Install") < README.index("## First finding") < README.index("## First run")


def test_the_readme_claims_nothing_alone() -> None:
    """A comparison with other tools is in the table, where each tool has its column."""
    assert re.findall(r"\b(?:[Oo]nly irrun|unlike|unique|fastest(?! of these)|world)", README) == []


def test_the_table_is_honest() -> None:
    """Each tool has a row in which it is better than irrun, and every row says something of each."""
    section = README.split("## Beside other tools")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)]
    assert rows[0] == ["", "irrun", "OpenVINO", "`onnx.reference`", "Polygraphy", "Netron"]
    assert all(len(row) == len(rows[0]) for row in rows)
    assert [row[0] for row in rows[2:] if row[1] == "no"] == ["reads other formats", "quantizes models"]
    by_name = {row[0]: row for row in rows}
    assert by_name["speed"][1].startswith("slower")
    assert "best" in by_name["shows the graph"][5]

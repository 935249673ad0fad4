"""The pages quote stored results: each measured number of README, benchmarks and scoreboard is made of docs/results."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import figures
from places import ROOT

QUOTING = [ROOT / "README.md", ROOT / "docs" / "benchmarks.md"]
"""The pages that show measured numbers in figures only, and none in their prose."""


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.stem)
def test_a_page_shows_the_stored_results(page: Path) -> None:
    text = page.read_text("utf-8")
    assert figures.filled(text) == text, "write them anew: python -m tools figures"


def test_every_stored_result_is_shown() -> None:
    pages = "".join(page.read_text("utf-8") for page in figures.PAGES)
    assert re.findall(r"^<!-- ((?:figures [^\n]+)|scoreboard) -->$", pages, re.MULTILINE).count("scoreboard") == 1
    assert all(f"<!-- {name} -->\n" in pages for name in figures.BLOCKS)
    read = {
        "budgets",
        "compare",
        "exports",
        "fleet",
        *NETWORKS,
        "onnx-export",
        "releases",
        "scoreboard",
        "served",
    }
    assert {path.stem for path in figures.RESULTS.iterdir()} == read


NETWORKS = [f"networks-{name}" for name in ("1-thread", "2-threads", "amx-1-thread", "amx-2-threads", "avx2-1-thread")]


@pytest.mark.parametrize("name", [*NETWORKS, "budgets", "compare", "fleet", "onnx-export", "releases", "served"])
def test_a_stored_result_says_where_it_comes_from(name: str) -> None:
    found = figures.stored(name)
    assert found["command"].startswith(("python -m benchmarks", "python -m tools"))
    assert found["command"].endswith(f"--save docs/results/{name}.json")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", found["date"])
    assert {"cpu", "cores"} <= found["machine"].keys()


@pytest.mark.parametrize("name", NETWORKS)
def test_ratios_are_those_of_the_times(name: str) -> None:
    """Times are stored with three digits and ratios with two decimals."""
    for row in figures.stored(name)["rows"]:
        times = {engine: spent["median"] for engine, spent in row["times"].items()}
        assert math.isclose(row["ratio"], times["OpenVINO"] / times["irrun"], rel_tol=0.02)
        assert math.isclose(row["numpy_ratio"], times["OpenVINO"] / times["numpy alone"], rel_tol=0.02)


def test_the_scoreboard_adds_up() -> None:
    found = figures.stored("scoreboard")
    for engine in found["engines"]:
        assert {basis: sum(rows.values()) for basis, rows in engine["rows"].items()} == found["rows"]
        assert engine["unknown_rank"] <= found["unknown_rank"]
        wrong = sum(rows[key] for rows in engine["rows"].values() for key in rows if key not in ("right", "unclaimed"))
        assert sum(cause["rows"] for cause in engine["causes"]) >= wrong


@pytest.mark.parametrize("page", QUOTING, ids=lambda page: page.stem)
def test_prose_has_no_measured_number(page: Path) -> None:
    """A time, rate, share or ratio outside of the blocks is in no stored result."""
    text = re.sub(r"^<!-- figures .*?^<!-- end -->$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^```.*?^```$|`[^`\n]+`|\]\([^)]+\)", "", text, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\b\d+[.,]?\d* ?(?:%|ms|µs|ns|s|seconds|GFLOP/s|GB/s|times)\b", text) == []
    text = text.replace("Python 3.11", "")
    assert re.findall(r"\b\d+\.\d\d\b|\b\d{1,3},\d{3}\b", text) == []


def test_a_block_is_made_anew() -> None:
    text = "a\n<!-- figures means -->\nold\n<!-- end -->\nb\n<!-- end -->\n"
    assert (
        figures.filled(text)
        == f"a\n<!-- figures means -->\n{figures.BLOCKS['figures means']()}<!-- end -->\nb\n<!-- end -->\n"
    )
    with pytest.raises(KeyError):
        figures.filled("<!-- figures of nothing -->\n<!-- end -->\n")


def test_a_result_is_one_of_json() -> None:
    for path in figures.RESULTS.iterdir():
        text = path.read_text("utf-8")
        assert text == json.dumps(json.loads(text), indent=1) + "\n"

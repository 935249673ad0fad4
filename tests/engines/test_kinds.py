"""The kinds of engines: one table, from which commands and pages take what they say and do."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

import engine_tables
from copies import copy_of_irrun, run_commands
from irrun.cli import cli
from irrun.engines import KINDS
from irrun.engines.harnesses import reproduce
from irrun.engines.kinds import OPTIONS
from places import ROOT, SAMPLES

HARNESSES: Final = Path("engines", "harnesses")
TABLE: Final = Path("engines", "kinds.py")

ROW: Final = """
    Kind(
        "mirror", "mirror:model.xml", "an engine that this test adds",
        reads=(IR,), shows=(OUTPUTS, INNER_VALUES), options=("python",), harness="mirror", packages="irrun",
    ),
"""
HARNESS: Final = """
from irrun.engines.harnesses import irrun


class Harness(irrun.Harness):
    def __init__(self, options):
        super().__init__({"exact": "1"})
        self.name = "mirror 1.0"
"""


def test_every_kind_is_described() -> None:
    help = CliRunner().invoke(cli, ["compare", "--help"], terminal_width=80).output
    for kind in KINDS.values():
        assert f"{kind.example} " in help
        assert kind.summary in help
        assert len(kind.summary) <= 50


def test_every_kind_is_whole() -> None:
    for kind in KINDS.values():
        assert set(kind.options) <= OPTIONS.keys()
        assert kind.reads, kind.name
        assert kind.shows, kind.name
        assert kind.is_recording or (ROOT / "irrun" / HARNESSES / f"{kind.harness}.py").is_file()
        assert bool(kind.packages) != kind.is_recording


def test_the_script_of_a_reproduction_runs_every_engine_that_is_bisected() -> None:
    assert {kind.harness for kind in KINDS.values() if kind.is_bisected} == reproduce.ENGINES.keys()


@pytest.mark.parametrize("page", engine_tables.PAGES, ids=lambda page: page.stem)
def test_the_tables_of_the_pages_are_made_from_the_kinds(page: Path) -> None:
    help = "run python -m tools engine_tables"
    assert page.read_text("utf-8") == engine_tables.rewritten(page), help


def test_a_file_and_a_row_add_an_engine(tmp_path: Path) -> None:
    """Commands know an engine that a copy of irrun has because of one new file and one new row."""
    copy = copy_of_irrun(tmp_path)
    (copy / HARNESSES / "mirror.py").write_text(HARNESS)
    table = copy / TABLE
    text, head = table.read_text("utf-8"), "_TABLE: Final = ("
    assert head in text
    table.write_text(text.replace(head, head + ROW), "utf-8")
    compared, judged, fuzzed, help = run_commands(
        copy,
        "compare mirror:convnet.xml convnet.xml",
        f"conformance run mirror --only ReLU-1/* --every 5 -o {tmp_path / 'results'}",
        "fuzz --against mirror --count 2",
        "compare --help",
        folder=SAMPLES,
    )
    assert "(mirror 1.0)" in compared
    assert judged.startswith("mirror 1.0: ")
    assert "0 findings" in fuzzed
    assert "mirror:model.xml         an engine that this test adds" in help

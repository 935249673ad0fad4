"""The kinds of engines: one table, from which commands and pages take what they say and do."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import pytest
from click.testing import CliRunner

import engine_tables
from irrun.cli import cli
from irrun.engines import KINDS
from irrun.engines.harnesses import reproduce
from irrun.engines.kinds import OPTIONS, PRECISIONS, properties
from places import ROOT

HARNESSES: Final = Path("engines", "harnesses")


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


class _Core:
    """What the script uses of openvino.Core, and what it was asked for."""

    compiled: ClassVar[list[tuple[str, str, dict[str, object]]]] = []

    def read_model(self, path: str) -> str:
        return path

    def compile_model(self, model: str, device: str, properties: dict[str, object]) -> Any:
        self.compiled.append((model, device, properties))
        return SimpleNamespace(create_infer_request=lambda: None)


@pytest.mark.parametrize(
    ("options", "device", "asked"),
    [
        ({}, "CPU", {}),
        ({"precision": "bf16"}, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"}),
        ({"threads": "3"}, "CPU", {"INFERENCE_NUM_THREADS": "3"}),
        ({"KV_CACHE_PRECISION": "u8"}, "CPU", {"KV_CACHE_PRECISION": "u8"}),
        ({"device": "GPU", "precision": "f32"}, "GPU", PRECISIONS["f32"]),
        ({"precision": "f32", "KV_CACHE_PRECISION": "u8"}, "CPU", {**PRECISIONS["f32"], "KV_CACHE_PRECISION": "u8"}),
    ],
    ids=str,
)
def test_the_script_of_a_reproduction_sets_what_the_side_had_set(
    options: dict[str, str], device: str, asked: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    _Core.compiled.clear()
    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=_Core, __version__="1"))  # type: ignore[arg-type]
    reproduce.openvino({**options, "properties": properties(options)})
    assert _Core.compiled == [("model.xml", device, asked)]


@pytest.mark.parametrize("page", engine_tables.PAGES, ids=lambda page: page.stem)
def test_the_tables_of_the_pages_are_made_from_the_kinds(page: Path) -> None:
    help = "run python -m tools engine_tables"
    assert page.read_text("utf-8") == engine_tables.rewritten(page), help

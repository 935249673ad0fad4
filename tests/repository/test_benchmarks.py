"""The benchmark runs, writes and compares; how fast anything is, no test says."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.case import Setup, measure
from benchmarks.operations import operations
from places import ROOT

pytestmark = pytest.mark.openvino


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)


def test_saves_and_compares(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    done = benchmarks("Broadcast numpy 1 KB", "--seconds", "0", "--save", str(saved))
    assert done.returncode == 0, done.stderr
    found = json.loads(saved.read_text("utf-8"))
    assert found["machine"]["threads"] == 1
    (row,) = found["rows"]
    assert (row["group"], row["name"]) == ("operations", "Broadcast numpy 1 KB")
    assert row["errors"] == {"irrun": 0, "OpenVINO": 0}
    assert row["ratio"] == row["times"]["OpenVINO"]["median"] / row["times"]["irrun"]["median"]

    row["ratio"] = 1e9
    saved.write_text(json.dumps(found), "utf-8")
    done = benchmarks("Broadcast numpy 1 KB", "--seconds", "0", "--against", str(saved))
    assert done.returncode == 0, done.stderr
    assert "1000000000.00" in done.stdout
    assert "-100%" in done.stdout


def test_what_is_saved_can_be_shown(tmp_path: Path) -> None:
    """A page shows a saved run, and says with which command, where and when it was made."""
    saved = tmp_path / "saved.json"
    done = benchmarks("Broadcast numpy 1 KB", "--seconds", "0", "--save", str(saved))
    assert done.returncode == 0, done.stderr
    found = json.loads(saved.read_text("utf-8"))
    found["rows"][0]["name"] += ", f16"
    sentence, _, lane, _, head, _, row = tables.networks(found).splitlines()
    today = datetime.now(UTC).date()
    assert found["command"] == f"python -m benchmarks 'Broadcast numpy 1 KB' --seconds 0 --save {saved}"
    assert sentence.startswith(f"Measured on {today.day} {today:%B %Y}, {found['machine']['cpu']}, ")
    assert sentence.endswith(f", with `{found['command']}`.")
    assert len(row.split("|")) == len(head.split("|"))
    assert lane == "f32 against f32, f16 weights:"
    assert row.startswith("| Broadcast numpy 1 KB, f16 | ")
    assert f" {found['rows'][0]['ratio']:.2f} " in row


def test_each_engine_in_a_process_of_its_own(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    done = benchmarks("Add channels 1 KB", "--threads", "2", "--seconds", "0", "--save", str(saved))
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(saved.read_text("utf-8"))["rows"]
    assert row["times"].keys() == {"irrun", "OpenVINO"}
    assert row["errors"] == {"irrun": 0, "OpenVINO": 0}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_engine_that_fails_leaves_its_columns_empty(tmp_path: Path, threads: int) -> None:
    """OpenVINO 2026.4.1 ends by SIGFPE for the decoder in f16 with one thread and AMX."""
    setup = Setup(tmp_path, threads=threads, seconds=0)
    (case,) = (case for case in operations(setup) if case.name == "Add channels 1 KB")
    row = measure("operations", replace(case, memory=True, attentions=1), setup)
    assert row.failed == "OpenVINO: AssertionError: OpenVINO fuses 0 attentions of 1"
    assert row.times.keys() == row.errors.keys() == row.memory.keys() == {"irrun"}


def test_lanes_compare_engines_with_equal_freedom() -> None:
    def row(name: str, *milliseconds: float) -> dict[str, object]:
        engines = dict(zip(("irrun", "OpenVINO", "OpenVINO as shipped", "irrun auto"), milliseconds))
        return {
            "name": name,
            "times": {engine: {"median": ms / 1e3} for engine, ms in engines.items()},
            "errors": dict.fromkeys(engines, 2e-6),
            "memory": {},
            "ratio": milliseconds[1] / milliseconds[0],
            "shipped_ratio": milliseconds[2] / milliseconds[-1],
        }

    machine = {"cpu": "a processor", "cores": 2, "threads": 1}
    rows = [row("Net, f16", 4.0, 8.0, 2.0, 2.5), row("Llama, int4", 5.0, 10.0, 4.0, 8.0)]
    stored = {"command": "a command", "date": "2026-11-26", "machine": machine, "rows": rows}
    sentence, *lanes = tables.networks(stored).removesuffix("\n").split("\n\n")
    assert sentence == "Measured on 26 November 2026, a processor, 2 cores, with `a command`."
    assert lanes == [
        "f32 against f32, f16 weights:",
        "| networks | irrun ms | OpenVINO ms | irrun error | OpenVINO error | ratio |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| Net, f16 | 4.00 | 8.00 | 2e-06 | 2e-06 | 2.00 |",
        "As shipped against as shipped, f16 weights:",
        "| networks | irrun auto ms | OpenVINO as shipped ms | irrun auto error | OpenVINO as shipped error "
        "| ratio as shipped |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| Net, f16 | 2.50 | 2.00 | 2e-06 | 2e-06 | 0.80 |",
        "int8 and int4 weights:",
        "| networks | irrun ms | OpenVINO ms | irrun auto ms | OpenVINO as shipped ms | irrun error | OpenVINO error "
        "| irrun auto error | OpenVINO as shipped error | ratio | ratio as shipped |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| Llama, int4 | 5.00 | 10.0 | 8.00 | 4.00 | 2e-06 | 2e-06 | 2e-06 | 2e-06 | 2.00 | 0.50 |",
    ]


def test_bad_usage(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("[]")
    for arguments, complaint in (
        (["Brodcast"], "no row is called 'Brodcast'"),
        (["--against", str(other)], "holds no figures of this benchmark"),
        (["--against", str(tmp_path / "none.json")], "No such file"),
        (["--cpu", "--threads", "2"], "it is for one thread"),
    ):
        done = benchmarks(*arguments)
        assert done.returncode == 2
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr

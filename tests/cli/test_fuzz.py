"""irrun fuzz."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from irrun.conformance import read_suite
from irrun.fuzz import Campaign, compiled, forms, judging, reached

Call = Callable[..., Result]


def test_irrun_against_itself(call: Call) -> None:
    result = call("fuzz", "--count", 10, "--seed", 3)
    assert result.exit_code == 0, result.output
    first, second, third, last = result.output.splitlines()
    assert first.startswith("10 models, ")
    assert first.endswith(" of 249 versions")
    assert "agreed" in second
    assert third.endswith(" algorithms of the default plan")
    assert last == "0 findings, 0 repeated"


def test_against_a_side_in_a_process_of_its_own(call: Call) -> None:
    result = call("fuzz", "--against", "exact", "--count", 5)
    assert result.exit_code == 0, result.output
    assert "0 findings" in result.output


@pytest.mark.processes
def test_compiled_kernels_of_an_instruction_set(tmp_path: Path) -> None:
    """In a process of its own, because a process compiles for one instruction set."""
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    form = next(form for form in forms() if form != "native")
    command = [sys.executable, "-m", "irrun", "fuzz", "--model", "3", "--compiled", form]
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.o"))


def test_compiled_kernels_are_compiled_while_a_campaign_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setenv("IRRUN_FAST", "1")
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    form = next(form for form in forms() if form != "native")
    with compiled(form):
        assert os.environ["IRRUN_FAST"] == "always"
        assert os.environ["NUMBA_CPU_NAME"]
    assert os.environ["IRRUN_FAST"] == "1"
    assert "NUMBA_CPU_NAME" not in os.environ


def test_an_instruction_set_that_is_not_here(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irrun.cli.fuzz.forms", dict)
    result = call("fuzz", "--count", 1, "--compiled", "avx512")
    assert result.exit_code == 2
    assert "no kernels can be compiled for avx512 here" in result.output


def test_one_model_alone(call: Call) -> None:
    result = call("fuzz", "--model", 1, "--seed", 3)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("1 model, ")


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_many_models_reach_every_algorithm(threads: int, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRRUN_THREADS", str(threads))
    result = call("fuzz", "--count", 1000, "--seed", 15, "--quota")
    assert result.exit_code == 0, result.output


def test_an_algorithm_that_is_not_reached_is_said(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "algorithms", lambda executable: set())
    monkeypatch.setattr(reached, "CYCLE", 2)
    result = call("fuzz", "--count", 4, "--seed", 3, "--quota")
    assert result.exit_code == 1, result.output
    assert "not reached often enough: fused: Gelu: 0, at least 1" in result.output


def test_two_processes(call: Call) -> None:
    result = call("fuzz", "--count", 2, "--seed", 3, "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("2 models, ")


def test_a_finding_is_shown_and_written(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that gives other values than the defining kernels, whatever the model."""
    arrays = judging._arrays

    def wrong(executable: Any, feeds: Any) -> Any:
        outputs = arrays(executable, feeds)
        return outputs if executable.exact else [output[..., None] for output in outputs]

    monkeypatch.setattr(judging, "_arrays", wrong)
    result = call("fuzz", "--count", 3, "-o", "found")
    assert result.exit_code == 1, result.output
    assert "exact values: " in result.output
    assert "(model 0)" in result.output
    assert read_suite(tmp_path / "found" / "findings.jsonl.xz").cases


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--minutes", "1", "--count", "1"], "not two of them"),
        (["--count", "1", "--model", "1"], "not two of them"),
        (["--minutes", "0"], "--minutes"),
        (["--against", "openvno"], "IR701"),
        (["--count", "1", "-o", "taken"], "taken is a file; pass a folder"),
    ],
)
def test_bad_usage(arguments: list[str], message: str, call: Call, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    result = call("fuzz", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_ctrl_c_shows_the_figures(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(campaign: Campaign, **_: Any) -> Iterator[None]:
        campaign.figures.graphs = 7
        yield None
        raise KeyboardInterrupt

    monkeypatch.setattr(Campaign, "run", interrupted)
    result = call("fuzz", "--count", 9)
    assert (result.exit_code, result.stdout.splitlines()[0][:9]) == (130, "7 models,")

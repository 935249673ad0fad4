"""How a layer differs between two files: what it reads, and the constants behind its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import irrun
from irrun import build as b
from irrun.cli import cli
from irrun.cli._comparison import show
from irrun.debug import compare
from irrun.debug.results import SideFailure
from irrun.engines import Crash, Place
from irrun.model import Model

_EYE = np.eye(4, dtype=np.float32)
_ROW = np.diag(np.array([2, 1, 1, 1], np.float32))


def _weight(codes: np.ndarray, scales: np.ndarray, zero: float = 0) -> b.Node:
    shifted = b.Subtract(b.Convert(b.constant(codes, name="codes"), destination_type="f32"), np.float32(zero))
    return b.Multiply(shifted, b.constant(scales, name="scales"), name="weight")


def _joined(name: str, *, turned: bool = False) -> Model:
    x = b.parameter([2, 4], "f32", name="x")
    parts = [b.ReLU(x, name="r"), b.Negative(x, name="n")]
    first, second = (parts[1], parts[0]) if turned else parts
    join = {
        "sub": lambda: b.Subtract(first, second, name="join"),
        "cat": lambda: b.Concat(first, second, axis=1, name="join"),
    }
    return b.model({"y": join[name]()}, inputs=[x])


def _product(weight: b.Node | np.ndarray, other: b.Node | np.ndarray = 2 * _EYE) -> Model:
    x = b.parameter([2, 4], "f32", name="x")
    return b.model({"y": b.MatMul(b.MatMul(x, weight, name="one"), other, name="two")})


def _compressed(*, codes: int = 1, scale: float = 1, zero: float = 0) -> Model:
    held, scales = np.arange(16, dtype=np.int8).reshape(4, 4), np.ones((4, 1), np.float32)
    held[3, 3], scales[1] = codes, scale
    return _product(_weight(held, scales, zero))


def _exchanged(turned: bool) -> Model:
    constants = [b.constant(array, name=name) for name, array in (("p", _EYE), ("q", 3 * _EYE))]
    return _product(*(reversed(constants) if turned else constants))


def _ranged(high: float) -> Model:
    limits = [b.constant(np.float32(limit), name=name) for name, limit in (("low", -1), ("high", high))]
    return _product(b.FakeQuantize(b.constant(_EYE, name="plain"), *limits, *limits, levels=5, name="weight"))


def _looped(step: float) -> Model:
    x = b.parameter([2, 4], "f32", name="x")

    def body(part: b.Node) -> object:
        return b.concatenated(
            b.Add(part, b.constant(np.full((1, 4), step, np.float32), name="step"), name="sum"), axis=0
        )

    return b.model({"y": b.TensorIterator(b.sliced(x, axis=0), body=body, name="loop")})


_PAIRS: dict[str, tuple[Callable[[], Model], Callable[[], Model], str, tuple[str, ...]]] = {
    "edges of Subtract": (
        lambda: _joined("sub"), lambda: _joined("sub", turned=True), "join",
        ('input 0 reads "n", in the reference "r"', 'input 1 reads "r", in the reference "n"'),
    ),
    "edges of Concat": (
        lambda: _joined("cat"), lambda: _joined("cat", turned=True), "join",
        ('input 0 reads "n", in the reference "r"', 'input 1 reads "r", in the reference "n"'),
    ),
    "two weights exchanged": (
        lambda: _exchanged(False), lambda: _exchanged(True), "one",
        ('input 1 reads the constant "q", in the reference "p"',),
    ),
    "a constant": (
        lambda: _product(b.constant(_EYE, name="p")), lambda: _product(b.constant(_ROW, name="p")),
        "one", ('the constant "p" has other values: 1 of 16 elements',),
    ),
    "a scale": (
        _compressed, lambda: _compressed(scale=1.5), "one",
        ('the weight "weight" has other values: 1 of 4 elements of its scales',),
    ),
    "a code and the zero point": (
        _compressed, lambda: _compressed(codes=9, zero=2), "one",
        ('the weight "weight" has other values: 1 of 16 elements of its codes, 1 of 1 element of its zero points',),
    ),
    "a range of FakeQuantize": (
        lambda: _ranged(1), lambda: _ranged(1.5), "one",
        ('the weight "weight" has other values: 1 of 1 element of its input_high, 1 of 1 element of its output_high',),
    ),
    "a constant in a body": (
        lambda: _looped(1), lambda: _looped(2), "loop/sum", ('the constant "loop/step" has other values: 4 of 4 elements',),
    ),
}  # fmt: skip


@pytest.mark.parametrize("pair", _PAIRS)
def test_what_a_layer_reads(pair: str, tmp_path: Path) -> None:
    make, wrong, layer, texts = _PAIRS[pair]
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    irrun.save_model(make(), good)
    irrun.save_model(wrong(), bad)
    first = compare(str(good), str(bad), inputs={"x": np.arange(2 * 4, dtype=np.float32).reshape(-1, 4) - 3}).first
    assert first is not None
    assert (first.layer.name, first.differences) == (layer, texts)


def test_a_body_that_is_not_shown(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    irrun.save_model(_looped(1), good)
    irrun.save_model(_looped(2), bad)
    first = compare(str(good), str(bad), pairing=lambda _, __: {Place("loop"): Place("loop")}).first
    assert first is not None
    assert first.differences == ('in its body, Add "sum": the constant "loop/step" has other values: 4 of 4 elements',)


def test_the_file_is_blamed_and_not_the_engine(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    irrun.save_model(_joined("sub"), good)
    irrun.save_model(_joined("sub", turned=True), bad)
    lines = CliRunner().invoke(cli, ["compare", str(good), str(bad)]).stdout.splitlines()
    at = lines.index('   = input 0 reads "n", in the reference "r"')
    assert lines[at + 2] == "   = the layer differs between the files"
    assert not [line for line in lines if "makes the error" in line]


def test_the_first_divergence_before_a_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    irrun.save_model(_joined("sub"), good)
    irrun.save_model(_joined("sub", turned=True), bad)
    crash = SideFailure("candidate", Crash("it was ended by SIGFPE"), 0)
    show(Console(width=100), replace(compare(str(good), str(bad)), verdict="crashed", failure=crash))
    lines = capsys.readouterr().out.splitlines()
    at = lines.index('the first divergence is Subtract "join"')
    assert lines[at - 1] == "crashed: the candidate crashed on sample 1: it was ended by SIGFPE"
    assert '   = input 0 reads "n", in the reference "r"' in lines[at:]

"""Values of other lengths: loops that run less often, other branches, counts that depend on values, and ShapeOf."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import irrun
from irrun import build as b
from irrun.cli import cli
from irrun.cli._comparison import show
from irrun.debug import Comparison, First, InputError, bisect, compare
from irrun.engines import Engine

Compare = Callable[..., Comparison]
Make = Callable[[bool], Any]


@pytest.fixture
def run(two: tuple[Engine, Engine]) -> Compare:
    """Return ``compare`` for two IR files that irrun runs, in processes that are running already."""
    return functools.partial(compare, running=two)


def saved(make: Make, folder: Path) -> tuple[str, str]:
    """Save a right and a wrong model, and return their paths."""
    for name, is_wrong in (("right", False), ("wrong", True)):
        irrun.save_model(b.model(make(is_wrong)), folder / f"{name}.xml")
    return str(folder / "right.xml"), str(folder / "wrong.xml")


def sized(part: b.Node) -> b.Node:
    """Return a ShapeOf and what follows from it: a difference of shape that is passed on."""
    shape = b.ShapeOf(part, output_type="i64", name="shape")
    return b.Reshape(b.ReLU(part, name="relu"), shape, special_zero=False, name="reshape")


def loop(is_wrong: bool) -> b.Node:
    """A Loop whose body begins with a ShapeOf, and that runs once less if it is wrong."""
    x = b.parameter([1, 4], "f32", name="x")

    def body(i: b.Node, state: b.Node) -> Any:
        size = b.ShapeOf(state, output_type="i64", name="size")
        new = b.Tanh(b.Reshape(b.Add(state, 1.0, name="add"), size, special_zero=False, name="same"), name="new")
        return True, new, b.concatenated(new, axis=0)

    return sized(b.Loop(4 if is_wrong else 5, True, x, body=body, name="loop")[1])


def conditional_loop(is_wrong: bool) -> b.Node:
    """A Loop that ends when a sum exceeds a limit, which a wrong body computes in another way."""
    x = b.parameter([1, 4], "f32", name="x")

    def body(i: b.Node, state: b.Node) -> Any:
        new = b.Add(state, 1.0, name="add")
        total = b.ReduceSum(new, np.array([0, 1], np.int64), keep_dims=False, name="total")
        return b.Less(total, 12.0 if is_wrong else 17.0, name="goes_on"), new, b.concatenated(new, axis=0)

    return sized(b.Loop(20, True, x, body=body, name="loop")[1])


def iterator(is_wrong: bool) -> b.Node:
    """A TensorIterator over the slices of a value, which has one slice less if it is wrong."""
    x = b.parameter([1, 5, 4], "f32", name="x")
    end = np.array([4 if is_wrong else 5], np.int64)
    part = b.Slice(x, np.array([0], np.int64), end, np.array([1], np.int64), np.array([1], np.int64), name="slice")

    def body(row: b.Node) -> Any:
        return b.concatenated(b.Tanh(row, name="tanh"), axis=1)

    return sized(b.TensorIterator(b.sliced(part, axis=1), body=body, name="loop"))


def branches(is_wrong: bool) -> b.Node:
    """An If that takes the other branch, whose value has another shape."""
    x = b.parameter([1, 4], "f32", name="x")
    limit = b.ReduceMax(x, np.array([0, 1], np.int64), keep_dims=False, name="peak")
    condition = b.Greater(limit, 5.0 if is_wrong else -5.0, name="condition")
    taken = b.If(
        condition,
        x,
        then=lambda a: b.Tanh(a, name="left"),
        otherwise=lambda a: b.Concat(a, a, axis=0, name="right"),
        name="if",
    )
    return sized(taken)


def nonzero(is_wrong: bool) -> b.Node:
    x = b.parameter([1, 4], "f32", name="x")
    edge = b.Greater(b.Tanh(x, name="tanh"), 0.9 if is_wrong else -2.0, name="edge")
    return b.ReLU(
        b.Convert(
            sized(b.Convert(b.NonZero(edge, name="nonzero"), destination_type="f32", name="c")),
            destination_type="f32",
            name="d",
        ),
        name="e",
    )


def counted(is_wrong: bool) -> b.Node:
    x = b.parameter([1, 4], "f32", name="x")
    stop = b.Convert(
        b.ReduceSum(b.Clamp(x, min=1.0, max=1.0, name="one"), np.array([0, 1], np.int64), name="stop"),
        destination_type="i64",
        name="int",
    )
    end = b.Add(stop, np.int64(1 if is_wrong else 0), name="end")
    return sized(b.Range(np.int64(0), end, np.int64(1), output_type="f32", name="range"))


@pytest.mark.parametrize(
    ("make", "layer", "problem"),
    [
        (loop, "loop", "its body runs 4 times, in the reference 5 times"),
        (conditional_loop, "loop/goes_on", ""),
        (iterator, "slice", "the shape is [1, 4, 4], that of the reference [1, 5, 4]"),
        (branches, "condition", ""),
        (nonzero, "edge", ""),
        (counted, "end", ""),
    ],
)
def test_the_first_divergence(make: Make, layer: str, problem: str, run: Compare, tmp_path: Path) -> None:
    """It is the layer that makes the difference, never the ShapeOf that reads it."""
    sample = {"x": np.zeros((1, 5, 4) if make is iterator else (1, 4), np.float32)}
    right, wrong = saved(make, tmp_path)
    for paths in ((right, wrong), (wrong, right)):
        first = run(*paths, sample).first
        assert first is not None
        assert first.layer.name == layer
        if paths[0] == right:
            assert first.layer.measurement.problem == problem


def test_an_if_that_takes_the_other_branch(run: Compare, tmp_path: Path) -> None:
    """The condition is a constant, so that no layer before the If differs."""

    def make(is_wrong: bool) -> b.Node:
        x = b.parameter([1, 4], "f32", name="x")
        chosen = b.If(not is_wrong, x, then=lambda a: b.Tanh(a, name="left"), otherwise=b.Sigmoid, name="if")
        return b.ReLU(chosen, name="y")

    right, wrong = saved(make, tmp_path)
    for paths, text in (
        ((right, wrong), "it does not run its then_body, which the reference runs"),
        ((wrong, right), "it does not run its else_body, which the reference runs"),
    ):
        first = run(*paths).first
        assert first is not None
        assert (first.layer.name, first.layer.type) == ("if", "If")
        assert first.layer.measurement.problem == text


def test_a_loop_in_a_loop(run: Compare, tmp_path: Path) -> None:
    """If the outer loop runs once less, it is named; if the inner one does, the inner one is."""

    def make(outer: int, inner: int) -> str:
        x = b.parameter([1, 4], "f32", name="x")

        def add(i: b.Node, state: b.Node) -> Any:
            return True, b.Add(state, 1.0, name="add")

        def body(i: b.Node, state: b.Node) -> Any:
            return True, b.Loop(inner, True, state, body=add, name="inner")

        path = tmp_path / f"{outer}{inner}.xml"
        irrun.save_model(b.model(b.ReLU(b.Loop(outer, True, x, body=body, name="outer"), name="y")), path)
        return str(path)

    for paths, name, counts in (
        ((make(3, 2), make(2, 2)), "outer", (2, 3)),
        ((make(2, 2), make(3, 2)), "outer", (3, 2)),
        ((make(3, 2), make(3, 1)), "outer/inner", None),
    ):
        first = run(*paths).first
        assert first is not None
        assert first.layer.name == name
        if counts is None:  # the values of the inner loop differ before it runs less often
            continue
        own, theirs = counts
        assert first.layer.measurement.problem == f"its body runs {own} times, in the reference {theirs} times"


def test_two_dumps(tmp_path: Path) -> None:
    """Recorded values have no model, but the names of the layers in bodies."""
    for path in saved(loop, tmp_path):
        folder = Path(path).with_suffix("")
        arguments = ["run", path, "-i", "x=zeros", "--dump", str(folder)]
        assert CliRunner().invoke(cli, arguments).exit_code == 0
    first = compare(str(tmp_path / "right"), str(tmp_path / "wrong")).first
    assert first is not None
    assert (first.layer.name, first.layer.type) == ("loop", "Loop")
    assert first.layer.measurement.problem == "its body runs 4 times, in the reference 5 times"


@pytest.mark.parametrize(("make", "layer"), [(loop, "loop"), (nonzero, "edge"), (counted, "end")])
def test_bisection_names_the_same_layer(make: Make, layer: str, tmp_path: Path) -> None:
    right, wrong = saved(make, tmp_path)
    bisection = bisect(right, wrong, {"x": np.zeros((1, 4), np.float32)})
    assert [layer.name for layer in bisection.layers] == [layer]


def test_the_command(tmp_path: Path) -> None:
    right, wrong = saved(loop, tmp_path)
    result = CliRunner().invoke(cli, ["compare", right, wrong])
    assert 'differ: the first divergence is Loop "loop"' in result.stdout
    assert "= its body runs 4 times, in the reference 5 times" in result.stdout
    assert "has other values" in result.stdout
    assert "makes the error" not in result.stdout


def test_a_layer_passes_on_a_difference_of_shape(run: Compare, tmp_path: Path) -> None:
    """Even if it is the first that was compared, a ShapeOf makes no error if the shape of its input differs."""
    right, wrong = saved(counted, tmp_path)
    comparison = run(right, wrong, {"x": np.zeros((1, 4), np.float32)})
    layers = {layer.name: layer for layer in comparison.layers}
    fed = InputError("range", "Range", "layer", 1, layers["range"].measurement)
    later = replace(comparison, first=First(layers["shape"], (fed,), None, ()))
    text = io.StringIO()
    show(Console(file=text, width=120), later)
    assert 'the layer passes on the difference of its input "range", and makes no error' in text.getvalue()

"""Bodies and variables. Each function adds one, or nothing if no tensor suits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.growing.chain import FLOATS, INTEGERS, Axis, Chain, Tensor, fixed
from irrun.growing.graphs import UNARY, Node

__all__ = ["BODIES"]

_MAX_ITERATIONS: Final = 8
"""The most iterations of a Loop or a TensorIterator."""


def _plan(g: Chain, most: int = 3) -> list[str]:
    return [g.choices.pick(UNARY) for _ in range(g.choices.integer(1, most))]


def _branch(g: Chain) -> None:
    """Add an If. An integer tensor, an input or a constant decides."""
    if not (x := g.find_floats()):
        return
    node = Node("If", inputs=[_condition(g).ref, x.ref], type=x.type, plan=[*_plan(g), g.choices.pick(UNARY)])
    g.offer(*g.put(node, (x.type, x.axes)))


def _condition(g: Chain) -> Tensor:
    y = g.find(lambda t: t.type in INTEGERS and t.is_fixed and 0 not in t.dims)
    if y is not None and g.choices.chance():
        (flat,) = g.layer("Reshape", [y, g.ints(-1)], (y.type, fixed(int(np.prod(y.dims)))), special_zero=False)
        (largest,) = g.layer("ReduceMax", [flat, g.ints(0)], (y.type, ()), keep_dims=False)
        return g.layer("Greater", [largest, g.number(2, y.type)], ("boolean", ()))[0]
    flag = np.array(g.choices.chance())
    return g.array(flag) if g.choices.chance() else g.parameter((), "boolean", data=flag)


def _iterate(g: Chain) -> None:
    """Add a Loop or a TensorIterator over the first axis."""
    if x := g.find(lambda t: t.type in FLOATS and t.is_fixed and t.rank >= 1 and 0 < t.dims[0] <= _MAX_ITERATIONS):
        node = Node(g.choices.pick(("Loop", "TensorIterator")), inputs=[x.ref], outputs=2, type=x.type, plan=_plan(g))
        g.offer(*g.put(node, (x.type, (Axis(1), *x.axes[1:])), (x.type, x.axes)))


def _remember(g: Chain) -> None:
    """Add a variable that is read and set once in each run."""
    if x := g.find(lambda t: t.type in FLOATS and t.is_fixed and t.rank >= 1):
        node = Node("state", inputs=[x.ref], type=x.type, plan=[g.choices.pick(("3", "6"))])
        g.offer(*g.put(node, (x.type, x.axes)))


BODIES: Final[tuple[Callable[[Chain], None], ...]] = (_branch, _iterate, _remember)
"""A function for each kind of body, and for variables."""

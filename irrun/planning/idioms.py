"""Find what several patterns of layers have in common, in the steps of a plan or in the layers of a file.

``Computed`` stands for both. Their inputs and outputs are numbered slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

from irrun.opdef import Op

__all__ = ["Computed", "Graph", "divided_by_root", "factors", "pairs", "transposed"]


class Computed(Protocol):
    """Something that computes slots: an operation and the slots that it reads, -1 for an absent input."""

    @property
    def op(self) -> Op: ...

    @property
    def reads(self) -> tuple[int, ...]: ...


_Step = TypeVar("_Step", bound=Computed)
_Covariant = TypeVar("_Covariant", bound=Computed, covariant=True)


class Graph(Protocol[_Covariant]):
    """What the functions below ask of the steps."""

    def of(self, slot: int, *types: str) -> _Covariant | None:
        """Return the step that fills a slot, or None if no step fills it, or one of another type than ``types``."""
        ...

    def number(self, slot: int) -> float | None:
        """Return the number in a constant of one element, None for any other slot."""
        ...


def pairs(step: Computed) -> Iterator[tuple[int, int]]:
    """Yield the two inputs of a step in both orders; nothing if it has not exactly two."""
    if len(step.reads) == 2:
        a, b = step.reads
        yield a, b
        yield b, a


def divided_by_root(graph: Graph[_Step], last: _Step) -> Iterator[tuple[int, int, tuple[_Step, ...]]]:
    """Match ``x / sqrt(y)``, ``x * (1 / sqrt(y))`` and ``x * y ** -0.5``.

    Yield the slots of x and y and the steps before ``last``.
    """
    if last.op.type == "Divide" and (root := graph.of(last.reads[1], "Sqrt")):
        yield last.reads[0], root.reads[0], (root,)
    if last.op.type == "Multiply":
        for x, factor in pairs(last):
            one = graph.of(factor, "Divide")
            if one and graph.number(one.reads[0]) == 1 and (root := graph.of(one.reads[1], "Sqrt")):
                yield x, root.reads[0], (root, one)
            if (power := graph.of(factor, "Power")) and graph.number(power.reads[1]) == -0.5:
                yield x, power.reads[0], (power,)


def factors(graph: Graph[_Step], last: _Step) -> tuple[list[int], tuple[_Step, ...]]:
    """Return the slots of the three factors of a product, and the step before ``last``.

    Both are empty if ``last`` is no such product.
    """
    if last.op.type != "Multiply":
        return [], ()
    for inner_slot, outer in pairs(last):
        if inner := graph.of(inner_slot, "Multiply"):
            return [*inner.reads, outer], (inner,)
    return [], ()


def transposed(step: Computed) -> tuple[bool, bool]:
    """Return which of its two operands a MatMul transposes."""
    return getattr(step.op, "transpose_a", False), getattr(step.op, "transpose_b", False)

"""The inputs of the calls of a graph: as they are, in odd memory, and changed by rounding."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import numpy as np

from irrun.growing.graphs import Graph
from irrun.growing.layouts import in_layout
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["Inputs", "changed", "rounded", "type_of"]

_JITTER: Final = {"f64": 2.0**-50, "f32": 2.0**-21, "f16": 2.0**-9, "bf16": 2.0**-6}
"""By how much inputs of each element type are changed, relative to their values: four roundings."""


class Inputs:
    """The inputs of the calls of a graph. Calls with equal shapes have equal inputs, which are drawn once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.first = [graph.calls.index(shapes) for shapes in graph.calls]
        """The first call with the shapes of each call."""
        self._drawn = {call: graph.feeds(call) for call in {*self.first}}
        self._dice = random.Random(graph.seed)

    def __getitem__(self, call: int) -> list[np.ndarray]:
        """Return the inputs of a call: copies, because a faulty kernel may change them."""
        return [array.copy() for array in self._drawn[self.first[call]]]

    def placed(self, call: int) -> list[np.ndarray]:
        """Return the inputs of a call as a caller may pass them, in layouts that are drawn for each call.

        The graph decides whether they are ``odd``. What is the same array in the graph is the same array here.
        """
        if not self.graph.odd:
            return self[call]
        drawn = self._drawn[self.first[call]]
        placed = {id(array): self._placed(array) for array in drawn}
        return [placed[id(array)] for array in drawn]

    def _placed(self, array: np.ndarray) -> np.ndarray:
        is_repeated = 0 in array.strides and self._dice.random() < 0.5
        return array if is_repeated else in_layout(array, self._dice)[1]

    def moved(self, call: int, attempt: int, *, narrow: bool) -> list[np.ndarray]:
        """Return the inputs of a call, changed by rounding."""
        return self.rounded(self[call], attempt, narrow=narrow)

    def rounded(self, feeds: Sequence[np.ndarray], attempt: int, *, narrow: bool) -> list[np.ndarray]:
        """Return inputs that are changed by rounding. Numbers that must be whole stay."""
        numbers = np.random.default_rng(attempt)
        moved: list[np.ndarray] = []
        for number, feed in zip(self.graph.parameters, feeds, strict=True):
            jitter = _JITTER.get(rounded(feed, narrow=narrow))
            if jitter is None or self.graph.nodes[number].domain == "whole":
                moved.append(feed)
            else:
                by = 1 + numbers.uniform(-jitter, jitter, feed.shape)
                with np.errstate(all="ignore"):
                    moved.append((feed.astype(np.float64) * by).astype(feed.dtype))
        return moved

    def chained(self, call: int, outputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Return the inputs of a call with outputs of a run before in place of inputs that are like them.

        They are the arrays that the run has returned. Returns None if no input is like an output.
        """
        feeds = self[call]
        for position, number in enumerate(self.graph.parameters):
            node, feed = self.graph.nodes[number], feeds[position]
            if (
                node.data is None
                and not node.domain
                and not node.ascending
                and ELEMENT_TYPES[node.type].kind == "float"
            ):
                alike = [a for a in outputs if a.dtype == feed.dtype and a.shape == feed.shape]
                feeds[position] = self._dice.choice(alike) if alike else feed
        return feeds if any(feed is output for feed in feeds for output in outputs) else None


def changed(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> str:
    """Return which inputs a run has changed, or an empty text."""
    places = [n for n, (a, c) in enumerate(zip(before, after)) if not _is_same(a, c)]
    return f"input {places[0]} was changed" if places else ""


def _is_same(a: np.ndarray, c: np.ndarray) -> bool:
    if a.dtype.hasobject:
        return bool((a == c).all())
    return a.tobytes() == c.astype(a.dtype, copy=False).tobytes()


def type_of(array: np.ndarray) -> str:
    """Return the name of the element type of an array, or an empty text."""
    element_type = ElementType.of(array.dtype)
    return "" if element_type is None else element_type.name


def rounded(array: np.ndarray, *, narrow: bool) -> str:
    """Return the element type in which engines compute an array."""
    type = type_of(array)
    return "f32" if narrow and type == "f64" else type

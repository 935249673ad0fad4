"""Find layers whose output certainly equals another value: layers without effect, and pairs that cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irrun.inference.trace import Trace
from irrun.model import Layer
from irrun.opdef import Op, Value
from irrun.types import ElementType, PartialShape

__all__ = ["CANCELLED", "CHAINED", "IDENTITY", "Graph", "Output", "is_same"]

Output = tuple[int, int]
"""An output: the id of its layer, and its position among the outputs of the layer."""

IDENTITY: Final = "layers without effect"
CANCELLED: Final = "layers that cancel"
CHAINED: Final = "chains of Reshape"


@dataclass(frozen=True, slots=True)
class Graph:
    """A model or body while it is simplified.

    ``feeds`` are the inputs of each layer that was visited. They name the outputs that remain.
    """

    trace: Trace
    feeds: dict[int, tuple[Output | None, ...]]

    def value(self, output: Output | None) -> Value | None:
        return None if output is None else self.trace.values.get(output)

    def contents(self, output: Output | None) -> np.ndarray | None:
        """Return the contents of an output if they are known before a run and small enough for inference."""
        value = self.value(output)
        return None if value is None else value.exact

    def equal(self, layer: Layer, op: Op) -> tuple[Output, str] | None:
        """Return an earlier output that the only output of a layer equals, with the step that says why; or None."""
        feed = self.feeds[layer.id][0]
        rule = _RULES.get(layer.type.lower())
        if feed is None:
            return None
        if op.views == "reshaped":
            return self._unreshaped(layer)
        if rule is not None and self.keeps(layer, feed) and rule(self, op, self.feeds[layer.id]):
            return feed, IDENTITY
        undone = _INVERSES.get(layer.type.lower())
        before = self.trace.model.layers[feed[0]]
        if undone is not None and before.type.lower() == layer.type.lower():
            source = self.feeds[before.id][0]
            if source is not None and undone(self, before.id, layer.id):
                return source, CANCELLED
        return None

    def root(self, layer: Layer) -> Output | None:
        """Return the value whose elements a layer reshapes: that before all layers that only reshape; None if none."""
        feed = self.feeds[layer.id][0]
        for source in self._chain(layer):
            feed = source
        return feed

    def keeps(self, layer: Layer, feed: Output) -> bool:
        """Return whether the first output of a layer certainly has the type and the shape of another output."""
        one, other = self.value((layer.id, 0)), self.value(feed)
        return one is not None and other is not None and one.type is other.type and is_same(one.shape, other.shape)

    def _unreshaped(self, layer: Layer) -> tuple[Output, str] | None:
        for number, source in enumerate(self._chain(layer)):
            if self.keeps(layer, source):
                return source, CANCELLED if number else IDENTITY
        return None

    def _chain(self, layer: Layer) -> Sequence[Output]:
        """Return the values before a layer that have its elements in its order, the nearest first."""
        chain: list[Output] = []
        while len(chain) < _MOST_RESHAPES and self._reshapes(layer):
            feed = self.feeds[layer.id][0]
            if feed is None:
                break
            chain.append(feed)
            layer = self.trace.model.layers[feed[0]]
        return chain

    def _reshapes(self, layer: Layer) -> bool:
        """Return whether a layer only reshapes, and its inferred shape holds for every input."""
        op = self.trace.ops[layer.id]
        if op is None or op.views != "reshaped" or layer.id not in self.feeds:
            return False
        feed = self.value(self.feeds[layer.id][0])
        # without axes, Squeeze is inferred as if no unknown dim were 1
        return len(layer.inputs) > 1 or (feed is not None and feed.shape.static is not None)


_MOST_RESHAPES: Final = 8
"""The most layers that only reshape which are followed back. Chains of Reshape are short, as each is cut."""


def is_same(one: PartialShape, other: PartialShape) -> bool:
    """Return whether two shapes are certainly equal."""
    if one.dims is None or other.dims is None or len(one.dims) != len(other.dims):
        return False
    return all(a.same(b) for a, b in zip(one.dims, other.dims))


# ---------------------------------------------------------------------------------------------
# layers without effect, if their output has the type and shape of their first input

Feeds = Sequence[Output | None]


def _always(graph: Graph, op: Op, feeds: Feeds) -> bool:
    return True


def _is_filled(position: int, number: float) -> Callable[[Graph, Op, Feeds], bool]:
    """Return the rule that an input holds a number alone."""

    def rule(graph: Graph, op: Op, feeds: Feeds) -> bool:
        array = graph.contents(feeds[position]) if position < len(feeds) else None
        return array is not None and array.dtype.kind not in "OSU" and bool((array == number).all())

    return rule


def _added(graph: Graph, op: Op, feeds: Feeds) -> bool:
    """Return whether integers are added to 0. Adding 0.0 turns -0.0 into 0.0."""
    value = graph.value(feeds[0])
    return value is not None and value.type.is_integer and _is_filled(1, 0)(graph, op, feeds)


def _ordered(graph: Graph, op: Op, feeds: Feeds) -> bool:
    order = _order(graph, feeds)
    return order is not None and order == list(range(len(order)))


def _whole(graph: Graph, op: Any, feeds: Feeds) -> bool:
    """Return whether a slice of the length of its input takes each element in order."""
    masks = [*getattr(op, "new_axis_mask", ()), *getattr(op, "shrink_axis_mask", ())]
    return 1 not in masks and (len(feeds) < 4 or _is_filled(3, 1)(graph, op, feeds))


def _unpadded(graph: Graph, op: Op, feeds: Feeds) -> bool:
    return _is_filled(1, 0)(graph, op, feeds) and _is_filled(2, 0)(graph, op, feeds)


def _replicated(graph: Graph, op: Any, feeds: Feeds) -> bool:
    return op.mode != "explicit"


_RULES: Final[Mapping[str, Callable[[Graph, Op, Feeds], bool]]] = {
    "add": _added,
    "broadcast": _replicated,
    "concat": lambda graph, op, feeds: len(feeds) == 1,
    "convert": _always,
    "convertlike": _always,
    "divide": _is_filled(1, 1),
    "identity": _always,
    "multiply": _is_filled(1, 1),
    "pad": _unpadded,
    "slice": _whole,
    "split": _always,
    "stridedslice": _whole,
    "subtract": _is_filled(1, 0),
    "tile": _always,
    "transpose": _ordered,
    "variadicsplit": _always,
}
"""For each layer type, whether its output holds the elements of its first input in their order."""


# ---------------------------------------------------------------------------------------------
# pairs of layers that cancel


def _order(graph: Graph, feeds: Feeds) -> list[int] | None:
    """Return the axes of a Transpose, or None if they are not known."""
    order, data = graph.contents(feeds[1]), graph.value(feeds[0])
    if order is None or data is None or data.rank is None:
        return None
    return [int(axis) for axis in order] or list(range(data.rank))[::-1]


def _transposed_back(graph: Graph, before: int, layer: int) -> bool:
    first, second = _order(graph, graph.feeds[before]), _order(graph, graph.feeds[layer])
    return first is not None and second is not None and [first[axis] for axis in second] == list(range(len(first)))


def _converted_back(graph: Graph, before: int, layer: int) -> bool:
    types = [graph.value(output) for output in (graph.feeds[before][0], (before, 0), (layer, 0))]
    source, between, result = (None if value is None else value.type for value in types)
    return source is not None and source is result and between is not None and _holds(source, between)


_INVERSES: Final[Mapping[str, Callable[[Graph, int, int], bool]]] = {
    "transpose": _transposed_back,
    "convert": _converted_back,
}
"""For each layer type, whether a second layer of the type gives the value that the first one has read."""

_SIGNIFICANT: Final = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""The significant bits of floating-point types."""
_WIDER: Final = {"bf16": ("f32", "f64"), "f16": ("f32", "f64"), "f32": ("f64",)}


def _holds(source: ElementType, target: ElementType) -> bool:
    """Return whether each value of ``source`` is a value of ``target``."""
    if target.name in _WIDER.get(source.name, ()):
        return True
    if not source.is_integer:
        return source.kind == "boolean" and (target.is_integer or target.name in _SIGNIFICANT)
    bits = source.bits - (source.kind == "int")
    if target.is_integer:
        return bits <= target.bits - (target.kind == "int") and not (source.kind == "int" and target.kind == "uint")
    return bits <= _SIGNIFICANT.get(target.name, 0)

"""Say how two runtime graphs differ: nodes, precisions, kernels, layouts, inserted nodes, fusions and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median, quantiles
from typing import Any, Final, Literal

import networkx as nx

from irrun.debug.difference import match
from irrun.debug.runtime.placing import Inserted, LayerRun
from irrun.debug.runtime.results import Fusion, Runtime
from irrun.engines import RunNode

__all__ = ["FusionChange", "InsertedChange", "Paired", "Part", "RunChange", "RuntimeDifference", "Timing", "difference"]

Kind = Literal["state", "nodes", "precision", "primitive", "layout"]
"""What differs in a part: the state of a layer, the nodes and the layers that each computes, or what nodes are like.

Whether an engine names a layer that it computes (``named`` or ``inside``) makes no difference.
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """The microseconds of the same work on both sides: medians of the runs, and the ``noise`` of their difference.

    The noise is the sum of both interquartile ranges. It is 0 with a single run.
    """

    a: float
    b: float
    noise: float

    @staticmethod
    def of(a: Sequence[RunNode], b: Sequence[RunNode]) -> Timing:
        """Return the times of the nodes that do the work."""
        runs = [[sum(times) for times in zip(*(n.microseconds for n in nodes if n.microseconds))] for nodes in (a, b)]
        first, second = (median(times) if times else 0.0 for times in runs)
        return Timing(first, second, sum(_spread(times) for times in runs))

    @property
    def change(self) -> float:
        """The microseconds that ``b`` takes longer; negative if it is faster."""
        return self.b - self.a

    @property
    def is_clear(self) -> bool:
        """Whether the difference is larger than the noise, and than a microsecond, in which plugins measure."""
        return abs(self.change) > max(self.noise, 1.0)

    def record(self) -> dict[str, Any]:
        """Return the times as a dict for JSON."""
        return {"a": self.a, "b": self.b, "noise": self.noise}


def _spread(times: Sequence[float]) -> float:
    """Return the interquartile range of some times."""
    if len(times) < 2:
        return 0.0
    low, _, high = quantiles(times, n=4, method="inclusive")
    return high - low


@dataclass(frozen=True, slots=True)
class RunChange:
    """A difference of a part. ``layer`` is the name of the layer whose ``state`` differs, otherwise empty."""

    kind: Kind
    layer: str
    a: str
    b: str

    def record(self) -> dict[str, Any]:
        """Return the change as a dict for JSON."""
        return {"kind": self.kind, "layer": self.layer, "a": self.a, "b": self.b}


@dataclass(frozen=True, slots=True)
class Paired:
    """A layer on both sides. One of them is None if only one file has the layer."""

    a: LayerRun | None
    b: LayerRun | None

    @property
    def both(self) -> tuple[LayerRun | None, LayerRun | None]:
        """Both sides."""
        return self.a, self.b

    @property
    def any(self) -> LayerRun:
        """The layer in ``a``, or in ``b`` if only that file has it."""
        layer = self.a or self.b
        assert layer is not None
        return layer

    @property
    def states(self) -> tuple[str, str]:
        """What has become of the layer on each side; ``absent`` if the file does not have it."""
        first, second = (layer.state if layer else "absent" for layer in self.both)
        return first, second

    def record(self) -> dict[str, Any]:
        """Return the layer as a dict for JSON, with its line in each file."""
        lines = {"a": self.a and self.a.line, "b": self.b and self.b.line}
        return {"name": self.any.name, "type": self.any.layer.type, **lines}


@dataclass(frozen=True, slots=True)
class Part:
    """The smallest set of layers that both sides compute in nodes of their own, which no other layers share.

    ``a`` and ``b`` are these nodes. A layer that several consumers compute for themselves is a part without nodes.
    """

    layers: tuple[Paired, ...]
    a: tuple[RunNode, ...]
    b: tuple[RunNode, ...]
    changes: tuple[RunChange, ...]
    timing: Timing

    @property
    def fused(self) -> int:
        """How many nodes fewer ``b`` needs; negative if it fuses less."""
        return len(self.a) - len(self.b)

    def record(self) -> dict[str, Any]:
        """Return the part as a dict for JSON."""
        layers = [pair.record() for pair in self.layers]
        nodes = {side: [node.name for node in own] for side, own in (("a", self.a), ("b", self.b))}
        changes = [change.record() for change in self.changes]
        return {"layers": layers, "nodes": nodes, "changes": changes, "microseconds": self.timing.record()}


@dataclass(frozen=True, slots=True)
class InsertedChange:
    """Nodes of one type that compute no layer and change types and layouts alike: those of each side."""

    type: str
    changes: str
    before_run: bool
    a: tuple[Inserted, ...]
    b: tuple[Inserted, ...]
    timing: Timing

    def record(self) -> dict[str, Any]:
        """Return the nodes as a dict for JSON."""
        sides = {
            side: [{"from": item.source, "to": item.target} for item in own]
            for side, own in (("a", self.a), ("b", self.b))
        }
        record = {"type": self.type, "changes": self.changes, "before_run": self.before_run}
        return {**record, **sides, "microseconds": self.timing.record()}


@dataclass(frozen=True, slots=True)
class FusionChange:
    """A pattern that only one side fuses. ``a`` or ``b`` is None if that file does not have the pattern."""

    a: Fusion | None
    b: Fusion | None

    def record(self) -> dict[str, Any]:
        """Return the fusions as a dict for JSON."""
        return {"a": self.a and self.a.record(), "b": self.b and self.b.record()}


@dataclass(frozen=True)
class RuntimeDifference:
    """How the runtime graph ``b`` differs from ``a``.

    ``parts`` are all parts of the file in the order of a run, also those without a change. ``inserted`` and ``fusions``
    are only those that differ. ``properties`` are those in effect with other values: (a, b), None for a missing one.
    """

    a: Runtime
    b: Runtime
    parts: tuple[Part, ...]
    inserted: tuple[InsertedChange, ...]
    fusions: tuple[FusionChange, ...]
    properties: Mapping[str, tuple[str | None, str | None]]
    timing: Timing

    @cached_property
    def changed(self) -> tuple[Part, ...]:
        """The parts that differ in more than their time."""
        return tuple(part for part in self.parts if part.changes)

    @property
    def same(self) -> bool:
        """Whether both graphs are the same, but for their times and properties."""
        return not (self.changed or self.inserted or self.fusions)

    @cached_property
    def summary(self) -> Mapping[str, int]:
        """The number of parts, of those that changed, and of those with each kind of change."""
        kinds = Counter(kind for part in self.changed for kind in {change.kind for change in part.changes})
        clear = [part.timing for part in self.parts if part.timing.is_clear]
        return {
            "parts": len(self.parts),
            "changed": len(self.changed),
            "fewer_nodes": sum(part.fused > 0 for part in self.changed),
            "more_nodes": sum(part.fused < 0 for part in self.changed),
            **{kind: kinds[kind] for kind in ("state", "nodes", "precision", "primitive", "layout")},
            "faster": sum(timing.change < 0 for timing in clear),
            "slower": sum(timing.change > 0 for timing in clear),
        }

    def record(self) -> dict[str, Any]:
        """Return the difference as a dict for JSON."""
        return {
            "a": self.a.side,
            "b": self.b.side,
            "same": self.same,
            "engines": [self.a.engine, self.b.engine],
            "models": [self.a.path, self.b.path],
            "properties": {name: {"a": a, "b": b} for name, (a, b) in self.properties.items()},
            "runs": [self.a.graph.runs, self.b.graph.runs],
            "microseconds": self.timing.record(),
            "summary": dict(self.summary),
            "parts": [part.record() for part in self.parts],
            "inserted": [item.record() for item in self.inserted],
            "fusions": [fusion.record() for fusion in self.fusions],
        }


def difference(a: Runtime, b: Runtime) -> RuntimeDifference:
    """Return how the runtime graph ``b`` differs from ``a``.

    Both may be graphs of one file, in two versions or with two settings of an engine, or graphs of two files, whose
    layers are paired as ``irrun.debug.match`` does.
    """
    is_one_file = a.model is b.model or (a.model.source.path != "" and a.path == b.path)
    ids = {id: id for id in a.model.layers} if is_one_file else match(a.model, b.model).to_b
    theirs = {layer.layer.id: layer for layer in b.layers}
    layers = [Paired(layer, theirs.pop(ids.get(layer.layer.id, -1), None)) for layer in a.layers]
    layers += [Paired(None, layer) for layer in theirs.values()]
    labels = {pair.b.name: pair.any.name for pair in layers if pair.b is not None}
    properties = {
        name: (a.graph.properties.get(name), b.graph.properties.get(name))
        for name in dict.fromkeys((*a.graph.properties, *b.graph.properties))
        if a.graph.properties.get(name) != b.graph.properties.get(name)
    }
    return RuntimeDifference(
        a, b, tuple(_parts(layers)), tuple(_inserted(a, b)), tuple(_fusions(a, b, labels)), properties,
        Timing.of(a.executed, b.executed),
    )  # fmt: skip


def _parts(layers: Sequence[Paired]) -> Iterator[Part]:
    """Yield the parts, in the order of the layers."""
    computed = [pair for pair in layers if any(layer is not None and layer.computes for layer in pair.both)]
    links = nx.Graph()
    links.add_nodes_from(range(len(computed)))
    computes: dict[tuple[str, str], list[str]] = {}
    for number, pair in enumerate(computed):
        for side, layer in zip("ab", pair.both):
            for node in _own(layer):
                links.add_edge(number, (side, node.name))
                computes.setdefault((side, node.name), []).append(pair.any.name)
    components = (sorted(key for key in found if isinstance(key, int)) for found in nx.connected_components(links))
    for numbers in sorted(components):
        yield _part([computed[number] for number in numbers], computes)


def _own(layer: LayerRun | None) -> tuple[RunNode, ...]:
    """Return the nodes of a layer; none if each of several consumers computes the layer for itself."""
    return layer.nodes if layer is not None and (layer.state == "named" or len(layer.nodes) == 1) else ()


def _part(layers: Sequence[Paired], computes: Mapping[tuple[str, str], Sequence[str]]) -> Part:
    a, b = _nodes(pair.a for pair in layers), _nodes(pair.b for pair in layers)
    changes = [
        RunChange("state", pair.any.name, *pair.states)
        for pair in layers
        if pair.states[0] != pair.states[1] and not {"named", "inside"}.issuperset(pair.states)
    ]
    one, two = (
        " + ".join(_node(node, computes[side, node.name]) for node in own) or "none"
        for side, own in (("a", a), ("b", b))
    )
    if one != two:
        changes.append(RunChange("nodes", "", one, two))
    for kind, of in _OF_NODES.items():
        one, two = ("/".join(dict.fromkeys(text for node in own for text in of(node))) for own in (a, b))
        if one != two and one and two:
            changes.append(RunChange(kind, "", one, two))
    return Part(tuple(layers), a, b, tuple(changes), Timing.of(a, b))


def _nodes(layers: Iterable[LayerRun | None]) -> tuple[RunNode, ...]:
    found = {node.name: node for layer in layers for node in _own(layer)}
    return tuple(sorted(found.values(), key=lambda node: node.order))


def _node(node: RunNode, layers: Sequence[str]) -> str:
    """Return a text that two nodes share if they have the same type and compute the same layers."""
    return f"{node.type}({', '.join(layers)})"


_OF_NODES: Final[Mapping[Kind, Callable[[RunNode], Iterable[str]]]] = {
    "precision": lambda node: (node.computes_in,),
    "primitive": lambda node: () if node.primitive.startswith("unknown") else (node.primitive,),
    "layout": lambda node: (output.layout for output in node.outputs),
}
"""What is compared of the nodes of a part."""


def _inserted(a: Runtime, b: Runtime) -> Iterator[InsertedChange]:
    """Yield the kinds of inserted nodes of which one side has more. Nodes that belong to a layer are no such nodes."""
    rows: dict[tuple[str, str, bool], tuple[list[Inserted], list[Inserted]]] = {}
    for side, result in enumerate((a, b)):
        owned = {node.name for layer in result.layers for node in layer.nodes}
        for item in result.inserted:
            if item.node.name not in owned:
                key = (item.node.type, item.changes, item.before_run)
                rows.setdefault(key, ([], []))[side].append(item)
    for (type, changes, before_run), (one, two) in rows.items():
        if len(one) != len(two):
            timing = Timing.of([item.node for item in one], [item.node for item in two])
            yield InsertedChange(type, changes, before_run, tuple(one), tuple(two), timing)


def _fusions(a: Runtime, b: Runtime, labels: Mapping[str, str]) -> Iterator[FusionChange]:
    theirs = {(fusion.pattern, labels.get(fusion.layer, fusion.layer)): fusion for fusion in b.fusions}
    pairs = [(fusion, theirs.pop((fusion.pattern, fusion.layer), None)) for fusion in a.fusions]
    for one, two in (*pairs, *((None, fusion) for fusion in theirs.values())):
        if (one is not None and one.fused) != (two is not None and two.fused):
            yield FusionChange(one, two)

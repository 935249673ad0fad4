"""Find the node of a runtime graph that computes each layer of a file.

An engine names some layers of a node: those that the plugin has fused, and the last of those that a transformation has
replaced by one operation. A layer that it does not name is computed, if at all, in the node of its consumers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from irrun.engines import RunNode, RuntimeGraph
from irrun.inference.compressed import compressed_weights
from irrun.inference.trace import Trace
from irrun.model import Layer, Model, is_constant

__all__ = ["Inserted", "LayerRun", "State", "changes", "inserted", "placed", "running"]

State = Literal["named", "inside", "removed", "folded", "decompression"]
"""What has become of a layer.

``named``: a node computes it, and the engine names it. ``inside``: it is computed in the nodes of its consumers.
``removed``: it changes nothing, and no node names it. ``folded``: it is constant, and computed before the run.
``decompression``: it computes a weight of its codes, before the run or in the node that reads the weight.
"""

_UNCHANGING: Final = ("Reshape", "Convert", "Broadcast", "Tile", "Slice", "StridedSlice", "Pad", "Transpose", "Concat")
"""Types of layers that change nothing if their output has the type and shape of their first input."""


@dataclass(frozen=True, slots=True)
class LayerRun:
    """A layer of the file, and the nodes that compute it.

    ``nodes`` are several if a node that the engine has invented computes a part, or if each consumer computes the layer
    for itself. They are none for a layer that no run computes.
    """

    name: str
    layer: Layer
    line: int
    state: State
    nodes: tuple[RunNode, ...]

    @property
    def precisions(self) -> tuple[str, ...]:
        """The element types in which the nodes compute, in the order of a run."""
        return tuple(dict.fromkeys(node.computes_in for node in self.nodes))

    @property
    def computes(self) -> bool:
        """Whether a run computes something of the layer: it is no input, no output, and not known before the run."""
        return bool(self.nodes) and not self.is_port

    @property
    def is_port(self) -> bool:
        """Whether the layer is an input or an output of the model."""
        return self.layer.type.lower() in ("parameter", "result")

    def record(self) -> dict[str, Any]:
        """Return the layer as a dict for JSON."""
        return {
            "name": self.name, "type": self.layer.type, "line": self.line, "state": self.state,
            "nodes": [node.name for node in self.nodes], "precisions": list(self.precisions),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inserted:
    """A node that computes no layer of the file, such as a Reorder, between ``source`` and ``target``.

    These are the names of nodes. ``changes`` says what becomes of types and layouts: ``f32 abcd → bf16 acdb``.
    ``before_run`` says whether only the compilation runs the node, because it reads constants alone.
    """

    node: RunNode
    source: str
    target: str
    changes: str
    before_run: bool

    def record(self) -> dict[str, Any]:
        """Return the node as a dict for JSON."""
        return {
            "node": self.node.name, "type": self.node.type, "from": self.source, "to": self.target,
            "changes": self.changes, "before_run": self.before_run, "microseconds": self.node.time,
        }  # fmt: skip


def placed(trace: Trace, graph: RuntimeGraph) -> tuple[LayerRun, ...]:
    """Return what has become of each layer but constants, in the order of the file. Bodies are parts of their loops."""
    return tuple(_Placing(trace, graph).layers())


class _Placing:
    def __init__(self, trace: Trace, graph: RuntimeGraph) -> None:
        self.trace, self.model, self.graph = trace, trace.model, graph
        self.makers = {node.name: node for node in graph.nodes}
        self.folded = _folded(trace)
        self.decompression = {id for weights in compressed_weights(self.model) for id in weights.layers}
        self.by_name = {layer.name: id for id, layer in self.model.layers.items()}
        self.named: dict[int, list[RunNode]] = {}
        self.invented: set[str] = set()
        """The names of the nodes, but Reorders, of which no layer is in the file."""
        before_run = _before_run(graph)
        for node in graph.nodes:
            known = [self.by_name[name] for name in file_layers(node, self.by_name)]
            if node.name in before_run:
                self.folded.update(known)
                continue
            for id in known:
                self.named.setdefault(id, []).append(node)
            if not known and node.type not in ("Reorder", "Output"):
                self.invented.add(node.name)

    def layers(self) -> Iterator[LayerRun]:
        owners = self._owners()
        names, source = self.model.unique_names, self.model.source
        fates = {id: self._fate(id, owners) for id, layer in self.model.layers.items() if not is_constant(layer)}
        claimed = {node.name for state, nodes in fates.values() if state == "inside" for node in nodes}
        for id, (state, nodes) in fates.items():
            layer = self.model.layers[id]
            if state == "named":  # the engine has taken the layer apart, and the last part has its name
                before = [n for node in nodes if node.name == layer.name for n in self._invented_before(node)]
                own = {node.name: node for node in (*before, *nodes) if node in nodes or node.name not in claimed}
                nodes = tuple(sorted(own.values(), key=lambda node: node.order))
            yield LayerRun(names[id], layer, source.line_of(layer.node), state, nodes)

    def _fate(self, id: int, owners: Mapping[int, tuple[RunNode, ...]]) -> tuple[State, tuple[RunNode, ...]]:
        if id in self.named:
            return "named", tuple(self.named[id])
        if id in self.decompression:
            return "decompression", owners[id]
        if id in self.folded:
            return "folded", ()
        return ("removed", ()) if self._is_unchanging(id) else ("inside", owners[id])

    def _owners(self) -> dict[int, tuple[RunNode, ...]]:
        """Return the nodes that compute each layer, as its consumers tell, by layer id."""
        found: dict[int, tuple[RunNode, ...]] = {}
        for id in reversed(self.model.order):
            if id in self.named:
                found[id] = tuple(self.named[id])
                continue
            nodes = {
                node.name: node
                for consumer in self.model.consumers.get(id, ())
                for owner in found.get(consumer, ())
                for node in (*self._invented_before(owner), owner)
                if owner.type != "Output"
            }
            found[id] = tuple(sorted(nodes.values(), key=lambda node: node.order)) or self._before(id)
        return found

    def _invented_before(self, node: RunNode) -> Iterator[RunNode]:
        """Yield the invented nodes on which a node depends, as far as no other node is between."""
        waiting, seen = [name for name, _ in node.inputs], set[str]()
        while waiting:
            name = waiting.pop()
            maker = self.makers.get(name)
            if maker is None or name in seen or not (name in self.invented or maker.type == "Reorder"):
                continue
            seen.add(name)
            waiting += [source for source, _ in maker.inputs]
            if name in self.invented:
                yield maker

    def _before(self, id: int) -> tuple[RunNode, ...]:
        """Return the nodes of the layer's first producer that has some: only outputs of the model read the layer."""
        seen: set[int] = set()
        while id not in seen:
            seen.add(id)
            feed = next((feed for feed in self.model.feeds[id] if feed is not None), None)
            if feed is None:
                break
            id = feed[0]
            if id in self.named:
                return tuple(self.named[id])
        return ()

    def _is_unchanging(self, id: int) -> bool:
        layer, feeds = self.model.layers[id], self.model.feeds[id]
        if layer.type not in _UNCHANGING or not feeds or feeds[0] is None:
            return False
        before, after = self.trace.values.get(feeds[0]), self.trace.values.get((id, 0))
        if before is None or after is None or before.type != after.type or before.shape.static is None:
            return False
        if before.shape.static != after.shape.static:
            return False
        return layer.type != "Transpose" or sum(dim > 1 for dim in before.shape.static) <= 1


def file_layers(node: RunNode, known: Mapping[str, Any]) -> list[str]:
    """Return the names of a node that are layers of the file. A name with commas comes in several parts.

    A node that lists no layers, such as the MemoryOutput of an Assign, has the name of its layer.
    """
    found: list[str] = []
    parts, begin = node.layers or (node.name,), 0
    while begin < len(parts):
        for end in range(len(parts), begin, -1):
            name = ",".join(parts[begin:end])
            if name in known:
                found.append(name)
                begin = end
                break
        else:
            begin += 1
    return found


def _folded(trace: Trace) -> set[int]:
    """Return the ids of the layers whose outputs are known before a run, since they follow from constants or shapes."""
    found: set[int] = set()
    for id in trace.model.order:
        layer, op, feeds = trace.model.layers[id], trace.ops.get(id), trace.model.feeds[id]
        values = [trace.values.get((id, position)) for position in range(len(layer.outputs))]
        follows = bool(feeds) and op is not None and op.pure and all(feed and feed[0] in found for feed in feeds)
        is_known = bool(values) and all(value is not None and value.exact is not None for value in values)
        if is_constant(layer) or follows or (is_known and op is not None and op.pure):
            found.add(id)
    return found


def _before_run(graph: RuntimeGraph) -> set[str]:
    """Return the names of the constants of a graph, and of the nodes that read constants alone."""
    found: set[str] = set()
    for node in graph.nodes:
        if node.type == "Const" or (node.inputs and all(name in found for name, _ in node.inputs)):
            found.add(node.name)
    return found


def running(graph: RuntimeGraph) -> tuple[RunNode, ...]:
    """Return the nodes that a run executes: all but the inputs, the outputs and those that only read constants."""
    before_run = _before_run(graph)
    return tuple(node for node in graph.nodes if node.name not in before_run and node.type not in ("Input", "Output"))


def inserted(model: Model, graph: RuntimeGraph) -> tuple[Inserted, ...]:
    """Return the nodes that compute no layer of the file, in the order of a run, without constants and outputs."""
    names, before_run = {layer.name for layer in model.layers.values()}, _before_run(graph)
    makers = {node.name: node for node in graph.nodes}
    readers: dict[str, str] = {}
    for node in graph.nodes:
        for name, _ in node.inputs:
            readers.setdefault(name, node.name)
    return tuple(
        Inserted(
            node,
            node.inputs[0][0] if node.inputs else "",
            readers.get(node.name, ""),
            changes(node, makers),
            node.name in before_run,
        )
        for node in graph.nodes
        if node.type not in ("Const", "Output") and not file_layers(node, dict.fromkeys(names))
    )


def changes(node: RunNode, makers: Mapping[str, RunNode]) -> str:
    """Return how a node changes type and layout of its first input: ``f32 abcd → bf16 acdb``."""
    after = _forms(node.outputs[:1])
    if not node.inputs:
        return after
    name, position = node.inputs[0]
    maker = makers.get(name)
    before = "" if maker is None else _forms(maker.outputs[position : position + 1])
    return f"{before} → {after}" if before else after


def _forms(outputs: Sequence[Any]) -> str:
    return " ".join(f"{output.type} {output.layout}" for output in outputs)

"""Grow a graph layer by layer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

import numpy as np

from irrun.api import compile
from irrun.diagnostics import IrrunError
from irrun.fuzz.graphs import UNARY, Graph, Node, Ref, Stored
from irrun.fuzz.solving import STRUCTURE, Draft, Port, Solver, contents, versions
from irrun.opdef import Op
from irrun.types import ELEMENT_TYPES

__all__ = ["CALLS", "Grower"]

CALLS: Final = "AABBCA"
"""The shapes of each call of a dynamic model, a letter for each set: they repeat, until a plan of their own is made."""
_LAYERS: Final = 6
"""The most layers of a graph that are drawn."""
_FLOATS: Final = ("f32", "f16", "bf16", "f64")
_HOST_STEPS: Final = 60
"""The most drafts of a layer that shall read a tensor of the graph. If none is accepted, it gets its own inputs."""

_ASCENDING: Final = {"Bucketize": 1, "SearchSorted": 0}
"""The input of an operation that must be in ascending order."""


class Grower:
    """Grows one graph after the other; each depends on the seed, on its number, and on those that were grown before.

    ``reached`` counts the versions of operations in the graphs. ``unranked`` allows parameters of unknown rank.
    """

    def __init__(self, seed: int, *, unranked: bool = True) -> None:
        self.seed, self.unranked = seed, unranked
        self.solver = Solver(random.Random(seed), runs)
        self.reached: Counter[str] = Counter()
        self.names = [name for name, cls in sorted(versions().items()) if cls.type not in STRUCTURE]

    def grow(self, number: int, *, layers: int | None = None) -> Graph:
        """Return the graph of a number."""
        rng = random.Random(f"{self.seed}/{number}")
        self.solver.rng = rng
        graph = Graph(rng.getrandbits(32), special=rng.random() < 0.05)
        hosts: list[Ref] = []
        used: set[Ref] = set()
        tensors: dict[Ref, Any] = {}
        for _ in range(layers or rng.randrange(1, _LAYERS + 1)):
            before = len(graph.nodes)
            host = rng.choice(hosts) if hosts and rng.random() < 0.8 else None
            if host is not None and rng.random() < 0.12:
                self._structure(graph, tensors, host, rng)
            else:
                self._layer(graph, tensors, host, rng)
            if len(graph.nodes) == before:
                continue
            node = graph.nodes[-1]
            used |= set(node.inputs)
            pure = node.cls is None or node.cls.pure
            for port in range(node.outputs):
                ref = Ref(len(graph.nodes) - 1, port)
                shape = tensors[ref].value.shape.static
                if shape is not None and pure and np.prod(shape, dtype=np.int64) <= 1 << 12:
                    hosts.append(ref)
        ends = [
            Ref(n, port) for n, node in enumerate(graph.nodes) if node.kind not in ("parameter", "constant")
            for port in range(node.outputs) if Ref(n, port) not in used or rng.random() < 0.1
        ]  # fmt: skip
        graph.results = ends
        _choose_calls(graph, rng, unranked=self.unranked)
        self.reached.update(graph.versions())
        return graph

    def _layer(self, graph: Graph, tensors: dict[Ref, Any], host: Ref | None, rng: random.Random) -> None:
        name = rng.choice(self.names) if rng.random() < 0.5 else min(
            rng.sample(self.names, 12), key=lambda name: self.reached[name])  # fmt: skip
        cls = versions()[name]
        draft = None
        if host is not None and cls.inputs:
            value = tensors[host].value
            port = Port(value.type.name, value.shape.static or (), fixed=True)
            draft = self.solver.solve(cls, port, _HOST_STEPS)
        if draft is None:
            host = None
            draft = self.solver.solve(cls)
        if draft is not None:
            before = len(graph.nodes)
            _put(graph, draft, host, rng)
            _drop_unless_built(
                graph, tensors, before
            )  # contents that were known to the draft may be those of a Parameter

    def _structure(self, graph: Graph, tensors: dict[Ref, Any], host: Ref, rng: random.Random) -> None:
        """Put a body or a variable behind a tensor, if that is possible."""
        value = tensors[host].value
        if value.type.name not in _FLOATS or not value.shape.static or len(value.shape) == 0:
            return
        kind = rng.choice(("If", "Loop", "TensorIterator", "state"))
        before = len(graph.nodes)
        inputs = [host]
        plan: Sequence[str] = [rng.choice(UNARY) for _ in range(rng.randrange(1, 4))]
        if kind == "If":
            flag = Node("constant" if rng.random() < 0.5 else "parameter", type="boolean", shape=(),
                        data=np.array(rng.random() < 0.5))  # fmt: skip
            graph.nodes.append(flag)
            inputs = [Ref(before), host]
            plan = [*plan, rng.choice(UNARY)]
        elif kind == "state":
            plan = [rng.choice(("3", "6"))]
        outputs = 2 if kind in ("Loop", "TensorIterator") else 1
        graph.nodes.append(Node(kind, inputs=inputs, outputs=outputs, type=value.type.name, plan=plan))
        _drop_unless_built(graph, tensors, before)


def _drop_unless_built(graph: Graph, tensors: dict[Ref, Any], before: int) -> None:
    """Build the nodes from ``before`` on, and remove them if that fails."""
    try:
        graph.extend(tensors, before)
    except (IrrunError, ValueError):
        del graph.nodes[before:]


def runs(draft: Draft) -> bool:
    """Return whether a layer that the shape rule accepts can be built and runs."""
    graph = Graph(1)
    _put(graph, draft, None, random.Random(1))
    try:
        tensors, _, _ = graph.built()
        if any(t.value.shape.count().lo > 1 << 13 for t in tensors.values()):
            return False
        graph.results = [Ref(len(graph.nodes) - 1, port) for port in range(draft.outputs)]
        compile(graph.model(), exact=True, max_memory=1 << 22)(graph.feeds())
    except (IrrunError, ValueError):
        return False
    return True


def _put(graph: Graph, draft: Draft, host: Ref | None, rng: random.Random) -> None:
    """Add a layer and its inputs: parameters, constants, and compressed constants."""
    cls, inputs = draft.cls, []
    for position, port in enumerate(draft.ports):
        if position == 0 and host is not None:
            inputs.append(host)
            continue
        inputs.append(Ref(len(graph.nodes)))
        node = _input(port, position, rng, cls)
        if _ASCENDING.get(cls.type) == position:
            node = replace(node, data=None if node.data is None else np.sort(node.data), ascending=True)
        graph.nodes.append(node)
    graph.nodes.append(Node("layer", cls, dict(draft.attributes), inputs, draft.outputs))


def _input(port: Port, position: int, rng: random.Random, cls: type[Op]) -> Node:
    type = ELEMENT_TYPES[port.type]
    stored_only = type.is_storage or (type.bits < 8 and type.kind not in ("boolean", "string"))
    fixed = port.data is not None and rng.random() < 0.85
    weight = position > 0 and port.data is None and type.kind == "float" and rng.random() < 0.4
    if not (fixed or weight or stored_only):
        return Node("parameter", type=port.type, shape=port.shape, data=port.data)
    data = contents(port, np.random.default_rng(rng.getrandbits(32)), 1.0)
    stored = None
    if weight and port.type in ("f32", "f16") and len(port.shape) >= 1 and rng.random() < 0.4:
        stored = Stored(rng.choice(("u8", "i8", "u4", "i4")), rng.randrange(len(port.shape)), rng.random() < 0.6)
    return Node("constant", type=port.type, shape=port.shape, data=data, stored=stored)


def _choose_calls(graph: Graph, rng: random.Random, *, unranked: bool) -> None:
    """Choose the shapes of several calls: other numbers for dims that are equal, if all layers accept them."""
    base = {n: graph.nodes[n].shape for n in graph.parameters}
    graph.calls = [base, base]
    if rng.random() < 0.4 or graph.is_stateful():
        return
    free = [n for n in graph.parameters if graph.nodes[n].data is None]
    dims = sorted({dim for n in free for dim in graph.nodes[n].shape})
    sets = [base]
    opened: set[int] = set()
    for dim in rng.sample(dims, min(len(dims), 2)):
        for other in rng.sample((0, 1, 2, 3, 5, 6), 3):
            shapes = {
                n: tuple(other if d == dim else d for d in shape) if n in free else shape for n, shape in base.items()
            }
            if other != dim and len(sets) < 3 and graph.accepts(shapes):
                sets.append(shapes)
                opened.add(dim)
    graph.open = {
        n: frozenset(i for i, d in enumerate(base[n]) if d in opened or rng.random() < 0.15) for n in free
    }  # fmt: skip
    graph.unranked = frozenset(n for n in free if unranked and rng.random() < 0.05)
    graph.calls = [deepcopy(sets[min("ABC".index(letter), len(sets) - 1)]) for letter in CALLS]
    try:
        graph.model(dynamic=True)
    except (IrrunError, ValueError):  # the values of an unknown dim may be needed
        graph.open, graph.unranked = {}, frozenset()
        graph.calls = [base, base]

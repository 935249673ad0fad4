"""Make a graph with a disagreement small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.api import compile
from irrun.diagnostics import IrrunError
from irrun.growing.graphs import Graph, Node, Ref
from irrun.types import ELEMENT_TYPES

__all__ = ["opened", "reduced", "single_layers", "without"]

_MAX_TRIALS: Final = 120
"""The most graphs that are tried to make one small."""


def reduced(graph: Graph, fails: Callable[[Graph], bool]) -> Graph:
    """Return a smaller graph for which ``fails`` still holds: fewer outputs, fewer layers, fewer calls, static."""
    left, changed = _MAX_TRIALS, True
    while changed and left > 0:
        changed = False
        for candidate in _smaller(graph):
            left -= 1
            if left < 0:
                break
            if fails(candidate):
                graph, changed = candidate, True
                break
    return graph


def single_layers(graph: Graph, call: int) -> Iterator[tuple[int, Graph]]:
    """Yield the number of each layer, body or variable, and a static graph of it alone, with the values that its inputs
    have in a call.

    Constants stay constants. Yields nothing if the shapes of the call cannot be declared.
    """
    refs = [
        Ref(number, port)
        for number, node in enumerate(graph.nodes) if node.kind != "constant"
        for port in range(node.outputs)
    ]  # fmt: skip
    shapes = graph.calls[call] if graph.calls else {}
    try:
        tensors, _, _ = graph.built(shapes)
        model = replace(graph, results=refs).model(shapes)
        values = dict(zip(refs, compile(model, exact=True)(graph.feeds(call)).arrays, strict=True))
    except (IrrunError, ValueError, KeyError):
        return
    for number, node in enumerate(graph.nodes):
        if node.is_input:
            continue
        inputs = [
            graph.nodes[ref.node] if graph.nodes[ref.node].kind == "constant"
            else Node("parameter", type=tensors[ref].value.type.name, shape=values[ref].shape, data=values[ref])
            for ref in node.inputs
        ]  # fmt: skip
        layer = replace(node, inputs=[Ref(position) for position in range(len(inputs))])
        results = [Ref(len(inputs), port) for port in range(node.outputs)]
        yield number, Graph(graph.seed, [*inputs, layer], results, [{}] * (3 if node.kind == "state" else 1))


def without(graph: Graph, call: int, values: Mapping[int, Sequence[np.ndarray] | None]) -> Graph | None:
    """Return the static graph of a call in which parameters take the place of some nodes.

    ``values`` are the outputs of each, None for those of the defining kernels. Returns None if nothing is left, or if
    the rest does not accept the values.
    """
    rest: Graph | None = replace(_made_static(graph, graph.calls[call] if graph.calls else {}), calls=[{}])
    for number in sorted(values, reverse=True):  # the nodes before keep their numbers
        rest = rest and _cut(rest, number, values[number])
    return rest and _pruned(rest)


def opened(graph: Graph) -> Graph:
    """Return a graph whose first parameter, and those with floating-point elements, declare all dims open."""
    free = [n for n in graph.parameters if n == 0 or ELEMENT_TYPES[graph.nodes[n].type].kind == "float"]
    return replace(graph, open={n: frozenset(range(len(graph.nodes[n].shape))) for n in free})


def _smaller(graph: Graph) -> Iterator[Graph]:
    for keep in graph.results if len(graph.results) > 1 else ():
        yield _pruned(replace(graph, results=[keep]))
    if graph.is_dynamic():
        for shapes in (graph.calls[0], graph.calls[-1], graph.calls[len(graph.calls) // 2]):
            yield _made_static(graph, shapes)
        if graph.unranked:
            yield replace(graph, unranked=frozenset())
    if len(graph.calls) > 1 and not graph.is_stateful():
        yield replace(graph, calls=graph.calls[:1])
    if graph.special:
        yield replace(graph, special=False)
    if graph.odd:
        yield replace(graph, odd=False)
    for number in reversed(range(len(graph.nodes))):
        node = graph.nodes[number]
        if node.is_input:
            if node.stored is not None:
                yield _with(graph, number, replace(node, stored=None))
            continue
        if not graph.is_dynamic() and any(Ref(number, p) in n.inputs for n in graph.nodes for p in range(node.outputs)):
            cut = _cut(graph, number)
            if cut is not None:
                yield _pruned(cut)
        used = [ref for ref in node.inputs if not graph.nodes[ref.node].is_input]
        if used and any(ref.node == number for ref in graph.results):
            yield _pruned(replace(graph, results=used))


def _made_static(graph: Graph, shapes: Mapping[int, tuple[int, ...]]) -> Graph:
    """Return the graph with the shapes of a call, which it makes twice."""
    nodes = [replace(node, shape=shapes.get(n, node.shape)) for n, node in enumerate(graph.nodes)]
    return replace(graph, nodes=nodes, calls=[dict(shapes)] * 2, open={}, unranked=frozenset())


def _with(graph: Graph, number: int, node: Node) -> Graph:
    return replace(graph, nodes=[*graph.nodes[:number], node, *graph.nodes[number + 1 :]])


def _cut(graph: Graph, number: int, values: Sequence[np.ndarray] | None = None) -> Graph | None:
    """Return a static graph in which parameters take the place of a node: with ``values``, or with its own."""
    node = graph.nodes[number]
    refs = [Ref(number, port) for port in range(node.outputs)]
    try:
        arrays = values
        if arrays is None:
            arrays = compile(replace(graph, results=refs).model(), exact=True)(graph.feeds()).arrays
        tensors, _, _ = graph.built(graph.calls[0] if graph.calls else None)
    except (IrrunError, ValueError, KeyError):
        return None
    made = [
        Node("parameter", type=tensors[ref].value.type.name, shape=array.shape, data=array)
        for ref, array in zip(refs, arrays)
    ]  # fmt: skip
    nodes = [*graph.nodes[:number], *made, *graph.nodes[number + 1 :]]
    shift = len(made) - 1

    def moved(ref: Ref) -> Ref:
        if ref.node == number:
            return Ref(number + ref.port)
        return Ref(ref.node + shift, ref.port) if ref.node > number else ref

    nodes = [replace(item, inputs=[moved(ref) for ref in item.inputs]) for item in nodes]
    results = [moved(ref) for ref in graph.results if ref.node != number]
    if not results:
        return None
    return replace(graph, nodes=nodes, results=results, calls=[{}], open={}, unranked=frozenset())


def _pruned(graph: Graph) -> Graph:
    """Return the graph without the nodes that no output needs."""
    needed: set[int] = set()
    waiting = [ref.node for ref in graph.results]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += [ref.node for ref in graph.nodes[number].inputs]
    order = sorted(needed)
    place = {old: new for new, old in enumerate(order)}

    def moved(ref: Ref) -> Ref:
        return Ref(place[ref.node], ref.port)

    nodes = [replace(graph.nodes[n], inputs=[moved(ref) for ref in graph.nodes[n].inputs]) for n in order]
    return replace(
        graph, nodes=nodes, results=[moved(ref) for ref in graph.results],
        calls=[{place[n]: shape for n, shape in call.items() if n in place} for call in graph.calls],
        open={place[n]: dims for n, dims in graph.open.items() if n in place},
        unranked=frozenset(place[n] for n in graph.unranked if n in place),
    )  # fmt: skip

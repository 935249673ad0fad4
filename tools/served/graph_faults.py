"""Faults in paged graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.debug.paged.sides import ATTENTION, STATES
from irrun.model import Layer
from served.faults import NoPlaceError, Planted, Rng, one, two
from served.graph import Graph

__all__ = ["GRAPHS"]


def _attention(graph: Graph, rng: Rng) -> Layer:
    return one(rng, graph.of(ATTENTION))


def scale(graph: Graph, rng: Rng) -> Planted:
    layer, factor = _attention(graph, rng), float(rng.uniform(1.2, 2))
    value = graph.value(layer, 9)
    if value is None:
        raise NoPlaceError
    graph.feed(layer, 9, (value * factor).astype(np.float32))
    return Planted(f"scale times {factor:.3g}", ("scale is", f"{float(value.ravel()[0]):.6g} gives"), layer.name)


def _windowed(graph: Graph, rng: Rng) -> tuple[Layer, int]:
    found = [
        (layer, int(value.ravel()[0]))
        for layer in graph.of(ATTENTION)
        if (value := graph.value(layer, 10)) is not None and value.any()
    ]
    return one(rng, found)


def window(graph: Graph, rng: Rng) -> Planted:
    layer, size = _windowed(graph, rng)
    other = size + int(rng.choice([-1, 1]))
    graph.feed(layer, 10, np.array(other, np.int32))
    return Planted(f"window {other}", (f"sliding_window is {other}; {size} gives",), layer.name)


def no_window(graph: Graph, rng: Rng) -> Planted:
    layer, size = _windowed(graph, rng)
    graph.feed(layer, 10, np.array(0, np.int32))
    return Planted("no window", (f"sliding_window is 0; {size} gives",), layer.name)


def slopes(graph: Graph, rng: Rng) -> Planted:
    found = [layer for layer in graph.of(ATTENTION) if (value := graph.value(layer, 11)) is not None and value.size]
    layer = one(rng, found)
    value = graph.value(layer, 11)
    assert value is not None
    a, b = two(rng, value.size)
    other = value.ravel().copy()
    other[[a, b]] = other[[b, a]]
    graph.feed(layer, 11, other.astype(np.float32))
    return Planted(f"slopes of heads {a} and {b} exchanged", ("alibi_slopes is",), layer.name)


def sinks(graph: Graph, rng: Rng) -> Planted:
    found = [layer for layer in graph.of(ATTENTION) if (value := graph.value(layer, 20)) is not None and value.size]
    layer = one(rng, found)
    value = graph.value(layer, 20)
    assert value is not None
    a, b = two(rng, value.size)
    other = value.copy().reshape(-1)
    other[[a, b]] = other[[b, a]]
    graph.feed(layer, 20, other.reshape(value.shape).astype(np.float32))
    return Planted(f"sinks of heads {a} and {b} exchanged", ("sinks is",), layer.name)


def _rotation(graph: Graph, rng: Rng, position: int, name: str) -> Planted:
    """Feed an attention with a query or key before its rotation: x * cos + rotated x * sin."""
    layer = _attention(graph, rng)
    reader, at = layer, position
    for _ in range(4):
        source = graph.source(reader, at)
        if source.type == "Add":
            break
        reader, at = source, 0
    else:
        raise NoPlaceError
    first = graph.source(source, 0)
    if first.type != "Multiply":
        raise NoPlaceError
    before = graph.source(first, 0)
    graph.rewire(reader, at, before)
    return Planted(f"{name} not rotated", (f'{name} is the value of "',), layer.name)


def key_rotation(graph: Graph, rng: Rng) -> Planted:
    return _rotation(graph, rng, 1, "key")


def query_rotation(graph: Graph, rng: Rng) -> Planted:
    return _rotation(graph, rng, 0, "query")


def shared_cache(graph: Graph, rng: Rng) -> Planted:
    layers, position = graph.of(ATTENTION), int(rng.choice([3, 4]))
    a, b = two(rng, len(layers))
    if rng.random() < 0.5:
        a, b = b, a
    graph.rewire(layers[b], position, graph.source(layers[a], position))
    kind = {3: "key", 4: "value"}[position]
    text = f"attention {b} has the {kind} cache of attention {a}"
    return Planted(text, (f'({kind}_cache) is "', 'not "'), layers[b].name)


def not_written(graph: Graph, rng: Rng) -> Planted:
    layer = _attention(graph, rng)
    graph.set(layer, "write_kv_cache", "false")
    return Planted("write_kv_cache=false", ("write_kv_cache is false",), layer.name)


def value_from_key(graph: Graph, rng: Rng) -> Planted:
    layer = _attention(graph, rng)
    graph.rewire(layer, 2, graph.source(layer, 1))
    return Planted("value is the key", ("value is the value of",), layer.name)


def _weights(graph: Graph, rng: Rng, words: tuple[str, ...], rank: int = 2) -> tuple[Layer, Layer]:
    """Return a Const whose name in the export has one of the words, and a layer that reads it."""
    found: list[tuple[Layer, Layer]] = []
    for layer in graph.layers:
        for feed in graph.model.feeds[layer.id]:
            source = None if feed is None else graph.model.layers[feed[0]]
            if source is not None and source.type == "Const" and any(word in graph.exported(source) for word in words):
                shape = source.outputs[0].shape
                if shape is not None and shape.rank == rank:
                    found.append((source, layer))
    return one(rng, found)


def head_of_weights(graph: Graph, rng: Rng) -> Planted:
    constant, layer = _weights(graph, rng, ("q_proj.weight", "k_proj.weight", "v_proj.weight"))
    count = int(constant.outputs[0].shape[0].lo) // 2
    begin = int(rng.choice([0, count]))

    def change(array: np.ndarray) -> np.ndarray:
        array[begin : begin + count] *= 1.5
        return array

    graph.change(constant, change)
    return Planted(
        f"rows {begin} to {begin + count - 1} of {constant.name} times 1.5",
        (constant.name, "is 1.5 times", f"{begin} to {begin + count - 1} of axis 0"),
        layer.name,
    )


def experts(graph: Graph, rng: Rng) -> Planted:
    constant, layer = _weights(graph, rng, ("experts", "gate_up_proj", "down_proj"), 3)
    a, b = two(rng, int(constant.outputs[0].shape[0].lo))
    graph.change(constant, lambda array: array[[{a: b, b: a}.get(i, i) for i in range(len(array))]])
    return Planted(
        f"experts {a} and {b} of {constant.name} exchanged",
        (constant.name, f"has at {a}, {b} of axis 0 what belongs at {b}, {a}"),
        layer.name,
    )


def router(graph: Graph, rng: Rng) -> Planted:
    constant, layer = _weights(graph, rng, ("mlp.gate.weight", "router.weight", "router.layer", "gate.wg"))
    a, b = two(rng, int(constant.outputs[0].shape[0].lo))
    graph.change(constant, lambda array: array[[{a: b, b: a}.get(i, i) for i in range(len(array))]])
    return Planted(
        f"rows {a} and {b} of {constant.name} exchanged", (constant.name, f"has at {a}, {b} of axis 0"), layer.name
    )


def element(graph: Graph, rng: Rng) -> Planted:
    constant, layer = _weights(graph, rng, ("o_proj.weight", "down_proj.weight", "dense.weight", "lm_head.weight"))
    place = tuple(int(rng.integers(dim.lo)) for dim in constant.outputs[0].shape)

    def change(array: np.ndarray) -> np.ndarray:
        array[place] += 4
        return array

    graph.change(constant, change)
    return Planted(
        f"element {list(place)} of {constant.name} plus 4", (constant.name, f"at {list(place)}, not"), layer.name
    )


def embeddings(graph: Graph, rng: Rng) -> Planted:
    constant, _ = _weights(graph, rng, ("embed_tokens.weight", "wte.weight", "word_embeddings.weight"))
    a, b = two(rng, int(constant.outputs[0].shape[0].lo))
    graph.change(constant, lambda array: array[[{a: b, b: a}.get(i, i) for i in range(len(array))]])
    words = (constant.name, f"has at {a}, {b} of axis 0")
    return Planted(f"embeddings of tokens {a} and {b} exchanged", words)  # the head may have the same constant


def kernel(graph: Graph, rng: Rng) -> Planted:
    layer = one(rng, graph.of("PagedCausalConv1D"))
    constant = graph.source(layer, 2)
    while constant.type != "Const":
        constant = graph.source(constant, 0)
    graph.change(constant, lambda array: array[..., ::-1])
    return Planted("kernel reversed", ("axis", "what belongs at"), layer.name)


def decay(graph: Graph, rng: Rng) -> Planted:
    layer = one(rng, graph.of("PagedSelectiveSSM"))
    value = graph.value(layer, 0)
    if value is None:
        raise NoPlaceError
    head = int(rng.integers(value.size))
    other = value.copy()
    other[head] *= 3
    graph.feed(layer, 0, other.astype(np.float32))
    return Planted(f"A of head {head} times 3", (f"at [{head}], not",), layer.name)


def shared_table(graph: Graph, rng: Rng) -> Planted:
    kind = one(rng, [kind for kind in STATES if len(graph.of(kind)) > 1])
    layers = graph.of(kind)
    a, b = two(rng, len(layers))
    graph.rewire(layers[b], STATES[kind], graph.source(layers[a], STATES[kind]))
    return Planted(f"{kind} {b} has the table of {a}", (f"in {kind} {b}", "the state in block"))


def residual(graph: Graph, rng: Rng) -> Planted:
    """Feed an Add of a residual from another layer of the same shape."""
    adds = [layer for layer in graph.of("Add") if all(graph.value(layer, i) is None for i in (0, 1))]
    layer = one(rng, adds[2:])
    other = adds[adds.index(layer) - 2]
    position = int(rng.integers(2))
    if graph.source(layer, position) is other or str(other.outputs[0].shape) != str(layer.outputs[0].shape):
        raise NoPlaceError
    graph.rewire(layer, position, other)
    return Planted(f"input {position} is {other.name}", (f'input {position} is "{other.name}"',), layer.name)


def epsilon(graph: Graph, rng: Rng) -> Planted:
    found: list[tuple[Layer, Layer]] = []
    for layer in graph.of("Add"):
        source = graph.source(layer, 1)
        value = graph.value(layer, 1)
        if source.type == "Const" and value is not None and value.size == 1 and 0 < abs(float(value.ravel()[0])) < 1e-3:
            found.append((source, layer))
    constant, layer = one(rng, found)
    graph.feed(layer, 1, np.full(tuple(dim.lo for dim in constant.outputs[0].shape), 0.3, np.float32))
    return Planted("epsilon 0.3", ("0.3",), layer.name)


GRAPHS: Final[tuple[Callable[[Graph, Rng], Planted], ...]] = (
    scale, window, no_window, slopes, sinks, key_rotation, query_rotation, shared_cache, not_written, value_from_key,
    head_of_weights, experts, router, element, embeddings, kernel, decay, shared_table, residual, epsilon,
)  # fmt: skip

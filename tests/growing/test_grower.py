"""The grower: graphs of all kinds, the same for the same seed, whose chains are valid by construction."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import irrun
from irrun.api import check
from irrun.growing import (
    LAYERS,
    Chain,
    Graph,
    Grower,
    Node,
    Port,
    Ref,
    Solver,
    Stored,
    add_inputs,
    add_layers,
    starts,
    versions,
)
from irrun.growing.choices import Dice
from irrun.growing.grower import put_draft
from irrun.growing.starts import STARTS
from irrun.opdef import stored as packed


def test_the_same_seed_grows_the_same_graphs() -> None:
    texts = []
    for seed in (4, 4, 5):
        grower = Grower(seed)
        texts.append([grower.grow(number).signature() for number in range(6)])
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(("name", "position"), [("Bucketize-3", 1), ("SearchSorted-15", 0)])
def test_sequences_that_must_be_sorted_are(name: str, position: int) -> None:
    cls = versions()[name]
    draft = Solver(random.Random(3)).solve(cls)
    assert draft is not None
    draft.ports[position] = Port("f32", (5,) if name == "Bucketize-3" else (*draft.ports[position].shape[:-1], 5))
    for seed in range(8):  # a parameter, and a constant
        graph = Graph(seed)
        put_draft(graph, draft, None, random.Random(seed))
        node = graph.nodes[position]
        sequence = graph.feeds()[graph.parameters.index(position)] if node.kind == "parameter" else node.data
        assert sequence is not None
        assert (np.diff(sequence) >= 0).all()


def test_axes_that_count_from_the_end_and_operands_that_both_stretch() -> None:
    grower, negative, stretched = Grower(2), set[str](), 0
    for number in range(250):
        graph = grower.grow_chain(number)
        tensors, _, _ = graph.built()
        for position, node in enumerate(graph.nodes):
            type = "" if node.cls is None else node.cls.type
            data = [graph.nodes[ref.node].data for ref in node.inputs]
            if (type == "CumSum" or type.startswith("Reduce")) and data[1] is not None and (data[1] < 0).any():
                negative.add("CumSum" if type == "CumSum" else "Reduce")
            if type in ("Add", "Multiply", "Subtract"):
                sizes = [np.prod(tensors[ref].value.shape.static) for ref in (*node.inputs, Ref(position))]
                stretched += max(sizes[:2]) < sizes[2]
    assert negative == {"CumSum", "Reduce"}
    assert stretched


def test_packed_integers_stay_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are too many to be folded, so that the kernel of the product unpacks them."""
    unpacked: list[object] = []
    unpack = packed.Stored.unpack_rows
    monkeypatch.setattr(packed.Stored, "unpack_rows", lambda own, rows: (unpacked.append(own), unpack(own, rows))[1])
    graph = Grower(5).grow_start(3, starts._packed_integers)
    irrun.compile(graph.model())(graph.feeds())
    assert unpacked


def test_what_graphs_consist_of() -> None:
    """Bodies, state, compressed weights, open dims that are 0 or 1 in a call, and calls that repeat their shapes."""
    grower, found = Grower(1), set[str]()
    for number in range(140):
        graph = grower.grow_declared(number) if number < 20 else grower.grow_chain(number)
        found |= {node.kind for node in graph.nodes}
        found |= {node.stored.type for node in graph.nodes if node.stored}
        found |= {graph.nodes[number].type for number in graph.parameters}
        if graph.is_dynamic():
            assert len(graph.calls) >= 5
            dims = {dim for call in graph.calls[1:] for shape in call.values() for dim in shape}
            found |= {f"dim {dim}" for dim in dims if dim < 2}
        if graph.special:
            found.add("special")
        if graph.unranked:
            found.add("unranked")
        if any(node.bounds for node in graph.nodes):
            found.add("bounds")
    assert found >= {"If", "Loop", "TensorIterator", "state", "u8", "i8", "u4", "i4", "dim 0", "dim 1", "special"}
    assert found >= {"unranked", "bounds", "f16", "bf16", "f64", "i64", "boolean", "string"}


def test_rare_operations_are_preferred() -> None:
    """Sixty graphs of about five layers have more than a hundred different operations."""
    grower = Grower(5)
    assert len({name for number in range(60) for name in grower.grow(number).versions()}) > 100


def test_chains_know_what_inference_finds() -> None:
    """The dims of each tensor come from the rules of numpy, which open ones included."""
    compared = 0
    for number in range(40):
        rng = random.Random(number)
        chain = Chain(Graph(number), Dice(rng), np.random.default_rng(number))
        add_inputs(chain, 2, dynamic=True)
        add_layers(chain, LAYERS, 8)
        built = chain.graph.built(dynamic=True)[0]
        for tensor in chain.outputs:
            value = built[tensor.ref].value
            assert value.type.name == tensor.type
            assert tuple(dim.value for dim in value.shape.dims) == tensor.declared, chain.graph.nodes[tensor.ref.node]
            compared += 1
    assert compared >= 400


@pytest.mark.parametrize("start", STARTS)
def test_a_start_is_valid(start: Callable[[Chain], None]) -> None:
    graph = Grower(2).grow_start(3, start)
    assert graph.valid
    assert not check(graph.model(dynamic=True)).errors
    assert len(graph.calls) >= (5 if graph.is_dynamic() else 2)


@pytest.mark.parametrize("stored", [Stored("u8", 0, offset=True), Stored("i4", 1, offset=False)])
def test_compressed_weights_are_near_their_values(stored: Stored) -> None:
    data = np.array([[-1, 0.5, 0.25], [0.75, 0, 1]], np.float32)
    graph = Graph(1, [Node("constant", type="f32", shape=data.shape, data=data, stored=stored)], [Ref(0)], [{}])
    model = graph.model()
    assert {layer.type for layer in model.layers.values()} >= {"Const", "Convert", "Multiply"}
    np.testing.assert_allclose(irrun.run(model, {}).arrays[0], data, atol=0.1)

"""The layers of two models are paired by name, and by neighbourhood where names were changed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import irrun
from irrun import build as b
from irrun.base.source import Source
from irrun.debug.difference import Matching, match
from irrun.ir.parse import parse
from irrun.model import Layer, Model
from irrun.model.weights import Weights
from nets import Net, Ref
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"


def _renamed(model: Model, name: Callable[[Layer], str]) -> Model:
    """Return a model with other names of layers and no names of tensors."""
    return replace(
        model,
        layers={
            id: replace(
                layer,
                name=name(layer),
                output_names=(),
                outputs=tuple(replace(port, names=()) for port in layer.outputs),
                bodies={tag: _renamed(body, name) for tag, body in layer.bodies.items()},
            )
            for id, layer in model.layers.items()
        },
    )


def _ids(matching: Matching) -> dict[int, int]:
    return {pair.a.id: pair.b.id for pair in matching.pairs}


def test_equal_names() -> None:
    model = irrun.read_model(CONVNET)
    matching = match(model, irrun.read_model(CONVNET))
    assert _ids(matching) == {id: id for id in model.layers}
    assert {pair.by for pair in matching.pairs} == {"name"}
    assert (matching.only_a, matching.only_b) == ((), ())
    assert [pair.a.id for pair in matching.pairs] == list(model.order)
    assert ((5, 0), (5, 0)) in list(matching.values())
    assert [(one.type, other.type) for one, other in matching.results()] == [("Result", "Result")]


def test_other_names() -> None:
    model = irrun.read_model(CONVNET)
    matching = match(model, _renamed(model, lambda layer: f"x{layer.id * 7 % 19}"))
    assert _ids(matching) == {id: id for id in model.layers}
    assert {pair.by for pair in matching.pairs} == {"neighbourhood"}


def test_tensor_names() -> None:
    """A converter may rename layers and keep the names of tensors."""
    one, other = (b.model({"out": b.ReLU(b.parameter([2], name="x"), name=name)}) for name in ("first", "second"))
    other = replace(other, layers={i: replace(l, outputs=one.layers[i].outputs) for i, l in other.layers.items()})
    pairs = {pair.a.name: (pair.b.name, pair.by) for pair in match(one, other).pairs}
    assert pairs["first"] == ("second", "name")


def _block(net: Net, x: Ref, number: int, names: Callable[[str, int], str], *, kind: str = "ReLU") -> Ref:
    data = random.Random(number).randbytes(128)
    weights = net.const("f32", "1,32", data, name=names("weights", number))
    total = net.add("Add", [x, weights], [("FP32", "1,32")], name=names("add", number))
    return net.add(kind, [total], [("FP32", "1,32")], name=names("act", number))


def _model(net: Net) -> Model:
    return parse(Source("net.xml", net.text.encode()), Weights(data=bytes(net.bin))).model


def _blocks(count: int, names: Callable[[str, int], str], extra: int = 0, kinds: dict[int, str] | None = None) -> Model:
    """Return a chain of ``count`` blocks. Every ``extra``-th block is followed by a Sigmoid named ``extra…``."""
    net = Net()
    x = net.parameter("f32", "1,32", name="x")
    for number in range(count):
        x = _block(net, x, number, names, kind=(kinds or {}).get(number, "ReLU"))
        if extra and number % extra == 1:
            x = net.add("Sigmoid", [x], [("FP32", "1,32")], name=f"extra{number}")
    net.result(x, name="y")
    return _model(net)


def _given(word: str, number: int) -> str:
    return f"{word}/{number}"


def test_counted_names_do_not_count() -> None:
    """A converter that counts layers up gives later layers other numbers after a new one."""
    one = _blocks(6, lambda word, number: f"Add_{number}" if word == "add" else f"{word}/{number}")
    other = _blocks(6, lambda word, number: f"Add_{number + 1}" if word == "add" else f"z/{word}/{number}")
    pairs = {pair.a.name: pair.b.name for pair in match(one, other).pairs}
    assert [pairs[f"Add_{n}"] for n in range(6)] == [f"Add_{n + 1}" for n in range(6)]


def test_added_and_retyped_layers_among_other_names() -> None:
    one = _blocks(40, _given)
    other = _blocks(40, lambda word, number: f"q{word}q{number}", extra=7, kinds={12: "Tanh"})
    matching = match(one, other)
    assert [layer.name for layer in matching.only_b] == [f"extra{n}" for n in range(1, 40, 7)]
    assert matching.only_a == ()
    assert all(pair.b.name in (pair.a.name, "q" + pair.a.name.replace("/", "q")) for pair in matching.pairs)


def test_a_block_less() -> None:
    """All blocks look alike; their weights tell which of them is missing."""
    net = Net()
    x = net.parameter("f32", "1,32", name="x")
    for number in (*range(5), *range(6, 12)):
        x = _block(net, x, number, lambda word, number: f"q{word}q{number}")
    net.result(x, name="y")
    matching = match(_blocks(12, _given), _model(net))
    assert {layer.name for layer in matching.only_a} == {"weights/5", "add/5", "act/5"}
    assert matching.only_b == ()


def test_order_and_ids_do_not_matter() -> None:
    one, other = _blocks(30, _given), _blocks(30, lambda word, number: f"q{word}q{number}", extra=5)
    ids = list(other.layers)
    random.Random(0).shuffle(ids)
    shuffled = replace(other, layers={id: other.layers[id] for id in ids})
    assert sorted(_ids(match(one, shuffled)).items()) == sorted(_ids(match(one, other)).items())


def test_bodies() -> None:
    def loop(word: str) -> Model:
        def body(total: b.Output, row: b.Output) -> b.Node:
            return b.Add(b.Exp(row, name=f"{word}exp"), total, name=f"{word}add")

        start = np.zeros((1, 3), np.float32)
        x = b.parameter([4, 3], name="x")
        return b.model({"y": b.TensorIterator(start, b.sliced(x, axis=0), body=body, name=f"{word}loop")})

    (pair,) = [pair for pair in match(loop("a"), loop("b")).pairs if pair.bodies]
    inner = pair.bodies["body"]
    assert {(p.a.name, p.b.name) for p in inner.pairs} >= {("aexp", "bexp"), ("aadd", "badd")}
    assert (inner.only_a, inner.only_b) == ((), ())


def test_the_time_grows_with_the_number_of_layers() -> None:
    """Ten times as many layers take about ten times as long; with each pair of layers, 100 times."""

    def took(count: int) -> float:
        one = _blocks(count, _given)
        other = _blocks(count, lambda word, number: f"q{word}q{number}", extra=10)
        began = time.process_time()
        assert len(match(one, other).pairs) == len(one.layers)
        return time.process_time() - began

    took(20)  # imports
    assert took(1500) < 30 * max(0.05, took(150))

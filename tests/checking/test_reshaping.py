"""Models at other input shapes: irrun and ``openvino.Model.reshape`` agree on which of them a model takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.model import Shapes
from oracle import Oracle, OracleError
from places import SAMPLES

GENERATOR = np.random.default_rng(0)


def _floats(o: Any, *shape: int) -> Any:
    return o.constant(GENERATOR.standard_normal(shape).astype(np.float32))


def _conv(o: Any, x: Any, filters: int, channels: int, *, stride: int = 1) -> Any:
    return o.relu(o.convolution(x, _floats(o, filters, channels, 3, 3), [stride] * 2, [1, 1], [1, 1], [1, 1]))


def _image(o: Any) -> Any:
    return o.parameter([1, 3, 32, 32], np.float32, "data")


def classifier(ov: Any) -> tuple[list[Any], Any]:
    """Its Reshape knows the size of its image."""
    o = ov.opset13
    x = _image(o)
    features = o.max_pool(_conv(o, x, 8, 3), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    flat = o.reshape(features, np.array([-1, 8 * 16 * 16]), False)
    return [x], o.softmax(o.matmul(flat, _floats(o, 10, 2048), False, True), 1)


def pooled_classifier(ov: Any) -> tuple[list[Any], Any]:
    """Pools whatever size is left, and keeps the batch by a 0."""
    o = ov.opset13
    x = _image(o)
    pooled = o.reduce_mean(_conv(o, _conv(o, x, 8, 3, stride=2), 16, 8, stride=2), np.array([2, 3]), False)
    return [x], o.reshape(pooled, np.array([0, 4, 4]), True)


def unet(ov: Any) -> tuple[list[Any], Any]:
    """Joins what was halved and doubled again with what was not."""
    o = ov.opset13
    x = _image(o)
    down = o.max_pool(_conv(o, x, 4, 3), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    up = o.convolution_backprop_data(down, _floats(o, 4, 4, 2, 2), [2, 2], None, [0, 0], [0, 0], [1, 1])
    return [x], o.concat([up, x], 1)


def attention(ov: Any) -> tuple[list[Any], Any]:
    """Splits its heads by a computed shape, and adds as many positions as the sequence is long, up to 16."""
    o = ov.opset13
    ids = o.parameter([1, 8], np.int64, "ids")
    embedded = o.gather(_floats(o, 50, 12), ids, np.int64(0))
    length = o.gather(o.shape_of(ids), np.int64(1), np.int64(0))
    positions = o.gather(_floats(o, 16, 12), o.range(np.int64(0), length, np.int64(1), "i64"), np.int64(0))
    x = o.add(embedded, positions)
    batch = o.gather(o.shape_of(ids), np.array([0]), np.int64(0))
    heads = o.concat([batch, o.constant(np.array([-1, 3, 4]))], 0)
    q = o.transpose(o.reshape(x, heads, False), np.array([0, 2, 1, 3]))
    return [ids], o.matmul(o.softmax(o.matmul(q, q, False, True), -1), q, False, False)


def positions_fixed(ov: Any) -> tuple[list[Any], Any]:
    """Adds positions of a length that stands in the file."""
    o = ov.opset13
    x = o.parameter([1, 8, 4], np.float32, "x")
    return [x], o.add(x, _floats(o, 1, 8, 4))


def two_inputs(ov: Any) -> tuple[list[Any], Any]:
    """Broadcasts one against the other, and multiplies."""
    o = ov.opset13
    a, b = o.parameter([2, 3], np.float32, "a"), o.parameter([2, 3], np.float32, "b")
    return [a, b], o.matmul(o.multiply(a, b), b, False, True)


def split(ov: Any) -> tuple[list[Any], Any]:
    o = ov.opset13
    x = o.parameter([2, 6, 4], np.float32, "x")
    parts = o.split(x, np.int64(1), 3)
    return [x], o.concat([parts.output(2), parts.output(0)], 2)


def recurrent(ov: Any) -> tuple[list[Any], Any]:
    o = ov.opset13
    x = o.parameter([2, 5, 3], np.float32, "x")
    h, c = _floats(o, 2, 1, 4), _floats(o, 2, 1, 4)
    lengths = o.constant(np.array([5, 5]))
    node = o.lstm_sequence(
        x, h, c, lengths, _floats(o, 1, 16, 3), _floats(o, 1, 16, 4), _floats(o, 1, 16), 4, "forward"
    )
    return [x], node.output(0)


def looped(ov: Any) -> tuple[list[Any], Any]:
    """A TensorIterator over the axis 1, whose body multiplies by a matrix and keeps a sum."""
    o = ov.opset13
    x = o.parameter([2, 5, 3], np.float32, "x")
    part, total = o.parameter([2, 1, 3], np.float32), o.parameter([2, 1, 3], np.float32)
    added = o.add(o.matmul(part, _floats(o, 3, 3), False, False), total)
    result = o.result(added)
    node: Any = o.tensor_iterator()
    node.set_body(ov.Model([result], [part, total], "body"))
    node.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 1)
    start = o.broadcast(np.float32(0), o.concat([o.gather(o.shape_of(x), np.array([0]), np.int64(0)), [1, 3]], 0))
    node.set_merged_input(total, start.output(0), result.output(0))
    return [x], node.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 1)


CASES: list[tuple[Callable[[Any], tuple[list[Any], Any]], list[str]]] = [
    (classifier, ["1,3,32,32", "7,3,32,32", "1,3,64,64", "1,3,33,33", "1,3,34,32", "1,4,32,32", "?,3,32,32", "1,3,?,?",
                  "1,3,32", "...", "?,?,?,?", "1..8,3,32,32", "1,3,64..128,64"]),
    (pooled_classifier, ["3,3,32,32", "1,3,224,160", "1,3,1,1", "?,3,?,?", "1,1,32,32", "1,3,32,32,1", "2,3,0,5"]),
    (unet, ["1,3,64,48", "1,3,31,32", "1,3,33,33", "5,3,2,2", "1,3,?,32", "1,3,31..33,32", "1,3,1,1"]),
    (attention, ["1,16", "4,8", "1,17", "1,1", "?,?", "?,1..512", "?,17..512", "8", "1,8,1", "0,8"]),
    (positions_fixed, ["5,8,4", "1,9,4", "1,1,4", "1,8,1", "4", "1,1,8,4", "1,?,4", "1,9..,4", "1,2..7,4"]),
    (two_inputs, ["2,3 2,3", "4,3 4,3", "4,3 1,3", "4,3 2,3", "?,3 2,3", "3..9,3 2,3", "2,1 2,7", "5,2,3 2,3", "... 2,3"]),
    (split, ["2,9,4", "2,7,4", "1,3,1", "2,?,4", "2,6", "2,7..9,4", "2,0,4"]),
    (recurrent, ["2,9,3", "3,5,3", "2,?,3", "?,?,3", "2,5"]),
    (looped, ["2,9,3", "7,5,3", "2,5,4", "2,?,3", "?,?,3", "2,5,3,1"]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "shapes"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_agrees_with_openvino(
    make: Callable[[Any], tuple[list[Any], Any]], shapes: list[str], tmp_path: Path, ov: Any, oracle: Oracle
) -> None:
    parameters, output = make(ov)
    path = tmp_path / "net.xml"
    ov.serialize(ov.Model([output], parameters, "net"), path)
    verdicts = {True: 0, False: 0}
    for text in shapes:
        report = irrun.check(path, shapes=dict(enumerate(text.split(" "))))
        why = _refusal(oracle, path, text.split(" "))
        assert report.ok == (why is None), f"{text}: OpenVINO says {why}, irrun {[str(d) for d in report]}"
        assert all(d.code == "IR403" and d.layer for d in report.errors), text
        verdicts[report.ok] += 1
    assert all(verdicts.values())


@pytest.mark.parametrize(
    ("make", "shape", "said"),
    [(recurrent, "2,5,4", "input_size is 3, not 4"), (split, "2,7..8,4", "not a multiple of 3")],
)
def test_knows_more_than_openvino(
    make: Callable[[Any], tuple[list[Any], Any]], shape: str, said: str, tmp_path: Path, ov: Any, oracle: Oracle
) -> None:
    """No model can run at these shapes, but OpenVINO tells only then."""
    parameters, output = make(ov)
    path = tmp_path / "net.xml"
    ov.serialize(ov.Model([output], parameters, "net"), path)
    assert _refusal(oracle, path, [shape]) is None
    (found,) = irrun.check(path, shapes={0: shape}).errors
    assert said in found.message


def _refusal(oracle: Oracle, path: Path, shapes: list[str]) -> str | None:
    try:
        oracle(path, [np.array(shape) for shape in shapes], "reshape")
    except OracleError as error:
        return str(error)
    return None


def test_names_the_layer_that_breaks(tmp_path: Path, ov: Any) -> None:
    """Once, and not what follows from it; the same by name, position and in dims."""
    parameters, output = unet(ov)
    output.friendly_name, parameters[0].friendly_name = "join", "data"
    path = tmp_path / "net.xml"
    ov.serialize(ov.Model([ov.opset13.relu(output)], parameters, "net"), path)
    for shapes in ({"data": "[1, 3, 31, 32]"}, {0: [1, 3, 31, 32]}, {"data": (1, 3, "30..31", "?")}):
        if "30..31" in str(shapes):
            assert irrun.check(path, shapes=shapes).ok
            continue
        (found,) = irrun.check(path, shapes=shapes)
        assert (found.code, found.layer) == ("IR403", "join")
    assert not irrun.check(path)


def test_what_the_file_declares_is_not_compared() -> None:
    path = SAMPLES / "wrong_dim.xml"
    assert not irrun.check(path).ok
    assert irrun.check(path, shapes={"data": [16, 1, 1]}).ok
    assert [d.code for d in irrun.check(path, shapes={"data": [15, 1, 1]})] == ["IR403"]


@pytest.mark.parametrize(
    ("shapes", "said"),
    [({"nothing": [1]}, "no input 'nothing'"), ({0: "1,x"}, 'the shape "1,x"'), ({1: [1]}, "no input 1")],
)
def test_shapes_that_are_none(shapes: Shapes, said: str) -> None:
    with pytest.raises(irrun.FeedError, match=said) as raised:
        irrun.check(SAMPLES / "convnet.xml", shapes=shapes)
    assert raised.value.diagnostics[0].code == "IR601"

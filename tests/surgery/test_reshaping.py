"""Other input shapes: constants that repeat the old ones are found and replaced, and the batch is another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import surgery
from oracle import Oracle


def _x(*shape: int | str | None, name: str = "x", type: str = "f32") -> b.Node:
    return b.parameter(shape, type, name=name)


TABLE = np.arange(32, dtype=np.float32)


def _positions(x: b.Node) -> b.Node:
    return b.Add(x, b.Slice(TABLE, [0], [4], [1], [0]))


def _strided(x: b.Node) -> b.Node:
    masks = {"begin_mask": [0], "end_mask": [0], "new_axis_mask": [], "shrink_axis_mask": [], "ellipsis_mask": []}
    return b.Add(x, b.StridedSlice(TABLE, [0], np.array([4], np.int32), [1], **masks))


def _range(x: b.Node) -> b.Node:
    return b.Add(x, b.Range(0, np.int64(4), 1, output_type="f32"))


def _broadcast(x: b.Node) -> b.Node:
    return b.Add(x, b.Broadcast(np.float32(2), [2, 4]))


def _interpolate(x: b.Node) -> b.Node:
    image = b.Unsqueeze(b.MaxPool(b.Unsqueeze(x, [0]), **WINDOW)[0], [0])
    grown = b.Interpolate(image, [4], [3], mode="nearest", shape_calculation_mode="sizes")
    return b.Add(b.Squeeze(grown, [0, 1]), x)


WINDOW = {"strides": (2,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,), "kernel": (2,)}
CASES: dict[str, tuple[Callable[[b.Node], b.Node], Callable[[np.ndarray], np.ndarray], int]] = {
    "Slice": (_positions, lambda x: x + np.arange(x.shape[1]), 1),
    "StridedSlice": (_strided, lambda x: x + np.arange(x.shape[1]), 1),
    "Range": (_range, lambda x: x + np.arange(x.shape[1]), 1),
    "Broadcast": (_broadcast, lambda x: x + 2, 1),
    "Reshape, two numbers": (
        lambda x: b.Add(b.Reshape(b.Reshape(x, [8], special_zero=False), [2, 4], special_zero=False), x),
        lambda x: 2 * x,
        2,
    ),
    "Interpolate": (_interpolate, lambda x: x + np.maximum(x[:, ::2], x[:, 1::2]).repeat(2, 1), 1),
    "nothing": (lambda x: b.Add(x, np.float32(1)), lambda x: x + 1, 0),
}


@pytest.mark.parametrize("shape", [[2, 6], "2,?", [2, "2..16"]])
@pytest.mark.parametrize("name", CASES)
def test_constants_that_repeat_a_dim(name: str, shape: str | Sequence, tmp_path: Path) -> None:
    build, expected, count = CASES[name]
    model = b.model({"y": build(_x(2, 4))})
    thawed = surgery.thaw(model, {"x": shape})
    assert len(thawed.replaced) == count
    reshaped = surgery.reshape(thawed.model, {"x": shape})
    assert not irrun.check(reshaped).errors
    data = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    np.testing.assert_allclose(irrun.run(reshaped, data)[0], expected(data), rtol=1e-6)
    surgery.require_reshaped(model, reshaped)
    irrun.save_model(reshaped, tmp_path / "a.xml", compact=True)
    assert not irrun.check(tmp_path / "a.xml").diagnostics


def _two_rows() -> irrun.Model:
    """Return a model with open dims that refuses the smallest shape: three elements make no two rows."""
    return b.model({"y": b.ReLU(b.Reshape(_x(None, 3), [2, -1], special_zero=False))})


@pytest.mark.parametrize("shape", [[4, 3], "2..8,3"])
def test_a_model_with_open_dims_proves_its_static_form(shape: str | Sequence) -> None:
    model = _two_rows()
    reshaped = surgery.reshape(model, {"x": shape})
    assert surgery.require_reshaped(model, reshaped) == "equal to the original in its new shapes"
    other = surgery.reshape(
        b.model({"y": b.Negative(b.Reshape(_x(None, 3), [2, -1], special_zero=False))}), {"x": shape}
    )
    with pytest.raises(irrun.ModelError, match='output "y" differs from that of the original'):
        surgery.require_reshaped(model, other)


def test_a_result_that_fails_names_the_shapes() -> None:
    model = _two_rows()
    with pytest.raises(irrun.ModelError, match=r"the result fails on inputs of \[3,3\]: Reshape"):
        surgery.require_reshaped(model, surgery.reshape(model, {"x": "3..5,3"}))


def test_an_original_that_fails_in_its_smallest_shape(oracle: Oracle) -> None:
    model = _two_rows()
    agreed = surgery.require_agreement("openvino[precision=f32]", model, surgery.reshape(model, {"x": [4, 3]}))
    assert agreed.startswith("OpenVINO")


def test_openvino_takes_the_new_shapes(tmp_path: Path, oracle: Oracle) -> None:
    data = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    for name, (build, expected, _) in CASES.items():
        thawed = surgery.thaw(b.model({"y": build(_x(2, 4))}), {"x": "2,?"})
        irrun.save_model(surgery.reshape(thawed.model, {"x": "2,?"}), tmp_path / "a.xml")
        np.testing.assert_allclose(oracle(tmp_path / "a.xml", [data])[0], expected(data), rtol=1e-5, err_msg=name)


def _flat(a: b.Node) -> b.Node:
    """Return the argument after two Reshapes, whose numbers repeat the shape [2, 4]."""
    return b.Reshape(b.Reshape(a, [8], special_zero=False), [2, 4], special_zero=False)


def _nested(x: b.Node) -> b.Node:
    def body(i: b.Node, a: b.Node) -> tuple[bool, b.Node]:
        return True, b.If(b.Less(i, np.int64(1)), a, then=lambda a: b.Add(_flat(a), TWO), otherwise=_flat)

    return b.Loop(2, True, x, body=body, name="loop")


TWO = np.float32(2)
ONES = np.ones((2, 1), np.float32)
BODIES: dict[str, tuple[Callable[[b.Node], b.Node], int]] = {
    "Loop": (lambda x: b.Loop(2, True, x, body=lambda i, a: (True, b.Add(_flat(a), np.float32(1)))), 2),
    "If": (
        lambda x: b.If(
            b.Less(b.ReduceMax(x, [0, 1]), np.float32(99)),
            x,
            then=lambda x: b.Add(_flat(x), TWO),
            otherwise=lambda x: b.Broadcast(TWO, [2, 4]),
        ),
        3,
    ),
    "TensorIterator": (
        lambda x: b.TensorIterator(x, b.sliced(ONES, axis=0), body=lambda total, row: b.Add(_flat(total), row)),
        2,
    ),
    "nested": (_nested, 4),
}


@pytest.mark.parametrize("name", BODIES)
def test_constants_in_bodies(name: str, tmp_path: Path, oracle: Oracle) -> None:
    """Each model adds 2 to its input. A static number stays in the body, another one becomes an input of the layer."""
    build, count = BODIES[name]
    model = b.model({"y": build(_x(2, 4))})
    data = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    for shape in ([2, 6], "2,?"):
        thawed = surgery.thaw(model, {"x": shape})
        assert len(thawed.replaced) == count
        reshaped = surgery.reshape(thawed.model, {"x": shape})
        assert not irrun.check(reshaped).diagnostics
        np.testing.assert_allclose(irrun.run(reshaped, data)[0], data + 2, rtol=1e-6)
        irrun.save_model(reshaped, tmp_path / "a.xml", compact=True)
        assert not irrun.check(tmp_path / "a.xml").diagnostics
        np.testing.assert_allclose(oracle(tmp_path / "a.xml", [data])[0], data + 2, rtol=1e-5)
        (owner,) = [layer for layer in reshaped.layers.values() if layer.bodies]
        added = len(owner.inputs) - len(next(ly for ly in model.layers.values() if ly.bodies).inputs)
        assert added == (0 if shape == [2, 6] else count)
    report = irrun.check(model, shapes={"x": [2, 6]})
    assert 'holds 8 in element 0: dim 1 of input "x" times 2' in str(report.errors[0].notes)


def test_products_and_multiples() -> None:
    """Tokens of a picture, 8 * 6, and twice as many in pairs: 48 and 96 repeat both sizes."""
    x = _x(1, 3, 8, 6)
    tokens = b.Transpose(b.Reshape(x, [1, 3, 48], special_zero=False), [0, 2, 1])
    halves = b.Reshape(b.Concat(tokens, tokens, axis=1), [96, 3], special_zero=False)
    model = b.model({"y": b.Add(halves, np.zeros((1, 3), np.float32))})
    thawed = surgery.thaw(model, {"x": "1,3,?,?"})
    assert [sentence.split(" holds ")[1] for sentence in thawed.replaced] == [
        '48 in element 2: dim 2 of input "x" times dim 3 of input "x"',
        '96 in element 0: dim 2 of input "x" times dim 3 of input "x" times 2',
    ]
    reshaped = surgery.reshape(thawed.model, {"x": "1,3,?,?"})
    data = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5)
    expected = np.tile(data.reshape(3, 20).T, (2, 1))
    np.testing.assert_array_equal(irrun.run(reshaped, data)[0], expected)


def test_a_reshape_of_a_size_that_is_no_multiple() -> None:
    """A pool of 7 gives 3, of 9 gives 4: the number follows from the others."""
    pooled = b.MaxPool(_x(1, 2, 7), **WINDOW)[0]
    model = b.model({"y": b.Reshape(pooled, [1, 6], special_zero=False)})
    thawed = surgery.thaw(model, {"x": [1, 2, 9]})
    assert [sentence.split(" holds ")[1] for sentence in thawed.replaced] == [
        "6 in element 1: the rest of the elements"
    ]
    assert irrun.run(surgery.reshape(thawed.model, {"x": [1, 2, 9]}), np.ones((1, 2, 9), np.float32))[0].shape == (1, 8)


def test_a_table_that_is_too_short() -> None:
    model = b.model({"y": b.Add(_x(2, 4), np.arange(4, dtype=np.float32))})
    thawed = surgery.thaw(model, {"x": [2, 6]})
    assert thawed == surgery.Thawed(model, ())
    assert irrun.check(thawed.model, shapes={"x": [2, 6]}).errors


def test_a_check_names_the_numbers() -> None:
    report = irrun.check(b.model({"y": _positions(_x(2, 4))}), shapes={"x": [2, 6]})
    (error,) = report.errors
    assert error.notes[-2].endswith('holds 4 in element 0: dim 1 of input "x"')
    assert error.notes[-1] == "`irrun edit` with the same --shape replaces these numbers"


def _network(mixing: bool = False) -> irrun.Model:
    """Return tokens of one sample, whose heads are in a frozen shape; ``mixing`` subtracts the mean of the batch."""
    x = _x(1, 4, 6)
    heads = b.Transpose(b.Reshape(x, [1, 4, 2, 3], special_zero=False), [0, 2, 1, 3])
    scores = b.SoftMax(b.MatMul(heads, heads, transpose_a=False, transpose_b=True), axis=-1)
    y = b.MatMul(scores, heads, transpose_a=False, transpose_b=False)
    y = b.Reshape(b.Transpose(y, [0, 2, 1, 3]), [1, 4, 6], special_zero=False)
    return b.model({"y": b.Subtract(y, b.ReduceMean(x, [0], keep_dims=True)) if mixing else y})


@pytest.mark.parametrize("batch", [3, None])
def test_a_batch(batch: int | None, tmp_path: Path, oracle: Oracle) -> None:
    model = _network()
    shapes = surgery.batch_shapes(model, batch)
    thawed = surgery.thaw(model, shapes, batch=1)
    assert len(thawed.replaced) == 2
    reshaped = surgery.reshape(thawed.model, shapes)
    assert "samples" in surgery.require_reshaped(model, reshaped, surgery.batch_axes(model))
    irrun.save_model(model, tmp_path / "a.xml")
    irrun.save_model(reshaped, tmp_path / "b.xml")
    data = np.random.default_rng(0).standard_normal((3, 4, 6)).astype(np.float32)
    expected = np.concatenate([oracle(tmp_path / "a.xml", [row[None]])[0] for row in data])
    np.testing.assert_allclose(oracle(tmp_path / "b.xml", [data])[0], expected, rtol=1e-4, atol=1e-5)


def test_samples_that_are_mixed() -> None:
    model = _network(mixing=True)
    shapes = surgery.batch_shapes(model, 2)
    reshaped = surgery.reshape(surgery.thaw(model, shapes, batch=1).model, shapes)
    with pytest.raises(irrun.ModelError, match=r'IR608.*output "y" of 2 samples is not that of each sample alone'):
        surgery.require_reshaped(model, reshaped, surgery.batch_axes(model))


def test_samples_that_are_joined() -> None:
    """-1 takes the batch into the second dim, and no constant can undo that."""
    model = b.model(
        {"y": b.Reshape(b.Reshape(_x(1, 4), [-1], special_zero=False), b.Concat([1], [-1], axis=0), special_zero=False)}
    )
    assert len(surgery.thaw(model, {0: [3, 4]}, batch=1).replaced) == 1
    pooled = b.model({"y": b.ReduceMax(_x(1, 4), [0], keep_dims=True)})
    with pytest.raises(irrun.ModelError, match='the first dim of output "y" does not follow'):
        surgery.thaw(pooled, {0: [3, 4]}, batch=1)


def test_axes_of_the_batch(tmp_path: Path) -> None:
    """By layout, in both spellings; without one, by the first dim that several inputs share."""
    model = b.model({"y": b.ReLU(_x(3, 5)), "z": b.ReLU(_x(5, 2, name="w"))})
    assert surgery.batch_axes(model) == {0: 0}
    irrun.save_model(model, tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    layout = '<rt_info><attribute name="layout" version="0" layout="{}" /></rt_info>\n<output>'
    for one, other, axes in (("[C,N]", "[N,C]", {0: 1, 1: 0}), ("NC", "CD", {0: 0}), ("[...,N]", "[N,...]", {1: 0})):
        marked = text.replace("<output>", layout.format(one), 1)
        first, mark, rest = marked.partition('name="w"')
        marked = first + mark + rest.replace("<output>", layout.format(other), 1)
        (tmp_path / "a.xml").write_text(marked)
        assert surgery.batch_axes(tmp_path / "a.xml") == axes
    with pytest.raises(irrun.ModelError, match="no input has a batch"):
        surgery.batch_axes(b.model({"y": b.ReLU(_x())}))


def test_a_state_and_a_body_stay() -> None:
    """A Loop whose condition and count are constants, and a variable, at another batch."""
    x = _x(1, 4)
    loop = b.Loop(3, True, b.Reshape(x, [1, 2, 2], special_zero=False), body=lambda i, a: (True, b.Add(a, a)))
    y = b.Reshape(loop, [1, 4], special_zero=False)
    read = b.ReadValue(np.zeros(4, np.float32), variable_id="v", variable_type="f32", variable_shape="4")
    sink = b.Assign(b.Add(read, np.ones(4, np.float32)), variable_id="v")
    model = b.model({"y": b.Add(y, read)}, sinks=[sink])
    shapes = surgery.batch_shapes(model, None)
    thawed = surgery.thaw(model, shapes, batch=1)
    reshaped = surgery.reshape(thawed.model, shapes)
    assert surgery.require_reshaped(model, reshaped, {0: 0}).startswith("equal to the original at its shapes")
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    executable = irrun.compile(reshaped)
    assert executable(data)[0].tolist() == (8 * data).tolist()
    assert executable(data)[0].tolist() == (8 * data + 1).tolist()

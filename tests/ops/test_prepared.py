"""Prepared kernels against ``run``, which the tables of the operations test: plainly, into ``out``, in place, in tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from grouped import each
from irrun.opdef import Index, Kernel, Value
from irrun.types import PartialShape
from kit import kernel_of, operation
from odd_calls import in_layouts

RANDOM = np.random.default_rng(5)


@dataclass(frozen=True)
class Row:
    """One layer: its inputs, of which those at ``constant`` are known when it is prepared."""

    name: str
    inputs: Sequence[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    constant: Sequence[int] = ()
    rtol: float = 0.0
    plain: bool = False
    """Whether it is left to ``run``; the others have a kernel of their own, at least where shapes are known."""

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{a.dtype}{list(a.shape)}" for a in self.inputs if a is not None)])


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (2 * RANDOM.standard_normal(shape)).astype(dtype)


def special(dtype: Any = np.float32) -> np.ndarray:
    """NaN, infinities, zeros, extremes, and enough numbers for several blocks."""
    numbers = normal(3, 20_000, dtype=dtype)
    numbers[1, :9] = [np.nan, np.inf, -np.inf, 0, -0.0, 1e30, -1e30, 1e-30, -1e-30]
    return numbers


def ints(*shape: int, dtype: Any = np.int32) -> np.ndarray:
    return RANDOM.integers(-9, 9, shape).astype(dtype)


def f32(x: Any) -> np.ndarray:
    return np.array(x, np.float32)


def i64(x: Any) -> np.ndarray:
    return np.array(x, np.int64)


UNARY: dict[str, tuple[dict[str, Any], float]] = {
    "Abs-1": ({}, 0), "Negative-1": ({}, 0), "Ceiling-1": ({}, 0), "Floor-1": ({}, 0), "Sign-1": ({}, 0),
    "Exp-1": ({}, 0), "Log-1": ({}, 0), "Sqrt-1": ({}, 0), "Tanh-1": ({}, 0), "Sin-1": ({}, 0), "Erf-1": ({}, 1e-6),
    "ReLU-1": ({}, 0), "Sigmoid-1": ({}, 1e-6), "HSigmoid-5": ({}, 1e-6), "HSwish-4": ({}, 1e-6), "Mish-4": ({}, 1e-6),
    "SoftPlus-4": ({}, 1e-6), "SoftSign-9": ({}, 0), "Round-5": ({}, 0), "Elu-1": ({"alpha": 0.7}, 1e-6),
    "Clamp-1": ({"min": -0.5, "max": 0.75}, 0), "Gelu-2": ({}, 1e-6), "Gelu-7": ({"approximation_mode": "tanh"}, 1e-6),
    "Swish-4": ({}, 1e-6), "IsNaN-10": ({}, 0), "IsFinite-10": ({}, 0),
}  # fmt: skip
BINARY = ["Add-1", "Subtract-1", "Multiply-1", "Divide-1", "Maximum-1", "Minimum-1", "Mod-1", "FloorMod-1", "Power-1",
          "SquaredDifference-1", "Equal-1", "Less-1", "GreaterEqual-1", "Atan2-17"]  # fmt: skip
RANGE = [f32(-1.5), f32(1.25), f32(-2), f32(3)]
CHANNELS = [f32([-1, -2, -3]), f32([1, 2, 3]), f32([-1, -1, 0]), f32([2, 1, 1])]
LSTM = [
    normal(2, 7, 3),
    normal(2, 1, 5),
    normal(2, 1, 5),
    i64([7, 7]),
    normal(1, 20, 3),
    normal(1, 20, 5),
    normal(1, 20),
]
BOTH = [normal(3, 4, 3), normal(3, 2, 5), i64([4, 4, 4]), normal(2, 15, 3), normal(2, 15, 5)]

ROWS = [
    *[Row(name, [special(t)], a, rtol=r) for name, (a, r) in UNARY.items() for t in (np.float32, np.float64)],
    *[Row(name, [normal(4, 3, dtype=t)], a, plain=True)
      for name, (a, _) in UNARY.items() if name not in ("Abs-1", "Negative-1", "Sign-1")
      for t in (np.float16, ml_dtypes.bfloat16)],
    *[Row(name, [f32(0.5)], a, plain=True) for name, (a, _) in UNARY.items()],
    Row("Abs-1", [ints(3, 4)]), Row("LogicalNot-1", [ints(3, 4) > 0]), Row("LogicalNot-1", [normal(3, 4)]),
    *[Row(name, [normal(2, 3, 4), b]) for name in BINARY for b in (normal(2, 3, 4), normal(3, 1), normal(1))],
    *[Row(name, [ints(2, 3, dtype=t), ints(2, 1, dtype=t)], plain=name == "Power-1")
      for name in BINARY[:-1] if name != "SquaredDifference-1" for t in (np.int32, np.uint8)],
    *[Row("Multiply-1", [normal(*a), normal(*b)]) for a, b in (
        ((2, 30, 50, 1), (2, 1, 1, 64)), ((3000, 1), (1, 64)), ((2, 3000, 1), (1, 1, 64)), ((2, 40, 1), (2, 1, 64)),
        ((2, 3000, 1), (2, 1, 100)))],
    Row("Divide-1", [normal(3, dtype=np.float16), normal(3, dtype=np.float16)], plain=True),
    *[Row("Power-1", [np.abs(normal(3, 4)), f32(n)], constant=[1], rtol=1e-6) for n in (-1, -0.5, 0.5, 1, 2, 3, 1.3)],
    Row("Add-1", [normal(2, 3, 4), normal(3)], {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": 1}, plain=True),
    Row("Add-1", [normal(2, 3, 4), normal(2, 3, 1)], {"auto_broadcast": "pdpd"}),
    *[Row("Select-1", [normal(3, 4) > 0, normal(3, 4).astype(t), normal(4).astype(t)])
      for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int64, np.bool_)],
    Row("Select-1", [np.array([True, False]), np.array(["1", "23"]), np.array(["4", "56"])], plain=True),
    *[Row("PReLU-1", [special(), f32([slope])], constant=[1], rtol=1e-7) for slope in (0.2, 1, 3, -1)],
    Row("PReLU-1", [normal(2, 3, 4), normal(3)], constant=[1], plain=True),
    *[Row("PReLU-1", [normal(2, 3, 4), slopes], constant=[1], rtol=1e-7)
      for slopes in (normal(3, 1), np.abs(normal(1, 4)) / 9 + 0.1, normal(2, 3, 4), normal(4))],
    *[Row("Convert-1", [normal(3, 4)], {"destination_type": t}) for t in ("f64", "f16", "i32", "u8", "i64", "boolean")],
    *[Row("Convert-1", [ints(3, 4)], {"destination_type": t}) for t in ("f32", "i8", "u64", "boolean", "f16")],
    Row("Convert-1", [normal(3, 4)], {"destination_type": "bf16"}, plain=True),
    Row("FakeQuantize-1", [special(), *RANGE], {"levels": 16}, [1, 2, 3, 4], 1e-6),
    Row("FakeQuantize-1", [normal(5, 3), *CHANNELS], {"levels": 256}, [1, 2, 3, 4], 1e-6),
    Row("FakeQuantize-1", [normal(5, 3), RANGE[1], RANGE[0], *RANGE[2:]], {"levels": 16}, [1, 2, 3, 4], plain=True),
    Row("HardSigmoid-1", [special(), f32(0.2), f32(0.5)], constant=[1, 2], rtol=1e-6),
    Row("Selu-1", [special(), f32(1.67), f32(1.05)], constant=[1, 2], rtol=1e-6),
    *[Row("Elu-1", [special()], {"alpha": alpha}) for alpha in ("nan", "inf", 2e38)],
    *[Row("Selu-1", [special(), f32(alpha), f32(scale)], constant=[1, 2], plain=True)
      for alpha, scale in ((np.nan, 1), (np.inf, 1), (2e38, 1), (1, np.inf), (2, np.nan))],
    *[Row("HardSigmoid-1", [special(), f32(alpha), f32(beta)], constant=[1, 2])
      for alpha, beta in ((np.inf, 0), (1, np.nan), (-3e38, 1))],
    *[Row("Swish-4", [special(), f32(beta)], constant=[1]) for beta in (np.nan, np.inf, 3e38, 0)],
    Row("Swish-4", [special(), f32(1.5)], constant=[1], rtol=1e-6),

    *[Row("MatMul-1", [a, b], {"transpose_a": x, "transpose_b": y}, rtol=1e-5) for x, y, a, b in (
        (False, False, normal(1, 7, 5), normal(5, 6)), (False, True, normal(7, 5), normal(6, 5)),
        (True, False, normal(5, 7), normal(5, 6)), (True, True, normal(2, 3, 5, 7), normal(3, 6, 5)),
        (False, False, normal(1, 40, 8), normal(8, 3000)), (False, True, normal(3, 900, 8), normal(200, 8)),
        (False, False, normal(2, 9, 4, dtype=np.float64), normal(4, 5, dtype=np.float64)),
        (False, False, normal(0, 5), normal(5, 6)), (False, False, normal(2, 0), normal(0, 6)))],
    Row("MatMul-1", [normal(5), normal(5, 6)], plain=True),
    Row("MatMul-1", [normal(2, 4, 8, dtype=np.float16), normal(8, 5, dtype=np.float16)], constant=[1], rtol=1e-3),
    Row("MatMul-1", [normal(4, 8, dtype=ml_dtypes.bfloat16), normal(5, 8, dtype=ml_dtypes.bfloat16)], {"transpose_b": True}, [1], 1e-2),
    Row("MatMul-1", [normal(4, 8), normal(5, 8)], {"transpose_b": True}, [1], 1e-5),
    Row("MatMul-1", [normal(1, 80, 300), normal(900, 300)], {"transpose_b": True}, [1], 1e-5),
    Row("MatMul-1", [ints(3, 4), ints(4, 5)], plain=True),

    *[Row(name, [normal(*shape)], {"axis": axis}, rtol=1e-5)
      for name in ("SoftMax-8", "LogSoftmax-5")
      for shape, axis in (((3, 5), -1), ((2, 300, 150), 2), ((2, 300, 150), 1), ((70, 4, 300), 0), ((7,), 0), ((0, 3), 1), ((3, 0), 1))],
    Row("SoftMax-8", [f32([[np.nan, 1], [np.inf, 1], [-np.inf, -np.inf], [-np.inf, 0], [100, -100]])], {"axis": 1}),
    *[Row("MVN-6", [normal(*shape, dtype=t), i64(axes)], {"normalize_variance": v, "eps": 1e-5, "eps_mode": mode}, [1], 1e-4)
      for shape, axes in (((3, 5), [-1]), ((2, 300, 150), [2]), ((2, 3, 40, 50), [2, 3]), ((2, 30, 40), [1]), ((5, 3), [0, 1]))
      for v, mode, t in ((True, "inside_sqrt", np.float32), (True, "outside_sqrt", np.float64), (False, "inside_sqrt", np.float32))],
    Row("MVN-2", [normal(2, 3, 40, 50)], {"normalize_variance": True, "eps": 1e-9}, rtol=1e-4),
    Row("RMS-14", [normal(300, 150), normal(150)], {"epsilon": 1e-6}, [1], 1e-5),
    Row("RMS-14", [normal(3, 5)], {"epsilon": 1e-6}, rtol=1e-5),
    Row("RMS-14", [normal(3, 5), normal(5)], {"epsilon": 1e-6}, plain=True),
    Row("RMS-14", [normal(3, 5)], {"epsilon": 1e-6, "output_type": "f32"}, rtol=1e-5),
    Row("RMS-14", [normal(3, 5)], {"epsilon": 1e-6, "output_type": "f64"}, plain=True),
    # sums of narrow floats are made of wider ones
    *[row for t in (np.float16, ml_dtypes.bfloat16) for row in (
        Row("MVN-6", [normal(3, 5, dtype=t), i64([1])], {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}, [1], plain=True),
        Row("MVN-2", [normal(2, 3, 4, 5, dtype=t)], {"normalize_variance": True, "eps": 1e-9}, plain=True),
        Row("RMS-14", [normal(3, 5, dtype=t)], {"epsilon": 1e-6}, plain=True),
        Row("NormalizeL2-1", [normal(3, 4, 5, dtype=t), i64([1])], {"eps": 1e-3, "eps_mode": "add"}, [1], plain=True),
        Row("GroupNormalization-12", [normal(2, 4, 3, dtype=t), normal(4, dtype=t), normal(4, dtype=t)], {"num_groups": 2, "epsilon": 1e-5}, plain=True),
        Row("BatchNormInference-5", [normal(3, 4, 2, dtype=t), *(normal(4, dtype=t) for _ in range(3)), np.abs(normal(4, dtype=t))], {"epsilon": 1e-5}, [1, 2, 3, 4], plain=True),
        Row("ReduceSum-1", [normal(3, 4, dtype=t), i64([1])], constant=[1], plain=True),
        Row("SoftMax-8", [normal(3, 4, dtype=t)], {"axis": 1}, plain=True),
        Row("LogSoftmax-5", [normal(3, 4, dtype=t)], {"axis": 1}, plain=True))],
    # nor has a scalar, or what is reduced along no axis or one that is not known
    *[Row(name, [f32(3), i64([])], a, [1], plain=True) for name, a in (
        ("MVN-6", {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}), ("ReduceSum-1", {}))],
    Row("MVN-6", [normal(3, 4), i64([1])], {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}, plain=True),
    Row("ReduceSum-1", [normal(3, 4), i64([1])], plain=True), Row("ReduceSum-1", [normal(3, 4), i64([0, 1])], constant=[1], plain=True),
    *[Row("NormalizeL2-1", [normal(3, 40, 5), i64(axes)], {"eps": 1e-3, "eps_mode": mode}, [1], 1e-5)
      for axes in ([2], [1], [0, 2]) for mode in ("add", "max")],
    *[Row("GroupNormalization-12", [normal(2, 6, 90, 80), normal(6), normal(6)], {"num_groups": n, "epsilon": 1e-5}, rtol=1e-4) for n in (1, 2, 6)],
    Row("BatchNormInference-5", [normal(3, 4, 90, 80), normal(4), normal(4), normal(4), np.abs(normal(4))], {"epsilon": 1e-5}, [1, 2, 3, 4], 1e-4),
    Row("BatchNormInference-1", [normal(4), normal(4), normal(3, 4, 5), normal(4), np.abs(normal(4))], {"epsilon": 1e-5}, [0, 1, 3, 4], 1e-4),
    *[Row(f"{name}-{4 if 'L' in name[6:] else 1}", [normal(3, 4, 50, 40), i64(axes)], {"keep_dims": keep}, [1], 1e-4, plain=name == "ReduceL2")
      for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2")
      for axes, keep in (([-1], False), ([2, 3], True), ([1], False), ([0, 2], True), ([0, 1, 2, 3], True))],
    Row("ReduceMax-1", [f32([[1, np.nan], [2, 3]]), i64([1])], constant=[1]),
    Row("ReduceSum-1", [normal(3, 0), i64([1])], constant=[1]), Row("ReduceMax-1", [normal(3, 0), i64([1])], constant=[1]),

    Row("Broadcast-3", [normal(3, 1), i64([2, 3, 4])], constant=[1]),
    Row("Broadcast-3", [normal(3), i64([2, 3, 4]), i64([1])], {"mode": "explicit"}, [1, 2]),
    Row("Broadcast-3", [normal(2, 1, 4), i64([3, 1])], {"mode": "bidirectional"}, [1]),
    Row("Broadcast-3", [ints(3, 1), i64([0, 3, 4])], constant=[1]),
    *[Row("Tile-1", [normal(*shape), i64(repeats)], constant=[1])
      for shape, repeats in (((2, 3), [2, 2]), ((2, 100), [3, 1, 2]), ((70, 80), [1]), ((2, 3), [0, 1]))],
    Row("Concat-1", [normal(2, 3), normal(2, 1), normal(2, 4)], {"axis": 1}), Row("Concat-1", [ints(2, 3), ints(1, 3)], {"axis": 0}),
    *[Row("Gather-8", [normal(4, 5, 6), i64(at), i64(axis)], constant=constant)
      for at, axis, constant in (([0, 3, -1], 1, [1, 2]), ([[1, 2], [0, 0]], 0, [1, 2]), (-2, 2, [1, 2]), ([0, 4], -2, [2]),
                                 ([0, -1, 9], 1, [2]), ([0, -1, 9], 1, [1, 2]), ([], 0, [2]))],
    *[Row("Pad-12", [normal(4, 5), i64(begin), i64(end), f32(7)], {"pad_mode": "constant"}, [1, 2])
      for begin, end in (([1, 2], [0, 3]), ([-1, 0], [2, -2]), ([0, 0], [0, 0]), ([-5, 0], [0, 0]), ([3, -9], [-9, 0]))],
    Row("Pad-1", [ints(4), i64([1]), i64([2])], {"pad_mode": "constant"}, [1, 2]),

    Row("LSTMSequence-5", LSTM, {"hidden_size": 5}, [4, 5, 6], 1e-5),
    Row("LSTMSequence-5", LSTM, {"hidden_size": 5, "direction": "reverse"}, [4, 5, 6], 1e-5),
    Row("LSTMSequence-5", [*LSTM[:3], i64([7, 3]), *LSTM[4:]], {"hidden_size": 5}, [4, 5, 6], 1e-5),
    Row("LSTMSequence-5", LSTM, {"hidden_size": 5, "clip": 0.1}, [4, 5, 6], plain=True),
    *[Row("GRUSequence-5", [*BOTH, normal(2, n)], {"hidden_size": 5, "direction": "bidirectional", "linear_before_reset": n == 20}, [3, 4, 5], 1e-5)
      for n in (15, 20)],
    Row("RNNSequence-5", [normal(2, 4, 3), normal(2, 1, 5), i64([4, 4]), normal(1, 5, 3), normal(1, 5, 5), normal(1, 5)],
        {"hidden_size": 5, "activations": "tanh"}, [3, 4, 5], 1e-5),
    Row("LSTMCell-4", [normal(2, 3), normal(2, 5), normal(2, 5), normal(20, 3), normal(20, 5), normal(20)], {"hidden_size": 5}, [3, 4, 5], 1e-5),
    Row("GRUCell-3", [normal(2, 3), normal(2, 5), normal(15, 3), normal(15, 5)], {"hidden_size": 5}, [2, 3], 1e-5),
]  # fmt: skip


def attention() -> Iterator[Row]:
    for shape, width, keys in (
        ((2, 3, 70, 8), 5, 90),
        ((1, 2, 600, 4), 4, 600),
        ((3, 5, 4), 4, 7),
        ((1, 1, 1, 4), 4, 30),
        ((2, 3, 4), 4, 0),
    ):
        *batch, queries, inner = shape
        tensors = [normal(*shape), normal(*batch, keys, inner), normal(*batch, keys, width)]
        yield Row("ScaledDotProductAttention-13", tensors, {"causal": False}, rtol=1e-4)
        yield Row("ScaledDotProductAttention-13", tensors, {"causal": True}, rtol=1e-4)
        for mask in (normal(queries, keys), normal(*batch, 1, keys), RANDOM.random((queries, keys)) > 0.3, f32(1)):
            yield Row("ScaledDotProductAttention-13", [*tensors, mask, f32([0.3])], {"causal": False}, rtol=1e-4)
    for number in range(3):  # infinities among hidden queries, keys or values
        tensors = [normal(2, 300, 8), normal(2, 300, 8), normal(2, 300, 8)]
        tensors[number][1, 250, 3] = np.inf
        yield Row("ScaledDotProductAttention-13", tensors, {"causal": True}, rtol=1e-4)
    tensors = [normal(2, 300, 8), normal(2, 300, 8), normal(2, 300, 8)]
    tensors[0][1, 5, 3] = tensors[1][1, 250, 3] = 1e30  # a hidden score that overflows
    yield Row("ScaledDotProductAttention-13", tensors, {"causal": True}, rtol=1e-4)
    tensors = [normal(2, 5, 4), normal(1, 7, 4), normal(2, 7, 4)]
    yield Row("ScaledDotProductAttention-13", [*tensors, normal(3, 1, 5, 7)], {"causal": False}, rtol=1e-4)


ALL = [*ROWS, *attention()]


def prepared(row: Row, *, dynamic: bool = False) -> Kernel:
    def value(position: int, array: np.ndarray) -> Value:
        known = Value.of(array)
        if position in row.constant:
            return known
        return Value(known.type, PartialShape.of_rank(array.ndim) if dynamic else known.shape)

    values = [None if a is None else value(i, a) for i, a in enumerate(row.inputs)]
    return kernel_of(operation(row.name, row.attributes), *values)


def call(kernel: Kernel, inputs: Sequence[np.ndarray | None], **keywords: Any) -> Any:
    with np.errstate(all="ignore"):
        return kernel.call(*inputs, **keywords)


def expected(row: Row) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        found = operation(row.name, row.attributes).run(*row.inputs)
    return found if isinstance(found, tuple) else (found,)


def same(found: np.ndarray, wanted: np.ndarray, rtol: float) -> None:
    assert isinstance(found, np.ndarray)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    numbers = [a.astype(np.float64) for a in (found, wanted)]
    size = np.abs(numbers[1])
    atol = rtol * float(size[size < 1e20].max(initial=0))
    np.testing.assert_allclose(*numbers, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@each("row", ALL, ids=str)
def test_plainly(row: Row, dynamic: bool) -> None:
    kernel = prepared(row, dynamic=dynamic)
    if row.plain or not dynamic:
        is_run = getattr(kernel.call, "__func__", None) is type(operation(row.name, row.attributes)).run
        assert is_run == row.plain
    before = [None if a is None else a.copy() for a in row.inputs]
    found = call(kernel, row.inputs)
    for one, wanted in zip(found if isinstance(found, tuple) else (found,), expected(row)):
        same(one, wanted, row.rtol)
    for a, copy in zip(row.inputs, before):
        np.testing.assert_array_equal(a, copy)  # type: ignore[arg-type]


@each("row", ALL, ids=str)
def test_in_any_memory(row: Row) -> None:
    """What is no constant may lie in any memory; ``out`` is an array of its own."""
    kernel, (wanted, *_) = prepared(row), expected(row)
    for _, placed in in_layouts(str(row), row.inputs):
        inputs = [given if n in row.constant else array for n, (given, array) in enumerate(zip(row.inputs, placed))]
        found = call(kernel, inputs)
        same(found[0] if isinstance(found, tuple) else found, wanted, max(row.rtol, 1e-6))
        if kernel.out != "new":
            same(call(kernel, inputs, out=np.full(wanted.shape, 3, wanted.dtype)), wanted, max(row.rtol, 1e-6))


OUT = [row for row in ALL if prepared(row).out != "new"]
ELEMENTWISE = [row for row in ALL if prepared(row).out == "elementwise"]
TILES = [row for row in ALL if prepared(row).out == "tiles"]

IN_TILES = {
    "MatMul-1", "SoftMax-8", "LogSoftmax-5", "MVN-2", "MVN-6", "RMS-14", "NormalizeL2-1", "GroupNormalization-12",
    "BatchNormInference-1", "BatchNormInference-5", "ScaledDotProductAttention-13",
}  # fmt: skip
WHOLE = {
    "ReduceSum-1",
    "ReduceMean-1",
    "ReduceMax-1",
    "ReduceMin-1",
    "ReduceProd-1",
    "Broadcast-3",
    "Tile-1",
    "Concat-1",
    "Pad-1",
    "Pad-12",
}
ELEMENT_BY_ELEMENT = {
    *UNARY,
    *BINARY,
    "LogicalNot-1",
    "Select-1",
    "PReLU-1",
    "Convert-1",
    "FakeQuantize-1",
    "HardSigmoid-1",
    "Selu-1",
}


@each("row", [row for row in ALL if not row.plain], ids=str)
def test_what_a_kernel_can(row: Row) -> None:
    """Which memory a kernel fills: the memory and time of a run depend on it."""
    kernel = prepared(row)
    narrow = row.name == "MatMul-1" and row.inputs[0] is not None and row.inputs[0].dtype.itemsize == 2
    if row.name == "Gather-8":  # fills `out` only where the indices are known and within the data
        assert kernel.out in ("whole", "new")
    elif narrow:
        assert kernel.out == "new"
    elif row.name in ELEMENT_BY_ELEMENT:
        assert kernel.out == "elementwise"
    elif row.name in IN_TILES:
        assert kernel.out == "tiles"
    else:
        assert kernel.out == ("whole" if row.name in WHOLE else "new")


@each("row", OUT, ids=str)
def test_into_out(row: Row) -> None:
    (wanted,) = expected(row)
    out = np.full(wanted.shape, 3, wanted.dtype)
    kernel = prepared(row)
    assert set(kernel.packing.inputs) <= set(row.constant)
    inputs = [None if i in kernel.packing.inputs else array for i, array in enumerate(row.inputs)]
    assert call(kernel, inputs, out=out) is out
    same(out, wanted, row.rtol)


@each("row", ELEMENTWISE, ids=str)
def test_in_place(row: Row) -> None:
    """``out`` is each of the inputs that are like it in turn."""
    (wanted,) = expected(row)
    kernel = prepared(row)
    for position, array in enumerate(row.inputs):
        if array is not None and array.shape == wanted.shape and array.dtype == wanted.dtype:
            inputs = [*row.inputs[:position], array.copy(), *row.inputs[position + 1 :]]
            same(call(kernel, inputs, out=inputs[position]), wanted, row.rtol)


@each("row", ELEMENTWISE, ids=str)
def test_by_columns(row: Row) -> None:
    """Corresponding parts that are no single piece of memory."""
    (wanted,) = expected(row)
    out = np.zeros_like(wanted)
    kernel = prepared(row)
    columns = wanted.shape[-1]
    for part in (slice(0, columns // 2), slice(columns // 2, columns)):
        inputs = [a if a is None or a.ndim == 0 or a.shape[-1] == 1 else a[..., part] for a in row.inputs]
        call(kernel, inputs, out=out[..., part])
    same(out, wanted, row.rtol)


@each("row", TILES, ids=str)
def test_tiles(row: Row) -> None:
    """Each element is computed and then reported once, and is not written again."""
    (wanted,) = expected(row)
    times = np.zeros(wanted.shape, np.int64)
    out = np.zeros_like(wanted)

    def on_tile_ready(index: Index) -> None:
        assert len(index) == out.ndim
        same(out[index], wanted[index], max(row.rtol, 1e-6) * 10)
        out[index] += 1
        times[index] += 1

    call(prepared(row), row.inputs, out=out, on_tile_ready=on_tile_ready)
    assert (times == 1).all()
    same(out, wanted + 1, max(row.rtol, 1e-6))
    same(call(prepared(row), row.inputs), wanted, row.rtol)

"""What the pages of element-wise operations, reductions and conversions leave open: where it holds, and where not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import kit
from grouped import each
from irrun.specification import wording
from irrun.specification.undefined import BEHAVIOURS, shown

INF, NAN = np.inf, np.nan
PDPD = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": 0}

Row = tuple[str, str, dict[str, Any], list[Any], Any]


def i8(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int8)


def u8(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint8)


def f(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def to(name: str) -> dict[str, Any]:
    return {"destination_type": name}


INTEGERS: list[Row] = [
    ("zero-divisor", "Divide-1", PDPD, [np.ones((2, 3)), f(0, 1)], [[True], [False]]),
    ("integer-overflow", "Add-1", {}, [i8(100, 100), i8(27, 28)], [False, True]),
    ("integer-overflow", "Add-1", {}, [np.array([2**63 - 1]), np.array([0, 1])], [False, True]),
    ("integer-overflow", "Add-1", {}, [f(3e38), f(3e38)], False),
    ("integer-overflow", "Subtract-1", {}, [u8(1, 1), u8(1, 2)], [False, True]),
    ("integer-overflow", "Multiply-1", PDPD, [np.full((2, 2), 100, np.uint8), u8(2, 3)], [[False] * 2, [True] * 2]),
    ("integer-overflow", "SquaredDifference-1", {}, [u8(3, 1, 20), u8(1, 3, 4)], [False, True, True]),
    (
        "integer-overflow",
        "Power-1",
        {},
        [i8(2, 2, -1, -2, 3), i8(6, 7, 127, 7, 127)],
        [False, True, False, False, True],
    ),
    ("integer-overflow", "Abs-1", {}, [np.array([-7, -8], ml_dtypes.int4)], [False, True]),
    ("integer-overflow", "Negative-1", {}, [i8(-127, -128)], [False, True]),
    ("integer-overflow", "Tan-1", {}, [u8(1, 2)], [False, True]),
    ("integer-overflow", "Tan-1", {}, [i8(1, 2)], [False, False]),
    ("integer-overflow", "Divide-1", {}, [i8(-128, -128, 5), i8(-1, 1, 0)], [True, False, False]),
    ("integer-rounding", "Divide-1", {"m_pythondiv": False}, [i8(6, -7, 5), i8(3, 2, 0)], [False, True, False]),
    ("integer-rounding", "Divide-1", {}, [i8(-7), i8(2)], False),
    ("integer-rounding", "Power-1", {}, [i8(2, 2, -1, 0), i8(-1, 1, -3, -2)], [True, False, False, True]),
    ("integer-rounding", "Cos-1", {}, [i8(0, 1)], [False, True]),
    ("integer-rounding", "Log-1", {}, [u8(1, 2)], [False, True]),
    ("integer-rounding", "Log-1", {}, [f(2)], False),
    ("shift", "BitwiseLeftShift-15", {}, [i8(1, 1, 1, 64, 63), i8(-1, 8, 6, 1, 1)], [True, True, False, True, False]),
    ("shift", "BitwiseLeftShift-15", {}, [u8(255, 255), u8(7, 8)], [False, True]),
    ("shift", "BitwiseRightShift-15", {}, [i8(-8, 8), i8(1, -1)], [False, True]),
    ("order-of-strings", "Less-1", {}, [np.array(["a"], object), np.array(["b"], object)], True),
    ("order-of-strings", "Less-1", {}, [i8(1), i8(2)], False),
]
FLOATS: list[Row] = [
    ("nan-of-element", "ReLU-1", {}, [f(NAN, INF, 1)], [True, False, False]),
    ("nan-of-element", "Maximum-1", {}, [f(NAN, 1, 1), f(1, NAN, 1)], [True, True, False]),
    ("nan-of-element", "Maximum-1", {}, [i8(1), i8(2)], False),
    ("nan-of-element", "Greater-1", {}, [f(NAN, 1), f(NAN, INF)], [True, False]),
    ("nan-of-element", "Swish-4", {}, [f(NAN, 1), None], [True, False]),
    ("nan-of-element", "Swish-4", {}, [f(1, 2), np.float32(NAN)], [True, True]),
    ("nan-of-element", "Bucketize-3", {}, [f(NAN, 1), f(1, 2, 3)], [True, False]),
    ("nan-of-element", "PReLU-1", {}, [np.ones((1, 2, 3)), f(NAN, 1)], [[[True] * 3, [False] * 3]]),
    ("domain", "Sqrt-1", {}, [f(-1, 0)], [True, False]),
    ("domain", "Sqrt-1", {}, [i8(-1, 0)], [True, False]),
    ("domain", "Acosh-4", {}, [f(0.5, 1)], [True, False]),
    ("domain", "Atanh-4", {}, [f(1, -2, 0.5)], [True, True, False]),
    ("domain", "Atanh-4", {}, [i8(1, -2)], False),
    ("domain", "Log-1", {}, [f(0, 1)], [True, False]),
    ("domain", "Sin-1", {}, [f(INF, 1)], [True, False]),
    ("domain", "Atan2-17", {}, [f(0, -0.0, 0, INF, 1), f(0, -1, -1, INF, 0)], [True, True, False, True, False]),
    ("domain", "Power-1", {}, [f(-2, -2, 0, 0, 0), f(0.5, 2, 0, -1, 1)], [True, False, True, True, False]),
    ("domain", "Power-1", {}, [f(1, 2, INF, INF), f(INF, INF, 0, 1)], [True, False, True, False]),
    ("indeterminate", "HSwish-4", {}, [f(-INF, INF, NAN)], [True, False, False]),
    ("indeterminate", "Gelu-7", {}, [f(-INF, INF)], [True, False]),
    ("indeterminate", "Mod-1", {}, [f(5, INF, 5, 0), f(INF, 2, 2, 0)], [True, True, False, False]),
    ("indeterminate", "FloorMod-1", {}, [f(-5, INF, 5, 0), f(INF, 2, 2, 0)], [True, True, False, False]),
    ("indeterminate", "SoftSign-9", {}, [f(INF, 1)], [True, False]),
    ("indeterminate", "Swish-4", {}, [f(-INF, INF), None], [True, False]),
    ("indeterminate", "Swish-4", {}, [f(-INF, INF, 1), np.float32(0)], [True, True, False]),
    ("indeterminate", "PReLU-1", {}, [f(-INF, -INF), f(0, 1)], [True, False]),
    ("indeterminate", "HardSigmoid-1", {}, [f(INF, 1), np.float32(0), np.float32(0.5)], [True, False]),
    ("indeterminate", "Elu-1", {"alpha": "inf"}, [f(0, -1, 1)], [True, False, False]),
    ("indeterminate", "Selu-1", {}, [f(0, 1), f(1), f(INF)], [True, False]),
    ("approximation", "Gelu-2", {}, [f(0, 2)], [False, True]),
]
BEYOND: list[Row] = [
    ("beyond-the-page", "Maximum-1", PDPD, [f(1), f(1)], True),
    ("beyond-the-page", "Maximum-1", {}, [f(1), f(1)], False),
    ("beyond-the-page", "Bucketize-3", {}, [f(1), f(1, 1)], True),
    ("beyond-the-page", "Bucketize-3", {}, [f(1), f(1, 2)], False),
    ("beyond-the-page", "Clamp-1", {"min": 300, "max": 400}, [u8(1)], True),
    ("beyond-the-page", "Clamp-1", {"min": 0.2, "max": 0.8}, [u8(1)], True),
    ("beyond-the-page", "Clamp-1", {"min": 0.2, "max": 0.8}, [f(1)], False),
    ("beyond-the-page", "Clamp-1", {"min": "-inf", "max": 300}, [u8(1)], False),
    ("beyond-the-page", "CumSum-3", {}, [f(1), np.array([0])], True),
    ("beyond-the-page", "CumSum-3", {}, [f(1), np.array(0)], False),
    ("beyond-the-page", "FakeQuantize-1", {"levels": 2}, [f(1), np.zeros((1, 1), np.float32), f(1), f(0), f(1)], True),
    ("beyond-the-page", "FakeQuantize-1", {"levels": 2}, [f(1), f(0), f(1), f(0), f(1)], False),
    ("beyond-the-page", "PReLU-1", {}, [f(1), np.float32(2)], True),
    ("beyond-the-page", "PReLU-1", {}, [f(1), f(2)], False),
    ("beyond-the-page", "Select-1", {}, [np.array([True]), np.array([True]), np.array([False])], True),
    ("beyond-the-page", "Select-1", {}, [np.ones((2, 1), bool), f(1), f(2)], True),
    ("beyond-the-page", "Select-1", {}, [np.ones(2, bool), f(1, 2), f(2)], False),
    ("beyond-the-page", "Selu-1", {}, [f(1), np.float32(1), f(1)], True),
    ("beyond-the-page", "Selu-1", {}, [f(1), f(1), f(1)], False),
    ("beyond-the-page", "SoftMax-1", {"axis": 0}, [f(1, 2)], True),
    ("beyond-the-page", "SoftMax-8", {"axis": 0}, [f(1, 2)], False),
    ("beyond-the-page", "ReduceSum-1", {}, [np.float32(1), np.array([0])], True),
    ("beyond-the-page", "ReduceSum-1", {}, [f(1), np.array([0])], False),
]
LINES: list[Row] = [
    ("line-overflow", "ReduceSum-1", {}, [np.stack([i8(100, 27), i8(100, 28)]), np.array([1])], [False, True]),
    ("line-overflow", "ReduceSum-1", {"keep_dims": True}, [i8(100, 28), np.array(-1)], [True]),
    ("line-overflow", "ReduceProd-1", {}, [np.stack([i8(-8, 16), i8(8, 16)]), np.array([1])], [False, True]),
    ("line-overflow", "ReduceL1-4", {}, [i8(-128), np.array([0])], True),
    ("line-overflow", "ReduceL2-4", {}, [np.stack([i8(120, 40), i8(120, 50)]), np.array([1])], [False, True]),
    ("line-overflow", "ReduceSum-1", {}, [i8(100, 28), np.array([], int)], False),
    ("line-overflow", "CumSum-3", {}, [i8(100, 28, -100)], [False, True, True]),
    ("line-overflow", "CumSum-3", {"reverse": True, "exclusive": True}, [i8(1, 28, 100), np.array(0)], [True, False, False]),
    ("line-rounding", "ReduceMean-1", {}, [np.stack([i8(1, 2), i8(1, 3)]), np.array([1])], [True, False]),
    ("line-rounding", "ReduceL2-4", {}, [np.stack([i8(1, 2), i8(3, 4)]), np.array([1])], [True, False]),
    ("line-rounding", "ReduceMean-1", {}, [f(1, 2), np.array([0])], False),
    ("line-rounding", "SoftMax-8", {}, [np.ones((2, 3), np.int8)], True),
    ("line-rounding", "SoftMax-8", {}, [np.ones((2, 1), np.int8)], False),
    ("line-of-nan", "ReduceMax-1", {}, [np.stack([f(1, NAN), f(1, 2)]), np.array([1])], [True, False]),
    ("line-of-nan", "SoftMax-8", {}, [np.stack([f(1, NAN), f(1, -INF), f(INF, 1), f(-INF, -INF)])], [[True], [False], [True], [True]]),
    ("line-of-nan", "SegmentMax-16", {"fill_mode": "zero"}, [f(NAN, 1, 2), np.array([0, 0, 2]), None], [True, False, False]),
    ("nothing", "ReduceMax-1", {}, [np.ones((2, 0)), np.array([1])], True),
    ("nothing", "ReduceMean-1", {}, [np.ones((2, 1)), np.array([1])], False),
    ("nothing", "SegmentMax-16", {"fill_mode": "zero"}, [f(1), np.array([0]), np.array(2)], True),
    ("nothing", "SegmentMax-16", {"fill_mode": "zero"}, [f(1), np.array([1]), np.array(2)], False),
    ("nothing", "SegmentMax-16", {"fill_mode": "lowest"}, [f(1), np.array([1]), None], [True, False]),
    ("nothing", "SegmentMax-16", {"fill_mode": "lowest"}, [i8(1), np.array([1]), None], False),
    ("nothing", "SegmentMax-16", {"fill_mode": "zero"}, [f(), np.array([], int), None], True),
]  # fmt: skip
CONVERSIONS: list[Row] = [
    ("conversion", "Convert-1", to("i8"), [f(2.25, 2.75, -1.5, 128, NAN, INF)], [False, True, True, True, True, True]),
    ("conversion", "Convert-1", to("u8"), [i8(-1, 1)], [False, False]),
    ("conversion", "Convert-1", to("u8"), [np.array([256, -300])], [True, False]),
    ("conversion", "Convert-1", to("u8"), [f(-1, 255)], [True, False]),
    ("conversion", "Convert-1", to("boolean"), [f(0, 1, 0.5, NAN)], [False, False, True, True]),
    ("conversion", "Convert-1", to("f32"), [np.array([True])], False),
    ("conversion", "Convert-1", to("bf16"), [f(1, 0.1, 0.3, 3.4e38, INF, NAN)], [False, False, False, True, False, False]),
    ("conversion", "Convert-1", to("f16"), [np.array([2048, 2049, 2051, 65536])], [False, False, False, True]),
    ("conversion", "Convert-1", to("f8e4m3"), [np.array([300, 310, 500])], [False, True, True]),
    ("conversion", "Convert-1", to("f8e4m3"), [f(448, 449, INF)], [False, True, True]),
    ("conversion", "Convert-1", to("f8e8m0"), [f(2, 0, -2)], [False, True, True]),
    ("conversion", "Convert-1", to("nf4"), [f(1, 0.9)], [False, True]),
    ("conversion", "ConvertLike-1", {}, [i8(-1, 1), u8(1)], [True, False]),
    ("conversion", "ConvertPromoteTypes-14", {"promote_unsafe": True}, [np.array([70000]), np.zeros(1, np.float16)], True),
    ("conversion", "ConvertPromoteTypes-14", {}, [i8(1), f(1)], False),
    ("level-between", "FakeQuantize-1", {"levels": 5}, [f(0.5, 0.6, 9), f(0), f(4), f(0), f(4)], [True, False, False]),
    ("level-between", "FakeConvert-13", to("f8e4m3"), [f(17, 18, 18.1, 500), f(1), f(0)], [True, False, False, True]),
    ("level-between", "FakeConvert-13", to("f8e5m2"), [f(18, 20), f(1), None], [True, False]),
    ("strings", "StringTensorPack-15", {}, [np.array([0, 1]), np.array([1, 2]), u8(195, 97)], [True, False]),
    ("strings", "StringTensorPack-15", {}, [np.array([1, 0]), np.array([2, 1]), u8(97, 97)], True),
    ("strings", "StringTensorUnpack-15", {}, [np.array(["a", "\udcc3"], object)], True),
    ("strings", "StringTensorUnpack-15", {}, [np.array(["a"], object)], False),
]  # fmt: skip
ROWS = [*INTEGERS, *FLOATS, *BEYOND, *LINES, *CONVERSIONS]


@each("behaviour, name, attributes, inputs, expected", ROWS)
def test_where_a_page_gives_no_answer(
    behaviour: str, name: str, attributes: dict[str, Any], inputs: list[np.ndarray | None], expected: object
) -> None:
    found = wording(name)
    assert found is not None
    assert behaviour in found.undefined
    np.testing.assert_array_equal(
        BEHAVIOURS[behaviour](kit.operation(name, attributes), inputs), expected, strict=False
    )


@each("behaviour", sorted({behaviour for behaviour, *_ in ROWS}))
def test_each_behaviour_holds_somewhere_and_not_everywhere(behaviour: str) -> None:
    expected = [np.asarray(row[-1]) for row in ROWS if row[0] == behaviour]
    assert any(array.any() for array in expected)
    assert not all(array.all() for array in expected)


@each("behaviour, name, attributes, inputs, expected", ROWS)
def test_nothing_is_open_where_no_input_is_known(
    behaviour: str, name: str, attributes: dict[str, Any], inputs: list[np.ndarray | None], expected: object
) -> None:
    masks = shown(kit.operation(name, attributes), [None] * len(inputs), behaviour, 1)
    assert not any(mask.any() for mask in masks)

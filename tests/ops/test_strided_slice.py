"""StridedSlice-1."""

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_OP = "StridedSlice-1"
_X = np.arange(5, dtype=np.float32)
_TWO = arange(2, 3)


def _masks(begin="", end="", new="", shrink="", ellipsis=""):
    """Masks as strings of bits; those of no bits are left out, except begin_mask and end_mask, which are required."""
    zeros = "0" * max(map(len, (begin, end, new, shrink, ellipsis)))
    given = {
        "begin_mask": begin or zeros,
        "end_mask": end or zeros,
        "new_axis_mask": new,
        "shrink_axis_mask": shrink,
        "ellipsis_mask": ellipsis,
    }
    return {name: [int(bit) for bit in bits] for name, bits in given.items() if bits}


VALUES = [
    Values("spec-negative", _OP, [arange(2, 3, 4), i64(0, 0, 0), i64(2, 2, -1), i64(1, 1, 1)], arange(2, 3, 4)[0:2, 0:2, 0:-1]),
    Values("spec-new-axis", _OP, [arange(2, 4), i64(1234, 0, -1, 0), i64(1234, 2, 9876, 4), i64(132, 1, 241, 1)],
           arange(2, 4)[None, :, None, :], _masks("0000", "0000", "1010", "0000", "0000")),
    Values("spec-shrink", _OP, [arange(1, 2, 3, 2, 2), i64(0, 0, 0, 0, 0), i64(1, 0, 3, 2, 2), i64(1, 1, 1, 1, 1)],
           arange(1, 2, 3, 2, 2)[:, 0], _masks("00000", "00000", "00000", "01000", "00000")),
    Values("spec-ellipsis", _OP, [arange(3, 1, 2, 1, 4), i64(0, 0, 0), i64(2, 0, 3), i64(1, -1, 1)],
           arange(3, 1, 2, 1, 4)[0:2, ..., 0:3], _masks("000", "000", "000", "000", "010")),
    Values("spec-uneven-masks", _OP, [arange(4, 2, 2, 3), i64(2, 1, 10, 10), i64(123, 1, 10, 2), i64(1, -1, 1, 1)],
           arange(4, 2, 2, 3)[2:, ..., None, :2], _masks("0011", "1100", "001", "0", "01")),
    Values("forwards-and-backwards", _OP, [arange(4, 4), i64(0, 3), i64(4, 0), i64(2, -2)], arange(4, 4)[0:4:2, 3:0:-2]),
    # OpenVINO: as numpy, where the specification's prose takes one element, and leaves out element 0
    Values("begin-is-end", _OP, [_X, i64(1), i64(1)], np.zeros(0, np.float32)),
    Values("backwards-end-mask", _OP, [_X, i64(3), i64(2), i64(-1)], f32([3, 2, 1, 0]), _masks("0", "1")),
    Values("backwards-both-masks", _OP, [_X, i64(3), i64(2), i64(-2)], f32([4, 2, 0]), _masks("1", "1")),
    Values("clamped", _OP, [_X, i64(-(2**63)), i64(2**63 - 1)], _X),
    Values("clamped-backwards", _OP, [_X, i64(2**31 - 1), i64(-(2**31)), i64(-1)], _X[::-1]),
    Values("begin-below-backwards", _OP, [_X, i64(-7), i64(-9), i64(-1)], f32([0])),
    Values("begin-below-backwards-end-above", _OP, [_X, i64(-7), i64(0), i64(-1)], np.zeros(0, np.float32)),
    Values("begin-below-backwards-last-axis", _OP, [_TWO, i64(0, -4), i64(0, -5), i64(1, -2)], _TWO[:, :1],
           _masks(ellipsis="1")),
    Values("shrink-negative", _OP, [_X, i64(-1), i64(-1)], f32(4), _masks(shrink="1")),
    Values("shrink-ignores-stride", _OP, [_X, i64(2), i64(2), i64(0)], f32(2), _masks(shrink="1")),
    # OpenVINO: so the CPU plugin, while the core kernel ignores begin_mask here
    Values("shrink-with-begin-mask", _OP, [_X, i64(3), i64(0), i64(-1)], f32(0), _masks("1", shrink="1")),
    Values("new-axis-over-shrink", _OP, [_X, i64(3), i64(0)], _X[None], _masks(new="1", shrink="1")),
    Values("ellipsis-over-shrink", _OP, [_TWO, i64(0, 1), i64(1, 2)], _TWO[..., 1:2], _masks(shrink="1", ellipsis="1")),
    Values("ellipsis-over-new-axis", _OP, [_TWO, i64(0, 1), i64(1, 2)], _TWO[..., 1:2], _masks(new="1", ellipsis="1")),
    Values("empty-ellipsis", _OP, [_TWO, i64(1, 0, 0), i64(2, 2, 1)], _TWO[1:2, 0:2], _masks(ellipsis="001")),
    Values("new-axis-at-the-end", _OP, [_TWO, i64(1, 0, 0), i64(2, 2, 1)], _TWO[1:2, 0:2, None], _masks(new="001")),
    Values("fewer-entries-than-axes", _OP, [_TWO, i64(1), i64(2)], _TWO[1:]),
    Values("no-entries", _OP, [f32(3), i64(), i64()], f32(3)),
    Values("scalar-new-axis", _OP, [f32(3), i64(0), i64(0)], f32([3]), _masks(new="1")),
    Values("strings", _OP, [np.array(["a", "bc"]), i64(1), i64(1)], np.array("bc"), _masks(shrink="1")),
]  # fmt: skip

SHAPES = [
    Shapes("spec-6d", _OP, ["f32[4,4,4,4,4,4]", "i64{0,1,0,1,3,3}", "i64{4,4,4,4,0,0}", "i64{1,1,2,2,-1,-2}"], "f32[4,3,2,2,3,2]"),
    Shapes("spec-6d-unknown", _OP, ["f32[4,4,4,4,4,4]", "i64[6]", "i64[6]", "i64[6]"], "f32[..4,..4,..4,..4,..4,..4]"),
    Shapes("spec-shrink", _OP, ["f32[1,2,384,640,8]", "i64{0,0,0,0,0}", "i64{1,0,384,640,8}", "i64{1,1,1,1,1}"], "f32[1,384,640,8]", _masks("00000", "00000", "00000", "01000", "00000")),
    Shapes("unknown-dims", _OP, ["f32[?,3..7]", "i64{1,0}", "i64{9,-1}"], "f32[..8,2..6]"),
    Shapes("dims-pass", _OP, ["f32[?,3..7,5]", "i64{0,4}", "i64{1,0}"], "f32[?,3..7,5]", _masks("11", "11")),
    Shapes("unknown-strides-masked", _OP, ["f32[?,6]", "i64{0,0}", "i64{0,0}", "i64[2]"], "f32[?,..6]", _masks("11", "11")),
    Shapes("unknown-bounds", _OP, ["f32[?,6,2]", "i64[2]", "i64[2]"], "f32[?,2]", _masks(shrink="01")),
    Shapes("unknown-count", _OP, ["f32[?,6,2]", "i64[?]", "i64[?]"], "f32[?,..6,..2]"),
    Shapes("unknown-count-shrink", _OP, ["f32[?,6,2]", "i64[?]", "i64[?]"], "f32[...]", _masks(shrink="1")),
    Shapes("count-from-strides", _OP, ["f32[3,6,2]", "i64[?]", "i64[...]", "i64{1}"], "f32[..3,6,2]"),
    Shapes("unknown-rank", _OP, ["f32[...]", "i64{0}", "i64{0}"], "f32[...]", _masks(shrink="1")),
    Shapes("all", _OP, ["f32[2,3,4,5]", "i64{1,1,0,0}", "i64{1,3,0,-1}", "i64{1,2,1,2}"], "f32[1,3,4,2]", _masks(new="0100", shrink="1000", ellipsis="0010")),
    Shapes("carries", _OP, ["i64{1,?,2..5}", "i64{1}", "i64{1}"], "i64[]{?}", _masks(shrink="1")),
    Shapes("carries-slice", _OP, ["i64{1,?,2..5}", "i64{1}", "i64{0}"], "i64{?,2..5}", _masks("0", "1")),
    Shapes("unknown-index", _OP, ["i64{1,2}", "i64{?}", "i64{0}"], "i64[]{unknown}", _masks(shrink="1")),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-scalar-begin", _OP, ["f32[3]", "i64[]{0}", "i64{1}"]),
    Refusal("c1-lengths", _OP, ["f32[3,3]", "i64{0,0}", "i64{1}"]),
    Refusal("c1-strides-length", _OP, ["f32[3,3]", "i64{0,0}", "i64{1,1}", "i64{1}"]),
    Refusal("c2-stride-0", _OP, ["f32[3]", "i64{0}", "i64{1}", "i64{0}"]),
    Refusal("c3-two-ellipses", _OP, ["f32[3,3]", "i64{0,0}", "i64{1,1}"], _masks(ellipsis="11")),
    Refusal("c4-too-many", _OP, ["f32[3]", "i64{0,0}", "i64{1,1}"]),
    Refusal("c4-too-many-with-ellipsis", _OP, ["f32[3]", "i64{0,0,0}", "i64{1,1,1}"], _masks(ellipsis="010")),
    Refusal("c5-outside", _OP, ["f32[3]", "i64{3}", "i64{4}"], _masks(shrink="1")),
    Refusal("c5-outside-negative", _OP, ["f32[..3]", "i64{-4}", "i64{4}"], _masks(shrink="1")),
    Refusal("c5-empty", _OP, ["f32[0]", "i64{0}", "i64{0}"], _masks("1", shrink="1")),
    Refusal("c6-mask", _OP, ["f32[3]", "i64{0}", "i64{1}"], _masks("2")),
    Refusal("ir301-float-begin", _OP, ["f32[3]", "f32[1]", "i64{1}"]),
]

_SLICES = [  # shape, begin, end, strides, masks
    ((5,), (1,), (4,), (1,), _masks("0", "0")),
    ((5,), (4,), (0,), (-2,), _masks("0", "1")),
    ((4, 5), (1, -4), (9, -1), (2, 1), _masks("00", "00")),
    ((4, 5), (1, 3), (9, -1), (1, -1), _masks("01", "01")),
    ((4, 5), (2,), (0,), (1,), _masks("0", "0", shrink="1")),
    ((4, 5), (-2, 1), (0, 9), (1, 3), _masks("00", "00", shrink="10")),
    ((4, 5), (-2, 1), (0, 9), (1, 1), _masks("10", "00", shrink="11")),
    ((4, 5), (0, 1, 1), (0, 3, 4), (1, 1, 1), _masks("000", "000", new="100")),
    ((4, 5), (0, 1, 1), (3, 3, 4), (1, 1, 1), _masks("000", "010", new="010")),
    ((2, 3, 4), (0, 1), (1, 3), (1, 2), _masks("00", "00", ellipsis="10")),
    ((2, 3, 4, 2), (1, 0, 0), (2, 0, 1), (1, 1, 1), _masks("000", "000", ellipsis="010")),
    ((2, 3, 4, 5), (1, 1, 0, 0), (1, 3, 0, -1), (1, 2, 1, 2), _masks("0000", "0000", "0100", "1000", "0010")),
    ((2, 3, 4, 2, 2), (1, 0, 0, 1), (2, 3, 2, 0), (1, -1, 1, 1), _masks("0100", "0100", "0000", "0000", "0000")),
    ((0, 3), (0, 1), (1, 3), (1, 1), _masks("00", "00")),
    ((2, 3), (), (), (), _masks()),
]  # fmt: skip

CASES = [
    Case(
        f"{np.dtype(t).name}-{number}-{list(shape)}",
        _OP,
        [random(*shape, dtype=t), i64(*begin), i64(*end), i64(*strides)],
        {"begin_mask": [], "end_mask": [], **masks},
        shapes=[1, 2, 3],
    )
    for number, (shape, begin, end, strides, masks) in enumerate(_SLICES)
    for t in ((*NUMERIC, np.bool_) if number in (5, 11) else NUMERIC[:1])
] + [
    Case("no-strides", _OP, [_TWO, i64(1, 0), i64(2, 2)], _masks("00", "00"), shapes=[1, 2]),
    Case("i32", _OP, [_TWO, np.array([1, 0], np.int32), np.array([2, 2], np.int32)], _masks("00", "00"), shapes=[1, 2]),
]


def test_c5_when_only_a_run_can_see_it():
    shrink = operation(_OP, _masks(shrink="1"))
    with pytest.raises(Refused) as caught:
        shrink.run(_X, i64(5), i64(0))
    assert caught.value.label == "C5"

"""Slice-8."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from irrun.ops._slicing import sliced
from irrun.types import INF, Dim
from kit import *

_TEN = np.arange(10, dtype=np.float32)
_MAX, _MIN = 2**31 - 1, -(2**31)

VALUES = [
    Values("spec-1", "Slice-8", [_TEN, i64(1), i64(8), i64(1), i64(0)], f32([1, 2, 3, 4, 5, 6, 7])),
    Values("spec-2", "Slice-8", [_TEN, i64(1), i64(8), i64(1)], f32([1, 2, 3, 4, 5, 6, 7])),
    Values("spec-3", "Slice-8", [_TEN, i64(1), i64(8), i64(2), i64(0)], f32([1, 3, 5, 7])),
    Values("spec-4", "Slice-8", [_TEN, i64(-100), i64(100), i64(1), i64(0)], _TEN),
    Values("spec-5", "Slice-8", [_TEN, i64(9), i64(-11), i64(-1), i64(0)], _TEN[::-1]),
    Values("spec-6", "Slice-8", [_TEN, i64(9), i64(0), i64(-1), i64(0)], f32([9, 8, 7, 6, 5, 4, 3, 2, 1])),
    Values("spec-7", "Slice-8", [_TEN, i64(9), i64(-10), i64(-1), i64(0)], f32([9, 8, 7, 6, 5, 4, 3, 2, 1])),
    Values("spec-8", "Slice-8", [_TEN, i64(9), i64(-11), i64(-2), i64(0)], f32([9, 7, 5, 3, 1])),
    Values("spec-9", "Slice-8", [_TEN, i64(100), i64(-100), i64(-1), i64(0)], _TEN[::-1]),
    Values("spec-10", "Slice-8", [_TEN.reshape(2, 5), i64(0, 1), i64(2, 4), i64(1, 2), i64(0, 1)], f32([[1, 3], [6, 8]])),
    Values("int-max", "Slice-8", [_TEN, i64(2**63 - 1), i64(-(2**63)), i64(-4)], f32([9, 5, 1])),
    Values("axes-permuted", "Slice-8", [_TEN.reshape(2, 5), i64(0, 1), i64(2, 2), i64(1, 1), i64(-1, 0)], f32([[5, 6]])),
    Values("no-bounds", "Slice-8", [_TEN, i64(), i64(), i64()], _TEN),
    *(Values(f"type-{np.dtype(t).name}", "Slice-8", [np.array([1, 0, 1], t), i64(1), i64(3), i64(1)], np.array([0, 1], t))
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.uint4, np.uint64, np.bool_)),
    Values("strings", "Slice-8", [np.array(["a", "bc"]), i64(1), i64(2), i64(1)], np.array(["bc"])),
]  # fmt: skip

SHAPES = [
    Shapes("spec-11", "Slice-8", ["f32[20,10,5]", "i64{0,0,0}", "i64{4,10,5}", "i64{1,1,1}", "i64{0,1,2}"], "f32[4,10,5]"),
    Shapes("spec-12", "Slice-8", ["f32[20,10,5]", "i64{0,0}", "i64{4,10}", "i64{1,1}", "i64{0,1}"], "f32[4,10,5]"),
    Shapes("unknown-dim", "Slice-8", ["f32[?,3]", "i64{1}", "i64{4}", "i64{1}"], "f32[..3,3]"),
    Shapes("unknown-dim-to-the-end", "Slice-8", ["f32[?]", "i64{1}", f"i64{{{_MAX}}}", "i64{1}"], "f32[?]"),
    Shapes("interval", "Slice-8", ["f32[5..9]", "i64{1}", f"i64{{{_MAX}}}", "i64{2}"], "f32[2..4]"),
    Shapes("last-three", "Slice-8", ["f32[?]", "i64{-3}", f"i64{{{_MAX}}}", "i64{1}"], "f32[..3]"),
    Shapes("all-but-one", "Slice-8", ["f32[4..]", "i64{0}", "i64{-1}", "i64{1}"], "f32[3..]"),
    Shapes("reversed", "Slice-8", ["f32[4..7]", f"i64{{{_MAX}}}", f"i64{{{_MIN}}}", "i64{-1}"], "f32[4..7]"),
    Shapes("unknown-start", "Slice-8", ["f32[10]", "i64[1]", "i64{8}", "i64{1}"], "f32[..8]"),
    Shapes("interval-stop", "Slice-8", ["f32[10]", "i64{1}", "i64{3..5}", "i64{1}"], "f32[2..4]"),
    Shapes("unknown-stop", "Slice-8", ["f32[10]", "i64{4}", "i64{?}", "i64{1}"], "f32[..6]"),
    Shapes("unknown-step", "Slice-8", ["f32[10,4]", "i64{0}", "i64{8}", "i64[1]"], "f32[..10,4]"),
    Shapes("unknown-axes", "Slice-8", ["f32[10,4]", "i64{0}", "i64{8}", "i64{1}", "i64[1]"], "f32[..10,..4]"),
    Shapes("unknown-count", "Slice-8", ["f32[10,4]", "i64[?]", "i64[?]", "i64[?]"], "f32[..10,..4]"),
    Shapes("unknown-rank", "Slice-8", ["f32[...]", "i64{0}", "i64{8}", "i64{1}"], "f32[...]"),
    Shapes("carries", "Slice-8", ["i64{1,?,2..5,3}", "i64{1}", "i64{3}", "i64{1}", "i64{0}"], "i64{?,2..5}"),
    Shapes("unknown-contents", "Slice-8", ["i64{1,2}", "i64{?}", "i64{2}", "i64{1}"], "i64[..2]"),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-scalar", "Slice-8", ["f32[]", "i64{}", "i64{}", "i64{}"]),
    Refusal("c2-start-scalar", "Slice-8", ["f32[3]", "i64[]{0}", "i64{1}", "i64{1}"]),
    Refusal("c2-lengths", "Slice-8", ["f32[3,3]", "i64{0}", "i64{1,1}", "i64{1}"]),
    Refusal("c2-axes-length", "Slice-8", ["f32[3,3]", "i64{0}", "i64{1}", "i64{1}", "i64{0,1}"]),
    Refusal("c2-too-many", "Slice-8", ["f32[3]", "i64[2]", "i64[2]", "i64[2]"]),
    Refusal("c3-step-0", "Slice-8", ["f32[3]", "i64{0}", "i64{1}", "i64{0}"]),
    Refusal("c4-axis", "Slice-8", ["f32[3]", "i64{0}", "i64{1}", "i64{1}", "i64{1}"]),
    Refusal("c4-axis-twice", "Slice-8", ["f32[3,3]", "i64{0,0}", "i64{1,1}", "i64{1,1}", "i64{0,-2}"]),
    Refusal("ir301-float-start", "Slice-8", ["f32[3]", "f32[1]", "i64{1}", "i64{1}"]),
    Refusal("ir205-no-step", "Slice-8", ["f32[3]", "i64{0}", "i64{1}"]),
]

_SLICES = [  # shape, start, stop, step, axes
    ((5,), (1,), (4,), (1,), (0,)), ((5,), (_MAX,), (_MIN,), (-2,), (0,)), ((5,), (3,), (3,), (1,), (-1,)),
    ((4, 5), (1, -4), (9, -1), (2, 1), (0, 1)), ((4, 5), (-1,), (-9,), (-1,), (1,)),
    ((2, 3, 4), (0, 1), (2, 4), (1, 2), (2, 1)), ((2, 3, 4, 2), (2, 0), (-3, 1), (-1, 1), (-2, 0)),
    ((2, 3, 2, 2, 4), (1, 1), (2, 4), (1, 2), (1, 4)), ((0, 3), (0, 2), (1, -5), (1, -1), (0, 1)), ((3,), (), (), (), ()),
]  # fmt: skip

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{list(start)}-{list(stop)}-{list(step)}-{list(axes)}",
        "Slice-8",
        [random(*shape, dtype=t), i64(*start), i64(*stop), i64(*step), i64(*axes)],
        shapes=[1, 2, 3, 4],
    )
    for number, (shape, start, stop, step, axes) in enumerate(_SLICES)
    for t in ((*NUMERIC, np.bool_) if number in (1, 5) else NUMERIC[:1])
] + [
    Case("i32", "Slice-8", [arange(2, 3), *(np.array([n], np.int32) for n in (0, 1, 1, 1))], shapes=[1, 2, 3, 4]),
    Case("u8", "Slice-8", [arange(300), *(np.array([n], np.uint8) for n in (253, 255, 1))], shapes=[1, 2, 3]),
]  # fmt: skip


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_lengths_of_unknown_dims(step):
    bounds = [None, *range(-6, 7)]
    for start, stop in product(bounds, bounds):
        lengths = [len(range(n)[start:stop:step]) for n in range(8)]
        given = [None if b is None else Dim(b) for b in (start, stop)]
        for lo, hi in ((0, 7), (0, 3), (2, 5), (4, 4), (6, 7)):
            found = sliced(Dim(lo, hi), given[0], given[1], Dim(step))
            assert (found.lo, found.hi) == (min(lengths[lo : hi + 1]), max(lengths[lo : hi + 1])), (lo, hi, start, stop)
        endless = sliced(Dim(3, INF), given[0], given[1], Dim(step))
        assert endless.lo == min(len(range(n)[start:stop:step]) for n in range(3, 30))
        grows = len(range(100)[start:stop:step]) > 12
        assert endless.hi == (INF if grows else max(len(range(n)[start:stop:step]) for n in range(3, 30)))


def test_lengths_of_unknown_bounds():
    for lo, hi, n, step in product(range(-4, 5), range(-4, 5), range(5), (1, 2, -1, -2)):
        if lo <= hi:
            of_start = sliced(Dim(n), Dim(lo, hi), None, Dim(step))
            of_stop = sliced(Dim(n), None, Dim(lo, hi), Dim(step))
            for bound in range(lo, hi + 1):
                assert of_start.fits(len(range(n)[bound::step]))
                assert of_stop.fits(len(range(n)[:bound:step]))


def test_a_dim_passes_through():
    seq = Dim.unknown("seq")
    assert sliced(seq, Dim(0), Dim(_MAX), Dim(1)) is seq
    assert sliced(seq, None, None, Dim(-1)) is seq
    assert sliced(seq, Dim(0), seq, Dim(1)).same(seq)
    assert str(sliced(seq, Dim(1), None, Dim(2)).term) == "ceil(max(seq - min(1, seq), 0) / 2)"
    assert str(sliced(seq, None, Dim(-1), Dim(1)).term) == "max(seq - 1, 0)"

"""IRDFT-9."""

from collections.abc import Sequence

import numpy as np

from fourier import cases, complex, refusals_of, whole
from kit import *

DATA = random(3, 4, 2, dtype=np.float64)


def irdft(data: np.ndarray, axes: Sequence[int], sizes: Sequence[int] | None = None) -> np.ndarray:
    wanted = whole(data.shape, axes, sizes)
    if wanted is not None and sizes is not None and sizes[-1] == -1:
        wanted[-1] = 2 * (data.shape[axes[-1]] - 1)
    return np.fft.irfftn(complex(data), wanted, axes)


VALUES = [
    Values("step", "IRDFT-9", [f32([[1, 0], [0, -1], [-1, 0]]), i64(0)], [0, 1, 0, 0]),
    Values("odd", "IRDFT-9", [f32([[1, 0], [1, 0]]), i64(-1), i64(3)], [1, 0, 0]),
    # the formula of the specification would mirror first and then cut
    Values("cut", "IRDFT-9", [f32([[1, 0], [0, -1], [5, 5]]), i64(0), i64(2)], [0.5, 0.5]),
    Values("padded", "IRDFT-9", [f32([[4, 0]]), i64(0), i64(4)], [1, 1, 1, 1]),
    Values("f64", "IRDFT-9", [DATA, i64(1, 0), i64(-1, 5)], irdft(DATA, (1, 0), (-1, 5)), rtol=1e-12),
    Values("of-one", "IRDFT-9", [np.ones((3, 1, 2)), i64(1)], np.empty((3, 0))),
    Values("no-batch", "IRDFT-9", [np.empty((0, 4, 2)), i64(1)], np.zeros((0, 6))),
]

SHAPES = [
    Shapes("spec-1", "IRDFT-9", ["f32[1,161,161,2]", "i64{1,2}"], "f32[1,161,320]"),
    Shapes("spec-2", "IRDFT-9", ["f32[161,161,2]", "i64{0,1}"], "f32[161,320]"),
    Shapes("spec-3", "IRDFT-9", ["f32[1,161,161,2]", "i64{1,2}", "i64{512,100}"], "f32[1,512,100]"),
    Shapes("spec-4", "IRDFT-9", ["f32[161,161,2]", "i64{0,1}", "i64{512,100}"], "f32[512,100]"),
    Shapes("spec-5", "IRDFT-9", ["f32[16,768,580,320,2]", "i64{3,1,2}", "i64{170,-1,1024}"], "f32[16,768,1024,170]"),
    Shapes("spec-6", "IRDFT-9", ["f32[16,768,580,320,2]", "i64{3,0,2}", "i64{258,-1,2056}"], "f32[16,768,2056,258]"),
    Shapes("dims", "IRDFT-9", ["f32[?,3..5,?]", "i64{-1}"], "f32[?,4..8]"),
    Shapes("any-size", "IRDFT-9", ["f32[3,4,2]", "i64{0}", "i64[1]"], "f32[?,4]"),
    Shapes("any-axes", "IRDFT-9", ["f32[3,4,2]", "i64[2]"], "f32[?,?]"),
    Shapes("unknown-rank", "IRDFT-9", ["f32[...]", "i64{0}"], "f32[...]"),
]

REFUSALS = [
    *refusals_of("IRDFT-9"),
    Refusal("c1-parts", "IRDFT-9", ["f32[4,3]", "i64[1]"]),
    Refusal("c2-empty", "IRDFT-9", ["f32[4,3,2]", "i64[0]"]),
]

# OpenVINO: reads beyond its data where it must be padded, and refuses a size of -1
CASES = cases("IRDFT-9", (3, 4, 2), irdft, wrong=[6, 7, 8])

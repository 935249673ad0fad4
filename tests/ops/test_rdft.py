"""RDFT-9."""

from collections.abc import Sequence

import numpy as np

from fourier import cases, parts, refusals_of, whole
from kit import *

DATA = random(3, 4, dtype=np.float64)


def rdft(data: np.ndarray, axes: Sequence[int], sizes: Sequence[int] | None = None) -> np.ndarray:
    return parts(np.fft.rfftn(data.astype(np.float64), whole(data.shape, axes, sizes), axes))


VALUES = [
    Values("step", "RDFT-9", [f32([0, 1, 0, 0]), i64(0)], [[1, 0], [0, -1], [-1, 0]]),
    Values("odd", "RDFT-9", [f32([1, 0, 0]), i64(-1)], [[1, 0], [1, 0]]),
    Values("padded", "RDFT-9", [f32([0, 1]), i64(0), i64(4)], [[1, 0], [0, -1], [-1, 0]]),
    Values("f64", "RDFT-9", [DATA, i64(1, 0), i64(-1, 5)], rdft(DATA, (1, 0), (-1, 5)), rtol=1e-12),
    Values("of-nothing", "RDFT-9", [np.empty((3, 0)), i64(1)], np.zeros((3, 1, 2))),
    Values("no-batch", "RDFT-9", [np.empty((0, 4)), i64(1)], np.zeros((0, 3, 2))),
]

SHAPES = [
    Shapes("spec-1", "RDFT-9", ["f32[1,320,320]", "i64{1,2}"], "f32[1,320,161,2]"),
    Shapes("spec-2", "RDFT-9", ["f32[320,320]", "i64{0,1}"], "f32[320,161,2]"),
    Shapes("spec-3", "RDFT-9", ["f32[1,320,320]", "i64{1,2}", "i64{512,100}"], "f32[1,512,51,2]"),
    Shapes("spec-4", "RDFT-9", ["f32[320,320]", "i64{0,1}", "i64{512,100}"], "f32[512,51,2]"),
    Shapes("spec-5", "RDFT-9", ["f32[16,768,580,320]", "i64{3,1,2}", "i64{170,-1,1024}"], "f32[16,768,513,170,2]"),
    Shapes("spec-6", "RDFT-9", ["f32[16,768,580,320]", "i64{3,0,2}", "i64{258,-1,2056}"], "f32[16,768,1029,258,2]"),
    Shapes("dims", "RDFT-9", ["f32[?,3..5]", "i64{-1}"], "f32[?,2..3,2]"),
    Shapes("any-size", "RDFT-9", ["f32[3,4]", "i64{0}", "i64[1]"], "f32[1..,4,2]"),
    Shapes("any-axes", "RDFT-9", ["f32[3,4]", "i64[2]"], "f32[?,?,2]"),
    Shapes("unknown-rank", "RDFT-9", ["f32[...]", "i64{0}"], "f32[...]"),
]

REFUSALS = [*refusals_of("RDFT-9"), Refusal("c2-empty", "RDFT-9", ["f32[4,3]", "i64[0]"])]

# OpenVINO: reads beyond its data where it must be padded, and refuses a size of -1
CASES = cases("RDFT-9", (3, 4), rdft, wrong=[6, 7, 8])

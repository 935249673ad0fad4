"""IDFT-7."""

from collections.abc import Sequence

import numpy as np

from fourier import cases, complex, parts, refusals_of, whole
from kit import *

DATA = random(3, 4, 2, dtype=np.float64)


def idft(data: np.ndarray, axes: Sequence[int], sizes: Sequence[int] | None = None) -> np.ndarray:
    return parts(np.fft.ifftn(complex(data), whole(data.shape, axes, sizes), axes))


VALUES = [
    Values("impulse", "IDFT-7", [f32([[1, 0]] * 4), i64(0)], [[1, 0], [0, 0], [0, 0], [0, 0]]),
    Values("step", "IDFT-7", [f32([[1, 0], [0, -1], [-1, 0], [0, 1]]), i64(0)], [[0, 0], [1, 0], [0, 0], [0, 0]]),
    Values("padded", "IDFT-7", [f32([[4, 0]]), i64(0), i64(4)], [[1, 0]] * 4),
    Values("cut", "IDFT-7", [f32([[1, 2], [5, 5]]), i64(0), i64(1)], [[1, 2]]),
    Values("no-axes", "IDFT-7", [DATA, i64()], DATA),
    Values("f64", "IDFT-7", [DATA, i64(1, 0), i64(-1, 5)], idft(DATA, (1, 0), (-1, 5)), rtol=1e-12),
    Values("of-size-0", "IDFT-7", [DATA, i64(0), i64(0)], np.empty((0, 4, 2))),
    Values("of-nothing", "IDFT-7", [np.empty((0, 4, 2)), i64(0), i64(2)], np.zeros((2, 4, 2))),
]

SHAPES = [
    Shapes("spec-1", "IDFT-7", ["f32[1,320,320,2]", "i64{1,2}"], "f32[1,320,320,2]"),
    Shapes("spec-2", "IDFT-7", ["f32[320,320,2]", "i64{0,1}"], "f32[320,320,2]"),
    Shapes("spec-3", "IDFT-7", ["f32[1,320,320,2]", "i64{1,2}", "i64{512,100}"], "f32[1,512,100,2]"),
    Shapes("spec-4", "IDFT-7", ["f32[320,320,2]", "i64{0,1}", "i64{512,100}"], "f32[512,100,2]"),
    Shapes("spec-5", "IDFT-7", ["f32[16,768,580,320,2]", "i64{3,1,2}", "i64{170,-1,1024}"], "f32[16,768,1024,170,2]"),
    Shapes("spec-6", "IDFT-7", ["f32[16,768,580,320,2]", "i64{3,0,2}", "i64{258,-1,2056}"], "f32[16,768,2056,258,2]"),
    Shapes("dims", "IDFT-7", ["f32[?,3..5,?]", "i64{-1}", "i32{2..3}"], "f32[?,2..3,2]"),
    Shapes("any-size", "IDFT-7", ["f32[3,4,2]", "i64{0}", "i64[1]"], "f32[?,4,2]"),
    Shapes("any-axes", "IDFT-7", ["f32[3,4,2]", "i64[2]"], "f32[3,4,2]"),
    Shapes("any-axes-and-sizes", "IDFT-7", ["f32[3,4,2]", "i64[?]", "i64{7}"], "f32[?,?,2]"),
    Shapes("unknown-rank", "IDFT-7", ["f32[...]", "i64{0}"], "f32[...]"),
]

REFUSALS = [*refusals_of("IDFT-7"), Refusal("c1-parts", "IDFT-7", ["f32[4,3]", "i64[1]"])]

CASES = cases("IDFT-7", (3, 4, 2), idft)

"""DFT-7."""

from collections.abc import Sequence

import numpy as np

from fourier import cases, complex, parts, refusals_of, whole
from kit import *

DATA = random(3, 4, 2, dtype=np.float64)


def dft(data: np.ndarray, axes: Sequence[int], sizes: Sequence[int] | None = None) -> np.ndarray:
    return parts(np.fft.fftn(complex(data), whole(data.shape, axes, sizes), axes))


VALUES = [
    Values("impulse", "DFT-7", [f32([[1, 0], [0, 0], [0, 0]]), i64(0)], [[1, 0]] * 3),
    Values("step", "DFT-7", [f32([[0, 0], [1, 0], [0, 0], [0, 0]]), i64(0)], [[1, 0], [0, -1], [-1, 0], [0, 1]]),
    Values("padded", "DFT-7", [f32([[0, 0], [1, 0]]), i64(0), i64(4)], [[1, 0], [0, -1], [-1, 0], [0, 1]]),
    Values("cut", "DFT-7", [f32([[1, 2], [5, 5]]), i64(0), i64(1)], [[1, 2]]),
    Values("no-axes", "DFT-7", [DATA, i64()], DATA),
    Values("f64", "DFT-7", [DATA, i64(1, 0), i64(-1, 5)], dft(DATA, (1, 0), (-1, 5)), rtol=1e-12),
    Values("of-size-0", "DFT-7", [DATA, i64(0), i64(0)], np.empty((0, 4, 2))),
    Values("of-nothing", "DFT-7", [np.empty((0, 4, 2)), i64(0), i64(2)], np.zeros((2, 4, 2))),
]

SHAPES = [
    Shapes("spec-1", "DFT-7", ["f32[1,320,320,2]", "i64{1,2}"], "f32[1,320,320,2]"),
    Shapes("spec-2", "DFT-7", ["f32[320,320,2]", "i64{0,1}"], "f32[320,320,2]"),
    Shapes("spec-3", "DFT-7", ["f32[1,320,320,2]", "i64{1,2}", "i64{512,100}"], "f32[1,512,100,2]"),
    Shapes("spec-4", "DFT-7", ["f32[320,320,2]", "i64{0,1}", "i64{512,100}"], "f32[512,100,2]"),
    Shapes("spec-5", "DFT-7", ["f32[16,768,580,320,2]", "i64{3,1,2}", "i64{170,-1,1024}"], "f32[16,768,1024,170,2]"),
    Shapes("spec-6", "DFT-7", ["f32[16,768,580,320,2]", "i64{3,0,2}", "i64{258,-1,2056}"], "f32[16,768,2056,258,2]"),
    Shapes("dims", "DFT-7", ["f32[?,3..5,?]", "i64{-1}", "i32{2..3}"], "f32[?,2..3,2]"),
    Shapes("any-size", "DFT-7", ["f32[3,4,2]", "i64{0}", "i64[1]"], "f32[?,4,2]"),
    Shapes("any-axes", "DFT-7", ["f32[3,4,2]", "i64[2]"], "f32[3,4,2]"),
    Shapes("any-axes-and-sizes", "DFT-7", ["f32[3,4,2]", "i64[?]", "i64{7}"], "f32[?,?,2]"),
    Shapes("unknown-rank", "DFT-7", ["f32[...]", "i64{0}"], "f32[...]"),
]

REFUSALS = [*refusals_of("DFT-7"), Refusal("c1-parts", "DFT-7", ["f32[4,3]", "i64[1]"])]

CASES = cases("DFT-7", (3, 4, 2), dft)

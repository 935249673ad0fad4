"""ISTFT-16."""

import numpy as np

from irrun.opdef import Op
from kit import *

PLAIN = {"center": False, "normalized": False}
CENTER = {"center": True, "normalized": False}
NORMALIZED = {"center": False, "normalized": True}
ONES = np.ones(4)

VALUES = [
    Values("one-frame", "ISTFT-16", [[[[1.0, 0]], [[0, -1]], [[-1, 0]]], ONES, 4, 1], [0, 1, 0, 0], PLAIN),
    Values("no-batch", "ISTFT-16", [np.ones((0, 3, 1, 2)), ONES, 4, 1], np.ones((0, 4)), PLAIN),
    Values("normalized", "ISTFT-16", [[[[1.0, 0]], [[0, -1]], [[-1, 0]]], ONES, 4, 1], [0, 2, 0, 0], NORMALIZED),
    Values("overlap", "ISTFT-16", [[[[3.0, 0], [9, 0]], [[-1, 0], [-1, 0]]], [1.0, 1], 2, 1], [1, 3, 5], PLAIN),
    Values("apart", "ISTFT-16", [[[[3.0, 0], [9, 0]], [[-1, 0], [-1, 0]]], [1.0, 1], 2, 3], [1, 2, 0, 4, 5], PLAIN),
    Values("center", "ISTFT-16", [[[[3.0, 0], [9, 0]], [[-1, 0], [-1, 0]]], [1.0, 1], 2, 3], [2, 0, 4], CENTER),
    Values("longer", "ISTFT-16", [[[[3.0, 0], [9, 0]], [[-1, 0], [-1, 0]]], [1.0, 1], 2, 1, 5], [1, 3, 5, 0, 0], PLAIN),
    Values("shorter", "ISTFT-16", [[[[3.0, 0], [9, 0]], [[-1, 0], [-1, 0]]], [1.0, 1], 2, 1, [2]], [1, 3], PLAIN),
    Values("narrow-window", "ISTFT-16", [[[[1.0, 0]], [[0, -1]], [[-1, 0]]], [2.0, 4], 4, 1], [0, 0.5, 0, 0], PLAIN),
    # OpenVINO: makes the signal of an odd frame, centered, one longer than the specification
    Values("odd-center", "ISTFT-16", [[[[3.0, 0], [3, 0]], [[0, 0], [0, 0]]], np.ones(3), 3, 2], [1, 1], CENTER),
]

SHAPES = [
    Shapes("spec-1", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[56]", PLAIN),
    Shapes("spec-2", "ISTFT-16", ["f32[4,6,16,2]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[4,56]", PLAIN),
    Shapes("spec-3", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[45]", CENTER),
    Shapes("spec-4", "ISTFT-16", ["f32[4,6,16,2]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[4,45]", CENTER),
    Shapes("spec-5", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]{3}", "i64[]{64}"], "f32[64]", PLAIN),
    Shapes("dims", "ISTFT-16", ["f32[?,?,10..16,?]", "f32[?]", "i64[]{11}", "i32[]{3}"], "f32[?,38..56]", PLAIN),
    Shapes("unknown-length", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]{3}", "i64[1]"], "f32[?]", PLAIN),
    Shapes("unknown-step", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]"], "f32[26..]", PLAIN),
    Shapes("unknown-rank", "ISTFT-16", ["f32[...]", "f32[7]", "i64[]{11}", "i64[]{3}", "i64[]{64}"], "f32[...]", PLAIN),
]

REFUSALS = [
    Refusal("c1-rank", "ISTFT-16", ["f32[6,2]", "f32[7]", "i64[]", "i64[]"], PLAIN),
    Refusal("c1-parts", "ISTFT-16", ["f32[6,16,3]", "f32[7]", "i64[]", "i64[]"], PLAIN),
    Refusal("c2-rank", "ISTFT-16", ["f32[6,16,2]", "f32[]", "i64[]", "i64[]"], PLAIN),
    Refusal("c2-too-long", "ISTFT-16", ["f32[6,16,2]", "f32[12]", "i64[]{11}", "i64[]"], PLAIN),
    Refusal("c3-1d", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64{11}", "i64[]"], PLAIN),
    Refusal("c3-results", "ISTFT-16", ["f32[5,16,2]", "f32[7]", "i64[]{11}", "i64[]"], PLAIN),
    Refusal("c4-zero", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]{0}"], PLAIN),
    Refusal("c5-two", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]", "i64[2]"], PLAIN),
    Refusal("c5-negative", "ISTFT-16", ["f32[6,16,2]", "f32[7]", "i64[]{11}", "i64[]", "i64[]{-1}"], PLAIN),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{window}-{size}-{step}-{center}-{normalized}-{list(length)}",
        "ISTFT-16",
        [
            random(*shape, dtype=t),
            1 + np.abs(random(window, dtype=t, seed=1)),
            np.array(size),
            np.array(step),
            *(np.array(n) for n in length),
        ],
        {"center": center, "normalized": normalized},
        shapes=[2, 3, *([4] if length else [])],
    )
    for center, normalized, length in [
        (False, False, ()), (True, False, ()), (False, True, ()), (True, True, (5,)), (False, False, (90,)), (True, False, (90,)),
    ]
    for shape, window, size, step in [
        ((6, 16, 2), 7, 10, 3), ((4, 6, 16, 2), 7, 11, 3), ((9, 3, 2), 16, 16, 16), ((1, 4, 20, 2), 5, 6, 1), ((4, 5, 2), 6, 6, 7),
        ((4, 1, 2), 6, 6, 2),
    ]
    for t in (np.float32, np.float16)
    # OpenVINO: makes the signal of an odd frame, centered, one longer than the specification
    if size % 2 == 0 or not center or length
]  # fmt: skip


def test_it_undoes_stft():
    signal, window = random(2, 50, dtype=np.float64), 1 + np.abs(random(6, dtype=np.float64))
    size, step = np.array(8), np.array(3)
    stft: Op = operation("STFT-15", {"transpose_frames": True})
    found = operation("ISTFT-16", PLAIN).run(stft.run(signal, window, size, step), window, size, step)
    np.testing.assert_allclose(found[:, 1:-1], signal[:, 1:-1])  # the narrow window hides the ends

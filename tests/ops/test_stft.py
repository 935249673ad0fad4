"""STFT-15."""

import numpy as np

from fourier import parts
from kit import *

FRAMES_FIRST, RESULTS_FIRST = {"transpose_frames": False}, {"transpose_frames": True}


def stft(signal: np.ndarray, window: np.ndarray, size: int, step: int) -> np.ndarray:
    """Frame by frame."""
    left = (size - len(window)) // 2
    padded = np.zeros(size)
    padded[left : left + len(window)] = window
    starts = range(0, signal.shape[-1] - size + 1, step)
    return parts(np.fft.rfft(np.stack([signal[..., n : n + size] * padded for n in starts], -2)))


X, W = random(2, 20, dtype=np.float64), random(5, dtype=np.float64)

VALUES = [
    Values("one-frame", "STFT-15", [[0.0, 1, 0, 0], np.ones(4), 4, 1], [[[1, 0], [0, -1], [-1, 0]]], FRAMES_FIRST),
    Values("window", "STFT-15", [[0.0, 1, 0, 0], [3.0], 4, 1], [[[3, 0], [0, -3], [-3, 0]]], FRAMES_FIRST),
    Values(
        "two-frames",
        "STFT-15",
        [[1.0, 2, 3, 4, 5], [1.0, 1], 2, 3],
        [[[3, 0], [-1, 0]], [[9, 0], [-1, 0]]],
        FRAMES_FIRST,
    ),
    Values(
        "transposed",
        "STFT-15",
        [[1.0, 2, 3, 4, 5], [1.0, 1], 2, 3],
        [[[3, 0], [9, 0]], [[-1, 0], [-1, 0]]],
        RESULTS_FIRST,
    ),
    Values("f64", "STFT-15", [X, W, 8, 3], stft(X, W, 8, 3), FRAMES_FIRST, rtol=1e-12),
    Values("no-batch", "STFT-15", [X[:0], W, 8, 3], np.empty((0, 5, 5, 2)), FRAMES_FIRST),
]

SHAPES = [
    Shapes("spec-1", "STFT-15", ["f32[56]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[16,6,2]", FRAMES_FIRST),
    Shapes("spec-2", "STFT-15", ["f32[56]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[6,16,2]", RESULTS_FIRST),
    Shapes("spec-3", "STFT-15", ["f32[3,56]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[3,16,6,2]", FRAMES_FIRST),
    Shapes("spec-4", "STFT-15", ["f32[3,56]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[3,6,16,2]", RESULTS_FIRST),
    Shapes("dims", "STFT-15", ["f32[?,20..56]", "f32[?]", "i64[]{11}", "i32[]{3}"], "f32[?,4..16,6,2]", FRAMES_FIRST),
    Shapes("unknown-size", "STFT-15", ["f32[56]", "f32[7]", "i64[]", "i64[]{3}"], "f32[1..19,1..,2]", FRAMES_FIRST),
    Shapes("unknown-step", "STFT-15", ["f32[56]", "f32[7]", "i64[]{11}", "i64[...]"], "f32[1..46,6,2]", FRAMES_FIRST),
    Shapes("unknown-rank", "STFT-15", ["f32[...]", "f32[7]", "i64[]{11}", "i64[]{3}"], "f32[...]", FRAMES_FIRST),
]

REFUSALS = [
    Refusal("c1-rank", "STFT-15", ["f32[1,3,56]", "f32[7]", "i64[]", "i64[]"], FRAMES_FIRST),
    Refusal("c2-rank", "STFT-15", ["f32[56]", "f32[1,7]", "i64[]", "i64[]"], FRAMES_FIRST),
    Refusal("c2-too-long", "STFT-15", ["f32[56]", "f32[12]", "i64[]{11}", "i64[]"], FRAMES_FIRST),
    Refusal("c3-1d", "STFT-15", ["f32[56]", "f32[7]", "i64{11}", "i64[]"], FRAMES_FIRST),
    Refusal("c3-zero", "STFT-15", ["f32[56]", "f32[...]", "i64[]{0}", "i64[]"], FRAMES_FIRST),
    Refusal("c3-too-long", "STFT-15", ["f32[10]", "f32[7]", "i64[]{11}", "i64[]"], FRAMES_FIRST),
    Refusal("c4-1d", "STFT-15", ["f32[56]", "f32[7]", "i64[]{11}", "i64[1]"], FRAMES_FIRST),
    Refusal("c4-zero", "STFT-15", ["f32[56]", "f32[7]", "i64[]{11}", "i64[]{0}"], FRAMES_FIRST),
    Refusal("ir302-types", "STFT-15", ["f32[56]", "f16[7]", "i64[]{11}", "i64[]{3}"], FRAMES_FIRST),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{window}-{size}-{step}-{attributes['transpose_frames']}",
        "STFT-15",
        [random(*shape, dtype=t), random(window, dtype=t, seed=1), np.array(size), np.array(step)],
        attributes,
        shapes=[2, 3],
    )
    for attributes in (FRAMES_FIRST, RESULTS_FIRST)
    for shape, window, size, step in [
        ((56,), 7, 11, 3), ((3, 56), 7, 11, 3), ((2, 48), 16, 16, 16), ((1, 20), 5, 6, 1), ((20,), 6, 6, 7), ((6,), 6, 6, 2),
    ]
    for t in (np.float32, np.float16)
] + [
    Case(
        "types-differ",
        "STFT-15",
        [random(20), random(5), np.array(6, np.int32), np.array(2, np.int64)],
        FRAMES_FIRST,
        shapes=[2, 3],
    )
]  # fmt: skip

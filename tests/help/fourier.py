"""Rows for the Fourier operations, which two files each share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kit import Case, Refusal, random

Transform = Callable[..., np.ndarray]
SIZES: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = [
    ((0,), None), ((1,), None), ((-1,), None), ((0, 1), None), ((1, 0), None), ((1,), (3,)), ((1, 0), (2, 6)),
    ((0,), (-1,)), ((0, 1), (-1, 7)), ((-1,), (1,)),
]  # fmt: skip
"""Axes of a signal of [3,4] (or [3,4,2]), and signal sizes."""


def complex(parts: np.ndarray) -> np.ndarray:
    return parts[..., 0].astype(np.float64) + 1j * parts[..., 1]


def parts(numbers: np.ndarray) -> np.ndarray:
    return np.stack([np.real(numbers), np.imag(numbers)], -1)


def whole(shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int] | None) -> list[int] | None:
    """``sizes`` without -1."""
    return None if sizes is None else [shape[axis] if n == -1 else n for axis, n in zip(axes, sizes)]


def inputs(data: np.ndarray, axes: Sequence[int], sizes: Sequence[int] | None) -> list[np.ndarray]:
    return [data, np.array(axes, np.int64), *([] if sizes is None else [np.array(sizes, np.int64)])]


def refusals_of(op: str) -> list[Refusal]:
    """What all four refuse, in terms of complex numbers."""
    real = op.startswith("RDFT")
    data = "f32[3,4]" if real else "f32[3,4,2]"
    return [
        Refusal("c1-scalar", op, ["f32[]" if real else "f32[2]", "i64[1]"]),
        Refusal("c2-scalar", op, [data, "i64[]"]),
        Refusal("c2-outside", op, [data, "i64{2}"]),
        Refusal("c2-negative", op, [data, "i64{-3}"]),
        Refusal("c2-twice", op, [data, "i64{1,-1}"]),
        Refusal("c3-scalar", op, [data, "i64[1]", "i64[]"]),
        Refusal("c3-count", op, [data, "i64{0}", "i64{3,4}"]),
        Refusal("c3-negative", op, [data, "i64{0}", "i64{-2}"]),
        Refusal("ir301-integers", op, [data.replace("f32", "i32"), "i64{0}"]),
    ]


def cases(op: str, shape: tuple[int, ...], transform: Transform, wrong: Sequence[int] = ()) -> list[Case]:
    """Cases for all of ``SIZES``; numpy answers those that OpenVINO gets ``wrong``."""
    found: list[Case] = []
    for number, (axes, sizes) in enumerate(SIZES):
        for t in (np.float32, np.float16):
            data = random(*shape, dtype=t)
            expected = transform(data, axes, sizes).astype(t) if number in wrong else None
            name = f"{np.dtype(t).name}-{list(axes)}-{list(sizes or ())}"
            shapes = [1] if sizes is None else [1, 2]
            found.append(Case(name, op, inputs(data, axes, sizes), {}, shapes, expected=expected))
    return found

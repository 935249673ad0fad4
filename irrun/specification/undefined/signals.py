"""Behaviours of Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined

__all__ = ["BEHAVIOURS"]


def _last_axis_by_minus_one(op: Any, inputs: Inputs) -> Undefined:
    """The axis -1: one sentence of the page takes it for the last axis of the signal, another forbids it."""
    axes = inputs[1]
    return True if axes is None else bool((axes == -1).any())


def _other_signal_size(op: Any, inputs: Inputs) -> Undefined:
    """A size other than the size of the data: one sentence of the page cuts or pads the data, another the spectrum."""
    data, axes = inputs[:2]
    sizes = inputs[2] if len(inputs) > 2 else None
    if data is None or axes is None or (len(inputs) > 2 and sizes is None):
        return True
    given = [-1] * axes.size if sizes is None else sizes.tolist()
    dims = [data.shape[axis % (data.ndim - 1)] for axis in axes.tolist()]
    whole = [*dims[:-1], 2 * (dims[-1] - 1)]
    return any(size not in (-1, own) for size, own in zip(given, whole))


def _nonfinite_signal(op: Any, inputs: Inputs) -> Undefined:
    """A signal that holds NaN or an infinity: the order of the sums decides which of both an element is."""
    data, axes = inputs[:2]
    if data is None or axes is None:
        return True
    is_complex = op.type != "RDFT"
    rank = data.ndim - is_complex
    summed = (*(axis % rank for axis in axes.tolist()), *((rank,) if is_complex else ()))
    found = np.asarray(~np.isfinite(data.astype(np.float64)).all(axis=summed, keepdims=True))
    return found[..., 0] if op.type == "IRDFT" else found if is_complex else found[..., None]


def _shorter_window(op: Any, inputs: Inputs) -> Undefined:
    """A window that is not as long as a frame: the page does not say where it lies."""
    window, size = inputs[1:3]
    return window is None or size is None or window.size != int(size.item())


def _outside_the_windows(op: Any, inputs: Inputs) -> Undefined:
    """Elements of the signal that no window covers, or only with zeros."""
    if any(array is None for array in inputs):
        return True
    data, window, size, step = inputs[:4]
    assert data is not None
    assert window is not None
    assert size is not None
    assert step is not None
    length, hop, frames = int(size.item()), int(step.item()), data.shape[-2]
    left = (length - window.size) // 2
    squares = np.pad(window.astype(np.float64) ** 2, (left, length - window.size - left))
    covered = np.zeros((frames - 1) * hop + length if frames else 0)
    for frame in range(frames):
        covered[frame * hop : frame * hop + length] += squares
    start = length // 2 if op.center else 0
    count = int(inputs[4].item()) if len(inputs) > 4 and inputs[4] is not None else None
    if count is None:
        count = (frames - 1) * hop + (0 if op.center else length)
    seen = covered[start : start + count]
    return np.pad(seen, (0, max(0, count - seen.size))) < _SMALLEST


_SMALLEST: Final = 1e-6
"""Below this sum of squared windows, the division makes noise of rounding."""

BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "last-axis-by-minus-one": _last_axis_by_minus_one,
    "nonfinite-signal": _nonfinite_signal,
    "other-signal-size": _other_signal_size,
    "outside-the-windows": _outside_the_windows,
    "shorter-window": _shorter_window,
}

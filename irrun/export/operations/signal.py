"""Fourier transforms."""

from __future__ import annotations

from irrun.export.call import Call
from irrun.export.registry import converts

__all__: list[str] = []


def _axes(call: Call, rank: int) -> list[int]:
    return [axis % rank for axis in call.ints(1)]


def _sizes(call: Call, count: int) -> list[int]:
    """Return the signal size along each axis; -1 for that of the data."""
    return call.ints(2) if call.given(2) else [-1] * count


def _transformed(call: Call, x: str, axis: int, size: int, inverse: bool, onesided: bool = False) -> str:
    """Return a DFT along one axis. From operation set 20 on, the axis is an input."""
    length = None if size < 0 else call.scalar(size, "i64")
    attributes = {"inverse": int(inverse), "onesided": int(onesided)}
    if call.opset >= 20:
        return call("DFT", x, length, call.scalar(axis, "i64"), **attributes)
    return call("DFT", x, length, axis=axis, **attributes)


@converts("DFT", "IDFT", computes="f32 f64")
def dft(call: Call) -> str:
    """A DFT along each axis."""
    x, axes = call.input(0), _axes(call, call.rank() - 1)
    for axis, size in zip(axes, _sizes(call, len(axes))):
        x = _transformed(call, x, axis, size, inverse=call.op.type == "IDFT")
    return x


@converts("RDFT", computes="f32 f64")
def rdft(call: Call) -> str:
    """A one-sided DFT along the last axis, then a DFT along each other."""
    axes = _axes(call, call.rank())
    sizes = _sizes(call, len(axes))
    x = call("Unsqueeze", call.input(0), [call.rank()])
    if not axes:
        call.refuse("no axis is transformed")
    x = _transformed(call, x, axes[-1], sizes[-1], inverse=False, onesided=True)
    for axis, size in zip(axes[:-1], sizes[:-1]):
        x = _transformed(call, x, axis, size, inverse=False)
    return x


@converts("STFT", computes="f32 f64")
def stft(call: Call) -> str:
    """STFT, whose window has the size of a frame."""
    size, step, length = call.ints(2)[0], call.ints(3)[0], call.dim(1, 0)
    if length is None:
        call.refuse("the length of the window is not known")
    signal, window = call.input(0), call.input(1)
    before = (size - length) // 2
    window = call("Pad", window, [before, size - length - before]) if length < size else window
    signal = call("Unsqueeze", signal, [0, 2] if call.rank() == 1 else [2])
    frames = call("STFT", signal, call.scalar(step, "i64"), window, call.scalar(size, "i64"), onesided=1)
    frames = call("Squeeze", frames, [0]) if call.rank() == 1 else frames
    if not call.op.transpose_frames:
        return frames
    return call("Transpose", frames, perm=[1, 0, 2] if call.rank() == 1 else [0, 2, 1, 3])

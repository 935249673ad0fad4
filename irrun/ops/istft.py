"""ISTFT: a signal from the Fourier transforms of its overlapping frames.  Spec: signals/istft-16."""

import math

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._fourier import as_complex, centred_window, positive_scalar
from irrun.types import UNKNOWN_RANK, Dim


@op("ISTFT", since=16, spec="signals/istft-16")
class ISTFT(Op):
    """Apply the inverse transform to each frame, multiply it by ``window``, and add up the overlapping frames.

    The window is centred in the frame. The sum is divided by the sum of the squared windows. With ``center``, the first
    half frame is padding and is removed. The signal is cut, or padded with zeros, to ``signal_length``.

    C1  ``data`` is 3D or 4D. Its last dim is 2 (real and imaginary part).
    C2  ``window`` is 1D and not longer than a frame.
    C3  ``frame_size`` is a positive scalar, and ``data`` holds ``frame_size // 2 + 1`` frequencies of each frame.
    C4  ``frame_step`` is a positive scalar.
    C5  ``signal_length`` has one element, which is not negative.
    """

    center = attr.bool()
    normalized = attr.bool()
    inputs = ports(data="T", window="T", frame_size="T_SIZE", frame_step="T_STEP", signal_length=opt("T_LENGTH"))
    # OpenVINO takes frame_size, frame_step and signal_length of different types
    types = {"T": "float", "T_SIZE": "i32 i64", "T_STEP": "i32 i64", "T_LENGTH": "i32 i64"}

    def infer(
        self,
        at: Site,
        data: Value,
        window: Value,
        frame_size: Value,
        frame_step: Value,
        signal_length: Value | None = None,
    ) -> Value:
        at.require(data.rank in (None, 3, 4), "C1", f"data is {data.shape}, not 3D or 4D")
        at.require(window.rank in (None, 1), "C2", f"window is {window.shape}, not 1D")
        size = positive_scalar(at, "frame_size", frame_size, "C3")
        step = positive_scalar(at, "frame_step", frame_step, "C4")
        at.require(window.shape[0].lo <= size.hi, "C2", f"window {window.shape} is longer than frame_size {size}")
        if signal_length is not None:
            single = signal_length.rank in (None, 0, 1) and signal_length.shape.count().fits(1)
            at.require(single, "C5", f"signal_length is {signal_length.shape}, not a single element")
        if data.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        *batch, frequencies, frames, parts = data.shape
        at.require(
            parts.fits(2), "C1", f"the last dim of data {data.shape} is {parts}, not 2 (real and imaginary part)"
        )
        count = size // 2 + 1
        message = f"data {data.shape} has {frequencies} frequencies, but frame_size {size} has {count}"
        at.require(frequencies.meet(count) is not None, "C3", message)
        if signal_length is None:
            return data.reshaped([*batch, self._length(frames, size, step)])
        length = (signal_length.dims() or (Dim.unknown(),))[0]
        at.require(length.hi >= 0, "C5", f"signal_length {length} is negative")
        return data.reshaped([*batch, length.max(0)])

    def _length(self, frames: Dim, size: Dim, step: Dim) -> Dim:
        """Return the default length of the signal."""
        steps = ((frames - 1) * step).max(0)
        return steps if self.center else steps + size

    def run(
        self,
        data: np.ndarray,
        window: np.ndarray,
        frame_size: np.ndarray,
        frame_step: np.ndarray,
        signal_length: np.ndarray | None = None,
    ) -> np.ndarray:
        size, step = int(frame_size), int(frame_step)
        weights = centred_window(window.astype(wide(data.dtype)), size)
        frames = np.fft.irfft(as_complex(data).swapaxes(-1, -2), size) * weights
        if self.normalized:
            frames *= math.sqrt(size)
        count = frames.shape[-2]
        default = int(self._length(Dim(count), Dim(size), Dim(step)))
        length = default if signal_length is None else int(signal_length.item())
        start = size // 2 if self.center else 0
        total = _overlapped(np.broadcast_to(weights * weights, (count, size)), step, start + length)
        signal = _overlapped(frames, step, start + length) / np.where(total == 0, 1, total)
        signal = signal[..., start : start + length]
        missing = length - signal.shape[-1]
        return narrow(np.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)]), data.dtype)


def _overlapped(frames: np.ndarray, step: int, most: int) -> np.ndarray:
    """Return the sum of ``frames``, each of which begins ``step`` elements after the frame before it.

    It ends with the last frame, or after ``most`` elements.
    """
    *batch, count, size = frames.shape
    if step >= size:  # the frames do not overlap, and the gaps between them may be long
        signal = np.zeros((*batch, max(0, min((count - 1) * step + size, most))), frames.dtype)
        for begin, number in zip(range(0, signal.shape[-1], step), range(count)):
            part = signal[..., begin : begin + size]
            part[...] = frames[..., number, : part.shape[-1]]
        return signal
    pieces = -(-size // step)
    padded = np.zeros((*batch, count, pieces * step), frames.dtype)
    padded[..., :size] = frames
    split = padded.reshape(*batch, count, pieces, step)
    total = np.zeros((*batch, count + pieces - 1, step), frames.dtype)
    for piece in range(pieces):  # the first pieces of all frames, then the second pieces …
        total[..., piece : piece + count, :] += split[..., piece, :]
    return total.reshape(*batch, (count + pieces - 1) * step)[..., : min((count - 1) * step + size, most)]

"""STFT: the Fourier transforms of overlapping frames of a signal.  Spec: signals/stft-15."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._fourier import as_parts, centred_window, positive_scalar
from irrun.types import UNKNOWN_RANK


@op("STFT", since=15, spec="signals/stft-15")
class STFT(Op):
    """Cut ``signal`` into frames, multiply each frame by ``window``, which is centred in it, and transform the product.

    C1  ``signal`` is 1D or 2D.
    C2  ``window`` is 1D and not longer than a frame.
    C3  ``frame_size`` is a positive scalar, at most the length of ``signal``.
    C4  ``frame_step`` is a positive scalar.
    """

    transpose_frames = attr.bool()
    inputs = ports(signal="T", window="T", frame_size="T_SIZE", frame_step="T_STEP")
    # OpenVINO takes frame_size and frame_step of different types
    types = {"T": "float", "T_SIZE": "i32 i64", "T_STEP": "i32 i64"}

    def infer(self, at: Site, signal: Value, window: Value, frame_size: Value, frame_step: Value) -> Value:
        at.require(signal.rank in (None, 1, 2), "C1", f"signal is {signal.shape}, not 1D or 2D")
        at.require(window.rank in (None, 1), "C2", f"window is {window.shape}, not 1D")
        size = positive_scalar(at, "frame_size", frame_size, "C3")
        step = positive_scalar(at, "frame_step", frame_step, "C4")
        at.require(window.shape[0].lo <= size.hi, "C2", f"window {window.shape} is longer than frame_size {size}")
        if signal.shape.dims is None:
            return signal.reshaped(UNKNOWN_RANK)
        *batch, length = signal.shape
        at.require(size.lo <= length.hi, "C3", f"frame_size {size} is longer than signal {signal.shape}")
        frames, frequencies = (length - size).max(0) // step + 1, size // 2 + 1
        return signal.reshaped(
            [*batch, *((frequencies, frames) if self.transpose_frames else (frames, frequencies)), 2]
        )

    def run(self, signal: np.ndarray, window: np.ndarray, frame_size: np.ndarray, frame_step: np.ndarray) -> np.ndarray:
        work, size = wide(signal.dtype), int(frame_size)
        frames = sliding_window_view(signal.astype(work), size, -1)[..., :: int(frame_step), :]
        spectra = np.fft.rfft(frames * centred_window(window.astype(work), size))
        return narrow(as_parts(spectra.swapaxes(-1, -2) if self.transpose_frames else spectra), signal.dtype)

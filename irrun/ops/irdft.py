"""IRDFT: the inverse discrete Fourier transform to real numbers.  Spec: signals/irdft-9."""

import numpy as np

from irrun.opdef import op
from irrun.ops._fourier import Fourier
from irrun.types import Dim


@op("IRDFT", since=9, spec="signals/irdft-9")
class IRDFT(Fourier):
    """Apply the inverse transform along ``axes``. Each axis is first cut, or padded with zeros, to its ``signal_size``.

    Along the last of ``axes``, ``data`` holds only the first half of the spectrum: the second half is its mirrored
    conjugate.

    C1  The last dim of ``data`` is 2 (real and imaginary part), and ``data`` has at least one more axis.
    C2  ``axes`` is 1D and names at least one axis of ``data`` other than the last one (the parts), none of them twice.
    C3  ``signal_size`` is 1D with one entry for each of ``axes``: a size, or -1 for the size of ``data``.
    """

    complex_out = False

    def size(self, dim: Dim, last: bool) -> Dim:
        return (dim - 1).max(0) * 2 if last else dim

    def transform(self, x: np.ndarray, sizes: list[int], axes: list[int]) -> np.ndarray:
        # OpenVINO cuts data to signal_size // 2 + 1 before it is mirrored, as numpy does; the formula of the
        # specification would cut the mirrored data
        return np.fft.irfftn(x, sizes, axes)

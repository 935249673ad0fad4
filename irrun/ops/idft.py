"""IDFT: the inverse discrete Fourier transform of complex numbers.  Spec: signals/idft-7."""

import numpy as np

from irrun.opdef import op
from irrun.ops._fourier import Fourier


@op("IDFT", since=7, spec="signals/idft-7")
class IDFT(Fourier):
    """Apply the inverse transform along ``axes``. Each axis is first cut, or padded with zeros, to its ``signal_size``.

    C1  The last dim of ``data`` is 2 (real and imaginary part), and ``data`` has at least one more axis.
    C2  ``axes`` is 1D and names axes of ``data`` other than the last one (the parts), none of them twice.
    C3  ``signal_size`` is 1D with one entry for each of ``axes``: a size, or -1 for the size of ``data``.
    """

    def transform(self, x: np.ndarray, sizes: list[int], axes: list[int]) -> np.ndarray:
        return np.fft.ifftn(x, sizes, axes)

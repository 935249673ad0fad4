"""IDFT: the inverse discrete Fourier transform of complex numbers.  Spec: signals/idft-7."""

import numpy as np

from irrun.opdef import op
from irrun.ops._fourier import Fourier


@op("IDFT", since=7, spec="signals/idft-7")
class IDFT(Fourier):
    """Transform ``data`` back along ``axes``, each cut or filled up with zeros to its ``signal_size``.

    C1  The last dim of ``data`` is 2, the parts of complex numbers, and there is another.
    C2  ``axes`` is 1D and holds axes of ``data``, without that of the two parts, each once.
    C3  ``signal_size`` is 1D with one entry per axis: a size, or -1 for that of ``data``.
    """

    def transform(self, x: np.ndarray, sizes: list[int], axes: list[int]) -> np.ndarray:
        return np.fft.ifftn(x, sizes, axes)

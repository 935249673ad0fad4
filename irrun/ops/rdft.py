"""RDFT: the discrete Fourier transform of real numbers.  Spec: signals/rdft-9."""

import numpy as np

from irrun.opdef import op
from irrun.ops._fourier import Fourier
from irrun.types import Dim


@op("RDFT", since=9, spec="signals/rdft-9")
class RDFT(Fourier):
    """Transform ``data`` along ``axes``. Each axis is first cut, or padded with zeros, to its ``signal_size``.

    Along the last of ``axes``, the output holds only the first half of the spectrum: the second half is its mirrored
    conjugate.

    C1  ``data`` is not a scalar.
    C2  ``axes`` is 1D and names at least one axis of ``data``, none of them twice.
    C3  ``signal_size`` is 1D with one entry for each of ``axes``: a size, or -1 for the size of ``data``.
    """

    complex_in = False

    def result(self, size: Dim, last: bool) -> Dim:
        return size // 2 + 1 if last else size

    def transform(self, x: np.ndarray, sizes: list[int], axes: list[int]) -> np.ndarray:
        return np.fft.rfftn(x, sizes, axes)

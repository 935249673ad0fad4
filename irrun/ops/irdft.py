"""IRDFT: the inverse discrete Fourier transform to real numbers.  Spec: signals/irdft-9."""

import numpy as np

from irrun.opdef import op
from irrun.ops._fourier import Fourier
from irrun.types import Dim


@op("IRDFT", since=9, spec="signals/irdft-9")
class IRDFT(Fourier):
    """Transform ``data`` back along ``axes``, each cut or filled up with zeros to its ``signal_size``.

    Along the last of ``axes``, ``data`` holds only the first half: the second half mirrors it, conjugated.

    C1  The last dim of ``data`` is 2, the parts of complex numbers, and there is another.
    C2  ``axes`` is 1D and holds axes of ``data``, without that of the two parts, each once; at least
        one.
    C3  ``signal_size`` is 1D with one entry per axis: a size, or -1 for that of ``data``.
    """

    complex_out = False

    def size(self, dim: Dim, last: bool) -> Dim:
        return (dim - 1).max(0) * 2 if last else dim

    def transform(self, x: np.ndarray, sizes: list[int], axes: list[int]) -> np.ndarray:
        # OpenVINO: cuts data to signal_size // 2 + 1 before it is mirrored, as numpy does; the formula of the
        # specification would cut the mirrored data
        return np.fft.irfftn(x, sizes, axes)

"""BinaryConvolution: a convolution of ones and minus ones, kept as bits.  Spec: convolution/binary-convolution-1."""

from collections.abc import Sequence

import numpy as np

from irrun.kernels.convolution.planes import convolve
from irrun.kernels.matmul import narrow
from irrun.opdef import Site, Value, attr, op, ports
from irrun.ops._convolution import Filtering, ungrouped
from irrun.types import Dim

Stored = Sequence[np.ndarray | None]
"""The bytes of each input that is a constant."""


@op("BinaryConvolution", since=1, spec="convolution/binary-convolution-1")
class BinaryConvolution(Filtering):
    """Correlate ``data`` with each of ``filters``. In both, 0 stands for -1 and 1 for 1.

    Each sum of products is the number of bits that agree minus the number of bits that differ. ``pad_value`` is used as
    it is. The bits of a constant ``filters`` are read from the .bin low bit first.

    C1  ``data`` and ``filters`` have rank 4.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``data`` has as many channels as each filter takes.
    """

    mode = attr.choice("xnor-popcount")
    pad_value = attr.float()
    inputs = ports(data="T", filters="u1")
    ranks = frozenset({4})
    needs = ("stored",)

    def infer(self, at: Site, data: Value, filters: Value, *, stored: Stored = ()) -> Value:
        return self.correlated(at, data, filters)

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        outs, ins = filters
        return ungrouped(at, data, ins, outs)

    def run(self, data: np.ndarray, filters: np.ndarray, *, stored: Stored = ()) -> np.ndarray:
        signs = np.where(_low_first(filters, stored[1] if len(stored) > 1 else None), 1.0, -1.0)
        # with pad_value subtracted from all elements, pads are 0; its share is added back below
        shifted = np.where(data > 0, 1.0, -1.0) - self.pad_value
        out = convolve(shifted, signs[np.newaxis], self.axes(data.shape[2:], filters.shape[2:]))
        return narrow(out + self.pad_value * signs.sum((1, 2, 3)).reshape(-1, 1, 1), data.dtype)


def _low_first(bits: np.ndarray, stored: np.ndarray | None) -> np.ndarray:
    """Return the bits of the filters in the order in which OpenVINO reads them: the low bit of each byte first.

    ``stored`` are the bytes of a constant. Bits that are no constant are those of the bytes, high bit first, as in all
    other u1 tensors; the bits of a last byte that is not full then stay in order.
    """
    if stored is not None:
        return np.unpackbits(stored, count=bits.size, bitorder="little").reshape(bits.shape)
    flat = bits.ravel().copy()
    whole = flat[: flat.size // 8 * 8].reshape(-1, 8)
    whole[:] = whole[:, ::-1].copy()
    return flat.reshape(bits.shape)

"""LRN: normalise by the squares of the neighbours.  Spec: normalization/lrn-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._normalization import check_axes, check_count, check_positive, places
from irrun.ops._unary import through_floats


@op("LRN", since=1, spec="normalization/lrn-1")
class LRN(Op):
    """Compute ``data / (bias + alpha * m) ** beta``.

    m is the mean of squares in a region around the element, ``size`` elements long along each of ``axes``.

    C1  ``axes`` is 1D.
    C2  Each entry of ``axes`` is at least -rank and less than the rank of ``data``.
    C3  ``size`` is positive.
    C4  ``axes`` has at most as many entries as ``data`` has axes.
    C5  ``beta`` is positive.
    """

    alpha = attr.float()
    beta = attr.float()
    bias = attr.float()
    size = attr.int()
    inputs = ports(data="T", axes="T_IND")
    types = {"T": "float", "T_IND": "int"}
    channels_last = {"axes": "axes"}

    def infer(self, at: Site, data: Value, axes: Value) -> Value:
        at.require(self.size >= 1, "C3", f"size is {self.size}, not positive")
        at.require(axes.rank in (None, 1), "C1", f"axes is {axes.shape}, not 1D")
        check_axes(at, data, axes)
        check_count(at, "C4", data, axes)
        check_positive(at, "C5", "beta", self.beta)
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, axes: np.ndarray) -> np.ndarray:
        along = places(axes, data.ndim)

        def kernel(x: np.ndarray) -> np.ndarray:
            squares = x * x
            for axis in along:
                squares = self._around(squares, axis)
            scale = self.alpha / self.size ** len(along)
            return x / (self.bias + scale * squares) ** self.beta

        return through_floats(kernel, data)

    def _around(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Return the sum of each element and its neighbours along ``axis``. Neighbours beyond the ends are zeros."""
        # OpenVINO makes a region of even size one element smaller; the formula of the specification makes it one larger
        reach = min((self.size - 1) // 2, x.shape[axis])
        out = x.copy()
        near, far = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
        for step in range(1, reach + 1):
            far[step:] += near[:-step]
            far[:-step] += near[step:]
        return out

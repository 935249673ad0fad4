"""NormalizeL2: divide by the Euclidean norm.  Spec: normalization/normalize-l2-1."""

import numpy as np

from irrun.kernels.blocks import whole_along
from irrun.kernels.elementwise import native
from irrun.kernels.matmul import row_sums
from irrun.kernels.normalization import total
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.ops._normalization import check_axes, check_positive, places
from irrun.ops._unary import through_floats


@op("NormalizeL2", since=1, spec="normalization/normalize-l2-1")
class NormalizeL2(Op):
    """Divide ``data`` by the root of its sum of squares along ``axes``.

    ``eps`` is added to the sum, or is its minimum, as ``eps_mode`` says. With empty ``axes``, the output is 1 where
    ``data`` is not 0, and 0 elsewhere.

    C1  ``axes`` is a scalar or 1D.
    C2  Each entry of ``axes`` is at least -rank and less than the rank of ``data``.
    C3  ``axes`` has no duplicates.
    C4  ``eps`` is positive.
    """

    per_element = 3
    eps = attr.float()
    eps_mode = attr.choice("add", "max")
    inputs = ports(data="T", axes="T_IND")
    types = {"T": "float", "T_IND": "int"}
    channels_last = {"axes": "axes"}

    def infer(self, at: Site, data: Value, axes: Value) -> Value:
        at.require(axes.rank in (None, 0, 1), "C1", f"axes is {axes.shape}, not a scalar or 1D")
        check_axes(at, data, axes)
        known = axes.ints()
        if known is not None and data.rank is not None:
            distinct = {axis % data.rank for axis in known}
            at.require(len(distinct) == len(known), "C3", f"axes {list(known)} names an axis more than once")
        check_positive(at, "C4", "eps", self.eps)
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        data, axes = request.inputs
        numbers = None if axes is None else axes.exact
        if data is None or not native(data) or not data.rank or numbers is None or not numbers.size:
            return None
        along = places(numbers, data.rank)
        last = along == (data.rank - 1,)

        def function(x: np.ndarray, out: np.ndarray) -> None:
            squares, eps = row_sums(x, x) if last else total(np.multiply(x, x), along), x.dtype.type(self.eps)
            np.divide(x, np.sqrt(squares + eps if self.eps_mode == "add" else np.maximum(squares, eps)), out)

        return whole_along(function, along)

    def run(self, data: np.ndarray, axes: np.ndarray) -> np.ndarray:
        if not axes.size:
            return (data != 0).astype(data.dtype)
        along = places(axes, data.ndim)

        def kernel(x: np.ndarray) -> np.ndarray:
            squares, eps = total(x * x, along), x.dtype.type(self.eps)
            return x / np.sqrt(squares + eps if self.eps_mode == "add" else np.maximum(squares, eps))

        return through_floats(kernel, data)

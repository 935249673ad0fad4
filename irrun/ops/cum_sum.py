"""CumSum: running sums along an axis.  Spec: arithmetic/cumsum-3."""

import numpy as np

from irrun.kernels.cast import cast, plain
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.types import ElementType


@op("CumSum", since=3, spec="arithmetic/cumsum-3")
class CumSum(Op):
    """Add to each element all elements before it along ``axis``, or after it with ``reverse``.

    ``exclusive`` leaves the element itself out.

    C1  The rank of ``data`` is 1 or more.
    C2  ``axis`` has one element.
    C3  ``axis`` is at least -rank and less than the rank of ``data``.
    """

    per_element = 1
    exclusive = attr.bool(default=False)
    reverse = attr.bool(default=False)
    inputs = ports(data="T", axis=opt("T_AXIS"))
    types = {"T": "numeric", "T_AXIS": "i32 i64"}

    def infer(self, at: Site, data: Value, axis: Value | None = None) -> Value:
        at.require(data.rank != 0, "C1", "data is a scalar")
        if axis is not None:
            at.require(axis.shape.count().fits(1), "C2", f"axis is {axis.shape}, not a single element")
            if (number := axis.scalar()) is not None:
                at.axis(number, data.rank, "C3")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, axis: np.ndarray | None = None) -> np.ndarray:
        element_type = ElementType.of(data.dtype)
        assert element_type is not None
        x = np.moveaxis(plain(data), 0 if axis is None else int(axis.item()), -1)
        if self.reverse:
            x = x[..., ::-1]
        if self.exclusive:
            x = np.concatenate([np.zeros_like(x[..., :1]), x[..., :-1]], axis=-1)
        with np.errstate(all="ignore"):
            sums = np.cumsum(x, axis=-1, dtype=x.dtype)
        if self.reverse:
            sums = sums[..., ::-1]
        return cast(np.moveaxis(sums, -1, 0 if axis is None else int(axis.item())), element_type)

"""NonZero: the indices of the elements that are not zero.  Spec: condition/nonzero-3."""

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import Dim, PartialShape


@op("NonZero", since=3, spec="condition/nonzero-3")
class NonZero(Op):
    """Return a column for each element that is not zero, in C order: its index along each axis.

    C1  ``output_type`` is i32 or i64.
    """

    output_type = attr.element_type(default="i64")
    inputs = ports(data="T")
    types = {"T": "boolean numeric"}

    def infer(self, at: Site, data: Value) -> Value:
        at.require(self.output_type.name in ("i32", "i64"), "C1", f"output_type is {self.output_type}, not i32 or i64")
        if data.exact is not None:
            count = Dim(int(np.count_nonzero(plain(data.exact))))
        else:
            count = Dim(0, data.shape.count().hi)
        rank = Dim.unknown() if data.rank is None else Dim(data.rank)
        return Value(self.output_type, PartialShape((rank, count)))

    def run(self, data: np.ndarray) -> np.ndarray:
        return np.argwhere(plain(data)).T.astype(self.output_type.dtype, order="C", copy=False)

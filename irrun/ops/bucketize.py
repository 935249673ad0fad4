"""Bucketize: which of the intervals between boundaries each element lies in.  Spec: condition/bucketize-3."""

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, ports


@op("Bucketize", since=3, spec="condition/bucketize-3")
class Bucketize(Op):
    """Count for each element of ``data`` the ``buckets`` below it.

    Without ``with_right_bound``, a bucket that equals the element counts, too.

    C1  ``buckets`` is 1D.
    C2  ``output_type`` is i32 or i64.
    """

    output_type = attr.element_type(default="i64")
    with_right_bound = attr.bool(default=True)
    inputs = ports(data="T", buckets="T_BOUNDARIES")
    types = {"T": "numeric", "T_BOUNDARIES": "numeric"}

    def infer(self, at: Site, data: Value, buckets: Value) -> Value:
        at.require(self.output_type.name in ("i32", "i64"), "C2", f"output_type is {self.output_type}, not i32 or i64")
        at.require(buckets.rank in (None, 1), "C1", f"buckets is {buckets.shape}, not 1D")
        return data.typed(self.output_type)

    def run(self, data: np.ndarray, buckets: np.ndarray) -> np.ndarray:
        data, buckets = plain(data), plain(buckets)
        if "f" not in data.dtype.kind + buckets.dtype.kind and np.result_type(data, buckets).kind == "f":  # u64 and i64
            data, buckets = data.astype(object), buckets.astype(object)
        indices = np.searchsorted(buckets, data, "left" if self.with_right_bound else "right")
        return np.asarray(indices, self.output_type.dtype)

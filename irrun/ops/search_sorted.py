"""SearchSorted: where values belong in sorted rows.  Spec: sort/search-sorted-15."""

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import PartialShape


@op("SearchSorted", since=15, spec="sort/search-sorted-15")
class SearchSorted(Op):
    """Find the first index at which each value can be inserted into its row of ``sorted_sequence``.

    With ``right_mode``, find the last such index. A 1D ``sorted_sequence`` is the row for all values.

    C1  ``sorted_sequence`` is not a scalar.
    C2  ``sorted_sequence`` is 1D, or it has the rank of ``values`` and the same dims except the last one.
    C3  ``output_type`` is i32 or i64.
    """

    # the specification calls right_mode right, and has no output_type
    right_mode = attr.bool(default=False, aliases=("right",))
    output_type = attr.element_type(default="i64")
    inputs = ports(sorted_sequence="T", values="T")
    types = {"T": "numeric"}

    def infer(self, at: Site, sorted_sequence: Value, values: Value) -> Value:
        at.require(self.output_type.name in ("i32", "i64"), "C3", f"output_type is {self.output_type}, not i32 or i64")
        at.require(sorted_sequence.rank != 0, "C1", "sorted_sequence is a scalar")
        shape = values.shape
        rows = sorted_sequence.shape
        if rows.dims is not None and len(rows) > 1:
            expected = PartialShape((*rows.dims[:-1], values.shape[-1] if values.rank != 0 else rows[-1]))
            both = expected.meet(shape)
            at.require(
                both is not None,
                "C2",
                f"values {shape} and sorted_sequence {rows} differ in rank or in a dim before the last",
            )
            assert both is not None
            shape = both
        return Value(self.output_type, shape)

    def run(self, sorted_sequence: np.ndarray, values: np.ndarray) -> np.ndarray:
        rows, wanted = plain(sorted_sequence), plain(values)
        if rows.ndim == 1:
            indices = np.searchsorted(rows, wanted, "right" if self.right_mode else "left")
        else:
            indices = self._by_halves(rows, wanted)
        return np.asarray(indices, self.output_type.dtype)

    def _by_halves(self, rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Return the index of each value in its row, by a binary search in all rows at once."""
        length = rows.shape[-1]
        low, high = np.zeros(wanted.shape, np.int64), np.full(wanted.shape, length)
        for _ in range(length.bit_length()):
            middle = (low + high) // 2
            probe = np.take_along_axis(rows, np.minimum(middle, length - 1), axis=-1)
            beyond = (probe <= wanted if self.right_mode else probe < wanted) & (low < high)
            low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, middle)
        return low

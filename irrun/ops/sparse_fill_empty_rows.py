"""SparseFillEmptyRows: a default value for each empty row of a matrix.  Spec: sparse/fill-empty-rows-16."""

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports
from irrun.ops._indices import check_indices, from_front
from irrun.types import ELEMENT_TYPES, Dim, PartialShape


@op("SparseFillEmptyRows", since=16, spec="sparse/fill-empty-rows-16")
class SparseFillEmptyRows(Op):
    """Put ``default_value`` into column 0 of each row that ``indices`` does not name.

    The output is in row-major order.

    C1  ``values`` is 1D. ``indices`` is 2D and holds a row and a column for each of ``values``.
    C2  ``dense_shape`` is 1D with two entries, which are not negative.
    C3  ``default_value`` is a scalar.
    C4  Each of ``indices`` is within ``dense_shape``.
    """

    inputs = ports(values="T", dense_shape="T_IDX", indices="T_IDX", default_value="T")
    types = {"T": "numeric", "T_IDX": "i32 i64"}
    outputs = 3

    def infer(
        self, at: Site, values: Value, dense_shape: Value, indices: Value, default_value: Value
    ) -> tuple[Value, ...]:
        at.require(values.rank in (None, 1), "C1", f"values is {values.shape}, not 1D")
        expected = PartialShape.of([values.shape[0], 2])
        pairs = indices.shape.meet(expected)
        at.require(pairs is not None, "C1", f"indices is {indices.shape}, not {expected}")
        sizes = dense_shape.shape.meet(PartialShape.of([2]))
        at.require(sizes is not None, "C2", f"dense_shape is {dense_shape.shape}, not 1D of two elements")
        rows, columns = dense_shape.dims() or (Dim.unknown(), Dim.unknown())
        at.require(rows.hi >= 0 and columns.hi >= 0, "C2", f"dense_shape [{rows},{columns}] has a negative entry")
        at.require(default_value.rank in (None, 0), "C3", f"default_value is {default_value.shape}, not a scalar")
        assert pairs is not None
        check_indices(at, "C4", None if indices.exact is None else indices.exact[:, 0], rows, negative=False)
        check_indices(at, "C4", None if indices.exact is None else indices.exact[:, 1], columns, negative=False)
        count = _count(pairs[0], rows.max(0), indices.exact)
        return (
            indices.reshaped([count, 2]),
            values.reshaped([count]),
            Value(ELEMENT_TYPES["boolean"], PartialShape.of([rows.max(0)])),
        )

    def run(
        self, values: np.ndarray, dense_shape: np.ndarray, indices: np.ndarray, default_value: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        rows, columns = dense_shape.tolist()
        row = from_front(indices[:, 0], rows, "C4", negative=False)
        column = from_front(indices[:, 1], columns, "C4", negative=False)
        empty = np.bincount(row, minlength=rows) == 0
        added = np.flatnonzero(empty)
        row, column = np.append(row, added), np.append(column, np.zeros_like(added))
        order = np.lexsort((column, row))
        filled = np.append(values, np.full(len(added), default_value, values.dtype))
        return np.stack([row, column], 1)[order].astype(indices.dtype), filled[order], empty


def _count(values: Dim, rows: Dim, indices: np.ndarray | None) -> Dim:
    """Return the number of values in the output, from the numbers of ``values`` in the input and of ``rows``."""
    if values == 0:
        return rows
    if indices is not None:
        return values + (rows - len(np.unique(indices[:, 0])))
    total = values + rows
    return Dim(max(values.lo, rows.lo), total.hi)

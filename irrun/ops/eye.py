"""Eye: matrices with ones on a diagonal.  Spec: generation/eye-9."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.types import Dim, PartialShape, type_set


@op("Eye", since=9, spec="generation/eye-9")
class Eye(Op):
    """Return zeros, ``num_rows`` by ``num_columns``, with ones ``diagonal_index`` columns right of the main diagonal.

    With ``batch_shape``, the output holds that many such matrices.

    C1  ``num_rows``, ``num_columns`` and ``diagonal_index`` have one element each, as a scalar or 1D.
    C2  ``num_rows``, ``num_columns`` and the entries of ``batch_shape`` are not negative.
    C3  ``batch_shape`` is 1D.
    C4  ``output_type`` is numeric.
    """

    output_type = attr.element_type()
    inputs = ports(num_rows="T_ROWS", num_columns="T_COLUMNS", diagonal_index="T_DIAGONAL", batch_shape=opt("T_BATCH"))
    # OpenVINO allows different types for these inputs
    types = {"T_ROWS": "i32 i64", "T_COLUMNS": "i32 i64", "T_DIAGONAL": "i32 i64", "T_BATCH": "i32 i64"}

    def infer(
        self, at: Site, num_rows: Value, num_columns: Value, diagonal_index: Value, batch_shape: Value | None = None
    ) -> Value:
        numeric = self.output_type in type_set("numeric")
        at.require(numeric, "C4", f"output_type is {self.output_type}, not numeric")
        dims: list[Dim] = []
        for name, value in ("num_rows", num_rows), ("num_columns", num_columns), ("diagonal_index", diagonal_index):
            single = value.rank in (None, 0, 1) and value.shape.count().fits(1)
            at.require(single, "C1", f"{name} is {value.shape}, not a scalar or 1D of one element")
            dims.append((value.dims() or (Dim.unknown(),))[0])
        rows, columns, _ = dims
        at.require(rows.hi >= 0 and columns.hi >= 0, "C2", f"num_rows {rows} or num_columns {columns} is negative")
        matrix = (rows.max(0), columns.max(0))
        if batch_shape is None:
            return Value(self.output_type, PartialShape(matrix))
        at.require(batch_shape.rank in (None, 1), "C3", f"batch_shape is {batch_shape.shape}, not 1D")
        batch = batch_shape.as_shape()
        if batch.dims is None:
            return Value(self.output_type, batch)
        at.require(all(d.hi >= 0 for d in batch), "C2", f"batch_shape {batch} has a negative entry")
        return Value(self.output_type, PartialShape((*batch.dims, *matrix)))

    def run(
        self,
        num_rows: np.ndarray,
        num_columns: np.ndarray,
        diagonal_index: np.ndarray,
        batch_shape: np.ndarray | None = None,
    ) -> np.ndarray:
        matrix = np.eye(num_rows.item(), num_columns.item(), diagonal_index.item(), bool).astype(self.output_type.dtype)
        batch = () if batch_shape is None else tuple(batch_shape.tolist())
        return np.broadcast_to(matrix, (*batch, *matrix.shape))

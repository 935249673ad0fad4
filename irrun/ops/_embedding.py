"""Bags of embeddings: rows of a table, weighted and summed. All five Embedding operations share this code."""

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Refused, Site, Value, opt, ports
from irrun.ops._indices import check_indices, from_front
from irrun.types import UNKNOWN_RANK, Dim


class Bags(Op):
    """Base of the five operations. Their clauses have the same labels everywhere.

    C1  ``emb_table`` is not a scalar.
    C2  ``indices`` has the rank that the operation requires.
    C3  Each entry of ``indices`` is a row of ``emb_table``. ``default_index`` is a row, too, or -1 for zeros.
    C4  ``per_sample_weights`` has the shape of ``indices``; it is allowed only if ``reduction`` is sum.
    """

    types = {"T": "numeric", "T_IND": "i32 i64"}
    reduction = "sum"

    def check(
        self, at: Site, rank: int, table: Value, indices: Value, default: Value | None, weights: Value | None
    ) -> None:
        """Refuse the inputs by C1 to C4. ``rank`` is the rank that ``indices`` must have."""
        at.require(table.rank != 0, "C1", "emb_table is a scalar")
        at.require(indices.rank in (None, rank), "C2", f"indices is {indices.shape}, not {rank}D")
        rows = table.shape[0]
        check_indices(at, "C3", indices.exact, rows, negative=False)
        if default is not None:
            at.require(default.rank in (None, 0), "C3", f"default_index is {default.shape}, not a scalar")
            row = default.scalar()
            at.require(
                row is None or -1 <= row < rows.hi, "C3", f"default_index is {row}, but emb_table has {rows} rows"
            )
        if weights is not None:
            at.require(
                self.reduction == "sum",
                "C4",
                f"per_sample_weights is connected, but reduction is {self.reduction}, not sum",
            )
            same_shape = weights.shape.meet(indices.shape) is not None
            at.require(same_shape, "C4", f"per_sample_weights is {weights.shape}, but indices is {indices.shape}")

    def bags(
        self,
        table: np.ndarray,
        indices: np.ndarray,
        bag: np.ndarray,
        count: int,
        default: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> np.ndarray:
        """Return ``count`` bags (count, …), each of which reduces rows of ``table``.

        ``bag`` holds the bag of each of ``indices``. ``default`` is the index of the row for empty bags; without it,
        they are zeros. Raises Refused for an index outside the table.
        """
        indices = from_front(indices, len(table), "C3", negative=False)
        order = np.argsort(bag, kind="stable")
        rows = table[indices[order]].astype(wide(table.dtype))
        if weights is not None:
            rows *= weights[order].astype(rows.dtype).reshape(-1, *[1] * (table.ndim - 1))
        sizes = np.bincount(bag, minlength=count)
        filled = sizes > 0
        out = np.zeros((count, *table.shape[1:]), rows.dtype)
        if filled.any():
            out[filled] = np.add.reduceat(rows, (np.cumsum(sizes) - sizes)[filled], axis=0)
        if self.reduction == "mean":
            out = _mean(out, np.maximum(sizes, 1).reshape(-1, *[1] * (table.ndim - 1)))
        if default is not None and default != -1 and not filled.all():
            out[~filled] = table[from_front(default, len(table), "C3", negative=False)]
        return narrow(out, table.dtype)


def _mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the means. Means of integers are truncated toward zero, as in C."""
    if total.dtype.kind == "i":
        return np.sign(total) * (np.abs(total) // count)
    return total / count.astype(total.dtype)


def bag_output(table: Value, count: Dim) -> Value:
    """Return the output of ``count`` bags of rows of ``table``."""
    if table.shape.dims is None:
        return table.reshaped(UNKNOWN_RANK)
    return table.reshaped([count, *table.shape.dims[1:]])


class Offsets(Bags):
    """Bags in one list of indices. ``offsets`` holds the position in ``indices`` at which each bag begins.

    C5  ``offsets`` is 1D; its entries are in ascending order, from 0 to at most the number of ``indices``.
    """

    inputs = ports(
        emb_table="T", indices="T_IND", offsets="T_IND", default_index=opt("T_IND"), per_sample_weights=opt("T")
    )

    def infer(
        self,
        at: Site,
        table: Value,
        indices: Value,
        offsets: Value,
        default: Value | None = None,
        weights: Value | None = None,
    ) -> Value:
        self.check(at, 1, table, indices, default, weights)
        at.require(offsets.rank in (None, 1), "C5", f"offsets is {offsets.shape}, not 1D")
        if (begins := offsets.exact) is not None:
            _sizes(begins, indices.shape.count().hi)
        return bag_output(table, offsets.shape[0])

    def run(
        self,
        table: np.ndarray,
        indices: np.ndarray,
        offsets: np.ndarray,
        default: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        sizes = _sizes(offsets, len(indices))
        first = len(indices) - sizes.sum()  # indices before the first offset are in no bag
        bag = np.repeat(np.arange(len(sizes)), sizes)
        return self.bags(table, indices[first:], bag, len(sizes), default, None if weights is None else weights[first:])


def _sizes(offsets: np.ndarray, count: int) -> np.ndarray:
    """Return the number of indices in each bag, of ``count`` in all. Raises Refused if ``offsets`` does not ascend."""
    sizes = np.diff(offsets.astype(np.int64), append=count)
    if len(offsets) and (offsets[0] < 0 or sizes.min() < 0):
        raise Refused(f"offsets {offsets.tolist()} is not in ascending order from 0 to {count}", "C5")
    return sizes


class Packed(Bags):
    """Bags of equal size: each row of ``indices`` is a bag."""

    inputs = ports(emb_table="T", indices="T_IND", per_sample_weights=opt("T"))

    def infer(self, at: Site, table: Value, indices: Value, weights: Value | None = None) -> Value:
        self.check(at, 2, table, indices, None, weights)
        return bag_output(table, indices.shape[0])

    def run(self, table: np.ndarray, indices: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        count, size = indices.shape
        bag = np.repeat(np.arange(count), size)
        return self.bags(table, indices.ravel(), bag, count, None, None if weights is None else weights.ravel())

"""SegmentMax: the maximum of each run of rows.  Spec: arithmetic/segment-max-16."""

import ml_dtypes
import numpy as np

from irrun.kernels.cast import limits, plain
from irrun.opdef import Op, Refused, Site, Value, attr, op, opt, ports
from irrun.types import Dim, ElementType


@op("SegmentMax", since=16, spec="arithmetic/segment-max-16")
class SegmentMax(Op):
    """Compute the maximum of the rows of ``data`` in each segment. ``segment_ids`` holds the segment of each row.

    ``fill_mode`` decides about the output of an empty segment.

    C1  The rank of ``data`` is at least 1.
    C2  ``segment_ids`` is 1D, with one entry for each row of ``data``.
    C3  The entries of ``segment_ids`` are in ascending order and not negative.
    C4  ``num_segments`` is a scalar that is not negative.
    C5  The entries of ``segment_ids`` are less than ``num_segments``.
    """

    # the specification's list of attributes calls it empty_segment_value
    fill_mode = attr.choice("zero", "lowest", aliases=("empty_segment_value",))
    inputs = ports(data="T", segment_ids="T_IDX1", num_segments=opt("T_IDX2"))
    types = {"T": "numeric", "T_IDX1": "i32 i64", "T_IDX2": "i32 i64"}

    def infer(self, at: Site, data: Value, segment_ids: Value, num_segments: Value | None = None) -> Value:
        at.require(data.rank != 0, "C1", "data is a scalar")
        at.require(segment_ids.rank in (None, 1), "C2", f"segment_ids is {segment_ids.shape}, not 1D")
        rows, entries = data.shape[0], segment_ids.shape[0]
        at.require(rows.meet(entries) is not None, "C2", f"data has {rows} rows, but segment_ids has length {entries}")
        ids = segment_ids.ints()
        if ids is not None:
            at.require(
                [0, *ids] == sorted([0, *ids]), "C3", f"segment_ids {list(ids)} is not in ascending order from 0 on"
            )
        segments = Dim.unknown() if ids is None else Dim(max(ids, default=-1) + 1)
        if num_segments is not None:
            at.require(num_segments.rank in (None, 0), "C4", f"num_segments is {num_segments.shape}, not a scalar")
            segments = (num_segments.dims() or (Dim.unknown(),))[0]
            at.require(segments.hi >= 0, "C4", f"num_segments {segments} is negative")
            last = max(ids or (), default=-1)
            at.require(last < segments.hi, "C5", f"segment_ids has {last}, but num_segments is {segments}")
            segments = segments.max(last + 1)
        return data.reshaped(data.shape if data.shape.dims is None else data.shape.replace(0, segments))

    def run(self, data: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray | None = None) -> np.ndarray:
        if (np.diff(segment_ids, prepend=0) < 0).any():
            raise Refused(f"segment_ids {segment_ids.tolist()} is not in ascending order from 0 on", "C3")
        last = int(segment_ids.max(initial=-1))
        count = last + 1 if num_segments is None else int(num_segments)
        if last >= count:
            raise Refused(f"segment_ids has {last}, but num_segments is {count}", "C5")
        out = np.full((count, *data.shape[1:]), 0 if self.fill_mode == "zero" else _lowest(data.dtype), data.dtype)
        starts = np.flatnonzero(np.diff(segment_ids, prepend=-1))
        if len(starts):
            out[segment_ids[starts]] = np.maximum.reduceat(plain(data), starts, axis=0)
        return out


def _lowest(dtype: np.dtype) -> float:
    """Return the least finite value of a type."""
    element_type = ElementType.of(dtype)
    assert element_type is not None
    if element_type.kind == "float":
        return float(ml_dtypes.finfo(dtype).min)
    return limits(element_type)[0]

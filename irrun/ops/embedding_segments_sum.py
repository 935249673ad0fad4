"""EmbeddingSegmentsSum: sums of embeddings in segments.  Spec: sparse/embedding-segments-sum-3."""

import numpy as np

from irrun.opdef import Site, Value, op, opt, ports
from irrun.ops._embedding import Bags, bag_output
from irrun.ops._indices import check_indices, from_front
from irrun.types import Dim


@op("EmbeddingSegmentsSum", since=3, spec="sparse/embedding-segments-sum-3")
class EmbeddingSegmentsSum(Bags):
    """Sum the rows of ``emb_table`` that ``indices`` lists, each into the segment in ``segment_ids``.

    The output for an empty segment is the row ``default_index``, or zeros without this input.

    C1  ``emb_table`` is not a scalar.
    C2  ``indices`` is 1D.
    C3  Each entry of ``indices`` is a row of ``emb_table``. ``default_index`` is a row, too, or -1 for zeros.
    C4  ``per_sample_weights`` has the shape of ``indices``.
    C5  ``segment_ids`` has the shape of ``indices``. Its entries are not negative and less than ``num_segments``.
    C6  ``num_segments`` is a scalar that is not negative.
    """

    inputs = ports(
        emb_table="T",
        indices="T_IND",
        segment_ids="T_IND",
        num_segments="T_IND",
        default_index=opt("T_IND"),
        per_sample_weights=opt("T"),
    )

    def infer(
        self,
        at: Site,
        table: Value,
        indices: Value,
        segment_ids: Value,
        num_segments: Value,
        default: Value | None = None,
        weights: Value | None = None,
    ) -> Value:
        self.check(at, 1, table, indices, default, weights)
        same_shape = segment_ids.shape.meet(indices.shape) is not None
        at.require(same_shape, "C5", f"segment_ids is {segment_ids.shape}, but indices is {indices.shape}")
        at.require(num_segments.rank in (None, 0), "C6", f"num_segments is {num_segments.shape}, not a scalar")
        count = (num_segments.dims() or (Dim.unknown(),))[0]
        at.require(count.hi >= 0, "C6", f"num_segments {count} is negative")
        check_indices(at, "C5", segment_ids.exact, count, negative=False)
        return bag_output(table, count.max(0))

    def run(
        self,
        table: np.ndarray,
        indices: np.ndarray,
        segment_ids: np.ndarray,
        num_segments: np.ndarray,
        default: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        count = int(num_segments)
        bag = from_front(segment_ids, count, "C5", negative=False)
        return self.bags(table, indices, bag, count, default, weights)

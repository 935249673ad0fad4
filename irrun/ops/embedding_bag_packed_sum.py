"""EmbeddingBagPackedSum: sums of bags of embeddings, all of one size.  Spec: sparse/embedding-bag-packed-sum-3."""

from irrun.opdef import op
from irrun.ops._embedding import Packed


@op("EmbeddingBagPackedSum", since=3, spec="sparse/embedding-bag-packed-sum-3")
class EmbeddingBagPackedSum(Packed):
    """Sum the rows of ``emb_table`` that each row of ``indices`` lists.

    C1  ``emb_table`` is not a scalar.
    C2  ``indices`` is 2D.
    C3  Each entry of ``indices`` is a row of ``emb_table``.
    C4  ``per_sample_weights`` has the shape of ``indices``.
    """

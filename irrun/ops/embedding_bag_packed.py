"""EmbeddingBagPacked: bags of embeddings, all of one size.  Spec: sparse/embedding-bag-packed-15."""

from irrun.opdef import attr, op
from irrun.ops._embedding import Packed


@op("EmbeddingBagPacked", since=15, spec="sparse/embedding-bag-packed-15")
class EmbeddingBagPacked(Packed):
    """Sum or average the rows of ``emb_table`` that each row of ``indices`` lists.

    C1  ``emb_table`` is not a scalar.
    C2  ``indices`` is 2D.
    C3  Each entry of ``indices`` is a row of ``emb_table``.
    C4  ``per_sample_weights`` has the shape of ``indices``; it is allowed only if ``reduction`` is sum.
    """

    reduction = attr.choice("sum", "mean", default="sum")

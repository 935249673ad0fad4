"""EmbeddingBagOffsets: bags of embeddings, each beginning at an offset.  Spec: sparse/embedding-bag-offsets-15."""

from irrun.opdef import attr, op
from irrun.ops._embedding import Offsets


@op("EmbeddingBagOffsets", since=15, spec="sparse/embedding-bag-offsets-15")
class EmbeddingBagOffsets(Offsets):
    """Sum or average the rows of ``emb_table`` that ``indices`` lists, bag by bag.

    An empty bag gives the row ``default_index``, or zeros without one.

    C1  ``emb_table`` is no scalar.
    C2  ``indices`` is 1D.
    C3  Each of ``indices`` and ``default_index`` is a row of ``emb_table``; a default of -1 stands for zeros.
    C4  ``per_sample_weights`` has the shape of ``indices``, and stands only where ``reduction`` is sum.
    C5  ``offsets`` is 1D; its entries ascend within 0 and the number of ``indices``.
    """

    reduction = attr.choice("sum", "mean", default="sum")

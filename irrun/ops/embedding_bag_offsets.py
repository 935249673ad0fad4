"""EmbeddingBagOffsets: bags of embeddings, each beginning at an offset.  Spec: sparse/embedding-bag-offsets-15."""

from irrun.opdef import attr, op
from irrun.ops._embedding import Offsets


@op("EmbeddingBagOffsets", since=15, spec="sparse/embedding-bag-offsets-15")
class EmbeddingBagOffsets(Offsets):
    """Sum or average the rows of ``emb_table`` that ``indices`` lists, bag by bag.

    The output for an empty bag is the row ``default_index``, or zeros without this input.

    C1  ``emb_table`` is not a scalar.
    C2  ``indices`` is 1D.
    C3  Each entry of ``indices`` is a row of ``emb_table``. ``default_index`` is a row, too, or -1 for zeros.
    C4  ``per_sample_weights`` has the shape of ``indices``; it is allowed only if ``reduction`` is sum.
    C5  ``offsets`` is 1D; its entries are in ascending order, from 0 to at most the number of ``indices``.
    """

    reduction = attr.choice("sum", "mean", default="sum")

"""EmbeddingBagOffsetsSum: sums of bags of embeddings; offsets say where each bag begins.

Spec: sparse/embedding-bag-offsets-sum-3.
"""

from irrun.opdef import op
from irrun.ops._embedding import Offsets


@op("EmbeddingBagOffsetsSum", since=3, spec="sparse/embedding-bag-offsets-sum-3")
class EmbeddingBagOffsetsSum(Offsets):
    """Sum the rows of ``emb_table`` that ``indices`` lists, bag by bag.

    The output for an empty bag is the row ``default_index``, or zeros without this input.

    C1  ``emb_table`` is not a scalar.
    C2  ``indices`` is 1D.
    C3  Each entry of ``indices`` is a row of ``emb_table``. ``default_index`` is a row, too, or -1 for zeros.
    C4  ``per_sample_weights`` has the shape of ``indices``.
    C5  ``offsets`` is 1D; its entries are in ascending order, from 0 to at most the number of ``indices``.
    """

"""EmbeddingBagOffsetsSum: sums of bags of embeddings; offsets say where each bag begins.

Spec: sparse/embedding-bag-offsets-sum-3.
"""

from irrun.opdef import op
from irrun.ops._embedding import Offsets


@op("EmbeddingBagOffsetsSum", since=3, spec="sparse/embedding-bag-offsets-sum-3")
class EmbeddingBagOffsetsSum(Offsets):
    """Sum the rows of ``emb_table`` that ``indices`` lists, bag by bag.

    An empty bag gives the row ``default_index``, or zeros without one.

    C1  ``emb_table`` is no scalar.
    C2  ``indices`` is 1D.
    C3  Each of ``indices`` and ``default_index`` is a row of ``emb_table``; a default of -1 stands for zeros.
    C4  ``per_sample_weights`` has the shape of ``indices``.
    C5  ``offsets`` is 1D; its entries ascend within 0 and the number of ``indices``.
    """

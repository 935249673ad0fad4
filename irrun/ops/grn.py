"""GRN: divide by the Euclidean norm of the channels.  Spec: normalization/grn-1."""

import numpy as np

from irrun.kernels.normalization import total
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._normalization import check_positive
from irrun.ops._unary import through_floats


@op("GRN", since=1, spec="normalization/grn-1")
class GRN(Op):
    """Divide ``data`` by the root of ``bias`` plus the sum of squares along the channels (axis 1).

    C1  The rank of ``data`` is 2 to 4.
    C2  ``bias`` is positive.
    """

    bias = attr.float()
    inputs = ports(data="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value) -> Value:
        at.require(data.rank in (None, 2, 3, 4), "C1", f"data is {data.shape}, not 2D, 3D or 4D")
        check_positive(at, "C2", "bias", self.bias)
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray) -> np.ndarray:
        return through_floats(lambda x: x / np.sqrt(total(x * x, (1,)) + x.dtype.type(self.bias)), data)

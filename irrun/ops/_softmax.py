"""The base class of SoftMax and LogSoftmax."""

import numpy as np

from irrun.kernels.blocks import whole_along
from irrun.kernels.elementwise import native
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, ports
from irrun.ops._unary import through_floats


class AlongAxis(Op):
    """Base of the operations that normalise along one axis."""

    per_element = 4
    axis = attr.int(default=1)
    inputs = ports(data="T")
    # OpenVINO takes integers and booleans, too
    types = {"T": "boolean numeric"}
    channels_last = {"axis": "axes"}

    def kernel(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Return the result for floats of at least 32 bits."""
        raise NotImplementedError

    def block(self, x: np.ndarray, out: np.ndarray, axis: int) -> None:
        """Fill ``out``, which may be ``x``, with the result."""
        raise NotImplementedError

    def prepare(self, request: Request) -> Kernel | None:
        (data,) = request.inputs
        if data is None or not native(data) or not data.rank:
            return None
        axis = self.axis % data.rank
        return whole_along(lambda x, out: self.block(x, out, axis), (axis,))

    def infer(self, at: Site, data: Value) -> Value:
        # OpenVINO treats a scalar as a tensor of rank 1
        at.axis(self.axis, None if data.rank is None else max(data.rank, 1), "C1")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray) -> np.ndarray:
        normalised = through_floats(lambda x: self.kernel(x, self.axis), np.atleast_1d(data))
        return normalised.reshape(data.shape)

"""ReorgYolo: fewer pixels and more channels.  Spec: detection/reorg-yolo-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import PartialShape


@op("ReorgYolo", since=2, spec="detection/reorg-yolo-1")
class ReorgYolo(Op):
    """Move every ``stride``-th row and column to channels of its own.

    The shape [N, C, H, W] becomes [N, C*stride**2, H/stride, W/stride].

    C1  ``data`` is 4D.
    C2  ``stride`` is positive.
    C3  H and W are divisible by ``stride``.
    C4  C is at least ``stride`` squared.
    """

    stride = attr.ints()  # OpenVINO reads two entries, as for convolutions
    inputs = ports(data="any")

    def infer(self, at: Site, data: Value) -> Value:
        at.require(data.rank in (None, 4), "C1", f"data is {data.shape}, not 4D")
        strides = list(self.stride)
        at.require(len(set(strides)) == 1 and strides[0] > 0, "C2", f"stride {strides} is not a single positive number")
        stride = strides[0]
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(4)
        for size in sizes:
            divisible = not size.is_static or size.lo % stride == 0
            at.require(divisible, "C3", f"dim {size} of data {data.shape} is not divisible by stride {stride}")
        at.require(
            channels.hi >= stride * stride, "C4", f"data {data.shape} has fewer channels than stride {stride} squared"
        )
        return data.reshaped([batch, channels * (stride * stride), *(size // stride for size in sizes)])

    def run(self, data: np.ndarray) -> np.ndarray:
        stride = self.stride[0]
        n, c, h, w = data.shape
        batch, channel, row, column = np.ogrid[:n, :c, :h, :w]
        # index data as if its shape were [N, C/stride**2, H*stride, W*stride], rounded down
        channels = c // stride**2
        block, channel = np.divmod(channel, channels)
        row, column = row * stride + block // stride, column * stride + block % stride
        places = ((batch * channels + channel) * (h * stride) + row) * (w * stride) + column
        return data.ravel()[places].reshape(n, c * stride**2, h // stride, w // stride)

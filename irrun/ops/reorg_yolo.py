"""ReorgYolo: pixels as channels, as in the passthrough layer of YOLO.  Spec: detection/reorg-yolo-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports


@op("ReorgYolo", since=2, spec="detection/reorg-yolo-1")
class ReorgYolo(Op):
    """``data`` [N,C,H,W] as [N,C*s*s,H/s,W/s], s being ``stride``.

    Darknet's order: of ``data`` read as [N,C/(s*s),H*s,W*s], each channel gathers the pixels s apart.

    C1  ``data`` is 4D.
    C2  ``stride`` is positive.
    C3  Height and width are multiples of ``stride``.
    C4  There are ``stride * stride`` channels or more.
    """

    stride = attr.int()
    inputs = ports(data="T")

    def infer(self, at: Site, data: Value) -> Value:
        at.require(data.rank in (None, 4), "C1", f"data is {data.shape}, not 4D")
        at.require(self.stride >= 1, "C2", f"stride is {self.stride}")
        area = self.stride**2
        at.require(data.shape[1].hi >= area, "C4", f"data is {data.shape}, of fewer than {area} channels")
        sides = data.shape[2], data.shape[3]
        multiples = all(side.value is None or side.value % self.stride == 0 for side in sides)
        at.require(multiples, "C3", f"data is {data.shape}, stride {self.stride}")
        return data.reshaped([data.shape[0], data.shape[1] * area, *(side // self.stride for side in sides)])

    def run(self, data: np.ndarray) -> np.ndarray:
        images, channels, height, width = data.shape
        stride = self.stride
        gathered = channels // stride**2
        n, c, h, w = np.ogrid[:images, :channels, :height, :width]
        place, channel = divmod(c, gathered)
        # OpenVINO: of channels that stride * stride does not divide, the rest continues below the last row
        row = (n * gathered + channel) * height * stride + h * stride + place // stride
        found = data.ravel()[row * width * stride + w * stride + place % stride]
        return found.reshape(images, channels * stride**2, height // stride, width // stride)

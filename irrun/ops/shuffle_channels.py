"""ShuffleChannels: groups of channels interleaved.  Spec: movement/shuffle-channels-1."""

import numpy as np

from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.ops._equal_parts import part


@op("ShuffleChannels", since=1, spec="movement/shuffle-channels-1")
class ShuffleChannels(Op):
    """Divide ``axis`` into ``group`` groups, and take one element of each group in turn.

    C1  ``data`` is not a scalar.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``group`` is positive and divides the dim of ``axis``.
    """

    axis = attr.int(1)
    group = attr.int(1)
    inputs = ports(data="T")
    types = {"T": "numeric"}
    channels_last = {"axis": "axes"}

    def infer(self, at: Site, data: Value) -> Value:
        at.require(self.group > 0, "C3", f"group is {self.group}, not positive")
        at.require(data.rank != 0, "C1", "data is a scalar")
        if data.shape.dims is not None:
            axis = at.axis(self.axis, data.rank, "C2")
            part(at, data.shape[axis], self.group, "C3", f"dim {axis} of data {data.shape}")
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        (data,) = request.inputs
        count = None if data is None or data.type.kind == "string" else data.shape[self.axis].value
        if not count:
            return None
        axis, order = self.axis, np.arange(count).reshape(self.group, -1).T.ravel()

        def call(data: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
            return np.take(data, order, axis, out, "clip")  # "clip" needs no check and no buffer

        return Kernel(call, out="whole")

    def run(self, data: np.ndarray) -> np.ndarray:
        if not data.size:  # the number of groups may be any
            return data
        axis = self.axis % data.ndim
        channels = data.shape[axis]
        grouped = (*data.shape[:axis], self.group, channels // self.group, *data.shape[axis + 1 :])
        return data.reshape(grouped).swapaxes(axis, axis + 1).reshape(data.shape)

"""DepthToSpace: channels moved into blocks of the spatial axes.  Spec: movement/depth-to-space-1."""

import numpy as np

from irrun.kernels.copies import copy_to
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.ops._equal_parts import part
from irrun.types import Dim


@op("DepthToSpace", since=1, spec="movement/depth-to-space-1")
class DepthToSpace(Op):
    """Move every ``block_size**K`` channels of ``[N, C, D1 … DK]`` into a block of ``block_size`` along D1 to DK.

    The channels of a block are C / block_size**K apart (blocks_first) or adjacent (depth_first).

    C1  The rank of ``data`` is at least 3.
    C2  ``block_size`` is positive.
    C3  ``block_size**K`` divides the number of channels.
    """

    block_size = attr.int(1)
    mode = attr.choice("blocks_first", "depth_first")
    inputs = ports(data="T")
    types = {"T": "any"}
    channels_last = True

    def infer(self, at: Site, data: Value) -> Value:
        size = self.block_size
        at.require(size > 0, "C2", f"block_size is {size}, not positive")
        if data.shape.dims is None:
            return data.reshaped(data.shape)
        at.require(len(data.shape) >= 3, "C1", f"data {data.shape} has rank {data.rank}, less than 3")
        batch, depth, *space = data.shape
        channels = part(at, depth, Dim(size ** len(space)), "C3", f"the number of channels of data {data.shape}")
        return data.reshaped([batch, channels, *(n * size for n in space)])

    def prepare(self, request: Request) -> Kernel | None:
        if not request.channels_last:
            return None
        size = self.block_size

        def call(data: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
            batch, rows, columns, depth = data.shape
            channels = depth // size**2
            if self.mode == "blocks_first":
                split = data.reshape(batch, rows, columns, size, size, channels).transpose(0, 1, 3, 2, 4, 5)
            else:
                split = data.reshape(batch, rows, columns, channels, size, size).transpose(0, 1, 4, 2, 5, 3)
            if out is None:
                out = np.empty((batch, rows * size, columns * size, channels), data.dtype)
            copy_to(out.reshape(split.shape), split)
            return out

        return Kernel(call, "channels last", out="whole")

    def run(self, data: np.ndarray) -> np.ndarray:
        batch, depth, *space = data.shape
        size, count = self.block_size, len(space)
        channels, blocks = depth // size**count, [size] * count
        if self.mode == "blocks_first":
            split, first, block = data.reshape(batch, *blocks, channels, *space), count + 1, 1
        else:
            split, first, block = data.reshape(batch, channels, *blocks, *space), 1, 2
        order = [axis for k in range(count) for axis in (count + 2 + k, block + k)]
        return split.transpose(0, first, *order).reshape(batch, channels, *(n * size for n in space))

"""SpaceToDepth: blocks of the spatial axes moved into channels.  Spec: movement/space-to-depth-1."""

import numpy as np

from irrun.kernels.copies import copy_to
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.ops._equal_parts import part
from irrun.types import Dim


@op("SpaceToDepth", since=1, spec="movement/space-to-depth-1")
class SpaceToDepth(Op):
    """Move each block of ``block_size`` along D1 to DK of ``[N, C, D1 … DK]`` into ``block_size**K`` channels.

    The channels of a block are C apart (blocks_first) or adjacent (depth_first).

    C1  The rank of ``data`` is at least 3.
    C2  ``block_size`` is positive.
    C3  ``block_size`` divides each spatial dim.
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
        batch, channels, *space = data.shape
        smaller = [part(at, n, size, "C3", f"dim {i + 2} of data {data.shape}") for i, n in enumerate(space)]
        return data.reshaped([batch, channels * Dim(size ** len(space)), *smaller])

    def prepare(self, request: Request) -> Kernel | None:
        if not request.channels_last or self.mode == "depth_first":  # elements would be copied one by one
            return None
        size = self.block_size

        def call(data: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
            batch, rows, columns, channels = data.shape
            smaller = rows // size, columns // size
            split = data.reshape(batch, smaller[0], size, smaller[1], size, channels)
            blocks = split.swapaxes(2, 3)
            if out is None:
                out = np.empty((batch, *smaller, channels * size**2), data.dtype)
            copy_to(out.reshape(blocks.shape), blocks)
            return out

        return Kernel(call, "channels last", out="whole")

    def run(self, data: np.ndarray) -> np.ndarray:
        batch, channels, *space = data.shape
        size, count = self.block_size, len(space)
        smaller = [n // size for n in space]
        split = data.reshape(batch, channels, *(n for d in smaller for n in (d, size)))
        within, outside = list(range(3, 3 + 2 * count, 2)), range(2, 2 + 2 * count, 2)
        depth = [*within, 1] if self.mode == "blocks_first" else [1, *within]
        return split.transpose(0, *depth, *outside).reshape(batch, channels * size**count, *smaller)

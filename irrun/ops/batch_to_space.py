"""BatchToSpace: batches moved into blocks of the other axes, then cropped.  Spec: movement/batch-to-space-2."""

import math

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports
from irrun.ops._block_shape import aligned
from irrun.ops._equal_parts import part
from irrun.types import product


@op("BatchToSpace", since=2, spec="movement/batch-to-space-2")
class BatchToSpace(Op):
    """Spread the batches over blocks of ``block_shape``, then crop the beginning and the end of each axis.

    C1  The rank of ``data`` is at least 2.
    C2  ``block_shape``, ``crops_begin`` and ``crops_end`` are 1D, with one entry for each axis of ``data``.
    C3  Each entry of ``block_shape`` is positive, and the first one is 1.
    C4  No crop is negative, and the crops of axis 0 are 0.
    C5  The product of ``block_shape`` divides the batch size.
    C6  The crops of an axis together are at most its dim times its block size.
    """

    inputs = ports(data="T", block_shape="T_INT", crops_begin="T_INT", crops_end="T_INT")
    types = {"T": "any", "T_INT": "int"}

    def infer(self, at: Site, data: Value, block_shape: Value, crops_begin: Value, crops_end: Value) -> Value:
        edges = aligned(at, data, block_shape, crops_begin=crops_begin, crops_end=crops_end)
        if edges is None:
            return data.reshaped(data.shape)
        (batch, *space), blocks, begins, ends = edges
        dims = [part(at, batch, product(blocks), "C5", f"the batch size of data {data.shape}")]
        for n, block, begin, end in zip(space, blocks[1:], begins[1:], ends[1:]):
            left = n * block - (begin + end)
            at.require(left.hi >= 0, "C6", f"the crops {begin} and {end} are more than a dim of {n * block}")
            dims.append(left.max(0))
        return data.reshaped(dims)

    def run(
        self, data: np.ndarray, block_shape: np.ndarray, crops_begin: np.ndarray, crops_end: np.ndarray
    ) -> np.ndarray:
        batch, *space = data.shape
        blocks = block_shape.tolist()[1:]
        rest, count = batch // math.prod(blocks), len(space)
        order = [count, *(axis for k in range(count) for axis in (count + 1 + k, k))]
        larger = [n * block for n, block in zip(space, blocks)]
        whole = data.reshape(*blocks, rest, *space).transpose(order).reshape(rest, *larger)
        kept = [slice(b, n - e) for b, e, n in zip(crops_begin.tolist()[1:], crops_end.tolist()[1:], larger)]
        return whole[(slice(None), *kept)]

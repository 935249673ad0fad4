"""SpaceToBatch: axes padded, and their blocks moved into batches.  Spec: movement/space-to-batch-2."""

import math

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports
from irrun.ops._block_shape import aligned
from irrun.ops._equal_parts import part
from irrun.types import blank, product


@op("SpaceToBatch", since=2, spec="movement/space-to-batch-2")
class SpaceToBatch(Op):
    """Pad each axis with zeros, then move the elements of every block of ``block_shape`` into batches of their own.

    C1  The rank of ``data`` is at least 2.
    C2  ``block_shape``, ``pads_begin`` and ``pads_end`` are 1D, with one entry for each axis of ``data``.
    C3  Each entry of ``block_shape`` is positive, and the first one is 1.
    C4  No pad is negative, and the pads of axis 0 are 0.
    C5  Each block size divides its padded dim.
    """

    inputs = ports(data="T", block_shape="T_INT", pads_begin="T_INT", pads_end="T_INT")
    types = {"T": "any", "T_INT": "int"}

    def infer(self, at: Site, data: Value, block_shape: Value, pads_begin: Value, pads_end: Value) -> Value:
        edges = aligned(at, data, block_shape, pads_begin=pads_begin, pads_end=pads_end)
        if edges is None:
            return data.reshaped(data.shape)
        (batch, *space), blocks, begins, ends = edges
        dims = [batch * product(blocks)]
        for i, (n, block, begin, end) in enumerate(zip(space, blocks[1:], begins[1:], ends[1:])):
            dims.append(part(at, n + begin + end, block, "C5", f"the padded dim {i + 1} of data {data.shape}"))
        return data.reshaped(dims)

    def run(
        self, data: np.ndarray, block_shape: np.ndarray, pads_begin: np.ndarray, pads_end: np.ndarray
    ) -> np.ndarray:
        batch, *space = data.shape
        blocks, begins, ends = (a.tolist()[1:] for a in (block_shape, pads_begin, pads_end))
        padded = blank((batch, *(n + b + e for n, b, e in zip(space, begins, ends))), data)
        padded[(slice(None), *(slice(b, b + n) for n, b in zip(space, begins)))] = data
        smaller = [n // block for n, block in zip(padded.shape[1:], blocks)]
        split = padded.reshape(batch, *(n for pair in zip(smaller, blocks) for n in pair))
        order = [*range(2, 2 + 2 * len(space), 2), 0, *range(1, 1 + 2 * len(space), 2)]
        return split.transpose(order).reshape(batch * math.prod(blocks), *smaller)

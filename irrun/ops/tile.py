"""Tile: a tensor repeated along its axes.  Spec: movement/tile-1."""

import numpy as np

from irrun.kernels.elementwise import copied
from irrun.opdef import Kernel, Op, Request, Site, Value, op, ports
from irrun.types import UNKNOWN_RANK, Dim


@op("Tile", since=1, spec="movement/tile-1")
class Tile(Op):
    """Repeat ``data`` along each axis as often as ``repeats`` says.

    If the rank of ``data`` and the length of ``repeats`` differ, the shorter one is first padded with leading ones.

    C1  ``repeats`` is 1D.
    """

    inputs = ports(data="T", repeats="T_REPEATS")
    types = {"T": "any", "T_REPEATS": "int"}
    carries = True

    def infer(self, at: Site, data: Value, repeats: Value) -> Value:
        at.require(repeats.rank in (None, 1), "C1", f"repeats is {repeats.shape}, not 1D")
        counts = repeats.dims()
        if data.shape.dims is None or counts is None:
            return data.reshaped(UNKNOWN_RANK)
        rank = max(len(data.shape), len(counts))
        one = Dim(1)
        dims = (one,) * (rank - len(data.shape)) + data.shape.dims
        # OpenVINO treats negative repeats as 0; the specification does not mention them
        counts = (one,) * (rank - len(counts)) + tuple(n.max(0) for n in counts)
        return data.reshaped([d * n for d, n in zip(dims, counts)])

    def prepare(self, request: Request) -> Kernel | None:
        return Kernel(self._tiled, out="whole")

    def run(self, data: np.ndarray, repeats: np.ndarray) -> np.ndarray:
        return self._tiled(data, repeats)

    def _tiled(self, data: np.ndarray, repeats: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        rank = max(data.ndim, repeats.size)
        dims = [1] * (rank - data.ndim) + list(data.shape)
        counts = [1] * (rank - repeats.size) + [max(int(n), 0) for n in repeats]
        shape = [d * n for d, n in zip(dims, counts)]
        if 0 in shape:
            return np.empty(shape, data.dtype) if out is None else out
        run = 1
        for axis in reversed(range(rank)):  # runs too short for a strided copy are first lengthened
            run *= dims[axis]
            if counts[axis] > 1 and run < _SHORT:
                data = data.reshape(-1, run).repeat(counts[axis], 0)
                run, dims[axis], counts[axis] = run * counts[axis], shape[axis], 1
        if max(counts, default=1) == 1:
            return copied(data.reshape(shape), out)
        if out is None:
            out = np.empty(shape, data.dtype)
        # [2,3] by (4,5) is one copy of [1,2,1,3] into [4,2,5,3]
        tiles = out.reshape([n for pair in zip(counts, dims) for n in pair])
        tiles[...] = data.reshape([n for d in dims for n in (1, d)])
        return out


_SHORT = 64
"""The number of contiguous elements below which numpy's strided copy is slower than ``repeat``."""

"""MatMul: products of matrices and vectors.  Spec: matrix/matmul-1."""

import math
from collections.abc import Sequence

import numpy as np

from irrun.kernels.blocks import SMALL_BLOCK_BYTES, each_block, report_in_blocks, within
from irrun.kernels.matmul import TransposedConstant, UnpackedConstant, cuts, matmul, multiply_stored, narrow, wide
from irrun.opdef import (
    Index,
    Kernel,
    OnTileReady,
    Op,
    Operands,
    Packing,
    Request,
    Site,
    Stored,
    Value,
    attr,
    ignore_tile,
    op,
    ports,
)
from irrun.ops._broadcasting import refuse
from irrun.types import Dim, PartialShape


@op("MatMul", since=1, spec="matrix/matmul-1")
class MatMul(Op):
    """Multiply the matrices in the last two axes. The axes before them are batch axes, which are broadcast.

    A 1D ``a`` is treated as a row, a 1D ``b`` as a column. The axis of length 1 added for this is removed from the
    output.

    C1  Neither input is a scalar.
    C2  ``a`` has as many columns as ``b`` has rows.
    C3  The batch dims can be broadcast.
    """

    transpose_a = attr.bool(False)
    transpose_b = attr.bool(False)
    inputs = ports(a="T", b="T")
    types = {"T": "numeric"}
    takes_stored = 1

    def infer(self, at: Site, a: Value, b: Value) -> Value:
        for name, value in ("a", a), ("b", b):
            at.require(value.rank != 0, "C1", f"{name} is a scalar")
        if a.shape.dims is None or b.shape.dims is None:
            return a.reshaped(PartialShape(None))
        *batch_a, rows, inner_a = _swapped(a.shape.dims, self.transpose_a) if a.rank != 1 else (Dim(1), *a.shape)
        *batch_b, inner_b, columns = _swapped(b.shape.dims, self.transpose_b) if b.rank != 1 else (*b.shape, Dim(1))
        at.require(
            inner_a.meet(inner_b) is not None,
            "C2",
            f"a {a.shape} gives {inner_a} columns, b {b.shape} gives {inner_b} rows",
            dims=(inner_a, inner_b),
        )
        batches = PartialShape.of(batch_a), PartialShape.of(batch_b)
        batch = batches[0].broadcast(batches[1])
        if batch is None:
            message = f"the batch dims of a {a.shape} and b {b.shape} cannot be broadcast"
            refuse(at, "C3", message, ("batch of a", "batch of b"), *batches)
        return a.reshaped([*batch, *([rows] if a.rank != 1 else []), *([columns] if b.rank != 1 else [])])

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        a = inputs[0]
        if a is None or not a.shape.dims:
            return Dim.unknown()
        inner = a.shape.dims[-2 if self.transpose_a and len(a.shape.dims) > 1 else -1]
        return outputs[0].shape.count() * inner * 2

    def rounded(self, inputs: Sequence[Value | None], precision: Operands, /) -> tuple[int, ...]:
        return () if precision == "i8" and self.transpose_a else (0, 1)

    def multiplied_rows(self, shape: Sequence[int], /) -> int:
        return math.prod(shape[:-2]) * shape[-1] if self.transpose_a and len(shape) > 1 else math.prod(shape[:-1])

    def prepare(self, request: Request) -> Kernel | None:
        a, b = (value for value in request.inputs if value is not None)
        ranks = a.rank or 0, b.rank or 0
        if min(ranks) < 2 or a.type is not b.type or a.type.kind != "float":
            return None
        if a.type.dtype != wide(a.type.dtype):
            return self._widened(b) if b.data is not None else None
        transpose_a, transpose_b = self.transpose_a, self.transpose_b
        shape = self.infer(Site(), a, b).shape.static
        held: TransposedConstant | UnpackedConstant | None = None
        if b.stored is not None and not request.unpacks:
            return self._in_parts(b.stored)
        if b.stored is not None:
            held, transpose_b = UnpackedConstant.of(b.stored, transpose_b), False
        elif transpose_b and ranks[1] == 2 and b.data is not None and b.data.size:
            held, transpose_b = TransposedConstant.of(b.data), False
        inner = a.shape[-2 if transpose_a else -1].value or 0
        flops = 0 if shape is None else 2 * math.prod(shape) * inner
        parts = None if shape is None or ranks[1] > 2 else cuts(shape, a.type.dtype.itemsize)

        def call(
            a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
        ) -> np.ndarray:
            if transpose_a:
                a = a.swapaxes(-1, -2)
            if held is not None:
                b = held.array
            elif transpose_b:
                b = b.swapaxes(-1, -2)
            if on_tile_ready is ignore_tile:
                return matmul(a, b, out)
            assert shape is not None
            whole = np.empty(shape, a.dtype) if out is None else out
            if parts is None:
                report_in_blocks(matmul(a, b, whole), on_tile_ready)
                return whole

            def fill(index: Index) -> None:
                matmul(a[index[:-1]], b[:, index[-1]], whole[index])
                for part in within(index, whole.itemsize, SMALL_BLOCK_BYTES):
                    on_tile_ready(part)

            each_block(fill, shape, whole.itemsize, work=flops, **parts)
            return whole

        packing = Packing() if held is None else Packing((1,), held.array.nbytes)
        return Kernel(call, out="tiles", flops=flops, packing=packing)

    def _in_parts(self, stored: Stored) -> Kernel:
        """Return a kernel that unpacks ``b`` in parts in each call."""

        def call(a: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
            if self.transpose_a:
                a = a.swapaxes(-1, -2)
            columns = stored.shape[0 if self.transpose_b else 1]
            whole = np.empty((*a.shape[:-1], columns), a.dtype) if out is None else out
            multiply_stored(a.reshape(-1, a.shape[-1]), stored, self.transpose_b, whole.reshape(-1, columns))
            return whole

        return Kernel(call, "unpacked in parts", out="whole", packing=Packing((1,)))

    def _widened(self, b: Value) -> Kernel:
        """Return a kernel for floats narrower than f32. It converts the constant ``b`` once, not in each call."""
        assert b.data is not None
        weights = b.data.astype(np.float32)
        if self.transpose_b:
            weights = weights.swapaxes(-1, -2)

        def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            left = a.swapaxes(-1, -2) if self.transpose_a else a
            return narrow(matmul(left.astype(np.float32), weights), a.dtype)

        return Kernel(call, "widened", packing=Packing((1,), weights.nbytes))

    def run(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.transpose_a and a.ndim > 1:
            a = a.swapaxes(-1, -2)
        if self.transpose_b and b.ndim > 1:
            b = b.swapaxes(-1, -2)
        return matmul(a, b)


def _swapped(dims: tuple[Dim, ...], transpose: bool) -> tuple[Dim, ...]:
    return (*dims[:-2], dims[-1], dims[-2]) if transpose else dims

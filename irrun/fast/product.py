"""Matrix products with a constant matrix, packed in the order in which they read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from irrun.base.thresholds import least
from irrun.fast.codes import PackedCodes
from irrun.fast.copying import reads_turned, turning
from irrun.fast.machine.processor import HALVES
from irrun.fast.machine.sharing import share_call
from irrun.fast.panels import WIDTH, Packed, multiply_part, zero_panels
from irrun.fast.precision.bf16 import multiply_rounded, rounded_panels
from irrun.fast.precision.digits import DigitCodes
from irrun.fast.precision.i8 import QuantizedCodes
from irrun.fast.precision.rounded_codes import RoundedCodes
from irrun.kernels.blocks import BLOCK_BYTES, SMALL_BLOCK_BYTES, each_block, within
from irrun.kernels.matmul import ConstantForm, UnpackedConstant, cuts
from irrun.kernels.threads import shared
from irrun.opdef import (
    LEAST_ROUNDED,
    Call,
    Calls,
    Epilogue,
    Index,
    Joins,
    Kernel,
    OnTileReady,
    Operands,
    Packing,
    Request,
    Site,
    Stored,
    Value,
    ignore_tile,
)  # fmt: skip
from irrun.types import ElementType

__all__ = ["WIDTH", "PackedMatrix", "offer", "packed_matrix", "packed_product"]


_MIN_MATRIX_ELEMENTS: Final = 1 << 12
"""The least elements of a constant matrix for which a compiled kernel is worth its calls."""


class _MatMul(Protocol):
    transpose_a: bool
    transpose_b: bool

    def infer(self, at: Site, a: Value, b: Value, /) -> Value: ...

    def multiplied_rows(self, shape: Sequence[int], /) -> int: ...


def offer(op: _MatMul, request: Request) -> Kernel | None:
    """Return the kernel of MatMul for f32 and a constant matrix ``b``, or None for others."""
    a, b = request.inputs
    if a is None or b is None or (a.rank or 0) < 2 or a.type.name != "f32" or b.type is not a.type or b.rank != 2:
        return None
    source = b.data if b.stored is None else b.stored
    if source is None or math.prod(b.shape.static or ()) < least(_MIN_MATRIX_ELEMENTS):
        return None
    if request.precision == "i8" and (b.stored is None or not QuantizedCodes.holds(b.stored, op.transpose_b)):
        return None
    precision, known, few = request.precision, a.shape.static, None
    if precision == "codes" and (known is None or op.multiplied_rows(known) >= LEAST_ROUNDED):
        few = packed_matrix(source, op.transpose_b, "codes") if known is None else None
        precision = "bf16"
    shape = op.infer(Site(), a, b).shape.static
    flops = 0 if shape is None else 2 * math.prod(shape) * (a.shape[-2 if op.transpose_a else -1].value or 0)
    return packed_product(source, op.transpose_a, op.transpose_b, flops, precision, few)


def packed_matrix(source: np.ndarray | Stored, transposed: bool, precision: Operands = "f32") -> Packed:
    """Return the packed form of a matrix of f32, or of the transposed matrix, for operands of a precision.

    For ``codes``, that is the form for few rows.
    """
    kind = RoundedMatrix if precision == "bf16" else PackedMatrix
    if isinstance(source, np.ndarray):
        return kind.of(source.T if transposed else source)
    if source.type.kind == "float":
        return kind.of(source.codes.T if transposed else source.codes)
    if precision == "i8":
        return QuantizedCodes.of(source, transposed)
    if precision == "bf16" and RoundedCodes.holds(source, transposed):
        return RoundedCodes.of(source, transposed)
    if precision == "bf16":
        return RoundedMatrix.of(UnpackedConstant.of(source, transposed).array)
    if precision == "codes" and RoundedCodes.holds(source, transposed):
        return PackedCodes.of(source, transposed)
    if DigitCodes.holds(source, transposed):
        return DigitCodes.of(source, transposed)
    if PackedCodes.holds(source, transposed):
        return PackedCodes.of(source, transposed)
    return PackedMatrix.of(UnpackedConstant.of(source, transposed).array)


def packed_product(
    source: np.ndarray | Stored, transpose_a: bool, transpose_b: bool, flops: int, precision: Operands = "f32",
    few: Packed | None = None,
) -> Kernel:  # fmt: skip
    """Return the kernel of a product with a constant matrix ``source``, which takes ``flops``.

    ``transpose_a`` and ``transpose_b`` say whether the other operand and the constant matrix are transposed first.
    ``precision`` is that of both operands. Fewer rows than ``LEAST_ROUNDED`` are multiplied by ``few``, if it is given.
    """
    packed = packed_matrix(source, transpose_b, precision)
    arrays = (*packed.arrays, *(() if few is None else few.arrays))
    spare_bytes = 2 * flops // packed.columns if transpose_a else 0  # the turned operand

    def kernel(epilogue: Epilogue | None = None) -> Kernel:
        change = None if epilogue is None else epilogue.change

        def call(
            a: np.ndarray, b: np.ndarray, residual: np.ndarray | None = None, *, out: np.ndarray | None = None,
            on_tile_ready: OnTileReady = ignore_tile,
        ) -> np.ndarray:  # fmt: skip
            rows = np.ascontiguousarray(a.swapaxes(-1, -2) if transpose_a else a)
            whole = np.empty((*rows.shape[:-1], packed.columns), np.float32) if out is None else out
            more = None if residual is None else np.ascontiguousarray(residual)

            def fill(index: Index) -> None:
                columns = index[-1]
                width = columns.stop - columns.start
                target = whole[index].reshape(-1, width)
                added = None if more is None else more[index].reshape(-1, width)
                own.multiply(rows[index[:-1]].reshape(-1, packed.depth), target, columns.start, epilogue, added)
                if change is not None:
                    change(target)
                if on_tile_ready is not ignore_tile:
                    for part in within(index, whole.itemsize, SMALL_BLOCK_BYTES):
                        on_tile_ready(part)

            work = 2 * whole.size * packed.depth
            if not whole.size:
                return whole
            own = few if few is not None and whole.size < LEAST_ROUNDED * packed.columns else packed
            if on_tile_ready is ignore_tile and (change is None or shared(work, natively=True)):
                target = whole.reshape(-1, packed.columns)
                added = None if more is None else more.reshape(target.shape)
                share_call(own.call_alone(rows.reshape(-1, packed.depth), target, epilogue, added), work)
                if change is not None:
                    change(whole)
            elif on_tile_ready is ignore_tile and not shared(work) and whole.nbytes <= BLOCK_BYTES:
                fill(tuple(map(slice, (0,) * whole.ndim, whole.shape)))
            else:
                each_block(fill, whole.shape, whole.itemsize, work=work, **cuts(whole.shape, whole.itemsize))
            return whole

        def rows(a: np.ndarray, b: None = None, residual: np.ndarray | None = None, *, out: np.ndarray) -> Calls:
            return [packed.call(a, out, epilogue, residual), *(() if change is None else change.calls(out))]

        def calls(
            a: np.ndarray, b: None = None, residual: np.ndarray | None = None, *, out: np.ndarray, spare: np.ndarray
        ) -> Calls:
            target, rows = out.reshape(-1, packed.columns), a.swapaxes(-1, -2) if transpose_a else a
            added, made = None if residual is None else residual.reshape(target.shape), list[Call]()
            if not rows.flags.c_contiguous:
                turned = spare.view(np.float32)[: rows.size].reshape(rows.shape)
                made += turning(a, turned)
                rows = turned
            own = packed.call_alone(rows.reshape(-1, packed.depth), target, epilogue, added)
            return [*made, own, *(() if change is None else change.calls(target))]

        joins = Joins(
            calls=None if few is not None or (transpose_a and not spare_bytes) else calls,
            reads_view=reads_turned if transpose_a else None,
            spare_bytes=spare_bytes,
            row_calls=None if transpose_a else rows,
            row_inputs=(0, 2),
            with_epilogue=kernel if epilogue is None else None,
        )
        packing = Packing((1,), sum({id(array): array.nbytes for array in arrays}.values()))
        return Kernel(call, packed.name, out="tiles", flops=flops, packing=packing, joins=joins)

    return kernel()


class PackedMatrix(Packed):
    """A constant matrix of f32, f16 or bf16 in panels of ``WIDTH`` columns, the last of them padded with zeros.

    The panels hold the type of the matrix; f32 also becomes f16 if every element is a number of f16. The product is the
    same as with f32, in half the memory. A matrix that is ``widened`` is held in f32.
    """

    part = staticmethod(multiply_part)

    def __init__(self, matrix: np.ndarray, widened: bool = False) -> None:
        super().__init__(matrix)
        self.depth, self.columns = matrix.shape
        if widened:
            matrix = matrix.astype(np.float32)
        elif matrix.dtype == np.float32 and HALVES and (halves := _halves(matrix)) is not None:
            matrix = halves
        type = ElementType.of(matrix.dtype)
        assert type is not None
        dtype = {"f16": np.uint16 if HALVES else np.float32, "bf16": np.int16}.get(type.name, np.float32)
        self.name = "compiled" if dtype is np.float32 else f"compiled, {type}"
        self.panels = zero_panels(self.columns, self.depth, dtype)
        held = self.panels if dtype is np.float32 else self.panels.view(matrix.dtype)
        for number, panel in enumerate(held):
            columns = matrix[:, number * WIDTH : (number + 1) * WIDTH]
            panel[:, : columns.shape[1]] = columns


class RoundedMatrix(PackedMatrix):
    """A constant matrix rounded to bf16, which is multiplied by rounded rows: see ``precision.bf16``."""

    part = staticmethod(multiply_rounded)

    def __init__(self, matrix: np.ndarray) -> None:
        ConstantForm.__init__(self, matrix)
        self.depth, self.columns = matrix.shape
        self.name, self.panels = "compiled in bf16", rounded_panels(matrix)


def _halves(matrix: np.ndarray) -> np.ndarray | None:
    """Return the matrix in f16, or None if a number changes. Most matrices show in their first row that one does."""
    with np.errstate(over="ignore"):
        if not np.array_equal(matrix[:1].astype(np.float16), matrix[:1]):
            return None
        halves = matrix.astype(np.float16)
    return halves if np.array_equal(halves, matrix) else None

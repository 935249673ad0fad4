"""Activations in one pass, where numpy makes four to twelve."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

import irrun.fast.functions as f
from irrun.fast.arithmetic import moved
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.memory import row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.row_change import RowChange
from irrun.kernels.blocks import SMALL_BLOCK_BYTES, each_block
from irrun.opdef import Change, Index, Joins, Kernel, Op, Request

__all__ = ["activate", "activation", "numbered", "offer", "swish"]

_f32: Final = np.float32
_ONE: Final = _f32(1)
_HALF: Final = _f32(0.5)
_SQRT_HALF: Final = _f32(math.sqrt(0.5))
_LINEAR: Final = _f32(-2 * math.sqrt(2 / math.pi))
_CUBIC: Final = _f32(-2 * math.sqrt(2 / math.pi) * 0.044715)


def offer(op: Op, request: Request) -> Kernel | None:
    """Return the element-wise kernel of an activation of f32, or None for scalars and other types."""
    data, beta = request.first(2)
    if data is None or data.type.name != "f32" or not data.rank:
        return None
    if op.type == "Gelu":
        return activation(gelu_tanh if getattr(op, "approximation_mode", "erf") == "tanh" else gelu_erf)
    if op.type != "Swish":
        return activation({"Erf": erf, "Exp": exp, "Sigmoid": sigmoid, "Tanh": tanh}[op.type])
    if beta is None:
        return activation(swish, np.float32(1))
    return None if beta.data is None else activation(swish, np.float32(beta.data.item()))


def activation(kernel: Callable[..., None], *numbers: np.float32) -> Kernel:
    """Return the element-wise kernel for one of the functions below and its further arguments."""
    change = RowChange(kernel, *numbers, whole=False)

    def call(x: np.ndarray, *_: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(x.shape, x.dtype) if out is None else out
        if x.nbytes <= SMALL_BLOCK_BYTES or not (x.flags.c_contiguous and whole.flags.c_contiguous):
            if whole is not x:
                np.copyto(whole, x)
            change(whole)
            return whole
        source, target = x.reshape(-1), whole.reshape(-1)

        def fill(index: Index) -> None:
            tile = target[index]
            if whole is not x:
                np.copyto(tile, source[index])
            change(tile)

        each_block(
            fill,
            target.shape,
            target.itemsize,
            SMALL_BLOCK_BYTES,
            work=_WORK_PER_BYTE * whole.nbytes,
            least=SMALL_BLOCK_BYTES // 4,
        )
        return whole

    return Kernel(call, out="elementwise", joins=Joins(change=change, row_calls=change.rows, row_inputs=(0,)))


def numbered(change: Change | None) -> tuple[int, np.float32] | None:
    """Return the first arguments of ``activate`` for a change in place, or None if it is none of those."""
    if not isinstance(change, RowChange) or change.kernel not in _NUMBERED:
        return None
    return _NUMBERED.index(change.kernel), np.float32(change.numbers[0] if change.numbers else 0)


_WORK_PER_BYTE: Final = 4
"""The time that a function takes for a byte, in units of ``threads.WORTH``."""


@contracted
def _gelu_erf(x: Number) -> Number:
    return _HALF * x * (_ONE + f.erf(x * _SQRT_HALF))


@contracted
def _gelu_tanh(x: Number) -> Number:
    return x / (_ONE + f.exp(x * (x * x * _CUBIC + _LINEAR)))


@contracted
def _swish(x: Number, beta: Number) -> Number:
    return x / (_ONE + f.exp(-beta * x))


@compiled
def gelu_erf(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Fill rows with others, in which x Φ(x), with the error function takes the place of each x."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = _gelu_erf(row[j])


@compiled
def gelu_tanh(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Fill rows with others, in which 0.5 x (1 + tanh(sqrt(2 / π) (x + 0.044715 x³))) takes the place of each x."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = _gelu_tanh(row[j])


@compiled
def swish(source: int, step: int, target: int, apart: int, columns: int, beta: Number, first: int, last: int) -> None:
    """Fill rows with others, in which x / (1 + exp(-beta x)) takes the place of each x."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = _swish(row[j], beta)


@compiled
def sigmoid(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Fill rows with others, in which 1 / (1 + exp(-x)) takes the place of each x."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = f.sigmoid(row[j])


@compiled
def tanh(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Fill rows with others, in which the hyperbolic tangent takes the place of each x."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = f.tanh(row[j])


@compiled
def exp(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Fill rows with others, in which e to the power of x takes the place of each x."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = f.exp(row[j])


@compiled
def erf(source: int, step: int, target: int, apart: int, columns: int, first: int, last: int) -> None:
    """Fill rows with others, in which the error function takes the place of each x."""
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = f.erf(row[j])


_NUMBERED: Final = (gelu_erf, gelu_tanh, swish, sigmoid, tanh)
"""The activations that ``activate`` computes, by its ``which``."""


@contracted
def activate(which: int, beta: Number, address: int, columns: int) -> None:
    """Change a row in place by the activation number ``which`` of ``_NUMBERED``. ``beta`` is that of ``swish``."""
    row = row_at(address, columns)
    if which == 0:
        for j in range(columns):
            row[j] = _gelu_erf(row[j])
    elif which == 1:
        for j in range(columns):
            row[j] = _gelu_tanh(row[j])
    elif which == 2:
        for j in range(columns):
            row[j] = _swish(row[j], beta)
    elif which == 3:
        for j in range(columns):
            row[j] = f.sigmoid(row[j])
    else:
        for j in range(columns):
            row[j] = f.tanh(row[j])

"""Activations in one pass, where numpy makes four to twelve."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, Final

import numpy as np

import irrun.fast.functions as f
from irrun.fast.arithmetic import moved
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.memory import row_at
from irrun.fast.machine.processor import compiled
from irrun.fast.row_change import RowChange
from irrun.kernels.blocks import SMALL_BLOCK_BYTES, each_block
from irrun.opdef import Change, Index, Joins, Kernel, Op, Request

__all__ = ["Activation", "activate", "activation", "numbered", "offer"]

_f32: Final = np.float32
_ONE: Final = _f32(1)
_HALF: Final = _f32(0.5)
_SQRT_HALF: Final = _f32(math.sqrt(0.5))
_LINEAR: Final = _f32(-2 * math.sqrt(2 / math.pi))
_CUBIC: Final = _f32(-2 * math.sqrt(2 / math.pi) * 0.044715)


class Activation(IntEnum):
    """The activations, by the numbers that compiled functions take."""

    GELU_ERF = 0
    """x Φ(x), by the error function."""
    GELU_TANH = 1
    """0.5 x (1 + tanh(sqrt(2 / π) (x + 0.044715 x³)))"""
    SWISH = 2
    """x / (1 + exp(-beta x))"""
    SIGMOID = 3
    TANH = 4
    EXP = 5
    ERF = 6


_GELU_ERF, _GELU_TANH, _SWISH, _SIGMOID, _TANH, _EXP, _ERF = map(int, Activation)


def offer(op: Op, request: Request) -> Kernel | None:
    """Return the element-wise kernel of an activation of f32, or None for scalars and other types."""
    data, beta = request.first(2)
    if data is None or data.type.name != "f32" or not data.rank:
        return None
    if op.type == "Gelu":
        return activation(Activation[f"GELU_{getattr(op, 'approximation_mode', 'erf').upper()}"])
    number = None if beta is None else beta.data
    if number is None and beta is not None:
        return None
    return activation(Activation[op.type.upper()], 1 if number is None else number.item())


def activation(which: Activation, beta: float = 1) -> Kernel:
    """Return the element-wise kernel of an activation. ``beta`` is that of Swish."""
    change = RowChange(_activate_rows, int(which), np.float32(beta), whole=False)

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


def numbered(change: Change | None) -> tuple[Any, ...] | None:
    """Return the first arguments of ``activate`` for a change in place, or None if it is no activation."""
    return change.numbers if isinstance(change, RowChange) and change.kernel is _activate_rows else None


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


@contracted
def activate(which: int, beta: Number, address: int, columns: int) -> None:
    """Change a row in place by the ``Activation`` of a number. ``beta`` is that of Swish."""
    row = row_at(address, columns)
    if which == _GELU_ERF:
        for j in range(columns):
            row[j] = _gelu_erf(row[j])
    elif which == _GELU_TANH:
        for j in range(columns):
            row[j] = _gelu_tanh(row[j])
    elif which == _SWISH:
        for j in range(columns):
            row[j] = _swish(row[j], beta)
    elif which == _SIGMOID:
        for j in range(columns):
            row[j] = f.sigmoid(row[j])
    elif which == _TANH:
        for j in range(columns):
            row[j] = f.tanh(row[j])
    elif which == _EXP:
        for j in range(columns):
            row[j] = f.exp(row[j])
    else:
        for j in range(columns):
            row[j] = f.erf(row[j])


@compiled
def _activate_rows(
    source: int, step: int, target: int, apart: int, columns: int, which: int, beta: Number, first: int, last: int
) -> None:
    """Fill rows with others, whose numbers an activation changes: see ``RowChange`` and ``activate``."""
    for i in range(first, last):
        place = target + 4 * i * apart
        moved(source + 4 * i * step, place, columns)
        activate(which, beta, place, columns)

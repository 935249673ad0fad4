"""The elements of an array that are NaN or Inf, and the elements of the inputs that led there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from irrun.types import ElementType

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = ["Element", "count", "elements", "not_finite"]

_MAX_SEARCHED_ELEMENTS: Final = 100
"""The most elements of an output in which a layer is sought to have made NaN or Inf itself, among those passed on."""
_BLOCK_ELEMENTS: Final = 1 << 18
"""Elements that are examined at a time: few enough that the examination of a large array needs little memory."""


@dataclass(frozen=True, slots=True)
class Element:
    """A NaN or Inf of an output, by its index.

    ``inputs`` are the elements of the inputs that led there, if the operation is element-wise, and otherwise empty.
    """

    index: tuple[int, ...]
    value: float
    inputs: tuple[float, ...] = ()


def _blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the elements of an array of floats in blocks, each with the position of its first element."""
    known = ElementType.of(array.dtype)
    if known is None or known.kind != "float":
        return
    flat = array.reshape(-1)
    for start in range(0, flat.size, _BLOCK_ELEMENTS):
        yield start, flat[start : start + _BLOCK_ELEMENTS]


def count(array: np.ndarray) -> tuple[int, int]:
    """Return how many elements are NaN, and how many are infinite."""
    nan = inf = 0
    for _, block in _blocks(np.asarray(array)):
        finite = np.isfinite(block)
        if not finite.all():
            bad = np.isnan(block)
            nan += int(bad.sum())
            inf += int((~finite & ~bad).sum())
    return nan, inf


def not_finite(array: np.ndarray) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the index and the value of each element that is not finite."""
    for start, block in _blocks(np.asarray(array)):
        for position in np.flatnonzero(~np.isfinite(block)):
            index = np.unravel_index(start + position, array.shape)
            yield tuple(int(n) for n in index), float(block[position])


def elements(
    step: Step, inputs: Sequence[np.ndarray | None], array: np.ndarray, *, only_made: bool = False
) -> Iterator[Element]:
    """Yield the first elements of an output that are not finite, with those of the inputs that led there.

    An operation counts as element-wise if it gives the same value for these elements of its inputs alone. With
    ``only_made``, leave out the elements whose inputs are not finite either.
    """
    arrays = [given for given in inputs if given is not None]
    is_aligned = len(arrays) == len(inputs) and not step.needed and _is_broadcast(arrays, array.shape)
    for index, value in islice(not_finite(array), _MAX_SEARCHED_ELEMENTS):
        operands = [_operand(given, index) for given in arrays] if is_aligned else []
        if only_made and any(any(count(operand)) for operand in operands):
            continue
        is_same = bool(operands) and _is_same(step, operands, value)
        yield Element(index, value, tuple(float(operand.item()) for operand in operands) if is_same else ())


def _is_broadcast(arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> bool:
    try:
        return bool(arrays) and np.broadcast_shapes(*(array.shape for array in arrays)) == shape
    except ValueError:
        return False


def _operand(array: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """Return the element of an input, of rank 1 or 0, that numpy broadcasts to ``index`` of the output."""
    own = index[len(index) - array.ndim :]
    element = array[tuple(0 if dim == 1 else at for at, dim in zip(own, array.shape))]
    return np.asarray(element).reshape((1,) * array.ndim)


def _is_same(step: Step, operands: Sequence[np.ndarray], value: float) -> bool:
    """Return whether the operation gives ``value`` for single elements."""
    try:
        result = np.asarray(step.op.run(*operands))
    except Exception:  # not an operation on elements
        return False
    return result.size == 1 and np.array_equal(float(result.item()), value, equal_nan=True)

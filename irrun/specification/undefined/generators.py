"""Behaviours of generators: random numbers, sequences of numbers and matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined, limits

__all__ = ["BEHAVIOURS"]


def _drawn_at_random(op: Any, inputs: Inputs) -> Undefined:
    """Samples of a row in which more than one class may be drawn, or of a row without weights that add up."""
    weights, count = inputs
    if weights is None or count is None:
        return True
    reals = weights.astype(np.float64)
    with np.errstate(all="ignore"):
        shares = np.exp(reals - reals.max(1, keepdims=True, initial=-np.inf)) if op.log_probs else reals
        shares = shares / shares.sum(1, keepdims=True)
    certain = ((shares > 2.0**-53).sum(1) == 1) & (shares >= 0).all(1)
    return ~certain[:, np.newaxis] | (not op.with_replacement and count.item() > 1)


def _no_seed(op: Any, inputs: Inputs) -> Undefined:
    """Both seeds are 0: the numbers differ in every run."""
    return op.global_seed == 0 and op.op_seed == 0


def _numbers_of_torch(op: Any, inputs: Inputs) -> Undefined:
    """The algorithm of the page gives other numbers than its examples."""
    return op.alignment == "pytorch"


def _bits_of_a_number(op: Any, inputs: Inputs) -> Undefined:
    """An i64 is made of 32 random bits on the page, and of 64 by TensorFlow. No text tells the bits of a bf16."""
    return op.alignment == "tensorflow" and op.output_type.name in ("i64", "bf16")


def _diagonal_outside(op: Any, inputs: Inputs) -> Undefined:
    """A diagonal that is outside by one sentence of the page, and inside by its formula."""
    rows, columns, diagonal = (None if array is None else array.item() for array in inputs[:3])
    if rows is None or columns is None or diagonal is None:
        return True
    return rows <= diagonal < columns or columns <= -diagonal < rows


def _beyond_output_type(op: Any, inputs: Inputs) -> Undefined:
    """An input is beyond the range of the integer type into which it is converted."""
    if not op.output_type.is_integer:
        return False
    least, greatest = limits(op.output_type.dtype)
    return any(array is None or not least <= np.trunc(array.item()) <= greatest for array in inputs)


def _accumulated(op: Any, inputs: Inputs) -> Undefined:
    """Numbers for which it matters in which type the steps are added."""
    start, stop, step = (np.nan if array is None else float(array.item()) for array in inputs)
    if op.output_type.is_integer or not np.isfinite([start, stop, step]).all() or step == 0:
        return False
    dtype = op.output_type.dtype
    exact = start + np.arange(max(0, int(np.ceil((stop - start) / step)))) * step
    added = np.cumsum(np.concatenate([[start], np.full(exact.size, step)])[: exact.size].astype(dtype), dtype=dtype)
    return added.astype(np.float64) != exact.astype(dtype).astype(np.float64)


def _cut_first(op: Any, inputs: Inputs) -> Undefined:
    """Fractions of which an integer output has another number of elements if they are cut off first."""
    given = np.array([np.nan if array is None else float(array.item()) for array in inputs])
    cut = np.trunc(given)
    if not op.output_type.is_integer or not np.isfinite(given).all() or 0 in (given[2], cut[2]):
        return False
    counts = {max(0, int(np.ceil((stop - start) / step))) for start, stop, step in (given, cut)}
    return len(counts) > 1


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "accumulated": _accumulated,
    "beyond-output-type": _beyond_output_type,
    "bits-of-a-number": _bits_of_a_number,
    "cut-first": _cut_first,
    "diagonal-outside": _diagonal_outside,
    "drawn-at-random": _drawn_at_random,
    "no-seed": _no_seed,
    "numbers-of-torch": _numbers_of_torch,
}

"""Calls of random models: what ran, and what is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

import irrun
from irrun import build as b
from kernel_calls.kernels import watched
from kernel_calls.models import MODELS, SPECIAL, Draw
from odd_memory import odd

__all__ = ["CALLS", "Call", "calls"]

CALLS: Final = 8
"""The calls of each model: to make a model takes as long as some ten calls of it."""
_SPECIAL_SHARE: Final = 0.4
_JOINED: Final = ("Convolutions", "Rows")
"""Models of several layers. Sums of huge numbers are infinite in one order and finite in another."""
_ERROR: Final = {"Convolutions": 1e-4, "MatMul": 1e-4, "Rows": 1e-3}
"""The largest error relative to the largest result, where it is more than ``_MAX_ERROR``: a product with integers
subtracts the product with their zero points."""
_MAX_ERROR: Final = 3e-5
_NOTHING: Final = 1e-2
"""The largest result of a normalisation of equal numbers: what rounding leaves, divided by the least deviation."""


@dataclass(frozen=True)
class Call:
    """The results of one call of the model of a number."""

    type: str
    number: int
    layouts: tuple[str, ...]
    special: str
    kernels: frozenset[str]
    """The compiled kernels that Python called, also to pack the weights."""
    wrong: str
    """What differs, or nothing."""


def calls(type: str, seed: int, number: int) -> Iterator[Call]:
    """Make the model of a number, and call it in default mode and in ``exact``, each time with other inputs."""
    rng = np.random.default_rng([seed, number, *type.encode()])
    draw = Draw(rng)
    model = b.model(MODELS[type](draw))
    with watched() as packing:
        quick, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    kinds = [kind for kind in SPECIAL if kind != "huge" or type not in _JOINED]
    for _ in range(CALLS):
        special = str(rng.choice(kinds)) if rng.random() < _SPECIAL_SHARE else ""
        placed = [odd(numbers, rng) for numbers in draw.numbers(special)]
        arrays = [array for _, array in placed]
        with warnings.catch_warnings(), np.errstate(all="ignore"), watched() as ran:
            warnings.simplefilter("ignore")
            results = quick(arrays).arrays
            expected = exact([np.array(array, order="C") for array in arrays]).arrays
        wrong = next(filter(None, map(_difference, [type] * len(results), results, expected)), "")
        yield Call(type, number, tuple(name for name, _ in placed), special, frozenset(ran | packing), wrong)


def _difference(type: str, got: np.ndarray, expected: np.ndarray) -> str:
    """Return what differs by more than rounding, or nothing."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape} is not {expected.dtype}{expected.shape}"
    finite = np.isfinite(expected)
    unlike = (got != expected) & ~(np.isnan(got) & np.isnan(expected)) & ~(finite & np.isfinite(got))
    if unlike.any():
        place = np.unravel_index(np.argmax(unlike), unlike.shape)
        return f"{got[place]} is not {expected[place]} at {tuple(map(int, place))}"
    if not finite.any():
        return ""
    a, c = got[finite].astype(np.float64), expected[finite].astype(np.float64)
    scale, error, most = np.abs(c).max(), np.abs(a - c), _ERROR.get(type, _MAX_ERROR)
    if type == "FakeQuantize" and np.mean(error > most * scale) < 0.01:
        return ""  # a number in the middle between two steps may become either
    if type == "MVN" and max(scale, error.max()) < _NOTHING:
        return ""
    worst = int(np.argmax(error))
    return f"{a[worst]} is not {c[worst]}, of {scale}" if error[worst] > most * scale + 1e-37 else ""

"""Calls of random models: what ran, and what is wrong."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

import irrun
from irrun import build as b
from irrun.growing.layouts import in_layout, repeated
from kernel_calls.kernels import watched
from kernel_calls.models import MODELS, SPECIAL, Draw

__all__ = ["CALLS", "Call", "calls"]

CALLS: Final = 24
"""The calls of each model: making it takes as long as some ten of them."""
_SPECIAL_SHARE: Final = 0.4
_REPEATED_SHARE: Final = 0.1
_JOINED: Final = ("AvgPool", "Convolutions", "Rows")
"""Models of several layers. Sums of huge numbers are infinite in one order and finite in another."""
_SPREADING: Final = ("Convolution", "GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence", "MatMul")
"""Models in which a huge number makes errors beside it: in its tile, or where equal weights cancel it out."""
_ATTENTION: Final = "ScaledDotProductAttention"
"""A weight that is subnormal in ``exact`` and 0 in a kernel makes NaN of an infinity, and a score of huge numbers that is
NaN where each product is rounded may be infinite where it is not."""
_MAX_ERROR: Final = 3e-5
"""The largest error relative to the largest result."""
_MAX_ERRORS: Final = {"Convolutions": 1e-4, "MatMul": 1e-4, "Rows": 1e-3}
"""The same where it is more: a product with integers subtracts the product with their zero points."""
_NOISE: Final = {"MVN": 1e-2, "Rows": 1e-2} | dict.fromkeys(
    ("GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence"), 1e-6
)
"""The size of results that rounding makes: what a normalisation makes of equal numbers, states that cancel out."""
_NOISE_OF_INPUTS: Final = {"Gelu": 3e-7, "MatMul": 1e-5}
"""The same relative to the largest input. Integers less their zero point may be 500 times less than the integers."""


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
    dice = random.Random(f"{type}/{seed}/{number}")
    draw = Draw(rng)
    model = b.model(MODELS[type](draw))
    with watched() as packing:
        quick, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    kinds = [kind for kind in SPECIAL if kind != "huge" or type not in _JOINED]
    for _ in range(CALLS):
        special = str(rng.choice(kinds)) if rng.random() < _SPECIAL_SHARE else ""
        placed = [
            ("repeated", repeated(numbers)) if dice.random() < _REPEATED_SHARE else in_layout(numbers, dice)
            for numbers in draw.numbers(special)
        ]
        arrays = [array for _, array in placed]
        with warnings.catch_warnings(), np.errstate(all="ignore"), watched() as ran:
            warnings.simplefilter("ignore")
            results = quick(arrays).arrays
            expected = exact([np.array(array, np.float32, order="C") for array in arrays]).arrays
        noise = _NOISE.get(type, 0.0) + _NOISE_OF_INPUTS.get(type, 0.0) * max(map(_largest, arrays))
        found = (_difference(type, a, c, noise, special == "huge") for a, c in zip(results, expected))
        wrong = next(filter(None, found), "")
        yield Call(type, number, tuple(name for name, _ in placed), special, frozenset(ran | packing), wrong)


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0))


def _difference(type: str, got: np.ndarray, expected: np.ndarray, noise: float, is_huge: bool) -> str:
    """Return what differs by more than rounding, or nothing. ``is_huge`` says that some inputs are huge."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape} is not {expected.dtype}{expected.shape}"
    finite = np.isfinite(expected)
    unlike = (got != expected) & ~(np.isnan(got) & np.isnan(expected)) & ~(finite & np.isfinite(got))
    if type == _ATTENTION:
        unlike &= ~(np.isnan(got) & np.isinf(expected)) & ~(np.isnan(expected) & is_huge)
    if unlike.any():
        place = np.unravel_index(np.argmax(unlike), unlike.shape)
        return f"{got[place]} is not {expected[place]} at {tuple(map(int, place))}"
    if (is_huge and type in _SPREADING) or not finite.any():
        return ""
    a, c = got[finite].astype(np.float64), expected[finite].astype(np.float64)
    error, most = np.abs(a - c), _MAX_ERRORS.get(type, _MAX_ERROR) * _largest(c)
    if type == "FakeQuantize" and np.count_nonzero(error > most) <= max(error.size // 100, 1):
        most = max(
            most, _largest(c) / 100 if error.size < 100 else np.inf
        )  # the middle between two steps becomes either
    if type in _NOISE_OF_INPUTS or _largest(c) < noise:
        most = max(most, noise)
    worst = int(np.argmax(error))
    return f"{a[worst]} is not {c[worst]}, of {_largest(c)}" if error[worst] > most + 1e-37 else ""

"""Calls of random models: what ran, and what is wrong."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

import irrun
from irrun import build as b
from irrun.growing.layouts import in_layout, repeated
from irrun.opdef import Precision
from irrun.running.executor import Executable
from kernel_calls.draw import SPECIAL, Draw
from kernel_calls.kernels import watched
from kernel_calls.models import IN_PRECISIONS, MODELS

__all__ = ["CALLS", "Call", "calls"]

CALLS: Final = 24
"""The calls of each model: making it takes as long as some ten of them."""
_SPECIAL_SHARE: Final = 0.4
_REPEATED_SHARE: Final = 0.1
_JOINED: Final = ("AvgPool", "Convolutions", "Rows", "Token")
"""Models of several layers. Sums of huge numbers are infinite in one order and finite in another."""
_INTEGERS: Final = "Integers"
"""There is no level for NaN."""
_SPREADING: Final = ("Convolution", "GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence", "MatMul")
"""Models in which a huge number makes errors beside it: in its tile, or where equal weights cancel it out."""
_ATTENTION: Final = ("ScaledDotProductAttention", "Token", "Windows")
"""A weight that is subnormal in ``exact`` and 0 in a kernel makes NaN of an infinity, and a score of huge numbers that is
NaN where each product is rounded may be infinite where it is not."""
_MAX_ERROR: Final = 3e-5
"""The largest error relative to the largest result, to which the rounding of the inputs adds."""
_NOISE: Final = {
    "Convolutions in bf16": 2e-2, "Gelu": 3e-7, "Integers": 4e-3, "MatMul": 1e-5, "Rows": 1e-5,
    "ScaledDotProductAttention in bf16": 1e-3,
    **dict.fromkeys(("GRUCell in bf16", "GRUSequence in bf16", "LSTMSequence in bf16"), 1e-3),
}  # fmt: skip
"""The same relative to the largest input or result. Integers less their zero point may be 500 times less than the
integers. The steps between the levels of ``Integers`` are larger. A weight, a hidden state or a number between two
layers in the middle of two numbers of bf16 becomes either."""
_ROUNDINGS: Final = 16
_ROUNDING: Final = 5e-7
"""How often inputs are changed to see what rounding does to the results, and how far: relative to themselves, and a
quarter of that relative to the largest."""
_MAX_DISTANCE: Final = 16
"""How many times as far as a changed input moves an element it may be away."""


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


def _precision(name: str) -> tuple[str, Precision]:
    """Return the type of a model, and the precision that its name says."""
    for ending, precision in IN_PRECISIONS.items():
        if name.endswith(ending):
            return name.removesuffix(ending), precision
    return name, "f32"


def calls(type: str, seed: int, number: int) -> Iterator[Call]:
    """Make the model of a number, and call it in default mode and in ``exact``, each time with other inputs."""
    rng = np.random.default_rng([seed, number, *type.encode()])
    dice = random.Random(f"{type}/{seed}/{number}")
    draw = Draw(rng)
    result = MODELS[type](draw)
    model = b.model(result, sinks=draw.sinks)
    with watched() as packing:
        type, precision = _precision(name := type)
        quick, exact = (irrun.compile(model, exact=way, precision=precision) for way in (False, True))
    kinds = [kind for kind in SPECIAL if kind != "huge" or type not in _JOINED]
    kinds = [kind for kind in kinds if kind != "not finite" or type != _INTEGERS]
    for _ in range(CALLS):
        special = str(rng.choice(kinds)) if rng.random() < _SPECIAL_SHARE else ""
        placed = [
            ("repeated", repeated(numbers)) if dice.random() < _REPEATED_SHARE else in_layout(numbers, dice)
            for numbers in draw.numbers(special)
        ]
        arrays = [array for _, array in placed]
        with warnings.catch_warnings(), np.errstate(all="ignore"), watched() as ran:
            warnings.simplefilter("ignore")
            results = _called(quick, arrays)
            plain = [np.array(array, np.float32, order="C") for array in arrays]
            expected = _called(exact, plain)
            noise = _NOISE.get(name, _NOISE.get(type, 0.0)) * max(map(_largest, [*plain, *expected]))
            found = [_difference(type, a, c, noise, special == "huge") for a, c in zip(results, expected)]
            if any(found):  # is it more than rounding?
                moved = _moved(exact, plain, expected, rng)
                found = [
                    _difference(type, a, c, noise + _MAX_DISTANCE * by, special == "huge")
                    for a, c, by in zip(results, expected, moved)
                ]
        wrong = next(filter(None, found), "")
        yield Call(name, number, tuple(name for name, _ in placed), special, frozenset(ran | packing), wrong)


def _called(model: Executable, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Return the results of a model without state."""
    model.reset_state()
    return model(arrays).arrays


def _moved(
    exact: Executable, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray], rng: np.random.Generator
) -> list[np.ndarray]:
    """Return how far each element of the results moves if the inputs are changed by rounding.

    The distance is infinite where NaN, an infinity or a number becomes another one of these three.
    """
    moved = [np.zeros(array.shape) for array in expected]
    for _ in range(_ROUNDINGS):
        changed = [array * (1 + _around(rng, array)) + _around(rng, array) * _largest(array) / 4 for array in arrays]
        for by, other, array in zip(moved, _called(exact, [array.astype(np.float32) for array in changed]), expected):
            np.fmax(by, np.abs(other.astype(np.float64) - array), out=by)
            by[(np.isnan(other) != np.isnan(array)) | (np.isinf(other) != np.isinf(array))] = np.inf
    return moved


def _around(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    return rng.uniform(-_ROUNDING, _ROUNDING, array.shape)


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0))


def _difference(type: str, got: np.ndarray, expected: np.ndarray, allowed: float | np.ndarray, is_huge: bool) -> str:
    """Return what differs by more than rounding and ``allowed``, or nothing. ``is_huge``: some inputs are huge."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape} is not {expected.dtype}{expected.shape}"
    finite = np.isfinite(expected)
    unlike = (got != expected) & ~(np.isnan(got) & np.isnan(expected)) & ~(finite & np.isfinite(got))
    unlike &= ~np.isinf(allowed)
    if type in _ATTENTION:
        unlike &= ~(np.isnan(got) & np.isinf(expected)) & ~(np.isnan(expected) & is_huge)
    if unlike.any():
        place = np.unravel_index(np.argmax(unlike), unlike.shape)
        return f"{got[place]} is not {expected[place]} at {tuple(map(int, place))}"
    if (is_huge and type in _SPREADING) or not finite.any():
        return ""
    a, c = got[finite].astype(np.float64), expected[finite].astype(np.float64)
    excess = np.abs(a - c) - np.broadcast_to(allowed, got.shape)[finite] - _MAX_ERROR * _largest(c)
    worst = int(np.argmax(excess))
    return f"{a[worst]} is not {c[worst]}, of {_largest(c)}" if excess[worst] > 1e-37 else ""

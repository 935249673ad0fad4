"""How much evidence a rule needs: how far its sentences can be trusted beyond the models that it was learned from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from irrun.types import ELEMENT_TYPES

__all__ = ["BESIDE", "NOISE", "Found", "chance", "is_about_attributes", "least", "names_attribute", "trust"]

NOISE: Final = 0.04
"""The most answers against a rule, as a share of those that it explains: a release may run out of time."""
BESIDE: Final = 0.5
"""How far a rule is trusted that excuses a fault of an attribute because of something else than attributes."""
_CHANCE: Final = 0.1
"""The probability at which a rule may seem right by chance, if its sentences do not speak of types or unknown shapes."""


class Found(NamedTuple):
    """A rule that was found: its sentences, the types of operations that contradict it, and where it holds."""

    words: Sequence[str]
    exceptions: Sequence[str]
    holds: np.ndarray
    """By release."""
    seen: np.ndarray
    """The releases that answered for a model with these sentences."""
    evidence: int
    """The most models that a release refused."""


def chance(explained: np.ndarray, against: np.ndarray) -> int:
    """Return how many refused models make a rule improbable that is right by chance."""
    share = float(explained.sum() / max(1.0, explained.sum() + against.sum()))
    return int(np.ceil(np.log(_CHANCE) / np.log(min(share, 0.9) if share > 0 else 0.01)))


def least(quality: float, chance: int, *, blocks: bool) -> int:
    """Return how many models a rule needs: more if its sentences say little, or if most layers are refused.

    With ``blocks``, the rule excuses an error, and two models are never enough.
    """
    if quality > 0.85:
        return 3 if blocks else 2
    needed = 3 if quality > 0.7 else 6 if quality > 0.5 else 8
    return needed if blocks else max(needed, chance)


_USUAL: Final = (
    " f32",
    " f16",
    " bf16",
    " i32",
    " i64",
    " i8",
    " u8",
    " float of 16 bits",
    " float of 32 bits",
    " int of 32 bits",
    " int of 64 bits",
    " boolean",
)
_TYPES: Final = (*_USUAL, " bits", *(f" {name}" for name in ELEMENT_TYPES))
"""How a sentence about an element type ends."""
_NUMBER: Final = re.compile(r" is -?\d\S*$|=.*\d\"$")
_TRUSTED: Final[Mapping[str, float]] = {
    "its default": 0.7, "f8, f4": 0.9, "its variable": 1.0, " of 0": 0.8, "several elements": 0.5, "from the axis on": 1.0, "common types": 0.9, "none is empty": 0.9, "unknown rank": 1.0, "unknown": 0.8, "irrun reports": 1.0, " is empty": 0.6, "its mask": 0.9, "an input is": 1.0, "an output is": 1.0, "the file": 1.0, "no valid text": 1.0,
    "an axis to": 1.0, "a label": 0.9, "a subscript": 0.9, "its updates": 0.9, "its axes": 0.9, "the usual": 0.9, "not aligned": 0.9, "axis places": 0.9, "layers read": 0.8,
    " constant": 0.8, "differ in length": 0.9, "differ in size": 0.6, "differ in": 0.86, "not connected": 0.8, "its weights": 0.9, "an attention": 0.9, "input names": 0.9, "has a dim 1": 0.5, "has no dim 1": 0.5, "one element": 0.5, "more than": 0.9, " has rank": 0.6, " numbers": 0.6, " inputs": 0.6,
    "=": 0.8, " is ": 0.9,
}  # fmt: skip


def trust(word: str, *, blocks: bool) -> float:
    """Return how far a sentence can be trusted beyond its models: types and unknown shapes more than numbers."""
    if blocks and word.startswith("it has no attribute"):
        return 1.0
    if blocks and (word.endswith("has a negative number") or _names_type(word)):  # that is what the error is about
        return 0.9
    if word.endswith(_USUAL) or _NUMBER.search(word):  # most layers have these types, and any has some number
        return 0.6
    return next((value for part, value in _TRUSTED.items() if part in word), 0.7)


def _names_type(word: str) -> bool:
    return " is " in word and word.endswith(_TYPES)


def names_attribute(word: str) -> bool:
    """Return whether a sentence is an error about an attribute that is missing or has no valid text."""
    return word.startswith(("irrun reports IR202", "irrun reports IR203"))


def is_about_attributes(word: str) -> bool:
    """Return whether a sentence is about attributes, or an error."""
    return any(part in word for part in ("irrun reports", "attribute", "no valid text", '="'))

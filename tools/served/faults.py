"""What a planted fault is: a change, and the words that name its cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["NoPlaceError", "Planted", "Rng", "one", "two"]

Rng = np.random.Generator


class NoPlaceError(Exception):
    """Raised where a model has no place for a fault."""


@dataclass(frozen=True)
class Planted:
    """What was planted: where, and words that a message about the cause contains."""

    text: str
    words: tuple[str, ...]
    layer: str = ""
    """The name of the layer, or nothing for a fault in the inputs."""


def one(rng: Rng, things: list[Any]) -> Any:
    """Return a random element. Raises NoPlaceError if there is none."""
    if not things:
        raise NoPlaceError
    return things[int(rng.integers(len(things)))]


def two(rng: Rng, count: int) -> list[int]:
    """Return two of the numbers below ``count``, in order. Raises NoPlaceError if there are no two."""
    if count < 2:
        raise NoPlaceError
    return sorted(rng.choice(count, 2, replace=False).tolist())

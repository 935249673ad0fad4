"""Who decides what a model consists of: dice here, hypothesis in ``irrun.testing.strategies``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

__all__ = ["Choices", "Dice"]

_T = TypeVar("_T")


class Choices(Protocol):
    """Decides. What shrinks models prefers the first option, the smallest number, and no."""

    def integer(self, least: int, most: int) -> int:
        """Return a number from ``least`` to ``most``, both included."""
        ...

    def pick(self, options: Sequence[_T]) -> _T:
        """Return one of the options."""
        ...

    def pick_late(self, options: Sequence[_T]) -> _T:
        """Return one of the options, most often the last one."""
        ...

    def chance(self, share: float = 0.5) -> bool:
        """Return True in about this share of the cases."""
        ...


class Dice:
    """Choices of a random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def integer(self, least: int, most: int) -> int:
        return self.rng.randint(least, most)

    def pick(self, options: Sequence[_T]) -> _T:
        return self.rng.choice(options)

    def pick_late(self, options: Sequence[_T]) -> _T:
        return options[-1] if self.rng.random() < 0.5 else self.rng.choice(options)

    def chance(self, share: float = 0.5) -> bool:
        return self.rng.random() < share

"""The choices of a model, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import strategies as st

__all__ = ["Drawn"]

_T = TypeVar("_T")
_SIDES: Final = 20
"""The number of equal shares in which chances are counted."""


class Drawn:
    """Choices that hypothesis draws, and shrinks: to the first option, the smallest number, and no."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def integer(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def pick(self, options: Sequence[_T]) -> _T:
        return self.draw(st.sampled_from(options))

    def pick_late(self, options: Sequence[_T]) -> _T:
        return self.draw(st.sampled_from(options[::-1]))

    def chance(self, share: float = 0.5) -> bool:
        return self.draw(st.integers(1, _SIDES)) > _SIDES * (1 - share)

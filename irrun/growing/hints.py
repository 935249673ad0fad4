"""What the message of a refusal points to.

A rule refuses a layer with a sentence for people. It names ports and attributes as the specification does, and shows
the numbers that contradict each other. A hint only makes a climb shorter: a draft counts by the conditions that hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from irrun.growing.drafts import integers_in

__all__ = ["Hint"]

_MAX_NUMBERS: Final = 12
"""The most numbers of a message that are tried. The first ones are those that contradict each other."""


@dataclass(frozen=True)
class Hint:
    """What the message of a refusal mentions: words, numbers, and shapes such as ``[n, 4]``."""

    words: frozenset[str] = frozenset()
    numbers: tuple[int, ...] = ()
    shapes: tuple[tuple[int | None, ...], ...] = ()
    contents: bool = False
    """Whether the shape rule accepts the draft, and a run refuses it: the contents of an input may be wrong."""

    @staticmethod
    def of(message: str, *, contents: bool = False) -> Hint:
        listed = [text.split(",") for text in re.findall(r"\[([^\[\]]*)\]", message)]
        shapes = [tuple(int(n) if n.strip().isdigit() else None for n in items) for items in listed if items != [""]]
        words = re.findall(r"[\w-]+", message)
        return Hint(frozenset(words), integers_in(message)[:_MAX_NUMBERS], tuple(shapes), contents)

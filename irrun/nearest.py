"""Suggest known names for one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest", "quoted"]


def nearest(word: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most ``most`` names that ``word`` may stand for, the likeliest first; none if no name is near.

    They are the names that begin with the word; without any, the name that differs from it in fewest letters (by
    ``cutoff``, as in difflib); without any, those that contain it. Upper and lower case are the same.
    """
    lower = word.lower()
    by_lower: dict[str, str] = {}
    for name in names:
        by_lower.setdefault(name.lower(), name)
    if lower and (begin := [name for key, name in by_lower.items() if key.startswith(lower)]):
        return sorted(begin, key=len)[:most]
    if close := difflib.get_close_matches(lower, by_lower, most, cutoff):
        return [by_lower[key] for key in close[:1]]
    return [name for key, name in by_lower.items() if len(lower) > 1 and lower in key][:most]


def quoted(name: str) -> str:
    """Return the name of a layer as messages show it."""
    return f'"{name}"'

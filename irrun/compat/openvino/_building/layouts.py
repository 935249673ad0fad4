"""Layouts: the meaning of each dim of a tensor, such as NCHW."""

from __future__ import annotations

import re
from typing import Any

from irrun.compat.openvino._errors import Covered, OpenVINOError

__all__ = ["Layout"]


class Layout(Covered):
    """The names of the dims of a tensor: ``Layout("NHWC")``, ``Layout("N...C")`` or ``Layout("[N,C,H,W]")``.

    ``?`` is a dim without a name, and ``...`` any number of them. Raises OpenVINOError for any other text.
    """

    def __init__(self, text: str = "") -> None:
        if not isinstance(text, str):
            raise TypeError(f"a Layout is made from a str, not from a {type(text).__name__}")
        self._names = _parsed(text)

    empty = property(lambda self: not self._names)

    def has_name(self, name: str) -> bool:
        return name.upper() in self._names

    def get_index_by_name(self, name: str) -> int:
        """Return the axis of a dim, which is negative behind ``...``. Raises OpenVINOError if there is none."""
        if not self.has_name(name):
            raise OpenVINOError(f"layout {self} has no dim {name}")
        position = self._names.index(name.upper())
        behind = "..." in self._names and self._names.index("...") < position
        return position - len(self._names) if behind else position

    def to_string(self) -> str:
        return f"[{','.join(self._names)}]"

    @staticmethod
    def scalar() -> Layout:
        layout = Layout()
        layout._names = ("**SCALAR**",)
        return layout

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Layout) and self._names == other._names) or (
            isinstance(other, str) and self._names == _parsed(other)
        )

    __hash__ = None  # type: ignore[assignment]
    __str__ = to_string

    def __repr__(self) -> str:
        return f"<Layout: {self}>"


def _parsed(text: str) -> tuple[str, ...]:
    """Return the names of the dims in a text."""
    inner = text.strip()
    if inner.startswith("["):
        names = tuple(name.strip().upper() for name in inner[1:-1].split(",")) if inner.endswith("]") else ("",)
    else:
        names = tuple("..." if name == "\0" else name.upper() for name in inner.replace("...", "\0"))
    known = [name for name in names if name not in ("?", "...")]
    is_odd = any(re.fullmatch("[A-Z0-9_]+", name) is None for name in known)
    if is_odd or names.count("...") > 1 or len(set(known)) < len(known):
        raise OpenVINOError(f"{text!r} is not a layout; write it as NCHW, N...C or [N,C,H,W]")
    return names


def moved(source: Layout, target: Layout, rank: int) -> list[int] | None:
    """Return the axes of ``source`` in the order of ``target``, or None if the layouts are equal or unknown.

    Raises OpenVINOError if a dim of one layout is not in the other.
    """
    if source.empty or target.empty or source == target:
        return None
    axes: list[int] = []
    for name in target._names:
        if name in ("?", "..."):
            raise OpenVINOError(f"layout {source} cannot be converted to {target}: {name} names no dim")
        axes.append(source.get_index_by_name(name) % rank)
    if sorted(axes) != list(range(rank)):
        raise OpenVINOError(f"layout {source} cannot be converted to {target}")
    return axes


def axis_of(layout: Layout, names: Any, rank: int) -> int | None:
    """Return the axis of a dim from 0 on, or None if the layout does not name it."""
    return layout.get_index_by_name(names) % rank if layout.has_name(names) else None

"""Partial shapes: tuples of dims, or an unknown rank.

A method that combines two shapes returns ``None`` if the combination is impossible: the caller reports it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from irrun.types.dims import INF, Dim, as_dim, product

__all__ = ["UNKNOWN_RANK", "PartialShape"]


@dataclass(frozen=True, slots=True)
class PartialShape:
    """The shape of a tensor as far as it is known: a tuple of dims, or ``dims=None`` if the rank is unknown."""

    dims: tuple[Dim, ...] | None

    @staticmethod
    def of(dims: Iterable[Dim | int]) -> PartialShape:
        return PartialShape(tuple(d if isinstance(d, Dim) else Dim(int(d)) for d in dims))

    @staticmethod
    def of_rank(rank: int) -> PartialShape:
        """Return a shape of ``rank`` unknown dims."""
        return PartialShape(tuple(Dim.unknown() for _ in range(rank)))

    @staticmethod
    def parse(text: str) -> PartialShape | None:
        """Return the shape that a ``shape`` attribute holds, or None if ``text`` is malformed.

        Examples are ``"2, 3"``, ``"?,3,1..8"``, ``""`` (a scalar) and ``"..."`` (an unknown rank).
        """
        text = text.strip()
        if text == "...":
            return UNKNOWN_RANK
        if not text:
            return SCALAR
        dims = [_parse_dim(part) for part in text.split(",")]
        return None if any(d is None for d in dims) else PartialShape(tuple(d for d in dims if d is not None))

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)

    @property
    def static(self) -> tuple[int, ...] | None:
        """The dims as ints if all of them are known, otherwise None."""
        if self.dims is None:
            return None
        for d in self.dims:
            if d.lo != d.hi:
                return None
        return tuple([d.lo for d in self.dims])

    @property
    def is_static(self) -> bool:
        return self.static is not None

    def __len__(self) -> int:
        if self.dims is None:
            raise TypeError("the rank is unknown")
        return len(self.dims)

    def __getitem__(self, axis: int) -> Dim:
        if self.dims is None:
            return Dim.unknown()
        return self.dims[axis]

    def __iter__(self) -> Iterator[Dim]:
        if self.dims is None:
            raise TypeError("the rank is unknown")
        return iter(self.dims)

    @property
    def listed(self) -> list[int | str] | None:
        """The dims for JSON: numbers, and texts such as ``?`` and ``1..8``. None if the rank is unknown."""
        return None if self.dims is None else [d.value if d.value is not None else str(d) for d in self.dims]

    def count(self) -> Dim:
        """Return the number of elements."""
        if self.dims is None:
            return Dim.unknown()
        return product(self.dims)

    @property
    def least(self) -> int:
        """The least number of elements, at most ``INF``."""
        return 0 if self.dims is None else min(math.prod([max(dim.lo, 0) for dim in self.dims]), INF)

    def array_limit(self, itemsize: int) -> str | None:
        """Return which limit of numpy keeps every array from having this shape, or None if an array may have it.

        ``itemsize`` is the bytes of an element. numpy limits the dims other than 0 also if another dim is 0. Unknown
        dims count with their lower bounds.
        """
        dims = self.dims or ()
        if len(dims) > _MOST_AXES:
            return f"it has {len(dims)} dims, and an array at most {_MOST_AXES}"
        if math.prod(dim.lo for dim in dims if dim.lo) * max(itemsize, 1) > _MOST_BYTES:
            return "the product of its dims other than 0 exceeds what an array can have"
        return None

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether a tensor of the known ``shape`` may have this partial shape."""
        if self.dims is None:
            return True
        return len(self.dims) == len(shape) and all(d.fits(n) for d, n in zip(self.dims, shape))

    def includes(self, other: PartialShape) -> bool:
        """Return whether every shape that ``other`` allows is allowed here."""
        if self.dims is None or other.dims is None:
            return self.dims is None
        return len(self.dims) == len(other.dims) and all(
            a.lo <= b.lo and b.hi <= a.hi for a, b in zip(self.dims, other.dims)
        )

    def meet(self, other: PartialShape) -> PartialShape | None:
        """Return the shape that both allow, dim by dim, or None if their ranks or dims contradict each other."""
        if self.dims is None:
            return other
        if other.dims is None or self.dims is other.dims:
            return self
        if len(self.dims) != len(other.dims):
            return None
        dims: list[Dim] = []
        for a, b in zip(self.dims, other.dims):
            d = a.meet(b)
            if d is None:
                return None
            dims.append(d)
        return PartialShape(tuple(dims))

    def broadcast(self, other: PartialShape) -> PartialShape | None:
        """Return the result of numpy broadcasting, or None if the two shapes certainly cannot be broadcast.

        The result has an unknown rank if one of the two shapes has.
        """
        if self.dims is None or other.dims is None:
            return UNKNOWN_RANK
        if self.dims == other.dims and all(a.same(b) for a, b in zip(self.dims, other.dims)):
            return self
        longer, shorter = (self, other) if len(self.dims) >= len(other.dims) else (other, self)
        more = len(longer) - len(shorter)
        dims = list(longer)[:more]
        for a, b in zip(self.dims[-len(shorter) :], other.dims[-len(shorter) :]) if len(shorter) else ():
            d = a.broadcast(b)
            if d is None:
                return None
            dims.append(d)
        return PartialShape(tuple(dims))

    def replace(self, axis: int, dim: Dim | int) -> PartialShape:
        """Return the shape with ``dim`` at ``axis``. Raises TypeError if the rank is unknown."""
        dims = list(self)
        dims[axis] = as_dim(dim)
        return PartialShape(tuple(dims))

    def __str__(self) -> str:
        return "[...]" if self.dims is None else f"[{','.join(map(str, self.dims))}]"

    def __repr__(self) -> str:
        return f"PartialShape({self})"


UNKNOWN_RANK: Final = PartialShape(None)
SCALAR: Final = PartialShape(())

_MOST_AXES: Final = 64
"""The most axes of a numpy array."""
_MOST_BYTES: Final = sys.maxsize
"""The most bytes of a numpy array, and the largest product of the dims other than 0 and the bytes of an element."""

_DIM: Final = re.compile(r"([0-9]{0,19})\.\.([0-9]{0,19})")


def _parse_dim(text: str) -> Dim | None:
    text = text.strip()
    if text in ("?", "-1"):
        return Dim.unknown()
    if text.isascii() and text.isdigit() and len(text) <= 19:
        n = int(text)
        return Dim(n) if n < INF else None
    match = _DIM.fullmatch(text)
    if match is None:
        return None
    lo = int(match[1] or 0)
    hi = min(int(match[2] or INF), INF)
    return Dim(lo, hi) if lo <= hi else None

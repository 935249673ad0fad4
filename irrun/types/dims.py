"""Dims: integers that are known exactly or within bounds, and their arithmetic.

A method that combines two dims returns ``None`` if the combination is impossible: the caller reports it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from irrun.types.terms import Term

__all__ = ["INF", "Dim", "UnknownDimError", "as_dim", "product"]

INF: Final = 1 << 62
"""The bound of a dim that has no upper bound; ``-INF`` means no lower bound. Larger finite bounds are clipped to it."""


def _clip(n: int) -> int:
    return INF if n > INF else -INF if n < -INF else n


class UnknownDimError(Exception):
    """The error for using an unknown dim as a number."""


class Dim:
    """An integer ``n`` that is known to lie in an interval: ``lo <= n <= hi``.

    It is a dim (never negative) or an element of a shape tensor (any integer). ``term`` is the formula that it was
    computed by, or None if no formula is known. Arithmetic computes the interval and the term of the result.
    """

    __slots__ = ("hi", "lo", "term")
    lo: int
    hi: int
    term: Term | None

    def __init__(self, lo: int, hi: int | None = None, term: Term | None = None) -> None:
        self.lo = lo
        self.hi = lo if hi is None else hi
        self.term = term

    @staticmethod
    def unknown(name: str | None = None) -> Dim:
        """Return a dim that may be any non-negative integer.

        With a ``name``, the dim has a symbol as its term, so that ``same`` recognises the dim everywhere in the model.
        """
        return Dim(0, INF, Term(name) if name else None)

    @property
    def is_static(self) -> bool:
        return self.lo == self.hi

    @property
    def value(self) -> int | None:
        """The integer if it is known, otherwise None."""
        return self.lo if self.lo == self.hi else None

    def __index__(self) -> int:
        """Return the integer, so that a kernel can use a known Dim as an int. Raises UnknownDimError if unknown."""
        if self.lo != self.hi:
            raise UnknownDimError(str(self))
        return self.lo

    def fits(self, n: int) -> bool:
        """Return whether the dim may be ``n``."""
        return self.lo <= n <= self.hi

    def same(self, other: Dim) -> bool:
        """Return whether the two dims are certainly equal: the same known integer, or the same object or term."""
        if self.lo == self.hi:
            return other.lo == other.hi == self.lo
        return self is other or (self.term is not None and self.term is other.term)

    def meet(self, other: Dim) -> Dim | None:
        """Return the intersection of the two intervals, or None if it is empty."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        if lo > hi:
            return None
        if (lo, hi) == (self.lo, self.hi) and (lo == hi or self.term or not other.term):
            return self
        if (lo, hi) == (other.lo, other.hi) and (lo == hi or other.term or not self.term):
            return other
        return Dim(lo, hi, self.term or other.term)

    def broadcast(self, other: Dim) -> Dim | None:
        """Return the result of numpy broadcasting, or None if the two dims certainly cannot be broadcast."""
        if self.same(other) or (other.lo == other.hi == 1):
            return self
        if self.lo == self.hi == 1:
            return other
        if not self.fits(1) and not other.fits(1):
            return self.meet(other)
        if not self.fits(1):  # the other dim must be 1 or equal to this one
            return self
        if not other.fits(1):
            return other
        return self._with(min(self.lo, other.lo), max(self.hi, other.hi), "broadcast", other)

    def union(self, other: Dim) -> Dim:
        """Return the smallest interval that contains both. The term is dropped unless the two are the ``same``."""
        if self.same(other):
            return self
        return Dim(min(self.lo, other.lo), max(self.hi, other.hi))

    # Arithmetic computes intervals and builds terms. Shape rules use it as they use ints, so that `irrun why` can
    # explain a dim ("why is this 56?") without any code in the operations.

    def _with(self, lo: int, hi: int, op: str, other: Dim) -> Dim:
        lo, hi = _clip(lo), _clip(hi)
        if self.term is None and other.term is None:
            return Dim(lo, hi)
        a = self.term or self.value
        b = other.term or other.value
        if a is None or b is None:
            return Dim(lo, hi)
        if op in "+-" and isinstance(a, Term) and isinstance(b, int) and (whole := _cancelled(a, op, b)):
            return Dim(lo, hi, whole)
        return Dim(lo, hi, Term(op, a, b))

    def __add__(self, other: Dim | int) -> Dim:
        o = as_dim(other)
        if o.lo == o.hi == 0:
            return self
        if self.lo == self.hi == 0:
            return o
        if o.lo == o.hi < 0 and o.term is None:
            return self - -o.lo
        hi = INF if INF in (self.hi, o.hi) else self.hi + o.hi
        lo = -INF if -INF in (self.lo, o.lo) else self.lo + o.lo
        return self._with(lo, hi, "+", o)

    def __radd__(self, other: int) -> Dim:
        return self + other if other == 0 else Dim(other) + self

    def __neg__(self) -> Dim:
        return Dim(0) - self

    def __sub__(self, other: Dim | int) -> Dim:
        o = as_dim(other)
        if o.lo == o.hi == 0:
            return self
        if self is o or (self.term is not None and self.term is o.term):
            return Dim(0)
        hi = INF if self.hi == INF or o.lo == -INF else self.hi - o.lo
        lo = -INF if self.lo == -INF or o.hi == INF else self.lo - o.hi
        return self._with(lo, hi, "-", o)

    def __rsub__(self, other: int) -> Dim:
        return Dim(other) - self

    def __mul__(self, other: Dim | int) -> Dim:
        o = as_dim(other)
        if o.lo == o.hi == 1 and (self != 1 or self.term or not o.term):
            return self
        if self.lo == self.hi == 1:
            return o
        corners = [_clip(a * b) for a in (self.lo, self.hi) for b in (o.lo, o.hi)]
        return self._with(min(corners), max(corners), "*", o)

    def __rmul__(self, other: int) -> Dim:
        return Dim(other) * self

    def __floordiv__(self, other: Dim | int) -> Dim:
        o = as_dim(other)
        if o.lo == o.hi == 1:
            return self
        if o.lo <= 0:
            return Dim(-INF, INF)
        if self is o or (self.term is not None and self.term is o.term):
            return Dim(1)
        return self._with(*self._quotient(o, ceil=False), "floor", o)

    def __rfloordiv__(self, other: int) -> Dim:
        return Dim(other) // self

    def ceil_div(self, other: Dim | int) -> Dim:
        """Return the quotient rounded up; any integer if ``other`` may be 0 or negative."""
        o = as_dim(other)
        if o.lo == o.hi == 1:
            return self
        if o.lo <= 0:
            return Dim(-INF, INF)
        return self._with(*self._quotient(o, ceil=True), "ceil", o)

    def _quotient(self, o: Dim, ceil: bool) -> tuple[int, int]:
        def divide(a: int, b: int) -> int:
            if abs(a) == INF:
                return a if b != INF else 0
            return -(-a // b) if ceil else a // b

        corners = [divide(a, b) for a in (self.lo, self.hi) for b in (o.lo, o.hi)]
        return min(corners), max(corners)

    def __mod__(self, other: Dim | int) -> Dim:
        o = as_dim(other)
        if o.lo <= 0:
            return Dim(-INF, INF)
        if self.is_static and o.is_static:
            return self._with(self.lo % o.lo, self.lo % o.lo, "%", o)
        return self._with(0, INF if o.hi == INF else o.hi - 1, "%", o)

    def max(self, other: Dim | int) -> Dim:
        o = as_dim(other)
        if self.lo >= o.hi or self.same(o):
            return self
        return o if o.lo >= self.hi else self._with(max(self.lo, o.lo), max(self.hi, o.hi), "max", o)

    def min(self, other: Dim | int) -> Dim:
        o = as_dim(other)
        if self.hi <= o.lo or self.same(o):
            return self
        return o if o.hi <= self.lo else self._with(min(self.lo, o.lo), min(self.hi, o.hi), "min", o)

    def __eq__(self, other: object) -> bool:
        """Return whether the two intervals are equal. Use ``same`` to ask whether the two integers are equal."""
        if isinstance(other, int):
            return self.lo == self.hi == other
        return isinstance(other, Dim) and (self.lo, self.hi) == (other.lo, other.hi)

    def __hash__(self) -> int:
        return hash((self.lo, self.hi))

    def __str__(self) -> str:
        if self.lo == self.hi:
            return str(self.lo)
        if self.hi == INF:
            return "?" if self.lo <= 0 else f"{self.lo}.."
        return f"{self.lo}..{self.hi}" if self.lo > 0 else f"..{self.hi}"

    def __repr__(self) -> str:
        return f"Dim({self})"


def _cancelled(term: Term, op: str, number: int) -> Term | None:
    """Simplify ``term`` + or - ``number`` if ``number`` cancels what ``term`` has added; otherwise return None.

    For example, ``h + 2 - 3`` plus 1 is ``h``. At most the last four operators of ``term`` are considered. This keeps
    the identity of a dim through a convolution whose padding makes the output as large as the input.
    """
    total = number if op == "+" else -number
    for _ in range(4):
        if term.op not in ("+", "-") or not isinstance(term.args[1], int):
            return None
        total += term.args[1] if term.op == "+" else -term.args[1]
        left = term.args[0]
        if not isinstance(left, Term):
            return None
        if total == 0:
            return left
        term = left
    return None


def as_dim(n: Dim | int) -> Dim:
    return n if isinstance(n, Dim) else Dim(int(n))


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims``, with bounds clipped to ``INF``; 1 if there are no dims."""
    dims = list(dims)
    if all(d.is_static for d in dims) and not any(d.term for d in dims):
        return Dim(_clip(math.prod(d.lo for d in dims)))
    total = Dim(1)
    for d in dims:
        total = total * d
    return total

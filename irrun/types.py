"""Element types, dims and partial shapes, which every other module uses.

A method that combines two dims or shapes returns ``None`` if the combination is impossible: the caller reports it.
This module depends on no diagnostics, operations or XML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import ml_dtypes
import numpy as np

__all__ = ["ELEMENT_TYPES", "INF", "NF4", "Dim", "ElementType", "PartialShape", "Term", "UnknownDimError", "type_set"]


# ---------------------------------------------------------------------------------------------
# element types


@dataclass(frozen=True, slots=True, eq=False)
class ElementType:
    """An element type of the IR: ``f32``, ``i4``, ``nf4``, ``string`` …

    ``bits`` is the width of one element in the ``.bin``, or 0 if the type has no fixed width (``string``,
    ``dynamic``). ``dtype`` is the numpy dtype of an unpacked tensor. A type that neither numpy nor ml_dtypes has
    is unpacked to a wider dtype that holds all its values: ``u1``, ``u3`` and ``u6`` to uint8, ``nf4`` to float32.
    """

    name: str
    bits: int
    dtype: np.dtype
    kind: str
    """``float``, ``int``, ``uint``, ``boolean``, ``string`` or ``dynamic``."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"ElementType({self.name})"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_storage(self) -> bool:
        """Return whether the type is only for stored weights (``u1``, ``u3``, ``u6``, ``nf4``).

        No operation computes in such a type, and its ``dtype`` also has values that the type does not have.
        """
        return self.name in ("u1", "u3", "u6", "nf4")

    @property
    def port_name(self) -> str:
        """The name of the type in a port's ``precision`` attribute: ``FP32``, ``I64``, ``BOOL``."""
        return _PORT_NAMES.get(self.name, self.name.upper())

    def nbytes(self, count: int) -> int:
        """Return the number of bytes that ``count`` elements take in the ``.bin``.

        The last byte, or group of bytes, may be partly used. For a type without a fixed width (``string``,
        ``dynamic``) the result is 0.
        """
        if self.name in ("u3", "u6"):  # stored in groups of three bytes, each with 8 × u3 or 4 × u6
            return -(-count // (8 if self.name == "u3" else 4)) * 3
        return -(-count * self.bits // 8)

    @staticmethod
    def parse(text: str) -> ElementType | None:
        """Return the type with the name ``text``, or None if there is no such type.

        Both the spelling of attributes (``f32``) and that of ports (``FP32``) are accepted, in upper or lower case.
        """
        return _SPELLINGS.get(text.strip().lower())

    @staticmethod
    def of(dtype: np.dtype) -> ElementType | None:
        """Return the type that computes in ``dtype``, or None if there is none (object dtype, for example)."""
        if dtype.kind in "UT":
            return ELEMENT_TYPES["string"]
        return _BY_DTYPE.get(dtype)


def _table() -> dict[str, ElementType]:
    rows: list[tuple[str, int, object, str]] = [
        ("boolean", 8, np.bool_, "boolean"),
        ("bf16", 16, ml_dtypes.bfloat16, "float"),
        ("f16", 16, np.float16, "float"),
        ("f32", 32, np.float32, "float"),
        ("f64", 64, np.float64, "float"),
        ("f8e4m3", 8, ml_dtypes.float8_e4m3fn, "float"),
        ("f8e5m2", 8, ml_dtypes.float8_e5m2, "float"),
        ("f8e8m0", 8, ml_dtypes.float8_e8m0fnu, "float"),
        ("f4e2m1", 4, ml_dtypes.float4_e2m1fn, "float"),
        ("nf4", 4, np.float32, "float"),
        ("i4", 4, ml_dtypes.int4, "int"),
        ("i8", 8, np.int8, "int"),
        ("i16", 16, np.int16, "int"),
        ("i32", 32, np.int32, "int"),
        ("i64", 64, np.int64, "int"),
        ("u1", 1, np.uint8, "uint"),
        ("u2", 2, ml_dtypes.uint2, "uint"),
        ("u3", 3, np.uint8, "uint"),
        ("u4", 4, ml_dtypes.uint4, "uint"),
        ("u6", 6, np.uint8, "uint"),
        ("u8", 8, np.uint8, "uint"),
        ("u16", 16, np.uint16, "uint"),
        ("u32", 32, np.uint32, "uint"),
        ("u64", 64, np.uint64, "uint"),
        ("string", 0, np.dtype("U"), "string"),
        ("dynamic", 0, np.dtype("O"), "dynamic"),
    ]
    return {n: ElementType(n, bits, np.dtype(dtype), kind) for n, bits, dtype, kind in rows}  # type: ignore[arg-type]


ELEMENT_TYPES: Final = _table()

NF4: Final = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
        0.7229568362236023, 1.0,
    ],
    np.float32,
)  # fmt: skip
"""The value of each ``nf4`` code, float32 [16]: quantiles of the normal distribution, scaled to -1 … 1."""

_PORT_NAMES: Final = {"boolean": "BOOL", "u1": "BIN", "dynamic": "dynamic"} | {
    f"f{bits}": f"FP{bits}" for bits in (16, 32, 64)
}
_SPELLINGS: Final = (
    ELEMENT_TYPES
    | {spelling.lower(): ELEMENT_TYPES[name] for name, spelling in _PORT_NAMES.items()}
    | {"undefined": ELEMENT_TYPES["dynamic"], "unspecified": ELEMENT_TYPES["dynamic"]}
)
_COMPUTED: Final = frozenset(t for t in ELEMENT_TYPES.values() if not t.is_storage and t.kind != "dynamic")
_BY_DTYPE: Final = {t.dtype: t for t in _COMPUTED}

_SETS: Final = {
    "any": frozenset(ELEMENT_TYPES.values()),
    "numeric": frozenset(t for t in _COMPUTED if t.kind in ("float", "int", "uint")),
    "float": frozenset(t for t in _COMPUTED if t.kind == "float"),
    "int": frozenset(t for t in _COMPUTED if t.is_integer),
    "signed": frozenset(t for t in _COMPUTED if t.kind in ("float", "int")),
}


def type_set(text: str) -> frozenset[ElementType]:
    """Return the element types that a constraint allows: the union of its words.

    A word is the name of a set (``any``, ``numeric``, ``float``, ``int``, ``signed``) or of an element type, as in
    ``"numeric"``, ``"int boolean"`` or ``"i32 i64"``. Raises KeyError for any other word.
    """
    allowed: frozenset[ElementType] = frozenset()
    for word in text.split():
        allowed |= _SETS[word] if word in _SETS else frozenset([ELEMENT_TYPES[word]])
    return allowed


# ---------------------------------------------------------------------------------------------
# dims

INF: Final = 1 << 62
"""The bound of a dim that has no upper bound; ``-INF`` means no lower bound. Larger finite bounds are clipped to it."""


def _clip(n: int) -> int:
    return INF if n > INF else -INF if n < -INF else n


class Term:
    """The formula of a dim: a symbol, or an arithmetic operation on terms and ints.

    A symbol has its name in ``op`` and no ``args``. Otherwise ``op`` is the operator and ``args`` its operands.
    Terms are interned: equal terms are the same object, so that ``is`` compares them.
    """

    __slots__ = ("__weakref__", "args", "op", "size")
    op: str
    args: tuple[Term | int, ...]
    size: int
    """The number of symbols and numbers in the written formula, at most 1,000,000.

    Sub-terms are shared, so that a formula can be far longer than the memory that its terms take.
    """
    _interned: WeakValueDictionary[tuple[object, ...], Term] = WeakValueDictionary()

    def __new__(cls, op: str, *args: Term | int) -> Term:
        term = cls._interned.get((op, *args))
        if term is None:
            term = super().__new__(cls)
            term.op, term.args = op, args
            term.size = min(sum(arg.size if isinstance(arg, Term) else 1 for arg in args) or 1, 1_000_000)
            cls._interned[(op, *args)] = term
        return term

    def __str__(self) -> str:
        return self.text(str)

    def text(self, spell: Callable[[str], str]) -> str:
        """Return the formula as text, with each symbol replaced by ``spell(symbol)``.

        Check ``size`` first: the text of a large formula takes much time and memory.
        """
        if not self.args:
            return spell(self.op)
        parts = [arg.text(spell) if isinstance(arg, Term) else str(arg) for arg in self.args]
        if self.op in ("max", "min", "broadcast"):
            return f"{self.op}({', '.join(parts)})"
        # for each operator: which operators put its left and its right operand in parentheses
        loose = {"+": ("", ""), "-": ("", "+-"), "*": ("+-%", "+-%"), "%": ("+-*%", "+-*%")}
        a, b = (
            f"({part})" if isinstance(arg, Term) and arg.op in ops else part
            for arg, part, ops in zip(self.args, parts, loose.get(self.op, ("+-", "+-*%")))
        )
        return f"{self.op}({a} / {b})" if self.op in ("floor", "ceil") else f"{a} {self.op} {b}"

    def leaves(self) -> Iterator[str | int]:
        """Yield the symbols and numbers of the formula from left to right, each only once."""
        seen: set[Term | int] = set()
        waiting: list[Term | int] = [self]
        while waiting:
            part = waiting.pop()
            if part in seen:
                continue
            seen.add(part)
            if isinstance(part, int):
                yield part
            elif part.args:
                waiting += reversed(part.args)
            else:
                yield part.op


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


# ---------------------------------------------------------------------------------------------
# shapes


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

    def count(self) -> Dim:
        """Return the number of elements."""
        if self.dims is None:
            return Dim.unknown()
        return product(self.dims)

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether a tensor of the known ``shape`` may have this partial shape."""
        if self.dims is None:
            return True
        return len(self.dims) == len(shape) and all(d.fits(n) for d, n in zip(self.dims, shape))

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


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims``, with bounds clipped to ``INF``; 1 if there are no dims."""
    dims = list(dims)
    if all(d.is_static for d in dims) and not any(d.term for d in dims):
        return Dim(_clip(math.prod(d.lo for d in dims)))
    total = Dim(1)
    for d in dims:
        total = total * d
    return total

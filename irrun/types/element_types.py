"""Element types of the IR: their names, their width in the ``.bin``, and the numpy dtypes that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import ml_dtypes
import numpy as np

__all__ = ["ELEMENT_TYPES", "NF4", "ElementType", "type_set"]


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
        """Return the type that computes in ``dtype``, or None if there is none (complex numbers, for example).

        Strings are arrays of Python objects, in which inference also keeps Dims.
        """
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
        ("string", 0, np.dtype("O"), "string"),  # see irrun.types.text
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

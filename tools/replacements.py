"""What ``mutators.py`` puts in the place of operators, functions, element types and exceptions."""

from __future__ import annotations

import ast
import re
from typing import Final

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "DECLARATIONS",
    "EXCEPTIONS",
    "FOR_TYPES",
    "OPPOSITES",
    "ORDERED",
    "SYMMETRIC",
    "TYPES",
    "WITHOUT_EFFECT",
    "other_type",
]

COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
ARITHMETIC: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
ORDERED: Final = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.MatMult)
"""The operators whose operands are not interchangeable, of whatever type these are."""
_PAIRS: Final = (("min", "max"), ("any", "all"), ("minimum", "maximum"))
OPPOSITES: Final = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
SYMMETRIC: Final = {
    *(
        "min",
        "max",
        "add",
        "multiply",
        "maximum",
        "minimum",
        "fmin",
        "fmax",
        "equal",
        "not_equal",
        "hypot",
        "gcd",
        "lcm",
    ),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "array_equal", "isclose"),
    *("suppress", "union", "intersection", "zip_longest", "commonpath"),
    *("isinstance", "issubclass", "getattr", "hasattr", "setattr"),
}
"""The functions whose arguments are interchangeable, or whose every call fails if they are."""
TYPES: Final = {
    "bool_": "uint8",
    "complex64": "complex128",
    "complex128": "complex64",
    "float16": "float32",
    "float32": "float64",
    "float64": "float32",
    "int8": "int16",
    "int16": "int32",
    "int32": "int64",
    "int64": "int32",
    "intp": "int32",
    "uint8": "int8",
    "uint16": "int16",
    "uint32": "int32",
    "uint64": "int64",
}
"""The types of numpy."""
ELEMENT_TYPES: Final = re.compile(r"(boolean|string|nf4|bf16|f8e\dm\d|[fiu]\d+)")
EXCEPTIONS: Final = ("RuntimeError", "ValueError")
"""What is raised instead of any exception, and instead of the first of these."""
FOR_TYPES: Final = {"cast", "TypeVar", "NewType"}
WITHOUT_EFFECT: Final = {"slots", "frozen", "stacklevel"}
"""The keywords that a mutant does not drop or change: they alter memory, what is forbidden, or where a warning points."""
DECLARATIONS: Final = {"int", "float", "bool", "str", "choice", "ints", "floats", "element_type", "shape"}
"""What ``attr`` declares attributes of an operation with."""


def other_type(name: str) -> str | None:
    """Another element type than the one of this name, or None for other strings."""
    if not ELEMENT_TYPES.fullmatch(name):
        return None
    others = {"f32": "f16", "f16": "f32", "f64": "f32", "i64": "i32", "i32": "i64", "u8": "i8", "i8": "u8"}
    return others.get(name, "f32")

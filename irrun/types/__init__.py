"""Element types, dims and partial shapes, which every other module uses.

This package depends on no diagnostics, operations or XML.
"""

from irrun.types.dims import INF, Dim, UnknownDimError, as_dim, product
from irrun.types.element_types import ELEMENT_TYPES, NF4, ElementType, type_set
from irrun.types.shapes import UNKNOWN_RANK, PartialShape
from irrun.types.terms import Term
from irrun.types.text import (
    STRING_BYTES,
    array_from,
    as_text,
    blank,
    decoded,
    encoded,
    fixed_width,
    holds_text,
    text_array,
    text_bytes,
)

__all__ = [
    "ELEMENT_TYPES", "INF", "NF4", "STRING_BYTES", "UNKNOWN_RANK", "Dim", "ElementType", "PartialShape", "Term",
    "UnknownDimError", "array_from", "as_dim", "as_text", "blank", "decoded", "encoded", "fixed_width", "holds_text",
    "product", "text_array", "text_bytes", "type_set",
]  # fmt: skip

"""Element types, dims and partial shapes, which every other module uses.

This package depends on no diagnostics, operations or XML.
"""

from irrun.types.dims import INF, Dim, UnknownDimError, as_dim, product
from irrun.types.element_types import ELEMENT_TYPES, NF4, ElementType, type_set
from irrun.types.shapes import UNKNOWN_RANK, PartialShape
from irrun.types.terms import Term

__all__ = [
    "ELEMENT_TYPES", "INF", "NF4", "UNKNOWN_RANK", "Dim", "ElementType", "PartialShape", "Term", "UnknownDimError",
    "as_dim", "product", "type_set",
]  # fmt: skip

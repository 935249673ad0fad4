"""Schemas of the IR for editors and other XML tools, made from the registry of operations.

``relax_ng`` says for each operation which attributes it has. ``xsd`` cannot, because XSD 1.0 does not choose the
attributes of an element by the value of another attribute; but it finds ids that are used twice, and edges from or to
layers that do not exist.
"""

from irrun.ir.schema.relax_ng import relax_ng
from irrun.ir.schema.xsd import xsd

__all__ = ["relax_ng", "xsd"]

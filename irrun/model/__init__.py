"""The model that a file holds: layers, ports, edges and bodies, its weights, and the search for layers by name."""

from irrun.model.model import (
    VERSIONS,
    Edge,
    Layer,
    MapEntry,
    Model,
    Port,
    Shape,
    Shapes,
    is_constant,
    no_such_input,
)
from irrun.model.signatures import Tensor, signature, signature_lines, signature_table

__all__ = [
    "VERSIONS", "Edge", "Layer", "MapEntry", "Model", "Port", "Shape", "Shapes", "Tensor", "is_constant",
    "no_such_input", "signature", "signature_lines", "signature_table",
]  # fmt: skip

"""Layers that ONNX cannot say, as functions of a domain of their own, which the caller's runtime has to bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from irrun.model import Layer
from irrun.opdef import Op
from irrun.types import ElementType

__all__ = ["DOMAIN", "Function", "attributes_of", "domain_of"]

DOMAIN: Final = "org.openvino"
"""The domain of functions; the operation set of the layer follows, such as ``org.openvino.opset8``."""

Output = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Function:
    """A layer that is one node of a domain of its own.

    ``inputs`` declare the tensors that nodes compute for it, each with the output of a layer that it holds, unless they
    are outputs of the model or inputs of an earlier function. ``outputs`` declare the tensors that it computes.
    """

    layer: Layer
    inputs: tuple[tuple[Output, Any], ...]
    outputs: tuple[Any, ...]


def domain_of(layer: Layer) -> str:
    """Return the domain of the function that a layer calls."""
    return f"{DOMAIN}.{layer.version or 'opset1'}"


def attributes_of(op: Op) -> dict[str, Any]:
    """Return the attributes of an operation, with defaults, under the names of the IR: numbers, texts, and lists."""
    found: dict[str, Any] = {}
    for field, attribute in type(op).attributes.items():
        value = getattr(op, field)
        if isinstance(value, (ElementType, Enum)):
            value = str(value)
        if isinstance(value, bool):
            value = int(value)
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = [int(item) if isinstance(item, bool) else item for item in value]
        if isinstance(value, (int, float, str)) or (isinstance(value, list) and value):
            found[attribute.name] = value
    return found

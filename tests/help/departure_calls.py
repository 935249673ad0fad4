"""The inferences of a departure as arrays of the types that its model declares."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import irrun
from irrun.departures import Departure, Tensor
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["feeds", "want"]


def feeds(departure: Departure) -> list[list[np.ndarray]]:
    """Return the inputs of each inference."""
    types = [layer.outputs[0].type for layer in _model(departure.model).parameters]
    return [[_array(t, type) for t, type in zip(call.feeds, types, strict=True)] for call in departure.calls]


def want(tensor: Tensor, departure: Departure) -> np.ndarray:
    """Return an expected output. Its type is the one that the file names, or else that of the model's output."""
    (result,) = _model(departure.model).results
    return _array(tensor, ELEMENT_TYPES[tensor.type] if tensor.type else result.inputs[0].type)


def _array(tensor: Tensor, type: ElementType | None) -> np.ndarray:
    array = tensor.array()
    return array if type is None or type.kind in ("string", "dynamic") else array.astype(type.dtype)


def _model(path: Path) -> irrun.Model:
    return irrun.read_model(path)

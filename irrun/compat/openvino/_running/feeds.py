"""Input tensors from what users pass to a run: arrays, numbers, lists and Tensors, by port, position or name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irrun.compat.openvino._errors import OpenVINOError
from irrun.compat.openvino._ports import ConstOutput, Port
from irrun.compat.openvino._running.results import OVDict
from irrun.compat.openvino._tensors import Tensor
from irrun.compat.openvino._types import Type

__all__ = ["fitting", "input_tensor", "keyed"]


def keyed(inputs: Any, ports: Sequence[Port]) -> dict[Any, Any]:
    """Return the inputs of a run by port, position or name. None is no inputs; one value is that of the only input."""
    if inputs is None:
        return {}
    if isinstance(inputs, OVDict):
        inputs = list(inputs.values())
    elif isinstance(inputs, list) and len(ports) == 1 and _is_plain(inputs):
        inputs = [inputs]
    if isinstance(inputs, Mapping):
        for key in inputs:
            if not isinstance(key, (str, ConstOutput, int)):
                raise TypeError(f"an input is found by its port, position or name, not by {key!r}")
        return dict(inputs)
    if isinstance(inputs, (list, tuple)):
        return dict(enumerate(inputs))
    if len(ports) != 1:
        raise OpenVINOError(f"the model has {len(ports)} inputs; pass a list with a value for each, or a dict")
    return {0: inputs}


def _is_plain(values: list[Any]) -> bool:
    """Return whether a list holds only numbers and strings, or lists of them."""
    flat = [e for v in values for e in (v if isinstance(v, list) else [v])]
    return all(isinstance(e, (int, float, str, bytes)) for e in flat)


def input_tensor(port: Port, index: int, value: Any, current: Tensor, share: bool) -> Tensor:
    """Return the tensor with the value of an input. ``current`` is the tensor that the input has so far.

    A Tensor or a list keeps its element type; an array is cast to that of the port. With ``share``, the tensor uses
    the memory of an array that needs no cast; otherwise the values are copied to ``current``.
    """
    if isinstance(value, (Tensor, list)):
        return fitting(port, value if isinstance(value, Tensor) else Tensor(value))
    if not isinstance(value, (np.ndarray, np.generic, int, float, str, bytes)) and not hasattr(value, "__array__"):
        raise TypeError(f"input {index} cannot be a {type(value).__name__}; pass an array, a number or a Tensor")
    array = np.asarray(value)
    _require_fit(port, array.shape, port._type)
    is_same = array.dtype == port._type.to_dtype() and array.flags.writeable and array.flags.c_contiguous
    if share and is_same and array.ndim:
        return Tensor(array, shared_memory=True)
    tensor = Tensor(port._type, array.shape) if share or not array.ndim else current
    tensor._write(array)
    return tensor


def fitting(port: Port, tensor: Any) -> Tensor:
    """Return the tensor. Raises OpenVINOError if its element type or shape does not fit the port."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"a Tensor is required, not {type(tensor).__name__}; make one with Tensor(array)")
    _require_fit(port, tensor._data.shape, tensor.element_type)
    return tensor


def _require_fit(port: Port, shape: Sequence[int], element_type: Type) -> None:
    if element_type is not port._type:
        raise OpenVINOError(f"{port!r} does not take {element_type.type_name}; pass {port._type.type_name}")
    if not port._shape.fits(tuple(shape)):
        raise OpenVINOError(f"{port!r} does not take shape {list(shape)}; pass {port._shape}, or reshape the model")

"""openvino.op: constants, parameters and results of models that are being built."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.compat.openvino._building import opsets
from irrun.compat.openvino._building.nodes import BuiltNode
from irrun.compat.openvino._building.opsets import Result
from irrun.compat.openvino._shapes import Shape
from irrun.compat.openvino._tensors import Tensor
from irrun.compat.openvino._types import Type

__all__ = ["Constant", "Parameter", "Result"]


class Parameter(BuiltNode):
    """An input of a model: ``Parameter(Type.f32, PartialShape([1, 3, -1, -1]))``."""

    def __init__(self, element_type: Type, shape: Any) -> None:
        super().__init__(opsets.parameter(shape, element_type)._built)


class Constant(BuiltNode):
    """A constant: ``Constant(Type.f32, Shape([2]), [1.0, 2.0])``, ``Constant(array)`` or ``Constant(tensor)``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and isinstance(args[0], Type):
            element_type, shape, values = args
            dims = tuple(Shape(shape))
            array = np.array(values).reshape(-1)
            array = np.full(dims, array[0]) if array.size == 1 else array.reshape(dims)
            node = opsets.constant(array, element_type)
        elif isinstance(args[0], Tensor):
            node = opsets.constant(args[0]._array())
        else:
            node = opsets.constant(args[0])
        super().__init__(node._built)

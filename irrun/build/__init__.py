"""Build models in Python, from the same operations that read and run them::

    from irrun import build as b

    x = b.parameter([1, 16], "f32", name="x")
    y = b.Broadcast(x, [4, 16])
    model = b.model({"y": y})

Each operation is a function named after its type. Pass inputs by position or by port name; numbers, lists and arrays
become constants. Pass attributes by keyword, under their name in the IR or in Python. ``opset`` chooses the version of
the operation (by default the newest), ``name`` is the name of the layer, and ``outputs`` the number of outputs where
the operation allows any number. Inputs or attributes that the operation refuses raise ModelError, with the line of the
call.
"""

from __future__ import annotations

from collections.abc import Callable

from irrun.build._bodies import If, Loop, TensorIterator
from irrun.build._constants import constant
from irrun.build._models import model
from irrun.build._nodes import Node, Output
from irrun.build._operations import function_of, operation_names
from irrun.build._parameters import parameter
from irrun.build._slices import concatenated, invariant, sliced

__all__ = [
    "If", "Loop", "Node", "Output", "TensorIterator", "concatenated", "constant", "invariant", "model", "parameter",
    "sliced",
]  # fmt: skip


def __getattr__(name: str) -> Callable[..., Node]:
    if name.startswith("_"):
        raise AttributeError(f"module 'irrun.build' has no attribute {name!r}")
    return function_of(name, __all__)


def __dir__() -> list[str]:
    return sorted({*__all__, *operation_names()})

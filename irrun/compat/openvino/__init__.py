"""A stand-in for the part of the ``openvino`` package that reads, builds, prepares, compiles, runs and writes models.

It runs models with irrun, for tests of code that uses openvino where no openvino wheel exists. ``install()`` makes
``import openvino`` return this package. ``python -m irrun.compat.openvino SCRIPT`` does so and runs a script. Other
parts of openvino raise NotCovered, with the nearest thing that there is. Devices and properties are accepted; those
without effect say so once.
"""

from __future__ import annotations

import difflib
import sys
from types import ModuleType
from typing import Any

from irrun.compat.openvino._building import layout_helpers, op, preprocess
from irrun.compat.openvino._building.layouts import Layout
from irrun.compat.openvino._building.nodes import DiscreteTypeInfo, Input, Node, Output
from irrun.compat.openvino._building.opsets import OPSETS
from irrun.compat.openvino._core import Core, compile_model, get_version
from irrun.compat.openvino._errors import NotCovered, NotCoveredAttribute, NotCoveredModule, OpenVINOError
from irrun.compat.openvino._install import install
from irrun.compat.openvino._models import Model, get_batch, save_model, serialize, set_batch
from irrun.compat.openvino._ports import ConstOutput
from irrun.compat.openvino._properties import MODULES
from irrun.compat.openvino._running.profiling import ProfilingInfo
from irrun.compat.openvino._running.queues import AsyncInferQueue
from irrun.compat.openvino._running.requests import CompiledModel, InferRequest
from irrun.compat.openvino._running.results import OVDict
from irrun.compat.openvino._running.states import VariableState
from irrun.compat.openvino._shapes import Dimension, PartialShape, Shape
from irrun.compat.openvino._tensors import Tensor
from irrun.compat.openvino._types import Type

__version__ = get_version()

__all__ = [
    "AsyncInferQueue", "CompiledModel", "ConstOutput", "Core", "Dimension", "DiscreteTypeInfo", "InferRequest", "Input",
    "Layout", "Model", "Node", "NotCovered", "OVDict", "Output", "PartialShape", "ProfilingInfo", "Shape", "Tensor",
    "Type", "compile_model", "get_batch", "get_version", "install", "layout_helpers", "op", "preprocess", "properties",
    "save_model", "serialize", "set_batch",
]  # fmt: skip

for _public in (
    *(globals()[name] for name in __all__ if name in globals() and not isinstance(globals()[name], ModuleType)),
    NotCoveredAttribute,
    NotCoveredModule,
    OpenVINOError,
    VariableState,
):
    _public.__module__ = __name__  # so that tracebacks and pickles name the package that users import

properties = MODULES[""]
for _number, _opset in OPSETS.items():
    globals()[f"opset{_number}"] = _opset

_ELSEWHERE = {
    "convert_model": "Core.read_model; convert the model where openvino is installed",
    "frontend": "Core.read_model, which reads IR",
    "Extension": "@irrun.op, which registers an operation",
    "Op": "@irrun.op, which registers an operation",
    "RemoteTensor": "Tensor", "RemoteContext": "Tensor", "Version": "get_version",
    "helpers": "Tensor", "utils": "Tensor", "tools": "the command line of irrun",
}  # fmt: skip
"""What to use in place of parts of openvino whose nearest thing has quite another name."""


def nearest(name: str) -> str | None:
    """Return what comes closest to a part of openvino that is not covered."""
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    names = [*__all__, *(f"opset{number}" for number in OPSETS)]
    near = difflib.get_close_matches(name, names, 1)
    return f"openvino.{near[0]}" if near else None


def __getattr__(name: str) -> Any:
    if name == "runtime":  # before version 2026, code used openvino.runtime
        return sys.modules[__name__]
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotCoveredAttribute(f"openvino.{name}", nearest(name))

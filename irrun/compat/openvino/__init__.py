"""A stand-in for the part of the ``openvino`` package that reads, reshapes, compiles and runs models.

It runs models with irrun, for tests of code that uses openvino where no openvino wheel exists. ``install()`` makes
``import openvino`` return this package. ``python -m irrun.compat.openvino SCRIPT`` does so and runs a script. Other
parts of openvino raise NotCovered. Devices and properties are accepted and ignored. ``start_async`` returns after
the run is complete and the callback has been called.
"""

from __future__ import annotations

import sys
from typing import Any

from irrun.compat.openvino._core import Core, compile_model, get_version
from irrun.compat.openvino._errors import NotCovered, NotCoveredAttribute, NotCoveredModule, OpenVINOError
from irrun.compat.openvino._install import install
from irrun.compat.openvino._models import Model
from irrun.compat.openvino._ports import ConstOutput, Output
from irrun.compat.openvino._queues import AsyncInferQueue
from irrun.compat.openvino._requests import CompiledModel, InferRequest
from irrun.compat.openvino._results import OVDict
from irrun.compat.openvino._shapes import Dimension, PartialShape, Shape
from irrun.compat.openvino._states import VariableState
from irrun.compat.openvino._tensors import Tensor
from irrun.compat.openvino._types import Type

__version__ = get_version()

__all__ = [
    "AsyncInferQueue", "CompiledModel", "ConstOutput", "Core", "Dimension", "InferRequest", "Model", "NotCovered",
    "OVDict", "Output", "PartialShape", "Shape", "Tensor", "Type", "compile_model", "get_version", "install",
]  # fmt: skip

for _public in (
    *(globals()[name] for name in __all__), NotCoveredAttribute, NotCoveredModule, OpenVINOError, VariableState,
):  # fmt: skip
    _public.__module__ = __name__  # so that tracebacks and pickles name the package that users import


def __getattr__(name: str) -> Any:
    if name == "runtime":  # before version 2026, code used openvino.runtime
        return sys.modules[__name__]
    raise NotCoveredAttribute(f"openvino.{name}")

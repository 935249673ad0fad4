"""Read and compile models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import irrun.api as api
from irrun.compat.openvino._errors import Covered, NotCovered, OpenVINOError, translated
from irrun.compat.openvino._models import Model
from irrun.compat.openvino._requests import CompiledModel
from irrun.compat.openvino._tensors import Tensor
from irrun.diagnostics import IrrunError
from irrun.ir.parse import parse
from irrun.model import Model as Graph
from irrun.source import Source
from irrun.weights import Weights

__all__ = ["Core", "compile_model", "get_version"]


class Core(Covered):
    """Reads and compiles models. Every device name means the same device."""

    available_devices = property(lambda self: ["CPU"])

    def get_available_devices(self) -> list[str]:
        return ["CPU"]

    def read_model(self, model: Any, weights: Any = None, config: Mapping[str, Any] | None = None) -> Model:
        """Read an IR from its path, or from its text or bytes (with the weights as bytes or Tensor)."""
        try:
            return Model(_read(model, weights))
        except (NotCovered, OpenVINOError):
            raise
        except IrrunError as error:
            raise translated(error) from error

    def compile_model(
        self,
        model: Any,
        device_name: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        weights: Any = None,
    ) -> CompiledModel:
        return CompiledModel(model if isinstance(model, Model) else self.read_model(model, weights))

    def set_property(self, *args: Any) -> None:
        pass

    def get_property(self, device_name: str, name: str) -> Any:
        if name != "FULL_DEVICE_NAME":
            raise NotCovered(f"property {name}")
        return "irrun"


def _read(model: Any, weights: Any) -> Graph:
    """Return the model in a path, file object, text or bytes. Raises NotCovered for formats other than IR."""
    if hasattr(model, "read"):
        model = model.read()
    if isinstance(model, str) and model.lstrip().startswith("<"):
        model = model.encode()
    if not isinstance(model, (bytes, bytearray)):
        if Path(model).suffix != ".xml":
            raise NotCovered(f"models other than IR ({model})")
        return api.read_model(model, weights or None)
    if isinstance(weights, Tensor):
        weights = weights.data.tobytes()
    parsed = parse(Source("model", bytes(model)), None if weights is None else Weights(data=bytes(weights)))
    if errors := [p for p in parsed.problems if p.blocks]:
        raise IrrunError(errors)
    return parsed.model


def compile_model(model: Any, device_name: str = "AUTO", config: Mapping[str, Any] | None = None) -> CompiledModel:
    return Core().compile_model(model, device_name, config)


def get_version() -> str:
    """Return ``irrun``: a script that prints the version of openvino shows that irrun ran it."""
    return "irrun"

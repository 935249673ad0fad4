"""Read and compile models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import irrun.api as api
from irrun.base.source import Source
from irrun.compat.openvino._errors import Covered, NotCovered, OpenVINOError, translated
from irrun.compat.openvino._models import Model
from irrun.compat.openvino._properties import Properties
from irrun.compat.openvino._running.requests import CompiledModel
from irrun.compat.openvino._tensors import Tensor
from irrun.diagnostics import IrrunError
from irrun.ir.parse import parse
from irrun.model import Model as Graph
from irrun.model.weights import Weights

__all__ = ["Core", "compile_model", "get_version"]


class Core(Covered):
    """Reads and compiles models. Every device name means the same device."""

    def __init__(self, xml_config_file: Any = None) -> None:
        self._properties = Properties()

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
        device, config = (None, device_name) if isinstance(device_name, Mapping) else (device_name, config)
        if device is not None and str(device).upper().split(".")[0].split(":")[0] not in _DEVICES:
            raise OpenVINOError(f'Device with name "{device}" is not registered; every known device is run by irrun')
        properties = Properties(config, self._properties.values)
        return CompiledModel(model if isinstance(model, Model) else self.read_model(model, weights), properties)

    def set_property(self, *args: Any) -> None:
        """Set properties of all devices, or of the device that comes first."""
        self._properties.update(args[-1] if isinstance(args[-1], Mapping) else [args[-1]])

    def get_property(self, *args: Any) -> Any:
        """Return a property; a device may come first."""
        return self._properties.get(args[-1])

    def get_versions(self, device_name: str) -> dict[str, Any]:
        raise NotCovered("Core.get_versions", "openvino.get_version")

    def __repr__(self) -> str:
        return "<Core: available plugins[CPU]>"


_DEVICES = ("CPU", "GPU", "NPU", "AUTO", "MULTI", "HETERO", "BATCH", "TEMPLATE")


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

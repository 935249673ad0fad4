"""The harness of onnxruntime, which runs ONNX models or, behind ONNXifier, IR files.

It needs onnxruntime and numpy, for inner values also onnx, for IR files also onnxifier, and no irrun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnxruntime  # pyright: ignore[reportMissingImports]
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented  # pyright: ignore[reportMissingImports]

__all__ = ["Harness"]

_PROVIDERS = {"CPU": "CPUExecutionProvider", "GPU": "CUDAExecutionProvider"}
"""The execution providers of the devices that OpenVINO's names describe. Other names are those of providers."""


class Harness:
    """onnxruntime, with the provider and the threads that ``options`` name."""

    takes_arrays = True

    def __init__(self, options: dict[str, str]) -> None:
        device = options.get("device", "CPU")
        self.provider = _PROVIDERS.get(device, device)
        if self.provider not in onnxruntime.get_available_providers():
            raise ValueError(f"onnxruntime has no {self.provider}, but {onnxruntime.get_available_providers()}")
        self.options = onnxruntime.SessionOptions()
        if "threads" in options:
            self.options.intra_op_num_threads = int(options["threads"])
        self.name = f"onnxruntime {onnxruntime.__version__} {device}"
        self.converts = "convert" in options
        if self.converts:
            import onnxifier  # pyright: ignore[reportMissingImports]

            self.name = f"ONNXifier {onnxifier.__version__}, {self.name}"

    def load(self, path: str, inner: bool) -> dict[str, Any]:
        """Read the model, and return its inputs, its outputs and, if ``inner``, the results of its nodes."""
        self.model = _converted(path) if self.converts else path
        self.session = self._session(self.model)
        self.observed: tuple[Any, Any] | None = None
        inputs = self.session.get_inputs()
        self.inputs = [value.name for value in inputs]
        loaded: dict[str, Any] = {
            "inputs": [{"names": [v.name], "type": _type(v.type), "shape": _shape(v.shape)} for v in inputs],
            "outputs": [{"names": [value.name]} for value in self.session.get_outputs()],
        }
        if inner:
            loaded["values"] = self._values()
        return loaded

    def infer(
        self, feeds: Sequence[Any], taps: Sequence[tuple[str, int]], show: Callable[[str, int, Any], None]
    ) -> list[Any]:
        """Return the outputs, and pass the results at ``taps`` to ``show``.

        The outputs are those of the model as it is. The other results come from a copy that has them as outputs.
        """
        named = dict(zip(self.inputs, feeds))
        outputs = self.session.run(None, named)
        if taps:
            names = [name for name, _ in taps]
            if self.observed is None or self.observed[0] != names:
                self.observed = names, self._observer(names)
            for (name, port), array in zip(taps, self.observed[1].run(names, named)):
                show(name, port, array)
        return list(outputs)

    def reset(self) -> None:
        """Do nothing: ONNX models have no state."""

    def _session(self, model: Any) -> Any:
        """Return a session. ``model`` is a path or serialized. Raises NotImplementedError if a kernel is missing."""
        try:
            return onnxruntime.InferenceSession(model, self.options, providers=[self.provider])
        except NotImplemented as error:
            raise NotImplementedError(str(error)) from None

    def _values(self) -> list[dict[str, Any]]:
        """Return the results of the nodes, or none if the package onnx is not installed."""
        try:
            nodes = _proto(self.model, load_external_data=False).graph.node
        except ImportError:
            return []
        return [
            {"layer": name, "port": 0, "type": node.op_type, "names": [node.name] if node.name and not position else []}
            for node in nodes
            for position, name in enumerate(node.output)
            if name
        ]

    def _observer(self, names: Sequence[str]) -> Any:
        """Return a session of a copy of the model that has further outputs."""
        import onnx

        model = _proto(self.model)
        known = {value.name for value in model.graph.output}
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
        return self._session(model.SerializeToString())


def _converted(path: str) -> bytes:
    """Return the ONNX model of an IR. Raises NotImplementedError for what ONNXifier has no conversion for.

    It gives layers that it does not know to ONNX under the same type, which ONNX may not have.
    """
    import onnx
    import onnxifier  # pyright: ignore[reportMissingImports]

    try:
        model = onnxifier.convert(path, print_passes=False)
    except KeyError as error:
        raise NotImplementedError(f"ONNXifier has no conversion for {error}") from None
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    for node in model.graph.node:
        if not onnx.defs.has(node.op_type, opsets.get(node.domain, 1), node.domain):
            raise NotImplementedError(f"ONNXifier has no conversion for {node.op_type}")
    return model.SerializeToString()


def _proto(model: str | bytes, *, load_external_data: bool = True) -> Any:
    """Return a model that is a path or serialized."""
    import onnx

    if isinstance(model, bytes):
        return onnx.load_from_string(model)
    return onnx.load(model, load_external_data=load_external_data)


def _type(text: str) -> str:
    """Return the name of an element type in the IR, from a text such as ``tensor(float)``."""
    name = text[len("tensor(") : -1]
    names = {"float": "f32", "double": "f64", "bool": "boolean", "bfloat16": "bf16"}
    return names.get(name, name.replace("float", "f").replace("uint", "u").replace("int", "i"))


def _shape(dims: Sequence[Any]) -> str:
    return f"[{','.join(str(dim) if isinstance(dim, int) else '?' for dim in dims)}]"

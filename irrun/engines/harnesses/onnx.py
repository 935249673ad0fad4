"""The harness of ONNX's reference evaluator. It needs onnx and numpy, and no irrun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

__all__ = ["Harness"]


class Harness:
    """The reference evaluator of the onnx package."""

    takes_arrays = True

    def __init__(self, options: dict[str, str]) -> None:
        self.name = f"onnx.reference {onnx.__version__}"

    def load(self, path: str, inner: bool) -> dict[str, Any]:
        """Read the model, and return its inputs, its outputs and, if ``inner``, the results of its nodes."""
        self.model = onnx.load(path)
        self.evaluator = ReferenceEvaluator(self.model)
        graph = self.model.graph
        constants = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in constants]
        self.inputs = [value.name for value in inputs]
        self.outputs = [value.name for value in graph.output]
        loaded: dict[str, Any] = {
            "inputs": [{"names": [value.name], "type": _type(value), "shape": _shape(value)} for value in inputs],
            "outputs": [{"names": [name]} for name in self.outputs],
        }
        if inner:
            loaded["neutral"] = True
            loaded["values"] = [
                {
                    "layer": name,
                    "port": 0,
                    "type": node.op_type,
                    "names": [node.name] if node.name and not position else [],
                }
                for node in graph.node
                for position, name in enumerate(node.output)
                if name
            ]
        return loaded

    def infer(
        self, feeds: Sequence[Any], taps: Sequence[tuple[str, int]], show: Callable[[str, int, Any], None]
    ) -> list[Any]:
        """Return the outputs, and pass the results at ``taps`` to ``show``."""
        named = dict(zip(self.inputs, feeds))
        results: Any = self.evaluator.run(None, named, intermediate=True) if taps else {}
        for name, port in taps:
            show(name, port, results[name])
        return [results[name] for name in self.outputs] if taps else list(self.evaluator.run(None, named))

    def reset(self) -> None:
        """Do nothing: ONNX models have no state."""


def _type(value: Any) -> str:
    """Return the name of an element type in the IR."""
    name = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
    names = {"float": "f32", "double": "f64", "bool": "boolean", "string": "string", "bfloat16": "bf16"}
    return names.get(name, name.replace("float", "f").replace("uint", "u").replace("int", "i").replace("fn", ""))


def _shape(value: Any) -> str:
    if not value.type.tensor_type.HasField("shape"):
        return "[...]"
    dims = value.type.tensor_type.shape.dim
    return f"[{','.join(str(dim.dim_value) if dim.HasField('dim_value') else '?' for dim in dims)}]"

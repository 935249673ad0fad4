"""What a model contains: its inputs, outputs, operations and weights, as a dict for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from irrun.ir.rt_info import runtime_options
from irrun.model import Layer, Model
from irrun.types import ElementType, PartialShape

__all__ = ["facts_of", "written"]


def facts_of(model: Model) -> dict[str, Any]:
    """Return the inputs, outputs, operations and weights of a model as a dict for JSON."""
    layers = list(_layers(model))
    constants = [layer.attributes for layer in layers if layer.type.lower() in ("const", "constant")]
    shapes = [PartialShape.parse(c.get("shape", "")) for c in constants]
    # constants may share their bytes, which count once
    bytes = {(c.get("offset"), c["size"]) for c in constants if c.get("size", "").isdigit()}
    weights = model.weights.path if model.weights else None
    counts = Counter((layer.type, layer.version) for layer in layers)
    return {
        "name": model.name,
        "ir_version": model.version or None,
        "inputs": [_input(model, p) for p in model.parameters],
        "outputs": [_output(model, r) for r in model.results],
        "layers": len(layers),
        "operations": [
            {"type": type, "version": version, "count": count}
            for (type, version), count in sorted(counts.items(), key=lambda row: (-row[1], row[0][0], row[0][1] or ""))
        ],
        "parameters": sum(shape.least for shape in shapes if shape is not None),
        "weight_bytes": sum(int(size) for _, size in bytes),
        "weights": str(weights) if weights else None,
        "runtime_options": dict(runtime_options(model)),
    }


def written(model: Model, path: str) -> dict[str, Any]:
    """Return what a file at ``path`` contains that a command has written, as a dict for JSON."""
    return {
        "wrote": path,
        "layers": len(model.layers),
        "inputs": [_input(model, p) for p in model.parameters],
        "outputs": [_output(model, r) for r in model.results],
    }


def _layers(model: Model) -> Iterator[Layer]:
    """Yield the layers of a model, including those in bodies."""
    for layer in model.layers.values():
        yield layer
        for body in layer.bodies.values():
            yield from _layers(body)


def _input(model: Model, parameter: Layer) -> dict[str, Any]:
    attributes = parameter.attributes
    element_type = ElementType.parse(attributes.get("element_type", ""))
    shape = PartialShape.parse(attributes.get("shape", "..."))
    return _tensor(model.input_names(parameter), element_type, shape)


def _output(model: Model, result: Layer) -> dict[str, Any]:
    fed = model.fed_by(result, 0) if result.inputs else None
    names = model.result_names(result)
    return _tensor(names, fed[1].type, fed[1].shape) if fed else _tensor(names, None, None)


def _tensor(names: Sequence[str], element_type: ElementType | None, shape: PartialShape | None) -> dict[str, Any]:
    """Return an input or output as a dict for JSON. Its type and shape are None if they are unknown."""
    type = None if element_type is None or element_type.kind == "dynamic" else str(element_type)
    return {"name": names[0], "names": list(names), "type": type, "shape": None if shape is None else shape.listed}

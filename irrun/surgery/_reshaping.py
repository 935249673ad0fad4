"""Give the inputs of a model other shapes."""

from __future__ import annotations

from dataclasses import replace

from irrun.api import PathLike, as_model
from irrun.inference.trace import Trace
from irrun.model import Layer, Model, Shapes
from irrun.types import PartialShape

__all__ = ["reshape"]


def reshape(model: Model | PathLike, shapes: Shapes) -> Model:
    """Return the model whose inputs have other shapes, and whose ports declare the inferred dims.

    ``shapes`` are as ``Model.reshape`` takes them. The ports of bodies declare none. Raises FeedError (IR601) for an
    unknown input, or a text that is no shape.
    """
    model = as_model(model).reshape(shapes)
    values = Trace(model).values

    def inferred(source: tuple[int, int] | None) -> PartialShape | None:
        value = values.get(source) if source is not None else None
        return value.shape if value is not None and value.shape.dims else None

    def declaring(id: int, layer: Layer) -> Layer:
        inputs = zip(layer.inputs, model.feeds[id], strict=True)
        return replace(
            layer,
            inputs=tuple(replace(port, shape=inferred(feed)) for port, feed in inputs),
            outputs=tuple(replace(port, shape=inferred((id, at))) for at, port in enumerate(layer.outputs)),
        )

    return replace(model, layers={id: declaring(id, layer) for id, layer in model.layers.items()})

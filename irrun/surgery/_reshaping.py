"""Give the inputs of a model other shapes, and replace the constants that repeat the old ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

import irrun.build as b
from irrun.api import PathLike, as_model
from irrun.checking.frozen import Axis, FrozenDim, frozen_dims
from irrun.checking.hoisting import hoisted
from irrun.inference.settled import settled
from irrun.inference.trace import Trace
from irrun.ir.rt_info import rt_infos
from irrun.model import Edge, Layer, Model, Port, Shapes
from irrun.model.weights import Weights, pack
from irrun.surgery._models import rebuilt, refused
from irrun.surgery._splicing import spliced
from irrun.surgery._unused import drop_unused
from irrun.types import UNKNOWN_RANK, PartialShape

__all__ = ["Thawed", "batch_axes", "batch_shapes", "reshape", "thaw"]


@dataclass(frozen=True, slots=True)
class Thawed:
    """A model without the constants that repeat dims of its inputs, and a sentence for each replaced number."""

    model: Model
    replaced: tuple[str, ...]


def reshape(model: Model | PathLike, shapes: Shapes) -> Model:
    """Return the model whose inputs have other shapes, and whose ports declare the inferred dims.

    ``shapes`` are as ``Model.reshape`` takes them. Bodies declare the inferred dims, too. Raises FeedError (IR601) for
    an unknown input, or a text that is no shape.
    """
    model = as_model(model).reshape(shapes)
    return replace(model, layers=_declaring(Trace(model)))


def _declaring(trace: Trace) -> dict[int, Layer]:
    """Return the layers of a model or body whose ports, and Parameters of bodies, declare the inferred dims."""
    layers: dict[int, Layer] = {}

    def inferred(source: tuple[int, int] | None) -> PartialShape | None:
        value = trace.values.get(source) if source is not None else None
        return value.shape if value is not None and value.shape.dims else None

    for id, layer in trace.model.layers.items():
        attributes, shape = layer.attributes, inferred((id, 0))
        if trace.outer is not None and layer.type.lower() == "parameter" and shape is not None:
            attributes = {**attributes, "shape": ",".join(map(str, shape.dims or ()))}
        layers[id] = replace(
            layer,
            attributes=attributes,
            inputs=tuple(
                replace(port, shape=inferred(feed)) for port, feed in zip(layer.inputs, trace.model.feeds[id])
            ),
            outputs=tuple(replace(port, shape=inferred((id, at))) for at, port in enumerate(layer.outputs)),
            bodies={
                tag: replace(body.model, layers=_declaring(body))
                for tag, body in (trace.bodies(id).items() if layer.bodies else ())
            },
        )
    return layers


def thaw(model: Model | PathLike, shapes: Shapes, *, batch: int | None = None) -> Thawed:
    """Return the model with other numbers in the constants that repeat the dims of inputs that ``shapes`` change.

    A number that depends on unknown dims is computed from the shape of the input; the others are replaced. ``batch`` is
    the old first dim of the inputs if outputs must follow it. The inputs keep their shapes: ``reshape`` changes them.
    Nothing is replaced if a layer would refuse the new shapes still; ``check`` with these shapes names it. Raises
    FeedError (IR601) for an unknown input, or a text that is no shape, and ModelError (IR608) for an output that does
    not follow the batch.

    In a body, a new number replaces the old one. A number that must be computed becomes an input of the layer with the
    body, because the body does not see the inputs of the model.
    """
    model = as_model(model)
    moved = hoisted(model)
    found = frozen_dims(moved.model, shapes, batch=batch)
    if isinstance(found, Layer):
        if found in model.results:
            message = f'the first dim of output "{model.result_name(found)}" does not follow that of the inputs'
            raise refused(model, message, "change the layers that join the samples, or pass --shape", found)
        return Thawed(model, ())
    if not found:
        return Thawed(model, ())
    replaced = tuple(frozen.describe(moved.model) for frozen in found)
    wanted: dict[Axis, int] = {}
    for position, tensor in enumerate(model.reshape(shapes).inputs):
        dims = tensor.dims
        wanted |= {(position, axis): dim.value for axis, dim in enumerate(dims) if dim.value is not None}
    blob = bytearray() if model.weights is None else bytearray(model.weights.data)
    values = settled(moved.model)
    by_constant: dict[int, list[FrozenDim]] = {}
    for frozen in found:
        by_constant.setdefault(frozen.constant, []).append(frozen)
    computed = {id for id, own in by_constant.items() if any(axis not in wanted for f in own for axis in f.axes)}
    outer = hoisted(model, [place for id, place in moved.places.items() if id in computed])
    ids = {place: id for id, place in outer.places.items()}
    layers, edges = dict(outer.model.layers), list(outer.model.edges)
    parts: dict[int, Model] = {}
    for id, own in by_constant.items():
        array = values[id, 0].exact
        assert array is not None
        place = moved.places.get(id, ((), id))
        if id in computed:
            at = ids.get(place, id)
            layers[at], more, parts[at] = _computed(model, layers[at], array, own, shapes, wanted)
            edges += more
        else:
            const = _rewritten(moved.model.layers[id], array, own, wanted, blob)
            layers = _changed(layers, *place, const.attributes)
    layers, edges = spliced(replace(outer.model, layers=layers, edges=tuple(edges)), parts, blob)
    thawed = drop_unused(rebuilt(model, layers, edges, Weights(data=bytes(blob))))
    return Thawed(thawed, replaced)


def _changed(
    layers: Mapping[int, Layer], path: Sequence[tuple[int, str]], id: int, attributes: Mapping[str, str]
) -> dict[int, Layer]:
    """Return layers of which one has other attributes: that with an id, in the body at the end of ``path``."""
    if not path:
        return {**layers, id: replace(layers[id], attributes=attributes)}
    (owner, tag), *rest = path
    layer = layers[owner]
    body = replace(layer.bodies[tag], layers=_changed(layer.bodies[tag].layers, rest, id, attributes))
    return {**layers, owner: replace(layer, bodies={**layer.bodies, tag: body})}


_ALIGNMENT: Final = 64


def _rewritten(
    layer: Layer, array: np.ndarray, found: Sequence[FrozenDim], wanted: Mapping[Axis, int], blob: bytearray
) -> Layer:
    """Return a Const with other elements, whose bytes are added to ``blob``."""
    array = array.copy()
    for frozen in found:
        array.flat[frozen.element] = frozen.at(wanted)
    element_type = layer.outputs[0].type
    assert element_type is not None
    raw = pack(array, element_type)
    blob += bytes(-len(blob) % _ALIGNMENT)
    attributes = {**layer.attributes, "offset": str(len(blob)), "size": str(len(raw))}
    blob += raw
    return replace(layer, attributes=attributes)


def _computed(
    model: Model,
    layer: Layer,
    array: np.ndarray,
    found: Sequence[FrozenDim],
    shapes: Shapes,
    wanted: Mapping[Axis, int],
) -> tuple[Layer, list[Edge], Model]:
    """Return a Const as a layer with the inputs of the model that it repeats, its edges, and the model that it becomes.

    The model reads the shapes of its Parameters, and puts the dims between the other elements of the constant.
    """
    inputs = sorted({input for frozen in found for input, _ in frozen.axes})
    tensors = model.reshape(shapes).inputs
    parameters = {i: b.parameter(tensors[i].shape or "...", tensors[i].type, name=f"input{i}") for i in inputs}
    pieces: list[b.Node | np.ndarray] = [np.array([number], np.int64) for number in array.ravel().tolist()]
    for frozen in found:
        if all(axis in wanted for axis in frozen.axes):
            pieces[frozen.element] = np.array([frozen.at(wanted)], np.int64)
        else:
            pieces[frozen.element] = _product(frozen, parameters)
    value = b.Concat(*pieces, axis=0) if len(pieces) > 1 else pieces[0]
    element_type = layer.outputs[0].type
    if array.ndim != 1:
        value = b.Reshape(value, np.array(array.shape, np.int64), special_zero=False)
    if element_type is not None and element_type.name != "i64":
        value = b.Convert(value, destination_type=element_type)
    part = b.model([value], inputs=list(parameters.values()), name=layer.name)
    sources = [model.parameters[i] for i in inputs]
    first = max(port.id for port in layer.outputs) + 1
    ports = tuple(Port(first + n, s.outputs[0].type, s.outputs[0].shape, (), -1) for n, s in enumerate(sources))
    edges = [Edge(s.id, s.outputs[0].id, layer.id, port.id, -1) for s, port in zip(sources, ports)]
    return replace(layer, inputs=ports), edges, part


def _product(frozen: FrozenDim, parameters: Mapping[int, b.Node]) -> b.Node:
    """Return a product of dims of inputs, i64 [1]."""
    product: b.Node | None = None
    for input, axis in frozen.axes:
        dim = b.Gather(b.ShapeOf(parameters[input], output_type="i64", opset=3), [axis], 0, batch_dims=0, opset=8)
        product = dim if product is None else b.Multiply(product, dim)
    assert product is not None
    if frozen.factor.numerator != 1:
        product = b.Multiply(product, np.array([frozen.factor.numerator], np.int64))
    if frozen.factor.denominator != 1:
        product = b.Divide(product, np.array([frozen.factor.denominator], np.int64))
    return product


# ---------------------------------------------------------------------------------------------
# the batch

_LAYOUT: Final = re.compile(r'layout="\[?([^"\]]*)\]?"')


def batch_axes(model: Model | PathLike) -> Mapping[int, int]:
    """Return the axis of the batch of each input that has one, by the position of the input.

    It is N in the layout that ``rt_info`` declares for the input. If no input has a layout, it is the first axis of the
    first input, and of all inputs whose first dim is the same. Raises ModelError (IR608) if no input has a batch.
    """
    model = as_model(model)
    layouts = _layouts(model)
    axes = {i: axis for i, names in layouts.items() if (axis := _position(names)) is not None}
    first = {i: tensor.dims[0] for i, tensor in enumerate(model.inputs) if tensor.dims}
    if not layouts and first:
        batch = next(iter(first.values()))
        axes = {i: 0 for i, dim in first.items() if (dim.lo, dim.hi) == (batch.lo, batch.hi)}
    if not axes:
        help = "name the inputs and their shapes with --shape"
        raise refused(model, "no input has a batch: their layouts have no N, or they are scalars", help)
    return axes


def batch_shapes(model: Model | PathLike, batch: int | None) -> Mapping[int, PartialShape]:
    """Return the shapes of the inputs with another batch, as ``Model.reshape`` takes them; unknown if that is None."""
    model = as_model(model)
    shapes: dict[int, PartialShape] = {}
    for position, axis in batch_axes(model).items():
        texts = [str(dim) for dim in model.inputs[position].dims]
        texts[axis] = "?" if batch is None else str(batch)
        shapes[position] = PartialShape.parse(",".join(texts)) or UNKNOWN_RANK
    return shapes


def _layouts(model: Model) -> Mapping[int, str]:
    """Return the layouts of inputs, such as ``N,C,H,W`` or ``NCHW``, by position."""
    infos = rt_infos(model) if b"layout" in model.source.utf8 else {}
    layouts: dict[int, str] = {}
    for position, parameter in enumerate(model.parameters):
        for node in (parameter.node, *(port.node for port in parameter.outputs)):
            for path, text in infos.get(node, {}).items():
                if "[layout]" in path and (match := _LAYOUT.search(text)):
                    layouts[position] = match[1]
    return layouts


def _position(layout: str) -> int | None:
    """Return the axis of N in a layout, or None. After ``...``, the axis is not known."""
    names = [name.strip() for name in layout.split(",")] if "," in layout else list(layout.partition("...")[0])
    names = names[: names.index("...")] if "..." in names else names
    return names.index("N") if "N" in names else None

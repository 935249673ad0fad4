"""Carry element types, shapes and contents through a whole model, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from irrun.diagnostics import Diagnostic, Refused, counted, diagnostic
from irrun.inference.bind import bind_all
from irrun.inference.layer import infer
from irrun.model import Layer, Model
from irrun.opdef import Op, Site, Value, is_custom
from irrun.source import STDIN
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, PartialShape

__all__ = [
    "InferredBody",
    "Values",
    "declared",
    "declared_inside",
    "needed",
    "propagate",
    "refusal",
    "site",
    "to_blame",
    "weights_missing",
    "wrong_output_count",
]

Values = dict[tuple[int, int], Value]
"""What is known of each output: by layer id and position among its outputs."""

Settle = Callable[[Layer, "tuple[Value, ...] | Exception"], Sequence[Value]]
"""Decides what a layer hands on, given what was inferred or why nothing was."""


def site(layer: Layer, name: str | None = None) -> Site:
    return Site(len(layer.outputs), tuple(p.type for p in layer.outputs), name or layer.name)


def refusal(model: Model, layer: Layer, op: Op | None, refused: Refused, notes: tuple[str, ...] = ()) -> Diagnostic:
    """A rule that a layer breaks, with the clause of its specification, at the layer or the attribute at fault.

    ``notes`` come after those of the rule itself.
    """
    label = f" ({op.type}-{op.since} {refused.label})" if op and refused.label else ""
    attribute = {"IR502": "offset", "IR503": "size", "IR504": "offset"}.get(refused.code)
    data = model.source.children(layer.node, "data") if attribute else []
    node = data[0] if data else layer.node
    return diagnostic(
        refused.code, f'{layer.type} "{layer.name}": {refused.message}{label}', source=model.source, node=node,
        attribute=attribute, layer=layer.name, help=refused.help, label=refused.label, notes=(*refused.notes, *notes),
    )  # fmt: skip


def to_blame(op: Op | None) -> str:
    """Who is at fault where a shape rule or kernel fails: the help of IR603."""
    if op is not None and is_custom(type(op)):
        return f"the operation is that of {type(op).__module__}.{type(op).__qualname__}"
    return "this is a bug in irrun; please report it"


def wrong_output_count(layer: Layer, op: Op | None, count: int) -> str:
    """The message of IR206."""
    gives = f"{op.type}-{op.since} gives {count}" if op else f"{count} are given"
    return f'{layer.type} "{layer.name}" declares {counted(len(layer.outputs), "output")}; {gives}'


def weights_missing(model: Model) -> Diagnostic:
    """That the ``.bin`` of a model with constants is not there."""
    path = model.source.path
    lacking = "no .bin is named" if path == STDIN else f"{Path(path).with_suffix('.bin')} is missing"
    count = "one constant has its" if model.constants == 1 else f"{model.constants} constants have their"
    return Diagnostic(
        "IR501", "error", f"{lacking}; {count} values in it", file=path, source=model.source,
        help="name it with -w" if path == STDIN else "put it beside the .xml under the same name, or name it with -w",
    )  # fmt: skip


def declared(layer: Layer) -> tuple[Value, ...]:
    """The outputs as the file declares them."""
    return tuple(Value(p.type or ELEMENT_TYPES["dynamic"], p.shape or UNKNOWN_RANK) for p in layer.outputs)


def needed(op: Op, model: Model, layer: Layer) -> dict[str, Any]:
    """What ``infer`` of an operation gets for its ``needs``.

    ``weights``; ``bodies``, by the name of their element; ``maps`` and ``back_edges`` of the layer;
    ``variables``: None, as no state exists yet.
    """
    return {name: _OFFERS[name](model, layer) for name in op.needs}


_OFFERS: dict[str, Callable[[Model, Layer], Any]] = {
    "weights": lambda model, layer: model.weights,
    "bodies": lambda model, layer: _Bodies((tag, InferredBody(body)) for tag, body in layer.bodies.items()),
    "maps": lambda model, layer: layer.maps,
    "back_edges": lambda model, layer: layer.back_edges,
    "variables": lambda model, layer: None,
}


class _Bodies(dict[str, "InferredBody"]):
    """The bodies of a layer by tag; one that the file lacks is refused."""

    def __missing__(self, tag: str) -> InferredBody:
        raise Refused(f"has no <{tag}>", code="IR007")


class InferredBody:
    """A body (``opdef.Body``) over Values."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ops = {layer.id: op for layer, op, _ in bind_all(model)}

    def declared(self, id: int) -> Value:
        return declared_inside(self.model, id)

    def __call__(self, inputs: Mapping[int, Value]) -> dict[int, Value]:
        values: Values = {}
        propagate(self.model, self.ops, self.settle, values, inputs)
        found: dict[int, Value] = {}
        for result in self.model.results:
            feed = self.model.feeds[result.id][0]
            found[result.id] = values[feed] if feed is not None else declared(result)[0]
        return found

    def settle(self, layer: Layer, found: tuple[Value, ...] | Exception) -> Sequence[Value]:
        """What a layer of the body hands on: what was inferred, or nothing can be inferred of the body."""
        if isinstance(found, Refused):
            message = f'in its body, {layer.type} "{layer.name}": {found.message}'
            raise Refused(message, found.label, found.help, found.code, notes=found.notes)
        if isinstance(found, Exception):
            raise found
        return found


def declared_inside(model: Model, id: int) -> Value:
    """What a Parameter or Result of a body declares."""
    layer = model.layers[id]
    fed = model.fed_by(layer, 0) if layer.inputs else None
    port = layer.outputs[0] if layer.outputs else fed[1] if fed else layer.inputs[0]
    shape = port.shape
    if layer.outputs:  # a Parameter's own shape tells a scalar from an unknown rank
        own = PartialShape.parse(layer.attributes.get("shape", "..."))
        shape = shape if own is None else own
    return Value(port.type or ELEMENT_TYPES["dynamic"], UNKNOWN_RANK if shape is None else shape)


def propagate(
    model: Model, ops: Mapping[int, Op | None], settle: Settle, values: Values, given: Mapping[int, Value]
) -> None:
    """Infer every layer in order, into ``values``. ``given`` stand in for Parameters, by layer id.

    A layer without an operation hands on what it declares. ``settle`` is asked about every other one;
    it gets the exception where the layer refuses (Refused) or its rule fails (anything else: a bug).
    Outputs of which the same is known are one Value, and what one operation gives for the same inputs is inferred once.
    """
    shared: dict[tuple[object, ...], Value] = {}
    known: dict[tuple[object, ...], tuple[Value, ...]] = {}
    for id in model.order:
        layer, op = model.layers[id], ops[id]
        if op is None:
            outputs: Sequence[Value] = declared(layer)
        else:
            inputs = [None if feed is None else values.get(feed) for feed in model.feeds[id]]
            key = (op, *[port.type for port in layer.outputs], *inputs)
            found: tuple[Value, ...] | Exception | None = known.get(key)
            if found is None:
                found = _inferred(model, layer, op, inputs)
                if isinstance(found, tuple):
                    found = tuple([shared.setdefault(_known(value), value) for value in found])
                    if inputs and op.pure and not op.needs:
                        known[key] = found
            outputs = settle(layer, found)
        if id in given:
            outputs = [given[id]]
        for position, value in enumerate(outputs):
            values[id, position] = value


def _inferred(model: Model, layer: Layer, op: Op, inputs: Sequence[Value | None]) -> tuple[Value, ...] | Exception:
    try:
        found = infer(op, site(layer, model.unique_names[layer.id]), inputs, needed(op, model, layer))
    except Exception as error:  # what is no refusal is a bug of ours, which must not hide the rest of the file
        return error
    return found[: len(layer.outputs)] or found  # the last outputs need not be declared where nobody reads them


def _known(value: Value) -> tuple[object, ...]:
    """What is known of a value. Contents, and unknown dims that have no term, are like no others."""
    dims = value.shape.dims
    if value.data is not None or (dims and any(dim.lo != dim.hi and dim.term is None for dim in dims)):
        return (value,)
    return value.type, dims and tuple([(dim.lo, dim.hi, dim.term) for dim in dims])

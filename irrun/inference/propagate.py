"""Infer element types, shapes and contents through a whole model, layer by layer.

The module also holds the diagnostics and messages that inference, checking and running share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.base.source import STDIN
from irrun.base.text import counted
from irrun.diagnostics import Diagnostic, Refused, diagnostic
from irrun.inference.bind import bind_all
from irrun.inference.layer import infer
from irrun.model import Layer, Model
from irrun.opdef import Op, Site, Value, is_custom
from irrun.opdef.values import CONTENTS_LIMIT, array_of
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, Dim, ElementType, PartialShape, as_dim

__all__ = [
    "Bodies",
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
"""The inferred value of each output, keyed by (layer id, position among the outputs of the layer)."""

Settle = Callable[[Layer, "tuple[Value, ...] | Exception"], Sequence[Value]]
"""A callback of ``propagate``: it takes a layer with its inferred outputs, or with the exception that inference raised,
and returns the outputs that the consumers of the layer read. A layer without an operation has its declared outputs."""


def site(layer: Layer, name: str | None = None) -> Site:
    """Return the Site of ``layer`` for its shape rule. ``name`` replaces the layer's own name, which may be shared."""
    return Site(len(layer.outputs), tuple(p.type for p in layer.outputs), name or layer.name)


def refusal(model: Model, layer: Layer, op: Op | None, refused: Refused, notes: tuple[str, ...] = ()) -> Diagnostic:
    """Return the diagnostic for a rule that ``layer`` breaks, at the layer or at the attribute at fault.

    ``notes`` are added after those of the rule itself.
    """
    label = f" ({op.type}-{op.since} {refused.label})" if op and refused.label else ""
    notes = (*notes, *_revision_notes(op))
    attribute = {"IR502": "offset", "IR503": "size", "IR508": "size", "IR504": "offset"}.get(refused.code)
    data = model.source.children(layer.node, "data") if attribute else []
    node = data[0] if data else layer.node
    return diagnostic(
        refused.code, f'{layer.type} "{layer.name}": {refused.message}{label}', source=model.source, node=node,
        attribute=attribute, layer=layer.name, help=refused.help, label=refused.label, notes=(*refused.notes, *notes),
    )  # fmt: skip


def _revision_notes(op: Op | None) -> tuple[str, ...]:
    """Return a note that names the revisions that a refused layer fits, or all revisions if it fits none of several."""
    if op is None or len(op.revisions) < 2:
        return ()
    names = ", ".join(map(str, op.fitting or op.revisions[::-1]))
    if op.fitting:
        return (f"the number of inputs and the attributes fit the revisions {names} of {op.type}",)
    return (f"the number of inputs and the attributes fit none of the revisions {names} of {op.type}",)


def to_blame(op: Op | None) -> str:
    """Return the help of IR603: which code has a bug if a shape rule or kernel fails, irrun or a custom operation."""
    if op is not None and is_custom(type(op)):
        return f"this is a bug in {type(op).__module__}.{type(op).__qualname__}, which declares the operation"
    return "this is a bug in irrun; please report it"


def wrong_output_count(layer: Layer, op: Op | None, count: int) -> str:
    """Return the message of IR206 for a layer whose operation has ``count`` outputs."""
    operation = f"{op.type}-{op.since}" if op else "the operation"
    return f'{layer.type} "{layer.name}" declares {counted(len(layer.outputs), "output")}; {operation} produces {count}'


def weights_missing(model: Model) -> Diagnostic:
    """Return the diagnostic (IR501) for a model with constants but without a ``.bin``."""
    path = model.source.path
    weights = Path(path).with_suffix(".bin")
    if path == STDIN:
        lacking, help = "no .bin is named", "name it with -w"
    elif _is_file(weights):  # the reader has refused it
        lacking, help = f"{weights} is a Git LFS pointer", "get the file itself: git lfs pull"
        if not weights.read_bytes().startswith(b"version "):
            lacking, help = f"{weights} is a web page", "download the .bin itself, not the page about it"
    else:
        lacking, help = f"{weights} is missing", "put it beside the .xml under the same name, or name it with -w"
    count = "one constant has its" if model.constants == 1 else f"{model.constants} constants have their"
    return diagnostic("IR501", f"{lacking}; {count} values in it", file=path, source=model.source, help=help)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def declared(layer: Layer) -> tuple[Value, ...]:
    """Return the outputs of a layer as the file declares them: without contents, and unknown where not declared."""
    return tuple(Value(p.type or ELEMENT_TYPES["dynamic"], p.shape or UNKNOWN_RANK) for p in layer.outputs)


def needed(op: Op, model: Model, layer: Layer) -> dict[str, Any]:
    """Return the keyword arguments that ``Op.infer`` takes in addition to the inputs, one for each of ``Op.needs``.

    ``weights`` are those of the model. ``stored`` are the bytes of each input that a Const feeds. ``bodies`` (by the
    name of their element), ``maps`` and ``back_edges`` are those of the layer. ``stream`` and ``variables`` are None
    because there is no state before a run.
    """
    return {name: _OFFERS[name](model, layer) for name in op.needs}


def _stored(model: Model, layer: Layer) -> list[np.ndarray | None]:
    """Return, for each input of a layer, the bytes of the Const that feeds it, as uint8 [n]; None for other inputs."""
    stored: list[np.ndarray | None] = []
    for feed in model.feeds.get(layer.id, ()):  # a layer that is being built belongs to no model yet
        source = None if feed is None else model.layers[feed[0]]
        array = None
        if source is not None and source.type.lower() in ("const", "constant") and model.weights is not None:
            with suppress(Refused, KeyError, ValueError):  # the Const itself reports them
                array = model.weights.bytes_at(int(source.attributes["offset"]), int(source.attributes["size"]))
        stored.append(array)
    return stored


_OFFERS: dict[str, Callable[[Model, Layer], Any]] = {
    "weights": lambda model, layer: model.weights,
    "stored": _stored,
    "bodies": lambda model, layer: _Bodies((tag, InferredBody(body)) for tag, body in layer.bodies.items()),
    "maps": lambda model, layer: layer.maps,
    "back_edges": lambda model, layer: layer.back_edges,
    "stream": lambda model, layer: None,
    "variables": lambda model, layer: None,
}


class Bodies(dict[Model, "InferredBody"]):
    """The bodies of a file that were inferred, so that none is inferred twice for the same inputs.

    ``certain`` shape rules, also those outside the bodies, assume nothing: see ``Site``.
    """

    def __init__(self, *, certain: bool = False) -> None:
        super().__init__()
        self.certain = certain


def _body(model: Model, bodies: Bodies) -> InferredBody:
    """Return the body among ``bodies``, to which it is added if it is missing."""
    if model not in bodies:
        bodies[model] = InferredBody(model, bodies)
    return bodies[model]


class _Bodies(dict[str, "InferredBody"]):
    """The bodies of a layer by the name of their element. A lookup of a missing one raises Refused (IR007)."""

    def __missing__(self, tag: str) -> InferredBody:
        raise Refused(f"has no <{tag}>", code="IR007")


class InferredBody:
    """A body of If, Loop or TensorIterator during inference: ``opdef.Body`` on Values.

    A call takes the values of the Parameters and returns those of the Results, both by layer id. It raises Refused if
    a layer of the body breaks a rule.

    Loops infer their body several times, so a body that is nested d deep would be inferred 2^d times. A body that
    belongs to ``bodies`` therefore keeps the results of each call for further calls with the same inputs, and has
    unknown results for any but the first ``_MOST_CALLS`` inputs.
    """

    def __init__(self, model: Model, bodies: Bodies | None = None) -> None:
        self.model = model
        self.bodies = bodies
        self._known: dict[Hashable, tuple[_Call, dict[int, Value]]] = {}

    @cached_property
    def ops(self) -> Mapping[int, Op | None]:
        return {layer.id: op for layer, op, _ in bind_all(self.model)}

    def declared(self, id: int) -> Value:
        """Return the declared value of a Parameter or Result of the body."""
        return declared_inside(self.model, id)

    def __call__(self, inputs: Mapping[int, Value]) -> dict[int, Value]:
        if self.bodies is None:
            return self._results(inputs)
        call = _Call(inputs)
        known = self._known.get(call.key)
        if known is None:
            known = self._known[call.key] = call, self._results(inputs)
            return dict(known[1])
        earlier, results = known
        return call.renamed(earlier, results)

    def _results(self, inputs: Mapping[int, Value]) -> dict[int, Value]:
        if len(self._known) >= _MOST_CALLS:
            return {result.id: Value(ELEMENT_TYPES["dynamic"], UNKNOWN_RANK) for result in self.model.results}
        values: Values = {}
        propagate(self.model, self.ops, self.settle, values, inputs, self.bodies)
        results: dict[int, Value] = {}
        for result in self.model.results:
            feed = self.model.feeds[result.id][0]
            results[result.id] = values[feed] if feed is not None else declared(result)[0]
        return results

    def settle(self, layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        """Return the inferred outputs of a layer of the body; raise if it has none, so that the whole body fails."""
        if isinstance(inferred, Refused):
            message = f'in its body, {layer.type} "{layer.name}": {inferred.message}'
            inside = (self.model.order.index(layer.id), *inferred.inside)
            raise Refused(message, inferred.label, inferred.help, inferred.code, notes=inferred.notes, inside=inside)
        if isinstance(inferred, Exception):
            raise inferred
        return inferred


_MOST_CALLS: Final = 64
"""The most different inputs for which a body is inferred. Each level of nested loops takes a few."""


class _Call:
    """The inputs of a body in one call.

    ``key`` is equal for inputs of the same types, dims and contents. A dim that is unknown and has no term is the same
    only as itself, so the key holds its position in ``dims``.
    """

    def __init__(self, inputs: Mapping[int, Value]) -> None:
        self.dims: dict[int, Dim] = {}
        """The unknown dims without a term, by ``id()``."""
        self._numbers: dict[int, int] = {}
        self.key = tuple([(parameter, *self._described(inputs[parameter])) for parameter in sorted(inputs)])
        self._kept = dict(inputs)  # so that the ids in the key stay those of the same objects

    def _described(self, value: Value) -> tuple[Hashable, ...]:
        data, dims = value.data, value.shape.dims
        contents: Hashable = None
        if data is not None and data.dtype == object:
            contents = data.shape, tuple([self._number(as_dim(dim)) for dim in data.flat])
        elif data is not None:
            contents = (data.shape, data.dtype.str, data.tobytes()) if data.size <= CONTENTS_LIMIT else id(data)
        return value.type, None if dims is None else tuple([self._number(dim) for dim in dims]), contents

    def _number(self, dim: Dim) -> Hashable:
        if dim.lo == dim.hi or dim.term is not None:
            return dim.lo, dim.hi, dim.term
        self.dims.setdefault(id(dim), dim)
        return dim.lo, dim.hi, self._numbers.setdefault(id(dim), len(self._numbers))

    def renamed(self, earlier: _Call, results: Mapping[int, Value]) -> dict[int, Value]:
        """Return the results of an ``earlier`` call of the same key, with the unknown dims of this call."""
        dims = dict(zip(earlier.dims, self.dims.values()))

        def own(dim: Dim) -> Dim:
            if dim.lo == dim.hi or dim.term is not None:
                return dim
            return dims.setdefault(id(dim), Dim(dim.lo, dim.hi))

        renamed: dict[int, Value] = {}
        for result, value in results.items():
            shape, data = value.shape, value.data
            if shape.dims is not None:
                shape = PartialShape(tuple(own(dim) for dim in shape.dims))
            if data is not None and data.dtype == object:
                data = array_of([own(as_dim(dim)) for dim in data.flat], data.shape, value.type)
            renamed[result] = Value(value.type, shape, data)
        return renamed


def declared_inside(model: Model, id: int) -> Value:
    """Return the type and shape that a Parameter or Result declares.

    A Parameter takes them from its attributes, and from its port where these leave them out. A Result without an output
    port takes them from the port that feeds it, or else from its input port.
    """
    layer = model.layers[id]
    fed = model.fed_by(layer, 0) if layer.inputs else None
    port = layer.outputs[0] if layer.outputs else fed[1] if fed else layer.inputs[0]
    element_type, shape = port.type, port.shape
    if layer.outputs:  # only the attribute `shape` of a Parameter distinguishes a scalar from an unknown rank
        own = PartialShape.parse(layer.attributes["shape"]) if "shape" in layer.attributes else None
        shape = shape if own is None else own
        element_type = ElementType.parse(layer.attributes.get("element_type", "")) or element_type
    return Value(element_type or ELEMENT_TYPES["dynamic"], UNKNOWN_RANK if shape is None else shape)


def propagate(
    model: Model,
    ops: Mapping[int, Op | None],
    settle: Settle,
    values: Values,
    given: Mapping[int, Value],
    bodies: Bodies | None = None,
) -> None:
    """Infer every layer in topological order and put its outputs into ``values``.

    ``given`` holds the values of Parameters, by layer id. They replace the inferred ones. ``settle`` gets the inferred
    outputs of each layer, or an exception, and returns the outputs to use. The exception is a Refused if the layer
    breaks a rule. Any other exception is a bug in the shape rule. For a layer whose operation is None, ``settle`` gets
    the declared outputs. ``bodies`` are the bodies of the same file that were inferred before; new ones are added.

    Outputs with equal type and shape share one Value object. A layer with the same Op instance and the same input
    Values as an earlier layer takes the outputs of that layer if the operation is pure.
    """
    bodies = Bodies() if bodies is None else bodies
    shared: dict[tuple[object, ...], Value] = {}
    known: dict[tuple[object, ...], tuple[Value, ...]] = {}
    for id in model.order:
        layer, op = model.layers[id], ops[id]
        inferred: tuple[Value, ...] | Exception | None
        if op is None:
            inferred = declared(layer)
        else:
            inputs = [None if feed is None else values.get(feed) for feed in model.feeds[id]]
            key = (op, *[port.type for port in layer.outputs], *inputs)
            inferred = known.get(key)
            if inferred is None:
                inferred = _inferred(model, layer, op, inputs, bodies)
                if isinstance(inferred, tuple):
                    inferred = tuple([shared.setdefault(_known(value), value) for value in inferred])
                    if inputs and op.pure and not op.needs:
                        known[key] = inferred
        outputs = settle(layer, inferred)
        if id in given:
            outputs = [given[id]]
        for position, value in enumerate(outputs):
            values[id, position] = value


def _inferred(
    model: Model, layer: Layer, op: Op, inputs: Sequence[Value | None], bodies: Bodies
) -> tuple[Value, ...] | Exception:
    """Return the inferred outputs of a layer, or the exception that its shape rule raised."""
    try:
        more = needed(op, model, layer)
        if "bodies" in more:
            more["bodies"] = _Bodies({tag: _body(body, bodies) for tag, body in layer.bodies.items()})
        at = replace(site(layer, model.unique_names[layer.id]), certain=bodies.certain)
        outputs = infer(op, at, inputs, more)
    except Exception as error:  # if not Refused, a bug in the rule, which must not hide faults elsewhere
        return error
    return outputs[: len(layer.outputs)] or outputs  # a file may leave out the last outputs if they have no consumer


def _known(value: Value) -> tuple[object, ...]:
    """Return a key that is equal for interchangeable values: equal type, dims and terms.

    A value with contents, or with an unknown dim that has no term, is interchangeable with no other value.
    """
    dims = value.shape.dims
    if value.data is not None or (dims and any(dim.lo != dim.hi and dim.term is None for dim in dims)):
        return (value,)
    return value.type, dims and tuple([(dim.lo, dim.hi, dim.term) for dim in dims])

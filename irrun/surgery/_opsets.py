"""Write a model in other operation sets: those that an older OpenVINO reads, or the newest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from irrun.api import PathLike, as_model
from irrun.diagnostics import ModelError, Refused
from irrun.inference.bind import LATEST_OPSET, bind, bind_all, opset_of
from irrun.inference.layer import infer
from irrun.inference.propagate import needed, site
from irrun.inference.settled import settled
from irrun.inference.trace import Trace
from irrun.model import Edge, Layer, Model, is_constant
from irrun.model.weights import Weights
from irrun.opdef import Op, is_custom, resolve
from irrun.surgery._decompositions import decomposed
from irrun.surgery._models import rebuilt, refused
from irrun.surgery._splicing import spliced
from irrun.surgery._unused import drop_unused
from irrun.types import PartialShape

__all__ = ["downgrade", "upgrade"]


Lacks = Callable[[str, int], bool]
"""Returns whether a reader of IR lacks the operation of a type in an operation set."""


def downgrade(model: Model | PathLike, opset: int, lacks: Lacks | None = None) -> Model:
    """Return the model with no operation set newer than ``opset`` and no operation that a reader ``lacks``.

    A layer gets the newest version of its operation that ``opset`` has. Attributes that this version lacks are left out
    if they have their defaults. A layer that this version cannot say becomes several layers of older operations, where
    irrun knows such a decomposition: its values may be rounded otherwise. Layers of custom operations stay. Raises
    ModelError (IR608) for a layer that the older operation sets cannot say: the operation or an attribute came later,
    the inputs mean something else, or the outputs would have other types or shapes.
    """
    model = as_model(model)
    sets = _Sets(opset, lacks or (lambda _, __: False))
    blob = bytearray() if model.weights is None else bytearray(model.weights.data)
    size = len(blob)
    layers, edges = _downgraded(model, Trace(model), sets, blob)
    older = rebuilt(model, layers, edges, model.weights if len(blob) == size else Weights(data=bytes(blob)))
    if len(older.layers) != len(model.layers) or len(blob) != size:
        older = drop_unused(older)
    before, after = settled(model), settled(older)
    for (id, position), value in before.items():
        now = after.get((id, position))
        if id in older.layers and (now is None or now.type is not value.type or not _is_alike(now.shape, value.shape)):
            layer = model.layers[id]
            if len(older.layers[id].outputs) < len(layer.outputs):
                continue  # several layers compute the outputs
            version = older.layers[id].version
            message = f'{layer.type} "{layer.name}" gives {value.type} {value.shape} in {layer.version}, but '
            message += f"{now.type} {now.shape} in {version}" if now else f"nothing in {version}"
            raise refused(model, message, f"replace the layer, or choose an opset later than {opset}", layer)
    return older


def _is_alike(one: PartialShape, other: PartialShape) -> bool:
    """Return whether two shapes have one rank and the same known dims."""
    if one.dims is None or other.dims is None:
        return one.dims is other.dims
    return [dim.value for dim in one.dims] == [dim.value for dim in other.dims]


def upgrade(model: Model | PathLike) -> Model:
    """Return the model in which each layer has the newest version of its operation that says the same, bodies included.

    A layer keeps its version if a newer one has other inputs, outputs or attributes that it does not write.
    """
    model = as_model(model)
    return rebuilt(model, _upgraded(model, Trace(model)))


@dataclass(frozen=True, slots=True)
class _Sets:
    """The operation sets that may be written: up to ``newest``, without the operations that ``lacks`` names."""

    newest: int
    lacks: Lacks

    def has(self, type: str, opset: int) -> bool:
        return opset <= self.newest and not self.lacks(type, opset)


def _downgraded(model: Model, trace: Trace, sets: _Sets, blob: bytearray) -> tuple[dict[int, Layer], Sequence[Edge]]:
    """Return the layers and edges of a model or body in the versions of ``sets``. Append constants to ``blob``."""
    layers: dict[int, Layer] = {}
    parts: dict[int, Model] = {}
    for id, layer in model.layers.items():
        bodies = {}
        for tag, body in layer.bodies.items():
            inside, edges = _downgraded(body, trace.bodies(id)[tag], sets, blob)
            bodies[tag] = replace(body, layers=inside, edges=tuple(edges))
        try:
            older = _older(model, layer, sets)
            _require_from_front(model, trace, layer, older)
            layers[id] = replace(_inferred(model, trace, older), bodies=bodies)
        except ModelError as error:
            part = _decomposed(model, trace, layer, sets)
            if part is None:
                raise error from None
            layers[id], parts[id] = layer, part
    return spliced(replace(model, layers=layers), parts, blob) if parts else (layers, model.edges)


_FROM_END: Final = ("Gather-8", "ScatterElementsUpdate-12")
"""Versions whose second input may count from the end of the axis, with negative indices; older ones have none."""


def _require_from_front(model: Model, trace: Trace, layer: Layer, older: Layer) -> None:
    """Raise ModelError (IR608) if a layer may have negative indices, which the older version lacks."""
    op = trace.ops[layer.id]
    if op is None or older.version == layer.version or f"{op.type}-{op.since}" not in _FROM_END:
        return
    feed = model.feeds[layer.id][1]
    value = None if feed is None else trace.values.get(feed)
    known = None if value is None else value.ints()
    if value is None or value.type.kind == "uint" or (known is not None and min(known, default=0) >= 0):
        return
    message = f'{op.type}-{op.since} "{layer.name}" may have negative indices, which {older.version} has not'
    raise refused(model, message, f"replace the layer, or choose opset {op.since} or later", layer)


def _decomposed(model: Model, trace: Trace, layer: Layer, sets: _Sets) -> Model | None:
    """Return what computes the same as a layer in older operations, or None if irrun knows no such decomposition."""
    op = trace.ops[layer.id]
    inputs = [None if feed is None else trace.values.get(feed) for feed in model.feeds[layer.id]]
    taken = {feed for feeds in model.feeds.values() for feed in feeds}
    read = max([at + 1 for at in range(len(layer.outputs)) if (layer.id, at) in taken], default=1)
    part = None if op is None else decomposed(layer, op, inputs, read)
    if part is None:
        return None
    results = [part.feeds[result.id][0] for result in part.results]
    values = Trace(part).values
    types = [values[feed].type for feed in results if feed is not None]
    if types != [trace.values[layer.id, at].type for at in range(read)]:
        return None
    written = {inside.id: inside if own is None else _explicit(inside, type(own)) for inside, own, _ in bind_all(part)}
    try:
        return downgrade(rebuilt(part, written), sets.newest, sets.lacks)
    except ModelError:
        return None


def _inferred(model: Model, trace: Trace, layer: Layer) -> Layer:
    """Return a layer of another version. Raises ModelError (IR608) if this version refuses the inputs."""
    op, _ = bind(model, layer)
    inputs = [None if feed is None else trace.values.get(feed) for feed in model.feeds[layer.id]]
    if op is not None and layer.version != model.layers[layer.id].version:
        try:
            infer(op, site(layer), inputs, needed(op, model, layer))
        except Refused as error:
            message = f'{op.type}-{op.since} cannot say {layer.type} "{layer.name}": {error.message}'
            raise refused(model, message, "replace the layer, or choose a later opset", layer) from None
    return layer


def _older(model: Model, layer: Layer, sets: _Sets) -> Layer:
    """Return a layer in the newest version of ``sets``. Raises ModelError (IR608) if that cannot say the same."""
    op, problems = bind(model, layer)
    if op is None:
        message = f'{layer.type} "{layer.name}" cannot be read: {problems[0].message}'
        raise refused(model, message, "correct the layer first; `irrun check` shows the finding", layer)
    number = None if is_custom(type(op)) else opset_of(layer.version)
    if number is None or sets.has(op.type, number):
        return layer
    opset = next((n for n in range(min(sets.newest, number), 0, -1) if not sets.lacks(op.type, n)), 0)
    cls = resolve(op.type, opset)
    help = f"replace the layer, or choose opset {op.since} or later"
    if cls is None or not sets.has(op.type, cls.since):
        lacking = "the target" if number <= sets.newest else f"opset{sets.newest}"
        message = f'{layer.type} "{layer.name}" needs opset{op.since}; {lacking} has none'
        raise refused(model, message, help, layer)
    if cls is type(op):
        return replace(layer, version=f"opset{cls.since}")
    later = f"{op.type}-{op.since}"
    own, former = ([port.name for port in of.inputs][: len(layer.inputs)] for of in (type(op), cls))
    if own != former:
        message = f'{later} "{layer.name}" has the inputs {", ".join(own)}; {cls.type}-{cls.since} has '
        raise refused(model, message + (", ".join(former) or "none"), help, layer)
    attributes = _attributes(layer, op, cls)
    if isinstance(attributes, str):
        message = f'{later} "{layer.name}" has {attributes}, which {cls.type}-{cls.since} cannot say'
        raise refused(model, message, help, layer)
    if cls.outputs != type(op).outputs:
        message = f'{later} "{layer.name}" has {type(op).outputs} outputs; {cls.type}-{cls.since} has {cls.outputs}'
        raise refused(model, message, help, layer)
    older = _explicit(replace(layer, version=f"opset{cls.since}", attributes=attributes), cls, op)
    _, problems = bind(model, older)
    if errors := [problem for problem in problems if problem.severity == "error"]:
        message = f"{cls.type}-{cls.since} cannot say this: {errors[0].message}"
        raise refused(model, message, help, layer)
    return older


def _attributes(layer: Layer, op: Op, cls: type[Op]) -> Mapping[str, str] | str:
    """Return the attributes of a layer for an older version, or the attribute that this version lacks."""
    if is_constant(layer):
        return layer.attributes
    spellings = {s: field for field, a in type(op).attributes.items() for s in (a.name, *a.aliases)}
    former = {s for a in cls.attributes.values() for s in (a.name, *a.aliases)}
    kept: dict[str, str] = {}
    for name, text in layer.attributes.items():
        field = spellings.get(name)
        if name in former or field is None:
            kept[name] = text
        elif getattr(op, field) != type(op).attributes[field].default:
            return f'{name}="{text}"'
    return kept


def _upgraded(model: Model, trace: Trace) -> dict[int, Layer]:
    """Return the layers of a model or body in the newest versions that say the same."""
    layers: dict[int, Layer] = {}
    for id, layer in model.layers.items():
        bodies = {
            tag: replace(body, layers=_upgraded(body, trace.bodies(id)[tag])) for tag, body in layer.bodies.items()
        }
        layers[id] = replace(_newer(model, trace, layer), bodies=bodies)
    return layers


_REVISED: Final = ("nonmaxsuppression",)
"""Operations, in lower case, whose outputs mean something else in another version with the same inputs."""


def _newer(model: Model, trace: Trace, layer: Layer) -> Layer:
    """Return a layer in the newest version that says the same."""
    op, _ = bind(model, layer)
    if op is None or is_custom(type(op)) or opset_of(layer.version) is None or layer.type.lower() in _REVISED:
        return layer
    for opset in range(LATEST_OPSET, op.since, -1):
        cls = resolve(op.type, opset)
        newer = replace(layer, version=f"opset{opset}")
        if cls is None or cls.since != opset or not _says(cls, op, len(layer.inputs)):
            continue
        bound, problems = bind(model, newer)
        if bound is None or problems:
            continue
        with suppress(ModelError):
            return _explicit(_inferred(model, trace, newer), cls)
    return layer


def _explicit(layer: Layer, cls: type[Op], op: Op | None = None) -> Layer:
    """Return a layer that also writes the attributes with defaults: OpenVINO requires some, or has other defaults.

    ``op`` is the operation in another version, whose values are written.
    """
    attributes = dict(layer.attributes)
    for field, attribute in cls.attributes.items():
        text = "" if attribute.required else _text(getattr(op, field, attribute.default))
        if text and not attributes.keys() & {attribute.name, *attribute.aliases}:
            attributes[attribute.name] = text
    return replace(layer, attributes=attributes)


def _text(value: object) -> str:
    """Return the default of an attribute as an IR writes it; an empty text for None and for no numbers."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _says(cls: type[Op], op: Op, inputs: int) -> bool:
    """Return whether a version of an operation has the inputs, the attributes and the defaults of another version."""
    own, newer = ([port.name for port in of.inputs][:inputs] for of in (type(op), cls))
    if own != newer or cls.outputs != type(op).outputs:
        return False
    return all(
        name in cls.attributes and cls.attributes[name].default == attribute.default
        for name, attribute in type(op).attributes.items()
    )

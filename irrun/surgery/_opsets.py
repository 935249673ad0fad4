"""Write a model in the operation sets that an older OpenVINO reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irrun.api import PathLike, as_model
from irrun.inference.bind import bind, opset_of
from irrun.inference.settled import settled
from irrun.model import Layer, Model, is_constant
from irrun.opdef import Op, is_custom, resolve
from irrun.surgery._models import rebuilt, refused

__all__ = ["downgrade"]


def downgrade(model: Model | PathLike, opset: int) -> Model:
    """Return the model with no operation set newer than ``opset``, also inside bodies.

    A layer gets the newest version of its operation that ``opset`` has. Attributes that this version lacks are left out
    if they have their defaults. Layers of custom operations stay. Raises ModelError (IR608) for a layer that the older
    operation sets cannot say: the operation or an attribute came later, the inputs mean something else, or the outputs
    would have other types or shapes.
    """
    model = as_model(model)
    older = rebuilt(model, _layers(model, opset))
    before, after = settled(model), settled(older)
    for (id, position), value in before.items():
        now = after.get((id, position))
        if now is None or now.type is not value.type or str(now.shape) != str(value.shape):
            layer = model.layers[id]
            version = older.layers[id].version
            message = f'{layer.type} "{layer.name}" gives {value.type} {value.shape} in {layer.version}, but '
            message += f"{now.type} {now.shape} in {version}" if now else f"nothing in {version}"
            raise refused(model, message, f"replace the layer, or choose an opset later than {opset}", layer)
    return older


def _layers(model: Model, opset: int) -> dict[int, Layer]:
    """Return the layers of a model or body in the versions of ``opset``."""
    layers: dict[int, Layer] = {}
    for id, layer in model.layers.items():
        bodies = {tag: replace(body, layers=_layers(body, opset)) for tag, body in layer.bodies.items()}
        layers[id] = replace(_older(model, layer, opset), bodies=bodies)
    return layers


def _older(model: Model, layer: Layer, opset: int) -> Layer:
    """Return a layer in the version that ``opset`` has. Raises ModelError (IR608) if that cannot say the same."""
    op, problems = bind(model, layer)
    if op is None:
        message = f'{layer.type} "{layer.name}" cannot be read: {problems[0].message}'
        raise refused(model, message, "correct the layer first; `irrun check` shows the finding", layer)
    number = None if is_custom(type(op)) else opset_of(layer.version)
    if number is None or number <= opset:
        return layer
    cls = resolve(op.type, opset)
    help = f"replace the layer, or choose opset {op.since} or later"
    if cls is None:
        raise refused(model, f'{layer.type} "{layer.name}" needs opset{op.since}; opset{opset} has none', help, layer)
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
    older = replace(layer, version=f"opset{cls.since}", attributes=attributes)
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

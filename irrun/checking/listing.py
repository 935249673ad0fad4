"""List the layers of a model: attributes, shapes, consumers, arithmetic, bytes, and how weights are stored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from irrun.inference.compressed import Compressed, compressed_weights
from irrun.inference.trace import Trace
from irrun.model import Layer, Model, is_constant
from irrun.opdef import Value
from irrun.types import Dim, ElementType, PartialShape

__all__ = ["Entry", "Storage", "chosen", "entries", "storage", "totals"]

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a layer: its inferred type and shape."""

    type: ElementType
    shape: PartialShape

    def __str__(self) -> str:
        return f"{self.type}{_text(self.shape)}"

    @property
    def bytes(self) -> Dim | None:
        """The bytes of the tensor; None for strings and unknown types."""
        return _bytes(self.type, self.shape)

    def record(self) -> dict[str, Any]:
        return {"type": str(self.type), "shape": self.shape.listed}


@dataclass(frozen=True, slots=True)
class Entry:
    """A layer. ``name`` begins with the names of the layers in whose bodies it is: ``loop/total``.

    ``weights`` are the bytes of the constants that the layer reads, as the file stores them. ``flops`` counts as
    ``Op.flops``; it is None if irrun does not know the operation, or the layer has bodies, whose layers have entries of
    their own. ``bytes`` are those of all inputs and outputs, 0 for Parameters and Results, and None if a size is
    unknown. The figures of layers in a body are those of one iteration.
    """

    name: str
    type: str
    version: str | None
    attributes: Mapping[str, str]
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    consumers: tuple[str, ...]
    weights: int
    flops: Dim | None
    bytes: Dim | None
    line: int
    is_constant: bool
    """Whether the layer is a Const, or computed from constants alone, so that no run computes it again."""

    def record(self) -> dict[str, Any]:
        """Return the entry as a dict for JSON. Numbers that depend on unknown dims are None."""
        return {
            "name": self.name, "type": self.type, "version": self.version, "attributes": dict(self.attributes),
            "inputs": [None if tensor is None else tensor.record() for tensor in self.inputs],
            "outputs": [tensor.record() for tensor in self.outputs], "consumers": list(self.consumers),
            "weight_bytes": self.weights, "flops": _number(self.flops), "bytes": _number(self.bytes),
            "constant": self.is_constant, "line": self.line,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """How a part of the weights is stored, such as ``u4, groups of 128``. ``bytes`` counts shared bytes once."""

    form: str
    constants: int
    parameters: int
    bytes: int

    def record(self) -> dict[str, Any]:
        return {
            "stored_as": self.form, "constants": self.constants, "parameters": self.parameters, "bytes": self.bytes
        }  # fmt: skip


def entries(model: Model) -> list[Entry]:
    """Return an entry for each layer of a model and its bodies, in the order of the file, with inferred shapes."""
    return list(_entries(Trace(model), ""))


def _entries(trace: Trace, path: str) -> Iterator[Entry]:
    """Yield the entries of a model, or of a body. ``path`` is the prefix of their names."""
    model = trace.model
    fixed = _fixed(trace)
    weights = _weights(model, fixed)
    ends = {layer.id for layer in (*model.parameters, *model.results)}
    for id, layer in model.layers.items():
        inputs = [None if feed is None else trace.values.get(feed) for feed in model.feeds[id]]
        outputs = [trace.values.get((id, position)) for position in range(len(layer.outputs))]
        op = trace.ops.get(id)
        flops = None
        if op is not None and not layer.bodies and id not in trace.refused and None not in outputs:
            flops = op.flops(inputs, [value for value in outputs if value is not None]) if outputs else Dim(0)
        name = path + model.unique_names[id]
        sizes = [_bytes(v.type, v.shape) for v in (*inputs, *outputs) if v is not None]
        moved = None if None in sizes else sum((size for size in sizes if size is not None), start=Dim(0))
        if id in ends:
            moved = Dim(0)  # the caller's arrays: the layers that read and write them count them
        yield Entry(
            name, layer.type, layer.version,
            {key: text for key, text in layer.attributes.items() if not is_constant(layer) or key != "offset"},
            tuple(map(_tensor, inputs)), tuple(t for t in map(_tensor, outputs) if t is not None),
            tuple(path + model.unique_names[consumer] for consumer in model.consumers.get(id, ())),
            weights.get(id, 0), flops, moved, model.source.line_of(layer.node), id in fixed,
        )  # fmt: skip
        for body in trace.bodies(id).values():
            yield from _entries(body, f"{name}/")


def chosen(
    listed: Iterable[Entry], names: Sequence[str] = (), types: Sequence[str] = (), shape: PartialShape | None = None
) -> list[Entry]:
    """Return the entries whose name matches one of ``names``, whose type one of ``types``, and that have ``shape``.

    ``shape`` is that of an input or output; its unknown dims and intervals stand for each dim in them. Types match in
    upper and lower case. Constants, and what is computed from them alone, are left out unless ``names`` or ``types``
    select them.
    """

    def fits(entry: Entry) -> bool:
        if not (names or types or not entry.is_constant):
            return False
        if names and not any(entry.name == name or fnmatchcase(entry.name, name) for name in names):
            return False
        if types and not any(fnmatchcase(entry.type.lower(), type.lower()) for type in types):
            return False
        tensors = (*entry.inputs, *entry.outputs)
        return shape is None or any(tensor is not None and _covers(shape, tensor.shape) for tensor in tensors)

    return [entry for entry in listed if fits(entry)]


def totals(listed: Iterable[Entry]) -> dict[str, Any]:
    """Return the sums over all layers that a run computes, for JSON.

    ``flops`` and ``bytes`` are at least this many if ``exact`` is false: a shape or an operation is unknown, or a body
    runs more than once.
    """
    computed = [entry for entry in listed if not entry.is_constant]
    figures = {"flops": [entry.flops for entry in computed], "bytes": [entry.bytes for entry in computed]}
    exact = all(figure is not None and figure.is_static for column in figures.values() for figure in column)
    return {
        "layers": len(computed),
        **{name: sum(f.lo for f in column if f is not None) for name, column in figures.items()},
        "weight_bytes": sum(entry.weights for entry in computed),
        "exact": exact,
    }


# ---------------------------------------------------------------------------------------------
# the weights


def storage(model: Model) -> list[Storage]:
    """Return how the weights of a model and its bodies are stored, the most bytes first."""
    rows: dict[str, list[tuple[Layer, int]]] = {}
    for layer, form, count in _forms(model):
        rows.setdefault(form, []).append((layer, count))
    seen: set[tuple[str | None, str | None]] = set()
    found: list[Storage] = []
    for form, layers in rows.items():
        total = 0
        for layer, _ in layers:
            place, size = (layer.attributes.get("offset"), layer.attributes.get("size")), _size(layer)
            total += 0 if place in seen else size
            seen.add(place)
        found.append(Storage(form, len(layers), sum(count for _, count in layers), total))
    return sorted(found, key=lambda row: (-row.bytes, row.form))


_SCALES: Final = "scales and zero points"


def _forms(model: Model) -> Iterator[tuple[Layer, str, int]]:
    """Yield each Const of a model with the form in which it is stored and the number of its elements."""
    forms: dict[int, str] = {}
    for weights in compressed_weights(model):
        numbers = [id for id in (weights.zeros, weights.scales) if id is not None]
        if numbers or weights.quantized:
            forms |= {weights.codes: _form(model, weights), **dict.fromkeys(numbers, _SCALES)}
    for id, layer in model.layers.items():
        if is_constant(layer):
            type = ElementType.parse(layer.attributes.get("element_type", ""))
            yield layer, forms.get(id) or (str(type) if type else "unknown"), _count(layer)
    for layer in model.layers.values():
        for body in layer.bodies.values():
            yield from _forms(body)


def _form(model: Model, weights: Compressed) -> str:
    """Return the form of compressed weights."""
    codes = model.layers[weights.codes]
    type = ElementType.parse(codes.attributes.get("element_type", ""))
    if weights.quantized:
        return f"{type}, FakeQuantize"
    symmetry = "symmetric" if weights.zeros is None else "asymmetric"
    if weights.scales is None:
        return f"{type} {symmetry}, no scales"
    return f"{type} {symmetry}, {_groups(_shape(codes), _shape(model.layers[weights.scales]))}"


def _groups(codes: PartialShape | None, scales: PartialShape | None) -> str:
    """Return which weights share a scale, from the shape of the weights and that of the scales."""
    if codes is None or scales is None or codes.static is None or scales.static is None:
        return "scales of unknown shape"
    if math.prod(scales.static) == 1:
        return "one scale"
    if len(codes.static) != len(scales.static):
        return "scales of another rank"
    kept = [axis for axis, (n, of) in enumerate(zip(scales.static, codes.static)) if n == of and n > 1]
    size = math.prod(codes.static) // max(1, math.prod(scales.static))
    if len(kept) > 1 and len(codes.static) == 3:
        return f"groups of {size}"
    return "one scale per channel" if len(kept) == 1 else f"one scale per {size} weights"


def _weights(model: Model, fixed: set[int]) -> dict[int, int]:
    """Return the bytes of the constants behind each layer that is not constant itself, by layer id."""
    found: dict[int, int] = {}
    for id, feeds in model.feeds.items():
        if id in fixed:
            continue
        seen: set[int] = set()
        waiting = [feed[0] for feed in feeds if feed is not None and feed[0] in fixed]
        while waiting:
            producer = waiting.pop()
            if producer not in seen:
                seen.add(producer)
                waiting += [feed[0] for feed in model.feeds[producer] if feed is not None]
        found[id] = sum(_size(model.layers[producer]) for producer in seen if is_constant(model.layers[producer]))
    return found


def _fixed(trace: Trace) -> set[int]:
    """Return the ids of the constants and of the layers computed from constants alone."""
    fixed: set[int] = set()
    for id in trace.model.order:
        layer, op, feeds = trace.model.layers[id], trace.ops.get(id), trace.model.feeds[id]
        follows = bool(feeds) and op is not None and op.pure and bool(layer.outputs) and not layer.bodies
        if is_constant(layer) or (follows and all(feed is not None and feed[0] in fixed for feed in feeds)):
            fixed.add(id)
    return fixed


# ---------------------------------------------------------------------------------------------
# numbers


def _tensor(value: Value | None) -> Tensor | None:
    return None if value is None else Tensor(value.type, value.shape)


def _bytes(type: ElementType, shape: PartialShape) -> Dim | None:
    """Return the bytes of a tensor, rounded up to whole bytes; None for strings and unknown types."""
    if type.kind in ("dynamic", "string"):
        return None
    return (shape.count() * type.bits + 7) // 8


def _size(layer: Layer) -> int:
    text = layer.attributes.get("size", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _shape(layer: Layer) -> PartialShape | None:
    return PartialShape.parse(layer.attributes.get("shape", ""))


def _count(constant: Layer) -> int:
    """Return the number of elements of a Const; 0 if its shape cannot be read."""
    shape = _shape(constant)
    return 0 if shape is None else shape.least


def _covers(pattern: PartialShape, shape: PartialShape) -> bool:
    """Return whether each dim of a shape lies in that of the pattern."""
    if pattern.dims is None or shape.dims is None:
        return pattern.dims is None
    return len(pattern.dims) == len(shape.dims) and all(
        p.lo <= d.lo and d.hi <= p.hi for p, d in zip(pattern.dims, shape.dims)
    )


def _number(figure: Dim | None) -> int | None:
    return None if figure is None else figure.value


def _text(shape: PartialShape) -> str:
    text = str(shape)
    return text if text.startswith("[") else f"[{text}]"

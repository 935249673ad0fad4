"""List the layers of a model: attributes, shapes, consumers, arithmetic and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from irrun.checking.storage import stored_bytes
from irrun.inference.trace import Trace
from irrun.model import Model, is_constant
from irrun.opdef import Value
from irrun.types import Dim, ElementType, PartialShape

__all__ = ["Entry", "costs", "entries", "select", "totals"]

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
    node: int
    """The element of the layer in the file, which is another one for each layer of the model and its bodies."""

    def record(self) -> dict[str, Any]:
        """Return the entry as a dict for JSON. Numbers that depend on unknown dims are None."""
        return {
            "name": self.name, "type": self.type, "version": self.version, "attributes": dict(self.attributes),
            "inputs": [None if tensor is None else tensor.record() for tensor in self.inputs],
            "outputs": [tensor.record() for tensor in self.outputs], "consumers": list(self.consumers),
            "weight_bytes": self.weights, "flops": _number(self.flops), "bytes": _number(self.bytes),
            "constant": self.is_constant, "line": self.line,
        }  # fmt: skip


def entries(model: Model) -> list[Entry]:
    """Return an entry for each layer of a model and its bodies, in the order of the file, with inferred shapes."""
    return list(_entries(Trace(model), ""))


def _entries(trace: Trace, path: str) -> Iterator[Entry]:
    """Yield the entries of a model, or of a body. ``path`` is the prefix of their names."""
    model = trace.model
    fixed = _constant_layers(trace)
    weights = _weight_bytes(model, fixed)
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
            weights.get(id, 0), flops, moved, model.source.line_of(layer.node), id in fixed, layer.node,
        )  # fmt: skip
        for body in trace.bodies(id).values():
            yield from _entries(body, f"{name}/")


def costs(model: Model) -> dict[int, float]:
    """Return the FLOPs plus the bytes read and written of each layer, by its element in the file.

    The sum divides the time of a step among its layers: a processor moves about as many bytes within its caches as it
    adds and multiplies numbers. Layers without known figures are left out.
    """
    figures = ((entry.node, _number(entry.flops), _number(entry.bytes)) for entry in entries(model))
    return {node: float(flops + moved) for node, flops, moved in figures if flops is not None and moved is not None}


def select(
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


def _weight_bytes(model: Model, fixed: set[int]) -> dict[int, int]:
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
        found[id] = sum(
            stored_bytes(model.layers[producer]) for producer in seen if is_constant(model.layers[producer])
        )
    return found


def _constant_layers(trace: Trace) -> set[int]:
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

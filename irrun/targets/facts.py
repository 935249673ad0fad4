"""What a release may refuse in a layer, as sentences: ``input 0 is f16``, ``input 1 has rank 3``, ``axis=-1``."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import Final

import numpy as np

from irrun.diagnostics import Diagnostic, Refused, Report
from irrun.inference.bind import declaration
from irrun.inference.propagate import Values, declared
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed
from irrun.model import Layer, Model
from irrun.opdef import Op, Value
from irrun.targets import graph, weights
from irrun.targets.kernels import SPATIAL
from irrun.targets.reading import as_compiled, as_read, of_attributes
from irrun.targets.relations import of_operation
from irrun.types import UNKNOWN_RANK, Dim, ElementType, PartialShape

__all__ = ["Facts", "facts"]

_MAX_PORTS: Final = 12
"""The most inputs and outputs of a layer that have facts of their own. Concat and Loop may have thousands."""
_MAX_PAIRED: Final = 4  # the most inputs of a layer that are compared with each other
_COMMON: Final = {"bf16", *(f"{kind}{bits}" for kind in "fiu" for bits in (8, 16, 32, 64))}
"""The element types that readers take in most layers, whatever the page of the operation says."""
_RARE: Final = ("f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "nf4", "u2")  # plugins since 2025 move them at least
_OUTSIDE: Final = "bf16"  # the element type that some releases compute with in bodies alone
_USUAL_RANK: Final = 5  # the most dims that most kernels of a plugin have a case for
_MOST_RANK: Final = 32  # the most dims that OpenVINO stores
_SELECTING: Final = re.compile("NonMaxSuppression|Nms|ExtractImagePatches", re.IGNORECASE)
"""Operations that select boxes, and one of which OpenVINO infers an output that is not empty where no patch fits."""
_SHAPED: Final = ("ShapeOf", "Squeeze", "Unsqueeze")  # layers that OpenVINO replaces by a shape, or by a Reshape to it
_SLICING: Final = ("Slice", "StridedSlice")  # if a number is an input, OpenVINO does not infer that nothing is left
_COUNTED: Final = ("PriorBox", "PriorBoxClustered", "NonZero")
"""The contents of input 0 say how much these operations return. OpenVINO does not infer that it is nothing."""
_INFERRED: Final = ("IR301", "IR302", "IR403")  # errors that inference finds again, if the file still has them
_SHORT: Final = 512
"""Bytes of a file from which on every release recognises it. Readers up to 2024.4 look for the end of shorter ones."""


@dataclass(frozen=True)
class Facts:
    """What holds for one layer, as sentences. ``layer`` is None for the file as a whole.

    ``operations`` name its operation from the general to the particular: the classes that declare several operations,
    the type, and the version: ``Sliding``, ``Pooling``, ``AvgPool`` and ``AvgPool-14``.
    """

    model: Model
    layer: Layer | None
    operations: tuple[str, ...]
    sentences: frozenset[str]
    blocks: bool = False
    """Whether irrun reports an error there."""


def facts(parsed: Parsed, report: Report, trace: Trace) -> Iterator[Facts]:
    """Yield the facts of the file and those of each layer that OpenVINO reads, bodies included.

    ``examine`` gives ``report`` and ``trace``. OpenVINO infers each output, whatever its port declares. So where the
    file has errors, the values are inferred again without the ports, and a layer that then breaks a rule counts as one
    for which irrun reports an error. So does a layer that breaks a rule where the plugin infers the outputs.
    """
    model = parsed.model
    errors: dict[str | None, list[Diagnostic]] = {}
    for finding in report:
        if finding.severity == "error":
            errors.setdefault(finding.layer, []).append(finding)
    whole = {f"IR version {model.version}"} | _codes(errors.get(None, ()))
    if len(model.source.data) < _SHORT:
        whole.add(f"the file has fewer than {_SHORT} bytes")
    yield Facts(model, None, (), frozenset(whole), _blocks(errors.get(None, ())))
    ops, compiled = as_read(model, trace.ops), as_compiled(model, trace.ops, trace.values)
    read = Trace(model, ops) if trace.values and (errors or compiled or ops != trace.ops) else trace
    if compiled and trace.values:
        read.refused.update(_Compiled(read, {**ops, **compiled}).refused)
    yield from _of_layers(read, errors, "")


class _Compiled(Trace):
    """What the plugin infers. The reader has replaced ShapeOf, Squeeze and Unsqueeze by the shapes that it inferred."""

    def __init__(self, read: Trace, ops: Mapping[int, Op | None]) -> None:
        self.read = read
        super().__init__(read.model, ops)

    def _settle(self, layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        known = self.read.values.get((layer.id, 0)) if layer.type in _SHAPED else None
        if known is None or not known.shape.is_static or isinstance(inferred, Exception):
            return super()._settle(layer, inferred)
        if layer.type != "ShapeOf" and _size(inferred[0].shape) not in (None, _size(known.shape)):
            self.refused[layer.id] = ValueError("the shape that the reader inferred has another size")
        return [known]


def _of_layers(trace: Trace, errors: Mapping[str | None, Sequence[Diagnostic]], body: str) -> Iterator[Facts]:
    """Yield the facts of the layers of a model, or of a body in a layer of type ``body``."""
    model = trace.model
    fed = graph.fed_by_inputs(model, trace.values)
    compressed = weights.compressed(model, fed)
    selected = graph.behind(model, [id for id, layer in model.layers.items() if _SELECTING.search(layer.type)])
    selected -= {layer.id for layer in model.results}  # readers of 2022 refuse an empty one before the plugin sees it
    is_open = [id for id, layer in model.layers.items() if _is_open(trace, layer, fed)]
    selected |= graph.behind(model, is_open).union(is_open)
    for layer in graph.reached(model):
        op, refused = trace.ops[layer.id], trace.refused.get(layer.id)
        cls = type(op) if op is not None else declaration(layer)
        found = errors.get(layer.name, ())
        if op is not None:  # OpenVINO reads it nevertheless
            dropped = ("IR202", "IR203", *(_INFERRED if refused is None else ()))
            found = [finding for finding in found if finding.code not in dropped]
        sentences = _codes(found) | set(of_attributes(layer, cls, op))
        sentences |= set(_of_ports(model, layer, op, trace.values, fed, selected, compressed))
        if isinstance(refused, Refused):
            sentences.add(_code(refused.code, refused.label))
        if not body and f"an input is {_OUTSIDE}" in sentences:
            sentences.add(f"an input is {_OUTSIDE} outside of bodies")
        if layer.type.lower() == "assign":
            sentences.update(graph.of_variable(model, layer, trace.values))
        if body:
            sentences.add(f"it is in the body of {body}")
        blocks = _blocks(found) or refused is not None
        yield Facts(model, layer, _names(layer, cls), frozenset(sentences), blocks)
        for inner in trace.bodies(layer.id).values():
            yield from _of_layers(inner, errors, layer.type)
            yield from _of_body(inner, layer.type)


def _of_body(body: Trace, type: str) -> Iterator[Facts]:
    """Yield the layers of a body that break a rule if its Parameters alone say what enters it.

    OpenVINO reads a body before it makes the layer of this ``type`` around it.
    """
    alone = Trace(body.model, body.ops)
    refused = alone.refused.keys() - body.refused.keys()
    if refused:
        yield from (of for of in _of_layers(alone, {}, type) if of.layer and of.layer.id in refused)


def _is_open(trace: Trace, layer: Layer, fed: Container[int]) -> bool:
    """Return whether OpenVINO cannot infer that a layer returns nothing: it counts, selects or slices unknown data."""
    if layer.type in _COUNTED:
        return any(feed is not None and feed[0] in fed for feed in trace.model.feeds[layer.id][:1])
    inputs = [trace.values.get(feed) for feed in trace.model.feeds[layer.id] if feed is not None]
    if layer.type in _SLICING:
        return any(value is None or value.exact is None for value in inputs[1:])
    is_known = all(value is not None and value.shape.is_static for value in inputs)
    return not is_known and _SELECTING.search(layer.type) is not None


def _codes(findings: Sequence[Diagnostic]) -> set[str]:
    return {_code(d.code, d.label) for d in findings}


def _code(code: str, label: str | None) -> str:
    return " ".join(filter(None, ("irrun reports", code, label)))


def _blocks(findings: Sequence[Diagnostic]) -> bool:
    return any(finding.blocks for finding in findings)


def _names(layer: Layer, cls: type[Op] | None) -> tuple[str, ...]:
    if cls is None:
        return layer.type, f"{layer.type}-{layer.version}"
    family = [c.__name__.lstrip("_") for c in reversed(cls.__mro__) if issubclass(c, Op) and c is not Op]
    return *family[:-1], cls.type, f"{cls.type}-{cls.since}"


def _of_ports(
    model: Model, layer: Layer, op: Op | None, values: Values, fed: Container[int], selected: Container[int],
    compressed: Mapping[int, frozenset[str]],
) -> Iterator[str]:  # fmt: skip
    """Yield the facts of inputs and outputs. ``fed`` are the layers that depend on inputs of the model.

    ``selected`` are those that depend on a number of boxes that OpenVINO does not infer, even if there are none.
    """
    feeds = model.feeds[layer.id]
    yield from _of_feeds(model, layer, values, fed, compressed)
    inputs = [None if feed is None else values.get(feed) for feed in feeds]
    outputs = _outputs(layer, op, inputs, values)
    if layer.id in selected:
        inputs = [value and _unknown_if_empty(value) for value in inputs]
        outputs = [_unknown_if_empty(value) for value in outputs]
    if layer.id in fed and any(_size(value.shape) == 0 for value in outputs):
        yield "an empty output depends on an input of the model"
    yield f"it has {len(inputs)} inputs"
    yield from _of_readers(model, layer, len(outputs))
    known = [value for value in inputs if value is not None]
    if known and all(value.shape.is_static for value in known):
        yield "its inputs have known shapes"
        if all(_size(value.shape) for value in known):
            yield "its inputs have known shapes, and none is empty"
    if known and all(value.type.name in _COMMON for value in known):
        yield "its inputs have common types of numbers"
    if any(value.type.name in _RARE for value in known):
        yield "an input is f8, f4, nf4 or u2"
    told = ((str(value.shape), value.shape.rank, value.type) for value in known)
    yield from (
        f"its inputs differ in {what}" for what, of in zip(("shape", "rank", "type"), zip(*told)) if len({*of}) > 1
    )
    if len(known) > 1 and not _broadcast(known):
        yield "its inputs do not broadcast as numpy does"
    yield from _of_pairs(inputs)
    yield from of_operation(layer, op, inputs, graph.follower(model, layer.id))
    yield from _of_neighbours(model, layer, op, values, fed)
    if layer.type == "Result" and known and known[0].exact is not None and not known[0].exact.size:
        yield "it returns an empty constant"
    for kind, ports in (("input", inputs), ("output", outputs)):
        for position, value in enumerate(ports[:_MAX_PORTS]):
            if value is None:
                yield f"{kind} {position} is not connected"
                continue
            for sentence in _of_value(value.type, value.shape):
                yield f"{kind} {position} {sentence}"
                if sentence.startswith("is ") or "unknown" in sentence:
                    yield f"an {kind} {sentence}"
            if kind == "input" and value.data is not None and value.exact is not None:
                yield from (f"{kind} {position} {s}" for s in _of_contents(value))


def _of_feeds(
    model: Model, layer: Layer, values: Values, fed: Container[int], compressed: Mapping[int, frozenset[str]]
) -> Iterator[str]:
    """Yield where the inputs of a layer are from."""
    feeds = model.feeds[layer.id]
    for position, feed in enumerate(feeds[:_MAX_PORTS]):
        if feed is not None:
            yield f"input {position} is {'not ' if feed[0] in fed else ''}constant"
            if feed[0] in fed and (feed not in values or values[feed].exact is None):
                yield f"input {position} has unknown contents"
            if graph.origin(model, feed[0], values).type == "Parameter":
                yield f"input {position} is a Parameter"
            if len(model.layers[feed[0]].outputs) > 1:
                yield f"input {position} is of a layer with several outputs"
            if feed[0] not in fed and layer.id in fed:
                yield from (f"input {position} is decompressed from {type}" for type in compressed.get(feed[0], ()))
    if len({*feeds}) < len(feeds):
        yield "two inputs are one value"


def _of_readers(model: Model, layer: Layer, outputs: int) -> Iterator[str]:
    """Yield what reads the outputs of a layer."""
    readers = model.readers.get((layer.id, 0), ())
    if len(readers) > 1:
        yield "several layers read output 0"
    if any(model.layers[reader].type == "Result" for reader, _ in readers):
        yield "a Result reads output 0"
    for position in range(1, min(outputs, _MAX_PORTS)):
        readers = model.readers.get((layer.id, position), ())
        yield f"{'layers read' if readers else 'no layer reads'} output {position}"
        if any(model.layers[reader].type != "Result" for reader, _ in readers):
            yield f"a layer before a Result reads output {position}"


def _of_neighbours(model: Model, layer: Layer, op: Op | None, values: Values, fed: Container[int]) -> Iterator[str]:
    """Yield what OpenVINO joins with a layer, or computes otherwise because of the layers around it."""
    if layer.type == "MatMul":
        yield from weights.of_weights(model, layer, fed, values, is_transposed=getattr(op, "transpose_b", False))
        yield from graph.of_scales(model, layer, values)
    yield from graph.of_attention(model, layer, fed, values)
    yield from graph.of_constants(model, layer, fed)
    if graph.quantizes_f64(model, layer, fed, values):
        yield "it computes in f64"
    if graph.quantizes_kernel(model, layer):
        yield "it ends the kernel of the layer before it"
    if layer.type == "GroupNormalization" and graph.joins_another(model, layer):
        yield "what reads it is joined with a layer of one input"
    if graph.widens_product(model, layer, fed, values):
        yield "it adds dims to a product, before a layer with one input"


def _unknown_if_empty(value: Value) -> Value:
    """Return a value whose dims of 0 are unknown."""
    dims = value.shape.dims or ()
    if all(dim.value != 0 for dim in dims):
        return value
    return value.reshaped([Dim.unknown() if dim.value == 0 else dim for dim in dims])


def _outputs(layer: Layer, op: Op | None, inputs: Sequence[Value | None], values: Values) -> list[Value]:
    """Return the outputs of a layer. Where the axes to remove are an input, they have the rank that OpenVINO infers.

    Squeeze removes a single axis, whichever it is. OpenVINO does not know whether several are different.
    """
    outputs = [values.get((layer.id, i), claim) for i, claim in enumerate(declared(layer))]
    data, axes = (*inputs[:2], None, None)[:2]
    if data is None or axes is None or axes.exact is not None or not outputs:
        return outputs
    is_single = axes.shape.static in ((), (1,))
    if layer.type == "Squeeze" and is_single and data.shape.rank:
        return [outputs[0].reshaped(PartialShape.of_rank(data.shape.rank - 1))]
    if layer.type.startswith("Reduce") and not is_single and not getattr(op, "keep_dims", True):
        return [outputs[0].reshaped(UNKNOWN_RANK)]
    return outputs


def _of_pairs(inputs: Sequence[Value | None]) -> Iterator[str]:
    """Yield what tells two inputs apart, where there are more."""
    for (i, a), (j, b) in combinations(enumerate(inputs[:_MAX_PAIRED]), 2):
        if len(inputs) > 2 and a is not None and b is not None:
            if a.type != b.type:
                yield f"inputs {i} and {j} differ in type"
            sizes = [_size(value.shape) for value in (a, b)]
            if None not in sizes and sizes[0] != sizes[1]:
                yield f"inputs {i} and {j} differ in size"


def _size(shape: PartialShape) -> int | None:
    return None if shape.static is None else math.prod(shape.static)


def _broadcast(values: Sequence[Value]) -> bool:
    """Return whether the shapes of values broadcast as numpy does, as far as the shapes are known."""
    shapes = [value.shape.dims[::-1] for value in values if value.shape.dims is not None]
    known = [{dim.value for dim in dims if dim is not None and dim.is_static} for dims in zip_longest(*shapes)]
    return all(len(lengths - {1}) <= 1 for lengths in known)


def _of_value(type: ElementType, shape: PartialShape) -> Iterator[str]:
    yield f"is {type}"
    if type.kind in ("int", "uint", "float"):
        yield f"is {type.kind} of {type.bits} bits"
    if shape.dims is None:
        yield "has unknown rank"
        return
    yield f"has rank {len(shape.dims)}"
    if (size := _size(shape)) is not None and size > 0:
        yield "has one element" if size == 1 else "has several elements"
    yield from (f"has more than {most} dims" for most in (_USUAL_RANK, _MOST_RANK) if len(shape.dims) > most)
    if any(not dim.is_static for dim in shape.dims):
        yield "has unknown dims"
        if not any(dim.is_static for dim in shape.dims):
            yield "has unknown dims alone"
        places = {"dim 0": shape.dims[:1], "last dim": shape.dims[-1:], "dim 1": shape.dims[1:2]}
        yield from (f"has an unknown {name}" for name, dims in places.items() if any(not dim.is_static for dim in dims))
    if any(dim.is_static and dim.value == 0 for dim in shape.dims):
        yield "is empty"
        yield from (f"has a dim {axis} of 0" for axis, dim in enumerate(shape.dims[:SPATIAL]) if dim.value == 0)
    if any(dim.is_static and dim.value == 1 for dim in shape.dims):
        yield "has a dim 1"
    elif shape.dims and shape.is_static:
        yield "has no dim 1"


def _of_contents(value: Value) -> Iterator[str]:
    data = value.exact
    if data is None or data.dtype == object or data.dtype.kind not in "iufb":
        return
    if data.size == 1:
        yield f"is {data.reshape(-1)[0].item():g}"
    if data.dtype.kind in "if" and data.size and (data < 0).any():
        yield "has a negative number"
    if data.size > 1 and data.dtype.kind in "iu" and np.any(data == 0):
        yield "has a zero"

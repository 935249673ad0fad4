"""What stands around a layer: inputs of the model, variables, attentions, and what OpenVINO joins with it."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from irrun.inference.propagate import Values
from irrun.model import Layer, Model

__all__ = [
    "behind",
    "fed_by_inputs",
    "follower",
    "joins_another",
    "of_attention",
    "of_constants",
    "of_scales",
    "of_variable",
    "origin",
    "quantizes_f64",
    "quantizes_kernel",
    "reached",
    "widens_product",
]

_BETWEEN: Final = ("add", "divide", "multiply", "softmax", "subtract")  # layers between the products of an attention
_MOST_BETWEEN, _MOST_DIMS = 6, 4  # layers between the products of an attention, and dims of what it multiplies
_SINK: Final = 5  # the position of the sink among the inputs of an attention
_IMAGE: Final = 4  # the dims of images
_SUM: Final = "BatchNormInference"  # a product and a sum with constants
_KEPT: Final = (
    *(_SUM, "Concat", "Convert", "FakeQuantize", "Negative"),
    *("ReLU", "Reshape", "Squeeze", "Subtract", "Transpose"),
)
"""Layers that compute in f64 between an input of the model and a FakeQuantize, as sums and products with a constant."""
_QUANTIZING: Final = re.compile("Reduce|MatMul|MVN|NormalizeL2|AvgPool|Interpolate|(Group)?Convolution")
"""Layers whose kernels also compute a FakeQuantize, if nothing else reads the layer."""
_IN_BF16: Final = ("MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData", "Interpolate")
"""Layers that OpenVINO computes in bf16 even near an output, where it has f32 otherwise."""


def of_variable(model: Model, assign: Layer, values: Values) -> Iterator[str]:
    """Yield whether an Assign depends on no ReadValue of its variable, or stores what the variable does not hold."""
    name, before = assign.attributes.get("variable_id"), model.before([assign.id])
    reads = [at.id for at in model.layers.values() if at.type.lower() == "readvalue"]
    reads = [id for id in reads if model.layers[id].attributes.get("variable_id") == name]
    if not before.intersection(reads):
        yield "no ReadValue before it has its variable_id"
    held, stored = [values.get((id, 0)) for id in reads], [values.get(at) for at in model.feeds[assign.id] if at]
    if any(a is not None and b is not None and a.shape.meet(b.shape) is None for a in held for b in stored):
        yield "its variable has another shape than its input"


def reached(model: Model) -> list[Layer]:
    """Return the layers on which a Result or Assign depends, and all Parameters: OpenVINO creates no other."""
    ends = [id for id, layer in model.layers.items() if layer.type.lower() in ("result", "assign", "parameter")]
    before = model.before(ends)
    return [layer for id, layer in model.layers.items() if id in before]


def fed_by_inputs(model: Model, values: Values) -> set[int]:
    """Return the ids of the layers that depend on a Parameter or a variable. OpenVINO folds the others.

    It also folds a ShapeOf of a known shape, and what depends on that alone.
    """
    inputs = [id for id, layer in model.layers.items() if layer.type.lower() in ("parameter", "readvalue")]
    shapes = {id for id, layer in model.layers.items() if layer.type == "ShapeOf" and _is_known(model, id, values)}
    return behind(model, inputs, shapes).union(inputs)


def _is_known(model: Model, shape_of: int, values: Values) -> bool:
    feed = next(iter(model.feeds[shape_of]), None)
    return feed is not None and feed in values and values[feed].shape.is_static


def behind(model: Model, starts: Iterable[int], ends: Container[int] = ()) -> set[int]:
    """Return the ids of the layers that depend on others, without what depends on them through ``ends`` alone."""
    waiting = list(starts)
    reached: set[int] = set()
    while waiting:
        for id in model.consumers.get(waiting.pop(), ()):
            if id not in reached and id not in ends:
                reached.add(id)
                waiting.append(id)
    return reached


def origin(model: Model, id: int, values: Values) -> Layer:
    """Return a layer or, if it is a Convert that changes no type, the first layer before it that is none."""
    while (layer := model.layers[id]).type == "Convert":
        feed = next(iter(model.feeds[id]), None)
        if feed is None or feed not in values or (id, 0) not in values or values[feed].type != values[id, 0].type:
            break
        id = feed[0]
    return layer


def follower(model: Model, id: int) -> str:
    """Return the type of the only layer that reads a layer, behind the bias that an Add adds; empty if several do."""
    reader = _only_reader(model, id)
    if reader is not None and reader.type == "Add":
        reader = _only_reader(model, reader.id)
    return "" if reader is None else reader.type


def _only_reader(model: Model, id: int) -> Layer | None:
    """Return the layer that reads another, or None if none or several do."""
    readers = model.consumers.get(id, ())
    return model.layers[readers[0]] if len(readers) == 1 else None


def joins_another(model: Model, layer: Layer) -> bool:
    """Return whether the only reader of a layer also reads a layer of one input, with which the plugin joins it first.

    The plugin does not do so in a Subtract whose second input is the layer.
    """
    reader = _only_reader(model, layer.id)
    inputs = [] if reader is None else [feed[0] for feed in model.feeds[reader.id] if feed is not None]
    others = [id for id in inputs if id != layer.id]
    if reader is None or len(inputs) != 2 or len(others) != 1 or len(model.feeds[others[0]]) != 1:
        return False
    return inputs[0] == layer.id or reader.type != "Subtract"


def of_scales(model: Model, layer: Layer, values: Values) -> Iterator[str]:
    """Yield whether constants multiply or divide an image: each channel, or all of them before a convolution.

    Some releases join the product that makes the image with them, although it has no rows to sum.
    """
    readers = [model.layers[id] for id in model.consumers.get(layer.id, ())]
    found = {_channels(model, reader, layer, values) for reader in readers} - {0}
    if found and len(readers) > 1:
        yield "constants scale its channels for one of several readers"
    elif found and max(found) > 1:
        yield "constants scale its channels"
    elif found and (readers[0].type == _SUM or follower(model, readers[0].id) in ("Convolution", "GroupConvolution")):
        yield "a constant scales it before a convolution"


def _channels(model: Model, reader: Layer, read: Layer, values: Values) -> int:
    """Return how many constants scale the channels of an image: 0 if none do, 1 if one scales them all."""
    if reader.type not in ("Multiply", "Divide", _SUM):
        return 0
    others = [values[feed] for feed in model.feeds[reader.id] if feed in values and feed[0] != read.id]
    shapes = [value.shape.static or () for value in others if value.exact is not None]
    if not shapes or len(shapes) < len(others):
        return 0
    shape, count = shapes[0], math.prod(shapes[0])
    is_scale = reader.type == _SUM or (len(shape) >= _IMAGE and shape[1:2] == (count,))
    return count if is_scale else 0


def of_constants(model: Model, outer: Layer, fed: Container[int]) -> Iterator[str]:
    """Yield whether a layer applies a constant to a sum or product with another. OpenVINO joins the two constants.

    A BatchNormInference ends with such a sum. OpenVINO joins Gelu first, whose formula contains a sum and a product.
    """
    inner = _other_than_constant(model, outer, fed)
    if outer.type == _SUM and (feed := next(iter(model.feeds[outer.id]), None)) is not None:
        inner = model.layers[feed[0]]
    read = inner if inner is None or inner.type == _SUM else _other_than_constant(model, inner, fed)
    if inner is None or read is None or len(model.consumers[inner.id]) > 1:
        return
    if inner.type == "Add" and read.type == "Erf" and _is_gelu(model, outer, read):
        return
    if outer.type == "Multiply" and inner.type in ("Add", "Multiply", _SUM):
        yield f"a constant multiplies a {'product' if inner.type == 'Multiply' else 'sum'} with another"
    if outer.type in ("Add", "Subtract") and inner.type in ("Add", _SUM):
        yield f"a constant is {'added to' if outer.type == 'Add' else 'subtracted from'} a sum with another"
    if outer.type == _SUM and inner.type in ("Add", "Subtract", _SUM):
        yield "constants scale a sum with another"


def _is_gelu(model: Model, half: Layer, erf: Layer) -> bool:
    """Return whether layers are of Gelu in the form that OpenVINO knows: it divides before Erf, and halves a sum."""
    feed, reader = next(iter(model.feeds[erf.id]), None), _only_reader(model, half.id)
    is_divided = feed is not None and model.layers[feed[0]].type == "Divide"
    return is_divided and reader is not None and reader.type == "Multiply"


def _other_than_constant(model: Model, layer: Layer, fed: Container[int]) -> Layer | None:
    """Return the layer whose output another takes beside one constant, or None if it does not take two such inputs."""
    inputs = [feed[0] for feed in model.feeds[layer.id] if feed is not None]
    others = [id for id in inputs if id in fed]
    return model.layers[others[0]] if (len(inputs), len(others)) == (2, 1) else None


def quantizes_f64(model: Model, layer: Layer, fed: Container[int], values: Values) -> bool:
    """Return whether a FakeQuantize computes in f64, which releases since 2023.3 cannot. With 2 levels, it does not."""
    if layer.type != "FakeQuantize" or layer.attributes.get("levels") == "2":
        return False
    while layer.type in _KEPT or _other_than_constant(model, layer, fed) is not None:
        feed = next(iter(model.feeds[layer.id]), None)
        if feed is None or layer.type not in (*_KEPT, "Add", "Multiply"):
            return False
        layer = model.layers[feed[0]]
    read = values.get((layer.id, 0))
    return layer.type == "Parameter" and read is not None and read.type.name == "f64"


def quantizes_kernel(model: Model, layer: Layer) -> bool:
    """Return whether the kernel of the layer before a FakeQuantize computes both."""
    feed = next(iter(model.feeds[layer.id]), None)
    if layer.type != "FakeQuantize" or feed is None or _only_reader(model, feed[0]) is None:
        return False
    return _QUANTIZING.match(model.layers[feed[0]].type) is not None


def widens_product(model: Model, sum: Layer, fed: Container[int], values: Values) -> bool:
    """Return whether a layer adds a constant to a product that has fewer dims, some of them unknown.

    Releases join a layer with one input to both if the constant has a number for each column.
    """
    readers = model.consumers.get(sum.id, ())
    if sum.type not in ("Add", "Subtract") or len(readers) != 1 or len(model.feeds[readers[0]]) != 1:
        return False
    given = [feed for feed in model.feeds[sum.id] if feed in values]
    for product, bias in (given, given[::-1]) if len(given) == 2 and model.layers[readers[0]].type != "Result" else ():
        layer, dims = model.layers[product[0]], values[bias].shape.static or (1,)
        is_bias = bias[0] not in fed and dims[-1] > 1 == math.prod(dims[:-1])
        if layer.type == "MatMul" and is_bias and len(model.consumers[layer.id]) == 1:
            weights, shape = model.feeds[layer.id][1], values[product].shape
            if weights is not None and weights[0] not in fed and not shape.is_static:
                return shape.rank is not None and shape.rank < len(dims)
    return False


def of_attention(model: Model, last: Layer, fed: Container[int], values: Values) -> Iterator[str]:
    """Yield what is particular about the attention that a layer ends, if it ends one: ranks, and two types.

    A mask with fewer dims than the query does not count.
    """
    inputs = _attention(model, last)
    ranks = [values[feed].shape.rank for feed in inputs if feed in values]
    mask = next((feed for feed in model.feeds[last.id][3:4] if feed in values), None)
    ranks += [values[mask].shape.rank] if mask and ranks and (values[mask].shape.rank or 0) > (ranks[0] or 0) else []
    if len({*ranks}) > 1 and max(_MOST_DIMS + 1 if rank is None else rank for rank in ranks) <= _MOST_DIMS:
        yield "it ends an attention whose inputs differ in rank"
    if inputs and _attends_in_two_types(model, last, inputs, fed, values):
        sink = ", with a sink" if any(model.feeds[last.id][_SINK:]) else ""
        yield f"it ends an attention at an input or an output of the model{sink}"


def _attention(model: Model, last: Layer) -> Sequence[tuple[int, int] | None]:
    """Return the query, the keys and the values of the attention that a layer ends, or nothing if it ends none."""
    if last.type != "MatMul":
        return model.feeds[last.id][:3] if last.type == "ScaledDotProductAttention" else ()
    weights, read = (*model.feeds[last.id][:2], None, None)[:2]
    layer = None if weights is None else model.layers[weights[0]]
    if layer is None or layer.type.lower() != "softmax":
        return ()
    for _ in range(_MOST_BETWEEN):
        first = next(filter(None, model.feeds[layer.id]), None)
        if first is None or len(model.consumers[layer.id]) > 1 or layer.type.lower() not in _BETWEEN:
            break
        layer = model.layers[first[0]]
    return [*model.feeds[layer.id][:2], read] if layer.type == "MatMul" else ()


def _attends_in_two_types(
    model: Model, last: Layer, inputs: Sequence[tuple[int, int] | None], fed: Container[int], values: Values
) -> bool:
    """Return whether a release computes one part of an attention in f32 and the other in bf16; ``last`` ends it.

    That is so if an input of the model is the query, the keys or the values, or their transpose, or if no layer between
    the attention and a Result is one that OpenVINO prefers to compute in bf16. None of the three is constant, is empty,
    or has more than 4 dims then.
    """
    if any(feed is None or feed[0] not in fed for feed in inputs):
        return False
    shapes = [values[feed].shape for feed in filter(None, inputs) if feed in values]
    if any((shape.rank or 0) > _MOST_DIMS or 0 in (shape.static or ()) for shape in shapes):
        return False
    for feed in filter(None, inputs):
        before = model.layers[feed[0]]
        if before.type == "Transpose" and (first := next(iter(model.feeds[before.id]), None)) is not None:
            before = model.layers[first[0]]
        if before.type == "Parameter":
            return True
    waiting, reached = [last.id], set[int]()
    while waiting:
        for id in set(model.consumers.get(waiting.pop(), ())) - reached:
            if model.layers[id].type == "Result":
                return True
            reached.add(id)
            if model.layers[id].type not in _IN_BF16:
                waiting.append(id)
    return False

"""What stands around a layer: inputs of the model, variables, weights, attentions, and what OpenVINO joins with it."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from irrun.inference.propagate import Values
from irrun.model import Layer, Model

__all__ = [
    "behind",
    "compressed",
    "fed_by_inputs",
    "follower",
    "joins_another",
    "of_attention",
    "of_constants",
    "of_scales",
    "of_variable",
    "of_weights",
    "quantizes_f64",
    "reached",
    "widens_product",
]

_USUAL_BITS: Final = 8  # the fewest bits of an element type that each release converts. Weights may have fewer
_BETWEEN: Final = ("add", "divide", "multiply", "softmax", "subtract")  # layers between the products of an attention
_MOST_BETWEEN, _MOST_DIMS = 6, 4  # layers between the products of an attention, and dims of what it multiplies
_TILE_ROWS, _MOST_OF_TILES = 32, 512
"""The most rows and columns of weights that AMX does not decompress; and the most, if the rows fill no tiles."""
_SINK: Final = 5  # the position of the sink among the inputs of an attention
_IMAGE: Final = 4  # the dims of images
_FEWEST_SUMMED: Final = 4  # the fewest rows of weights of 4 bits that the first releases which know them multiply
_USUAL_WEIGHTS: Final = "its weights of few bits have a scale for each column or group"
_OTHER_WEIGHTS: Final = (
    f"its weights of few bits are no matrix, or have fewer than {_FEWEST_SUMMED} summed rows, or other scales or zero"
    " points than one for each column or group"
)
_SUM: Final = "BatchNormInference"  # a product and a sum with constants
_KEPT: Final = (
    *("BatchNormInference", "Concat", "Convert", "FakeQuantize", "Negative"),
    *("ReLU", "Reshape", "Squeeze", "Subtract", "Transpose"),
)
"""Layers that compute in f64 between an input of the model and a FakeQuantize, as sums and products with a constant."""
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


def compressed(model: Model, fed: Container[int]) -> dict[int, frozenset[str]]:
    """Return the types of fewer than 8 bits from which constants are converted, for the layers that depend on none.

    OpenVINO folds a layer that several read, and thus keeps no such type there. A type has the words ``with zero
    points`` too if a constant of such a type is subtracted. ``fed`` are the layers that depend on inputs of the model.
    """
    found: dict[int, frozenset[str]] = {}
    for id in model.order:
        layer, feeds = model.layers[id], [feed[0] for feed in model.feeds[id] if feed is not None]
        if id in fed or len(model.consumers.get(id, ())) > 1:
            continue
        types = {type for feed in feeds for type in found.get(feed, ())}
        if layer.type == "Convert" and feeds and model.layers[feeds[0]].type == "Const":
            port = next(iter(model.layers[feeds[0]].outputs), None)
            if port is not None and port.type is not None and port.type.bits < _USUAL_BITS:
                types.add(port.type.name)
        if layer.type == "Subtract" and all(found.get(feed) for feed in feeds):
            types.update([f"{type} with zero points" for type in types])
        found[id] = frozenset(types)
    return found


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
    if reader.type == _SUM:
        return math.prod(shapes[0])
    return shapes[0][1] if len(shapes[0]) >= _IMAGE and shapes[0][1] == math.prod(shapes[0]) else 0


def of_constants(model: Model, outer: Layer, fed: Container[int]) -> Iterator[str]:
    """Yield whether a layer applies a constant to a sum or product with another. OpenVINO joins the two constants.

    A BatchNormInference ends with such a sum. OpenVINO joins Gelu first, whose formula contains a sum and a product.
    """
    inner = _other_than_constant(model, outer, fed)
    read = inner if inner is None or inner.type == _SUM else _other_than_constant(model, inner, fed)
    if inner is None or read is None or len(model.consumers[inner.id]) > 1:
        return
    if inner.type == "Add" and read.type == "Erf" and _is_gelu(model, outer, read):
        return
    if outer.type == "Multiply" and inner.type in ("Add", "Multiply", _SUM):
        yield f"a constant multiplies a {'product' if inner.type == 'Multiply' else 'sum'} with another"
    if outer.type in ("Add", "Subtract") and inner.type in ("Add", _SUM):
        yield f"a constant is {'added to' if outer.type == 'Add' else 'subtracted from'} a sum with another"


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


def of_weights(
    model: Model, product: Layer, fed: Container[int], values: Values, *, is_transposed: bool
) -> Iterator[str]:
    """Yield along which axes the scales and zero points vary that decompress the weights of a MatMul.

    OpenVINO folds weights instead if several layers read one of the layers that decompress them.
    """
    feeds, is_converted = _before_convert(model, model.feeds[product.id][1:2])
    if feeds and feeds[0] is not None and model.layers[feeds[0][0]].type == "Transpose":
        *feeds, order = (*model.feeds[feeds[0][0]], None, None)[:2]
        axes = values[order].exact if order in values else None
        is_transposed ^= axes is None or axes.tolist() != sorted(axes.tolist())
    is_grouped = bool(feeds) and feeds[0] is not None and model.layers[feeds[0][0]].type == "Reshape"
    if is_grouped and feeds[0] is not None:
        feeds = model.feeds[feeds[0][0]][:1]
        yield from _of_groups(model, feeds[0], values, is_transposed=is_transposed)
    lengths: dict[str, tuple[int, int]] = {}
    points = None
    for type in ("Multiply", "Subtract", "Convert"):
        layer = model.layers[feeds[0][0]] if feeds and feeds[0] is not None else None
        if layer is None or (layer.type != type and type == "Convert"):
            return
        if layer.type != type:
            continue
        feeds = model.feeds[layer.id]
        if len(model.consumers[layer.id]) > 1 or len(feeds) != (1 if type == "Convert" else 2):
            if type == "Subtract" and _is_narrow(model, feeds, values):
                yield "several layers read the Subtract that decompresses its weights of few bits"
            return
        if type != "Convert" and (other := feeds[1]) is not None:
            if type == "Subtract" and model.layers[other[0]].type == "Convert":
                points = values.get(other)
            dims = (1, 1, *((values[other].shape.static if other in values else None) or ()))
            lengths[type] = (dims[-1], dims[-2]) if is_transposed else (dims[-2], dims[-1])
    weights = values.get(feeds[0]) if feeds and feeds[0] is not None else None
    shape = None if weights is None else weights.shape.static
    if weights is None or shape is None or weights.type.bits > _USUAL_BITS:
        return
    is_reshaped = is_grouped and len(shape) == 2
    if is_reshaped and is_transposed and "Multiply" in lengths:
        yield "a Reshape changes its weights, which have no groups"
    is_matrix = not is_transposed if is_reshaped else len(shape) == 2 + is_grouped
    if not is_matrix and (is_grouped or len(shape) != 3 or shape[0] > 1):
        if "Multiply" in lengths and weights.type.bits < _USUAL_BITS:
            yield _OTHER_WEIGHTS
        if not is_grouped and "Multiply" in lengths:
            yield from _of_batches(shape, model.feeds[product.id][0], values, has_points="Subtract" in lengths)
        return
    columns, rows = shape[-2:] if is_transposed else shape[:-3:-1]
    scales, zero_points = lengths.get("Multiply"), lengths.get("Subtract", (1, 1))
    if not is_grouped:
        yield _by_size(columns, rows)
        if columns > 1 and zero_points[0] > 1:
            yield "its weights have zero points for each summed row"
        if columns > 1 and scales is not None and scales[0] > 1:
            yield f"its weights have a scale for each {'number' if scales[1] > 1 else 'summed row'}"
    if scales is not None:
        is_usual = max(scales[0], zero_points[0]) == 1 and (is_grouped or scales[1] > 1)
        is_alike = is_grouped or lengths.get("Subtract", scales) == scales
        if weights.type.bits < _USUAL_BITS:
            yield _USUAL_WEIGHTS if is_usual and rows >= _FEWEST_SUMMED else _OTHER_WEIGHTS
            if _is_multiplied(model, product, fed, values) and (is_grouped or len(model.consumers[product.id]) > 1):
                yield "OpenVINO joins a constant behind it with its weights of few bits"
            if points is not None and points.exact is not None and len({*points.exact.ravel().tolist()}) == 1:
                yield "its zero points are equal"
        elif is_usual and is_alike and rows > 1 and weights.type.name == "u8":
            part = "group" if is_grouped else "column, before a Convert" if is_converted else "column"
            few = "" if is_grouped or rows >= _FEWEST_SUMMED else f", and fewer than {_FEWEST_SUMMED} summed rows"
            yield f"its weights of u8 have a scale for each {part}{few}"


def _before_convert(
    model: Model, feeds: Sequence[tuple[int, int] | None]
) -> tuple[Sequence[tuple[int, int] | None], bool]:
    """Return what a Convert behind decompressed weights reads, and that there is one; else the weights themselves."""
    last = model.layers[feeds[0][0]] if feeds and feeds[0] is not None else None
    if last is None or last.type != "Convert" or len(model.consumers[last.id]) > 1:
        return feeds, False
    before = next(iter(model.feeds[last.id]), None)
    is_behind = before is not None and model.layers[before[0]].type in ("Multiply", "Reshape")
    return ([before], True) if is_behind else (feeds, False)


def _of_batches(
    shape: Sequence[int], feed: tuple[int, int] | None, values: Values, *, has_points: bool
) -> Iterator[str]:
    """Yield which batches decompressed weights have, of those that some releases do not multiply."""
    rank = values[feed].shape.rank if feed in values else None
    if len(shape) == 4 and shape[0] == shape[1] == 1:
        yield "its weights have two batches of one matrix"
    elif len(shape) == 3 and min(shape[1:]) > 1 and not has_points and rank is not None and rank <= len(shape):
        yield "its weights have a batch of several matrices, and no zero points"


def _is_multiplied(model: Model, product: Layer, fed: Container[int], values: Values) -> bool:
    """Return whether a layer multiplies or divides a product by a constant that is the same for each row."""
    readers = [id for id in model.consumers.get(product.id, ()) if model.layers[id].type in ("Multiply", "Divide")]
    others = [feed for id in readers for feed in model.feeds[id] if feed in values and feed[0] not in fed]
    return any(math.prod((values[feed].shape.static or (1,))[:-1]) == 1 for feed in others)


def _is_narrow(model: Model, feeds: Sequence[tuple[int, int] | None], values: Values) -> bool:
    """Return whether an input is converted from a type of few bits."""
    before = [feed for at in feeds if at is not None for feed in model.feeds[at[0]][:1] if feed in values]
    return any(values[feed].type.bits < _USUAL_BITS for feed in before if feed is not None)


def _by_size(columns: int, rows: int) -> str:
    most = max(columns, rows)
    is_small = most <= _TILE_ROWS or (most <= _MOST_OF_TILES and rows % _TILE_ROWS > 0)
    return f"its weights are {'too small' if is_small else 'large enough'} to be decompressed with AMX"


def _of_groups(model: Model, feed: tuple[int, int] | None, values: Values, *, is_transposed: bool) -> Iterator[str]:
    """Yield what is particular about weights that have a scale for each group of summed rows, before their Reshape."""
    dims = values[feed].shape.static if feed in values else None
    if feed is not None and dims is not None and len(dims) == 3 and model.layers[feed[0]].type == "Multiply":
        columns = dims[0] if is_transposed else dims[2]
        yield _by_size(columns, math.prod(dims) // max(columns, 1))
        if is_transposed and dims[0] == 1 < dims[1]:
            yield "its weights have one column and several groups"
        if not is_transposed and dims[0] == 1 < max(dims[1:]):
            yield "its weights have one group"


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

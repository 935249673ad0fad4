"""Weights that layers decompress: the types, scales and zero points that decide which kernel multiplies with them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Final

from irrun.inference.propagate import Values
from irrun.model import Layer, Model

__all__ = ["compressed", "of_weights"]

_USUAL_BITS: Final = 8  # the fewest bits of an element type that each release converts. Weights may have fewer
_TILE_ROWS, _MOST_OF_TILES = 32, 512
"""The most rows and columns of weights that AMX does not decompress; and the most, if the rows fill no tiles."""
_FEWEST_SUMMED: Final = 4  # the fewest rows of weights of 4 bits that the first releases which know them multiply
_USUAL_WEIGHTS: Final = "its weights of few bits have a scale for each column or group"
_OTHER_WEIGHTS: Final = (
    f"its weights of few bits are no matrix, or have fewer than {_FEWEST_SUMMED} summed rows, or other scales or zero"
    " points than one for each column or group"
)


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


def of_weights(
    model: Model, product: Layer, fed: Container[int], values: Values, *, is_transposed: bool
) -> Iterator[str]:
    """Yield along which axes the scales and zero points vary that decompress the weights of a MatMul.

    OpenVINO folds weights instead if several layers read one of the layers that decompress them.
    """
    feeds, is_converted = _before_convert(model, model.feeds[product.id][1:2])
    feeds, is_moved = _before_transpose(model, feeds, values)
    is_transposed ^= is_moved
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
        yield from _of_rows(columns, rows, scales, zero_points)
    if scales is None:
        return
    is_usual = max(scales[0], zero_points[0]) == 1 and (is_grouped or scales[1] > 1)
    if weights.type.bits < _USUAL_BITS:
        yield _USUAL_WEIGHTS if is_usual and rows >= _FEWEST_SUMMED else _OTHER_WEIGHTS
        if _is_multiplied(model, product, fed, values) and (is_grouped or len(model.consumers[product.id]) > 1):
            yield "OpenVINO joins a constant behind it with its weights of few bits"
        if points is not None and points.exact is not None and len({*points.exact.ravel().tolist()}) == 1:
            yield "its zero points are equal"
    elif is_usual and weights.type.name == "u8" and (is_grouped or lengths.get("Subtract", scales) == scales):
        part = "group" if is_grouped else "column, before a Convert" if is_converted else "column"
        if is_grouped or rows >= _FEWEST_SUMMED:
            yield f"its weights of u8 have a scale for each {part}"
        elif rows > 1:
            yield f"its weights of u8 have a scale for each {part}, and fewer than {_FEWEST_SUMMED} summed rows"


def _of_rows(columns: int, rows: int, scales: tuple[int, int] | None, zero_points: tuple[int, int]) -> Iterator[str]:
    """Yield how large a matrix of weights is, and whether scales or zero points vary along the summed rows."""
    yield _by_size(columns, rows)
    if columns > 1 and zero_points[0] > 1:
        yield "its weights have zero points for each summed row"
    if columns > 1 and scales is not None and scales[0] > 1:
        yield f"its weights have a scale for each {'number' if scales[1] > 1 else 'summed row'}"


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


def _before_transpose(
    model: Model, feeds: Sequence[tuple[int, int] | None], values: Values
) -> tuple[Sequence[tuple[int, int] | None], bool]:
    """Return what a Transpose behind weights reads, and whether it swaps the axes; else the weights themselves."""
    last = model.layers[feeds[0][0]] if feeds and feeds[0] is not None else None
    if last is None or last.type != "Transpose":
        return feeds, False
    *before, order = (*model.feeds[last.id], None, None)[:2]
    axes = values[order].exact if order in values else None
    return before, axes is None or axes.tolist() != sorted(axes.tolist())


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

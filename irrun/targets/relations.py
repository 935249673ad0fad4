"""What releases compare in a layer beyond types, ranks and dims: relations between inputs, axes and attributes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Final

import numpy as np

from irrun.inference.layer import input_at
from irrun.model import Layer
from irrun.opdef import Op, Value
from irrun.types import Dim, ElementType

__all__ = ["differ", "of_operation"]

_FEW_COLUMNS: Final = 5  # the fewest columns that each release multiplies without converting weights to bf16
_FEW_ROWS: Final = 5  # the fewest rows that the plugin multiplies with compressed weights by its usual kernel
_BYTE: Final = 8  # bits
_SPATIAL: Final = 2  # the first spatial axis of an image
_RANGES: Final = 4  # the inputs of FakeQuantize behind its data
_VOLUME: Final = 5  # the most dims that the plugin resizes: batch, channels, depth, height and width
_WINDOW: Final = 15  # the fewest rows and columns for which the fast kernel of depthwise convolution fails
_JOINED: Final = ("GroupNormalization", "IsFinite", "IsInf", "IsNaN")  # some releases join them with what reads them
_SLOW: Final = ("Sigmoid", "Tanh")  # behind them, another kernel computes a depthwise convolution
_ONE_INPUT: Final = 11  # the first Interpolate with one input for both sizes and scales
_MAX_COMPARED: Final = 4  # the most inputs of a layer, and the most dims of each, that are compared with each other
_AT_ONCE: Final = 4  # the columns that the kernel of a convolution of bits computes at a time
_WRAP: Final = 1 << 64  # OpenVINO counts blocks without a sign: below 0, the largest number follows
_REDUCTIONS: Final = ("L1", "L2", "LogicalAnd", "LogicalOr", "Max", "Mean", "Min", "Prod", "Sum")
_PLACED: Final = {"Select": ((1, 0), (1, 2)), "FakeQuantize": ((0, 1), (0, 2), (0, 3), (0, 4))}
"""The inputs whose dims pdpd broadcasting places among those of another, behind the other; usually of two inputs."""


def of_operation(layer: Layer, op: Op | None, inputs: Sequence[Value | None], follower: str) -> Iterator[str]:
    """Yield the sentences about the inputs of a layer that only its operation gives a meaning to.

    ``follower`` is the type of the layer behind it.
    """
    values = [*inputs, *[None] * _MAX_COMPARED]
    if op is not None and _mixes(op, inputs):
        yield "inputs that must have one type differ"
    if len(inputs) > _SPATIAL:
        yield from _of_dims(inputs[:_MAX_COMPARED])
    if layer.attributes.get("auto_broadcast") == "pdpd":
        for to, placed in _PLACED.get(layer.type, ((0, 1),)):
            yield from _of_pdpd(layer, op, values, to, placed)
    if layer.type == "PriorBoxClustered" and len(layer.attributes.keys() & {"width", "height"}) == 1:
        yield "it has width or height alone"
    if layer.type in _JOINED:
        yield f"a {follower} reads it" if follower else "several layers read it"
    if layer.type == "GroupConvolution" and follower not in _SLOW:
        yield from _of_depthwise(op, values)
    if (of := _RELATIONS.get(layer.type)) is not None and op is not None:
        yield from of(op, values)


def differ(a: Dim, b: Dim) -> bool:
    """Return whether two dims are known and differ."""
    return a.value is not None and b.value is not None and a.value != b.value


def _mixes(op: Op, inputs: Sequence[Value | None]) -> bool:
    """Return whether inputs have two types for which the page of the operation has one name."""
    types: dict[str, set[ElementType]] = {}
    for position, value in enumerate(inputs):
        port = input_at(op.inputs, position)
        if value is not None and port is not None and port.type in op.types and value.type.kind != "dynamic":
            types.setdefault(port.type, set()).add(value.type)
    return any(len(of) > 1 for of in types.values())


def _of_dims(inputs: Sequence[Value | None]) -> Iterator[str]:
    """Yield in which dims two inputs of the same rank differ."""
    for (i, a), (j, b) in combinations(enumerate(inputs), 2):
        first, second = _dims(a), _dims(b)
        if first is not None and second is not None and len(first) == len(second):
            for axis, pair in enumerate(zip(first[:_MAX_COMPARED], second)):
                if differ(*pair):
                    yield f"inputs {i} and {j} differ in dim {axis}"


def _of_pdpd(layer: Layer, op: Op | None, values: Sequence[Value | None], to: int, placed: int) -> Iterator[str]:
    """Yield where the dims of an input are, which the attribute axis places among those of another.

    Releases take axis 0 if the attribute is missing, and look for dims that do not broadcast there.
    """
    dims, less, axis = _dims(values[to]), _dims(values[placed]), getattr(op, "axis", 0)
    if axis is None or dims is None or less is None:
        return
    if axis >= 0 and axis + len(less) > len(dims):
        yield f"axis places input {placed} beyond the last dim of input {to}"
    if axis >= 0 and len(less) < len(dims):
        yield f"axis places the fewer dims of input {placed}"
        if axis + len(less) != len(dims):
            yield f"input {placed} is not aligned with the last dims of input {to}"
    if "auto_broadcast.auto_broadcast_axis" not in layer.attributes:
        axis = 0
    pairs = [*zip(dims[len(dims) - len(less) if axis == -1 else axis :], less)]
    if len(less) <= len(dims) and any(differ(a, b) and not _reaches(a, b) for a, b in pairs):
        yield f"input {placed} does not broadcast to input {to} from the axis on"
    while pairs and pairs[-1][1].value == 1:
        del pairs[-1]
    if len(less) <= len(dims) and any(differ(a, b) and b.value == 1 for a, b in pairs):
        yield f"input {placed} has a dim 1 that is not at its end, to broadcast to input {to}"


def _reaches(a: Dim, b: Dim) -> bool:
    """Return whether a known dim of an input that is placed broadcasts to another: it is 1, or the other is."""
    return (a.value or 0) >= (b.value or 0) and 1 in (a.value, b.value)


def _of_depthwise(op: Op | None, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether each channel has a filter whose window the fast kernel for one step at a time does not finish."""
    filters = None if values[1] is None else values[1].shape.static
    is_wide = filters is not None and filters[1:3] == (1, 1) and min(filters[3:], default=0) >= _WINDOW
    if is_wide and all(step == 1 for step in getattr(op, "strides", ())):
        yield f"each channel has a window of {_WINDOW} rows and columns or more, and no Sigmoid or Tanh behind it"


def _of_squeeze(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims, axes = _dims(values[0]), _numbers(values[1])
    if dims and axes is not None and any(-len(dims) <= at < len(dims) and _is_long(dims[at]) for at in axes):
        yield "an axis to remove is longer than 1"


def _of_einsum(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    given, _, wanted = str(getattr(op, "equation", "")).replace(" ", "").partition("->")
    subscripts = given.split(",")
    if "..." in given:
        yield "a subscript has an ellipsis"
    elif not all(subscripts):
        yield "a subscript has no label"
    elif given == wanted or (not wanted and "->" not in getattr(op, "equation", "") and sorted({*given}) == [*given]):
        yield "its equation changes nothing"
    if any(len(set(labels)) < len(labels) for labels in (re.findall("[A-Za-z]", text) for text in subscripts)):
        yield "a subscript has a label twice"
    lengths: dict[str, set[int]] = {}
    for text, value in zip(subscripts, values):
        dims = _dims(value)
        if dims is not None and "." not in text:
            for label, dim in zip(text, dims):
                lengths.setdefault(label, set()).update(() if dim.value is None else (dim.value,))
    if any(len(of) > 1 for of in lengths.values()):
        yield "a label has two lengths"


def _of_ranges(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims = _dims(values[0])
    exact = [value.exact for value in values[1:5] if value is not None and value.exact is not None]
    if dims and any(of.ndim > len(dims) for of in exact):
        yield "a constant range has more dims than input 0"
    elif dims and len(exact) == _RANGES:
        yield from _of_constant_ranges(op, dims, exact)


def _of_constant_ranges(op: Op, dims: Sequence[Dim], exact: Sequence[np.ndarray]) -> Iterator[str]:
    """Yield which kernel FakeQuantize needs. If a range varies along other axes than 1 and 2, other layers compute it.

    There is none for axis 2, and for bits of 0 and 1 only that of images.
    """
    low, high, *outputs = exact
    axes = [[len(dims) - of.ndim + at for at, size in enumerate(of.shape) if size > 1] for of in exact]
    of_inputs = [axis for of in axes[:2] for axis in of]
    is_simple = len(dims) > 1 and all(len(of) <= 1 for of in axes[:2]) and {*of_inputs} <= {1, 2}
    if is_simple and of_inputs[-1:] == [2] and axes[2] != [1]:
        yield "the range of its input varies along axis 2 alone"
    with suppress(ValueError):  # the ranges do not broadcast
        if getattr(op, "levels", 2) != 2:
            if None not in [dim.value for dim in dims] and np.any(low > high):
                yield "the range of its input is reversed"
        elif is_simple and of_inputs[-1:] != [2]:
            is_binary = not np.any(low != high) and all(np.isin(of, (0, 1)).all() for of in outputs)
            rank = "an image" if len(dims) == _VOLUME - 1 else "another rank"
            yield f"it makes bits of {rank}" if is_binary else "it has two levels that are no bits"


def _of_joining(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims, axis = _dims(values[0]), getattr(op, "axis", None)
    if dims and axis is not None and any(dim.value != 1 for dim in dims[: axis % len(dims)]):
        yield "an axis before that of joining is longer than 1"
    if dims and axis is not None and -len(dims) <= axis < len(dims) and dims[axis].value == 1:
        yield "the axis of joining is 1 long in input 0"


def _of_groups(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    filters = _dims(values[1])
    if filters and filters[0].value == 1 and any(dim.value != 1 for dim in filters[1:3]):
        yield "it has one group of several channels"


def _of_deconvolution(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    yield from _of_groups(op, values)
    yield from _of_output_shape(op, values)


def _of_output_shape(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether the plugin cannot guess an unknown dim of the input from ``output_shape``.

    It divides by the step without a sign. With steps of 1, only a guess of -1 is refused: it means an unknown dim.
    """
    dims, filters, sizes = _dims(values[0]), _dims(values[1]), _numbers(values[2])
    names = ("strides", "dilations", "pads_begin", "pads_end", "output_padding")
    lists = [[*getattr(op, name, ()), *[0] * _VOLUME] for name in names]
    is_explicit = not getattr(op, "auto_pad", "explicit").startswith("same")
    for dim, window, size, step, gap, begin, end, more in zip(
        (dims or ())[_SPATIAL:], (filters or ())[-len(sizes or ()) :], sizes or (), *lists
    ):
        if dim.value is None and window.value is not None and step > 0:
            room = size - gap * (window.value - 1) - 1 + (begin + end if is_explicit else 0) - more
            if room == -2 if step == 1 else room < 0:
                yield "no window fits into output_shape along an unknown dim"
                return


def _of_updates(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether the updates of a scatter have the rank that its data and indices ask for."""
    ranks = [None if value is None else value.shape.rank for value in values[:3]]
    if None in ranks:
        return
    data, indices, updates = (rank or 0 for rank in ranks)
    missing = 1
    if type(op).type == "ScatterNDUpdate":
        last = (_dims(values[1]) or (Dim.unknown(),))[-1].value
        if last is None:
            return
        missing = 1 + last
    if updates != data + indices - missing:
        yield "its updates have another rank than its data and indices ask for"


def _of_batches(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether GatherND would have to broadcast its batches, which no release does."""
    data, indices, batches = _dims(values[0]), _dims(values[1]), getattr(op, "batch_dims", 0)
    if data and indices and any(map(differ, data[:batches], indices[:batches])):
        yield "its batches differ in length"


def _of_softmax(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims, axis = _dims(values[0]) or (), int(getattr(op, "axis", 0))
    if -len(dims) <= axis < len(dims) and any(dim.value != 1 for dim in dims[axis % len(dims) + 1 :]):
        yield "an axis behind that of its sums is longer than 1"


def _of_norm(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether LRN sums along axes for which the plugin has no kernel: it counts them from the first."""
    dims, axes = _dims(values[0]), _numbers(values[1])
    if dims is not None and axes and axes != [1] and not ({*range(_SPATIAL, len(dims))} <= {*axes} and min(axes) >= 0):
        yield "its axes are neither the channels nor all spatial axes"


def _of_interpolation(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether an axis is resized that the plugin takes for the batch or the channels of an image.

    The plugin moves axes to the end if they are few, and computes images of 5 dims as OpenVINO itself does in the modes
    of Pillow and in ``cubic``. Newer releases take axis 1 of 4 for the depth.
    """
    shape = None if values[0] is None else values[0].shape.static
    by_sizes = getattr(op, "shape_calculation_mode", "sizes") == "sizes"
    by_axis, mode = type(op).since >= _ONE_INPUT, str(getattr(op, "mode", ""))
    given = values[1] if by_sizes or by_axis else values[2]
    if shape is None or not _SPATIAL < len(shape) <= _VOLUME or given is None or given.exact is None:
        return
    if len(shape) == _VOLUME and (mode == "cubic" or mode.endswith("_pillow")):
        return
    pads = [[*getattr(op, name, ()), *[0] * len(shape)] for name in ("pads_begin", "pads_end")]
    padded = [sum(of) for of in zip(shape, *pads)]
    axes = sorted(getattr(op, "axes", ())) or _numbers(values[2 if by_axis else 3])  # OpenVINO sorts an attribute
    axes = [*range(len(shape))] if axes is None else [axis % len(shape) for axis in axes]
    is_pillow = mode.endswith("_pillow")
    if (axes == [1, 2] and len(shape) == _VOLUME - 1) if is_pillow else len(axes) <= len(shape) - _SPATIAL:
        return
    sizes = dict(zip(axes, np.ravel(given.exact).tolist()))
    if not by_sizes and is_pillow:
        sizes, by_sizes = {axis: int(size * padded[axis]) for axis, size in sizes.items()}, True
    resized = {axis for axis, size in sizes.items() if size != (padded[axis] if by_sizes else 1)}
    if resized & ({0, 1} if len(shape) == _VOLUME else {0} if len(shape) == _VOLUME - 1 else set()):
        yield "it resizes axis 0 of 4, or axis 0 or 1 of 5"
    elif resized & {0, 1}:
        yield "it resizes axis 1 of 4, or axis 0 or 1 of 3"


def _of_average(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a window that counts data alone may have none, and whether the plugin lacks a kernel of integers."""
    pads = [*zip(getattr(op, "pads_begin", ()), getattr(op, "pads_end", ()))]
    is_explicit = getattr(op, "exclude_pad", False) and getattr(op, "auto_pad", "") == "explicit"
    gaps = [*getattr(op, "dilations", ()), *[1] * len(pads)]
    spans = [gap * (size - 1) + 1 for gap, size in zip(gaps, getattr(op, "kernel", ()))]
    if is_explicit and any(max(of) >= span for of, span in zip(pads, spans)):
        yield "a window fits into its padding"
    dims = _dims(values[0]) or ()
    if len(dims) > 1 and dims[1].value == 1 and values[0] is not None and values[0].type.kind in ("int", "uint"):
        if values[0].type.bits > _BYTE:
            yield "it averages integers of one channel, longer than a byte"


def _of_cell(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a recurrent layer is one for which the plugin has a primitive: the others are decomposed.

    A cell without gates may have any activation.
    """
    names = re.sub(r"\s", "", str(getattr(op, "activations", ""))).lower()
    is_usual = type(op).type.startswith("RNN") or names == type(op).attributes["activations"].default
    if is_usual and not getattr(op, "clip", 0):
        yield "it has the usual activations and does not clip"
    data, *states = (dims[0].value if (dims := _dims(value)) else None for value in values[: _MAX_COMPARED - 1])
    if data is None and any(states[: 2 if type(op).type.startswith("LSTM") else 1]):
        yield "it knows the batch of its states, but not of its data"


def _of_product(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims = _dims(values[1])
    if dims and dims[-1].value is not None and dims[-1].value < _FEW_COLUMNS:
        yield f"input 1 has fewer than {_FEW_COLUMNS} columns"
    rows = None if values[0] is None else values[0].shape.static
    if rows is not None and math.prod(rows[:-1]) < _FEW_ROWS:
        yield f"input 0 has fewer than {_FEW_ROWS} rows"


def _of_attention(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    query, key, mask = _dims(values[0]), _dims(values[1]), _dims(values[3])
    if not query or not key or mask is None or min(len(query), len(key)) < _SPATIAL:
        return
    wanted = (query[-2], key[-2])
    if len(mask) == 1 or any(map(differ, mask[-2:], wanted)):
        yield "its mask does not end with the numbers of queries and keys"


def _of_slicing(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a mask has a length that readers do not accept: that of begin_mask, or 0."""
    data, begins = _dims(values[0]), _dims(values[1])
    if data is not None and begins and (begins[0].value or 0) > len(data) + getattr(op, "new_axis_mask", ()).count(1):
        yield "it begins along more axes than input 0 and new axes are"
    lengths = {name: len(getattr(op, name)) for name in type(op).attributes if name.endswith("_mask")}
    if not {*lengths.values()} <= {0, lengths["begin_mask"]}:
        yield "a mask has neither the length of begin_mask nor 0"


def _of_frames(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    window, size = _dims(values[1]), _numbers(values[2])
    if window and size and window[0].value is not None and not 0 < window[0].value <= size[0]:
        yield "its window is empty or longer than a frame"


def _of_reduction(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield which axes are removed that a release may not know: those of a scalar, or those that an input names."""
    axes = _numbers(values[1])
    if axes and _dims(values[0]) == ():
        if getattr(op, "keep_dims", False):
            yield "it keeps an axis of a scalar"
        if -1 in axes:
            yield "it reduces axis -1 of a scalar"
        if not {*axes} <= {0, -1}:
            yield "it reduces an axis of a scalar that is neither 0 nor -1"
    if axes is None and values[1] is not None and not getattr(op, "keep_dims", False):
        is_single = values[1].shape.static in ((), (1,))
        yield f"an input names the {'axis' if is_single else 'axes'} that it removes"


def _dims(value: Value | None) -> tuple[Dim, ...] | None:
    return None if value is None else value.shape.dims


def _is_long(dim: Dim) -> bool:
    return dim.value is not None and dim.value > 1


def _numbers(value: Value | None) -> list[int] | None:
    """Return the contents of an input of integers, or None if they are unknown."""
    data = None if value is None else value.exact
    return None if data is None or data.dtype.kind not in "iu" else np.ravel(data).tolist()


def _of_blocks(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether Col2Im counts other blocks than its data has: a window longer than the image has a huge number."""
    sizes, kernel, data = _numbers(values[1]), _numbers(values[2]), _dims(values[0])
    steps, gaps, begins, ends = (getattr(op, name) for name in ("strides", "dilations", "pads_begin", "pads_end"))
    if not sizes or not kernel or not data or data[-1].value is None or not all(steps):
        return
    spans = [gap * (length - 1) + 1 for gap, length in zip(gaps, kernel)]
    rooms = [size + begin + end - span for size, begin, end, span in zip(sizes, begins, ends, spans)]
    counts = [room % _WRAP // step + 1 for room, step in zip(rooms, steps)]
    if math.prod(counts) % _WRAP != data[-1].value:
        yield "its data has another number of blocks than it counts"


def _of_bits(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a step of the kernel for bits lies in the padding: it computes up to 4 columns at a time."""
    dims, width = _dims(values[0]), None if values[1] is None else values[1].shape.static
    if dims is not None and len(dims) > 1 and dims[1].value != 1:
        yield "it has several channels"
    columns = dims[-1].value if dims else None
    step, gap, begin, end = ((0, *getattr(op, name))[-1] for name in ("strides", "dilations", "pads_begin", "pads_end"))
    if columns is None or not width or step < 1 or getattr(op, "auto_pad", "explicit") != "explicit":
        return
    span = (width[-1] - 1) * gap
    count = (columns + begin + end - span - 1) // step + 1
    at_once = min(_AT_ONCE, count)
    if count > 0 and max(begin, (count - count % at_once - 1) * step + span - columns - begin + 1) > at_once:
        yield "a step of its kernel lies in the padding"


def _of_sequence(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    yield from _of_cell(op, values)
    batches = [dims[0].value for value in values[: _MAX_COMPARED - 1] if (dims := _dims(value))]
    if None in batches and {*batches} != {None}:
        yield "it knows the batch of one input, but not of another"


_RELATIONS: Final[Mapping[str, Callable[[Op, Sequence[Value | None]], Iterator[str]]]] = {
    "Squeeze": _of_squeeze,
    "Einsum": _of_einsum,
    "ScatterUpdate": _of_updates,
    "ScatterNDUpdate": _of_updates,
    "GatherND": _of_batches,
    "SoftMax": _of_softmax,
    "LRN": _of_norm,
    "FakeQuantize": _of_ranges,
    "Concat": _of_joining,
    "GroupConvolution": _of_groups,
    "ConvolutionBackpropData": _of_output_shape,
    "GroupConvolutionBackpropData": _of_deconvolution,
    "Interpolate": _of_interpolation,
    "AvgPool": _of_average,
    **dict.fromkeys(("RNNCell", "GRUCell", "LSTMCell"), _of_cell),
    **dict.fromkeys(("RNNSequence", "GRUSequence", "LSTMSequence"), _of_sequence),
    "Col2Im": _of_blocks,
    "BinaryConvolution": _of_bits,
    "MatMul": _of_product,
    "ScaledDotProductAttention": _of_attention,
    "StridedSlice": _of_slicing,
    "STFT": _of_frames,
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCTIONS), _of_reduction),
}

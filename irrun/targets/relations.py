"""What releases compare in a layer beyond types, ranks and dims: relations between inputs, axes and attributes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from irrun.inference.layer import input_at
from irrun.model import Layer
from irrun.opdef import Op, Value
from irrun.targets import kernels, sequences
from irrun.targets.kernels import SPATIAL, differ, dims_of, numbers_of
from irrun.types import Dim, ElementType

__all__ = ["of_operation"]

_FEW_COLUMNS: Final = 5  # the fewest columns that each release multiplies without converting weights to bf16
_FEW_ROWS: Final = 5  # the fewest rows that the plugin multiplies with compressed weights by its usual kernel
_JOINED: Final = ("GroupNormalization", "IsFinite", "IsInf", "IsNaN")  # some releases join them with what reads them
_SLOW: Final = ("Sigmoid", "Tanh")  # behind them, another kernel computes a depthwise convolution
_MAX_COMPARED: Final = 4  # the most inputs of a layer, and the most dims of each, that are compared with each other
_MOST_CELLS: Final = 1 << 31  # the most cells of an image for which memory may hold the boxes
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
    if len(inputs) > SPATIAL:
        yield from _of_dims(inputs[:_MAX_COMPARED])
    if layer.attributes.get("auto_broadcast") == "pdpd":
        for to, placed in _PLACED.get(layer.type, ((0, 1),)):
            yield from _of_pdpd(layer, op, values, to, placed)
    if layer.type == "PriorBoxClustered" and len(layer.attributes.keys() & {"width", "height"}) == 1:
        yield "it has width or height alone"
    state, size = dims_of(values[1]), getattr(op, "hidden_size", None)
    if size is not None and state and state[-1].value not in (None, size):
        yield "hidden_size is not the length of its state"
    if layer.type in _JOINED:
        yield f"a {follower} reads it" if follower else "several layers read it"
    if layer.type == "GroupConvolution" and follower not in _SLOW:
        yield from kernels.of_depthwise(op, values)
    if (of := _RELATIONS.get(layer.type)) is not None and op is not None:
        yield from of(op, values)


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
        first, second = dims_of(a), dims_of(b)
        if first is not None and second is not None and len(first) == len(second):
            for axis, pair in enumerate(zip(first[:_MAX_COMPARED], second)):
                if differ(*pair):
                    yield f"inputs {i} and {j} differ in dim {axis}"


def _of_pdpd(layer: Layer, op: Op | None, values: Sequence[Value | None], to: int, placed: int) -> Iterator[str]:
    """Yield where the dims of an input are, which the attribute axis places among those of another.

    Releases take axis 0 if the attribute is missing, and look for dims that do not broadcast there.
    """
    dims, less, axis = dims_of(values[to]), dims_of(values[placed]), getattr(op, "axis", 0)
    if axis is None or dims is None or less is None:
        return
    if not less and axis > 0:
        yield f"axis places a scalar {'at axis 1' if axis == 1 else 'behind axis 1'}"
        if axis == len(dims):
            yield "axis places a scalar behind the last dim"
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


def _of_squeeze(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims, axes = dims_of(values[0]), numbers_of(values[1])
    if dims and axes is not None and any(-len(dims) <= at < len(dims) and _is_long(dims[at]) for at in axes):
        yield "an axis to remove is longer than 1"


def _of_broadcast(_: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether an empty value is repeated: releases broadcast it as a sum would, or divide by 0."""
    data, target = None if values[0] is None else values[0].shape.static, numbers_of(values[1])
    if data is None or target is None or 0 not in data or values[2] is not None:
        return
    if len(target) > len(data) or any(a == 1 != b for a, b in zip(data[::-1], target[::-1])):
        yield "it repeats an empty input"


def _of_gather(_: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether an index lies outside of an empty input: the process ends then."""
    data, indices, axis = None if values[0] is None else values[0].shape.static, *map(numbers_of, values[1:3])
    if not data or 0 not in data or not indices or not axis or not -len(data) <= axis[0] < len(data):
        return
    if not all(-data[axis[0]] <= at < data[axis[0]] for at in indices):
        yield "an index lies outside of an empty input"


def _of_pads(_: Op, values: Sequence[Value | None]) -> Iterator[str]:
    data, *pads = (dims_of(value) for value in values[:3])
    if data is not None and any(of and (of[0].value or 0) > len(data) for of in pads):
        yield "it has more pads than axes"


def _of_elements(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether GatherElements has indices of another length than its data along an axis other than its own."""
    data, indices, axis = dims_of(values[0]) or (), dims_of(values[1]) or (), int(getattr(op, "axis", 0))
    beside = [at for at in range(len(data)) if at != axis % max(len(data), 1)]
    if len(data) == len(indices) and any(differ(data[at], indices[at]) for at in beside):
        yield "its indices differ in length from its data"


def _of_convolution(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether releases refuse the pads of auto_pad, or those that auto_pad replaces because of their number.

    Releases since 2023.3 compute the pads of auto_pad when they read, and check them when they compile. Those of an
    axis of 0 are too few for a window.
    """
    dims, counts = dims_of(values[0]), {len(getattr(op, name)) for name in ("pads_begin", "pads_end")}
    windows = zip((dims or ())[SPATIAL:], (dims_of(values[1]) or ())[-len(dims or ()) + SPATIAL :])
    if getattr(op, "auto_pad", "").startswith("same") and any(a.value == 0 and b.lo > 1 for a, b in windows):
        yield "auto_pad pads an axis of 0"
    if dims and getattr(op, "auto_pad", "explicit") != "explicit" and counts - {0, len(dims) - SPATIAL}:
        yield "its unused pads are neither empty nor one for each spatial axis"


def _of_slice(_: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a number of the slice is an input: the process ends. Axes may be an input if they are i32."""
    axes, data = values[5], dims_of(values[0]) or ()
    if axes is None or len(data) <= SPATIAL:
        return
    is_open = None in map(numbers_of, values[2:5]) if axes.exact is not None else axes.type.name != "i32"
    if is_open:
        yield "it slices data of more than 2 dims, not by constants alone"


def _of_reshape(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether readers cannot infer a dim because another one is 0, although no known dim of the data is."""
    dims, shape = dims_of(values[0]) or (), numbers_of(values[1]) or ()
    copied = () if not getattr(op, "special_zero", False) else dims
    lengths = [copied[at] if not n and at < len(copied) else Dim(n) for at, n in enumerate(shape) if n >= 0]
    if len(lengths) < len(shape) and any(n.value == 0 for n in lengths) and all(dim.value != 0 for dim in dims):
        yield "its shape has a dim 0, and one to infer"


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
        dims = dims_of(value)
        if dims is not None and "." not in text:
            for label, dim in zip(text, dims):
                lengths.setdefault(label, set()).update(() if dim.value is None else (dim.value,))
    if any(len(of) > 1 for of in lengths.values()):
        yield "a label has two lengths"


def _of_joining(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims, axis = dims_of(values[0]), getattr(op, "axis", None)
    if dims and axis is not None and any(dim.value != 1 for dim in dims[: axis % len(dims)]):
        yield "an axis before that of joining is longer than 1"
    if dims and axis is not None and -len(dims) <= axis < len(dims) and dims[axis].value == 1:
        yield "the axis of joining is 1 long in input 0"


def _of_groups(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    filters = dims_of(values[1])
    if filters and filters[0].value == 1 and any(dim.value != 1 for dim in filters[1:3]):
        yield "it has one group of several channels"


def _of_deconvolution(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    yield from _of_groups(op, values)
    yield from kernels.of_output_shape(op, values)


def _of_updates(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether the updates of a scatter have the rank that its data and indices ask for."""
    ranks = [None if value is None else value.shape.rank for value in values[:3]]
    if None in ranks:
        return
    data, indices, updates = (rank or 0 for rank in ranks)
    missing = 1
    if type(op).type == "ScatterNDUpdate":
        last = (dims_of(values[1]) or (Dim.unknown(),))[-1].value
        if last is None:
            return
        missing = 1 + last
    if updates != data + indices - missing:
        yield "its updates have another rank than its data and indices ask for"


def _of_batches(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether GatherND would have to broadcast its batches, which no release does."""
    data, indices, batches = dims_of(values[0]), dims_of(values[1]), getattr(op, "batch_dims", 0)
    if data and indices and any(map(differ, data[:batches], indices[:batches])):
        yield "its batches differ in length"


def _of_softmax(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims, axis = dims_of(values[0]) or (), int(getattr(op, "axis", 0))
    if -len(dims) <= axis < len(dims) and any(dim.value != 1 for dim in dims[axis % len(dims) + 1 :]):
        yield "an axis behind that of its sums is longer than 1"


def _of_product(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    dims = dims_of(values[1])
    if dims and dims[-1].value is not None and dims[-1].value < _FEW_COLUMNS:
        yield f"input 1 has fewer than {_FEW_COLUMNS} columns"
    rows = None if values[0] is None else values[0].shape.static
    if rows is not None and math.prod(rows[:-1]) < _FEW_ROWS:
        yield f"input 0 has fewer than {_FEW_ROWS} rows"


def _of_slicing(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a mask has a length that readers do not accept: that of begin_mask, or 0."""
    data, begins = dims_of(values[0]), dims_of(values[1])
    if data is not None and begins and (begins[0].value or 0) > len(data) + getattr(op, "new_axis_mask", ()).count(1):
        yield "it begins along more axes than input 0 and new axes are"
    lengths = {name: len(getattr(op, name)) for name in type(op).attributes if name.endswith("_mask")}
    if not {*lengths.values()} <= {0, lengths["begin_mask"]}:
        yield "a mask has neither the length of begin_mask nor 0"
    starts, masks = numbers_of(values[1]) or (), [getattr(op, name) for name in ("begin_mask", "shrink_axis_mask")]
    shape = None if values[0] is None else values[0].shape.static
    if 1 in (*getattr(op, "new_axis_mask", ()), *getattr(op, "ellipsis_mask", ())):
        return
    if any(flags == [1, 1] and not -dim <= at < dim for dim, at, *flags in zip(shape or (), starts, *masks)):
        yield "an axis to remove begins outside of input 0"


def _of_priors(_: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether OpenVINO computes boxes for a constant size that no image has, so that the process ends."""
    size = numbers_of(values[0]) or ()
    if any(n < 0 for n in size) or math.prod(size) > _MOST_CELLS:
        yield "it makes boxes for an image that is too large"


def _of_frames(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    window, size = dims_of(values[1]), numbers_of(values[2])
    if window and size and window[0].value is not None and not 0 < window[0].value <= size[0]:
        yield "its window is empty or longer than a frame"


def _of_reduction(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield which axes are removed that a release may not know: those of a scalar, or those that an input names."""
    axes = numbers_of(values[1])
    if axes and dims_of(values[0]) == ():
        if getattr(op, "keep_dims", False):
            yield "it keeps an axis of a scalar"
        if -1 in axes:
            yield "it reduces axis -1 of a scalar"
        if not {*axes} <= {0, -1}:
            yield "it reduces an axis of a scalar that is neither 0 nor -1"
    if axes is None and values[1] is not None and not getattr(op, "keep_dims", False):
        is_single = values[1].shape.static in ((), (1,))
        yield f"an input names the {'axis' if is_single else 'axes'} that it removes"


def _is_long(dim: Dim) -> bool:
    return dim.lo > 1


def _of_blocks(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether Col2Im counts other blocks than its data has: a window longer than the image has a huge number."""
    sizes, kernel, data = numbers_of(values[1]), numbers_of(values[2]), dims_of(values[0])
    steps, gaps, begins, ends = (getattr(op, name) for name in ("strides", "dilations", "pads_begin", "pads_end"))
    if not sizes or not kernel or not data or data[-1].value is None or not all(steps):
        return
    spans = [gap * (length - 1) + 1 for gap, length in zip(gaps, kernel)]
    rooms = [size + begin + end - span for size, begin, end, span in zip(sizes, begins, ends, spans)]
    counts = [room % _WRAP // step + 1 for room, step in zip(rooms, steps)]
    if math.prod(counts) % _WRAP != data[-1].value:
        yield "its data has another number of blocks than it counts"


_RELATIONS: Final[Mapping[str, Callable[[Op, Sequence[Value | None]], Iterator[str]]]] = {
    "PriorBox": _of_priors,
    "PriorBoxClustered": _of_priors,
    "Broadcast": _of_broadcast,
    "Convolution": _of_convolution,
    "Gather": _of_gather,
    "Pad": _of_pads,
    "GatherElements": _of_elements,
    "GatedDeltaNet": sequences.of_delta,
    "SliceScatter": _of_slice,
    "Squeeze": _of_squeeze,
    "Reshape": _of_reshape,
    "Einsum": _of_einsum,
    "ScatterUpdate": _of_updates,
    "ScatterNDUpdate": _of_updates,
    "GatherND": _of_batches,
    "SoftMax": _of_softmax,
    "LRN": kernels.of_norm,
    "FakeQuantize": kernels.of_ranges,
    "Concat": _of_joining,
    "GroupConvolution": _of_groups,
    "ConvolutionBackpropData": kernels.of_output_shape,
    "GroupConvolutionBackpropData": _of_deconvolution,
    "Interpolate": kernels.of_interpolation,
    "AvgPool": kernels.of_average,
    **dict.fromkeys(("RNNCell", "GRUCell", "LSTMCell"), sequences.of_cell),
    **dict.fromkeys(("RNNSequence", "GRUSequence", "LSTMSequence"), sequences.of_sequence),
    "Col2Im": _of_blocks,
    "BinaryConvolution": kernels.of_bits,
    "MatMul": _of_product,
    "ScaledDotProductAttention": sequences.of_attention,
    "StridedSlice": _of_slicing,
    "STFT": _of_frames,
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCTIONS), _of_reduction),
}

"""What the pages of operations that move elements leave open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs

__all__ = ["BEHAVIOURS"]


def _axes_of_numpy(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Broadcast, if the third input is connected in mode numpy."""
    return op.mode == "numpy" and inputs[2:3] not in ([], [None])


def _boolean_sum(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements, if booleans are added."""
    return inputs[0] is not None and inputs[0].dtype == np.bool_


def _sum_overflow(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Sums or products of integers of the first input's type that this type cannot hold."""
    data = inputs[0]
    if data is None or data.dtype.kind not in "iu":
        return False
    if any(array is None and not port.optional for port, array in zip(op.inputs, inputs)):
        return False
    same = [array is not None and port.type == op.inputs[0].type for port, array in zip(op.inputs, inputs)]
    wide = [np.asarray(array, np.float64) if of_type else array for array, of_type in zip(inputs, same)]
    exact, limits = op.run(*wide), np.iinfo(data.dtype)
    return (exact < limits.min) | (exact > limits.max)


def _unbatched(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Col2Im, if the input has no batch axis."""
    return inputs[0] is not None and inputs[0].ndim == 2


def _gathered_outside(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """What Gather takes at an index outside the range of the page. Gather-8 gives 0 there, but not of strings."""
    data, indices, axis = inputs
    if data is None or indices is None or axis is None:
        return False
    if op.since == 8 and data.dtype != object and data.dtype.kind != "U":
        return False
    place, batch = int(axis.item()) % data.ndim, op.batch_dims + (indices.ndim if op.batch_dims < 0 else 0)
    count = data.shape[place]
    outside = (indices < (-count if op.since == 8 else 0)) | (indices >= count)
    outer, inner = (1,) * (place - batch), (1,) * (data.ndim - place - 1)
    return outside.reshape(indices.shape[:batch] + outer + indices.shape[batch:] + inner)


def _negative_index(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Elements that GatherElements takes at a negative index."""
    indices = inputs[1]
    return indices is not None and indices < 0


def _negative_tuple(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Slices that GatherND-5 takes at a tuple with a negative index."""
    data, indices = inputs
    if data is None or indices is None:
        return False
    batch = op.batch_dims
    dims = np.broadcast_shapes(data.shape[:batch], indices.shape[:batch])
    negative = np.broadcast_to((indices < 0).any(-1), dims + indices.shape[batch:-1])
    flat = ((math.prod(dims),) if batch else ()) + negative.shape[batch:]
    return negative.reshape(flat + (1,) * (data.ndim - batch - indices.shape[-1]))


def _replicated_indices(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of GatherND, if a batch dim of the indices is 1 and that of the data is not."""
    data, indices = inputs
    if data is None or indices is None:
        return False
    pairs = zip(data.shape[: op.batch_dims], indices.shape[: op.batch_dims])
    return any(of_indices == 1 != of_data for of_data, of_indices in pairs)


def _no_steps(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Beams of GatherTree in batch elements of no length."""
    lengths = inputs[2]
    return lengths is not None and (lengths < 1).reshape(1, -1, 1)


def _reflected_nothing(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Pad in mode reflect, if an axis has no element."""
    return op.pad_mode == "reflect" and inputs[0] is not None and 0 in inputs[0].shape


def _reversed_axes(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Reverse in mode index, if an axis is negative or listed twice."""
    axes = inputs[1]
    return op.mode == "index" and axes is not None and (bool((axes < 0).any()) or np.unique(axes).size < axes.size)


def _sequence_of_none(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Slices of ReverseSequence that have a length of 0."""
    data, lengths = inputs
    if data is None or lengths is None:
        return False
    return (lengths < 1).reshape([-1 if axis == op.batch_axis % data.ndim else 1 for axis in range(data.ndim)])


def _sequence_of_batches(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of ReverseSequence, if the lengths differ along the axis that is reversed."""
    data, lengths = inputs
    if data is None or lengths is None or op.batch_axis % data.ndim != op.seq_axis % data.ndim:
        return False
    return np.unique(lengths).size > 1


def _updated_twice(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Elements of the Scatter family that the order of updates decides: several have one place."""
    if getattr(op, "reduction", "none") not in ("none", "mean") or any(array is None for array in inputs):
        return False
    counts = _updates(op, *inputs)
    return counts > 1


def _updates(op: Any, data: Any, indices: Any, updates: Any, axis: Any = None) -> np.ndarray:
    """Return how many updates each element of ``data`` gets, in a shape that broadcasts with it."""
    if axis is None:  # ScatterNDUpdate
        counts = np.zeros(data.shape[: indices.shape[-1]], np.int64)
        np.add.at(counts, tuple(np.moveaxis(indices, -1, 0)), 1)
        return counts.reshape(counts.shape + (1,) * (data.ndim - counts.ndim))
    place = int(axis.item()) % data.ndim
    if op.type == "ScatterUpdate":
        counts = np.bincount(indices.ravel().astype(np.int64), minlength=data.shape[place])
        return counts.reshape([-1 if at == place else 1 for at in range(data.ndim)])
    counts = np.zeros(data.shape, np.int64)
    places: list[np.ndarray] = list(np.ix_(*map(np.arange, indices.shape)))
    places[place] = indices.astype(np.int64)
    np.add.at(counts, tuple(places), 1)
    return counts


def _negative_place(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of the Scatter family, if an index is negative."""
    return inputs[1] is not None and bool((inputs[1] < 0).any())


def _nan_in_order(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements, if the least or greatest of numbers with a NaN among them is wanted."""
    arrays = [array for array in inputs if array is not None and array.dtype.kind == "f"]
    return op.reduction in ("min", "max") and any(bool(np.isnan(array).any()) for array in arrays)


def _updates_of_another_type(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of SliceScatter, if the updates are of another type than the data."""
    data, updates = inputs[:2]
    return data is not None and updates is not None and data.dtype != updates.dtype


def _no_channels(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of ShuffleChannels, if there are no channels."""
    return inputs[0] is not None and inputs[0].shape[op.axis] == 0


def _split_of_nothing(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Split, if there are none along the axis."""
    data, axis = inputs
    return data is not None and axis is not None and data.shape[int(axis.item())] == 0


def _slice_of_contradictions(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of StridedSlice, if an entry is one about which the page contradicts itself or is silent.

    A bound equals the other, a backward slice goes to the end by a mask or begins before the axis, a stride is 0, two
    masks change the rank, or there are fewer entries than axes.
    """
    data, begin, end = inputs[:3]
    strides = inputs[3] if len(inputs) > 3 else None
    if data is None or begin is None or end is None:
        return False
    steps = np.ones(begin.size, np.int64) if strides is None else strides
    kinds = [
        [n for n, m in enumerate((op.ellipsis_mask, op.new_axis_mask, op.shrink_axis_mask)) if _bit(m, i)]
        for i in range(begin.size)
    ]
    of_axes = [kind for kind in kinds if kind in ([], [2])]
    if (steps == 0).any() or any(len(kind) > 1 for kind in kinds) or (len(of_axes) < data.ndim and [0] not in kinds):
        return True
    axis = 0
    for i, kind in enumerate(kinds):
        if kind == [0]:
            axis += data.ndim - len(of_axes)
        elif kind in ([], [2]):
            dim, bounds, axis = data.shape[axis], (int(begin[i]), int(end[i])), axis + 1
            masked = _bit(op.begin_mask, i), _bit(op.end_mask, i)
            if kind == [] and _contradicts(dim, bounds, int(steps[i]), masked):
                return True
    return False


def _contradicts(dim: int, bounds: tuple[int, int], step: int, masked: tuple[bool, bool]) -> bool:
    """Return whether the page of StridedSlice contradicts itself about a slice of ``dim`` elements."""
    begin, end = bounds
    if step < 0 and (masked[1] or (begin < -dim and not masked[0])):
        return True
    low, high = (min(max(n + dim if n < 0 else n, 0), dim) for n in bounds)
    return low == high and begin == end and not any(masked)


def _bit(mask: tuple[int, ...], i: int) -> bool:
    return i < len(mask) and mask[i] == 1


def _unique_slices(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of Unique, if slices of several elements are sorted."""
    data, axis = inputs[0], inputs[1] if len(inputs) > 1 else None
    return op.sorted and data is not None and axis is not None and data.size > data.shape[int(axis.item())]


def _negative_repeats(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Tile, if an axis is to be repeated less than 0 times."""
    return inputs[1] is not None and bool((inputs[1] < 0).any())


def _inferred_beside_zero(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Reshape, if another dim than the one to infer is 0: any number is right."""
    data, shape = inputs
    if data is None or shape is None or -1 not in shape:
        return False
    dims = [data.shape[i] if op.special_zero and n == 0 else int(n) for i, n in enumerate(shape)]
    return 0 in dims


def _squeezed_scalar(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """The scalar of Squeeze, if an axis of it is named."""
    data, axes = inputs[0], inputs[1] if len(inputs) > 1 else None
    return data is not None and axes is not None and data.ndim == 0 and axes.size > 0


def _unsqueezed_axes(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Unsqueeze, if no axis is named, or one twice."""
    data, axes = inputs
    if data is None or axes is None:
        return False
    rank = data.ndim + np.unique(axes).size
    return axes.size == 0 or np.unique(axes % rank).size < axes.size


def _one_shift(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of Roll, if a 1D shift of one entry meets another number of axes."""
    _, shift, axes = inputs
    return shift is not None and axes is not None and shift.shape == (1,) and axes.size != 1


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "axes-of-numpy": _axes_of_numpy,
    "boolean-sum": _boolean_sum,
    "gathered-outside": _gathered_outside,
    "inferred-beside-zero": _inferred_beside_zero,
    "negative-index": _negative_index,
    "nan-in-order": _nan_in_order,
    "negative-place": _negative_place,
    "negative-repeats": _negative_repeats,
    "negative-tuple": _negative_tuple,
    "no-channels": _no_channels,
    "no-steps": _no_steps,
    "one-shift": _one_shift,
    "reflected-nothing": _reflected_nothing,
    "replicated-indices": _replicated_indices,
    "reversed-axes": _reversed_axes,
    "sequence-of-batches": _sequence_of_batches,
    "sequence-of-none": _sequence_of_none,
    "slice-of-contradictions": _slice_of_contradictions,
    "split-of-nothing": _split_of_nothing,
    "squeezed-scalar": _squeezed_scalar,
    "sum-overflow": _sum_overflow,
    "unbatched": _unbatched,
    "unique-slices": _unique_slices,
    "unsqueezed-axes": _unsqueezed_axes,
    "updated-twice": _updated_twice,
    "updates-of-another-type": _updates_of_another_type,
}

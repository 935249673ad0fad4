"""Write poolings, pads, scatters, bags and Fourier transforms as older operations: one function for each operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import irrun.build as b
from irrun.build import Node, Output

__all__ = ["TRANSFORMS", "Rule", "Tensor", "ints", "like"]

Tensor = Node | Output
Rule = Callable[..., Tensor | Sequence[Tensor] | None]
"""Takes an operation and its inputs, and returns its outputs; None if older operations cannot say them."""


def like(x: Tensor, number: float) -> Node:
    """Return a number of the type of ``x``."""
    return b.constant(np.array(number), x.type)


def ints(x: Tensor) -> tuple[int, ...] | None:
    """Return the elements of a tensor of integers, or None if they are not known."""
    output = x.output if isinstance(x, Node) else x
    return output.value.ints()


def _dim(x: Tensor, axis: int) -> Tensor:
    """Return the dim of an axis as an i64 of shape [1]: a constant if it is known."""
    size = x.shape.dims[axis].value if x.shape.dims else None
    return b.Gather(b.ShapeOf(x), [axis], 0, opset=1) if size is None else b.constant(np.array([size], np.int64))


# ---------------------------------------------------------------------------------------------
# poolings and pads


def _average_pool(op: Any, x: Tensor) -> Tensor | None:
    """Return AvgPool-1, which has no dilations."""
    return _pooled(op, x, 1, "exclude_pad") if _is_dense(op) else None


def _max_pool(op: Any, x: Tensor) -> Sequence[Tensor] | None:
    """Return MaxPool-8, which lacks a rounding of MaxPool-14, or MaxPool-1, which has no dilations and one output."""
    if op.since > _MAX_POOL:
        return _pooled(op, x, _MAX_POOL, "dilations", "index_element_type", "axis")
    return _pooled(op, x, 1) if _is_dense(op) else None


_MAX_POOL: Final = 8
"""The operation set that gives MaxPool its dilations and its second output."""


def _is_dense(op: Any) -> bool:
    return all(dilation == 1 for dilation in getattr(op, "dilations", ()))


def _pooled(op: Any, x: Tensor, opset: int, *more: str) -> Node | None:
    """Return a pooling of an older operation set, with the attributes ``more`` beside those of each pooling.

    ``ceil_torch`` leaves out windows that begin in the pads at the end: for a known size, it is ``ceil`` or ``floor``.
    """
    build = getattr(b, op.type)
    own = {name: getattr(op, name) for name in type(op).attributes}
    common = {name: own[name] for name in ("kernel", "strides", "pads_begin", "pads_end", "auto_pad", *more)}
    if op.rounding_type != "ceil_torch":
        return build(x, **common, rounding_type=op.rounding_type, opset=opset)
    wanted = build(x, **own, opset=op.since)[0].shape.static
    nodes = [build(x, **common, rounding_type=rounding, opset=opset) for rounding in ("ceil", "floor")]
    return next((node for node in nodes if wanted is not None and node[0].shape.static == wanted), None)


def _pad(op: Any, x: Tensor, begins: Tensor, ends: Tensor, value: Tensor | None = None) -> Tensor | None:
    """Return Pad-1 and a StridedSlice for the negative pads, which remove elements. The pads must be known."""
    first, last = ints(begins), ints(ends)
    if first is None or last is None:
        return None
    pads = first, last
    outer, inner = ([[sign * max(sign * n, 0) for n in part] for part in pads] for sign in (1, -1))
    grown = b.Pad(x, *outer, value, pad_mode=op.pad_mode, opset=1)
    masks = [[int(n == 0) for n in part] for part in inner]
    return b.StridedSlice(
        grown, [-n for n in inner[0]], inner[1], [1] * len(inner[0]), begin_mask=masks[0], end_mask=masks[1],
        new_axis_mask=[], shrink_axis_mask=[], ellipsis_mask=[],
    )  # fmt: skip


def _squeeze(op: Any, x: Tensor, axes: Tensor | None = None) -> Tensor | None:
    """Return Squeeze-1 of the axes whose dim is 1. The shape must be known."""
    chosen, dims = () if axes is None else ints(axes), x.shape.static
    if chosen is None or dims is None:
        return None
    return b.Reshape(x, b.Squeeze(x, axes, allow_axis_skip=op.allow_axis_skip).shape.static, special_zero=False)


# ---------------------------------------------------------------------------------------------
# indices


def _from_front(indices: Tensor, size: Tensor, *, outside: bool = False) -> Tensor:
    """Return indices whose negative ones count from the end of an axis of ``size``, an i64 [1], as others.

    With ``outside``, negative indices before the first element stay as they are: outside the axis.
    """
    known = ints(indices)
    if indices.type.kind == "uint" or (known is not None and min(known, default=0) >= 0):
        return indices
    size = b.Squeeze(size, [0], opset=1) if indices.shape.rank == 0 else size
    turned = b.Add(indices, b.Convert(size, destination_type=indices.type))
    counts = b.Less(indices, like(indices, 0))
    if outside:
        counts = b.LogicalAnd(counts, b.GreaterEqual(turned, like(indices, 0)))
    return b.Select(counts, turned, indices)


def _one_hot(op: Any, indices: Tensor, depth: Tensor, on: Tensor, off: Tensor) -> Tensor:
    """Return OneHot-1, which has no element for negative indices."""
    if op.negative_indices_mode == "normalize":
        indices = _from_front(indices, depth)
    return b.OneHot(indices, depth, on, off, axis=op.axis, opset=1)


def _gather(op: Any, x: Tensor, indices: Tensor, axis: Tensor) -> Tensor | None:
    """Return Gather-7, which has no negative indices. The axis must be known.

    Gather-8 gives 0 for indices outside the axis. Gather-7 does not define them; irrun and OpenVINO give 0 as well.
    """
    known = ints(axis)
    if known is None or x.shape.rank is None:
        return None
    places = _from_front(indices, _dim(x, known[0]), outside=True)
    return b.Gather(x, places, axis, batch_dims=op.batch_dims, opset=7)


def _scatter_elements(op: Any, x: Tensor, indices: Tensor, updates: Tensor, axis: Tensor) -> Tensor | None:
    """Return ScatterElementsUpdate-3, which has no reduction and no negative indices."""
    known = ints(axis)
    if op.reduction != "none" or known is None:
        return None
    return b.ScatterElementsUpdate(x, _from_front(indices, _dim(x, known[0])), updates, axis, opset=3)


def _scatter_nd(op: Any, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor | None:
    """Return ScatterElementsUpdate over the rows of ``x`` that the tuples in ``indices`` name."""
    count, rank = indices.shape.dims[-1].value if indices.shape.dims else None, x.shape.rank
    if op.reduction == "none" or not count or rank is None or x.type.kind == "boolean":
        return None
    shape = b.ShapeOf(x)
    sizes = [_dim(x, axis) for axis in range(rank)]
    one = b.constant(np.array([1], np.int64))
    row, rows = (_product([one, *part]) for part in (sizes[count:], sizes[:count]))
    place: Tensor = b.constant(np.array([0], np.int64))
    for axis in range(count):
        column = b.Convert(b.Gather(indices, [axis], -1, opset=1), destination_type="i64")
        place = b.Add(b.Multiply(place, sizes[axis]), _from_front(column, sizes[axis]))
    places = b.Reshape(place, [-1, 1], special_zero=False)
    target = b.Concat(b.Gather(b.ShapeOf(places), [0], 0, opset=1), row, axis=0)
    spread = b.Reshape(updates, target, special_zero=False)
    if op.reduction == "sub":
        spread = b.Negative(spread)
    reduction = "sum" if op.reduction == "sub" else op.reduction
    table = b.Reshape(x, b.Concat(rows, row, axis=0), special_zero=False)
    scattered = b.ScatterElementsUpdate(table, b.Broadcast(places, target), spread, 0, reduction=reduction)
    return b.Reshape(scattered, shape, special_zero=False)


def _product(parts: Sequence[Tensor]) -> Tensor:
    return b.ReduceProd(b.Concat(*parts, axis=0), [0], keep_dims=True)


def _bag_of_offsets(
    op: Any, table: Tensor, indices: Tensor, offsets: Tensor, default: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor | None:  # fmt: skip
    """Return EmbeddingBagOffsetsSum, whose sums are divided by the sizes of the bags for a mean."""
    total = b.EmbeddingBagOffsetsSum(table, indices, offsets, default, weights)
    if op.reduction == "sum":
        return total
    rank = table.shape.rank
    if rank is None or table.type.kind != "float":
        return None
    bounds = b.Concat(offsets, b.Convert(_dim(indices, 0), destination_type=offsets.type), axis=0)
    following = b.StridedSlice(bounds, [1], [0], [1], begin_mask=[0], end_mask=[1], new_axis_mask=[],
                               shrink_axis_mask=[], ellipsis_mask=[])  # fmt: skip
    sizes = b.Maximum(b.Subtract(following, offsets), like(offsets, 1))
    divisors = b.Reshape(b.Convert(sizes, destination_type=table.type), [-1] + [1] * (rank - 1), special_zero=False)
    return b.Divide(total, divisors)


def _bag_of_rows(op: Any, table: Tensor, indices: Tensor, weights: Tensor | None = None) -> Tensor | None:
    """Return EmbeddingBagPackedSum, whose sums are divided by the length of a row for a mean."""
    total = b.EmbeddingBagPackedSum(table, indices, weights)
    if op.reduction == "sum":
        return total
    if table.type.kind != "float":
        return None
    return b.Divide(total, b.Convert(b.Maximum(_dim(indices, 1), [1]), destination_type=table.type))


# ---------------------------------------------------------------------------------------------
# Fourier transforms


def _transform_axes(x: Tensor, axes: Tensor, is_complex: bool) -> list[int] | None:
    """Return the axes of a transform from the front, or None if they are not known."""
    known, rank = ints(axes), x.shape.rank
    return None if known is None or rank is None else [axis % (rank - is_complex) for axis in known]


def _rdft(op: Any, x: Tensor, axes: Tensor, sizes: Tensor | None = None) -> Tensor | None:
    """Return the first half of DFT of numbers whose imaginary part is 0."""
    at = _transform_axes(x, axes, False)
    if not at:
        return None
    real = b.Unsqueeze(x, [-1])
    spectrum = b.DFT(b.Concat(real, b.Multiply(real, like(x, 0)), axis=-1), at, sizes)
    half = b.Add(b.Divide(_dim(spectrum, at[-1]), [2]), [1])
    return b.Slice(spectrum, [0], half, [1], [at[-1]])


def _irdft(op: Any, x: Tensor, axes: Tensor, sizes: Tensor | None = None) -> Tensor | None:
    """Return the real part of IDFT of a spectrum whose mirrored elements count twice. The sizes must be known."""
    at, given = _transform_axes(x, axes, True), None if sizes is None else ints(sizes)
    if not at or x.shape.dims is None or (sizes is not None and given is None):
        return None
    stored = x.shape.dims[at[-1]].value
    if stored is None:
        return None
    size = 2 * (stored - 1) if given is None or given[-1] == -1 else given[-1]
    factors = np.zeros(stored)
    factors[: size // 2 + 1] = 2
    factors[0] = 1
    if size % 2 == 0 and size // 2 < stored:
        factors[size // 2] = 1
    shape = [-1 if axis == at[-1] else 1 for axis in range(len(x.shape.dims))]
    whole = b.Multiply(x, b.constant(factors.reshape(shape), x.type))
    signal = b.IDFT(whole, at, [*([-1] * (len(at) - 1) if given is None else given[:-1]), size])
    return b.Squeeze(b.Gather(signal, [0], -1, opset=1), [-1], opset=1)


def _stft(op: Any, signal: Tensor, window: Tensor, size: Tensor, step: Tensor) -> Tensor | None:
    """Return RDFT of the frames that Gather takes from the signal. The sizes must be known."""
    sizes, steps, width = ints(size), ints(step), window.shape.dims[0].value if window.shape.dims else None
    if sizes is None or steps is None or width is None or signal.shape.rank is None:
        return None
    before = (sizes[0] - width) // 2
    padded = b.Pad(window, [before], [sizes[0] - width - before], like(window, 0), pad_mode="constant", opset=1)
    last = b.Squeeze(b.Subtract(_dim(signal, -1), [sizes[0] - 1]), [0], opset=1)
    begins = b.Unsqueeze(b.Range(0, last, steps[0], output_type="i64"), [1])
    frames = b.Gather(signal, b.Add(begins, np.arange(sizes[0])), -1, opset=1)
    spectra = b.RDFT(b.Multiply(frames, padded), [-1])
    if not op.transpose_frames:
        return spectra
    rank = signal.shape.rank
    return b.Transpose(spectra, [*range(rank - 1), rank, rank - 1, rank + 1])


TRANSFORMS: Final[Mapping[str, Rule]] = {
    "AvgPool-14": _average_pool,
    "AvgPool-16": _average_pool,
    "EmbeddingBagOffsets-15": _bag_of_offsets,
    "EmbeddingBagPacked-15": _bag_of_rows,
    "Gather-8": _gather,
    "IRDFT-9": _irdft,
    "MaxPool-8": _max_pool,
    "MaxPool-14": _max_pool,
    "OneHot-16": _one_hot,
    "Pad-12": _pad,
    "RDFT-9": _rdft,
    "ScatterElementsUpdate-12": _scatter_elements,
    "ScatterNDUpdate-15": _scatter_nd,
    "Squeeze-15": _squeeze,
    "STFT-15": _stft,
}
"""The decomposition of each version of these operations."""

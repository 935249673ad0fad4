"""Interpolate and GridSample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from irrun.export.call import Call
from irrun.export.operations.movement import as_i64
from irrun.export.registry import converts

__all__: list[str] = []

_COORDINATES: Final = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
"""The coordinates that ONNX has as well."""
_NEAREST: Final = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""The roundings that ONNX has as well."""


@converts("Interpolate", computes="f32")
def interpolate(call: Call) -> str:
    """Resize, or a product with the weights of each axis."""
    op = call.op
    call.require(call.outputs[0].type.kind == "float", "ONNX rounds resized integers in another way")
    rank = call.rank()
    if op.since == 1:
        call.require(not any((*op.pads_begin, *op.pads_end)) and 0 not in op.axes, "pads, or an axis of batches")
        return _by_weights(call, call.input(0), list(call.dims()), list(op.axes), call.known(1), _unit_vectors)
    last = 2 if op.since == 11 else 3
    axes = call.ints(last) if call.given(last) else list(range(rank))
    x = call.input(0)
    pads = [[*list(p)[:rank], *[0] * (rank - len(p))] for p in (op.pads_begin, op.pads_end)]
    if any(map(any, pads)):
        x = call("Pad", x, [*pads[0], *pads[1]])
    position = 1 if op.since == 11 or op.shape_calculation_mode == "sizes" else 2
    shape = call.value(0).shape.static
    if shape is not None and call.value(position).exact is not None and _is_special(call, axes, rank):
        alone = not op.antialias or op.mode != "linear" or _shrinks(op, shape, axes, call.known(position))
        call.require(alone, "antialiasing of an axis depends on another")
        return _by_weights(call, x, [n + a + b for n, a, b in zip(shape, *pads)], axes, call.known(position), _resized)
    reason = f"ONNX has no Resize of mode {op.mode} with these attributes, and the shape of the data is not known"
    call.require(not _is_special(call, axes, rank), reason, "export with --shape")
    return _resize(call, x, axes, position)


def _is_special(call: Call, axes: list[int], rank: int) -> bool:
    """Return whether ONNX or its runtimes have no Resize for the attributes of a layer."""
    op = call.op
    if op.coordinate_transformation_mode not in _COORDINATES or op.antialias or op.mode.endswith("pillow"):
        return True
    if op.mode == "nearest":
        return op.nearest_mode not in _NEAREST
    return rank != 4 or sorted(axes) != [2, 3]


def _resize(call: Call, x: str, axes: list[int], position: int) -> str:
    """Return Resize. An axis that is not named keeps its length."""
    op, rank = call.op, call.rank()
    mode = {"nearest": "nearest", "cubic": "cubic"}.get(op.mode, "linear")
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": op.coordinate_transformation_mode,
        "nearest_mode": op.nearest_mode if mode == "nearest" else None,
        "cubic_coeff_a": op.cube_coeff if mode == "cubic" else None,
    }
    known = call.value(position).exact
    if op.shape_calculation_mode == "scales":
        if known is not None:
            scales = np.ones(rank, np.float32)
            scales[axes] = known
            return call("Resize", x, None, scales, **attributes)
        given = call.cast(call.input(position), "f32")
        call.require(axes == list(range(rank)), "the scales are not constant")
        return call("Resize", x, None, given, **attributes)
    target = call.outputs[0].shape.static
    if target is not None:
        return call("Resize", x, None, None, list(target), **attributes)
    sizes = as_i64(call, position)
    rows = []
    for axis in range(rank):
        if axis in axes:
            place = axes.index(axis)
            rows.append(call("Slice", sizes, [place], [place + 1], [0]))
        else:
            rows.append(call.shape_of(x, axis, axis + 1))
    return call("Resize", x, None, None, call("Concat", *rows, axis=0), **attributes)


def _resized(op: Any, axis: int, count: int, values: np.ndarray) -> np.ndarray:
    """Return what the operation makes of the unit vectors of an axis [count, size]. ``values`` has one entry."""
    plain = type(op)(op.fitting, **{name: getattr(op, name) for name in op.attributes})
    plain.pads_begin = plain.pads_end = (0,)
    return plain.resize(np.eye(count, dtype=np.float32), values, [1])


def _unit_vectors(op: Any, axis: int, count: int, values: np.ndarray) -> np.ndarray:
    """Return the same for the old Interpolate, which resizes all its axes: the others have length 1."""
    shape = [count, *(count if n == axis else 1 for n in range(1, max(op.axes) + 1))]
    sizes = np.array([values[0] if n == axis else 1 for n in op.axes])
    return op.run(np.eye(count, dtype=np.float32).reshape(shape), sizes).reshape(count, -1)


def _by_weights(
    call: Call, x: str, shape: list[int], axes: list[int], values: np.ndarray, weigh: Callable[..., np.ndarray]
) -> str:
    """Return the product with the matrix of weights that ``weigh`` returns for each axis."""
    op, rank = call.op, len(shape)
    order = sorted(range(len(axes)), key=lambda n: -axes[n])
    for n in order:
        axis, count = axes[n], shape[axes[n]]
        weights = weigh(op, axis, count, values[n : n + 1])
        if np.array_equal(weights, np.eye(count)):
            continue
        if op.mode == "nearest":
            x = call("Gather", x, weights.argmax(0).astype(np.int64), axis=axis)
            continue
        moved = [*(a for a in range(rank) if a != axis), axis]
        last = axis == rank - 1
        x = x if last else call("Transpose", x, perm=moved)
        x = call("MatMul", x, weights.astype(call.type.dtype))
        x = x if last else call("Transpose", x, perm=[moved.index(a) for a in range(rank)])
    return x


def _shrinks(op: object, shape: Sequence[int], axes: list[int], values: np.ndarray) -> bool:
    """Return whether all axes or none become shorter: antialiasing then depends on one axis only."""
    by_scales = getattr(op, "shape_calculation_mode", "") == "scales"
    scales = [float(v) if by_scales else float(v) / max(shape[a], 1) for a, v in zip(axes, values.tolist())]
    return all(scale < 1 for scale in scales) or all(scale >= 1 for scale in scales)


@converts("GridSample", computes="f32")
def grid_sample(call: Call) -> str:
    """GridSample, whose modes have other names from operation set 20 on."""
    op, mode = call.op, call.op.mode
    if call.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    grid = call.input(1)
    grid = grid if call.value(1).type is call.value(0).type else call.cast(grid, call.type)
    return call(
        "GridSample", call.input(0), grid, mode=mode, padding_mode=op.padding_mode, align_corners=int(op.align_corners)
    )

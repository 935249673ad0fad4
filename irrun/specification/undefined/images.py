"""Behaviours of images: sampling and resizing."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined

__all__ = ["BEHAVIOURS"]


# ---------------------------------------------------------------------------------------------
# GridSample


def _either_corner(op: Any, inputs: Inputs) -> Undefined:
    """The page gives ``align_corners`` the meaning that it has everywhere else when it is not set."""
    if any(array is None for array in inputs):
        return True
    other = copy.copy(op)
    other.align_corners = not op.align_corners
    one, two = op.run(*inputs), other.run(*inputs)
    return (one != two) & ~((one != one) & (two != two))


def _places(op: Any, inputs: Inputs) -> list[np.ndarray] | None:
    """Return the coordinates y and x in pixels, each (batch, 1, height, width), or None if they are not known."""
    data, grid = inputs
    if data is None or grid is None:
        return None
    places = []
    for axis, size in ((1, data.shape[2]), (0, data.shape[3])):
        place = grid[:, None, ..., axis].astype(np.float64) + 1
        places.append(place * (size - 1) / 2 if op.align_corners else (place * size - 1) / 2)
    return places


def _half_way(op: Any, inputs: Inputs) -> Undefined:
    """The nearest pixel of a point in the middle between two, or so close to it that rounding decides."""
    places = _places(op, inputs)
    if op.mode != "nearest" or places is None:
        return op.mode == "nearest"
    return np.any([np.abs(place - np.floor(place) - 0.5) < _CLOSE for place in places], 0)


def _cubic_between(op: Any, inputs: Inputs) -> Undefined:
    """A bicubic value between pixels: the page does not give the coefficient of the curve."""
    places = _places(op, inputs)
    if op.mode != "bicubic" or places is None:
        return op.mode == "bicubic"
    return np.any([place != np.floor(place) for place in places], 0)


def _no_point(op: Any, inputs: Inputs) -> Undefined:
    """A coordinate that is NaN or infinite, or an image without pixels where a border pixel is read."""
    places = _places(op, inputs)
    if places is None:
        return True
    data = inputs[0]
    empty = data is not None and not data.shape[2] * data.shape[3] and op.padding_mode != "zeros"
    return empty | ~np.isfinite(places[0] + places[1])


# ---------------------------------------------------------------------------------------------
# Interpolate

_CLOSE: Final = 1e-4
"""The distance in pixels from a point of decision below which the rounding of f32 may decide."""


def _no_formula(op: Any, inputs: Inputs) -> Undefined:
    """Interpolate-1 names its modes only. Linear interpolation between corners that are kept has one meaning."""
    plain = not op.antialias and not any((*op.pads_begin, *op.pads_end))
    return not (op.mode == "linear" and op.align_corners and plain)


def _axes(op: Any, inputs: Inputs) -> tuple[list[int], list[float], list[int]] | None:
    """Return the axes to resize, the sizes or scales, and the shape of the padded data; None if it is not known."""
    data = inputs[0]
    old = op.since == 4
    number = 2 if old and op.shape_calculation_mode == "scales" else 1
    values, rest = inputs[number], inputs[3 if old else 2 :]
    if data is None or values is None or (rest and rest[0] is None):
        return None
    begin, end = ((*pads, *(0,) * data.ndim)[: data.ndim] for pads in (op.pads_begin, op.pads_end))
    padded = [size + b + e for size, b, e in zip(data.shape, begin, end)]
    axes = list(range(data.ndim)) if not rest or rest[0] is None else rest[0].tolist()
    return axes, values.astype(np.float64).tolist(), padded


def _other_axes(op: Any, inputs: Inputs) -> Undefined:
    """linear_onnx and the modes of Pillow along axes for which the page does not support them."""
    known = _axes(op, inputs)
    if op.mode not in ("linear_onnx", "bilinear_pillow", "bicubic_pillow") or known is None:
        return op.mode not in ("nearest", "linear", "cubic")
    axes, rank = set(known[0]), len(known[2])
    if op.mode == "linear_onnx":
        return (rank, axes) not in [(2, {0, 1}), (3, {0, 1, 2}), (4, {2, 3}), (5, {2, 3, 4})]
    return len(axes) != 2


def _same_size(op: Any, inputs: Inputs) -> Undefined:
    """tf_half_pixel_for_nn moves the points of an axis that keeps its size. OpenVINO leaves such an axis alone."""
    if op.coordinate_transformation_mode != "tf_half_pixel_for_nn":
        return False
    known = _axes(op, inputs)
    if known is None:
        return True
    axes, values, shape = known
    by_scale = op.shape_calculation_mode == "scales"
    kept = any(value == (1 if by_scale else shape[axis]) for axis, value in zip(axes, values))
    return kept or (op.mode == "nearest" and len(axes) < len(shape))


def _either_scale(op: Any, inputs: Inputs) -> Undefined:
    """The scale that is given is not the quotient of the sizes; or rounding decides which size it leads to."""
    if op.shape_calculation_mode != "scales":
        return False
    known = _axes(op, inputs)
    if known is None:
        return True
    sizes = [scale * known[2][axis] for axis, scale in zip(*known[:2])]
    return any(size != np.floor(size) for size in sizes)


def _antialiased(op: Any, inputs: Inputs) -> Undefined:
    """Interpolate-11 does not say how ``antialias`` works."""
    return op.antialias and not op.mode.endswith("pillow")


def _near_a_decision(op: Any, inputs: Inputs) -> Undefined:
    """A point so close to the place where the nearest pixel changes that rounding decides.

    For round_prefer_ceil, the text of the page rounds halves up, and its code rounds them to even numbers.
    """
    known = _axes(op, inputs)
    if op.mode != "nearest" or known is None:
        return op.mode == "nearest"
    axes, values, shape = known
    by_scale, rounds = op.shape_calculation_mode == "scales", op.nearest_mode.startswith("round")
    flags: bool | np.ndarray = False
    for axis, value in zip(axes, values):
        scale = np.float64(value if by_scale else value / max(1, shape[axis]))
        size = int(scale * shape[axis] + _CLOSE) if by_scale else int(value)
        with np.errstate(all="ignore"):
            place = _coordinates(op, np.arange(size), scale, size, shape[axis])
        near = place - np.floor(place) - 0.5 if rounds else place - np.round(place)
        close = (np.abs(near) < _CLOSE) & ((near != 0) | (op.nearest_mode == "round_prefer_ceil"))
        flags = flags | close.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
    return flags


def _coordinates(op: Any, x: np.ndarray, scale: np.float64, size: int, count: int) -> np.ndarray:
    """Return the coordinates in an axis of ``count`` elements that the formulas of the page give."""
    mode = op.coordinate_transformation_mode
    if mode == "asymmetric":
        return x / scale
    if mode == "align_corners":
        return x * (count - 1) / (size - 1) if size > 1 else 0.0 * x
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    return 0.0 * x if mode == "pytorch_half_pixel" and size == 1 else (x + 0.5) / scale - 0.5


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "antialiased": _antialiased,
    "cubic-between": _cubic_between,
    "either-corner": _either_corner,
    "either-scale": _either_scale,
    "half-way": _half_way,
    "near-a-decision": _near_a_decision,
    "no-formula": _no_formula,
    "no-point": _no_point,
    "other-axes": _other_axes,
    "same-size": _same_size,
}

"""Indices into an axis, and updates of elements: for GatherElements, GatherND and the Scatter family."""

from typing import Any

import numpy as np

from irrun.opdef import Site, Value
from irrun.ops._accumulate import wide
from irrun.types import Dim


def check_indices(at: Site, label: str, indices: np.ndarray | None, dim: Dim, *, negative: bool = True) -> None:
    """Refuse indices that are certainly outside ``dim``. None stands for unknown indices.

    If ``negative`` ones are allowed, they count from the end.
    """
    if indices is None or indices.size == 0:
        return
    least, most = int(indices.min()), int(indices.max())
    inside = least >= (-dim.hi if negative else 0) and most < dim.hi
    at.require(inside, label, f"index {most if most >= dim.hi else least} is outside an axis of {dim} elements")


def from_front(indices: np.ndarray, size: int, label: str, *, negative: bool = True) -> np.ndarray:
    """Return the indices as i64, counted from the front. Raises Refused for indices outside an axis of ``size``."""
    indices = indices.astype(np.int64)
    check_indices(Site(), label, indices, Dim(size), negative=negative)
    return np.where(indices < 0, indices + size, indices)


def along(shape: tuple[int, ...], count: int) -> list[np.ndarray]:
    """Return open index arrays for the first ``count`` axes of ``shape``. They select each element at its position."""
    return list(np.ix_(*(np.arange(n) for n in shape)))[:count]


def one_number(at: Site, label: str, axis: Value) -> None:
    """Refuse an ``axis`` that is neither a scalar nor a tensor of one element."""
    single = axis.rank in (None, 0, 1) and axis.shape.count().fits(1)
    at.require(single, label, f"axis is {axis.shape}, not a scalar or 1D of one element")


def scatter(
    data: np.ndarray, place: tuple[Any, ...], updates: np.ndarray, reduction: str, from_data: bool = True
) -> np.ndarray:
    """Return a copy of ``data`` with each update written to its ``place``, or reduced with the element there.

    ``place`` is a numpy index. Without ``from_data``, a reduction ignores what ``data`` holds in these places.
    """
    if reduction == "none":
        out = data.astype(object if object in (data.dtype, updates.dtype) else data.dtype)
        out[place] = updates  # the last of several updates to the same place wins
        return out
    if object in (data.dtype, updates.dtype):  # a reduction needs known Dims
        data, updates = data.astype(np.int64), updates.astype(np.int64)
    accumulate = (_LOGICAL if data.dtype == np.bool_ else _ARITHMETIC)[reduction]
    out, updates = (data.copy(), updates) if data.dtype == np.bool_ else (np.array(wide(data)), wide(updates))
    if not from_data:
        out[place] = _neutral(reduction, out.dtype)
    with np.errstate(all="ignore"):
        accumulate.at(out, place, updates)
    if reduction == "mean":
        counts = np.full(data.shape, 1 if from_data else 0)
        np.add.at(counts, place, 1)
        counts = np.maximum(counts, 1)
        out = out / counts.astype(out.dtype) if out.dtype.kind == "f" else out // counts.astype(out.dtype)
    return out.astype(data.dtype)


_ARITHMETIC = {
    "sum": np.add, "sub": np.subtract, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "mean": np.add,
}  # fmt: skip
_LOGICAL = {
    "sum": np.logical_or, "sub": np.logical_xor, "prod": np.logical_and, "min": np.logical_and, "max": np.logical_or,
}  # fmt: skip


def _neutral(reduction: str, dtype: np.dtype) -> bool | float | int:
    """Return the value from which a reduction starts where it ignores ``data``."""
    if reduction in ("sum", "mean"):
        return 0
    if reduction == "prod":
        return 1
    if dtype == np.bool_:
        return reduction == "min"
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    if reduction == "min":
        return np.inf if limits is None else limits.max
    return -np.inf if limits is None else limits.min

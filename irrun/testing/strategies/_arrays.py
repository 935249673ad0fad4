"""Strategies for shapes and tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from irrun.types import ELEMENT_TYPES, NF4, ElementType, text_array

__all__ = ["Dims", "broadcastable_shapes", "narrowed", "shapes", "tensors"]

Dims = tuple[int, ...]
Strategy = st.SearchStrategy


def shapes(min_rank: int = 0, max_rank: int = 4, min_dim: int = 0, max_dim: int = 5) -> Strategy[Dims]:
    """Return a strategy for shapes. They include the shape of a scalar, and empty shapes if ``min_dim`` is 0."""
    return st.lists(st.integers(min_dim, max_dim), min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def broadcastable_shapes(
    draw: st.DrawFn, min_rank: int = 0, max_rank: int = 4, min_dim: int = 0, max_dim: int = 5
) -> tuple[Dims, Dims]:
    """Return a strategy for pairs of shapes that numpy broadcasts to each other.

    Either shape may lack leading axes of the other, or have 1 where the other has another dim.
    """
    common = draw(shapes(min_rank, max_rank, min_dim, max_dim))
    return narrowed(draw, common, min_rank), narrowed(draw, common, min_rank)


def narrowed(draw: st.DrawFn, dims: Dims, min_rank: int = 0) -> Dims:
    """Draw a shape that broadcasts to ``dims``: without some leading axes, and with some dims replaced by 1."""
    kept = dims[draw(st.integers(0, len(dims) - min(min_rank, len(dims)))) :]
    return tuple(1 if draw(st.booleans()) else d for d in kept)


def tensors(
    element_type: str | ElementType | Strategy[str] = "f32",
    shape: Sequence[int] | Strategy[Dims] | None = None,
    min_value: float | None = None,
    max_value: float | None = None,
    special: bool = False,
) -> Strategy[np.ndarray]:
    """Return a strategy for arrays of an element type (``"bf16"``, ``"i4"``, ``"string"`` …).

    ``element_type`` and ``shape`` may be strategies; without ``shape``, the arrays have any of ``shapes()``. All values
    of the type within the bounds may occur. NaN and infinities occur only if ``special`` is true and there are no
    bounds. Raises ValueError for the dynamic type.
    """
    if isinstance(element_type, st.SearchStrategy):
        return element_type.flatmap(lambda name: tensors(name, shape, min_value, max_value, special))
    own = element_type if isinstance(element_type, ElementType) else ELEMENT_TYPES[element_type]
    dims = shapes() if shape is None else shape if isinstance(shape, st.SearchStrategy) else st.just(tuple(shape))
    if own.kind == "dynamic":
        raise ValueError("no array is of the element type dynamic; name another element type")
    if own.kind == "string":
        words = st.text(st.characters(codec="utf-8"), max_size=6)
        return dims.flatmap(lambda d: st.lists(words, min_size=math.prod(d), max_size=math.prod(d)).map(_words(d)))
    elements = _elements(own, min_value, max_value, special)
    plain = own.dtype
    if plain.isbuiltin == 2:  # of ml_dtypes: draw in a numpy type that holds all of its values, then convert
        plain = np.dtype(np.float32 if own.kind == "float" else np.int8 if own.kind == "int" else np.uint8)
    return dims.flatmap(lambda d: hnp.arrays(plain, d, elements=elements)).map(_cast(own.dtype))


def _words(dims: Dims) -> Callable[[list[str]], np.ndarray]:
    return lambda words: text_array(words, dims)


def _cast(dtype: np.dtype) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: array.astype(dtype, copy=False)


def _elements(own: ElementType, least: float | None, most: float | None, special: bool) -> Strategy[Any]:
    """Return a strategy for single elements: Python numbers or booleans."""
    if own.kind == "boolean":
        return st.booleans()
    if own.is_integer:
        top = (1 << (own.bits - (own.kind == "int"))) - 1
        bottom = -top - 1 if own.kind == "int" else 0
        return st.integers(
            bottom if least is None else max(math.ceil(least), bottom),
            top if most is None else min(math.floor(most), top),
        )
    if own.bits in (16, 32, 64) and own.name != "bf16":
        within = {
            "min_value": None if least is None else float(own.dtype.type(least)),
            "max_value": None if most is None else float(own.dtype.type(most)),
        }
        special = special and least is None and most is None
        return st.floats(**within, width=own.bits, allow_nan=special, allow_infinity=special)  # type: ignore[arg-type]
    if own.name == "nf4":
        codes = NF4
    else:
        codes = np.arange(1 << own.bits).astype(np.uint16 if own.bits == 16 else np.uint8).view(own.dtype)
        codes = codes.astype(np.float32)
    finite = codes[np.isfinite(codes)]
    allowed = finite[(finite >= (-np.inf if least is None else least)) & (finite <= (np.inf if most is None else most))]
    # the simplest values first, because hypothesis shrinks a failing example towards the first
    known = st.sampled_from(sorted(allowed.tolist(), key=lambda x: (abs(x), x < 0)))
    others = codes[~np.isfinite(codes)].tolist() if special and least is None and most is None else []
    return known | st.sampled_from(others) if others else known

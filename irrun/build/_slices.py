"""How the inputs and outputs of a loop are cut into slices, one per iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irrun.build._arguments import output_of
from irrun.opdef import Value
from irrun.types import PartialShape

__all__ = ["concatenated", "invariant", "map_fields", "sliced", "value_in_body"]


@dataclass(frozen=True, eq=False)
class sliced:  # noqa: N801  (a word of the language)
    """Mark an input of Loop or TensorIterator: each iteration reads the next slice along ``axis``.

    A slice has ``part_size`` elements on that axis. ``stride`` is the distance between slices, by default
    ``part_size``. To go backwards, use ``start=-1, end=0, stride=-1``.
    """

    value: Any
    axis: int = 0
    start: int = 0
    end: int = -1
    stride: int | None = None
    part_size: int = 1


@dataclass(frozen=True, eq=False)
class invariant:  # noqa: N801
    """Mark an input of Loop or TensorIterator: it is the same in every iteration."""

    value: Any


@dataclass(frozen=True, eq=False)
class concatenated:  # noqa: N801
    """Mark an output of a body: the values of all its iterations are concatenated along ``axis``.

    ``part_size`` is the dim of one value on that axis, by default the inferred dim.
    """

    value: Any
    axis: int = 0
    start: int = 0
    end: int = -1
    stride: int | None = None
    part_size: int | None = None


def value_in_body(item: Any, value: Value) -> Value:
    """Return the type and the shape that the body sees of ``value``, an input passed as ``item``."""
    shape = value.shape
    if isinstance(item, sliced) and shape.dims is not None:
        shape = shape.replace(item.axis, item.part_size)
    return Value(value.type, shape)


def map_fields(item: Any) -> dict[str, Any]:
    """Return the fields of a MapEntry that describe the slices of ``item``; none if it is not cut into slices."""
    if not isinstance(item, (sliced, concatenated)):
        return {}
    size = item.part_size
    if size is None:
        shape: PartialShape = output_of(item.value).shape
        size = (shape[item.axis].value if shape.dims else None) or 1
    stride = size if item.stride is None else item.stride
    return {"axis": item.axis, "start": item.start, "end": item.end, "stride": stride, "part_size": size}

"""Clamp: limit each element to a range.  Spec: activation/clamp-1."""

import math
from collections.abc import Callable

import numpy as np

from irrun.kernels.cast import is_float, limits, plain
from irrun.kernels.elementwise import clipping
from irrun.opdef import Formula, Site, Value, attr, op
from irrun.ops._unary import Unary, through_floats
from irrun.types import INF, Dim, ElementType


@op("Clamp", since=1, spec="activation/clamp-1")
class Clamp(Unary):
    """Compute ``min(max(x, min), max)``. For integers, ``min`` is rounded up and ``max`` down.

    C1  ``min`` is not more than ``max``.
    """

    min = attr.float()
    max = attr.float()
    carries = True
    exact = True

    def infer(self, at: Site, data: Value) -> Value:
        at.require(self.min <= self.max, "C1", f"min {self.min} is more than max {self.max}")
        return super().infer(at, data)

    # OpenVINO's CPU plugin replaces NaN by min
    def kernel(self, x: np.ndarray) -> np.ndarray:
        if is_float(x):
            return through_floats(
                lambda x: np.minimum(np.maximum(x, x.dtype.type(self.min)), x.dtype.type(self.max)), x
            )
        element_type = ElementType.of(x.dtype)
        assert element_type is not None
        low, high = self._bounds(*limits(element_type))
        wide = plain(x)
        return np.minimum(np.maximum(wide, wide.dtype.type(low)), wide.dtype.type(high))

    def fast(self, data: Value) -> Callable[..., np.ndarray]:
        return clipping(self.min, self.max, data.type.dtype)

    def formula(self) -> Formula:
        return "clamp", self.min, self.max

    def dims(self, x: Dim) -> Dim:
        low, high = self._bounds(-INF, INF)
        return x.max(low).min(high)

    def _bounds(self, least: int, most: int) -> tuple[int, int]:
        """Return ``min`` and ``max`` as integers between ``least`` and ``most``."""
        low = math.ceil(self.min) if self.min > least else least
        high = math.floor(self.max) if self.max < most else most
        return min(low, most), max(high, least)

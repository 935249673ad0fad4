"""Round: to the nearest integer.  Spec: arithmetic/round-5."""

from collections.abc import Callable

import numpy as np

from irrun.kernels.cast import is_float
from irrun.opdef import Value, attr, op
from irrun.ops._unary import Unary


@op("Round", since=5, spec="arithmetic/round-5")
class Round(Unary):
    """Round to the nearest integer. ``mode`` decides between two integers that are equally near."""

    mode = attr.choice("half_to_even", "half_away_from_zero", default="half_to_even")
    exact = True

    def fast(self, data: Value) -> Callable[..., np.ndarray] | None:
        return np.rint if self.mode == "half_to_even" else None

    def kernel(self, x: np.ndarray) -> np.ndarray:
        if not is_float(x):
            return x
        if self.mode == "half_to_even":
            return np.rint(x)
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones((), x.dtype), x), whole)

"""Elu: exponential linear unit.  Spec: activation/elu-1."""

from collections.abc import Callable

import numpy as np

from irrun.kernels.elementwise import elu, has_elu, in_blocks
from irrun.opdef import Site, Value, attr, op
from irrun.ops._unary import Unary


@op("Elu", since=1, spec="activation/elu-1")
class Elu(Unary):
    """Compute x where x is positive, and ``alpha * (exp(x) - 1)`` elsewhere.

    C1  ``alpha`` is not negative.
    """

    alpha = attr.float()
    types = {"T": "float"}

    def infer(self, at: Site, data: Value) -> Value:
        at.require(not self.alpha < 0, "C1", f"alpha is {self.alpha}, less than 0")
        return super().infer(at, data)

    def kernel(self, x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x, np.expm1(np.minimum(x, 0)) * x.dtype.type(self.alpha))

    def fast(self, data: Value) -> Callable[..., np.ndarray] | None:
        return in_blocks(elu(self.alpha)) if has_elu(data.type.dtype, self.alpha) else None

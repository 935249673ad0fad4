"""Elu: exponential linear unit.  Spec: activation/elu-1."""

from collections.abc import Callable

import numpy as np

from irrun.kernels.elementwise import elu, has_elu, in_blocks
from irrun.opdef import Value, attr, op
from irrun.ops._unary import Unary


@op("Elu", since=1, spec="activation/elu-1")
class Elu(Unary):
    """Compute x where x is positive, and ``alpha * (exp(x) - 1)`` elsewhere."""

    alpha = attr.float()
    # OpenVINO takes integers and booleans, too
    types = {"T": "boolean numeric"}

    def kernel(self, x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x, np.expm1(np.minimum(x, 0)) * x.dtype.type(self.alpha))

    def fast(self, data: Value) -> Callable[..., np.ndarray] | None:
        return in_blocks(elu(self.alpha)) if has_elu(data.type.dtype, self.alpha) else None

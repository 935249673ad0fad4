"""Selu: scaled exponential linear unit.  Spec: activation/selu-1."""

import numpy as np

from irrun.kernels.elementwise import elementwise, elu, has_elu, in_blocks, native
from irrun.opdef import Kernel, Op, Request, Site, Value, op, ports
from irrun.ops._unary import through_floats


@op("Selu", since=1, spec="activation/selu-1")
class Selu(Op):
    """Compute ``lambda * x`` where x is positive, and ``lambda * alpha * (exp(x) - 1)`` elsewhere.

    C1  ``alpha`` and ``lambda`` have one element each.
    """

    per_element = 1
    inputs = ports(data="T", alpha="T", **{"lambda": "T"})
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, alpha: Value, lambda_: Value) -> Value:
        for name, value in ("alpha", alpha), ("lambda", lambda_):
            at.require(value.shape.count().fits(1), "C1", f"{name} is {value.shape}, not a single element")
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        alpha, scale = (None if value is None else value.exact for value in request.inputs[1:])
        data = request.inputs[0]
        if data is None or not native(data) or alpha is None or scale is None:
            return None
        factors = alpha.item(), scale.item()
        return elementwise(in_blocks(elu(*factors)), data) if has_elu(data.type.dtype, *factors) else None

    def run(self, data: np.ndarray, alpha: np.ndarray, lambda_: np.ndarray) -> np.ndarray:
        return through_floats(_selu, data, alpha.reshape(()), lambda_.reshape(()))


def _selu(x: np.ndarray, alpha: np.ndarray, lambda_: np.ndarray) -> np.ndarray:
    return lambda_ * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))

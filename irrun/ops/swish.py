"""Swish: x times its sigmoid.  Spec: activation/swish-4."""

import numpy as np

from irrun.kernels.elementwise import elementwise, in_blocks, native, swish
from irrun.opdef import Kernel, Op, Refused, Request, Site, Value, op, opt, ports
from irrun.ops._unary import through_floats


@op("Swish", since=4, spec="activation/swish-4")
class Swish(Op):
    """Compute ``x / (1 + exp(-beta * x))``. ``beta`` is 1 by default.

    C1  ``beta`` is a scalar.
    C2  ``beta`` is not negative.
    """

    per_element = 2
    inputs = ports(data="T", beta=opt("T"))
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, beta: Value | None = None) -> Value:
        at.require(beta is None or beta.rank in (None, 0), "C1", f"beta is {beta and beta.shape}, not a scalar")
        exact = None if beta is None else beta.exact
        at.require(exact is None or not exact < 0, "C2", f"beta is {exact}, less than 0")
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        data, beta = request.first(2)
        if not native(data) or (beta is not None and beta.data is None):
            return None
        factor: float = 1 if beta is None or beta.data is None else beta.data.item()
        return elementwise(in_blocks(swish(factor)), data)

    def run(self, data: np.ndarray, beta: np.ndarray | None = None) -> np.ndarray:
        if beta is None:
            return through_floats(lambda x: x / (1 + np.exp(-x)), data)
        if beta < 0:
            raise Refused(f"beta is {beta}, less than 0", "C2")
        return through_floats(lambda x, beta: x / (1 + np.exp(-beta * x)), data, beta)

"""Select: elements of one tensor or the other, by a mask.  Spec: condition/select-1."""

import numpy as np

from irrun.kernels.elementwise import elementwise, select
from irrun.opdef import Kernel, Request, Site, Value, op, ports
from irrun.ops._elementwise import Elementwise
from irrun.types import Dim, as_dim


@op("Select", since=1, spec="condition/select-1")
class Select(Elementwise):
    """``then`` where ``cond`` is true, ``else`` where it is not.

    C1  none: all three shapes are the same.
    C2  numpy: of the dims aligned from the right, all are equal except for those that are 1.
    C3  pdpd: ``else`` and ``cond``, without trailing 1s, lie within ``then`` from ``axis`` on; each dim is 1 or
        that of ``then``. ``axis`` is -1 (they end where ``then`` ends) or more, and neither has a higher rank.
    """

    inputs = ports(cond="boolean", then="T", **{"else": "T"})
    carries = True

    def infer(self, at: Site, cond: Value, then: Value, otherwise: Value) -> Value:
        shape = self.broadcast(at, then.shape, otherwise.shape, ("then", "else"))
        # OpenVINO: numpy mode broadcasts the result to cond, too, which the specification broadcasts one way
        shape = self.broadcast(at, shape, cond.shape, ("then", "cond"))
        return (otherwise if then.type.kind == "dynamic" else then).reshaped(shape)

    def prepare(self, request: Request) -> Kernel | None:
        cond, then, otherwise = values = [value for value in request.inputs if value is not None]
        of_bits = then.type.kind not in ("string", "dynamic") and then.type is otherwise.type
        if not of_bits or cond.type.kind == "dynamic" or not self.as_numpy(*values):
            return None
        return elementwise(select, *request.inputs)

    def run(self, cond: np.ndarray, then: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        cond, otherwise = self.aligned(then, cond), self.aligned(then, otherwise)
        if cond.dtype == object:
            return np.asarray(np.frompyfunc(_select, 3, 1)(cond, then, otherwise), object)
        return np.where(cond, then, otherwise)


def _select(cond: Dim | bool, then: Dim | int, otherwise: Dim | int) -> Dim:
    """Return the chosen Dim; where ``cond`` is not known, the union of both."""
    known = as_dim(cond).value
    return as_dim(then).union(as_dim(otherwise)) if known is None else as_dim(then if known else otherwise)

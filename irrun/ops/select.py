"""Select: elements of one tensor or the other, by a mask.  Spec: condition/select-1."""

import numpy as np

from irrun.kernels.elementwise import elementwise, select
from irrun.opdef import Kernel, Request, Site, Value, op, ports
from irrun.ops._elementwise import Elementwise
from irrun.types import Dim, as_dim


@op("Select", since=1, spec="condition/select-1")
class Select(Elementwise):
    """Take the element of ``then`` where ``cond`` is true, and that of ``else`` where it is false.

    C1  auto_broadcast none: all three shapes are equal.
    C2  auto_broadcast numpy: aligned from the right, the dims that are not 1 are equal.
    C3  auto_broadcast pdpd: each dim of ``else`` and ``cond``, without trailing 1s, is 1 or equals the dim of ``then``
        at the same place, counted from ``axis`` on. ``axis`` is at least -1, which aligns the last axes. The rank of
        ``else`` and ``cond`` is at most that of ``then``.
    """

    per_element = 0
    inputs = ports(cond="boolean", then="T", **{"else": "T"})
    carries = True

    def infer(self, at: Site, cond: Value, then: Value, otherwise: Value) -> Value:
        shape = self.broadcast(at, then.shape, otherwise.shape, ("then", "else"))
        # OpenVINO also broadcasts the result to cond in mode numpy; the specification broadcasts only cond
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
    """Return the chosen Dim, or the union of both if ``cond`` is unknown."""
    known = as_dim(cond).value
    return as_dim(then).union(as_dim(otherwise)) if known is None else as_dim(then if known else otherwise)

"""ReadValue: the value that a variable holds.  Spec: infrastructure/read-value-{3,6}."""

import numpy as np

from irrun.opdef import Op, Site, Value, Variables, attr, op, opt, ports
from irrun.types import PartialShape


@op("ReadValue", since=6, spec="infrastructure/read-value-6")
class ReadValue6(Op):
    """Return the value that Assign stored in an earlier run. Before that, return ``init_value``, or zeros without it.

    C1  The shape of ``init_value`` fits ``variable_shape``, and its type is ``variable_type``.
    """

    variable_id = attr.str()
    variable_type = attr.element_type()
    variable_shape = attr.shape()
    inputs = ports(init_value=opt("any"))
    needs = ("variables",)
    pure = False

    def infer(self, at: Site, init_value: Value | None = None, *, variables: Variables | None) -> Value:
        if init_value is not None:
            at.require(
                self.variable_type.kind == "dynamic" or init_value.type is self.variable_type,
                "C1",
                f"init_value is {init_value.type}, but variable_type is {self.variable_type}",
            )
            at.require(
                self.variable_shape.meet(init_value.shape) is not None,
                "C1",
                f"init_value is {init_value.shape}, but variable_shape is {self.variable_shape}",
            )
        if self.variable_type.kind == "dynamic" and init_value is not None:
            return Value(init_value.type, self.variable_shape)
        return Value(self.variable_type, self.variable_shape)

    def run(self, init_value: np.ndarray | None = None, *, variables: Variables) -> np.ndarray:
        held = variables.read(self.variable_id)
        if held is not None:
            return held
        return init_value if init_value is not None else _zeros(self.variable_shape, self.variable_type.dtype)


def _zeros(shape: PartialShape, dtype: np.dtype) -> np.ndarray:
    """Return the value of a variable without ``init_value``: zeros, with the least length along unknown dims."""
    return np.zeros([d.lo for d in shape.dims or ()], dtype)


@op("ReadValue", since=3, spec="infrastructure/read-value-3")
class ReadValue3(Op):
    """Return the value that Assign stored in an earlier run, and ``init_value`` before that."""

    variable_id = attr.str()
    inputs = ports(init_value="any")
    needs = ("variables",)
    pure = False

    def infer(self, at: Site, init_value: Value, *, variables: Variables | None) -> Value:
        return Value(init_value.type, init_value.shape)

    def run(self, init_value: np.ndarray, *, variables: Variables) -> np.ndarray:
        held = variables.read(self.variable_id)
        return init_value if held is None else held

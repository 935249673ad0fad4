"""Assign: store a value in a variable.  Spec: infrastructure/assign-{3,6}."""

import numpy as np

from irrun.opdef import Op, Site, Value, Variables, attr, op, ports


@op("Assign", since=6, spec="infrastructure/assign-6")
class Assign6(Op):
    """Store a value in a variable, which ReadValue returns from the next run on. The output is the value itself."""

    variable_id = attr.str()
    checked = False
    inputs = ports(new_value="any")
    outputs = None  # some files declare the output port, others do not
    needs = ("variables",)
    pure = False

    def infer(self, at: Site, new_value: Value, *, variables: Variables | None) -> tuple[Value, ...]:
        return (Value(new_value.type, new_value.shape),) * at.outputs

    def run(self, new_value: np.ndarray, *, variables: Variables) -> tuple[np.ndarray, ...]:
        variables.assign(self.variable_id, new_value)
        return (new_value,)


@op("Assign", since=3, spec="infrastructure/assign-3")
class Assign3(Assign6):
    """Store a value in a variable, which ReadValue returns from the next run on. The output is the value itself."""

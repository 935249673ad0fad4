"""Identity: its input.  Spec: activation/identity-16."""

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports


@op("Identity", since=16, spec="activation/identity-16")
class Identity(Op):
    """Return the input itself, of any type."""

    inputs = ports(input="T")
    types = {"T": "any"}

    def infer(self, at: Site, input: Value) -> Value:
        return input

    def run(self, input: np.ndarray) -> np.ndarray:
        return input

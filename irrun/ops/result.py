"""Result: an output of the model.  Spec: infrastructure/result-1."""

from irrun.opdef import Op, Site, Value, op, ports


@op("Result", since=1, spec="infrastructure/result-1")
class Result(Op):
    """Stand for a tensor that the caller receives. It has no outputs and no kernel."""

    inputs = ports(value="any")
    outputs = 0

    def infer(self, at: Site, value: Value) -> tuple[Value, ...]:
        return ()

"""Variables: the input of a graph holds their value before a run, an output their value after it."""

from __future__ import annotations

import re

from irrun.export.call import Call, State
from irrun.export.registry import converts

__all__: list[str] = []


def _names(variable: str) -> tuple[str, str]:
    """Return the names of input and output. OpenVINO joins both to the name of a variable: ``past.0present.0``."""
    match = re.fullmatch(r"(past.*?)(present.*)", variable)
    return (match[1], match[2]) if match else (variable, f"{variable}.next")


@converts("ReadValue")
def read_value(call: Call) -> str:
    """An input of the graph."""
    variable = call.op.variable_id
    call.require(not call.inside, "a variable is read within a body")
    if variable in call.states:
        return call.states[variable].input
    before, after = _names(variable)
    name = call.graph.fresh(before)
    call.states[variable] = State(call.layer, call.outputs[0], name, after)
    return name


@converts("Assign")
def assign(call: Call) -> str:
    """An output of the graph."""
    call.require(not call.inside, "a variable is written within a body")
    call.assigned[call.op.variable_id] = call.input(0)
    return call.input(0)

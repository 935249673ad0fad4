"""Find the variables that grow in each run, such as the keys and values of a language model, and append to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from irrun.opdef import Kernel, Op, Variables
from irrun.planning.steps import Step

__all__ = ["growing"]


def growing(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with each Concat of a variable and new rows replaced by one that copies the new rows alone.

    The layers are ``ReadValue - Concat - Assign``, with a Gather before Concat that chooses rows of the batch
    (``beam_idx``). It passes the value on as it is, unless rows change their places.
    """
    made = {slot: step for step in steps for slot in step.writes}
    assigned = {(step.reads[0], _variable(step.op)) for step in steps if step.op.type == "Assign"}
    return [_appending(step, made, assigned) if step.op.type == "Concat" else step for step in steps]


def _appending(step: Step, made: dict[int, Step], assigned: set[tuple[int, str | None]]) -> Step:
    """Return the step for a Concat: ``step`` itself if its result is not what its first input becomes."""
    source = made.get(step.reads[0])
    if source is not None and source.op.type == "Gather":
        source = made.get(source.reads[0])
    id = None if source is None or source.op.type != "ReadValue" else _variable(source.op)
    axis = getattr(step.op, "axis", None)
    if id is None or axis is None or (step.writes[0], id) not in assigned:
        return step
    return replace(step, kernel=Kernel(partial(_appended, id, axis), "in place"), needed={"variables": None})


def _variable(op: Op) -> str | None:
    return getattr(op, "variable_id", None)


def _appended(
    id: str, axis: int, past: np.ndarray, *pieces: np.ndarray, variables: Variables
) -> np.ndarray:  # fmt: skip
    return variables.appended(id, past, pieces, axis)

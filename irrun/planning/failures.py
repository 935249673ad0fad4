"""The diagnostics of planning and of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.base.deadline import OutOfTime
from irrun.base.text import human
from irrun.diagnostics import Diagnostic, ExecutionError, IrrunError, Refused, diagnostic
from irrun.inference.propagate import refusal, to_blame
from irrun.model import Layer, Model
from irrun.opdef import Op, Site, Value, Variables

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = [
    "FailedWithin",
    "blamed",
    "kernel_failed",
    "out_of_memory",
    "out_of_time",
    "refuse_too_large",
    "refused_by_inputs",
    "run_within",
    "step_failed",
    "too_much_memory",
]


class FailedWithin(Exception):  # noqa: N818 -- `error` is the error
    """The failure of one of several steps that a kernel runs one after the other."""

    def __init__(self, step: Step, inputs: Sequence[np.ndarray | None], error: Exception) -> None:
        super().__init__(step.layer.name)
        self.step, self.inputs, self.error = step, inputs, error


@contextmanager
def blamed(step: Step, inputs: Sequence[np.ndarray | None]) -> Iterator[None]:
    """Raise FailedWithin for an exception of the kernel or shape rule of a step."""
    try:
        yield
    except (IrrunError, OutOfTime, FailedWithin):
        raise
    except Exception as error:
        raise FailedWithin(step, inputs, error) from error


def run_within(step: Step, inputs: Sequence[Any], variables: Variables) -> Any:
    """Return what the kernel of a step returns that another one runs, after a check if it needs one.

    Raises FailedWithin.
    """
    with blamed(step, inputs):
        if step.dynamic:
            step.checked(inputs, _check)
        return step.kernel.call(*inputs, **dict.fromkeys(step.needed, variables))


def _check(step: Step, inputs: Sequence[Any]) -> int:
    """Apply the shape rule of a step to its inputs. Raises Refused."""
    values = [None if array is None else Value.of(array) for array in inputs]
    step.op.infer(Site(), *values, **dict.fromkeys(step.needed))
    return 0


def kernel_failed(model: Model, layer: Layer, op: Op | None, error: Exception, inputs: str) -> Diagnostic:
    """Return the diagnostic (IR603) for an exception in a kernel or shape rule. ``inputs`` ends its message."""
    message = f'{layer.type} "{layer.name}" failed: {error!r}{inputs}'
    return diagnostic(
        "IR603", message, source=model.source, node=layer.node, layer=layer.name,
        help=to_blame(op),
    )  # fmt: skip


def step_failed(model: Model, step: Step, inputs: Sequence[np.ndarray | None], error: Exception) -> ExecutionError:
    """Return the error (IR603) for an exception in a kernel during a run."""
    return ExecutionError(kernel_failed(model, step.layer, step.op, error, f"; its inputs are {_described(inputs)}"))


def out_of_memory(model: Model, step: Step, inputs: Sequence[np.ndarray | None]) -> ExecutionError:
    """Return the error (IR604) for a kernel that could not allocate its memory."""
    message = f'{step.layer.type} "{step.layer.name}" ran out of memory; its inputs are {_described(inputs)}'
    return ExecutionError(
        diagnostic("IR604", message, source=model.source, node=step.layer.node, layer=step.layer.name)
    )


def out_of_time(model: Model, layer: Layer | None, when: str, seconds: float) -> ExecutionError:
    """Return the error (IR607) for a run that was stopped after ``seconds``, ``when``: in a ``layer`` or before it."""
    place = "" if layer is None else f' {when} {layer.type} "{layer.name}"'
    message = f"the run took longer than the {seconds:g} s allowed and was stopped{place}"
    help = "check the number of iterations of loops and the length of sequences, or raise --timeout (timeout=)"
    node = None if layer is None else layer.node
    return ExecutionError(
        diagnostic("IR607", message, source=model.source, node=node, layer=layer and layer.name, help=help)
    )


def refused_by_inputs(model: Model, step: Step, refused: Refused) -> ExecutionError:
    """Return the error for a rule of the specification that the inputs of a step break."""
    if refused.code == "IR403":  # the input values break the rule, not the model
        refused.code = "IR605"
    return ExecutionError(refusal(model, step.layer, step.op, refused))


def _described(inputs: Sequence[np.ndarray | None]) -> str:
    """Return dtypes and shapes: ``float32[2, 3], none``."""
    return ", ".join("none" if a is None else f"{a.dtype}{list(a.shape)}" for a in inputs)


def too_much_memory(model: Model, layer: Layer | None, held: int, values: int, max_memory: int) -> ExecutionError:
    """Return the error (IR604) for a run that exceeds ``max_memory`` bytes at ``layer``.

    ``held`` are the bytes of constants, variables and converted inputs, ``values`` those of the other tensors that are
    live there.
    """
    place = "the run" if layer is None else f'{layer.type} "{layer.name}": the run'
    kinds = {"constants, variables and converted inputs": held, "live tensors": values}
    parts = [f"{human(size)} of {kind}" for kind, size in kinds.items() if size]
    message = f"{place} takes {human(held + values)} here, more than the {human(max_memory)} allowed: "
    return ExecutionError(
        diagnostic(
            "IR604", message + " and ".join(parts), source=model.source, node=layer and layer.node,
            layer=layer and layer.name, help="run smaller inputs, or raise --max-memory (max_memory=)",
        )
    )  # fmt: skip


def refuse_too_large(model: Model, layer: Layer, value: Value, max_memory: int) -> None:
    """Raise ExecutionError (IR604) if a tensor takes more than ``max_memory`` bytes, before it is allocated.

    Unknown dims count with their lower bounds. A shape that no array can have is refused as well.
    """
    itemsize = max(value.type.dtype.itemsize, 1)
    size = value.shape.least * itemsize
    if size > max_memory:
        message = f'{layer.type} "{layer.name}": {value.shape} of {value.type} takes {human(size)}, '
        raise ExecutionError(
            diagnostic(
                "IR604", f"{message}more than the {human(max_memory)} allowed", source=model.source,
                node=layer.node, layer=layer.name, help="raise --max-memory (max_memory=), or pass smaller inputs",
            )
        )  # fmt: skip
    if limit := value.shape.array_limit(itemsize):
        message = f'{layer.type} "{layer.name}": no array of {value.type} can have the shape {value.shape}: {limit}'
        raise ExecutionError(
            diagnostic(
                "IR604", message, source=model.source, node=layer.node, layer=layer.name, help="correct the shape"
            )
        )

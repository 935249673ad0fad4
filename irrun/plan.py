"""A model made ready to run: a flat list of steps over numbered slots, kernels chosen, constants read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irrun.bind import bind
from irrun.diagnostics import Diagnostic, ExecutionError, ModelError, Refused, UnsupportedError, diagnostic
from irrun.infer import Values, needed, propagate, refusal, to_blame, wrong_output_count
from irrun.model import Layer, Model
from irrun.opdef import Op, Value
from irrun.types import ElementType

__all__ = ["Plan", "Step", "human", "kernel_failed", "plan", "refuse_too_large"]


@dataclass(frozen=True, slots=True)
class Step:
    """One layer to compute: ``call`` takes the slots of ``reads`` (-1: absent) and fills those of ``writes``."""

    layer: Layer
    op: Op
    call: Callable[..., Any]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    frees: tuple[int, ...]
    """Slots that nobody reads afterwards."""
    dynamic: bool
    """Whether shapes, or contents that shapes may follow from, are known only when the inputs are there: a
    layer is checked then, before its kernel runs."""
    needed: Mapping[str, Any]
    """What ``op`` takes as keywords."""
    bodies: Mapping[str, Plan]


@dataclass(frozen=True, slots=True)
class Plan:
    """``parameters`` and ``results`` are slots in file order; ``constants`` are filled before a run."""

    model: Model
    steps: tuple[Step, ...]
    slots: int
    constants: Mapping[int, np.ndarray]
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    values: Values
    types: tuple[ElementType, ...]
    """The element type of each slot."""


def plan(model: Model, max_memory: int) -> Plan:
    """Plan a model. Raises ModelError, UnsupportedError, or ExecutionError (IR604) where a tensor is too large."""
    ops = _bind_all(model)
    if cycle := model.cycle():
        raise ModelError(
            diagnostic("IR106", "layers feed each other in a circle", source=model.source, node=cycle[0].node)
        )
    values: Values = {}

    def settle(layer: Layer, found: tuple[Value, ...] | Exception) -> Sequence[Value]:
        if isinstance(found, Refused):
            raise ModelError(refusal(model, layer, ops[layer.id], found))
        if isinstance(found, Exception):
            raise ModelError(kernel_failed(model, layer, ops[layer.id], found, "")) from found
        if len(found) != len(layer.outputs):
            message = wrong_output_count(layer, ops[layer.id], len(found))
            raise ModelError(diagnostic("IR206", message, source=model.source, node=layer.node, layer=layer.name))
        for value in found:
            refuse_too_large(model, layer, value, max_memory)
        return found

    # bodies first: what is wrong in one is reported where it stands
    bodies = {
        id: {tag: plan(body, max_memory) for tag, body in layer.bodies.items()} for id, layer in model.layers.items()
    }
    propagate(model, ops, settle, values, {})
    return _assemble(model, ops, values, bodies)


def _bind_all(model: Model) -> dict[int, Op]:
    ops: dict[int, Op] = {}
    errors: list[Diagnostic] = []
    for id, layer in model.layers.items():
        op, problems = bind(model, layer)
        errors += (p for p in problems if p.severity == "error")
        if op is not None:
            ops[id] = op
    if errors:
        unsupported = all(e.code in ("IR201", "IR207") for e in errors)
        raise UnsupportedError(errors) if unsupported else ModelError(errors)
    return ops


def _assemble(model: Model, ops: Mapping[int, Op], values: Values, bodies: Mapping[int, Mapping[str, Plan]]) -> Plan:
    slot = {key: number for number, key in enumerate(values)}
    constants = {slot[id, 0]: _constant(values[id, 0]) for id in model.order if ops[id].type == "Const"}
    last_read: dict[int, int] = {}
    pending: list[Step] = []
    for id in model.order:
        layer, op = model.layers[id], ops[id]
        if op.type in ("Parameter", "Const", "Result"):
            continue
        reads = tuple(-1 if feed is None else slot[feed] for feed in model.feeds[id])
        inputs = [None if feed is None else values[feed] for feed in model.feeds[id]]
        try:
            call = op.prepare(*inputs).call
        except Exception as error:
            raise ModelError(kernel_failed(model, layer, op, error, "")) from error
        writes = tuple(slot[id, i] for i in range(len(layer.outputs)))
        given = [v for v in inputs if v is not None]
        found = [values[id, i] for i in range(len(layer.outputs))]
        unknown = any(v.type.kind == "dynamic" or not v.shape.is_static for v in (*given, *found))
        dynamic = unknown or any(_may_be_shape(v) for v in given)
        for read in reads:
            last_read[read] = len(pending)
        for write in writes:  # an output that nobody reads is freed by its own step
            last_read[write] = len(pending)
        pending.append(Step(layer, op, call, reads, writes, (), dynamic, needed(op, model, layer), bodies[id]))
    results = tuple(slot[feed] for r in model.results if (feed := model.feeds[r.id][0]) is not None)
    kept = {-1, *constants, *results}
    frees: dict[int, list[int]] = {}
    for number, step in last_read.items():
        if number not in kept:
            frees.setdefault(step, []).append(number)
    steps = tuple(replace(s, frees=tuple(frees.get(i, ()))) for i, s in enumerate(pending))
    parameters = tuple(slot[p.id, 0] for p in model.parameters)
    return Plan(model, steps, len(slot), constants, parameters, results, values, tuple(v.type for v in values.values()))


def _may_be_shape(value: Value) -> bool:
    """Whether this may be a shape, axes and the like, known only when the model runs."""
    return value.data is None and value.type.is_integer and value.rank in (0, 1)


def _constant(value: Value) -> np.ndarray:
    assert value.data is not None  # without a .bin, compile refused the model before
    return value.data


# ---------------------------------------------------------------------------------------------
# what a plan and a run have to say


def kernel_failed(model: Model, layer: Layer, op: Op | None, error: Exception, inputs: str) -> Diagnostic:
    message = f'{layer.type} "{layer.name}" failed: {error!r}{inputs}'
    return diagnostic(
        "IR603", message, source=model.source, node=layer.node, layer=layer.name,
        help=to_blame(op),
    )  # fmt: skip


def refuse_too_large(model: Model, layer: Layer, value: Value, max_memory: int) -> None:
    """Refuse a tensor before anything allocates it. Raises ExecutionError (IR604)."""
    count = value.shape.count()
    size = count.lo * max(value.type.dtype.itemsize, 1)
    if size > max_memory:
        message = f'{layer.type} "{layer.name}": {value.shape} of {value.type} takes {human(size)}, '
        raise ExecutionError(
            diagnostic(
                "IR604", f"{message}more than the {human(max_memory)} allowed", source=model.source,
                node=layer.node, layer=layer.name, help="correct the target shape, or raise --max-memory (max_memory=)",
            )
        )  # fmt: skip


def human(size: float) -> str:
    """A number of bytes as a person reads it: ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return ""

"""Execute the steps of a plan."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irrun.base.deadline import OutOfTime
from irrun.base.memory import lacks_memory
from irrun.diagnostics import ExecutionError, IrrunError, Refused
from irrun.inference.layer import infer
from irrun.inference.propagate import declared_inside, site
from irrun.model import Layer, Model
from irrun.opdef import Stream, Value, Variables, read_only
from irrun.planning.failures import (
    FailedWithin,
    out_of_memory,
    out_of_time,
    refuse_too_large,
    refused_by_inputs,
    step_failed,
)
from irrun.planning.plan import plan as planned
from irrun.planning.steps import Plan, Step
from irrun.running.hooks import Hook
from irrun.running.live import Live
from irrun.running.pool import SMALL, Pool
from irrun.running.strict import Strict
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, ElementType, PartialShape

__all__ = ["Interpreter", "Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a model, bodies included: who observes it and what bounds it.

    ``deadline`` is a time of ``time.monotonic``. ``strict`` compares the outputs with their ports.
    """

    hooks: Sequence[Hook]
    deadline: float
    live: Live
    strict: Strict | None


class Interpreter:
    """Runs plans of a model. It holds what lasts from run to run: variables, random streams and pooled memory."""

    def __init__(self, model: Model, max_memory: int, timeout: float | None) -> None:
        self.model = model
        self.max_memory = max_memory
        self.timeout = timeout
        self.pool = Pool()
        self.variables = Variables()
        self._streams: dict[int, Stream] = {}  # by id() of the layer, because layers of bodies may share ids
        self._open: dict[int, Plan] = {}  # plans of bodies for any inputs, by id() of the plan for declared ones

    def restart(self) -> None:
        """Return to the state before the first run: without variables, and at the beginning of all random streams."""
        self.variables.reset()
        self._streams.clear()

    def deadline(self) -> float:
        """Return the time of ``time.monotonic`` at which a run that begins now must have ended; infinity for never."""
        return math.inf if self.timeout is None else time.monotonic() + self.timeout

    def run(self, plan: Plan, arrays: Sequence[np.ndarray], run: Run) -> list[np.ndarray]:
        """Run a plan, of the model or of a body, and return the arrays of its Results.

        Raises ExecutionError if a step fails, if the deadline is over before a step (IR607), if more bytes are live
        than allowed (IR604), or if a strict run finds an output that is not as declared (IR602).
        """
        hooks, deadline, live, strict = run.hooks, run.deadline, run.live, run.strict
        compared = strict.begin(plan, arrays) if strict is not None else None
        counted, works = live.begin(plan)
        limited = deadline < math.inf
        if limited:  # a body without steps may be repeated for ever
            self._require_time(None, deadline)
        slots: list[Any] = [None] * (plan.slots + 1)  # the last slot, which is also slot -1, is an absent input
        for number, array in plan.passed.items():
            slots[number] = array
        for number, array in zip(plan.parameters, arrays):
            slots[number] = array
        for step in plan.steps:
            if limited:
                self._require_time(step.layer, deadline)
            inputs = [slots[number] for number in step.reads]
            for position, cache in step.updates:
                array = self.variables.cache(cache, inputs[position])
                inputs[position] = read_only(array) if hooks else array  # a hook may keep it
            for hook in hooks:
                hook.before(step, inputs)
            size = step.checked(inputs, self._check, plan) if step.dynamic else None
            working = 0
            if counted:
                working = step.op.working(*inputs) if works and step.own_inputs else 0
                if size is None:
                    size = step.out_bytes if step.out else self._size(plan, step, inputs, live)
                if size + working > live.room:
                    live.require(plan.model, step.layer, size + working)
            pending = live.pending
            try:
                needed = self._needed(step, run) if step.needed else _NOTHING
                if step.out:
                    returned = step.kernel.call(*inputs, out=self._taken(step), **needed)
                else:
                    returned = step.kernel.call(*inputs, **needed)
            except IrrunError:
                raise  # a step of a body has failed and reported it
            except OutOfTime:
                raise out_of_time(self.model, step.layer, "in", self.timeout or 0) from None
            except FailedWithin as failed:
                raise self._failed(plan, failed.step, failed.inputs, failed.error) from failed.error
            except Exception as error:
                raise self._failed(plan, step, inputs, error) from error
            if live.pending != pending:
                live.pend(pending - live.pending)
            outputs = returned if isinstance(returned, tuple) else (returned,)
            if step.updates:
                outputs = self._update(plan, step, outputs, live)
            if compared and strict is not None and id(step) in compared:
                strict.compare(step, compared[id(step)], outputs)
            for hook in hooks:
                hook.after(step, inputs, outputs)
            if counted and (working or not step.out or step.out_bytes >= _SMALL):
                live.add(plan.model, step.layer, outputs, working, _SMALL)
            if counted and self.variables.made:
                live.add(plan.model, step.layer, self.variables.made)
                self.variables.made.clear()
            for number, array in zip(step.writes, outputs):
                slots[number] = array
            for number in step.frees:
                slots[number] = None
        return [slots[number] for number in plan.results]

    def _update(self, plan: Plan, step: Step, returned: Sequence[np.ndarray], live: Live) -> Sequence[np.ndarray]:
        """Keep the new arrays of the inputs that a step overwrites, and return its outputs without them."""
        count = len(returned) - len(step.updates)
        for (_, cache), array in zip(step.updates, returned[count:]):
            if cache:
                self.variables.update(cache, array)
        live.add(plan.model, step.layer, returned[count:])
        return returned[:count]

    def _require_time(self, layer: Layer | None, deadline: float) -> None:
        """Raise ExecutionError (IR607) if ``deadline`` is over. ``layer`` is the one that would be next, if known."""
        if time.monotonic() >= deadline:
            raise out_of_time(self.model, layer, "before", self.timeout or 0)

    def body(self, plan: Plan, arrays: Sequence[np.ndarray], run: Run) -> list[np.ndarray]:
        """Run the plan of a body, or one for any inputs if these are not as the Parameters of the body declare."""
        fits = all(plan.values[p.id, 0].fits(array) for p, array in zip(plan.model.parameters, arrays))
        if not fits and run.strict is None:
            if id(plan) not in self._open:
                unknown = {p.id: Value(ELEMENT_TYPES["dynamic"], UNKNOWN_RANK) for p in plan.model.parameters}
                self._open[id(plan)] = planned(plan.model, plan.how, unknown, plan)
            plan = self._open[id(plan)]
        return self.run(plan, arrays, run)

    def _needed(self, step: Step, run: Run) -> dict[str, Any]:
        """Return the keyword arguments for the kernel of a step, with runnable bodies and the state of the model."""
        keywords = dict(step.needed)
        if "bodies" in keywords:
            joined = {
                e.internal for e in step.layer.maps.get("port_map", ()) if e.kind == "output" and e.axis is not None
            }
            keywords["bodies"] = {tag: _RunningBody(self, plan, run, joined) for tag, plan in step.bodies.items()}
        if "variables" in keywords:
            keywords["variables"] = self.variables
        if "stream" in keywords:
            keywords["stream"] = self._streams.setdefault(id(step.layer), Stream())
        return keywords

    # -- checks of the actual inputs ------------------------------------------------------------

    def _check(self, step: Step, inputs: Sequence[np.ndarray | None], plan: Plan) -> int:
        """Apply the shape rule of a layer to its actual inputs, before its kernel allocates memory.

        Returns the bytes of its outputs, of which views take none. Raises ExecutionError: IR604 if an output is too
        large, otherwise the code of the broken rule.
        """
        values = [
            None if a is None else Value(_type(plan.types[number], a), PartialShape.of(a.shape), a)
            for number, a in zip(step.reads, inputs)
        ]
        try:
            own = {name: step.needed[name] for name in step.op.needs}  # a kernel may need more than its operation
            outputs = infer(step.op, site(step.layer), values, own, contents=False)
        except Refused as refused:
            raise refused_by_inputs(self.model, step, refused) from None
        for value in outputs:
            refuse_too_large(self.model, step.layer, value, self.max_memory)
        return 0 if step.op.views else sum(v.shape.least * v.type.dtype.itemsize for v in outputs)

    def _taken(self, step: Step) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the memory for the outputs of a step. The caller keeps no reference, by which it would stay lent."""
        take = np.empty if step.out_bytes <= SMALL else self.pool.take
        return take(*step.out[0]) if len(step.out) == 1 else tuple([take(*one) for one in step.out])

    def _size(self, plan: Plan, step: Step, inputs: Sequence[np.ndarray | None], live: Live) -> int:
        """Return the bytes that the outputs that a kernel allocates without a check will take; 0 if any have room."""
        if not step.own_inputs or sum([a.nbytes for a in inputs if a is not None]) <= live.room:
            return 0  # operations that allocate much more than their inputs take are checked
        return self._check(step, inputs, plan)

    def _failed(self, plan: Plan, step: Step, inputs: Sequence[np.ndarray | None], error: Exception) -> ExecutionError:
        """Return the error for an exception in a kernel. It blames the inputs, the lack of memory, or irrun."""
        if isinstance(error, Refused):
            return refused_by_inputs(self.model, step, error)
        try:
            if step.own_inputs:
                self._check(step, inputs, plan)
        except ExecutionError as refused:
            return refused
        except Exception:
            pass  # the shape rule fails as well: report the exception of the kernel
        if lacks_memory(error):
            return out_of_memory(self.model, step, inputs)
        return step_failed(self.model, step, inputs, error)


_NOTHING: Final[Mapping[str, Any]] = {}
_SMALL: Final = 1 << 12
"""The least bytes of an output that counts. Counting smaller outputs costs more than it finds: each slot holds at most
one. What a loop collects counts in any case."""


@dataclass(frozen=True, slots=True)
class _RunningBody:
    """A body (``opdef.Body``) that is run on arrays, within one run of the model."""

    interpreter: Interpreter
    plan: Plan
    run: Run
    joined: Set[int]
    """The ids of the Results whose values of all iterations are concatenated."""

    def declared(self, id: int) -> Value:
        return declared_inside(self.plan.model, id)

    def __call__(self, inputs: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        model = self.plan.model
        arrays = [inputs[p.id] for p in model.parameters]
        results = self.interpreter.body(self.plan, arrays, self.run)
        for layer, array in zip(model.results, results):  # a loop may collect them
            self.run.live.pend(array.nbytes if layer.id in self.joined else 0)
            self.run.live.add(model, layer, [array])
        return {result.id: array for result, array in zip(model.results, results)}


def _type(known: ElementType, array: np.ndarray) -> ElementType:
    """Return the planned element type of a slot, or that of ``array`` if the plan leaves the type open."""
    return (ElementType.of(array.dtype) or known) if known.kind == "dynamic" else known

"""Compiled models, which can be run any number of times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.base.compiling import NotCompiled
from irrun.base.deadline import ends_at
from irrun.base.text import counted, printable
from irrun.diagnostics import ExecutionError, Refused, diagnostic
from irrun.kernels.threads import one_thread, products_are_shared_here
from irrun.model import Model, Tensor, signature, signature_lines, signature_table
from irrun.opdef import Precision
from irrun.planning.plans import Plans
from irrun.planning.steps import Plan
from irrun.running.hooks import Hook, Tap
from irrun.running.inputs import Feeds, read_feeds
from irrun.running.interpreter import Interpreter, Run
from irrun.running.live import Limits, Live
from irrun.running.liveness import root_of
from irrun.running.outputs import Outputs, owned
from irrun.running.strict import Strict

__all__ = ["Executable", "Feeds", "Outputs"]


class Executable:
    """A compiled model. Call it with feeds, any number of times.

    A model with state, such as a language model, continues where its last run has stopped::

        executable.reset_state()
        logits = executable([prompt, np.ones((1, n), np.int64), np.arange(n)[None]])[0]  # prompt: int64 [1,n]
        while (token := int(logits[0, -1].argmax())) != end:
            tokens.append(token)
            past = n + len(tokens)
            logits = executable([np.array([[token]]), np.ones((1, past), np.int64), np.array([[past - 1]])])[0]

    The third call with one token makes a plan for such calls, which takes some tenths of a second. Keys and values of
    the past then grow in buffers of their own: no token copies them. ``state`` holds them by the ids of the variables;
    its arrays never change. ``irrun.genai`` does all this for the folder of a language model.

    A cache is an input that layers overwrite, such as ``key_cache.0`` of a model with paged attention. ``state`` holds
    it after a run; the array that was passed stays as it was. A run continues with the caches of the run before it
    unless it is passed others.

    ``strict`` checks every output of every layer against the type and shape that its port declares. ``max_memory`` is
    the most bytes that a run may hold at once, ``max_weights_memory`` the most of them for unpacked weights (see
    ``irrun.compile``). ``exact`` computes each layer in a step of its own, with the plain kernel (``Op.run``) that
    defines its operation, on one thread and with numpy's BLAS. ``layered`` computes each layer in a step of its own,
    with its fastest kernel. ``timeout`` is the most seconds that a run may take, checked before each step. ``rewrite``
    gets the plan in which each layer is a step with its plain kernel, and returns the plan that every run uses.
    ``repeatable`` makes a run independent of the runs before it. ``precision`` is that of the operands of products.
    """

    def __init__(
        self,
        model: Model,
        *,
        strict: bool,
        max_memory: int,
        exact: bool = False,
        timeout: float | None = None,
        layered: bool = False,
        rewrite: Callable[[Plan], Plan] | None = None,
        repeatable: bool = False,
        max_weights_memory: int | None = None,
        precision: Precision = "f32",
    ) -> None:
        self.model = model
        self.strict = strict
        self.max_memory = max_memory
        self.exact = exact
        self._plans = Plans(
            model, max_memory, exact=exact, layered=layered, rewrite=rewrite, repeatable=repeatable,
            max_weights_memory=max_weights_memory, precision=precision,
        )  # fmt: skip
        self._interpreter = Interpreter(model, max_memory, timeout)
        self._limits = Limits(max_memory, self._interpreter.pool)
        Live(self._limits, self.plan, self._lasting(())).begin(self.plan)
        self._output_names = [model.result_names(r) for r in model.results]
        self._strict = Strict(model) if strict else None

    def __repr__(self) -> str:
        return f"<Executable {self.model.name}: {signature(self.inputs, self.outputs)}>"

    def __str__(self) -> str:
        """Return the inputs, the outputs and the number of steps, in lines."""
        lines = [f"{self.model.name}: {counted(len(self.plan.steps), 'step')}"]
        lines += signature_lines(self.inputs, self.outputs)
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        title = f"{self.model.name}: {counted(len(self.plan.steps), 'step')}"
        return signature_table(title, self.inputs, self.outputs)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs, in the order of the Parameters, with the types and shapes that the model accepts."""
        values = [self.plan.values[parameter.id, 0] for parameter in self.model.parameters]
        return tuple(
            replace(tensor, type=value.type, shape=value.shape) for tensor, value in zip(self.model.inputs, values)
        )

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs, in the order of the Results, with the inferred types and shapes."""
        tensors: list[Tensor] = []
        for tensor, result in zip(self.model.outputs, self.model.results):
            feed = self.model.feeds[result.id][0] if result.inputs else None
            value = None if feed is None else self.plan.values.get(feed)
            tensors.append(tensor if value is None else replace(tensor, type=value.type, shape=value.shape))
        return tuple(tensors)

    @property
    def plan(self) -> Plan:
        """The plan for inputs of any shape that the model allows."""
        return self._plans.general

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan, and those that runs have made for recurring dims."""
        return self._plans.all

    def __call__(self, feeds: Feeds = None, *, hooks: Sequence[Hook] = (), taps: str | Sequence[str] = ()) -> Outputs:
        """Run the model and return its outputs.

        ``hooks`` are called before and after each step. ``taps`` are names or globs of layers. ``Outputs.taps``
        holds copies of their outputs: the first under the layer's name, each further one under ``name:port``.

        Raises FeedError if ``feeds`` do not fit the model (IR601) or a tap matches no layer (IR606), and
        ExecutionError if the run fails (IR602 to IR605), takes longer than ``timeout`` (IR607), or if the .bin has
        changed since it was mapped (IR502).
        """
        try:
            return self._run(feeds, hooks, taps)
        except NotCompiled as missing:
            self._plans.without_compiled(missing)
            return self._run(feeds, hooks, taps)

    def _run(self, feeds: Feeds, hooks: Sequence[Hook], taps: str | Sequence[str]) -> Outputs:
        self._require_weights()
        arrays, converted = read_feeds(self.model, feeds, self.plan.values, self._interpreter.variables.lend)
        wanted = (taps,) if isinstance(taps, str) else taps
        tap = Tap(self.model, wanted, self._known(arrays)) if wanted else None
        every: tuple[Hook, ...] = (*hooks, *([tap] if tap else []))
        plan = self._plan_for(arrays, every)
        interpreter = self._interpreter
        held = interpreter.variables.held
        live = Live(self._limits, plan, self._lasting(held) + converted)
        live.know((*arrays, *held))
        deadline = interpreter.deadline()
        try:
            # no numpy warnings: NaN and Inf are ordinary values, as in the OpenVINO runtime
            with (
                np.errstate(all="ignore"),
                products_are_shared_here() if plan.heavy else nullcontext(),
                one_thread() if self.exact else nullcontext(),
                ends_at(deadline),
            ):
                np.setbufsize(_BUFFER)  # errstate restores the previous size
                results = interpreter.run(plan, arrays, Run(every, deadline, live, self._strict))
                returned = owned(self.model, results, interpreter.pool, live)
        except BaseException:
            interpreter.variables.discard()
            raise
        interpreter.variables.commit()
        return Outputs(self._output_names, returned, tap.arrays if tap else None)

    def _lasting(self, held: Sequence[np.ndarray]) -> int:
        """Return the bytes that last from run to run beside constants: what variables hold and the copy of the .bin."""
        weights = self.model.weights
        return sum(root_of(array).nbytes for array in held) + (0 if weights is None else weights.copied)

    def _require_weights(self) -> None:
        """Raise ExecutionError (IR502) if the .bin has changed since it was mapped."""
        try:
            if self.model.weights is not None:
                self.model.weights.require_unchanged()
        except Refused as refused:
            source = self.model.source
            raise ExecutionError(diagnostic(refused.code, refused.message, source=source, help=refused.help)) from None

    def _plan_for(self, arrays: Sequence[np.ndarray], hooks: Sequence[Hook]) -> Plan:
        """Return the plan of a run. Only hooks with a true attribute ``joined`` accept fused steps.

        A strict run takes a plan in which each output that it has to compare is returned by a step.
        """
        if not all(getattr(hook, "joined", False) for hook in hooks):
            return self._plans.layered
        shapes = tuple([array.shape for array in arrays])
        if not self._plans.recurs(shapes):
            self._interpreter.pool.trim()  # its free memory was for other shapes
        plan = self._plans.fitting(shapes)
        return self._plans.layered if self._strict is not None and self._strict.hides(plan) else plan

    def _known(self, arrays: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
        """Return the arrays that are known before a run, by layer id: the inputs and the constants."""
        plan = self._plans.layered  # this plan keeps every constant
        slots = {number: id for number, (id, _) in enumerate(plan.values)}
        return {slots[number]: array for number, array in plan.constants.items()} | {
            parameter.id: array for parameter, array in zip(self.model.parameters, arrays)
        }

    @property
    def state(self) -> Mapping[str, np.ndarray]:
        """The variables of a stateful model, by ``variable_id``, and its caches, by the names of their Parameters.

        Empty before the first run.
        """
        return self._interpreter.variables.shown()

    def reset_state(self) -> None:
        """Clear the variables, as before the first run."""
        self._interpreter.variables.reset()

    def restart(self) -> None:
        """Clear the variables and begin all sequences of random numbers again, so that a run can be repeated."""
        self._interpreter.restart()


_BUFFER: Final = 1 << 10
"""Elements in the buffers of numpy's ufuncs. Numpy then does not copy operands that it broadcasts along rows of about
this length.

With numpy's default of 8192, adding a bias to rows of 768 to 4096 elements takes 1.5 times as long. Conversions
between dtypes need a buffer of some hundred elements.
"""

"""Plan a model: choose kernels, load constants, fold constant sub-graphs, and decide when each buffer is freed."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from irrun.codes import Kind
from irrun.diagnostics import Diagnostic, ModelError, Refused, UnsupportedError, diagnostic
from irrun.inference.bind import bind_all
from irrun.inference.propagate import Bodies, Values, needed, propagate, refusal, wrong_output_count
from irrun.model import Layer, Model
from irrun.model.weights import Weights
from irrun.opdef import Kernel, Op, Value
from irrun.planning import requests
from irrun.planning.absorb import absorb
from irrun.planning.decoders import decoding
from irrun.planning.failures import kernel_failed, refuse_too_large, too_much_memory
from irrun.planning.fuse import fuse
from irrun.planning.layout import channels_last
from irrun.planning.patterns import Patterns
from irrun.planning.rows import by_rows
from irrun.planning.steps import Plan, Planning, Step
from irrun.planning.stored import stored_constants
from irrun.planning.views import reshaped
from irrun.types import PartialShape

__all__ = ["UNPACKED", "plan"]


def plan(
    model: Model, how: Planning, given: Mapping[int, Value] | None = None, base: Plan | None = None,
    inferred: Bodies | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a model.

    ``given`` replaces what Parameters declare, by layer id. ``base`` is another plan of the same model, whose constants
    are used again. ``inferred`` are the bodies that inference of the
    same file has met; the model is then a body itself.

    Raises ModelError for an error in the model, UnsupportedError if all errors are unknown operations or opsets, and
    ExecutionError (IR604) if a tensor is too large.
    """
    ops = _bound(model)
    if cycle := model.cycle():
        raise ModelError(
            diagnostic("IR106", "layers feed each other in a circle", source=model.source, node=cycle[0].node)
        )
    values: Values = {}

    def settle(layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        if isinstance(inferred, Refused):
            raise ModelError(refusal(model, layer, ops[layer.id], inferred))
        if isinstance(inferred, Exception):
            raise ModelError(kernel_failed(model, layer, ops[layer.id], inferred, "")) from inferred
        if len(inferred) != len(layer.outputs):
            message = wrong_output_count(layer, ops[layer.id], len(inferred))
            raise ModelError(diagnostic("IR206", message, source=model.source, node=layer.node, layer=layer.name))
        for value in inferred:
            refuse_too_large(model, layer, value, how.max_memory)
        return inferred

    # plan bodies first, so that an error in a body is reported at the layer in the body
    inferred = {} if inferred is None else inferred
    bodies = {
        id: {tag: plan(body, how, inferred=inferred) for tag, body in layer.bodies.items()}
        for id, layer in model.layers.items()
    }
    propagate(model, ops, settle, values, given or {}, inferred)
    computed = {} if base is None else {n: a for n, a in base.constants.items() if n not in base.prepacked}
    assembly = _Assembly(model, ops, values, bodies, how, computed)
    made = assembly.plan()
    if model.weights is not None:
        assembly.release(model.weights)
    return made


def _bound(model: Model) -> dict[int, Op]:
    """Return the operation of each layer, by layer id. Raises ModelError or UnsupportedError."""
    ops: dict[int, Op] = {}
    errors: list[Diagnostic] = []
    for layer, op, problems in bind_all(model):
        blocking = [p for p in problems if p.blocks]
        errors += blocking
        if op is not None:
            ops[layer.id] = op
        elif not blocking:  # a check takes the declared outputs of an example without <data>
            message, help = "the example has no <data>, so that it cannot be run", "add <data> with the attributes"
            errors.append(
                diagnostic("IR202", message, source=model.source, node=layer.node, layer=layer.name, help=help)
            )
    if errors:
        unsupported = all(e.kind is Kind.UNSUPPORTED for e in errors)
        raise UnsupportedError(errors) if unsupported else ModelError(errors)
    return ops


class _Assembly:
    """Assembles a plan from the inferred values of a model."""

    def __init__(
        self, model: Model, ops: Mapping[int, Op], values: Values, bodies: Mapping[int, Mapping[str, Plan]],
        how: Planning, computed: Mapping[int, np.ndarray],
    ) -> None:  # fmt: skip
        self.model, self.ops, self.bodies, self.how, self.computed = model, ops, bodies, how, computed
        self.slot = {key: number for number, key in enumerate(values)}
        self.values = list(values.values())
        self.constants: dict[int, np.ndarray] = {}
        self.read = {feed for feeds in model.feeds.values() for feed in feeds if feed is not None}
        self.left: frozenset[int] = frozenset()  # layers whose constants stay as the file has them
        self.unpacked = 0
        self.widened: dict[object, int] = {}  # bytes of each matrix that kernels hold as f32
        self.reserved = 0  # bytes of unpacked, folded and packed constants

    def plan(self) -> Plan:
        model, slot = self.model, self.slot
        results = tuple(slot[feed] for r in model.results if (feed := model.feeds[r.id][0]) is not None)
        if self.how.fuse:
            stored, self.left = stored_constants(
                model, self.ops, dict(zip(slot, self.values)), filters=self.how.compiled
            )
            for output, matrix in stored.items():
                self.values[slot[output]] = replace(self.values[slot[output]], stored=matrix)
        steps: Sequence[Step] = [step for id in model.order if (step := self.step(id)) is not None]
        # the plan keeps the Value of each output, but not large contents, which would stay in memory
        known = dict(zip(slot, map(_of_few, self.values)))
        if self.how.fuse:
            patterns = Patterns(self.values, self.constants, results, compiled=self.how.compiled)
            steps = patterns.replaced(_wanted(steps, results))
            steps = _wanted(decoding(steps, self.values, compiled=self.how.compiled), results)
            steps = channels_last(steps, self.values, self.constants, results, self.packed, compiled=self.how.compiled)
            steps = by_rows(absorb(steps, self.values, results), self.values, results)
            steps = fuse(reshaped(steps, self.values, results), self.values, results)
            for step in steps:
                if step.kernel.packing.create is not None:
                    self.reserved += step.kernel.packing.bytes
                    self.require_memory(step.layer)
                    step.kernel.packing.create()
            self.constants |= {
                number: _without_contents(value.type.dtype, value.shape.static or ())
                for number, value in enumerate(self.values)
                if value.stored is not None
            }
        constants, prepacked = self.kept(steps, results)
        return Plan(
            model, self.how, self.allocated(steps, results), len(self.values), constants, prepacked,
            tuple(slot[p.id, 0] for p in model.parameters), results, known, tuple(v.type for v in self.values),
            {number: value.stored.raw.nbytes for number, value in enumerate(self.values) if value.stored is not None},
        )  # fmt: skip

    def kept(self, steps: Sequence[Step], results: Sequence[int]) -> tuple[dict[int, np.ndarray], frozenset[int]]:
        """Return the constants that a run reads, as aligned arrays, and the slots of those without contents.

        A constant that kernels hold only in another form (``Packing.inputs``) keeps its dtype and shape alone. Where
        each layer is a step, hooks may read it: then it stays as it is.
        """
        read = {*results}
        for step in steps:
            read.update(slot for i, slot in enumerate(step.reads) if i not in step.kernel.packing.inputs)
        packed = {slot for step in steps for slot in step.reads} - read
        kept: dict[int, np.ndarray] = {}
        for slot, array in self.constants.items():
            if slot in read:
                kept[slot] = np.require(array, requirements="A")
            elif slot in packed:
                kept[slot] = _without_contents(array.dtype, array.shape) if self.how.fuse else array
        return kept, frozenset(packed & kept.keys()) if self.how.fuse else frozenset()

    def step(self, id: int) -> Step | None:
        """Return the step of a layer, or None if a run has nothing to compute: for a constant, for example."""
        layer, op = self.model.layers[id], self.ops[id]
        if op.type in ("Parameter", "Result") or id in self.left:
            return None
        writes = tuple(self.slot[id, i] for i in range(len(layer.outputs)))
        if op.type == "Const":
            self.load(layer, writes[0])
            return None
        reads = tuple(-1 if feed is None else self.slot[feed] for feed in self.model.feeds[id])
        inputs = [None if read == -1 else self.values[read] for read in reads]
        more = needed(op, self.model, layer)
        if self.how.fuse:
            if op.pure and not more and self.fold(op, inputs, writes):
                return None
            writes = writes[: self.read_outputs(id)]
        kernel = self.kernel(layer, inputs, len(writes))
        number = op.takes_stored
        if number is not None and (value := inputs[number]) and value.stored and number not in kernel.packing.inputs:
            self.reserve(layer, value)
            self.hold(reads[number], value.stored.rows(slice(None)).reshape(value.shape.static or ()))
            inputs[number] = self.values[reads[number]]
            kernel = self.kernel(layer, inputs, len(writes))
        dynamic = op.checked and self.may_be_refused(inputs, writes)
        return Step(layer, op, kernel, reads, writes, dynamic, more, self.bodies[id], (layer,))

    def load(self, layer: Layer, slot: int) -> None:
        """Store the array of a Const. Raises ExecutionError (IR604) if it has to be unpacked and is too large.

        An array whose offset in the .bin is no multiple of its element size is copied, because numpy is slow at every
        use of it. A matrix is not: kernels transpose or pack it, and ``kept`` copies one that they read as it is.
        """
        value, weights = self.values[slot], self.model.weights
        assert weights is not None  # compile has refused a model without its .bin
        array = self.computed.get(slot, value.data)
        if array is None:
            self.reserve(layer, value)
            if value.type.kind == "string":
                self.reserved += int(layer.attributes["size"])
                self.require_memory(layer)
            array = self.ops[layer.id].run(weights=weights, element_type=value.type)
        if not array.flags.aligned and array.ndim != 2:
            self.reserve(layer, value)
            array = array.copy()
        self.hold(slot, array)

    def reserve(self, layer: Layer, value: Value) -> None:
        """Count the bytes of a constant that is computed now and held. Raises ExecutionError (IR604) past the limit."""
        self.reserved += value.shape.count().hi * value.type.dtype.itemsize
        self.require_memory(layer)

    def require_memory(self, layer: Layer) -> None:
        """Raise ExecutionError (IR604) if the constants held so far, the last of them for ``layer``, take too much."""
        if self.reserved > self.how.max_memory:
            raise too_much_memory(self.model, layer, self.reserved, 0, self.how.max_memory)

    def read_outputs(self, id: int) -> int:
        """Return how many outputs of a layer, counted from the first, have a consumer; at least one, if it has any."""
        count = len(self.model.layers[id].outputs)
        return max((i + 1 for i in range(count) if (id, i) in self.read), default=min(count, 1))

    def kernel(self, layer: Layer, inputs: Sequence[Value | None], outputs: int) -> Kernel:
        """Return the kernel of a layer. Raises ModelError (IR603) if the operation fails to choose one."""
        op = self.ops[layer.id]
        if not self.how.specialise:
            return Kernel(op.run)
        wide = {
            (value.stored.raw.ctypes.data, value.stored.origin): 4 * prod(value.stored.shape)
            for value in inputs
            if value is not None and value.stored is not None
        }
        unpacks = sum((self.widened | wide).values()) <= self.how.max_weights_memory
        try:
            kernel = requests.kernel(op, inputs, outputs, compiled=self.how.compiled, unpacks=unpacks)
        except Exception as error:
            raise ModelError(kernel_failed(self.model, layer, op, error, "")) from error
        if kernel.packing.create is None:
            self.reserved += kernel.packing.bytes
            self.require_memory(layer)
        if wide and kernel.packing.bytes >= sum(wide.values()):
            self.widened |= wide
        self.packed(inputs)
        return kernel

    def may_be_refused(self, inputs: Sequence[Value | None], writes: Sequence[int]) -> bool:
        """Return whether the shape rule of a layer may refuse inputs that are known only at run time."""
        present = [v for v in inputs if v is not None]
        outputs = [self.values[write] for write in writes]
        unknown = any(v.type.kind == "dynamic" or not v.shape.is_static for v in (*present, *outputs))
        return unknown or any(_may_be_shape(v) for v in present)

    def packed(self, inputs: Sequence[Value | None]) -> None:
        """Release the memory-mapped .bin for every ``UNPACKED`` bytes of constants for which kernels have been made.

        Otherwise packed weights would be in memory twice. ``inputs`` are those of the kernel made last.
        """
        for value in inputs:
            if value is not None and (value.data is not None or value.stored is not None):
                self.unpacked += (value.data if value.stored is None else value.stored.raw).nbytes  # pyright: ignore
        if self.unpacked > UNPACKED and self.model.weights is not None:
            self.release(self.model.weights)

    def release(self, weights: Weights) -> None:
        """Release the memory-mapped .bin, and the memory in which kernels have packed what they have read of it."""
        weights.release()
        if self.unpacked > _SMALL and _TRIM is not None:
            _TRIM(0)
        self.unpacked = 0

    def fold(self, op: Op, inputs: Sequence[Value | None], writes: Sequence[int]) -> bool:
        """Compute a layer now if its inputs are constant, and return whether that was done.

        Outputs much larger than the inputs (see ``_GROWTH``) are left to each run.
        """
        outputs = [self.computed.get(write, self.values[write].exact) for write in writes]
        if any(array is None for array in outputs):
            arrays = [None if v is None else v.exact for v in inputs]
            if not inputs or any(v is not None and a is None for v, a in zip(inputs, arrays)):
                return False
            size = sum(self.values[write].shape.count().hi * self.values[write].type.dtype.itemsize for write in writes)
            if size > _GROWTH * sum(a.nbytes for a in arrays if a is not None) + _SMALL:
                return False
            if size + self.reserved > self.how.max_memory:
                return False
            self.reserved += int(size)
            try:
                with np.errstate(all="ignore"):
                    results = op.run(*arrays)
            except Exception:
                return False  # the run will report it
            outputs = results if isinstance(results, tuple) else (results,)
        for write, array in zip(writes, outputs):
            assert array is not None
            self.hold(write, np.asarray(array))
        return True

    def hold(self, slot: int, array: np.ndarray) -> None:
        """Store an array as the constant of a slot, and its Value."""
        self.constants[slot] = array
        self.values[slot] = Value(self.values[slot].type, PartialShape.of(array.shape), array)

    def allocated(self, steps: Sequence[Step], results: Sequence[int]) -> tuple[Step, ...]:
        """Return the steps, each with the slots to free after it and the array to allocate for its output."""
        last_read: dict[int, int] = {}
        for position, step in enumerate(steps):
            for number in (*step.reads, *step.writes):  # a step frees its own output if no step reads it
                last_read[number] = position
        frees: dict[int, list[int]] = {}
        kept = {-1, *self.constants, *results}
        for number, position in last_read.items():
            if number not in kept:
                frees.setdefault(position, []).append(number)
        passed: dict[object, dict[object, int]] = {}
        return tuple(
            replace(
                step, frees=tuple(frees.get(position, ())), out=self.filled(step),
                passed=passed.setdefault(self.rule(step), {}),
            )
            for position, step in enumerate(steps)
        )  # fmt: skip

    def rule(self, step: Step) -> object:
        """Return a key that is equal for steps whose shape rule gives the same for the same inputs.

        Such steps share ``Step.passed``: the layers of a decoder see the same shapes, new ones for each token.
        """
        if step.needed or not step.dynamic:
            return id(step)
        attributes = tuple([repr(getattr(step.op, name)) for name in step.op.attributes])
        types = tuple([None if read < 0 else self.values[read].type for read in step.reads])
        return type(step.op), attributes, types, tuple([output.type for output in step.layer.outputs])

    def filled(self, step: Step) -> tuple[tuple[tuple[int, ...], np.dtype], ...]:
        """Return shape and dtype of the arrays for ``out=`` of the kernel; none if the kernel allocates its outputs.

        It always allocates strings, whose dtype depends on the longest one, and elements of a type that is not known.
        Kernels of a single operation take no more than one array.
        """
        values = [self.values[slot] for slot in step.writes]
        if (
            step.kernel.out == "new"
            or (len(values) > 1 and step.own_inputs)
            or any(value.type.kind in ("string", "dynamic") for value in values)
        ):
            return ()
        shapes = [value.shape.static for value in values]
        known = [(shape, value.type.dtype) for shape, value in zip(shapes, values) if shape is not None]
        return tuple(known) if len(known) == len(values) else ()


_FEW: Final = 1 << 12
"""The most elements of a Value for which a plan keeps the contents. Larger ones would cost memory."""
UNPACKED: Final = 1 << 24
"""Bytes of constants that kernels are made for before the planner releases the memory-mapped .bin."""
_GROWTH: Final = 8
"""A folded constant may be at most ``_GROWTH`` times the bytes of its inputs, plus ``_SMALL``. 4-bit weights grow
8 times in f32."""
_SMALL: Final = 1 << 20
"""Bytes that any folded constant may take, since that little memory does not matter: see ``_GROWTH``."""


_TRIM: Final = getattr(ctypes.pythonapi, "malloc_trim", None)
"""The function of glibc that returns freed memory to the system; None with another C library."""


def _wanted(steps: Sequence[Step], results: Sequence[int]) -> list[Step]:
    """Return the steps on which a result or the state depends, and those whose operation is not pure."""
    read = set(results)
    wanted: list[Step] = []
    for step in reversed(steps):
        if not step.op.pure or step.needed or not read.isdisjoint(step.writes):
            read.update(step.reads)
            wanted.append(step)
    return wanted[::-1]


def _of_few(value: Value) -> Value:
    """Return a value without contents of more than ``_FEW`` elements."""
    is_large = value.stored is not None or (value.data is not None and value.data.size > _FEW)
    return Value(value.type, value.shape) if is_large else value


def _without_contents(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array that takes no memory: one zero with strides of 0."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def _may_be_shape(value: Value) -> bool:
    """Return whether a Value may hold a shape, axes or the like, whose numbers are known only at run time."""
    return value.data is None and value.type.is_integer and value.rank in (0, 1)

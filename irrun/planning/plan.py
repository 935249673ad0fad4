"""Plan a model: choose kernels, load constants, fold constant sub-graphs, and decide when each buffer is freed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from irrun.base.processor import may_use_tiles
from irrun.diagnostics import Diagnostic, Kind, ModelError, Refused, UnsupportedError, diagnostic
from irrun.fast import has_integers, in_integers, in_turn, join
from irrun.inference.bind import bind_all
from irrun.inference.compressed import compressed_weights
from irrun.inference.propagate import Bodies, Values, needed, propagate, refusal, wrong_output_count
from irrun.model import Layer, Model
from irrun.opdef import Kernel, Op, Operands, Value
from irrun.planning import requests
from irrun.planning.constants import Constants
from irrun.planning.decoders import append_in_place, recognise_decoders
from irrun.planning.failures import kernel_failed, refuse_too_large
from irrun.planning.flow import Context, Flow, Inputs, drop_unused
from irrun.planning.fuse import fuse_elementwise
from irrun.planning.layout import to_channels_last
from irrun.planning.patterns import is_quantised, recognise_patterns
from irrun.planning.steps import UNCHOSEN, Plan, Planning, Step
from irrun.planning.stored import stored_constants
from irrun.planning.views import merge_views

__all__ = ["PASSES", "plan"]


def join_compiled(flow: Flow, context: Context) -> Flow:
    """Join steps of compiled kernels; keep the steps as they are where such kernels are not allowed."""
    return join(flow, context) if context.compiled else flow


def join_turns(flow: Flow, context: Context) -> Flow:
    """Let one step do calls of machine code in turn; keep the steps where compiled kernels are not allowed."""
    return in_turn(flow, context) if context.compiled else flow


def to_integers(flow: Flow, context: Context) -> Flow:
    """Compute in integers where the file rounds to integers; keep the steps where compiled kernels are not allowed."""
    return in_integers(flow, context) if context.compiled else flow


PASSES: Final[tuple[Callable[[Flow, Context], Flow], ...]] = (
    drop_unused,
    recognise_patterns,
    recognise_decoders,
    drop_unused,
    append_in_place,
    drop_unused,
    to_integers,
    to_channels_last,
    join_compiled,
    merge_views,
    fuse_elementwise,
    join_turns,
)
"""The passes in their order. Each rewrites the steps of a plan. ``docs/architecture.md`` quotes this table."""


def plan(
    model: Model, how: Planning, given: Mapping[int, Value] | None = None, base: Plan | None = None,
    inferred: Bodies | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a model.

    ``given`` replaces what Parameters declare, by layer id. ``base`` is another plan of the same model, whose constants
    are used again. ``inferred`` holds bodies that were inferred with the enclosing model. Pass it only to plan a body.

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
    inferred = Bodies(certain=True) if inferred is None else inferred
    bodies = {
        id: {tag: plan(body, how, inferred=inferred) for tag, body in layer.bodies.items()}
        for id, layer in model.layers.items()
    }
    propagate(model, ops, settle, values, given or {}, inferred)
    computed = {} if base is None else {n: a for n, a in base.constants.items() if n not in base.prepacked}
    return _assembled(model, ops, values, bodies, how, computed)


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


def _assembled(
    model: Model, ops: Mapping[int, Op], values: Values, bodies: Mapping[int, Mapping[str, Plan]], how: Planning,
    computed: Mapping[int, np.ndarray],
) -> Plan:  # fmt: skip
    """Return the plan of a model whose ``values`` are inferred. ``computed`` are constants of another plan."""
    slots = {output: number for number, output in enumerate(values)}
    known = list(values.values())
    results = tuple(slots[feed] for r in model.results if (feed := model.feeds[r.id][0]) is not None)
    left: frozenset[int] = frozenset()
    if how.fuse:
        stored, left = stored_constants(model, ops, values, filters=how.compiled)
        for output, matrix in stored.items():
            known[slots[output]] = replace(known[slots[output]], data=None, stored=matrix)
    constants = Constants(model, how, known, computed)
    layers = _Layers(model, ops, slots, constants, bodies)
    steps = [step for id in model.order if id not in left and (step := layers.step(id)) is not None]
    # the plan keeps the Value of each output, but not large contents, which would stay in memory
    inferred = dict(zip(slots, map(_without_large_contents, known)))
    flow = Flow(tuple(steps), results)
    if how.fuse:
        context = Context(known, constants.arrays, how.compiled, constants.release_if_large)
        for rewrite in PASSES:
            flow = rewrite(flow, context)
        constants.pack(flow.steps)
    arrays, prepacked = constants.kept(flow.steps, results)
    constants.release()
    return Plan(
        model, how, _with_buffers(flow, known, arrays), len(known), arrays, prepacked,
        tuple(slots[p.id, 0] for p in model.parameters), results, inferred, tuple(value.type for value in known),
        {number: value.stored.raw.nbytes for number, value in enumerate(known) if value.stored is not None},
    )  # fmt: skip


class _Layers:
    """Makes the step of each layer. ``slots`` are the slots of outputs, ``bodies`` the plans of bodies."""

    def __init__(
        self, model: Model, ops: Mapping[int, Op], slots: Mapping[tuple[int, int], int], constants: Constants,
        bodies: Mapping[int, Mapping[str, Plan]],
    ) -> None:  # fmt: skip
        self.model, self.ops, self.slots, self.bodies = model, ops, slots, bodies
        self.constants, self.values, self.how = constants, constants.values, constants.how
        self.in_integers = self.how.fuse and self.how.compiled and is_quantised(model) and has_integers()
        self.precisions = _precisions(model, ops) if self.how.rounds else {}
        self.widened: dict[object, int] = {}  # bytes of each matrix that kernels hold as f32
        # the convolution in bf16 that gives an output, with a bias or without, by the output, as numbers in their order
        self.convolved: dict[tuple[int, int], int] = {}

    def step(self, id: int) -> Step | None:
        """Return the step of a layer, or None if a run has nothing to compute: for a constant, for example."""
        layer, op = self.model.layers[id], self.ops[id]
        if op.type in ("Parameter", "Result"):
            return None
        writes = tuple(self.slots[id, i] for i in range(len(layer.outputs)))
        if op.type == "Const":
            self.constants.load(layer, op, writes[0])
            return None
        reads = tuple(-1 if feed is None else self.slots[feed] for feed in self.model.feeds[id])
        inputs = self.inputs(reads)
        more = needed(op, self.model, layer)
        if self.how.fuse:
            if op.pure and not more and self.constants.fold(op, inputs, writes):
                return None
            writes = writes[: self.read_outputs(id)]
        precision = self.precision(id, inputs)
        kernel = self.kernel(layer, inputs, len(writes), precision)
        number = op.takes_stored
        stored = None if number is None or (value := inputs[number]) is None else value.stored
        if number is not None and stored is not None and number not in kernel.packing.inputs:
            self.constants.unpack(layer, reads[number], stored)
            inputs = self.inputs(reads)
            kernel = self.kernel(layer, inputs, len(writes), precision)
        number = self.residual(id, inputs, precision if kernel is not UNCHOSEN else "f32")
        kernel = kernel if number is None else requests.adding_rounded(kernel, number)
        dynamic = op.checked and self.may_be_refused(inputs, writes)
        return Step(
            layer, op, kernel, reads, writes, dynamic, more, self.bodies[id], (layer,), updates=self.updates(id),
            precision=precision,
        )  # fmt: skip

    def updates(self, id: int) -> tuple[tuple[int, str], ...]:
        """Return the position of each input that a layer overwrites, and the name of the Parameter that feeds it."""
        found: list[tuple[int, str]] = []
        for position, port in enumerate(self.ops[id].inputs):
            feed = self.model.feeds[id][position] if port.name in self.ops[id].updates else None
            if feed is not None:
                source = self.model.layers[feed[0]]
                found.append((position, source.name if source.type == "Parameter" else ""))
        return tuple(found)

    def inputs(self, reads: Sequence[int]) -> list[Value | None]:
        """Return what is known of the slots that a step reads."""
        return [None if slot < 0 else self.values[slot] for slot in reads]

    def read_outputs(self, id: int) -> int:
        """Return how many outputs of a layer, counted from the first, have a consumer; at least one, if it has any."""
        count = len(self.model.layers[id].outputs)
        return max((i + 1 for i in range(count) if (id, i) in self.model.readers), default=min(count, 1))

    def precision(self, id: int, inputs: Inputs) -> Operands:
        """Return the precision to which a layer rounds what it multiplies.

        It is f32 unless the operation rounds values, or the last operand is constant.
        """
        if self.ops[id].rounds_values:
            return "bf16" if "bf16" in self.how.rounds else "f32"
        for precision in self.how.rounds:
            numbers = self.ops[id].rounded(inputs, precision)
            feed = self.model.feeds[id][numbers[-1]] if numbers else None
            beside = frozenset[Operands]() if feed is None else self.precisions.get(feed[0], frozenset())
            if precision in beside:
                is_coded = precision == "bf16" and "i8" in beside and self.ops[id].rounded(inputs, "codes")
                return "codes" if is_coded else precision
        return "split" if "bf16" in self.how.rounds and self.ops[id].splits(inputs) else "f32"

    def residual(self, id: int, inputs: Inputs, precision: Operands) -> int | None:
        """Return the number of the input that a sum rounds to bf16, or None.

        It is what is added to a convolution in bf16 and has the same shape. Of two convolutions, it is the first one.
        """
        op, feeds, known = self.ops[id], self.model.feeds[id], self.convolved
        if precision == "bf16" and op.rounds_added:
            known[id, 0] = len(known)
        if not op.sums or not known:
            return None
        first, second = ((-1 if feed is None else known.get(feed, -1)) for feed in feeds)
        own = 0 if first > second else 1
        feed, other, value, added = feeds[own], feeds[1 - own], inputs[own], inputs[1 - own]
        if feed not in known or other is None or len(self.model.readers[feed]) > 1 or value is None or added is None:
            return None
        if "bf16" in self.precisions.get(other[0], ()):  # a bias
            known[id, 0] = known[feed]
            return None
        return 1 - own if value.shape.is_static and value.shape == added.shape and added.type.name == "f32" else None

    def kernel(self, layer: Layer, inputs: Inputs, outputs: int, precision: Operands) -> Kernel:
        """Return the kernel of a layer. Raises ModelError (IR603) if the operation fails to choose one."""
        op = self.ops[layer.id]
        if not self.how.specialise:
            return requests.defining_kernel(op, inputs, precision)
        if self.in_integers and op.takes_stored == 1 and _is_i8(inputs[1]):
            return UNCHOSEN
        wide = {
            (value.stored.raw.ctypes.data, value.stored.origin): 4 * prod(value.stored.shape)
            for value in inputs
            if value is not None and value.stored is not None
        }
        unpacks = sum((self.widened | wide).values()) <= self.how.max_weights_memory
        try:
            kernel = requests.kernel(
                op, inputs, outputs, compiled=self.how.compiled, unpacks=unpacks, precision=precision
            )
        except Exception as error:
            raise ModelError(kernel_failed(self.model, layer, op, error, "")) from error
        if kernel.packing.create is None:
            self.constants.reserve(layer, kernel.packing.bytes)
        if wide and kernel.packing.bytes >= sum(wide.values()):
            self.widened |= wide
        self.constants.release_if_large(inputs)
        return kernel

    def may_be_refused(self, inputs: Inputs, writes: Sequence[int]) -> bool:
        """Return whether the shape rule of a layer may refuse inputs that are known only at run time."""
        present = [v for v in inputs if v is not None]
        outputs = [self.values[write] for write in writes]
        unknown = any(v.type.kind == "dynamic" or not v.shape.is_static for v in (*present, *outputs))
        return unknown or any(_may_be_shape(v) for v in present)


def _precisions(model: Model, ops: Mapping[int, Op]) -> Mapping[int, frozenset[Operands]]:
    """Return to what may be rounded beside the constants of a model, by the ids of the layers that give them.

    That is bf16 for outputs that follow from constants alone, and i8 for those that decompress integers. With tiles,
    bf16 takes less time for these, too.
    """
    found: set[int] = set()
    for id in model.order:
        feeds = model.feeds[id]
        follows = feeds and ops[id].pure and all(feed is not None and feed[0] in found for feed in feeds)
        if ops[id].type == "Const" or follows:
            found.add(id)
    integers = (w for w in compressed_weights(model) if not w.quantized and _has_integers(model.layers[w.codes]))
    beside: frozenset[Operands] = frozenset({"bf16", "i8"} if may_use_tiles() else {"i8"})
    known: dict[int, frozenset[Operands]] = dict.fromkeys(found, frozenset({"bf16"}))
    return known | dict.fromkeys((weights.output[0] for weights in integers), beside)


def _has_integers(constant: Layer) -> bool:
    """Return whether a Const holds integers."""
    type = constant.outputs[0].type
    return type is not None and type.is_integer


# ---------------------------------------------------------------------------------------------
# buffers


def _with_buffers(flow: Flow, values: Sequence[Value], constants: Mapping[int, np.ndarray]) -> tuple[Step, ...]:
    """Return the steps, each with the slots to free after it and the array to allocate for its output."""
    last_read: dict[int, int] = {}
    for position, step in enumerate(flow.steps):
        for number in (*step.reads, *step.writes):  # a step frees its own output if no step reads it
            last_read[number] = position
    frees: dict[int, list[int]] = {}
    kept = {-1, *constants, *flow.results}
    for number, position in last_read.items():
        if number not in kept:
            frees.setdefault(position, []).append(number)
    passed: dict[object, dict[object, int]] = {}
    outs = [_allocated(step, values) for step in flow.steps]
    return tuple(
        replace(
            step,
            frees=tuple(frees.get(position, ())),
            out=outs[position],
            out_bytes=sum(prod(shape) * dtype.itemsize for shape, dtype in outs[position]),
            passed=passed.setdefault(_rule(step, values), {}),
        )
        for position, step in enumerate(flow.steps)
    )


def _rule(step: Step, values: Sequence[Value]) -> object:
    """Return a key that is equal for steps whose shape rule gives the same for the same inputs.

    Such steps share ``Step.passed``: the layers of a decoder see the same shapes, new ones for each token.
    """
    if step.needed or not step.dynamic:
        return id(step)
    attributes = tuple([repr(getattr(step.op, name)) for name in step.op.attributes])
    types = tuple([None if read < 0 else values[read].type for read in step.reads])
    return type(step.op), attributes, types, tuple([output.type for output in step.layer.outputs])


def _allocated(step: Step, values: Sequence[Value]) -> tuple[tuple[tuple[int, ...], np.dtype], ...]:
    """Return shape and dtype of the arrays for ``out=`` of the kernel; none if the kernel allocates its outputs.

    It always allocates strings, whose dtype depends on the longest one, and elements of a type that is not known.
    Kernels of a single operation take no more than one array.
    """
    written = [values[slot] for slot in step.writes]
    if (
        step.kernel.out == "new"
        or (len(written) > 1 and step.own_inputs)
        or any(value.type.kind in ("string", "dynamic") for value in written)
    ):
        return ()
    shapes = [value.shape.static for value in written]
    known = [(shape, value.type.dtype) for shape, value in zip(shapes, written) if shape is not None]
    return tuple(known) if len(known) == len(written) else ()


_MAX_KEPT_ELEMENTS: Final = 1 << 12
"""The most elements of a Value for which a plan keeps the contents. Larger ones would cost memory."""


def _without_large_contents(value: Value) -> Value:
    """Return a value without contents of more than ``_MAX_KEPT_ELEMENTS`` elements."""
    is_large = value.stored is not None or (value.data is not None and value.data.size > _MAX_KEPT_ELEMENTS)
    return Value(value.type, value.shape) if is_large else value


def _is_i8(value: Value | None) -> bool:
    """Return whether a constant stays as the file has it, in i8."""
    return value is not None and value.stored is not None and value.stored.type.name == "i8"


def _may_be_shape(value: Value) -> bool:
    """Return whether a Value may hold a shape, axes or the like, whose numbers are known only at run time."""
    return value.data is None and value.type.is_integer and value.rank in (0, 1)

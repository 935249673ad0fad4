"""Recognise what language models have in common: keys and values that grow, heads in groups, rotary embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irrun.fast import rotation
from irrun.kernels.attention import rotated
from irrun.opdef import Kernel, Op, Site, Value, Variables
from irrun.planning import requests
from irrun.planning.failures import run_within
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step
from irrun.types import Dim

__all__ = ["Appending", "append_in_place", "recognise_decoders"]


def recognise_decoders(flow: Flow, context: Context) -> Flow:
    """Replace attentions and rotary embeddings by faster ones. Some other steps then have no consumer."""
    seen = _Seen(flow, context)
    rules = {"ScaledDotProductAttention": _in_groups, "Add": _rotating}
    return flow.replaced([rules[s.op.type](seen, s) if s.op.type in rules else s for s in flow.steps])


def append_in_place(flow: Flow, context: Context) -> Flow:
    """Let one step append new keys or values to a variable, in place: see ``_appending``."""
    seen = _Seen(flow, context)
    assigns = {(step.reads[0], _variable(step.op)): step for step in flow.steps if step.op.type == "Assign"}
    steps = {flow.made[s.writes[0]]: _appending(flow, seen, s, assigns) for s in flow.steps if s.op.type == "Concat"}
    within = {
        id(step) for one in steps.values() if isinstance(one.kernel.call, Appending) for step in one.kernel.call.all
    }
    return flow.replaced([steps.get(n, step) for n, step in enumerate(flow.steps) if id(step) not in within])


class _Seen:
    """What the rules ask of steps and slots."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self.values, self.compiled = context.values, context.compiled
        self.of = flow.maker

    def dims(self, slot: int, rank: int) -> tuple[Dim, ...] | None:
        """Return the dims of a slot, or None if it certainly or possibly has another rank."""
        dims = self.values[slot].shape.dims if slot >= 0 else None
        return dims if dims is not None and len(dims) == rank else None


# ---------------------------------------------------------------------------------------------
# keys and values that grow


def _appending(flow: Flow, seen: _Seen, step: Step, assigns: Mapping[tuple[int, str | None], Step]) -> Step:
    """Return the step for a Concat. It appends to a variable in place if the result becomes its new value.

    The layers are ``ReadValue - Concat - Assign``, with a Gather before Concat that chooses rows of the batch
    (``beam_idx``). It passes the value on as it is, unless rows change their places. The step also computes the other
    layers, where nothing else reads what they return.
    """
    gather = seen.of(step.reads[0], "Gather")
    read = seen.of(step.reads[0] if gather is None else gather.reads[0], "ReadValue")
    id, axis = None if read is None else _variable(read.op), getattr(step.op, "axis", None)
    if read is None or id is None or axis is None or (assign := assigns.get((step.writes[0], id))) is None:
        return step
    gather = None if gather is None or flow.only_reader(gather.writes[0]) is None else gather
    past = step.reads[:1] if gather is None else gather.reads
    inner = read if past[0] == read.writes[0] and flow.only_reader(past[0]) is not None else None
    last = None if any(slot in flow.readers for slot in assign.writes) else assign
    return replace(
        step, kernel=Kernel(Appending(id, axis, step.op, inner, gather, last), "in place"), needed={"variables": None},
        reads=(*(past[:1] if inner is None else inner.reads), *past[1:], *step.reads[1:]),
        layers=tuple(layer for one in (inner, gather, step, last) if one is not None for layer in one.layers),
        dynamic=False, own_inputs=False, grows=((-1 if inner is None else past[0], step.writes[0]),),
    )  # fmt: skip


def _variable(op: Op) -> str | None:
    return getattr(op, "variable_id", None)


@dataclass(frozen=True, slots=True)
class Appending:
    """The kernel that appends pieces to the value of the variable ``id``. ``op`` is the Concat.

    The kernel also computes the steps ``read``, ``gather`` and ``assign``, where these are not None. Its inputs, in
    order: the inputs of ``read``, or the value of the past; rows and axis of ``gather``; and the pieces.
    """

    id: str
    axis: int
    op: Op
    read: Step | None
    gather: Step | None
    assign: Step | None

    @property
    def all(self) -> list[Step]:
        """The steps that it computes besides the Concat."""
        return [step for step in (self.read, self.gather, self.assign) if step is not None]

    @property
    def pasts(self) -> int:
        """The number of inputs that the value of the past is read from."""
        return 1 if self.read is None else len(self.read.reads)

    def __call__(self, *arrays: np.ndarray, variables: Variables) -> np.ndarray:
        """Return the new value. Raises Refused, as the Concat does, for shapes that do not fit, and FailedWithin."""
        past, more = self.past(arrays[: self.pasts], variables), arrays[self.pasts :]
        if self.gather is not None:
            past, more = self.gather.kernel.call(past, *more[:2]), more[2:]
        if any(piece.dtype != past.dtype for piece in more):
            self.op.infer(Site(), *map(Value.of, (past, *more)))
        try:
            value = variables.appended(self.id, past, more, self.axis)
        except ValueError:
            self.op.infer(Site(), *map(Value.of, (past, *more)))
            raise
        if self.assign is not None:
            variables.assign(self.id, value)
        return value

    def past(self, given: Sequence[np.ndarray], variables: Variables) -> np.ndarray:
        """Return the value of the variable, which ``read`` gives, or the array ``given`` without that."""
        if self.read is None:
            return given[0]
        held = variables.read(self.id)
        return run_within(self.read, given, variables) if held is None else held


# ---------------------------------------------------------------------------------------------
# heads in groups


def _in_groups(seen: _Seen, step: Step) -> Step:
    """Return the step for an attention. It reads each key and value once for all heads of a group.

    The layers before it repeat keys and values [B,G,S,E] for the heads of a group (see ``_repeated``). They must repeat
    them by the same number, and change no length.
    """
    key, value = (_repeated(seen, slot) for slot in step.reads[1:3])
    if key is None or value is None:
        return step
    (keys, length, times), (rows, other, again) = key, value
    known = seen.values[keys].shape.dims
    if times != again or known is None or not (length.same(known[2]) and other.same(known[2])):
        return step
    reads = (step.reads[0], keys, rows, *step.reads[3:])
    inputs = [None if read < 0 else seen.values[read] for read in reads]
    kernel = requests.kernel(step.op, inputs, compiled=seen.compiled, precision=step.precision)
    if kernel.out != "tiles":  # the defining kernel takes no groups
        return step
    call = _explaining(step.op, kernel.call, times)
    return replace(step, kernel=replace(kernel, call=call), reads=reads, dynamic=False, own_inputs=False)


def _repeated(seen: _Seen, slot: int) -> tuple[int, Dim, int] | None:
    """Match ``Reshape(Broadcast(Unsqueeze(x)))``, which repeats each head of x [B,G,S,E] for the heads of its group.

    The shapes are [B,G,1,S,E], [B,G,n,S',E] and [B,G·n,S',E]. Return the slot of x, the S' that Broadcast is given, and
    n.
    """
    reshape = seen.of(slot, "Reshape")
    broadcast = seen.of(reshape.reads[0], "Broadcast") if reshape else None
    unsqueeze = seen.of(broadcast.reads[0], "Unsqueeze") if broadcast else None
    if broadcast is None or unsqueeze is None or seen.values[unsqueeze.reads[1]].ints() != (2,):
        return None
    x, wide, result = seen.dims(unsqueeze.reads[0], 4), seen.dims(broadcast.writes[0], 5), seen.dims(slot, 4)
    target = seen.values[broadcast.reads[1]].dims()
    if x is None or wide is None or result is None or target is None or len(target) != 5:
        return None
    groups, times = wide[1].value, wide[2].value
    kept = all(a.same(b) for a, b in ((wide[0], x[0]), (wide[1], x[1]), (wide[4], x[3])))
    joined = result[0].same(x[0]) and result[3].same(x[3])
    if not kept or not joined or groups is None or times is None or result[1] != groups * times:
        return None
    return unsqueeze.reads[0], target[3], times


def _explaining(op: Op, call: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Return a kernel of attention that raises Refused, as ``op`` does, for keys, values and masks that do not fit."""

    def attend(
        query: np.ndarray, key: np.ndarray, value: np.ndarray, *more: np.ndarray | None, **asked: Any
    ) -> np.ndarray:
        if value.shape[2] == 1 != key.shape[2]:
            value = np.broadcast_to(value, (*value.shape[:2], key.shape[2], value.shape[3]))
        inputs = (query, key, value, *more)
        mask = more[0] if more else None
        sides = () if mask is None else zip(mask.shape[:-3:-1], (key.shape[2], query.shape[2]))
        if any(n not in (1, of) for n, of in sides):
            _refuse(op, inputs, times)
        try:
            return call(*inputs, **asked)
        except ValueError:
            _refuse(op, inputs, times)
            raise

    return attend


def _refuse(op: Op, inputs: Sequence[np.ndarray | None], times: int) -> None:
    """Raise Refused if ``op`` refuses the inputs with keys and values repeated ``times`` times."""
    values: list[Value | None] = []
    for number, array in enumerate(inputs):
        if array is not None and number in (1, 2):
            batch, groups, *rest = array.shape
            array = np.broadcast_to(array[:, :1], (batch, groups * times, *rest))
        values.append(None if array is None else Value.of(array))
    op.infer(Site(), *values)


# ---------------------------------------------------------------------------------------------
# rotary embeddings


def _rotating(seen: _Seen, last: Step) -> Step:
    """Return the step for an Add. It rotates pairs of elements if it is ``x * cos + turned * sin``.

    ``turned`` is ``Concat(-x[..., n:], x[..., :n])``, where n is half of the last axis.
    """
    products = [seen.of(slot, "Multiply") for slot in last.reads]
    for first, second in (products, products[::-1]):
        for turned, sin in _pairs(second):
            x = _turned(seen, turned)
            for other, cos in _pairs(first):
                if x is not None and other == x and _fits(seen, x, (cos, sin), last.writes[0]):
                    kernel = Kernel(_rotating_or_refusing(last.op, seen.compiled), "rotary", out="whole")
                    return replace(last, kernel=kernel, reads=(x, cos, sin), dynamic=False, own_inputs=False)
    return last


def _rotating_or_refusing(op: Op, compiled: bool) -> Callable[..., np.ndarray]:
    """Return the kernel that raises Refused, as ``op`` does, for shapes that cannot be broadcast."""
    kernel = rotation() if compiled else rotated

    def rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        try:
            return kernel(x, cos, sin, out=out)
        except ValueError:
            for pair in ((x, cos), (x, sin), (cos, sin)):
                op.infer(Site(), *map(Value.of, pair))
            raise

    return rotate


def _pairs(step: Step | None) -> tuple[tuple[int, int], ...]:
    """Return the two inputs of a step in both orders."""
    if step is None or len(step.reads) != 2:
        return ()
    a, b = step.reads
    return (a, b), (b, a)


def _turned(seen: _Seen, slot: int) -> int | None:
    """Return the slot of x if a slot is ``Concat(-x[..., n:], x[..., :n])``, where n is half of its last axis."""
    concat = seen.of(slot, "Concat")
    if concat is None or len(concat.reads) != 2 or seen.values[slot].rank is None:
        return None
    minus, low = seen.of(concat.reads[0], "Multiply", "Negative"), seen.of(concat.reads[1], "Slice")
    high = None if minus is None else seen.of(minus.reads[0], "Slice")
    rank, axis = seen.values[slot].rank or 0, getattr(concat.op, "axis", 0)
    if minus is None or low is None or high is None or axis not in (-1, rank - 1) or low.reads[0] != high.reads[0]:
        return None
    if minus.op.type == "Multiply":
        factor = seen.values[minus.reads[1]].exact
        if factor is None or factor.size != 1 or factor.item() != -1:
            return None
    dims = seen.dims(low.reads[0], rank)
    size = None if dims is None or not dims else dims[-1].value
    if not size or size % 2:
        return None
    halves = [_range(seen, step, size) for step in (low, high)]
    return low.reads[0] if halves == [range(size // 2), range(size // 2, size)] else None


def _range(seen: _Seen, step: Step, size: int) -> range | None:
    """Return which elements of the last axis, which has ``size``, a Slice takes; None if it also cuts other axes."""
    bounds = [seen.values[slot].ints() for slot in step.reads[1:]]
    rank = seen.values[step.reads[0]].rank
    if len(bounds) != 4 or rank is None or any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, stop, stride, axis = (bound[0] for bound in bounds if bound is not None)
    return range(size)[start:stop:stride] if axis in (-1, rank - 1) and stride else None


def _fits(seen: _Seen, x: int, factors: Sequence[int], result: int) -> bool:
    """Return whether x, its factors and the result are all f32 or all f64, with as many axes and as long a last one.

    The factors may have fewer axes.
    """
    shape, dims = seen.values[result].shape.dims, seen.values[x].shape.dims
    if not shape or not dims or len(shape) != len(dims) or not shape[-1].same(dims[-1]):
        return False
    types = {seen.values[slot].type.name for slot in (x, *factors, result)}
    widths = [seen.values[slot].shape.dims for slot in factors]
    return types in ({"f32"}, {"f64"}) and all(width and width[-1].same(dims[-1]) for width in widths)

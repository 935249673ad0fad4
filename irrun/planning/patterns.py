"""Recognise operations that converters write as many small layers (LayerNorm, GELU, attention) and compute each as one.

A rule gets one step as the last of its pattern and returns the operation to compute instead, or None. A match is
replaced only if no other step reads an intermediate value of the pattern. The result is the same up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.model import Model
from irrun.opdef import Kernel, Op, Value, resolve
from irrun.planning import requests
from irrun.planning.flow import Context, Flow
from irrun.planning.idioms import divided_by_root, factors, pairs, transposed
from irrun.planning.steps import Step
from irrun.types import PartialShape

__all__ = ["is_quantised", "recognise_patterns"]


@dataclass(frozen=True, slots=True)
class _Match:
    """A match of a rule: ``op`` on the slots ``reads`` replaces the steps ``members``, which are in order."""

    op: Op
    reads: tuple[int, ...]
    members: tuple[Step, ...]
    keys_swapped: bool = False
    """Whether the second input has its last two axes swapped, compared with the order that ``op`` expects."""
    then: tuple[Op, int] | None = None
    """An operation to apply to the result of ``op``, and the slot of its second input."""


def recognise_patterns(flow: Flow, context: Context) -> Flow:
    """Replace each pattern by one operation, in the place of its last step. The rules apply in turn.

    The constants that a replacement needs are added to ``context``.
    """
    for rule in _RULES:
        flow = _Patterns(flow, context).replaced(rule)
    return flow


class _Patterns:
    """Replaces the matches of a rule, and answers what the rules ask of steps and slots."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self.flow, self.context = flow, context
        self.values, self.constants = context.values, context.constants
        self.of = flow.maker

    def replaced(self, rule: _Rule) -> Flow:
        """Return the flow with each match of a rule replaced."""
        gone: set[int] = set()
        new: list[Sequence[Step]] = []
        for position, step in enumerate(self.flow.steps):
            match = rule(self, step)
            members = set() if match is None else {self.flow.made[member.writes[0]] for member in match.members}
            if match is None or not self.closed(match, members) or gone & members:
                new.append((step,))
                continue
            for member in members - {position}:
                new[member] = ()
            new.append(self.steps(match))
            gone |= members
        return self.flow.replaced([step for steps in new for step in steps])

    def closed(self, match: _Match, members: set[int]) -> bool:
        """Return whether a match may be replaced. ``members`` are the positions of its members.

        Only these may read its intermediate values, and the result must have the rank of the first input: a
        constant of higher rank in the pattern would add axes. The operation that replaces them accepts no matrix as
        the file stores it.
        """
        if any(slot >= 0 and self.values[slot].stored is not None for slot in match.reads):
            return False
        if self.values[match.reads[0]].rank != self.values[match.members[-1].writes[0]].rank:
            return False
        inner = [slot for step in match.members[:-1] for slot in step.writes]
        return all(members.issuperset(self.flow.readers.get(slot, ())) for slot in inner)

    def steps(self, match: _Match) -> list[Step]:
        """Return the step that replaces a match, or the two steps if another operation follows."""
        inputs = [None if slot < 0 else self.values[slot] for slot in match.reads]
        if match.keys_swapped:
            inputs[1] = _swapped(inputs[1])
        kernel = requests.kernel(match.op, inputs, compiled=self.context.compiled)
        if match.keys_swapped:
            kernel = replace(kernel, call=_swapping_keys(kernel.call))
        *before, last = match.members
        if match.then is None:
            return [self.step(match.op, kernel, match.reads, last, match.members)]
        inner, (op, other) = before[-1], match.then
        reads = inner.writes[0], other
        return [
            self.step(match.op, kernel, match.reads, inner, before),
            self.step(op, requests.kernel(op, [self.values[slot] for slot in reads]), reads, last, [last]),
        ]

    def step(self, op: Op, kernel: Kernel, reads: tuple[int, ...], last: Step, members: Sequence[Step]) -> Step:
        """Return a step in the place of ``last`` that computes the layers of ``members``."""
        layers = tuple(layer for step in members for layer in step.layers)
        return replace(last, op=op, kernel=kernel, reads=reads, layers=layers, own_inputs=False)

    # -- helpers of the rules -------------------------------------------------------------------

    def number(self, slot: int) -> float | None:
        """Return the number in a constant of one element, None for any other slot."""
        array = self.constants.get(slot)
        return float(array.reshape(())) if array is not None and array.size == 1 else None

    def constant(self, array: np.ndarray) -> int:
        """Add a constant and return its slot."""
        return self.context.add(Value.of(array), array)

    def is_float(self, slot: int) -> bool:
        """Return whether a slot is f32 or f64.

        _Patterns in narrower floats are left alone: one operation would round at other places than the layers do.
        """
        return self.values[slot].type.name in ("f32", "f64")

    def same(self, a: int, b: int) -> bool:
        """Return whether two slots are the same slot or hold equal constants."""
        first, second = self.constants.get(a), self.constants.get(b)
        return a == b or (first is not None and second is not None and np.array_equal(first, second))


def _swapped(value: Value | None) -> Value | None:
    """Return a Value with its last two axes swapped, without contents."""
    if value is None or value.shape.dims is None:
        return value
    *batch, rows, columns = value.shape.dims
    return value.reshaped(PartialShape((*batch, columns, rows)))


def _swapping_keys(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that swaps the last two axes of its second input and then runs ``call``."""

    def swapping(query: np.ndarray, key: np.ndarray, *more: Any, **asked: Any) -> Any:
        return call(query, key.swapaxes(-1, -2), *more, **asked)

    return swapping


def _op(type: str, opset: int, **attributes: Any) -> Op:
    """Return an operation with these attributes, in the version that the opset holds."""
    cls = resolve(type, opset)
    assert cls is not None
    return cls(**attributes)


# ---------------------------------------------------------------------------------------------
# the rules


def _square(p: _Patterns, slot: int, of: int) -> Step | None:
    """Return the step that computes ``slot`` as ``of * of`` or ``of ** 2``, else None."""
    step = p.of(slot, "Power", "Multiply")
    if step is None or step.reads[0] != of:
        return None
    other = step.reads[1]
    return step if (other == of if step.op.type == "Multiply" else p.number(other) == 2) else None


def _mean(p: _Patterns, slot: int) -> Step | None:
    """Return the ReduceMean that computes ``slot``, if its axes are constant and it keeps them, else None."""
    step = p.of(slot, "ReduceMean")
    return step if step is not None and getattr(step.op, "keep_dims", False) and step.reads[1] in p.constants else None


def _rms(p: _Patterns, last: Step) -> _Match | None:
    """Match RMS: ``x / sqrt(mean(x ** 2) + eps)``, with the mean along the last axis."""
    for x, total, steps in divided_by_root(p, last):
        add = p.of(total, "Add")
        for mean_slot, eps_slot in pairs(add) if add else ():
            eps, mean = p.number(eps_slot), _mean(p, mean_slot)
            if add is None or eps is None or mean is None or not p.is_float(x):
                continue
            square, rank = _square(p, mean.reads[0], x), p.values[x].rank
            alone = rank is not None and p.constants[mean.reads[1]].ravel().tolist() in ([-1], [rank - 1])
            if square is not None and alone:
                op = _op("RMS", 14, epsilon=eps, elementwise_affine=False)
                return _Match(op, (x,), (square, mean, add, *steps, last))
    return None


def _mvn(p: _Patterns, last: Step) -> _Match | None:
    """Match MVN: ``c / sqrt(mean(c ** 2) + eps)`` with ``c = x - mean(x)`` and both means along the same axes."""
    for centred_slot, total, steps in divided_by_root(p, last):
        centred, add = p.of(centred_slot, "Subtract"), p.of(total, "Add")
        if centred is None or add is None or not p.is_float(centred_slot):
            continue
        x, mean = centred.reads[0], _mean(p, centred.reads[1])
        for variance_slot, eps_slot in pairs(add):
            eps, variance = p.number(eps_slot), _mean(p, variance_slot)
            if eps is None or mean is None or variance is None or mean.reads[0] != x:
                continue
            square = _square(p, variance.reads[0], centred_slot)
            if square is not None and p.same(mean.reads[1], variance.reads[1]):
                op = _op("MVN", 6, normalize_variance=True, eps=eps, eps_mode="inside_sqrt")
                return _Match(op, mean.reads, (mean, centred, square, variance, add, *steps, last))
    return None


def _gelu(p: _Patterns, last: Step) -> _Match | None:
    """Match Gelu with the error function: ``0.5 * x * (1 + erf(x / sqrt(2)))``, with the factors in any order."""
    slots, steps = factors(p, last)
    half = [slot for slot in slots if p.number(slot) == 0.5]
    if len(slots) != 3 or len(half) != 1:
        return None
    for x, total in (rest := [slot for slot in slots if slot != half[0]], rest[::-1]):
        add = p.of(total, "Add")
        for erf_slot, one in pairs(add) if add else ():
            erf = p.of(erf_slot, "Erf")
            scaled = p.of(erf.reads[0], "Multiply", "Divide") if erf else None
            if add is None or erf is None or scaled is None or p.number(one) != 1 or not p.is_float(x):
                continue
            for of, by in pairs(scaled):
                factor = p.number(by)
                if of != x or factor is None or (scaled.op.type == "Divide" and by != scaled.reads[1]):
                    continue
                factor = factor if scaled.op.type == "Multiply" else 1 / factor
                if math.isclose(factor, math.sqrt(0.5), rel_tol=1e-4):
                    return _Match(_op("Gelu", 7), (x,), (scaled, erf, add, *steps, last))
    return None


def _attention(p: _Patterns, last: Step) -> _Match | None:
    """Match ScaledDotProductAttention: ``SoftMax(q kᵀ * scale + mask) v``, where scale and mask may be missing."""
    if last.op.type != "MatMul" or transposed(last) != (False, False):
        return None
    weights = p.of(last.reads[0], "SoftMax")
    rank = p.values[last.reads[0]].rank
    if weights is None or rank is None or rank < 3 or getattr(weights.op, "axis", 0) not in (-1, rank - 1):
        return None
    scores, mask, between = weights.reads[0], -1, [weights]
    if add := p.of(scores, "Add"):
        scores, mask = add.reads if p.of(add.reads[0], "MatMul", "Multiply", "Divide") else add.reads[::-1]
        between.append(add)
    scale = 1.0
    if (scaled := p.of(scores, "Multiply", "Divide")) and (by := p.number(scaled.reads[1])):
        scores, scale = scaled.reads[0], by if scaled.op.type == "Multiply" else 1 / by
        between.append(scaled)
    product = p.of(scores, "MatMul")
    if product is None or not p.is_float(scores) or transposed(product)[0]:
        return None
    shapes = [p.values[slot].shape for slot in (product.writes[0], weights.writes[0])]
    ranks = {p.values[slot].rank for slot in (*product.reads, last.reads[1])}
    if not shapes[0].is_static or shapes[0] != shapes[1] or ranks != {rank}:
        return None
    factor = p.constant(np.array(scale, p.values[scores].type.dtype))
    op = _op("ScaledDotProductAttention", 13, causal=False)
    reads = (*product.reads, last.reads[1], mask, factor)
    return _Match(op, reads, (product, *between[::-1], last), keys_swapped=not transposed(product)[1])


def _slopes(p: _Patterns, last: Step) -> _Match | None:
    """Match a PReLU with one slope per channel, and reshape the slopes so that numpy broadcasts them to the input."""
    if last.op.type != "PReLU":
        return None
    slopes, shape = p.constants.get(last.reads[1]), p.values[last.reads[0]].shape.dims
    if slopes is None or slopes.ndim != 1 or slopes.size == 1 or shape is None or len(shape) < 3:
        return None
    if shape[1].value != slopes.size:
        return None
    reshaped = p.constant(slopes.reshape(-1, *(1,) * (len(shape) - 2)))
    return _Match(last.op, (last.reads[0], reshaped), (last,))


def _scaled(p: _Patterns, last: Step) -> _Match | None:
    """Match a convolution whose result is multiplied by one number per channel, and multiply its filters instead."""
    if last.op.type != "Multiply":
        return None
    for slot, by in pairs(last):
        factors = p.constants.get(by)
        channels = None if factors is None else _by_channel(factors, p.values[slot].shape.static)
        convolution = p.of(slot, *_FILTERED)
        if channels is not None and convolution is not None and (filters := _times(p, convolution, channels)):
            return _Match(convolution.op, (convolution.reads[0], filters, *convolution.reads[2:]), (convolution, last))
    return None


def _normalised(p: _Patterns, last: Step) -> _Match | None:
    """Match a convolution with BatchNormInference, and replace it by one with scaled filters and an addition."""
    if last.op.type != "BatchNormInference":
        return None
    slot, *statistics = (last.reads[i] for i in getattr(last.op, "order", ()))
    convolution, rank = p.of(slot, *_FILTERED), p.values[slot].rank
    known = [p.constants.get(s) for s in statistics]
    if convolution is None or rank is None or any(array is None for array in known):
        return None
    gamma, beta, mean, variance = (array.astype(np.float64) for array in known if array is not None)
    with np.errstate(all="ignore"):
        factors = gamma / np.sqrt(variance + getattr(last.op, "epsilon", 0))
    filters = _times(p, convolution, factors)
    if filters is None:
        return None
    shift = (beta - mean * factors).reshape(-1, *(1,) * (rank - 2)).astype(p.values[slot].type.dtype)
    reads = (convolution.reads[0], filters, *convolution.reads[2:])
    return _Match(convolution.op, reads, (convolution, last), then=(_op("Add", 1), p.constant(shift)))


_FILTERED: Final = {
    "Convolution": 0, "GroupConvolution": 1, "ConvolutionBackpropData": 1, "GroupConvolutionBackpropData": 2,
}  # fmt: skip
"""The operations whose filters can be scaled, each with the axis of its filters that counts the output channels."""


def _by_channel(factors: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray | None:
    """Return the factors as a 1D array if numpy broadcasts them along the channels of ``shape`` (axis 1), else None."""
    if shape is None or len(shape) < 3 or factors.ndim > len(shape):
        return None
    padded = (1,) * (len(shape) - factors.ndim) + factors.shape
    return factors.ravel() if padded == (1, shape[1], *(1,) * (len(shape) - 2)) else None


def _times(p: _Patterns, convolution: Step, factors: np.ndarray) -> int | None:
    """Multiply the filters of a convolution by one factor per output channel, and return their new slot.

    Returns None if the filters are not constant, if the convolution is not in f32 or f64, or if a new filter is
    infinite or NaN: a sum of such products is another one than the product of a sum.
    """
    filters = p.constants.get(convolution.reads[1])
    value = p.values[convolution.reads[1]]
    if value.stored is not None:
        filters = value.stored.unpack_rows(slice(None)).reshape(value.shape.static or ())
    if filters is None or not p.is_float(convolution.writes[0]):
        return None
    axis = _FILTERED[convolution.op.type]
    grouped = convolution.op.type.startswith("Group")
    shape = [n if i == axis or (grouped and i == 0) else 1 for i, n in enumerate(filters.shape)]
    with np.errstate(all="ignore"):
        scaled = (filters * factors.reshape(shape)).astype(filters.dtype)
    return p.constant(scaled) if np.isfinite(scaled).all() else None


def _unbroadcast(p: _Patterns, last: Step) -> _Match | None:
    """Match an element-wise operation on the output of a Broadcast, and drop the Broadcast, since numpy broadcasts."""
    if getattr(last.op, "auto_broadcast", "numpy") != "numpy":
        return None  # other rules do not stretch the first input
    shape = p.values[last.writes[0]].shape.static if last.writes else None
    for position, slot in enumerate(last.reads if last.kernel.out == "elementwise" else ()):
        step = p.of(slot, "Broadcast")
        if step is None or getattr(step.op, "mode", "") == "explicit" or last.reads.count(slot) > 1:
            continue
        reads = (*last.reads[:position], step.reads[0], *last.reads[position + 1 :])
        shapes = [p.values[read].shape.static for read in reads if read >= 0]
        if all(s is not None for s in shapes) and np.broadcast_shapes(*filter(None, shapes)) == shape:
            return _Match(last.op, reads, (step, last))
    return None


def _clipped(p: _Patterns, last: Step) -> _Match | None:
    """Match a FakeQuantize of a ReLU whose range has no negative numbers, and drop the ReLU, since it clips."""
    before = p.of(last.reads[0], "ReLU") if last.op.type == "FakeQuantize" else None
    low, high = (p.constants.get(slot) for slot in last.reads[1:3]) if before is not None else (None, None)
    if before is None or low is None or high is None or not (low >= 0).all() or not (low < high).all():
        return None
    return _Match(last.op, (before.reads[0], *last.reads[1:]), (before, last))


_Rule = Callable[[_Patterns, Step], _Match | None]
_RULES: Final[tuple[_Rule, ...]] = (
    _normalised, _scaled, _unbroadcast, _mvn, _rms, _gelu, _attention, _slopes, _clipped,
)  # fmt: skip


def is_quantised(model: Model) -> bool:
    """Return whether values are rounded to integers as they come, for which numpy takes many passes."""
    return any(layer.type == "FakeQuantize" for layer in model.layers.values())

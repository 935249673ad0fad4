"""Write an operation as several older ones that compute the same: one function for each operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import irrun.build as b
from irrun.build import Node, Output
from irrun.diagnostics import IrrunError
from irrun.model import Layer, Model
from irrun.opdef import Op, Value
from irrun.opdef.values import CONTENTS_LIMIT
from irrun.surgery._transforms import TRANSFORMS, Rule, Tensor, ints, like

__all__ = ["DECOMPOSITIONS", "decomposed"]


def decomposed(layer: Layer, op: Op, inputs: Sequence[Value | None], read: int) -> Model | None:
    """Return a model that computes the first ``read`` outputs of a layer from its inputs, or None if there is no
    decomposition into older operations that gives as many outputs.

    Its Parameters are the inputs that are not None, in order. An input of few known integers is a constant as well, as
    which the layers of the model read it.
    """
    rule = DECOMPOSITIONS.get(f"{op.type}-{op.since}")
    if rule is None:
        return None
    parameters: list[Node] = []
    given: list[Tensor | None] = []
    for number, value in enumerate(inputs):
        node = None
        if value is not None:
            node = b.parameter(value.shape, value.type, name=f"input{number}")
            parameters.append(node)
            known = value.exact if value.type.is_integer else None
            if known is not None and known.size <= CONTENTS_LIMIT:
                node = b.constant(known, value.type)
        given.append(node)
    try:
        outputs = rule(op, *given)
        if outputs is None:
            return None
        listed = [outputs] if isinstance(outputs, Output) else list(outputs)
        return b.model(listed[:read], inputs=parameters, name=layer.name) if len(listed) >= read else None
    except IrrunError:  # an operation refuses these types or shapes
        return None


# ---------------------------------------------------------------------------------------------
# opset 4 to 8


def _swish(op: Any, x: Tensor, beta: Tensor | None = None) -> Tensor:
    return b.Multiply(x, b.Sigmoid(x if beta is None else b.Multiply(x, beta)))


def _hswish(op: Any, x: Tensor) -> Tensor:
    return b.Multiply(x, b.Divide(b.Clamp(b.Add(x, like(x, 3)), min=0, max=6), like(x, 6)))


def _hsigmoid(op: Any, x: Tensor) -> Tensor:
    return b.Divide(b.Clamp(b.Add(x, like(x, 3)), min=0, max=6), like(x, 6))


def _soft_plus(op: Any, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) without an overflow: max(x, 0) + log(1 + exp(-|x|))."""
    return b.Add(b.ReLU(x), b.Log(b.Add(b.Exp(b.Negative(b.Abs(x))), like(x, 1))))


def _mish(op: Any, x: Tensor) -> Tensor:
    return b.Multiply(x, b.Tanh(_soft_plus(op, x)))


def _gelu(op: Any, x: Tensor) -> Tensor:
    if op.since == 2:
        error = b.Erf(b.Multiply(x, like(x, np.sqrt(0.5))))
        return b.Multiply(b.Multiply(x, like(x, 0.5)), b.Add(error, like(x, 1)))
    if op.approximation_mode == "erf":
        return b.Gelu(x, opset=2)
    cubic = b.Multiply(b.Power(x, like(x, 3)), like(x, 0.044715))
    inner = b.Multiply(b.Add(x, cubic), like(x, np.sqrt(2 / np.pi)))
    return b.Multiply(b.Multiply(x, like(x, 0.5)), b.Add(b.Tanh(inner), like(x, 1)))


def _log_softmax(op: Any, x: Tensor) -> Tensor:
    shifted = b.Subtract(x, b.ReduceMax(x, [op.axis], keep_dims=True))
    return b.Subtract(shifted, b.Log(b.ReduceSum(b.Exp(shifted), [op.axis], keep_dims=True)))


def _softmax(op: Any, x: Tensor) -> Tensor | None:
    """Return Softmax-1, whose axis is counted from the front."""
    return None if x.shape.rank is None else b.SoftMax(x, axis=op.axis % x.shape.rank, opset=1)


def _is_narrow(x: Tensor) -> bool:
    """Return whether an intermediate result in the type of ``x`` may overflow or lose most of its digits."""
    return x.type.bits < (16 if x.type.kind == "float" else 8)


def _norm(of: Callable[[Tensor], Tensor], end: Callable[[Tensor], Tensor], *kinds: str) -> Rule:
    """Return the rule that a norm is ``end`` of the sum of ``of``, in f32 for floats of 16 bits.

    ``kinds`` are the kinds of element types for which this holds.
    """

    def rule(op: Any, x: Tensor, axes: Tensor) -> Tensor | None:
        if x.type.kind not in kinds or _is_narrow(x) or axes.shape.static == (0,):
            return None
        wide = b.Convert(x, destination_type="f32") if x.type.kind == "float" and x.type.bits < 32 else x
        total = end(b.ReduceSum(of(wide), axes, keep_dims=op.keep_dims))
        return total if wide is x else b.Convert(total, destination_type=x.type)

    return rule


def _slice(op: Any, x: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None) -> Tensor | None:
    """Return StridedSlice, which has one entry for each axis. The axes and steps must be known, and steps positive."""
    steps, known = ints(step), None if axes is None else ints(axes)
    rank = x.shape.rank
    if steps is None or min(steps, default=1) < 0 or rank is None or (axes is not None and known is None):
        return None
    at = [axis % rank for axis in (range(len(steps)) if known is None else known)]
    count = max(at, default=-1) + 1
    masks = [0 if axis in at else 1 for axis in range(count)]

    def spread(values: Tensor, other: int) -> Tensor:
        filled = b.Concat(b.Convert(values, destination_type="i64"), b.constant(np.array([other], np.int64)), axis=0)
        order = [at.index(axis) if axis in at else len(at) for axis in range(count)]
        return b.Gather(filled, order, 0, opset=1)

    return b.StridedSlice(
        x, spread(start, 0), spread(stop, 0), spread(step, 1), begin_mask=masks, end_mask=masks, new_axis_mask=[],
        shrink_axis_mask=[], ellipsis_mask=[],
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------
# opset 9 to 13


def _soft_sign(op: Any, x: Tensor) -> Tensor:
    return b.Divide(x, b.Add(b.Abs(x), like(x, 1)))


def _is_nan(op: Any, x: Tensor) -> Tensor:
    return b.NotEqual(x, x)


def _is_inf(op: Any, x: Tensor) -> Tensor:
    found = []
    if op.detect_positive:
        found.append(b.Equal(x, like(x, np.inf)))
    if op.detect_negative:
        found.append(b.Equal(x, like(x, -np.inf)))
    if not found:
        return b.Less(x, like(x, -np.inf))
    return found[0] if len(found) == 1 else b.LogicalOr(*found)


def _is_finite(op: Any, x: Tensor) -> Tensor | None:
    return None if _is_narrow(x) else b.Equal(b.Subtract(x, x), like(x, 0))


def _interpolate(op: Any, x: Tensor, sizes: Tensor, axes: Tensor | None = None) -> Tensor | None:
    """Return Interpolate-4, which has an input for sizes and another one for scales, and uses one of them."""
    count = sizes.shape.static
    if op.mode not in ("nearest", "linear", "linear_onnx", "cubic") or count is None:
        return None
    attributes = {name: getattr(op, name) for name in type(op).attributes}
    takes_sizes = op.shape_calculation_mode == "sizes"
    other = np.ones(count, np.float32) if takes_sizes else np.ones(count, np.int64)
    values = (sizes, b.constant(other)) if takes_sizes else (b.constant(other), sizes)
    return b.Interpolate(x, *values, axes, **attributes, opset=4)


def _group_normalization(op: Any, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor | None:
    """Return MVN over each group of channels, in the shape (batch, groups, elements)."""
    if x.shape.rank is None or (x.shape.static is not None and 0 in x.shape.static):
        return None
    channels = list(range(1, x.shape.rank - 1))
    grouped = b.Reshape(x, [0, op.num_groups, -1], special_zero=True)
    normal = b.MVN(grouped, [2], normalize_variance=True, eps=op.epsilon, eps_mode="inside_sqrt")
    restored = b.Reshape(normal, b.ShapeOf(x), special_zero=False)
    factors = [b.Unsqueeze(factor, channels) if channels else factor for factor in (scale, bias)]
    return b.Add(b.Multiply(restored, factors[0]), factors[1])


def _logical(name: str) -> Rule:
    """Return the rule that an operation on bits is a logical one if its inputs are booleans; ~x is -1 - x otherwise."""

    def rule(op: Any, *inputs: Tensor) -> Tensor | None:
        if len(inputs) == 1 and inputs[0].type.kind == "int":
            return b.Subtract(like(inputs[0], -1), inputs[0])
        if any(x.type.kind != "boolean" for x in inputs):
            return None
        more = {"auto_broadcast": op.auto_broadcast} if len(inputs) > 1 else {}
        return getattr(b, name)(*inputs, **more)

    return rule


def _attention(
    op: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, scale: Tensor | None = None,
    sink: Tensor | None = None,
) -> Tensor | None:  # fmt: skip
    """Return softmax(query · key * scale + mask) · value. Without a mask, causal attention masks by position."""
    size = query.shape.dims[-1].value if query.shape.dims else None
    if sink is not None or (scale is None and query.shape.rank is None):
        return None
    if scale is not None:
        factor: Tensor = b.Reshape(scale, b.constant(np.zeros(0, np.int64)), special_zero=False)
    elif size:
        factor = like(query, 1 / np.sqrt(size))
    else:
        size = b.Convert(b.Gather(b.ShapeOf(query), [-1], 0, opset=7), destination_type=query.type)
        factor = b.Power(size, like(query, -0.5))
    weights = b.MatMul(b.Multiply(query, factor), key, transpose_a=False, transpose_b=True)
    if op.causal:
        counts = [b.Gather(b.ShapeOf(x), -2 % (x.shape.rank or 1), 0, opset=1) for x in (query, key)]
        rows, columns = (b.Range(0, count, 1, output_type="i64") for count in counts)
        mask = b.LessEqual(columns, b.Unsqueeze(rows, [1]))
    if mask is not None:
        if mask.type.kind == "boolean":
            mask = b.Select(mask, like(query, 0), like(query, -np.inf))
        weights = b.Add(weights, mask)
    rank = weights.shape.rank
    if rank is None:
        return None
    return b.MatMul(b.SoftMax(weights, axis=rank - 1, opset=1), value, transpose_a=False, transpose_b=False)


# ---------------------------------------------------------------------------------------------
# opset 14 to 16


def _convert_promote_types(op: Any, x: Tensor, y: Tensor) -> Sequence[Tensor]:
    types = b.ConvertPromoteTypes(
        x, y, promote_unsafe=op.promote_unsafe, pytorch_scalar_promotion=op.pytorch_scalar_promotion,
        u64_integer_promotion_target=op.u64_integer_promotion_target,
    )  # fmt: skip
    return [b.Convert(one, destination_type=output.type) for one, output in zip((x, y), types)]


def _search_sorted(op: Any, sequence: Tensor, values: Tensor) -> Tensor:
    """Return how many elements of its row are less than each value (or equal to it, with ``right_mode``)."""
    compare = b.LessEqual if op.right_mode else b.Less
    before = compare(b.Unsqueeze(sequence, [-2]), b.Unsqueeze(values, [-1]))
    return b.ReduceSum(b.Convert(before, destination_type=op.output_type), [-1], keep_dims=False)


def _slice_scatter(op: Any, x: Tensor, updates: Tensor, *bounds: Tensor | None) -> Tensor:
    """Return ``x`` with ``updates`` at the places that the same Slice of its positions names."""
    shape = b.ShapeOf(x)
    count = b.ReduceProd(shape, [0], keep_dims=False)
    places = b.Slice(b.Reshape(b.Range(0, count, 1, output_type="i64"), shape, special_zero=False), *bounds)
    flat = [b.Reshape(one, [-1], special_zero=False) for one in (x, places, updates)]
    return b.Reshape(b.ScatterUpdate(*flat, 0), shape, special_zero=False)


def _atan2(op: Any, y: Tensor, x: Tensor) -> Tensor | None:
    """Return the arc tangent of y / x, and ±π more left of the y axis. The sign of zeros counts."""
    if y.type.kind != "float":
        return None

    def is_negative(number: Tensor) -> Tensor:
        return b.LogicalOr(b.Less(number, like(y, 0)), b.Less(b.Divide(like(y, 1), number), like(y, 0)))

    far = b.LogicalAnd(*(b.Equal(b.Abs(number), like(y, np.inf)) for number in (y, x)))
    near = b.LogicalAnd(*(b.Equal(number, like(y, 0)) for number in (y, x)))
    ratio = b.Select(far, b.Multiply(b.Sign(y), b.Sign(x)), b.Select(near, b.Multiply(y, x), b.Divide(y, x)))
    half = b.Select(is_negative(y), like(y, -np.pi), like(y, np.pi))
    return b.Add(b.Atan(ratio), b.Select(is_negative(x), half, like(y, -0.0)))


def _identity(op: Any, x: Tensor) -> Tensor:
    return b.Convert(x, destination_type=x.type)


DECOMPOSITIONS: Final[Mapping[str, Rule]] = {
    **TRANSFORMS,
    "Atan2-17": _atan2,
    "BitwiseAnd-13": _logical("LogicalAnd"),
    "BitwiseNot-13": _logical("LogicalNot"),
    "BitwiseOr-13": _logical("LogicalOr"),
    "BitwiseXor-13": _logical("LogicalXor"),
    "ConvertPromoteTypes-14": _convert_promote_types,
    "Gelu-2": _gelu,
    "Gelu-7": _gelu,
    "GroupNormalization-12": _group_normalization,
    "HSigmoid-5": _hsigmoid,
    "HSwish-4": _hswish,
    "Identity-16": _identity,
    "Interpolate-11": _interpolate,
    "IsFinite-10": _is_finite,
    "IsInf-10": _is_inf,
    "IsNaN-10": _is_nan,
    "LogSoftmax-5": _log_softmax,
    "Mish-4": _mish,
    "ReduceL1-4": _norm(b.Abs, lambda total: total, "float", "int", "uint"),
    "ReduceL2-4": _norm(lambda x: b.Multiply(x, x), b.Sqrt, "float"),
    "ScaledDotProductAttention-13": _attention,
    "SearchSorted-15": _search_sorted,
    "Slice-8": _slice,
    "SliceScatter-15": _slice_scatter,
    "SoftMax-8": _softmax,
    "SoftPlus-4": _soft_plus,
    "SoftSign-9": _soft_sign,
    "Swish-4": _swish,
}
"""The decomposition of each version of an operation, such as ``Pad-12``."""

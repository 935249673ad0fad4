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

__all__ = ["decomposed"]

Tensor = Node | Output
Rule = Callable[..., Tensor | Sequence[Tensor] | None]
"""Takes an operation and its inputs, and returns its outputs; None if older operations cannot say them."""


def decomposed(layer: Layer, op: Op, inputs: Sequence[Value | None]) -> Model | None:
    """Return a model that computes the outputs of a layer from its inputs, or None if there is no decomposition.

    Its Parameters are the inputs that are not None, in order. An input of few known integers is a constant as well, as
    which the layers of the model read it.
    """
    rule = _RULES.get(layer.type.lower())
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
        listed = [outputs] if isinstance(outputs, (Node, Output)) else list(outputs)
        return b.model(listed, inputs=parameters, name=layer.name)
    except IrrunError:  # an operation refuses these types or shapes
        return None


def _like(x: Tensor, number: float) -> Node:
    """Return a number of the type of ``x``."""
    return b.constant(np.array(number), x.type)


# ---------------------------------------------------------------------------------------------
# opset 4 to 8


def _swish(op: Any, x: Tensor, beta: Tensor | None = None) -> Tensor:
    return b.Multiply(x, b.Sigmoid(x if beta is None else b.Multiply(x, beta)))


def _hswish(op: Any, x: Tensor) -> Tensor:
    return b.Multiply(x, b.Divide(b.Clamp(b.Add(x, _like(x, 3)), min=0, max=6), _like(x, 6)))


def _hsigmoid(op: Any, x: Tensor) -> Tensor:
    return b.Divide(b.Clamp(b.Add(x, _like(x, 3)), min=0, max=6), _like(x, 6))


def _soft_plus(op: Any, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) without an overflow: max(x, 0) + log(1 + exp(-|x|))."""
    return b.Add(b.ReLU(x), b.Log(b.Add(b.Exp(b.Negative(b.Abs(x))), _like(x, 1))))


def _mish(op: Any, x: Tensor) -> Tensor:
    return b.Multiply(x, b.Tanh(_soft_plus(op, x)))


def _gelu(op: Any, x: Tensor) -> Tensor:
    if op.approximation_mode == "erf":
        return b.Gelu(x, opset=2)
    cubic = b.Multiply(b.Power(x, _like(x, 3)), _like(x, 0.044715))
    inner = b.Multiply(b.Add(x, cubic), _like(x, np.sqrt(2 / np.pi)))
    return b.Multiply(b.Multiply(x, _like(x, 0.5)), b.Add(b.Tanh(inner), _like(x, 1)))


def _log_softmax(op: Any, x: Tensor) -> Tensor:
    shifted = b.Subtract(x, b.ReduceMax(x, [op.axis], keep_dims=True))
    return b.Subtract(shifted, b.Log(b.ReduceSum(b.Exp(shifted), [op.axis], keep_dims=True)))


def _softmax(op: Any, x: Tensor) -> Tensor | None:
    """Return Softmax-1, whose axis is counted from the front."""
    return None if x.shape.rank is None else b.SoftMax(x, axis=op.axis % x.shape.rank, opset=1)


def _reduce_l1(op: Any, x: Tensor, axes: Tensor) -> Tensor:
    return b.ReduceSum(b.Abs(x), axes, keep_dims=op.keep_dims)


def _reduce_l2(op: Any, x: Tensor, axes: Tensor) -> Tensor:
    return b.Sqrt(b.ReduceSum(b.Multiply(x, x), axes, keep_dims=op.keep_dims))


def _slice(op: Any, x: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None) -> Tensor | None:
    """Return StridedSlice, which has one entry for each axis. The axes and steps must be known, and steps positive."""
    steps, known = _ints(step), None if axes is None else _ints(axes)
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


def _ints(x: Tensor) -> tuple[int, ...] | None:
    output = x.output if isinstance(x, Node) else x
    return output.value.ints()


# ---------------------------------------------------------------------------------------------
# opset 9 to 13


def _soft_sign(op: Any, x: Tensor) -> Tensor:
    return b.Divide(x, b.Add(b.Abs(x), _like(x, 1)))


def _is_nan(op: Any, x: Tensor) -> Tensor:
    return b.NotEqual(x, x)


def _is_inf(op: Any, x: Tensor) -> Tensor:
    found = []
    if op.detect_positive:
        found.append(b.Equal(x, _like(x, np.inf)))
    if op.detect_negative:
        found.append(b.Equal(x, _like(x, -np.inf)))
    if not found:
        return b.Less(x, _like(x, -np.inf))
    return found[0] if len(found) == 1 else b.LogicalOr(*found)


def _is_finite(op: Any, x: Tensor) -> Tensor:
    return b.Less(b.Abs(x), _like(x, np.inf))


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
    """Return the rule that an operation on bits is a logical one if its inputs are booleans."""

    def rule(op: Any, *inputs: Tensor) -> Tensor | None:
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
    if sink is not None or (scale is None and not size):
        return None
    if scale is None:
        factor: Tensor = _like(query, 1 / np.sqrt(size or 1))
    else:
        factor = b.Reshape(scale, b.constant(np.zeros(0, np.int64)), special_zero=False)
    weights = b.MatMul(b.Multiply(query, factor), key, transpose_a=False, transpose_b=True)
    if op.causal:
        counts = [b.Gather(b.ShapeOf(x), -2 % (x.shape.rank or 1), 0, opset=1) for x in (query, key)]
        rows, columns = (b.Range(0, count, 1, output_type="i64") for count in counts)
        mask = b.LessEqual(columns, b.Unsqueeze(rows, [1]))
    if mask is not None:
        if mask.type.kind == "boolean":
            mask = b.Select(mask, _like(query, 0), _like(query, -np.inf))
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


def _bag(name: str) -> Rule:
    def rule(op: Any, *inputs: Tensor | None) -> Tensor | None:
        return getattr(b, name)(*inputs) if op.reduction == "sum" else None

    return rule


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


def _identity(op: Any, x: Tensor) -> Tensor:
    return b.Convert(x, destination_type=x.type)


_RULES: Final[Mapping[str, Rule]] = {
    "bitwiseand": _logical("LogicalAnd"),
    "bitwisenot": _logical("LogicalNot"),
    "bitwiseor": _logical("LogicalOr"),
    "bitwisexor": _logical("LogicalXor"),
    "convertpromotetypes": _convert_promote_types,
    "embeddingbagoffsets": _bag("EmbeddingBagOffsetsSum"),
    "embeddingbagpacked": _bag("EmbeddingBagPackedSum"),
    "gelu": _gelu,
    "groupnormalization": _group_normalization,
    "hsigmoid": _hsigmoid,
    "hswish": _hswish,
    "identity": _identity,
    "interpolate": _interpolate,
    "isfinite": _is_finite,
    "isinf": _is_inf,
    "isnan": _is_nan,
    "logsoftmax": _log_softmax,
    "mish": _mish,
    "reducel1": _reduce_l1,
    "reducel2": _reduce_l2,
    "scaleddotproductattention": _attention,
    "searchsorted": _search_sorted,
    "slice": _slice,
    "slicescatter": _slice_scatter,
    "softmax": _softmax,
    "softplus": _soft_plus,
    "softsign": _soft_sign,
    "swish": _swish,
}
"""The decomposition of each operation, by type in lower case."""

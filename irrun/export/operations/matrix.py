"""Products of matrices: MatMul, Einsum, attention."""

from __future__ import annotations

import string
from collections.abc import Sequence

from irrun.export.call import Call
from irrun.export.operations.constants import transposed
from irrun.export.registry import converts

__all__: list[str] = []


@converts("MatMul", computes="f32 f64 i32 i64", wraps=True)
def mat_mul(call: Call) -> str:
    """MatMul, with Transpose before it."""
    ranks = [call.value(position).rank for position in range(2)]
    if 1 in ranks and ranks != [1, 1] and (call.op.transpose_a or call.op.transpose_b):
        return _with_vector(call, ranks[0] == 1)
    operands = []
    for position, transpose in enumerate((call.op.transpose_a, call.op.transpose_b)):
        name = _hidden(call, call.input(position), call.value(position).shape.static)
        if transpose and call.rank(position) > 1:
            rank = call.rank(position)
            order = [*range(rank - 2), rank - 1, rank - 2]
            # weights that another layer reads as they are, such as an embedding, are stored once
            shape = call.value(position).shape.static if call.alone[position] else None
            name = transposed(call, name, order, shape)
        operands.append(name)
    return call("MatMul", *operands)


def _hidden(call: Call, name: str, shape: Sequence[int] | None) -> str:
    """Return a dequantized matrix behind a Reshape that changes nothing, and any other tensor as it is.

    Where onnxruntime sees a DequantizeLinear before a MatMul, it rounds the other operand to 8 bits.
    """
    producer = call.graph.producer(name)
    is_seen = producer is not None and producer.op_type == "DequantizeLinear" and shape is not None
    return call("Reshape", name, list(shape)) if is_seen and shape is not None else name


def _with_vector(call: Call, first: bool) -> str:
    """The product of a transposed matrix and a vector, as one of matrices: onnxruntime multiplies others wrongly."""
    matrix, vector = (1, 0) if first else (0, 1)
    name, rank = call.input(matrix), call.rank(matrix)
    if call.op.transpose_b if first else call.op.transpose_a:
        order = [*range(rank - 2), rank - 1, rank - 2]
        name = transposed(call, name, order, call.value(matrix).shape.static)
    row = call("Unsqueeze", call.input(vector), [0 if first else 1])
    product = call("MatMul", row, name) if first else call("MatMul", name, row)
    return call("Squeeze", product, [-2 if first else -1])


@converts("Einsum", computes="f32 f64 i32 i64")
def einsum(call: Call) -> str:
    """Einsum, whose labels onnxruntime wants in lower case."""
    return call("Einsum", *call.inputs, equation=_lettered(call))


def _lettered(call: Call) -> str:
    """Return the equation with small letters. Letters replace ellipses of unequal ranks, or one that is summed."""
    before, arrow, after = call.op.equation.replace(" ", "").partition("->")
    terms = before.split(",")
    labels = before.replace(",", "").replace("...", "")
    if not arrow:
        once = "".join(sorted({label for label in labels if labels.count(label) == 1}))
        after = ("..." if "..." in before else "") + once
    spare = iter(sorted(set(string.ascii_lowercase) - set(labels)))
    small = {label: next(spare, label) for label in dict.fromkeys(labels) if label.isupper()}
    widths = [call.rank(n) - len(term) + 3 for n, term in enumerate(terms) if "..." in term]
    if widths and ("..." not in after or len(set(widths)) > 1):
        letters = "".join(next(spare) for _ in range(max(widths)))
        own = iter(letters[len(letters) - width :] for width in widths)
        terms = [term.replace("...", next(own)) if "..." in term else term for term in terms]
        after = after.replace("...", letters)
    return "".join(small.get(label, label) for label in f"{','.join(terms)}->{after}")


@converts("ScaledDotProductAttention", computes="f32 f64")
def attention(call: Call) -> str:
    """Products, Softmax and masks."""
    q, k, v = (call.input(position) for position in range(3))
    rank = call.rank(1)
    order = [*range(rank - 2), rank - 1, rank - 2]
    scores = call("MatMul", q, call("Transpose", k, perm=order))
    if call.given(4):
        scores = call("Mul", scores, call.input(4))
    else:
        depth = call.dim(0, -1)
        if depth is None:
            size = call.cast(call.shape_of(q, -1), call.type)
            scores = call("Div", scores, call("Sqrt", size))
        else:
            scores = call("Mul", scores, depth**-0.5)
    if call.op.causal:
        rows, columns = (call("Squeeze", call.shape_of(t, -2, -1), [0]) for t in (q, k))
        one, zero = call.scalar(1, "i64"), call.scalar(0, "i64")
        row = call("Unsqueeze", call("Range", zero, rows, one), [1])
        column = call("Range", zero, columns, one)
        scores = call("Where", call("LessOrEqual", column, row), scores, float("-inf"))
    elif call.given(3):
        mask = call.input(3)
        if call.value(3).type.kind == "boolean":
            scores = call("Where", mask, scores, float("-inf"))
        else:
            scores = call("Add", scores, mask)
    if call.given(5):
        call.refuse("ONNX has no attention with a sink")
    return call("MatMul", call("Softmax", scores, axis=-1), v)

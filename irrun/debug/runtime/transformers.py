"""Gelu, rotary embeddings and attention, which plugins compute as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irrun.debug.runtime.layers import FileGraph, FileLayer
from irrun.debug.runtime.pattern import Condition, Match, Pattern, Runs, named_as, names, shown
from irrun.planning.idioms import factors, pairs, transposed

__all__ = ["ATTENTION", "GELU", "ROPE"]


def _gelu(graph: FileGraph, last: FileLayer) -> Match | None:
    """Match a product of three factors, of which one is a number plus the error function of a quotient or product."""
    slots, before = factors(graph, last)
    for total in slots:
        add = graph.of(total, "Add")
        for slot, _ in pairs(add) if add else ():
            erf = graph.of(slot, "Erf")
            scaled = graph.of(erf.reads[0], "Multiply", "Divide") if erf else None
            if add is not None and erf is not None and scaled is not None:
                return Match(last, {"scaled": scaled, "erf": erf, "plus": add, "product": before[0], "last": last})
    return None


def _gelu_factors(graph: FileGraph, match: Match) -> list[int]:
    """Return the slots of the factors of a Gelu but the sum."""
    return [slot for slot in factors(graph, match.last)[0] if slot not in match.roles["plus"].writes]


def _numbers(graph: FileGraph, slots: Sequence[int]) -> list[float]:
    return [number for slot in slots if (number := graph.number(slot)) is not None]


def _other_half(graph: FileGraph, match: Match) -> str:
    found = _numbers(graph, _gelu_factors(graph, match))
    return "" if found == [0.5] else f"the factor is {', '.join(map(shown, found)) or 'no constant'}"


def _other_one(graph: FileGraph, match: Match) -> str:
    found = _numbers(graph, match.roles["plus"].reads)
    return "" if found == [1] else f"{', '.join(map(shown, found)) or 'no constant'} is added"


def _other_root(graph: FileGraph, match: Match) -> str:
    scaled = match.roles["scaled"]
    found = next(iter(_numbers(graph, scaled.reads)), None)
    root = None if not found else found if scaled.op.type == "Divide" else 1 / found
    if root is not None and abs(root - 2**0.5) < 1e-3:
        return ""
    return f"the {'divisor' if scaled.op.type == 'Divide' else 'factor'} is {shown(found)}"


def _erf_of_another(graph: FileGraph, match: Match) -> str:
    of = [slot for slot in match.roles["scaled"].reads if graph.number(slot) is None]
    x = [slot for slot in _gelu_factors(graph, match) if graph.number(slot) is None]
    return "" if of == x else f"erf is of {names(graph, of)}, and {names(graph, x)} is multiplied"


def _alone(match: Match, runs: Runs) -> bool:
    """Return whether a node is named after the last layer, and none after the error function."""
    return runs.is_named(match.last) and not runs.is_named(match.roles["erf"])


_PARTS: Final = ("Slice", "StridedSlice", "Split", "VariadicSplit", "Gather")


def _rope(graph: FileGraph, last: FileLayer) -> Match | None:
    """Match the sum of two products, of which one is of a Concat of two parts of a value, the first one scaled."""
    if last.op.type != "Add":
        return None
    for first, second in pairs(last):
        by_sin, by_cos = graph.of(first, "Multiply"), graph.of(second, "Multiply")
        for slot, _ in pairs(by_sin) if by_sin else ():
            turned = graph.of(graph.through(slot, "Reshape", "Convert"), "Concat")
            if turned is None or len(turned.reads) != 2 or by_sin is None or by_cos is None:
                continue
            minus = graph.of(turned.reads[0], "Multiply", "Negative")
            high = graph.of(minus.reads[0], *_PARTS) if minus else None
            low = graph.of(turned.reads[1], *_PARTS)
            if minus is not None and high is not None and low is not None:
                roles = {"low": low, "high": high, "minus": minus, "turned": turned, "by_cos": by_cos}
                return Match(last, {**roles, "by_sin": by_sin, "last": last})
    return None


def _other_sign(graph: FileGraph, match: Match) -> str:
    minus = match.roles["minus"]
    factor = -1 if minus.op.type == "Negative" else graph.number(minus.reads[1])
    return "" if factor == -1 else f"its factor is {shown(factor)}"


def _turned_of_another(graph: FileGraph, match: Match) -> str:
    of = {match.roles[role].reads[0] for role in ("low", "high")}
    fitting = [slot for slot in match.roles["by_cos"].reads if {slot} == of]
    return "" if fitting else f"the halves are of {names(graph, sorted(of))}"


def _attention(graph: FileGraph, last: FileLayer) -> Match | None:
    """Match a MatMul of the SoftMax of another MatMul, with additions and products by numbers between them."""
    weights = graph.of(last.reads[0], "SoftMax", "Softmax") if last.op.type == "MatMul" else None
    slot = -1 if weights is None else graph.through(weights.reads[0], "Add", "Multiply", "Divide", "Reshape", "Convert")
    scores = graph.of(slot, "MatMul")
    if weights is None or scores is None:
        return None
    return Match(last, {"scores": scores, "softmax": weights, "last": last})


def _other_softmax(graph: FileGraph, match: Match) -> str:
    softmax = match.roles["softmax"]
    rank, axis = graph.rank(softmax.reads[0]), getattr(softmax.op, "axis", -1)
    return "" if rank is None or axis % rank == rank - 1 else f"its axis is {axis} of {rank}"


def _read_again(graph: FileGraph, match: Match) -> str:
    readers = [layer for layer in graph.readers(match.roles["softmax"].writes[0]) if layer is not match.last]
    return f'"{graph.names[readers[0].layer.id]}" reads them as well' if readers else ""


def _transposed_weights(graph: FileGraph, match: Match) -> str:
    return "the MatMul transposes them" if transposed(match.last)[0] else ""


def _together(match: Match, runs: Runs) -> bool:
    """Return whether one node computes the SoftMax and the product behind it."""
    return bool({node.name for node in runs.of(match.roles["softmax"])} & {node.name for node in runs.of(match.last)})


GELU: Final = Pattern(
    "Gelu",
    "one operation",
    _gelu,
    (
        Condition("a factor is 0.5", _other_half),
        Condition("1 is added to erf", _other_one),
        Condition("erf is of the value divided by the root of 2", _other_root),
        Condition("erf is of the value that is multiplied", _erf_of_another),
    ),
    _alone,
    anchor="erf",
)

ROPE: Final = Pattern(
    "rotary embedding",
    "a RoPE node",
    _rope,
    (
        Condition("the first half is negated", _other_sign),
        Condition("the halves are of the value that is multiplied by the cosine", _turned_of_another),
    ),
    named_as("RoPE"),
)

ATTENTION: Final = Pattern(
    "attention",
    "one node with both products",
    _attention,
    (
        Condition("SoftMax is along the last axis", _other_softmax),
        Condition("only the second product reads the weights of attention", _read_again),
        Condition("the second product reads the weights of attention as they are", _transposed_weights),
    ),
    _together,
    anchor="softmax",
)

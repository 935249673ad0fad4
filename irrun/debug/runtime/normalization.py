"""LayerNorm and RMSNorm, which plugins compute as MVN and RMS."""

from __future__ import annotations

from typing import Final

from irrun.debug.runtime.layers import FileGraph, FileLayer
from irrun.debug.runtime.pattern import Condition, Match, Pattern, named_as, shown
from irrun.planning.idioms import divided_by_root, pairs

__all__ = ["LAYER_NORM", "RMS_NORM"]


_RESHAPING: Final = ("Unsqueeze", "Reshape")


def _normalization(graph: FileGraph, last: FileLayer) -> Match | None:
    """Match ``x / sqrt(mean(y) + eps)``, where y is a power or product. Only LayerNorm has ``mean`` and ``centred``.

    A number divided by the root, 1 in ``x * (1 / sqrt(y))``, is the part of a normalization and none itself.
    """
    for x, total, steps in divided_by_root(graph, last):
        if graph.number(x) is not None:
            continue
        add = graph.of(total, "Add")
        for slot, eps in pairs(add) if add else ():
            mean = graph.of(graph.through(slot, *_RESHAPING), "ReduceMean")
            square = graph.of(mean.reads[0], "Power", "Multiply") if mean else None
            if add is None or mean is None or square is None or graph.contents(eps) is None:
                continue
            roles = {"square": square, "variance": mean, "eps": add, "root": steps[0], "last": last}
            centred = graph.of(x, "Subtract")
            centring = graph.of(graph.through(centred.reads[1], *_RESHAPING), "ReduceMean") if centred else None
            if centred is not None and centring is not None:
                roles |= {"centred": centred, "mean": centring}
            return Match(last, roles)
    return None


def _layer_norm(graph: FileGraph, last: FileLayer) -> Match | None:
    """Match LayerNorm in single layers, or the operation MVN, which has the axes where ReduceMean has them."""
    if last.op.type == "MVN" and len(last.reads) == 2:
        return Match(last, {"variance": last, "last": last})
    match = _normalization(graph, last)
    return match if match is not None and "mean" in match.roles else None


def _rms(graph: FileGraph, last: FileLayer) -> Match | None:
    match = _normalization(graph, last)
    return match if match is not None and "mean" not in match.roles else None


def _divided(graph: FileGraph, match: Match) -> int:
    """Return the slot that a normalization divides by the root."""
    return next(x for x, _, _ in divided_by_root(graph, match.last))


def _mean_of_another(graph: FileGraph, match: Match) -> str:
    if "mean" not in match.roles:
        return ""
    of, x = match.roles["mean"].reads[0], match.roles["centred"].reads[0]
    return "" if of == x else f"the mean is of {graph.called(of)}, and {graph.called(x)} is centred"


def _square_of_another(graph: FileGraph, match: Match) -> str:
    if "square" not in match.roles:
        return ""
    square, x = match.roles["square"], _divided(graph, match)
    others = [slot for slot in (square.reads if square.op.type == "Multiply" else square.reads[:1]) if slot != x]
    return f"the square is of {graph.called(others[0])}, and {graph.called(x)} is divided" if others else ""


def _other_exponent(graph: FileGraph, match: Match) -> str:
    square = match.roles.get("square")
    exponent = graph.number(square.reads[1]) if square is not None and square.op.type == "Power" else 2
    return "" if exponent == 2 else f"the exponent is {shown(exponent)}"


def _axes(graph: FileGraph, mean: FileLayer) -> tuple[list[int] | None, int]:
    """Return the axes of a mean, and the number of axes of its input, 0 if it is not known."""
    rank = graph.rank(mean.reads[0]) or 0
    return graph.axes(mean.reads[1], rank) if rank else None, rank


def _other_axes(graph: FileGraph, match: Match) -> str:
    if "mean" not in match.roles:
        return ""
    (first, _), (second, _) = (_axes(graph, match.roles[role]) for role in ("mean", "variance"))
    return "" if first == second else f"the axes are {first} and {second}"


def _unlike_mvn(graph: FileGraph, match: Match) -> str:
    axes, rank = _axes(graph, match.roles["variance"])
    if axes is None:
        return "the axes or the number of axes are not constant"
    allowed = (
        rank <= 5
        and axes == list(range(rank))[-len(axes) :]
        and len(axes) in ((1,) if rank == 1 else (rank - 1, rank - 2))
    )
    return "" if allowed else f"the axes are {axes} of {rank}"


def _unlike_rms(graph: FileGraph, match: Match) -> str:
    axes, rank = _axes(graph, match.roles["variance"])
    if axes is None:
        return "the axes or the number of axes are not constant"
    return "" if axes == [rank - 1] else f"the axes are {axes} of {rank}"


def _many_epsilons(graph: FileGraph, match: Match) -> str:
    numbers = [graph.contents(slot) for slot in match.roles["eps"].reads] if "eps" in match.roles else []
    known = [array for array in numbers if array is not None]
    return "" if all((array == array.reshape(-1)[0]).all() for array in known) else "it has several numbers"


_SQUARE: Final = Condition("the exponent of the square is 2", _other_exponent)
_EPSILON: Final = Condition("epsilon is one number", _many_epsilons)


LAYER_NORM: Final = Pattern(
    "LayerNorm",
    "an MVN node",
    _layer_norm,
    (
        Condition("the mean is of the value from which it is subtracted", _mean_of_another),
        Condition("the square is of the centred value", _square_of_another),
        _SQUARE,
        Condition("both means have the same axes", _other_axes),
        Condition("the axes are all but the first one or two, of at most five", _unlike_mvn),
        _EPSILON,
    ),
    named_as("MVN"),
    anchor="variance",
)

RMS_NORM: Final = Pattern(
    "RMSNorm",
    "an RMS node",
    _rms,
    (
        Condition("the square is of the value that is divided", _square_of_another),
        _SQUARE,
        Condition("the mean is along the last axis", _unlike_rms),
        _EPSILON,
    ),
    named_as("RMS"),
    anchor="variance",
)

"""What inference knows of each output: its type, its shape, and the formulas of its dims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from irrun.base.text import printable
from irrun.checking.origins import Explanation, Row
from irrun.checking.questions import Asked
from irrun.diagnostics import Refused
from irrun.inference.layer import input_name
from irrun.inference.trace import Trace
from irrun.opdef import Op
from irrun.report.entries import Entries

__all__ = ["Inferred", "InferredOutput", "inferred"]

_MAX_FORMULA_STEPS: Final = 6
"""The most steps of the formula of a dim. `irrun why` shows all."""
_MAX_AXES: Final = 16
"""The most dims of an output whose formulas are shown: no operation on real data has more axes."""


@dataclass(frozen=True, slots=True)
class InferredOutput:
    """The inferred type and shape of an output as text, and rows that say where its dims come from.

    There are no rows for constants, and for layers computed from them alone: their dims are those of the file.
    ``refused`` says why inference failed; the type and shape are then those that the file declares.
    """

    type: str
    shape: str
    formula: tuple[Row, ...]
    refused: str | None


@dataclass(frozen=True, slots=True)
class Inferred:
    """The inferred outputs by the number of the layer and their position, and the operations by number of the layer."""

    outputs: Mapping[tuple[int, int], InferredOutput]
    ops: Mapping[int, Op | None]

    def input_name(self, number: int, position: int) -> str:
        """Return the name that the operation of a layer gives an input."""
        op = self.ops.get(number)
        return f"input {position}" if op is None else input_name(op, position)


def inferred(trace: Trace, entries: Entries) -> Inferred:
    """Return what inference knows of all layers of a model and its bodies."""
    outputs: dict[tuple[int, int], InferredOutput] = {}
    ops: dict[int, Op | None] = {}
    for inner in trace.all():
        for id, layer in inner.model.layers.items():
            number = entries.number(layer)
            if number is None:
                continue
            ops[number] = inner.ops.get(id)
            refused = _refusal(inner.refused.get(id))
            has_formula = not refused and not entries.hidden[number]
            for position in range(len(layer.outputs)):
                value = inner.values.get((id, position))
                if value is not None:
                    lines = tuple(_formula(inner, id, position)) if has_formula else ()
                    kind = "" if value.type.kind == "dynamic" else str(value.type)
                    outputs[number, position] = InferredOutput(kind, str(value.shape), lines, refused)
    return Inferred(outputs, ops)


def _refusal(error: Exception | None) -> str | None:
    if error is None:
        return None
    return error.message if isinstance(error, Refused) else f"irrun failed to infer it: {error!r}"


def _formula(trace: Trace, id: int, position: int) -> Iterator[Row]:
    """Yield the rows that say where the dims of an output come from, if a layer computes them from others."""
    layer = trace.model.layers[id]
    rank = trace.values[id, position].rank
    if not layer.inputs or rank is None or rank > _MAX_AXES:
        return
    for formula, where in Explanation(Asked(trace, layer, (position,)), most=_MAX_FORMULA_STEPS).rows(position):
        yield printable(formula), printable(where)

"""Keep the measurements of a comparison in a file, and apply other tolerances to them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from irrun.debug.difference.content import Content
from irrun.debug.metrics import Budget, Measurement, is_outside
from irrun.debug.pairing import InputPair
from irrun.debug.results import Comparison, Conduct, First, InputError, Layer, SideFailure, Step, Storage, verdict
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import from_record, to_record
from irrun.files import write_file

__all__ = ["apply_tolerances", "read_measurements", "write_measurements"]

_VERSION: Final = 1


def write_measurements(comparison: Comparison, path: Path) -> None:
    """Write a comparison to a file, as a whole or not at all.

    Other tolerances can be applied to it only if it was made with ``frontier=True``.
    """
    fields: dict[str, Any] = {"version": _VERSION, **asdict(replace(comparison, failure=None))}
    if comparison.failure is not None:
        fields["failure"] = {
            "side": comparison.failure.side,
            "sample": comparison.failure.sample,
            "outcome": to_record(comparison.failure.outcome),
        }
    write_file(path, json.dumps(_storable(fields), allow_nan=False).encode("ascii"))


def read_measurements(path: Path) -> Comparison:
    """Return the comparison in a file. Raises EngineError (IR706) if the file cannot be read."""
    try:
        fields = _restored(json.loads(path.read_text("utf-8")))
        if not isinstance(fields, dict) or fields.get("version") != _VERSION:
            raise ValueError("it is no file of measurements of this version")
        return _comparison(fields)
    except OSError as error:
        raise _bad(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _bad(path, f"{error}") from None


def apply_tolerances(comparison: Comparison, tolerances: Tolerances) -> Comparison:
    """Return the comparison as it would be with other tolerances.

    The share of elements outside cannot be counted again: it is that of the run, 0 for a value that is now inside, and
    one element for a value that was inside before. What explains the token of a step is not known any more.
    """
    if tolerances == Tolerances() and any(value.budget for value in (*comparison.outputs, *comparison.layers)):
        return comparison
    outputs = tuple(_judged(o, tolerances.of_output(o.name, o.element_type)) for o in comparison.outputs)
    layers = tuple(_judged(l, tolerances.of_layer(l.name, l.element_type)) for l in comparison.layers)
    beginning = next((layer for layer in layers if not layer.agrees), None)
    known = comparison.first
    if beginning is None:
        first = None
    elif known is not None and (known.layer.name, known.layer.port) == (beginning.name, beginning.port):
        first = replace(known, layer=beginning)
    else:
        first = First(beginning, (), None, ())
    if comparison.failure is None and not outputs and not layers:
        message, help = "the measurements have no value: nothing was compared", "compare the sides again"
        raise EngineError(diagnostic("IR704", message, help=help))
    own = comparison.verdict if comparison.failure is not None else verdict(outputs, layers)
    steps = tuple(replace(step, allowed=None, explained=None) for step in comparison.steps)
    return replace(comparison, verdict=own, first=first, outputs=outputs, layers=layers, steps=steps)


def _judged(layer: Layer, limit: tuple[float, float]) -> Layer:
    """Return a value as other tolerances judge it, which take the place of its budget."""
    measurement = layer.measurement
    outside = max(measurement.outside, 1) if is_outside(measurement.frontier, *limit) else 0
    measured = replace(measurement, outside=outside)
    return replace(layer, rtol=limit[0], atol=limit[1], measurement=measured, budget=None)


def _storable(value: Any) -> Any:
    """Return a value with infinities and NaN as text, which JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if isinstance(value, Mapping):
        return {key: _storable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(item) for item in value]
    return value


def _restored(value: Any) -> Any:
    """Return the value that ``_storable`` has converted, with tuples for lists."""
    if isinstance(value, dict):
        return float(value["number"]) if set(value) == {"number"} else {k: _restored(item) for k, item in value.items()}
    return tuple(map(_restored, value)) if isinstance(value, list) else value


def _comparison(fields: dict[str, Any]) -> Comparison:
    """Return a comparison from its fields. Raises TypeError, KeyError, ValueError or AttributeError."""
    first, failure = fields["first"], fields["failure"]
    return Comparison(
        fields["reference"],
        fields["candidate"],
        fields["verdict"],
        None if first is None else _first(first),
        tuple(map(_layer, fields["outputs"])),
        tuple(map(_layer, fields["layers"])),
        fields["samples"],
        None if failure is None else _failure(failure),
        tuple(InputPair(**pair) for pair in fields.get("inputs", ())),
        fields.get("properties", ({}, {})),
        fields.get("processor", ""),
        fields.get("unseen", ()),
        Conduct(**conduct) if (conduct := fields.get("conduct")) else None,
        Content(**content) if (content := fields.get("content")) else None,
        Storage(**storage) if (storage := fields.get("storage")) else None,
        tuple(Step(**step) for step in fields.get("steps", ())),
    )


def _first(fields: dict[str, Any]) -> First:
    inputs = tuple(
        InputError(**{**i, "measurement": None if i["measurement"] is None else Measurement(**i["measurement"])})
        for i in fields["inputs"]
    )
    return First(_layer(fields["layer"]), inputs, fields["gain"], fields["differences"])


def _layer(fields: dict[str, Any]) -> Layer:
    budget = fields.get("budget")
    known = None if budget is None else Budget(**budget)
    return Layer(**{**fields, "measurement": Measurement(**fields["measurement"]), "budget": known})


def _failure(fields: dict[str, Any]) -> SideFailure:
    outcome: Any = from_record(fields["outcome"])
    return SideFailure(fields["side"], outcome, fields["sample"])


def _bad(path: Path, why: str) -> EngineError:
    help = "pass a file that `irrun compare --save` wrote"
    message = f"cannot read the measurements of {path}: {why}"
    return EngineError(diagnostic("IR706", message, file=str(path), help=help))

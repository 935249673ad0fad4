"""Figures of layers for Model Explorer: the format ``model-explorer`` of compare, precision and run."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irrun import api
from irrun.cli._execution import Run
from irrun.diagnostics import EngineError, diagnostic
from irrun.explorer import node_data
from irrun.model import Model

if TYPE_CHECKING:
    from irrun.debug import Comparison, Precision

__all__ = ["print_comparison", "print_precision", "print_times"]


def print_comparison(comparison: Comparison) -> None:
    """Print the relative error of each layer. Raises EngineError (IR701) if neither side is an IR file."""
    path = next((layer.file for layer in comparison.layers if layer.file is not None), None)
    if path is None:
        message = "no inner values of an IR file were compared, and Model Explorer has no layers to show"
        help = "pass a model.xml as one of the sides, without --outputs-only"
        raise EngineError(diagnostic("IR701", message, help=help))
    model = api.load(path).model
    errors: dict[str, float] = {}
    for layer in comparison.layers:
        error = math.inf if layer.measurement.problem else layer.measurement.error
        for name in dict.fromkeys((layer.name, layer.candidate)):
            errors[name] = max(error, errors.get(name, 0.0))
    _print(node_data(model, "error", errors, "errors"))


def print_precision(path: str, precision: Precision) -> None:
    """Print the effect of each layer on the outputs; 0 for a layer that loses nothing."""
    effects = {layer.name: layer.effect for layer in precision.layers}
    _print(node_data(api.load(path).model, f"effect of {precision.precision}", effects, "errors"))


def print_times(run: Run, model: Model) -> None:
    """Print the milliseconds of each layer. Within a step of several layers, they are divided as in the profile.

    A step whose costs are not known counts for its last layer.
    """
    names: dict[int, str] = {}
    _collect(model, "", names)
    assert run.profile is not None
    times: dict[str, float] = {}
    for row in run.profile.rows:
        milliseconds = row.seconds * row.calls / run.profile.runs * 1e3
        fractions = row.fractions(run.costs) or [0.0] * (len(row.members) - 1) + [1.0]
        for layer, fraction in zip(row.members, fractions):
            if layer.node in names:
                name = names[layer.node]
                times[name] = times.get(name, 0.0) + fraction * milliseconds
    _print(node_data(model, "ms", times, "shares"))


def _collect(model: Model, prefix: str, names: dict[int, str]) -> None:
    """Add the name of each layer by the element of its file, which a reshaped copy of the model shares."""
    for id, layer in model.layers.items():
        names[layer.node] = f"{prefix}{model.unique_names[id]}"
        for body in layer.bodies.values():
            _collect(body, f"{names[layer.node]}/", names)


def _print(data: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")

"""Find the faulty layer by watching: each layer of the candidate is judged on the values that it has read itself."""

from __future__ import annotations

from collections.abc import Sequence

from irrun.base.text import apart
from irrun.debug.bisection.judging import Wrong
from irrun.debug.results import Comparison, Layer
from irrun.model import Model

__all__ = ["by_budgets", "is_explained", "own_wrong", "place_of"]


def by_budgets(comparison: Comparison) -> bool:
    """Return whether budgets have judged a comparison, for both sides ran and irrun could run the reference's model."""
    return comparison.failure is None and any(value.budget is not None for value in comparison.outputs)


def is_explained(comparison: Comparison, wrong: Wrong) -> bool:
    """Return whether outputs that are ``wrong`` without being watched are so by no more than precision explains."""
    if wrong.verdict != "differ" or wrong.message:
        return False
    return all(wrong.excess <= _allowed(comparison.outputs[at]) for at in wrong.outputs if at < len(comparison.outputs))


def _allowed(output: Layer) -> float:
    """Return the error that the budget of an output allows, in units of its tolerance."""
    budget, seen = output.budget, output.measurement.excess
    if budget is None or not budget.is_explained:
        return 1.0
    return max(1.0, seen * (budget.allowed / budget.error if budget.error else 1.0))


def own_wrong(layer: Layer) -> Wrong:
    """Return what is wrong with a layer whose own error the precision does not explain."""
    assert layer.budget is not None
    times = f"{apart(layer.budget.excess, 1, 3)[0]} times what the precision explains"
    message = f"the error of the layer on the inputs that it has read is {times}"
    return Wrong("differ", (0,), layer.budget.excess, message)


def place_of(model: Model, name: str, prefix: str = "") -> tuple[Model, int, str] | None:
    """Return the model or body that has a layer of a name, the id of the layer, and what precedes its name there."""
    for id, own in model.unique_names.items():
        if prefix + own == name:
            return model, id, prefix
    for id, layer in model.layers.items():
        inside = f"{prefix}{model.unique_names[id]}/"
        bodies: Sequence[Model] = list(layer.bodies.values()) if name.startswith(inside) else []
        for body in bodies:
            if (place := place_of(body, name, inside)) is not None:
                return place
    return None

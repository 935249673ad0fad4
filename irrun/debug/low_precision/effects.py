"""Rank layers by what each one alone does to the outputs.

The exact effect of a layer takes a run of its own. With more layers than runs, every effect is estimated first: the
layer's own errors, times the gain from the layer to the outputs (``gains.py``). Then the layers with the greatest
estimates are run, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from irrun.debug.low_precision.gains import Gains
from irrun.debug.low_precision.losses import Loss
from irrun.debug.low_precision.outputs import Outputs, effect_of
from irrun.debug.low_precision.simulation import Isolated, Style

__all__ = ["Effect", "rank"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a layer alone does to the outputs: see ``Sensitivity``."""

    size: float
    exact: bool


def rank(
    outputs: Outputs, style: Style, losses: Mapping[str, Loss], runs: int, on_run: Callable[[], None]
) -> dict[str, Effect]:
    """Return the effect of each layer that loses anything, the greatest first.

    At most ``runs`` effects are exact, each from one run on every sample. ``on_run`` is called before each of them.
    Layers that overflow come first; among equal effects, an earlier layer does.
    """
    names = [name for name, loss in losses.items() if loss.changed]
    effects: dict[str, Effect] = {}
    estimates: dict[str, float] = {}
    if len(names) > runs:
        estimates = _estimated(outputs, style, {name: losses[name] for name in names})
        names = sorted(names, key=lambda name: -estimates[name])[:runs]
    for name in names:
        on_run()
        isolated = Isolated(style, name, stores=not losses[name].passes)
        effects[name] = Effect(effect_of(outputs.compare(isolated)), exact=True)
    factor = _factor(estimates, effects)
    left = estimates.keys() - effects.keys()
    effects.update({name: Effect(estimates[name] * factor, exact=False) for name in left})
    order = {name: number for number, name in enumerate(outputs.simulation.units)}
    return dict(sorted(effects.items(), key=lambda item: (-item[1].size, order[item[0]])))


def _factor(estimates: Mapping[str, float], effects: Mapping[str, Effect]) -> float:
    """Return the median of the factors by which estimates are smaller than effects, so that both can be ranked."""
    known = ((effects[name].size, estimate) for name, estimate in estimates.items() if name in effects)
    factors = [size / estimate for size, estimate in known if 0 < size < math.inf and 0 < estimate < math.inf]
    return float(np.median(factors)) if factors else 1.0


def _estimated(outputs: Outputs, style: Style, losses: Mapping[str, Loss]) -> dict[str, float]:
    """Return the estimated effects of layers: infinite for those that overflow."""
    simulation = outputs.simulation
    measured = Gains(is_relative=not style.format.is_quantized)
    for sample in outputs.samples:
        simulation(measured, sample)
    gains = measured.of_outputs(simulation, outputs.true)
    return {
        name: math.inf if loss.overflows else _size(loss, gains.get(name, np.zeros(2))) for name, loss in losses.items()
    }


def _size(loss: Loss, gains: np.ndarray) -> float:
    """Return the estimated relative error of the outputs that the errors of a layer cause."""
    return math.sqrt(float(gains @ (loss.common, loss.noise - loss.common)))

"""Rank layers by what each one alone does to the outputs.

The exact effect of a layer takes a run of its own. If there are more layers than runs, half of the runs estimate the
effects of all layers at once: in each of them, every layer adds its own error with a random sign. To first order, the
error of the outputs is the sum of the errors that the layers cause, with these signs. So the part of it that goes with
the signs of one layer is the effect of this layer, and the parts of the others cancel out more, the more runs there
are. The other half of the runs takes the layers with the greatest estimates, one by one. Each exact effect is then
subtracted from the runs, so that it no longer hides the smaller ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irrun.debug.low_precision.losses import Loss
from irrun.debug.low_precision.outputs import Outputs, effect_of
from irrun.debug.low_precision.simulation import Isolated, Signed, Style

__all__ = ["Effect", "rank"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a layer alone does to the outputs: see ``Sensitivity``."""

    size: float
    exact: bool


class _Ranking:
    def __init__(self, outputs: Outputs, style: Style, losses: Mapping[str, Loss], on_run: Callable[[], None]) -> None:
        self.outputs, self.style, self.losses, self.on_run = outputs, style, losses, on_run
        self.passing = frozenset(name for name, loss in losses.items() if loss.passes)
        self.effects: dict[str, Effect] = {}

    def measure(self, name: str) -> np.ndarray:
        """Set the exact effect of a layer, and return the errors of the outputs that it causes [elements]."""
        self.on_run()
        layers, errors = self.outputs.run(Isolated(self.style, name, stores=name not in self.passing))
        self.effects[name] = Effect(effect_of(layers), exact=True)
        return errors

    def estimate(self, names: Sequence[str], runs: int) -> None:
        """Set the effects of layers from ``runs`` runs in which all of them err, and as many exact effects."""
        signs = np.random.default_rng(0).choice(np.array([-1.0, 1.0]), (runs, len(names)))
        errors: list[np.ndarray] = []
        for row in signs:
            self.on_run()
            errors.append(self.outputs.run(Signed(self.style, dict(zip(names, row.tolist())), self.passing))[1])
        residual = np.array(errors)
        left = dict(enumerate(names))
        for _ in range(min(runs, len(names))):
            estimates = _estimates(signs, residual)
            chosen = max(left, key=lambda number: (estimates[number], -number))
            residual -= np.outer(signs[:, chosen], self.measure(left.pop(chosen))).astype(residual.dtype)
        estimates = _estimates(signs, residual)
        for number, name in left.items():
            self.effects[name] = Effect(math.sqrt(max(float(estimates[number]), 0.0)), exact=False)


def _estimates(signs: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return the estimated squares of the effects of all layers [layers].

    ``signs`` [runs, layers] are those of the layers, ``errors`` [runs, elements] those of the outputs. The products of
    a run with itself are left out, because they hold the errors of all layers.
    """
    count = len(signs)
    products = (errors @ errors.T).astype(np.float64)
    return (np.einsum("kl,kl->l", signs, products @ signs) - np.trace(products)) / (count * (count - 1))


def rank(
    outputs: Outputs, style: Style, losses: Mapping[str, Loss], runs: int, on_run: Callable[[], None]
) -> dict[str, Effect]:
    """Return the effect of each layer that loses anything, the greatest first.

    At most about ``runs`` runs are made for each sample. If they suffice, all effects are exact. ``on_run`` is called
    before each run. Among equal effects, an earlier layer comes first.
    """
    ranking = _Ranking(outputs, style, losses, on_run)
    names = [name for name, loss in losses.items() if loss.changed]
    overflowing = [name for name in names if losses[name].overflows]
    rest = [name for name in names if not losses[name].overflows]
    if len(names) <= runs:
        for name in names:
            ranking.measure(name)
    else:
        for name in overflowing[: runs // 2]:
            ranking.measure(name)
        for name in overflowing[runs // 2 :]:
            ranking.effects[name] = Effect(math.inf, exact=False)
        if rest:
            ranking.estimate(rest, max(2, (runs - min(len(overflowing), runs // 2)) // 2))
    order = {name: number for number, name in enumerate(outputs.simulation.units)}
    return dict(sorted(ranking.effects.items(), key=lambda item: (-item[1].size, order[item[0]])))

"""Judge one layer of a built model by its budget, for a value that a test says an engine has shown."""

from contextlib import closing
from pathlib import Path

import numpy as np

import irrun
from irrun.debug.budget import InEffect, Judge
from irrun.debug.budget.shown import Shown
from irrun.debug.metrics import Budget
from irrun.debug.shelf import Shelf
from irrun.engines import Place


def judged(model: irrun.Model, x: np.ndarray, name: str, shown: np.ndarray, folder: Path) -> Budget:
    """Return the error of a layer of a model with one input, beside its budget in f32."""
    found, values = dict[Place, Budget](), Shown()
    judge = Judge(model, InEffect(), InEffect(), keep_state=False)
    with closing(Shelf(folder)) as shelf:
        values.add(Place(name), 0, 0, shelf.keep_array(shown), 0)
        judge.run({0: x}, values, lambda place, iteration, budget: found.__setitem__(place, budget))
        values.drop()
    return found[Place(name)]

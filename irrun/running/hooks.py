"""Hooks: objects that the executor calls before and after each step. They are the only way to observe a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from irrun.diagnostics import FeedError
from irrun.model import Layer, Model
from irrun.model.lookup import find_layers, no_such_layer

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = ["Hook", "Tap"]


class Hook(Protocol):
    """An object that is called before and after each step. The arrays are those of the run: do not change them.

    In a run with a hook, each layer is a step of its own. A hook with a true attribute ``joined`` gets the steps of a
    run without hooks instead: a step may compute several layers (``step.layers``), and folded layers have no step.
    """

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None: ...

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None: ...


class Tap:
    """A hook that copies the outputs of some layers of the model into ``arrays``.

    The first output of a layer has the layer's name as its key, each further one ``name:port``. ``wanted`` are names
    or globs. Raises FeedError (IR606) for one that matches no layer. Layers of bodies are not copied.
    """

    def __init__(self, model: Model, wanted: Sequence[str], known: Mapping[int, np.ndarray]) -> None:
        """``known`` holds the arrays of Parameters and constants, by layer id, since no step computes them."""
        self.arrays: dict[str, np.ndarray] = {}
        self.model = model
        self._layers: dict[int, Layer] = {}
        for pattern in wanted:
            layers = find_layers(model, pattern)
            if not layers:
                raise FeedError(no_such_layer(model, pattern))
            self._layers |= {layer.id: layer for layer in layers}
        for id, array in known.items():
            if id in self._layers:
                self._keep(self._layers[id], [array])

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        pass

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        if self._layers.get(step.layer.id) is step.layer:  # a layer of a body may have the same id
            self._keep(step.layer, outputs)

    def _keep(self, layer: Layer, outputs: Sequence[np.ndarray]) -> None:
        for position, array in enumerate(outputs[: len(layer.outputs)]):
            self.arrays[self.model.output_name(layer.id, position)] = np.array(array)

"""Hooks: objects that the executor calls before and after each step. They are the only way to observe a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from irrun.diagnostics import Diagnostic, ExecutionError, FeedError, diagnostic
from irrun.lookup import find_layers, no_such_layer
from irrun.model import Layer, Model, Port
from irrun.types import ElementType

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = ["Hook", "Strict", "Tap", "untrue"]


class Hook(Protocol):
    """An object that is called before and after each step. The arrays are those of the run: do not change them.

    In a run with a hook, each layer is a step of its own. A hook with a true attribute ``joined`` gets the steps of a
    run without hooks instead: a step may compute several layers (``step.layers``), and folded layers have no step.
    """

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None: ...

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None: ...


class Strict:
    """A hook that raises ExecutionError (IR602) at the first output whose shape or type contradicts its port."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        pass

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        for port, array in zip(step.layer.outputs, outputs):
            if wrong := untrue(self.model, step.layer, port, array.shape, array.dtype):
                raise ExecutionError(wrong)


def untrue(model: Model, layer: Layer, port: Port, shape: tuple[int, ...], dtype: np.dtype) -> Diagnostic | None:
    """Return the diagnostic (IR602) for an output whose shape or dtype contradicts its port, or None if both fit."""
    if port.shape is not None and not port.shape.fits(shape):
        wrong = f"declares {port.shape}, but is [{','.join(map(str, shape))}]"
    elif port.type is not None and not _is(port.type, dtype):
        wrong = f"declares {port.type}, but is {ElementType.of(dtype) or dtype}"
    else:
        return None
    return diagnostic(
        "IR602", f'{layer.type} "{layer.name}" output {port.id} {wrong}', source=model.source, node=port.node,
        layer=layer.name, port=port.id,
        help="run `irrun check` to see which is wrong, or pass --no-strict (strict=False) to run the model regardless",
    )  # fmt: skip


def _is(element_type: ElementType, dtype: np.dtype) -> bool:
    """Return whether arrays of ``dtype`` can have this element type. The dynamic type accepts every dtype."""
    return element_type.dtype == dtype or element_type.kind == "dynamic"


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

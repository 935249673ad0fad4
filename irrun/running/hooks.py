"""Watching a run: a hook sees every layer before and after it is computed. The loop itself has no options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from irrun.diagnostics import Diagnostic, ExecutionError, FeedError, diagnostic
from irrun.lookup import find_layers, no_such_layer
from irrun.model import Layer, Model, Port
from irrun.types import ElementType

if TYPE_CHECKING:
    from irrun.running.steps import Step

__all__ = ["Hook", "Strict", "Tap", "untrue"]


class Hook(Protocol):
    """Called around every step of a run; arrays are the true intermediate values and must not be changed.

    While it watches, every layer is a step of its own. One with a true attribute ``joined`` is content with the
    steps that are run without it: they may stand for several layers (``step.layers``), constant ones are left out.
    """

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None: ...

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None: ...


class Strict:
    """Stops a run at the first output that is not what its port declares. Raises ExecutionError (IR602)."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        pass

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        for port, array in zip(step.layer.outputs, outputs):
            if wrong := untrue(self.model, step.layer, port, array.shape, array.dtype):
                raise ExecutionError(wrong)


def untrue(model: Model, layer: Layer, port: Port, shape: tuple[int, ...], dtype: np.dtype) -> Diagnostic | None:
    """That an output of this shape and type is not what its port declares (IR602)."""
    if port.shape is not None and not port.shape.fits(shape):
        wrong = f"declares {port.shape}, but is [{','.join(map(str, shape))}]"
    elif port.type is not None and not _is(port.type, dtype):
        wrong = f"declares {port.type}, but is {ElementType.of(dtype) or dtype}"
    else:
        return None
    return diagnostic(
        "IR602", f'{layer.type} "{layer.name}" output {port.id} {wrong}', source=model.source, node=port.node,
        layer=layer.name, port=port.id,
        help="`irrun check` tells which is wrong; --no-strict (strict=False) runs on regardless",
    )  # fmt: skip


def _is(element_type: ElementType, dtype: np.dtype) -> bool:
    return (
        element_type.dtype == dtype
        or element_type.kind == dtype.kind == "dynamic"
        or (element_type.kind == "string" and dtype.kind == "U")
        or element_type.kind == "dynamic"
    )


class Tap:
    """Keeps copies of what some layers of the model give: by layer name, ``name:port`` from the second output on.

    ``wanted`` are names or globs. Raises FeedError (IR606) for one that no layer has.
    """

    def __init__(self, model: Model, wanted: Sequence[str], known: Mapping[int, np.ndarray]) -> None:
        """``known`` are the arrays of Parameters and constants, by layer id."""
        self.arrays: dict[str, np.ndarray] = {}
        self.model = model
        self._layers: dict[int, Layer] = {}
        for pattern in wanted:
            found = find_layers(model, pattern)
            if not found:
                raise FeedError(no_such_layer(model, pattern))
            self._layers |= {layer.id: layer for layer in found}
        for id, array in known.items():
            if id in self._layers:
                self._keep(self._layers[id], [array])

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        pass

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        if self._layers.get(step.layer.id) is step.layer:  # and not one of a body
            self._keep(step.layer, outputs)

    def _keep(self, layer: Layer, outputs: Sequence[np.ndarray]) -> None:
        for position, array in enumerate(outputs[: len(layer.outputs)]):
            self.arrays[self.model.output_name(layer.id, position)] = np.array(array)

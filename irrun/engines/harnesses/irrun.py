"""The harness of irrun: the default plan or, with the option ``exact``, the defining kernel of each layer.

The option ``precision`` is that of ``irrun.compile``.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import irrun
from irrun.api import compile
from irrun.base.identity import identity, weights_of
from irrun.engines.places import body_inputs, computing_layers
from irrun.engines.tensors import Wire, decoded, encoded
from irrun.model import Layer, Model
from irrun.opdef import Operands, Precision
from irrun.opdef.plugins import load_plugin
from irrun.planning.groups import GROUP
from irrun.planning.plans import operands
from irrun.planning.steps import Step
from irrun.types import UNKNOWN_RANK

__all__ = ["Harness"]

Show = Callable[[str, int, Wire], None]
_MIN_COLLECTED_BYTES: Final = 1 << 22
"""Bytes of constants whose memory is worth the 20 ms that it takes to find all unused objects."""

_PROPERTIES: Final[Mapping[Operands, tuple[str, str]]] = {
    "bf16": ("INFERENCE_PRECISION_HINT", "bf16"),
    "i8": ("DYNAMIC_QUANTIZATION_GROUP_SIZE", str(GROUP)),
}
"""The property of OpenVINO that says to what operands are rounded, and its value."""


class Harness:
    """irrun, with the threads that ``options`` name."""

    def __init__(self, options: dict[str, str]) -> None:
        self.exact = "exact" in options
        if "threads" in options:
            os.environ["IRRUN_THREADS"] = options["threads"]
        self.weights = options.get("weights")
        asked: Any = options.get("precision", "f32")
        self.precision: Precision = asked
        rounds = operands(asked)
        self.properties = {_PROPERTIES[name][0]: _PROPERTIES[name][1] for name in rounds}
        """What decides how much rounding explains: see ``irrun.debug.budget``."""
        for file in json.loads(options.get("plugins", "[]")):
            load_plugin(file)
        self.executable: irrun.Executable | None = None
        self.model: Model | None = None
        self.contents: tuple[str, ...] = ()
        """The identity of the files of the model."""
        self.is_layered = False
        self.name = " ".join((f"irrun {irrun.__version__}", *(["exact"] if self.exact else []), *sorted(rounds)))

    def load(self, path: str, inner: bool) -> dict[str, Any]:
        """Read and compile the model, and return its inputs, its outputs and, if ``inner``, its inner values.

        A model that shows its inner values is compiled when it runs: until then, it takes no memory, which the other
        side of a comparison needs. Constants take none in a model that computes each layer by its defining kernel.
        """
        contents = (identity(path), identity(weights_of(path, self.weights)))
        before = self.executable if contents == self.contents else None
        self.executable = None
        if before is None:
            held = None if self.model is None else self.model.weights
            large, held, self.model = held is not None and held.data.nbytes >= _MIN_COLLECTED_BYTES, None, None
            if large:
                gc.collect()  # free the memory of the old model first: an executable is part of cycles
        self.is_layered = inner
        model = irrun.read_model(path, self.weights) if self.model is None else self.model
        self.model = model
        self.contents = contents
        if self.exact or not inner:
            self.executable = self._compiled()  # it shares the packed constants of ``before``
        loaded: dict[str, Any] = {
            "inputs": [_input(model, parameter) for parameter in model.parameters],
            "outputs": [{"names": list(model.result_names(result))} for result in model.results],
        }
        if inner:
            loaded["neutral"] = self.exact
            loaded["values"] = [
                {"layer": name, "port": port, "type": layer.type, "names": list(layer.outputs[port].names)}
                for name, _, layer in computing_layers(model)
                for port in range(len(layer.outputs))
            ]
            loaded["values"] += [
                {"layer": name, "port": 0, "type": layer.type, "names": list(layer.outputs[0].names)}
                for name, layer, _, _ in body_inputs(model)
            ]
        return loaded

    def infer(self, feeds: Sequence[Wire], taps: Sequence[tuple[str, int]], show: Show) -> list[Wire]:
        """Return the outputs, and pass the inner values at ``taps`` to ``show``.

        A model that was loaded with its inner values computes each layer on its own.
        """
        executable = self._compiled()
        arrays = [decoded(*feed) for feed in feeds]
        hooks = [_Observer(executable.model, set(taps), show)] if taps else []
        outputs = executable(arrays, hooks=hooks)
        types = [executable.plan.types[slot] for slot in executable.plan.results]
        return [
            encoded(array, None if type.kind == "dynamic" else type.name) for array, type in zip(outputs.arrays, types)
        ]

    def reset(self) -> None:
        """Reset the variables of the model."""
        if self.executable is not None:
            self.executable.reset_state()

    def _compiled(self) -> irrun.Executable:
        if self.executable is None:
            assert self.model is not None
            self.executable = compile(self.model, exact=self.exact, layered=self.is_layered, precision=self.precision)
        return self.executable


class _Observer:
    """A hook that passes the values at ``taps`` to ``show``, also those of bodies, in the order of the run."""

    def __init__(self, model: Model, taps: set[tuple[str, int]], show: Show) -> None:
        self.show = show
        self.wanted = {
            id(layer): (name, [port for port in range(len(layer.outputs)) if (name, port) in taps])
            for name, _, layer in computing_layers(model)
        }
        self.inputs: dict[int, list[tuple[str, int]]] = {}
        for name, _, reader, position in body_inputs(model):
            if (name, 0) in taps:
                self.inputs.setdefault(id(reader), []).append((name, position))

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        for name, position in self.inputs.get(id(step.layer), ()):
            self.show(name, 0, encoded(np.asarray(inputs[position])))

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        name, ports = self.wanted[id(step.layer)]
        for port in ports:
            self.show(name, port, encoded(np.asarray(outputs[port])))


def _input(model: Model, parameter: Layer) -> dict[str, Any]:
    port = parameter.outputs[0]
    type = "dynamic" if port.type is None else port.type.name
    return {"names": list(model.input_names(parameter)), "type": type, "shape": str(port.shape or UNKNOWN_RANK)}

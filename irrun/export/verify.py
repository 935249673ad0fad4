"""Hold an exported model against the model that it was made from: both run on the same inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from irrun.api import compile, save_model
from irrun.debug.comparison import compare
from irrun.debug.tolerances import TOLERANCES
from irrun.diagnostics import IrrunError, ModelError, diagnostic
from irrun.engines import Engine, Failure, Loaded, Outputs, Place, Refusal, Timeout
from irrun.engines import open as open_engine
from irrun.export.ends import PlainEnds
from irrun.model import Layer, Model
from irrun.running.executor import Executable
from irrun.running.executor import Outputs as RunOutputs
from irrun.running.generate import draw

__all__ = ["SAMPLES", "differs", "require_equal"]

SAMPLES: Final = 2
"""The random inputs on which an exported model is run, if no inputs are passed."""

Feeds = Mapping[int, np.ndarray]


def require_equal(model: Model, ends: PlainEnds, path: Path, feeds: Iterable[Feeds] | None = None) -> None:
    """Run the file ``path`` in onnxruntime, and raise ModelError (IR610) if an output differs from that of irrun.

    The file holds the model of ``ends``.

    ``feeds`` are the inputs of each run, by position; an input that is missing is random. A stateful model runs a
    second time on the same inputs. Raises EngineError (IR702) if onnxruntime is not installed.
    """
    reference = compile(model, exact=True)
    none: Feeds = {}
    with open_engine("ort") as engine:
        loaded = engine.load(path)
        if not isinstance(loaded, Loaded):
            raise _refused(model, f"onnxruntime does not take the exported model: {_said(loaded)}")
        sample = _Sample(model, ends, path, reference, engine)
        for seed, given in enumerate([none] * SAMPLES if feeds is None else feeds):
            drawn = draw(model, seed, given={**given})
            try:
                sample([{**drawn, **given}[position] for position in range(len(model.parameters))])
            except _RunError:  # a random index may lie outside its axis: 0 does not
                least = {n: np.zeros_like(array) if array.dtype.kind in "iu" else array for n, array in drawn.items()}
                sample([{**least, **given}[position] for position in range(len(model.parameters))])


class _RunError(ModelError):
    """The exported model fails on inputs that the model takes."""


class _Sample:
    """Compares both models on one sample."""

    def __init__(self, model: Model, ends: PlainEnds, path: Path, reference: Executable, engine: Engine) -> None:
        self.model, self.ends, self.path, self.reference, self.engine = model, ends, path, reference, engine
        self.exported = ends.exported

    def __call__(self, arrays: Sequence[np.ndarray]) -> None:
        """Run both, a stateful model twice, and raise ModelError (IR610) if an output differs."""
        self.reference.restart()
        states = list(self.exported.states.values())
        run = self._reference(arrays)
        held = [run.taps[self.model.unique_names[state.reader.id]] for state in states]
        after = self._require([*arrays, *held], run)
        if not states:
            return
        with suppress(IrrunError):
            self._require([*arrays, *after], self._reference(arrays))

    def _reference(self, arrays: Sequence[np.ndarray]) -> RunOutputs:
        """Return what irrun computes, with the values of states, and of the inputs and outputs of functions."""
        layers = [state.reader.id for state in self.exported.states.values()]
        layers += [function.layer.id for function in self.exported.functions]
        layers += [id for function in self.exported.functions for (id, _), _ in function.inputs]
        return self.reference(list(arrays), taps=[self.model.unique_names[id] for id in dict.fromkeys(layers)])

    def _require(self, arrays: Sequence[np.ndarray], run: RunOutputs) -> list[np.ndarray]:
        """Run the exported model, compare its outputs with those of irrun, and return the states behind them."""
        given = [
            run.taps[self.model.output_name(function.layer.id, position)]
            for function in self.exported.functions
            for position in range(len(function.outputs))
        ]
        outcome = self.engine.infer(dict(enumerate(self.ends.fed([*arrays, *given]))))
        if not isinstance(outcome, Outputs):
            raise _RunError(_refused(self.model, f"onnxruntime fails: {_said(outcome)}").diagnostics)
        outputs = self.ends.restored([output.array for output in outcome.outputs])
        count = len(self.model.results)
        for position, (result, output) in enumerate(zip(self.model.results, outputs)):
            why = differs(output, run[position])
            if why and not self._is_explained(arrays):
                raise self._culprit([*arrays, *given], result, why)
        behind = count + len(self.exported.states)
        shown = [place for function in self.exported.functions for place, _ in function.inputs]
        for (id, position), output in zip(shown, outputs[behind:]):
            if why := differs(output, run.taps[self.model.output_name(id, position)]):
                message = f"output {position} differs in onnxruntime: {why}"
                raise _refused(self.model, message, self.model.layers[id])
        return outputs[count:behind]

    def _is_explained(self, arrays: Sequence[np.ndarray]) -> bool:
        """Return whether the budgets of ``irrun compare`` explain a difference, as where a level is rounded up or down.

        That is asked for models that quantize and have no variables.
        """
        quantizes = any(layer.type == "FakeQuantize" for layer in self.model.layers.values())
        if not quantizes or self.exported.states or self.exported.functions:
            return False
        saved = self.path.with_name("model.xml")
        save_model(self.model, saved)
        inputs: dict[str | int, np.ndarray] = dict(enumerate(arrays))
        return compare(str(saved), f"ort:{self.path}", inputs, layers=False).agrees

    def _culprit(self, arrays: Sequence[np.ndarray], result: Layer, why: str) -> ModelError:
        """Return the error at the first layer whose output differs, or at the Result if no inner value shows it."""
        inputs = list(arrays[: len(self.model.parameters)])
        for id, position, got, want in self._inner(arrays, inputs):
            if inner := differs(got, want):
                layer = self.model.layers[id]
                return _refused(self.model, f"output {position} differs in onnxruntime: {inner}", layer)
        return _refused(self.model, f"the output differs in onnxruntime: {why}", result)

    def _inner(
        self, arrays: Sequence[np.ndarray], inputs: list[np.ndarray]
    ) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """Yield layer id, position, onnxruntime's and irrun's value of each inner value that both show."""
        loaded = self.engine.load(self.path, inner=True)
        if not isinstance(loaded, Loaded):
            return
        values: dict[str, np.ndarray] = {}
        taps = [Place(name) for name in self.exported.tensors.values() if Place(name) in loaded.places]
        self.engine.infer(
            dict(enumerate(self.ends.fed(arrays))),
            taps,
            lambda value: values.__setitem__(value.place.layer, value.array()),
        )
        self.reference.restart()
        known = self.reference(inputs, taps="*").taps
        for id in self.model.order:
            for position in range(len(self.model.layers[id].outputs)):
                name = self.exported.tensors.get((id, position), "")
                own = self.model.output_name(id, position)
                if name in values and own in known:
                    yield id, position, values[name], known[own]


def differs(got: np.ndarray, want: np.ndarray) -> str:
    """Return how an array differs from the expected one, or an empty text.

    Floats may differ by the tolerances of ``irrun compare``, where the absolute one grows with the largest magnitude.
    """
    if got.dtype != want.dtype:
        return f"{got.dtype} instead of {want.dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}"
    if want.dtype.kind != "f" and want.dtype.kind != "V":
        wrong = np.asarray(got != want)
    else:
        name = {np.dtype(np.float64): "f64", np.dtype(np.float16): "f16", np.dtype(np.float32): "f32"}.get(want.dtype)
        rtol, atol = TOLERANCES[name or "bf16"]
        a, b = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(b)
        peak = max(1.0, float(np.abs(b[finite]).max(initial=0.0)))
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= atol * peak + rtol * np.abs(b)
        wrong = ~(np.where(finite, near, a == b) | (np.isnan(a) & np.isnan(b)))
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{count} of {want.size} elements, first {list(first)}: {got[first]} instead of {want[first]}"


def _said(failure: Failure) -> str:
    """Return what an engine says about a failure."""
    if isinstance(failure, Refusal):
        return failure.message
    return f"no answer within {failure.seconds:g} s" if isinstance(failure, Timeout) else failure.cause


def _refused(model: Model, message: str, layer: Layer | None = None) -> ModelError:
    """Return the error (IR610) for a model whose export is wrong, at a layer if one is known."""
    help = "report this bug in irrun together with the model, or write the model without a run (--no-verify)"
    if layer is None:
        return ModelError(diagnostic("IR610", message, file=model.source.path, help=help))
    return ModelError(
        diagnostic(
            "IR610", f'{layer.type} "{layer.name}": {message}', source=model.source, node=layer.node, layer=layer.name,
            help=help,
        )
    )  # fmt: skip

"""Take names and, where the fault survives it, numbers out of a reproduction, so that it can be published."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from irrun.api import compile, read_model
from irrun.debug.bisection.judging import Question, Wrong, is_alike, judge
from irrun.debug.bisection.search import Bisection
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import IrrunError
from irrun.engines import Limits, Side
from irrun.engines import open as open_engine
from irrun.ir.write import save_model
from irrun.model import Layer, Model, is_constant
from irrun.model.weights import Weights

__all__ = ["anonymized"]

_MIN_REPLACED_ELEMENTS: Final = 8
"""The elements from which on a constant is replaced: a smaller one is a scale, an exponent or a shape."""
_FLOATS: Final = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def anonymized(
    bisection: Bisection, side: Side, tolerances: Tolerances, limits: Limits | None = None
) -> tuple[Bisection, bool]:
    """Return a bisection whose part has new names and no ``rt_info``, and whether its numbers are new, too.

    Weights and inputs of floating-point types become random numbers with the same mean and deviation, and the defining
    kernels of irrun compute the expected outputs, if the candidate is still wrong then. A fault that lies in the
    weights does not survive that; the numbers stay as they are.
    """
    assert bisection.part is not None
    assert bisection.wrong is not None
    part = _renamed(bisection.part)
    inputs = [_with_names([p.name for p in part.parameters], run) for run in bisection.inputs]
    outputs = [part.result_name(result) for result in part.results]
    named = replace(
        bisection,
        part=part,
        inputs=tuple(inputs),
        expected=tuple(_with_names(outputs, run) for run in bisection.expected),
        layers=tuple(replace(culprit, name="") for culprit in bisection.layers),
    )
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="irrun-"))) / "part.xml"
        engine = stack.enter_context(open_engine(side.without_model(), limits))
        names = [parameter.name for parameter in part.parameters]

        def judged(feeds: Sequence[Mapping[str, np.ndarray]], expected: Sequence[Sequence[np.ndarray]]) -> Wrong | None:
            values = [[run[name] for run in feeds] for name in names]
            return judge(engine, Question(str(path), names, values, outputs, expected, tolerances.of_layer))

        save_model(part, path, compact=True)
        true = [[run[name] for run in named.expected if name in run] for name in outputs]
        # its message has the new names, and must not have the old ones
        named = replace(named, wrong=judged(inputs, true) or replace(bisection.wrong, message=""))
        rng = np.random.default_rng(0)
        small = read_model(path)
        random = replace(small, weights=Weights(data=_random_weights(small, rng)))
        feeds = [{name: _random(array, rng) for name, array in run.items()} for run in inputs]
        if len(feeds) > 1:  # runs that depend on each other need the true values
            return named, False
        try:
            arrays = compile(random, exact=True)(feeds[0]).arrays
        except IrrunError:
            return named, False
        save_model(random, path, compact=True)
        wrong = judged(feeds, [[array] for array in arrays])
        if wrong is None or named.wrong is None or not is_alike(named.wrong, wrong):
            return named, False
        results = (dict(zip(outputs, arrays)),)
        return replace(named, part=read_in_memory(path), inputs=tuple(feeds), expected=results, wrong=wrong), True


def read_in_memory(path: Path) -> Model:
    """Return a model whose weights do not depend on its file."""
    model = read_model(path)
    if model.weights is not None:
        model.weights.copy_into_memory()
    return model


def _renamed(model: Model) -> Model:
    """Return a model whose layers have numbers for names, without the elements that irrun does not use."""
    variables: dict[str, str] = {}
    inputs, outputs = (iter(range(len(layers))) for layers in (model.parameters, model.results))
    layers: dict[int, Layer] = {}
    for number, (id, layer) in enumerate(model.layers.items()):
        name, own = f"layer{number}", ()
        if layer.type.lower() == "parameter":
            name = f"input{next(inputs)}"
        elif layer.type.lower() == "result":
            own = (f"output{next(outputs)}",)
            name = f"{own[0]}/result"
        layers[id] = replace(
            layer,
            name=name,
            node=-1,
            output_names=own,
            inputs=tuple(replace(port, names=(), node=-1) for port in layer.inputs),
            outputs=tuple(replace(port, names=(), node=-1) for port in layer.outputs),
            bodies={tag: _renamed(body) for tag, body in layer.bodies.items()},
            attributes={
                key: variables.setdefault(text, f"variable{len(variables)}") if key == "variable_id" else text
                for key, text in layer.attributes.items()
            },
        )
    return replace(model, name="model", layers=layers)


def _with_names(names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return dict(zip(names, arrays.values()))


def _random(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers with the mean and deviation of an array of floats; any other array stays."""
    if array.dtype.kind != "f" or not array.size or not np.isfinite(array).all():
        return array
    wide = array.astype(np.float64)
    return rng.normal(wide.mean(), wide.std(), array.shape).astype(array.dtype)


def _random_weights(model: Model, rng: np.random.Generator) -> bytes:
    """Return the ``.bin`` of a model with random numbers in its large constants of floating-point types."""
    assert model.weights is not None
    data = bytearray(model.weights.data.tobytes())
    for layer in _constants(model):
        dtype = _FLOATS.get(layer.attributes.get("element_type", ""))
        offset, size = int(layer.attributes["offset"]), int(layer.attributes["size"])
        if dtype is not None and size >= _MIN_REPLACED_ELEMENTS * np.dtype(dtype).itemsize:
            array = np.frombuffer(data, dtype, size // np.dtype(dtype).itemsize, offset)
            data[offset : offset + size] = _random(array, rng).tobytes()
    return bytes(data)


def _constants(model: Model) -> list[Layer]:
    inner = (body for layer in model.layers.values() for body in layer.bodies.values())
    own = [layer for layer in model.layers.values() if is_constant(layer)]
    return own + [layer for body in inner for layer in _constants(body)]

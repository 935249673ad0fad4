"""Hold an edited model against the original on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from irrun.api import PathLike, as_model, compile
from irrun.diagnostics import IrrunError
from irrun.inference.unseeded import unseeded_behind
from irrun.model import Model
from irrun.running.executor import Outputs
from irrun.running.generate import draw
from irrun.surgery._merging import links
from irrun.surgery._models import refused
from irrun.surgery._names import find_value

__all__ = ["Reference", "merged", "original", "require_equal"]


@dataclass(frozen=True, slots=True)
class Reference:
    """What a model should compute. Call it with the inputs for the outputs, both in the order of the edited model."""

    run: Callable[[Sequence[np.ndarray]], list[np.ndarray]]
    restart: Callable[[], None]
    """Return to the state before the first run."""

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.run(arrays)


def original(model: Model | PathLike, exposed: Sequence[str] = ()) -> Reference:
    """Return what ``model`` computes: its outputs and then the values named ``exposed``, as ``expose`` takes them."""
    model = as_model(model)
    executable = compile(model, exact=True)
    values = [find_value(model, name) for name in exposed]
    layers = [model.unique_names[id] for id, _ in values]
    keys = [model.output_name(*value) for value in values]

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        outputs = executable(list(arrays), taps=layers)
        return [*(outputs[i] for i in range(len(model.results))), *(outputs.taps[key] for key in keys)]

    return Reference(run, executable.restart)


def merged(
    a: Model | PathLike, b: Model | PathLike, connect: Mapping[str, str] | None, *, keep: bool = False
) -> Reference:
    """Return what ``merge(a, b, connect, keep=keep)`` should compute: ``b`` run on outputs of ``a``."""
    a, b = as_model(a), as_model(b)
    first, second = original(a), original(b)
    pairs = {parameter.id: a.results.index(result) for result, parameter in links(a, b, connect)}
    count = len(a.parameters)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        outputs, rest = first(arrays[:count]), iter(arrays[count:])
        feeds = [outputs[pairs[p.id]] if p.id in pairs else next(rest) for p in b.parameters]
        shown = [o for i, o in enumerate(outputs) if keep or i not in pairs.values()]
        return [*shown, *second(feeds)]

    def restart() -> None:
        first.restart()
        second.restart()

    return Reference(run, restart)


def require_equal(
    reference: Reference,
    edited: Model | PathLike,
    *,
    samples: int = 2,
    feeds: Iterable[Mapping[int, np.ndarray]] | None = None,
) -> None:
    """Run an edited model, and raise ModelError (IR608) if an output differs from the reference.

    The inputs are random in each of the ``samples``. ``feeds`` are samples in their place: arrays by position, where
    an input that is missing is random. Both run with the kernels that define the operations, so that every bit must be
    equal. Each sample begins in the initial state. A stateful model then runs again on the same inputs, unless the
    original refuses these in its new state.
    """
    edited = as_model(edited)
    executable = compile(edited, exact=True)
    none: Mapping[int, np.ndarray] = {}
    compared = 0
    for seed, given in enumerate([none] * samples if feeds is None else feeds):
        taken: dict[int | str, np.ndarray] = {**given}
        drawn = {**draw(edited, seed, given=taken), **given}
        arrays = [drawn[i] for i in range(len(edited.parameters))]
        reference.restart()
        executable.restart()
        try:
            expected = reference(arrays)
        except IrrunError as error:
            message = "the original fails on these inputs, so that the edit cannot be verified: "
            message += error.diagnostics[0].message
            help = "pass inputs that it takes (-i NAME=SPEC), or leave the verification out (--no-verify)"
            raise refused(edited, message, help) from None
        compared += len(expected)
        _require_same(edited, executable(arrays), expected)
        if executable.state:
            with suppress(IrrunError):
                expected = None
                expected = reference(arrays)
            if expected is not None:
                _require_same(edited, executable(arrays), expected)
    if not compared:
        message = "there is no sample or no output, so that the edit cannot be verified"
        raise refused(edited, message, "pass a sample, or leave the verification out (--no-verify)")


def _require_same(edited: Model, outputs: Outputs, expected: Sequence[np.ndarray]) -> None:
    """Raise ModelError (IR608) if an output differs from the expected one in a bit."""
    for position, array in enumerate(expected):
        other = outputs[position]
        is_same = other.dtype == array.dtype and other.shape == array.shape
        if is_same and np.array_equal(other, array, equal_nan=array.dtype.kind in "fV"):
            continue
        result = edited.results[position]
        name = edited.result_name(result)
        layer = unseeded_behind(edited, result.id)
        if layer is not None:
            message = f'output "{name}" cannot be verified, because {layer.type} "{layer.name}" has no seed: it draws '
            message += "other random numbers in every run"
            help = "give the layer a global_seed or op_seed, or leave the verification out (--no-verify)"
            raise refused(edited, message, help, layer)
        message = f'output "{name}" differs from that of the original'
        raise refused(edited, message, "report this bug in irrun together with the model", result)

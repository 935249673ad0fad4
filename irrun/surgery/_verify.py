"""Hold an edited model against the original on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from irrun.api import PathLike, as_model, compile
from irrun.diagnostics import IrrunError
from irrun.model import Model
from irrun.running.generate import draw
from irrun.surgery._merging import links
from irrun.surgery._models import refused
from irrun.surgery._names import find_value

__all__ = ["Reference", "merged", "original", "require_equal"]

Reference = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
"""What a model should compute: its outputs from its inputs, both in the order of the edited model."""


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

    return run


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

    return run


def require_equal(
    reference: Reference,
    edited: Model | PathLike,
    *,
    samples: int = 2,
    feeds: Iterable[Mapping[int, np.ndarray]] | None = None,
) -> None:
    """Run an edited model, and raise ModelError (IR608) if an output differs from the reference.

    The inputs are random in each of the ``samples``. ``feeds`` are samples in their place: arrays by position, where
    an input that is missing is random.
    Both run with the kernels that define the operations, so that every bit must be equal. A stateful model keeps its
    variables from one sample to the next.
    """
    edited = as_model(edited)
    executable = compile(edited, exact=True)
    none: Mapping[int, np.ndarray] = {}
    for seed, given in enumerate([none] * samples if feeds is None else feeds):
        taken: dict[int | str, np.ndarray] = {**given}
        drawn = {**draw(edited, seed, given=taken), **given}
        arrays = [drawn[i] for i in range(len(edited.parameters))]
        try:
            expected = reference(arrays)
        except IrrunError as error:
            message = "the original fails on these inputs, so that the edit cannot be verified: "
            message += error.diagnostics[0].message
            help = "pass inputs that it takes (-i NAME=SPEC), or leave the verification out (--no-verify)"
            raise refused(edited, message, help) from None
        outputs = executable(arrays)
        for position, array in enumerate(expected):
            other = outputs[position]
            is_same = other.dtype == array.dtype and other.shape == array.shape
            if not is_same or not np.array_equal(other, array, equal_nan=array.dtype.kind in "fV"):
                result = edited.results[position]
                message = f'output "{edited.result_name(result)}" differs from that of the original'
                raise refused(edited, message, "report this bug in irrun together with the model", result)

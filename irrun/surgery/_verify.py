"""Hold an edited model against the original on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import ml_dtypes
import numpy as np

import irrun.engines as engines
from irrun.api import PathLike, as_model, compile
from irrun.checking.checker import check
from irrun.diagnostics import IrrunError
from irrun.inference.unseeded import unseeded_behind
from irrun.ir.parse import Parsed
from irrun.ir.write import save_model
from irrun.model import Model
from irrun.running.executor import Outputs
from irrun.running.generate import draw
from irrun.surgery._merging import links
from irrun.surgery._models import refused
from irrun.surgery._names import find_value
from irrun.types import ElementType, PartialShape

__all__ = [
    "Reference", "is_close", "merged", "original", "probe", "require_agreement", "require_equal", "require_equal_on",
    "require_reshaped",
]  # fmt: skip


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
    limit: float | None = None,
) -> None:
    """Run an edited model, and raise ModelError (IR608) if an output differs from the reference.

    The inputs are random in each of the ``samples``. ``feeds`` are samples in their place: arrays by position, where
    an input that is missing is random. Both run with the kernels that define the operations, so that every bit must be
    equal, or with a ``limit`` every value close (see ``is_close``). Each sample begins in the initial state. A
    stateful model then runs again on the same inputs, unless the original refuses these in its new state.
    """
    edited = as_model(edited)
    executable = compile(edited, exact=True)
    compared = 0
    for arrays in _inputs(edited, samples, feeds):
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
        _require_same(edited, executable(arrays), expected, limit)
        if executable.state:
            with suppress(IrrunError):
                expected = None
                expected = reference(arrays)
            if expected is not None:
                _require_same(edited, executable(arrays), expected, limit)
    if not compared:
        message = "there is no sample or no output, so that the edit cannot be verified"
        raise refused(edited, message, "pass a sample, or leave the verification out (--no-verify)")


def _inputs(model: Model, samples: int, feeds: Iterable[Mapping[int, np.ndarray]] | None) -> Iterator[list[np.ndarray]]:
    """Yield the inputs of each sample in order: those of ``feeds``, and random ones in the place of missing ones."""
    none: Mapping[int, np.ndarray] = {}
    for seed, given in enumerate([none] * samples if feeds is None else feeds):
        taken: dict[int | str, np.ndarray] = {**given}
        drawn = {**draw(model, seed, given=taken), **given}
        yield [drawn[i] for i in range(len(model.parameters))]


def require_reshaped(
    model: Model | PathLike,
    reshaped: Model | PathLike,
    axes: Mapping[int, int] | None = None,
    *,
    feeds: Sequence[Mapping[int, np.ndarray]] | None = None,
) -> str:
    """Hold a model with other input shapes against the original, and return in words what was compared.

    If the new shapes admit the old ones, both must give the same there, within the limit of ``is_close``. With the
    ``axes`` of the batch by the position of the input, the outputs of several samples at once must be those of each
    sample alone, within the same limit. The reshaped model must also run in its own shapes, on ``feeds`` or random
    inputs, and give what the original gives if that takes them. Raises ModelError (IR608) if it does not.
    """
    model, reshaped = as_model(model), as_model(reshaped)
    proofs: list[str] = []
    if all(
        after.shape is None or _admits(after.shape, before.shape)
        for before, after in zip(model.inputs, reshaped.inputs)
    ):
        given = (feeds or [{}])[0]
        fitting = {i: array for i, array in given.items() if _fits(model.inputs[i].shape, array)}
        samples = [{**draw(model, seed), **fitting} for seed in range(2)]
        require_equal(original(model), reshaped, feeds=samples, limit=0.0)
        proofs.append("equal to the original at its shapes")
    if axes:
        count = _require_samples(model, reshaped, axes)
        if count:
            proofs.append(f"equal to the original on each of {count} samples")
    if _require_run(model, reshaped, list(_inputs(reshaped, 1, feeds or [probe(model, reshaped)]))) and not proofs:
        proofs.append("equal to the original in its new shapes")
    return " and ".join(proofs) or "run in its new shapes"


def _require_run(model: Model, reshaped: Model, runs: Sequence[Sequence[np.ndarray]]) -> bool:
    """Run a model with other input shapes, and return whether its outputs are those of the original in each run.

    They are compared if the original takes the inputs, as a model with unknown dims does, and gives outputs of the same
    shapes. It need not: a number that repeats a dim may have been replaced. Raises ModelError (IR608) if a run fails or
    an output differs.
    """
    reference, executable = original(model), compile(reshaped, exact=True)
    compared = 0
    for arrays in runs:
        executable.restart()
        reference.restart()
        try:
            outputs = executable(list(arrays))
        except IrrunError as error:
            shapes = ", ".join(str(PartialShape.of(array.shape)) for array in arrays)
            message = f"the result fails on inputs of {shapes}: {error.diagnostics[0].message}"
            raise refused(reshaped, message, "pass inputs that it takes (-i NAME=SPEC), or other shapes") from None
        expected: list[np.ndarray] = []
        if _takes(model, arrays):
            with suppress(IrrunError):
                expected = reference(arrays)
        if expected and all(outputs[i].shape == array.shape for i, array in enumerate(expected)):
            _require_same(reshaped, outputs, expected, 0.0)
            compared += 1
    return compared == len(runs)


def probe(model: Model, reshaped: Model) -> dict[int, np.ndarray]:
    """Return random inputs, whose dims are twice the old ones where the new shape leaves them open.

    They are the old ones if a layer accepts no others, such as the number of channels of a convolution.
    """
    larger = _probed(model, reshaped, 2)
    known = {i: ",".join(map(str, dims)) for i, dims in larger.items()}
    is_accepted = not any(found.severity == "error" for found in check(Parsed(reshaped.reshape(known), [])))
    return draw(reshaped, 0, {**larger} if is_accepted else {**_probed(model, reshaped, 1)})


def _probed(model: Model, reshaped: Model, factor: int) -> dict[int, list[int]]:
    """Return shapes of inputs whose old shape is known: the new ones, with ``factor`` times the old dims where open."""
    shapes: dict[int, list[int]] = {}
    for position, (before, after) in enumerate(zip(model.inputs, reshaped.inputs)):
        if before.shape is None or after.shape is None or before.shape.static is None or after.shape.dims is None:
            continue
        pairs = list(zip(before.shape.static, after.shape.dims))
        if len(pairs) == len(after.shape.dims) == len(before.shape.static):
            choices = [(new.value, factor * old, old, int(new.lo)) for old, new in pairs]
            shapes[position] = [
                next(n for n in choice if n is not None and new.fits(n)) for choice, (_, new) in zip(choices, pairs)
            ]
    return shapes


def _fits(shape: PartialShape | None, array: np.ndarray) -> bool:
    return shape is None or shape.fits(array.shape)


def _takes(model: Model, arrays: Sequence[np.ndarray]) -> bool:
    return all(_fits(each.shape, array) for each, array in zip(model.inputs, arrays))


def _admits(after: PartialShape, before: PartialShape | None) -> bool:
    dims = before.static if before is not None else None
    return dims is not None and after.fits(dims)


def _require_samples(model: Model, reshaped: Model, axes: Mapping[int, int]) -> int:
    """Compare the outputs of a batch with those of its samples. Return the number of samples, 0 if they do not fit."""
    position, axis = next(iter(axes.items()))
    old, new = (each.inputs[position].dims for each in (model, reshaped))
    size = old[axis].value
    whole = new[axis].value or 2 * (size or 0)
    if not size or not whole or whole % size or not new[axis].fits(whole):
        return 0
    count = whole // size
    first = draw(model, 0)
    samples = [{**first, **{i: a for i, a in draw(model, seed).items() if i in axes}} for seed in range(count)]
    stacked = {i: np.concatenate([s[i] for s in samples], axes[i]) if i in axes else first[i] for i in first}
    reference = original(model)
    runs = []
    for sample in samples:
        reference.restart()
        try:
            runs.append(reference([sample[i] for i in range(len(model.parameters))]))
        except IrrunError as error:
            message = "the original fails on random inputs, so that the edit cannot be verified: "
            message += error.diagnostics[0].message
            raise refused(reshaped, message, "leave the verification out (--no-verify)") from None
    outputs = compile(reshaped, exact=True)([stacked[i] for i in range(len(model.parameters))])
    for number, parts in enumerate(zip(*runs)):
        array, dims = outputs[number], parts[0].shape
        joined = next((i for i, (a, b) in enumerate(zip(array.shape, dims)) if a == b * count and a != b), None)
        expected = parts[0] if joined is None else np.concatenate(parts, joined)
        if not is_close(array, expected):
            result = reshaped.results[number]
            message = f'output "{reshaped.result_name(result)}" of {count} samples is not that of each sample alone'
            raise refused(reshaped, message, "the model mixes its samples: pass --shape, or keep its batch", result)
    return count


def require_agreement(
    side: str,
    model: Model | PathLike,
    reshaped: Model | PathLike,
    *,
    feeds: Sequence[Mapping[int, np.ndarray]] | None = None,
) -> str:
    """Run a model with other input shapes in an engine, whose outputs must be those of irrun. Return the engine's name.

    The name is empty if the engine does not run the original, or gives other outputs for it than irrun does. Raises
    ModelError (IR608) if the reshaped model differs by more than the limit of ``is_close``, or is refused.
    """
    model, reshaped = as_model(model), as_model(reshaped)
    with engines.private_folder() as folder, engines.open(side) as engine:
        own = list(_inputs(reshaped, 1, feeds or [probe(model, reshaped)]))
        before = _first_computed(model, [own, list(_inputs(model, 1, None))])
        if before is None or _disagreement(engine, folder / "original.xml", model, *before):
            return ""
        why = _disagreement(engine, folder / "reshaped.xml", reshaped, own, _computed(reshaped, own))
        if why:
            raise refused(reshaped, f"{engine.name} runs the original as irrun, but {why}", "choose other shapes")
        return engine.name


def _first_computed(
    model: Model, choices: Sequence[Sequence[Sequence[np.ndarray]]]
) -> tuple[Sequence[Sequence[np.ndarray]], list[list[np.ndarray]]] | None:
    """Return the first inputs of ``choices`` on which irrun runs a model, and its outputs; None if there are none."""
    for inputs in choices:
        if all(_takes(model, arrays) for arrays in inputs):
            with suppress(IrrunError):
                return inputs, _computed(model, inputs)
    return None


def _disagreement(
    engine: engines.Engine,
    path: Path,
    model: Model,
    inputs: Sequence[Sequence[np.ndarray]],
    expected: Sequence[Sequence[np.ndarray]],
) -> str:
    """Save a model, and say how an engine departs from the expected outputs; the text is empty if it does not."""
    runs = _saved_runs(engine, path, model, inputs)
    if isinstance(runs, str):
        return f"refuses the result: {runs}"
    pairs = ((a, b) for run, wanted in zip(runs, expected) for a, b in zip(run, wanted))
    return "" if all(is_close(a, b, _ENGINE_LIMIT) for a, b in pairs) else "gives other outputs in the new shapes"


def require_equal_on(
    side: str,
    whole: Model | PathLike,
    edited: Model | PathLike,
    *,
    samples: int = 2,
    feeds: Iterable[Mapping[int, np.ndarray]] | None = None,
    limit: float = 0.0,
) -> str:
    """Run a model and its edit in an engine on the inputs that ``require_equal`` takes. Return the engine's name.

    ``side`` names the engine, such as ``openvino[python=PATH]``. Each output of the original must have the type, the
    shape and, within the limit of ``is_close``, or that of f32 for f64, the values of the output of the edited model at
    its position. If the
    engine does not run the original, such as a release that lacks an operation, irrun does. The name is empty if the
    engine runs neither model. Raises ModelError (IR608) if an output differs or the engine refuses only the edited
    model, and EngineError if the engine does not start.
    """
    whole, edited = as_model(whole), as_model(edited)
    inputs = list(_inputs(whole, samples, feeds))
    with engines.private_folder() as folder, engines.open(side) as engine:
        before, after = (
            _saved_runs(engine, folder / f"{name}.xml", model, inputs)
            for name, model in (("original", whole), ("edited", edited))
        )
        if isinstance(after, str):
            if isinstance(before, str):
                return ""
            message = f"{engine.name} runs the original, but refuses the result: {after}"
            raise refused(edited, message, "name another edit, or leave the verification out (--no-verify)")
        expected = _computed(whole, inputs) if isinstance(before, str) else before
        for one, other in zip(after, expected):
            _require_same(edited, one, other, max(limit, _ENGINE_LIMIT), engine.name)
        return engine.name


_ENGINE_LIMIT: Final = float(np.sqrt(np.finfo(np.float32).eps)) / 8
"""What an engine may round otherwise: as in f32, in which plugins also compute f64."""


def _computed(model: Model, inputs: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """Return what irrun computes in each run, two for each sample if the model has state."""
    executable = compile(model, exact=True)
    computed: list[list[np.ndarray]] = []
    for arrays in inputs:
        executable.restart()
        runs = [executable(list(arrays)) for _ in range(1 + _has_state(model))]
        computed += [[run[i] for i in range(len(model.results))] for run in runs]
    return computed


def _saved_runs(
    engine: engines.Engine, path: Path, model: Model, inputs: Sequence[Sequence[np.ndarray]]
) -> list[list[np.ndarray]] | str:
    """Save a model, and return the outputs of each run in an engine, or a refusal."""
    save_model(model, path, compact=True)
    return _runs(engine, path, model, inputs)


def _runs(
    engine: engines.Engine, path: Path, model: Model, inputs: Sequence[Sequence[np.ndarray]]
) -> list[list[np.ndarray]] | str:
    """Return the outputs of each run of a model in an engine, two for each sample if it has state; or a refusal."""
    loaded = engine.load(path)
    if not isinstance(loaded, engines.Loaded):
        return _reason(loaded)
    runs: list[list[np.ndarray]] = []
    for arrays in inputs:
        engine.reset()
        for _ in range(1 + _has_state(model)):
            outcome = engine.infer(dict(enumerate(arrays)))
            if not isinstance(outcome, engines.Outputs):
                return _reason(outcome)
            runs.append([output.array for output in outcome.outputs])
    return runs


def _reason(failure: engines.Failure) -> str:
    if isinstance(failure, engines.Refusal):
        return " ".join(failure.message.split())
    return failure.cause if isinstance(failure, engines.Crash) else f"no answer within {failure.seconds:g} s"


def _has_state(model: Model) -> bool:
    return any(layer.type.lower() == "assign" for layer in model.layers.values())


def is_close(array: np.ndarray, expected: np.ndarray, limit: float = 0.0) -> bool:
    """Return whether two arrays have one dtype and shape, and values that only rounding makes different.

    Numbers of floating-point types may differ by an eighth of the root of their epsilon (4e-5 in f32, 4e-3 in f16),
    relative to the largest finite number of ``expected``, or by ``limit`` if that is more. Infinities and NaN must be
    at the same places. Elements of other types must be equal.
    """
    if array.dtype != expected.dtype or array.shape != expected.shape:
        return False
    element_type = ElementType.of(expected.dtype)
    if element_type is None or element_type.kind != "float":
        return np.array_equal(array, expected)
    one, other = array.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(one[finite]).all():
        return False
    limit = max(limit, np.sqrt(float(ml_dtypes.finfo(expected.dtype).eps)) / 8)
    return bool((np.abs(one[finite] - other[finite]) <= limit * np.abs(other[finite]).max(initial=0)).all())


def _require_same(
    edited: Model, outputs: Outputs | Sequence[np.ndarray], expected: Sequence[np.ndarray], limit: float | None,
    engine: str = "",
) -> None:  # fmt: skip
    """Raise ModelError (IR608) if an output differs in a bit from the expected one; with a ``limit``, if it is far."""
    for position, array in enumerate(expected):
        other = outputs[position]
        is_same = other.dtype == array.dtype and other.shape == array.shape
        if is_same and np.array_equal(other, array, equal_nan=array.dtype.kind in "fV"):
            continue
        if limit is not None and is_close(other, array, limit):
            continue
        result = edited.results[position]
        name = edited.result_name(result)
        layer = unseeded_behind(edited, result.id)
        if layer is not None:
            message = f'output "{name}" cannot be verified, because {layer.type} "{layer.name}" has no seed: it draws '
            message += "other random numbers in every run"
            help = "give the layer a global_seed or op_seed, or leave the verification out (--no-verify)"
            raise refused(edited, message, help, layer)
        message = f'output "{name}" differs from that of the original' + (f" in {engine}" if engine else "")
        raise refused(edited, message, "report this bug in irrun together with the model", result)

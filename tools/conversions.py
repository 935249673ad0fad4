"""Convert models to other shapes and older OpenVINO, and run the results there: `python -m tools conversions COUNT SEED`.

`python -m tools conversions COUNT SEED [FOLDER]` draws COUNT conversions: cases of the conformance suite and random
models, each to the operation sets of a release or to other input shapes. FOLDER holds an environment for each release,
such as `2024.6.0/bin/python` with that wheel; without it, the OpenVINO of this environment runs the results.

A conversion is refused, or its result loads in that OpenVINO and gives what the original gives there (where the
original does not load, and in new shapes: what irrun computes). `irrun edit --verify-on` with that OpenVINO refuses new
shapes in which it gives something else. Anything else is printed as wrong, and the program exits with 1.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

import irrun
from irrun import engines, surgery
from irrun.conformance import Case, read_suite
from irrun.diagnostics import IrrunError
from irrun.growing import Grower
from irrun.model import Model
from irrun.targets import RELEASES, has_operation, newest_opset

DEFAULT_COUNT: Final = 300
SUITE_SHARE: Final = 0.6
"""The share of conversions that take a case of the suite: most of them have one layer."""


@dataclass(frozen=True)
class Subject:
    """A model to convert, by the name of its case or random graph, with its inputs in order."""

    name: str
    model: Model
    feeds: list[np.ndarray]


@dataclass
class Figures:
    """How often each kind of conversion ended how, and a line for each wrong one."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    reasons: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])


class Wheels:
    """The OpenVINO of each release, started when it is first asked for."""

    def __init__(self, folder: Path | None) -> None:
        self.pythons: dict[str, str] = {}
        for release in RELEASES:
            number = release if release.count(".") == 2 else f"{release}.0"
            python = folder / number / "bin" / "python" if folder is not None else None
            if python is not None and python.exists():
                self.pythons[release] = str(python)

    @property
    def releases(self) -> list[str]:
        return list(self.pythons) or [RELEASES[-1]]

    def side(self, release: str) -> str:
        python = f",python={self.pythons[release]}" if release in self.pythons else ""
        return f"openvino[precision=f32{python}]"


def subjects(rng: random.Random, cases: Sequence[Case], newer: Sequence[Case], grower: Grower, folder: Path) -> Subject:
    """Return a case of the suite, one of ``newer`` as often as any other, or a random model."""
    if rng.random() < SUITE_SHARE:
        case = rng.choice(newer if newer and rng.random() < 0.5 else cases)
        model = irrun.read_model(case.write(folder))
        return Subject(case.name, model, case.steps[0].feeds())
    number = rng.randrange(1 << 30)
    graph = grower.grow(number)
    return Subject(f"random {number}", graph.model(), graph.feeds())


def is_newer(case: Case, release: str) -> bool:
    """Return whether a case has an operation that a release lacks."""
    layers = re.findall(r'type="(\w+)" version="opset(\d+)"', case.xml)
    return any(not has_operation(release, type, int(opset)) for type, opset in layers)


def to_release(subject: Subject, release: str) -> Model:
    """Return the model in operations that a release has. Raises IrrunError if it is refused."""

    def is_lacking(type: str, opset: int) -> bool:
        return not has_operation(release, type, opset)

    result = surgery.downgrade(subject.model, newest_opset(release), is_lacking)
    report = irrun.check(result, targets=[f"openvino=={release}"])
    if errors := [found for found in report.errors if found.code.startswith("IR9")]:
        raise irrun.ModelError(errors)
    return result


def other_shapes(subject: Subject, rng: random.Random) -> tuple[Model, list[np.ndarray]]:
    """Return the model with another dim of an input, and inputs of these shapes. Raises IrrunError if it is refused."""
    model = subject.model
    places = [(i, axis) for i, tensor in enumerate(model.inputs) for axis, dim in enumerate(tensor.dims) if dim.value]
    if not places:
        raise IrrunError(irrun.diagnostics.diagnostic("IR608", "no input has a known dim", file=subject.name))
    input, axis = rng.choice(places)
    old = {i: tensor.dims for i, tensor in enumerate(model.inputs)}
    size = old[input][axis].value or 1
    text = rng.choice([str(size + 1), str(2 * size), "?"])
    alike = (
        [i for i, dims in old.items() if len(dims) > axis and dims[axis].value == size] if rng.random() < 0.5 else []
    )
    shapes: Mapping[int, str] = {
        i: ",".join(text if at == axis else str(dim) for at, dim in enumerate(old[i])) for i in {input, *alike}
    }
    thawed = surgery.thaw(model, shapes)
    reshaped = surgery.reshape(thawed.model, shapes)
    if errors := irrun.check(reshaped).errors:
        raise irrun.ModelError(errors)
    surgery.require_reshaped(model, reshaped)
    probe = surgery.probe(model, reshaped)
    return reshaped, [probe[i] for i in range(len(model.parameters))]


def outputs(engine: engines.Engine, model: Model, feeds: Sequence[np.ndarray], path: Path) -> list[np.ndarray] | str:
    """Return the outputs of a model in an engine, or why it gives none."""
    irrun.save_model(model, path, compact=True)
    loaded = engine.load(path)
    if not isinstance(loaded, engines.Loaded):
        return str(loaded)[:300]
    outcome = engine.infer(dict(enumerate(feeds)))
    return [o.array for o in outcome.outputs] if isinstance(outcome, engines.Outputs) else str(outcome)[:300]


def verdict(engine: engines.Engine, subject: Subject, result: Model, feeds: list[np.ndarray], folder: Path) -> str:
    """Return ``equal``, why there is nothing to compare, or what is wrong, which begins with ``wrong``.

    ``feeds`` are inputs in the shapes of the result. If these are not those of the original, irrun says what the result
    gives there, provided that it agrees with the engine about the original.
    """
    is_reshaped = feeds is not subject.feeds
    before = outputs(engine, subject.model, subject.feeds, folder / "a.xml")
    try:
        own = computed(subject.model, subject.feeds)
        expected = computed(result, feeds) if is_reshaped else own
    except IrrunError:
        return "irrun does not run it"
    if not isinstance(before, str):
        if is_reshaped and not alike(before, own):
            return "irrun and OpenVINO differ about the original"
        expected = expected if is_reshaped else before
    elif is_reshaped:
        return "OpenVINO refuses the original"
    after = outputs(engine, result, feeds, folder / "b.xml")
    if isinstance(after, str) and is_reshaped:
        return "refused by the proof in OpenVINO"
    if isinstance(after, str):
        if isinstance(before, str) and versions(result) == versions(subject.model):
            return "unchanged, and refused by OpenVINO"
        return f"wrong: OpenVINO refuses the result: {after}"
    if alike(after, expected):
        return "equal"
    pairs = ((subject.model, subject.feeds, before, "a.xml"), (result, feeds, after, "b.xml"))
    for model, given, first, name in pairs:
        again = outputs(engine, model, given, folder / name)
        if isinstance(first, str) != isinstance(again, str) or (
            not isinstance(first, str) and not isinstance(again, str) and not alike(again, first)
        ):
            return "OpenVINO gives other outputs each time"
    if is_reshaped:
        return "refused by the proof in OpenVINO"
    return "irrun and OpenVINO differ" if isinstance(before, str) else "wrong: other outputs"


def versions(model: Model) -> Counter[tuple[str, str | None]]:
    """Return how many layers of each type and operation set a model has."""
    own = Counter((layer.type, layer.version) for layer in model.layers.values())
    return sum((versions(body) for layer in model.layers.values() for body in layer.bodies.values()), own)


def computed(model: Model, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return what irrun computes. Raises IrrunError if it refuses the model or its inputs."""
    run = irrun.compile(model, exact=True)(list(feeds))
    return [run[i] for i in range(len(model.results))]


def alike(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    return all(surgery.is_close(one, other) for one, other in zip(some, others, strict=True))


def convert(subject: Subject, kind: str, release: str, rng: random.Random) -> tuple[Model, list[np.ndarray]]:
    """Return a conversion and inputs for it. Raises IrrunError if it is refused."""
    if kind == "shape":
        return other_shapes(subject, rng)
    result = to_release(subject, release)
    surgery.require_equal(surgery.original(subject.model), result, feeds=[dict(enumerate(subject.feeds))], limit=0.0)
    return result, subject.feeds


def main(count: int, seed: int, folder: Path | None) -> Figures:
    """Make and judge the conversions, and print the figures."""
    rng, figures, wheels = random.Random(seed), Figures(), Wheels(folder)
    cases = [case for case in read_suite().cases if case.verdict == "values" and case.steps]
    grower = Grower(seed, for_engine=True)
    order = sorted(range(count), key=lambda _: rng.random())
    releases = [wheels.releases[i * len(wheels.releases) // count] for i in range(count)]
    with tempfile.TemporaryDirectory() as name:
        for release in wheels.releases:
            own = [i for i in order if releases[i] == release]
            newer = [case for case in cases if is_newer(case, release)]
            with engines.open(wheels.side(release)) as engine:
                for number in own:
                    kind = ("target", "shape")[number % 2]
                    subject = subjects(rng, cases, newer if kind == "target" else (), grower, Path(name))
                    label = f"{kind} {release} {subject.name}"
                    try:
                        result, feeds = convert(subject, kind, release, rng)
                        end = verdict(engine, subject, result, feeds, Path(name))
                        if end.startswith("wrong"):
                            figures.wrong.append(f"{label}: {end}")
                        changed = "other layers" if versions(result) != versions(subject.model) else "the same layers"
                        figures.reasons[f"{kind} equal, {changed}"] += end == "equal"
                    except IrrunError as error:
                        end = "refused"
                        figures.reasons[f"{kind} refused, {error.diagnostics[0].code}"] += 1
                    figures.counts[kind, end.partition(":")[0]] += 1
    for (kind, end), number in sorted(figures.counts.items()):
        print(f"{kind:<8}{end:<48}{number:>6}")
    print(", ".join(f"{reason}: {number}" for reason, number in sorted(figures.reasons.items())))
    for line in figures.wrong:
        print(line)
    return figures


if __name__ == "__main__":
    arguments = sys.argv[1:]
    count = int(arguments[0]) if arguments else DEFAULT_COUNT
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 1_000_000
    print(f"seed {seed}")
    sys.exit(bool(main(count, seed, Path(arguments[2]) if len(arguments) > 2 else None).wrong))

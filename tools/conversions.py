"""Convert models to other shapes and older OpenVINO, and run the results there: `python -m tools conversions COUNT SEED`.

`python -m tools conversions COUNT SEED [FOLDER]` makes COUNT conversions. Half of them give an input another shape. The
others take each decomposition of an operation as often as any other: to the operation sets of a release that lacks the
operation, or, if every release has it, to an older operation set. The models are cases of the conformance suite and
random models. FOLDER holds an environment for each release, such as `2024.6.0/bin/python` with that wheel; without it,
the OpenVINO of this environment runs the results.

A conversion is refused, or its result loads in that OpenVINO and gives what the original gives there (where the
original does not load, and in new shapes: what irrun computes). `irrun edit --verify-on` with that OpenVINO refuses a
result that it refuses, and new shapes in which it gives something else. Anything else is printed as wrong, and the
program exits with 1. A model with which nothing can be compared is drawn again, and counted as well.
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
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np

import irrun
from irrun import engines, surgery
from irrun.conformance import Case, read_suite
from irrun.diagnostics import IrrunError
from irrun.growing import Grower
from irrun.inference.bind import bind_all
from irrun.model import Model
from irrun.surgery import DECOMPOSITIONS
from irrun.targets import RELEASES, has_operation, newest_opset

DEFAULT_COUNT: Final = 300
SUITE_SHARE: Final = 0.6
"""The share of conversions that take a case of the suite: most of them have one layer."""
DRAWS: Final = 12
"""The most models that are drawn for a conversion until one can be compared."""
GRAPHS: Final = 40
"""The most random models that are drawn until one holds an operation."""
SHAPES: Final = 12
"""The most shapes that are drawn for a model until its layers accept them."""


F32_LIMIT: Final = float(np.sqrt(np.finfo(np.float32).eps)) / 8
"""The limit of ``surgery.is_close`` for f32."""


@dataclass(frozen=True)
class Subject:
    """A model to convert, by the name of its case or random graph, with its inputs in order."""

    name: str
    model: Model
    feeds: list[np.ndarray]


@dataclass(frozen=True)
class Goal:
    """What a conversion is for: other shapes in a release, or a release or operation set without an operation."""

    kind: str
    release: str
    operation: str = ""
    """The version of the operation that becomes older ones, such as ``Pad-12``."""

    @property
    def opset(self) -> int:
        """The newest operation set of the result."""
        newest, since = newest_opset(self.release), int(self.operation.rpartition("-")[2] or 1)
        return newest if self.kind == "target" else min(newest, since - 1)

    def lacks(self, type: str, opset: int) -> bool:
        return not has_operation(self.release, type, opset)


@dataclass
class Figures:
    """How often each kind of conversion ended how, and why models were refused or drawn again."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    again: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    tried: Counter[str] = field(default_factory=Counter[str])
    """How often each operation was replaced with an equal result."""
    lines: list[str] = field(default_factory=list[str])
    """A line for each conversion that was neither equal nor refused."""


class Again(Exception):  # noqa: N818  (it asks for another model, and is no error)
    """There is nothing to compare with: another model is drawn."""


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


def goals(count: int, wheels: Wheels, rng: random.Random) -> list[Goal]:
    """Return what each conversion is for, those of one release next to each other."""
    operations = list(DECOMPOSITIONS)
    found: list[Goal] = []
    for number in range(count):
        if number % 2:
            found.append(Goal("shape", rng.choice(wheels.releases)))
            continue
        operation = operations[number // 2 % len(operations)]
        type, _, opset = operation.rpartition("-")
        lacking = [release for release in wheels.releases if not has_operation(release, type, int(opset))]
        kind = "target" if lacking else "opset"
        found.append(Goal(kind, rng.choice(lacking or wheels.releases), operation))
    return sorted(found, key=lambda goal: RELEASES.index(goal.release))


def draw(goal: Goal, cases: Mapping[str, Sequence[Case]], grower: Grower, rng: random.Random, folder: Path) -> Subject:
    """Return a case of the suite or a random model, with the operation of the goal if it names one."""
    if rng.random() >= SUITE_SHARE:
        for _ in range(GRAPHS if goal.operation else 1):
            number = rng.randrange(1 << 30)
            graph = grower.grow(number)
            model = graph.model()
            if not goal.operation or goal.operation in {f"{op.type}-{op.since}" for _, op, _ in bind_all(model) if op}:
                return Subject(f"random {number}", model, graph.feeds())
    case = rng.choice(cases[goal.operation or rng.choice(list(cases))])
    return Subject(case.name, irrun.read_model(case.write(folder)), case.steps[0].feeds())


def to_older(subject: Subject, goal: Goal) -> Model:
    """Return the model in operations that a release has. Raises IrrunError if it is refused, and Again if the target
    refuses a layer that no decomposition wrote.
    """
    result = surgery.downgrade(subject.model, goal.opset, goal.lacks)
    report = irrun.check(result, targets=[f"openvino=={goal.release}"])
    if errors := [found for found in report.errors if found.code.startswith("IR9")]:
        layers = {layer.name: layer.type for layer in subject.model.layers.values()}
        if any(found.layer and f'{layers.get(found.layer)} "{found.layer}"' in found.message for found in errors):
            raise Again("the target refuses a layer that stays")
        raise irrun.ModelError(errors)
    surgery.require_equal(surgery.original(subject.model), result, feeds=[dict(enumerate(subject.feeds))], limit=0.0)
    return result


def other_shapes(subject: Subject, rng: random.Random) -> tuple[Model, list[np.ndarray]]:
    """Return the model with another dim of an input, and inputs of these shapes. Raises IrrunError if it is refused, and
    Again if no input has a known dim, or if no shape was drawn that all layers accept.
    """
    model = subject.model
    old = {i: tensor.dims for i, tensor in enumerate(model.inputs)}
    places = [(i, axis) for i, dims in old.items() for axis, dim in enumerate(dims) if dim.value]
    if not places:
        raise Again("no input has a known dim")
    for _ in range(SHAPES):
        input, axis = rng.choice(places)
        size, back = old[input][axis].value or 1, axis - len(old[input])
        text = rng.choice([str(size + 1), str(2 * size), "?"])
        front = [place for place in places if place[1] == axis]
        end = [place for place in places if place[1] - len(old[place[0]]) == back]
        chosen = dict(rng.choice([[(input, axis)], front, end]))
        shapes: Mapping[int, str] = {
            i: ",".join(text if at == chosen[i] else str(dim) for at, dim in enumerate(old[i])) for i in chosen
        }
        reshaped = surgery.reshape(surgery.thaw(model, shapes).model, shapes)
        if irrun.check(reshaped).errors:
            continue
        fresh = surgery.probe(model, reshaped)
        feeds = {i: fresh[i] if i in chosen else feed for i, feed in enumerate(subject.feeds)}
        surgery.require_reshaped(model, reshaped, feeds=[feeds])
        return reshaped, list(feeds.values())
    raise Again("no shape that all layers accept")


def outputs(engine: engines.Engine, model: Model, feeds: Sequence[np.ndarray], path: Path) -> list[np.ndarray] | str:
    """Return the outputs of a model in an engine, or why it gives none."""
    irrun.save_model(model, path, compact=True)
    loaded = engine.load(path)
    if not isinstance(loaded, engines.Loaded):
        return str(loaded)[:300]
    outcome = engine.infer(dict(enumerate(feeds)))
    return [o.array for o in outcome.outputs] if isinstance(outcome, engines.Outputs) else str(outcome)[:300]


def verdict(
    engine: engines.Engine, side: str, subject: Subject, result: Model, feeds: list[np.ndarray], folder: Path
) -> str:
    """Return ``equal``, why the proof refuses the result, or what is wrong, which begins with ``wrong``. Raises Again.

    ``feeds`` are inputs in the shapes of the result. If these are not those of the original, irrun says what the result
    gives there, provided that it agrees with the engine about the original. ``side`` starts the engine anew: a fault
    that an earlier model has caused does not count.
    """
    is_reshaped = feeds is not subject.feeds
    try:
        own = computed(subject.model, subject.feeds)
        expected = computed(result, feeds) if is_reshaped else own
    except IrrunError:
        raise Again("irrun does not run it") from None
    before = outputs(engine, subject.model, subject.feeds, folder / "a.xml")
    if is_reshaped and isinstance(before, str):
        raise Again("OpenVINO refuses the original")
    if is_reshaped and not alike(before, own):
        raise Again("irrun and OpenVINO differ about the original")
    expected = expected if is_reshaped or isinstance(before, str) else before
    if alike(outputs(engine, result, feeds, folder / "b.xml"), expected):
        return "equal"
    ends = []
    for model, given, name in ((subject.model, subject.feeds, "a.xml"), (result, feeds, "b.xml")):
        with engines.open(side) as fresh:
            ends.append(outputs(fresh, model, given, folder / name))
    if isinstance(before, str) != isinstance(ends[0], str) or not (isinstance(before, str) or alike(ends[0], before)):
        raise Again("OpenVINO gives other outputs each time")
    if alike(ends[1], expected) or (not is_reshaped and alike(ends[1], own)):  # OpenVINO may err about the original
        return "equal"
    if is_reshaped or isinstance(before, str):
        return f"refused by the proof in OpenVINO: {ends[1] if isinstance(ends[1], str) else 'other outputs'}"
    return f"wrong: OpenVINO refuses the result: {ends[1]}" if isinstance(ends[1], str) else "wrong: other outputs"


def computed(model: Model, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return what irrun computes. Raises IrrunError if it refuses the model or its inputs."""
    run = irrun.compile(model, exact=True)(list(feeds))
    return [run[i] for i in range(len(model.results))]


def alike(some: Sequence[np.ndarray] | str, others: Sequence[np.ndarray] | str) -> bool:
    """Return whether all outputs are equal within the rounding of f32, in which OpenVINO also computes f64. Refusals are
    like nothing.
    """
    if isinstance(some, str) or isinstance(others, str):
        return False
    return all(surgery.is_close(one, other, F32_LIMIT) for one, other in zip(some, others, strict=True))


def convert(
    goal: Goal, subject: Subject, engine: engines.Engine, side: str, rng: random.Random, folder: Path
) -> tuple[str, str]:
    """Return how a conversion ends, and why it was refused. Raises Again if there is nothing to compare."""
    try:
        if goal.kind == "shape":
            result, feeds = other_shapes(subject, rng)
        else:
            result, feeds = to_older(subject, goal), subject.feeds
    except IrrunError as error:
        found = error.diagnostics[0]
        why = f"{found.code} " + re.sub(r' ?"[^"]*"', "", found.message)
        return ("wrong" if "differs from that of the original" in why else "refused"), why
    return verdict(engine, side, subject, result, feeds, folder), ""


def judge(
    goal: Goal, engine: engines.Engine, cases: Mapping[str, Sequence[Case]], grower: Grower, wheels: Wheels,
    rng: random.Random, folder: Path, figures: Figures,
) -> None:  # fmt: skip
    """Make a conversion, and add to the figures how it ended."""
    end, why, name = "nothing to compare", "", ""
    for _ in range(DRAWS):
        subject = draw(goal, cases, grower, rng, folder)
        name = subject.name
        try:
            end, why = convert(goal, subject, engine, wheels.side(goal.release), rng, folder)
            break
        except Again as again:
            figures.again[f"{goal.kind}: {again}"] += 1
    figures.counts[goal.kind, end.partition(":")[0]] += 1
    figures.tried[goal.operation] += end == "equal"
    if why:
        figures.reasons[f"{goal.kind} {why}"] += 1
    if end not in ("equal", "refused"):
        figures.lines.append(f"{goal.kind} {goal.release} {goal.operation} {name}: {end} {why}")


def main(count: int, seed: int, folder: Path | None) -> bool:
    """Make and judge the conversions, and print the figures. Return whether one is wrong."""
    rng, figures, wheels = random.Random(seed), Figures(), Wheels(folder)
    cases: dict[str, list[Case]] = {}
    for case in read_suite().cases:
        if case.verdict == "values" and case.steps:
            cases.setdefault(case.name.partition("/")[0], []).append(case)
    grower = Grower(seed, for_engine=True)
    with tempfile.TemporaryDirectory() as name:
        for release, group in groupby(goals(count, wheels, rng), key=lambda goal: goal.release):
            with engines.open(wheels.side(release)) as engine:
                for goal in group:
                    judge(goal, engine, cases, grower, wheels, rng, Path(name), figures)
    report(figures)
    return any(end == "wrong" for _, end in figures.counts)


def report(figures: Figures) -> None:
    """Print how conversions ended, why some were refused, how often models were drawn again, and what is wrong."""
    for (kind, end), number in sorted(figures.counts.items()):
        print(f"{kind:<8}{end:<48}{number:>6}")
    print("equal after", ", ".join(f"{name}: {figures.tried[name]}" for name in DECOMPOSITIONS))
    for title, counter in (("refused", figures.reasons), ("drawn again", figures.again)):
        for why, number in counter.most_common():
            print(f"{title:<12}{number:>4}  {why}")
    print(*figures.lines, sep="\n")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    count = int(arguments[0]) if arguments else DEFAULT_COUNT
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 1_000_000
    print(f"seed {seed}")
    sys.exit(main(count, seed, Path(arguments[2]) if len(arguments) > 2 else None))

"""The healthy twin of a part: the same part of the reference, which tells a fault from what the cut has done.

A part that is cut out may fail because it was cut: a shape that was a constant is an input now, or a variable is split.
Then its twin fails as well, and the part is no evidence of the fault of the whole model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from irrun.debug.bisection.judging import Question, Wrong, is_alike, judge
from irrun.debug.bisection.regions import Output, Part, Region
from irrun.debug.subjects import Subject
from irrun.engines import KINDS, Engine, Limits, Side
from irrun.engines import open as open_engine
from irrun.inference.settled import settled
from irrun.ir.extract import constant_layers, cut
from irrun.ir.write import save_model
from irrun.model import Model

__all__ = ["Twins"]


class Twins:
    """Runs the twins of parts of ``candidate``.

    If the reference is the same file, or fails as the candidate does when the candidate's engine runs it, the engine is
    to blame: then the engine of the reference runs the part itself. Otherwise the file is to blame: then the engine of
    the candidate runs the part of the reference. ``engine`` is that of the candidate.
    """

    def __init__(
        self, reference: Subject, candidate: Side, engine: Engine, folder: Path, limits: Limits | None, stack: ExitStack
    ) -> None:
        self.reference, self.candidate, self.engine = reference, candidate, engine
        self.folder, self.limits, self.stack = folder, limits, stack
        self._whole: tuple[Question, Wrong] | None = None

    def begin(self, question: Question, wrong: Wrong) -> None:
        """Begin with the question about the model of the reference, and what is wrong with that of the candidate."""
        self._whole = question, wrong

    def is_healthy(self, region: Region, part: Part, question: Question) -> bool:
        """Return whether the twin of a part works, or cannot be made, so that the fault of the part is its own."""
        if self._blames_engine:
            side = self.reference.side
            is_same = _engine_of(side) == _engine_of(self.candidate)
            return is_same or not KINDS[side.kind].is_bisected or self._runs(self._other, question)
        twin = self._twin(region, part, question)
        if twin is None:
            return True
        files = [Path(path).with_suffix(ending) for path in (question.path, twin.path) for ending in (".xml", ".bin")]
        first, second = (tuple(file.read_bytes() for file in pair) for pair in (files[:2], files[2:]))
        return first != second and self._runs(self.engine, twin)

    def _runs(self, engine: Engine, twin: Question) -> bool:
        """Return whether an engine runs a twin, and rightly, unless the whole model already fails to run."""
        wrong = judge(engine, twin)
        is_failure = self._whole is not None and self._whole[1].verdict != "differ"
        return wrong is None or (is_failure and wrong.verdict == "differ")

    @cached_property
    def _blames_engine(self) -> bool:
        """Whether the reference has no other file than the candidate, or its file fails in the candidate's engine."""
        model = self.reference.model
        if model is None or self._is_same_file:
            return True
        if _engine_of(self.reference.side) == _engine_of(self.candidate) or self._whole is None:
            return False
        question, wrong = self._whole
        path = self.folder / "reference.xml"
        save_model(model, path)
        return is_alike(wrong, judge(self.engine, replace(question, path=str(path))))

    @property
    def _is_same_file(self) -> bool:
        first, second = self.reference.side, self.candidate
        if first.path is None or second.path is None:
            return False
        return first.path.resolve() == second.path.resolve() and first.weights == second.weights

    @cached_property
    def _other(self) -> Engine:
        """An engine as that of the reference, whose own keeps its model."""
        return self.stack.enter_context(open_engine(self.reference.side.without_model(), self.limits))

    @cached_property
    def _layers(self) -> Mapping[str, tuple[Model, int]]:
        """The layers of the reference, also those of bodies, by the names in places: the model or body, and the id."""
        return {} if self.reference.model is None else dict(_named(self.reference.model, ""))

    def _twin(self, region: Region, part: Part, question: Question) -> Question | None:
        """Return the question about the twin of a part, or None if the reference has no such part."""
        entering, leaving = (self._mapped(region, outputs) for outputs in (part.inputs, part.outputs))
        if entering is None or leaving is None or not leaving[1]:
            return None
        model = leaving[0]
        if entering[1] and entering[0] is not model:
            return None
        inside = _between(model, entering[1], leaving[1])
        if inside is None:
            return None
        twin = cut(model, inside, leaving[1], settled(model))
        by_name = {model.output_name(*output): at for at, output in enumerate(entering[1])}
        names = [parameter.name for parameter in twin.parameters]
        if len(set(leaving[1])) != len(leaving[1]) or not by_name.keys() >= set(names):
            return None
        path = self.folder / "twin.xml"
        save_model(twin, path, compact=True)
        return replace(question, path=str(path), inputs=names, feeds=[question.feeds[by_name[name]] for name in names])

    def _mapped(self, region: Region, outputs: tuple[Output, ...]) -> tuple[Model, list[Output]] | None:
        """Return the outputs of the reference's layers that have pairs, and the model, or body, of these layers."""
        found: list[tuple[Model, Output]] = []
        for output in outputs:
            place = region.known[output]
            if place is None:
                name, port = region.model.unique_names[output[0]], 0
            else:
                name, port = place.layer, place.port
            if name not in self._layers:
                return None
            model, layer = self._layers[name]
            found.append((model, (layer, port)))
        if any(model is not found[0][0] for model, _ in found):
            return None
        return (found[0][0] if found else region.model), [output for _, output in found]


def _engine_of(side: Side) -> tuple[str, Mapping[str, str]]:
    return side.kind, side.without_model().options


def _named(model: Model, prefix: str) -> Iterator[tuple[str, tuple[Model, int]]]:
    for id, layer in model.layers.items():
        name = prefix + model.unique_names[id]
        yield name, (model, id)
        for body in layer.bodies.values():
            yield from _named(body, f"{name}/")


def _between(model: Model, entering: list[Output], leaving: list[Output]) -> set[int] | None:
    """Return the layers that compute some outputs from others, constants aside, or None if an input is missing.

    The layers that compute what is assigned to a variable belong to its ReadValue.
    """
    constants, inside = constant_layers(model), set[int]()
    assigns: dict[str | None, list[int]] = {}
    for id, layer in model.layers.items():
        if layer.type == "Assign":
            assigns.setdefault(layer.attributes.get("variable_id"), []).append(id)
    waiting = [id for id, _ in leaving]
    while waiting:
        id = waiting.pop()
        if id in inside:
            continue
        layer = model.layers[id]
        if layer.type.lower() == "parameter":
            return None
        inside.add(id)
        if layer.type == "ReadValue":
            waiting += assigns.get(layer.attributes.get("variable_id"), [])
        feeds = (feed for feed in model.feeds[id] if feed is not None and feed not in entering)
        waiting += [feed[0] for feed in feeds if feed[0] not in constants]
    return inside

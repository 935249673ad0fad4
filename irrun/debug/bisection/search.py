"""Find the smallest part of a model that a candidate computes wrongly, by running parts of it on true inputs.

Where budgets can judge, the layers are watched first: a layer whose own error its precision does not explain is the
part. A fault that vanishes when layers are watched is searched with outputs alone: each question is whether a part, cut
out of its model and run on the values that the reference has at the cut, gives the values that the reference has at its
end. Two binary searches over the topological order answer where the faulty part begins and where it ends. No output is
added inside a part, so that a fault in layers which the candidate fuses stays there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from irrun.api import read_model
from irrun.debug.bisection.judging import Question, Wrong, is_alike, judge
from irrun.debug.bisection.observed import by_budgets, is_explained, own_wrong, place_of
from irrun.debug.bisection.regions import Output, Part, Region
from irrun.debug.bisection.truth import Truth, interface, load_reference
from irrun.debug.bisection.twins import Twins
from irrun.debug.comparison import compare
from irrun.debug.difference.content import Content, differing_content, differing_layers
from irrun.debug.difference.counterpart import differences
from irrun.debug.inputs import Feeding, Inputs
from irrun.debug.metrics import measure
from irrun.debug.pairing import InputPair, Pairing, Renames, by_name_or_structure, pair_outputs, renamed
from irrun.debug.results import Comparison, Verdict, input_records, nothing_to_compare
from irrun.debug.results import Layer as Compared
from irrun.debug.subjects import Subject
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import KINDS, Engine, Limits, Place, Side, parse_sides
from irrun.engines import open as open_engine
from irrun.ir.write import save_model
from irrun.model import Layer, Model

__all__ = ["Bisection", "Culprit", "bisect"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A layer of the smallest part, with its place in the file of the candidate. Constants are not listed.

    A layer in a body is named with the path that leads there, such as ``loop/total``, as in a comparison.
    """

    name: str
    type: str
    file: str
    line: int


@dataclass(frozen=True)
class Bisection:
    """The result of ``bisect``.

    ``layers`` are those of the smallest part that shows the same fault as the whole model; there are none if the sides
    agree. ``part`` is that part, ``inputs`` its true inputs and ``expected`` its true outputs, both by name for each
    run. ``runs`` counts the parts that the candidate was asked to run, without their twins.
    """

    verdict: Verdict
    wrong: Wrong | None
    layers: tuple[Culprit, ...]
    runs: int
    part: Model | None = None
    inputs: tuple[Mapping[str, np.ndarray], ...] = ()
    expected: tuple[Mapping[str, np.ndarray], ...] = ()
    candidate: str = ""
    """The name of the candidate's engine, with its version."""
    pairs: tuple[InputPair, ...] = ()
    """The inputs that get the same values."""
    by_budgets: bool = False
    """Whether budgets decided: what the precision in effect explains. Otherwise, tolerances did."""

    content: Content | None = None
    """How the files of both sides differ, if the sides agree nevertheless."""
    differences: tuple[str, ...] = ()
    """How the layers of the part differ between the files of both sides: then the file may be wrong, not the engine."""

    @property
    def blames_file(self) -> bool:
        """Whether outputs differ where the files differ, too, so that nothing is known of a fault of the engine."""
        return self.verdict == "differ" and bool(self.differences)

    def record(self) -> dict[str, Any]:
        """Return the bisection as a dict for JSON, with the pairs of inputs."""
        layers = [{"name": c.name, "type": c.type, "line": c.line, "file": c.file} for c in self.layers]
        message = "" if self.wrong is None else self.wrong.message
        return {
            "verdict": self.verdict,
            "layers": layers,
            "message": message,
            "runs": self.runs,
            "candidate": self.candidate,
            "judged_by": "budgets" if self.by_budgets else "tolerances",
            "inputs": input_records(self.pairs),
            "content": None if self.content is None else asdict(self.content),
            "differences": list(self.differences),
        }


def bisect(
    reference: str | Side,
    candidate: str | Side,
    inputs: Inputs = None,
    *,
    samples: int = 1,
    seed: int = 0,
    tolerances: Tolerances | None = None,
    limits: Limits | None = None,
    pairing: Pairing = by_name_or_structure,
    renames: Renames | None = None,
    on_run: Callable[[int, int], None] | None = None,
) -> Bisection:
    """Find the smallest part of the candidate's model that it computes otherwise than the reference.

    The sides, inputs, tolerances, limits and ``renames`` are those of ``compare``. The candidate needs an IR: its kind
    is irrun, exact or openvino. The reference shows inner values, which ``pairing`` pairs with those of the candidate.
    The samples are run in order, and the state of a model is kept from one to the next. ``on_run(runs, layers)`` is
    called before each run of the candidate with the number of layers in the part.

    Without tolerances, and if irrun runs the reference's model, budgets decide, as in ``compare``: outputs that are no
    more wrong than the precision in effect explains agree, and the first layer whose own error is larger is the part.

    Raises EngineError: IR701 for a side that cannot be bisected, IR702 for an engine that does not start, IR704 if the
    reference fails or shows no values, IR707 if inputs cannot be paired. Raises the errors of ``irrun.read_model`` for
    the candidate's model, and FeedError for inputs that do not fit.
    """
    of_reference, of_candidate = parse_sides(reference, candidate)
    if not KINDS[of_candidate.kind].is_bisected or of_candidate.path is None:
        names = ", ".join(kind.name for kind in KINDS.values() if kind.is_bisected)
        message = f"cannot bisect {of_candidate}: parts can be cut from the models of {names} only"
        help = f"pass an IR file that one of {names} runs"
        raise EngineError(diagnostic("IR701", message, help=help))
    model = read_model(of_candidate.path, of_candidate.weights)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="irrun-")))
        engine = stack.enter_context(open_engine(of_candidate.without_model(), limits))
        subject = load_reference(of_reference, stack.enter_context(open_engine(of_reference, limits)))
        own = Subject(of_candidate, engine, interface(model), model)
        feeding = Feeding.of(subject, own, renames or {})
        arrays = list(feeding.samples(inputs, samples, seed))
        pairs = renamed(pairing(subject, own), subject, own, renames or {})
        truth = Truth(feeding, model, arrays, {other: place for place, other in pairs.items()}, renames or {})
        search = _Search(truth, engine, tolerances or Tolerances(), folder, on_run)
        search.twins = Twins(subject, of_candidate, engine, folder, limits, stack)

        def watched() -> Comparison:
            return compare(
                of_reference, of_candidate, arrays, keep_state=True, limits=limits, pairing=pairing, renames=renames
            )

        by_tolerances = (tolerances or Tolerances()) != Tolerances() or subject.model is None
        found = replace(search.bisect(model, None if by_tolerances else watched), pairs=feeding.pairs)
        if found.verdict == "agree":
            return replace(found, content=differing_content(differing_layers((subject.model, model))))
        return replace(found, differences=tuple(_differences(subject, own, pairs, found.layers)))


class _Search:
    """A search for the smallest wrong part."""

    def __init__(
        self,
        truth: Truth,
        engine: Engine,
        tolerances: Tolerances,
        folder: Path,
        on_run: Callable[[int, int], None] | None,
    ) -> None:
        self.truth, self.engine, self.tolerances, self.folder = truth, engine, tolerances, folder
        self.on_run = on_run or (lambda runs, layers: None)
        self.runs = 0
        self.twins: Twins | None = None
        self.is_strict = False
        """Whether each part that fails has a healthy twin. If not, the last one alone has."""

    def bisect(self, model: Model, watch: Callable[[], Comparison] | None) -> Bisection:
        """Return the smallest wrong part of a model. ``watch`` compares all its layers; without it, outputs decide."""
        wrong, budgets = self._whole(model), False
        if watch is not None and (wrong is None or wrong.verdict == "differ"):
            watched = watch()
            budgets = by_budgets(watched)
            if budgets and watched.first is not None:
                self._require_right_inputs()
                if (found := self._named(model, watched.first.layer)) is not None:
                    return found
            elif budgets and watched.agrees and wrong is not None and is_explained(watched, wrong):
                wrong = None
        if wrong is None:
            return Bisection("agree", None, (), self.runs, candidate=self.engine.name, by_budgets=budgets)
        self._require_right_inputs()
        results = [model.results[at].id for at in wrong.outputs] or [result.id for result in model.results]
        region = Region.of(model, self._known(model, ""), results)
        return self._narrowed(region, "", wrong)

    def _named(self, model: Model, layer: Compared) -> Bisection | None:
        """Return the part of a layer whose own error is not explained, or None if the candidate has no such layer."""
        place = place_of(model, layer.candidate)
        if place is None:
            return None
        owner, id, prefix = place
        region = Region.of(owner, self._known(owner, prefix), [result.id for result in owner.results]).only([id])
        if not region.layers:
            return None
        answer, wrong = self._ask(region, 0, None), own_wrong(layer)
        shown = answer if answer is not None and answer.wrong is not None else None
        return replace(self._result(region, prefix, shown, wrong), by_budgets=True)

    def _require_right_inputs(self) -> None:
        """Raise EngineError (IR707) if inputs that were paired by position feed other layers than in the reference."""
        feeding = self.truth.feeding
        doubtful = feeding.doubtful({place: other for other, place in self.truth.places.items()})
        if doubtful and not feeding.is_replayed:
            texts = ", ".join(f'"{place}" feeds what "{other}" feeds' for place, other in doubtful.items())
            message = f"the inputs have other names, and by position they do not fit: {texts}"
            options = " ".join(f"--map {place}={other}" for place, other in doubtful.items())
            raise EngineError(diagnostic("IR707", message, help=f"pass {options}"))

    def _whole(self, model: Model) -> Wrong | None:
        """Return what is wrong with the model itself, or None."""
        outputs = self.truth.outputs()
        expected = [outputs.get(position, []) for position in range(len(model.results))]
        feeds = [self.truth.of_input(parameter) for parameter in model.parameters]
        names = [model.input_names(parameter)[0] for parameter in model.parameters]
        outputs_named = [model.result_name(result) for result in model.results]
        of_output = self.tolerances.of_output
        question = Question(model.source.path, names, feeds, outputs_named, expected, of_output)
        wrong = self._judge(question, len(model.layers))
        if wrong is not None and self.twins is not None:
            self.twins.begin(self._of_reference(expected), wrong)
        if wrong is None and all(measure(array, array, 0, 0).numbers == 0 for runs in expected for array in runs):
            raise nothing_to_compare(f"{self.truth.reference.side} and {model.source.path}")
        return wrong

    def _of_reference(self, expected: Sequence[Sequence[np.ndarray]]) -> Question:
        """Return the question about the model of the reference, whose outputs are those that the candidate has."""
        loaded, feeding = self.truth.reference.loaded, self.truth.feeding
        samples = [feeding.feeds("reference", sample) for sample in self.truth.samples]
        feeds = [[sample[at] for sample in samples if at in sample] for at in range(len(loaded.inputs))]
        names = [self.truth.model.result_names(result) for result in self.truth.model.results]
        pairs = pair_outputs(loaded.outputs, names, self.truth.renames)
        outputs = [names[0] if names else "" for names in loaded.outputs]
        true = [expected[pairs[at]] if at in pairs else [] for at in range(len(outputs))]
        inputs = [input.names[0] for input in loaded.inputs]
        return Question("", inputs, feeds, outputs, true, self.tolerances.of_output)

    def _known(self, model: Model, prefix: str) -> dict[Output, Place | None]:
        """Return the outputs of layers whose true values the reference can show, each with its place there.

        The inputs of the whole model have no place: their values are the samples.
        """
        known: dict[Output, Place | None] = {}
        for id, layer in model.layers.items():
            for position in range(len(layer.outputs)):
                place = Place(prefix + model.unique_names[id], position)
                if place in self.truth.places:
                    known[id, position] = self.truth.places[place]
                elif not prefix and layer.type.lower() == "parameter":
                    known[id, position] = None
        return known

    def _narrowed(self, region: Region, prefix: str, wrong: Wrong) -> Bisection:
        """Return the smallest part of a region that is as wrong as the whole."""
        narrowed, best = self._search(region, wrong)
        if best is not None and not self.is_strict and not self._has_healthy_twin(narrowed, best):
            self.is_strict = True
            narrowed, best = self._search(region, wrong)
        if best is None:
            # the values at the cuts do not show the fault: the whole model is the smallest part
            return self._result(region, prefix, None, wrong)
        inner = self._inside(narrowed, prefix, wrong)
        return inner if inner is not None else self._result(narrowed, prefix, best, best.wrong or wrong)

    def _search(self, region: Region, wrong: Wrong) -> tuple[Region, _Answer | None]:
        """Return the smallest part of a region that is evidence, with its answer, or None if there is none."""
        best = self._ask(region, 0, None)
        if not self._is_evidence(region, best, wrong):
            return region, None
        while True:
            begin = self._first(region, wrong)
            end = self._last(region, begin, wrong)
            smaller = region.only(region.layers[begin:end])
            if len(smaller.layers) > 1:
                smaller = self._connected(smaller, wrong)
            answer = self._ask(smaller, 0, None)
            if not self._is_evidence(smaller, answer, wrong):
                return region, best
            best, progress = answer, len(smaller.layers) < len(region.layers)
            region = smaller
            if not progress or len(region.layers) == 1:
                return region, best

    def _first(self, region: Region, wrong: Wrong) -> int:
        """Return the last position such that the layers from there on are wrong."""
        low, high = 0, len(region.layers)
        while (middle := _middle(region, low, high)) is not None:
            answer = self._ask(region, middle, None)
            if self._is_evidence(region, answer, wrong):
                low = middle
            else:
                high = middle
        return low

    def _last(self, region: Region, begin: int, wrong: Wrong) -> int:
        """Return the first position such that the layers from ``begin`` up to there are wrong."""
        low, high = begin, len(region.layers)
        while (middle := _middle(region, low, high)) is not None:
            answer = self._ask(region, begin, middle)
            if self._is_evidence(region, answer, wrong):
                high = middle
            else:
                low = middle
        return high

    def _connected(self, region: Region, wrong: Wrong) -> Region:
        """Return the layers between the first and the last of a region, if they alone are wrong, else the region."""
        graph = region.model.links.subgraph(region.layers)
        first, last = region.layers[0], region.layers[-1]
        between = ({first} | nx.descendants(graph, first)) & ({last} | nx.ancestors(graph, last))
        smaller = region.only(between)
        if not between or len(between) == len(region.layers):
            return region
        answer = self._ask(smaller, 0, None)
        return smaller if self._is_evidence(smaller, answer, wrong) else region

    def _inside(self, region: Region, prefix: str, wrong: Wrong) -> Bisection | None:
        """Return the smallest wrong part of a body, if the region is a loop or If with a body that is wrong."""
        if len(region.layers) != 1 or wrong.verdict != "differ":
            return None
        (id,) = region.layers
        layer, inside = region.model.layers[id], f"{prefix}{region.model.unique_names[id]}/"
        for body in layer.bodies.values():
            inner = Region.of(body, self._known(body, inside), [result.id for result in body.results])
            answer = self._ask(inner, 0, None)
            if answer is not None and answer.wrong is not None and self._is_evidence(inner, answer, wrong):
                return self._narrowed(inner, inside, answer.wrong)
        return None

    def _ask(self, region: Region, begin: int, end: int | None) -> _Answer | None:
        """Run a part of a region on its true inputs. Return None if a value that it needs is not known."""
        part = region.part(begin, end)
        if part is None:
            return None
        path = self.folder / "part.xml"
        save_model(part.model, path, compact=True)
        places = dict.fromkeys(p for o in (*part.inputs, *part.outputs) if (p := region.known[o]) is not None)
        _, values = self.truth.run(tuple(places))
        feeds = [self._values(region, output, values) for output in part.inputs]
        expected = [self._values(region, output, values) for output in part.outputs]
        names = [parameter.name for parameter in part.model.parameters]
        layers = [region.model.output_name(*output) for output in part.outputs]
        question = Question(str(path), names, feeds, layers, expected, self.tolerances.of_layer)
        return _Answer(part, self._judge(question, len(part.model.layers)), question)

    def _values(self, region: Region, output: Output, values: Mapping[Place, list[np.ndarray]]) -> list[np.ndarray]:
        """Return the true values of an output of a layer."""
        place = region.known[output]
        return self.truth.of_input(region.model.layers[output[0]]) if place is None else values[place]

    def _judge(self, question: Question, layers: int) -> Wrong | None:
        """Let the candidate run a model of so many layers, count the run, and return what is wrong, or None."""
        self.runs += 1
        self.on_run(self.runs, layers)
        return judge(self.engine, question)

    def _is_evidence(self, region: Region, answer: _Answer | None, wrong: Wrong) -> bool:
        """Return whether a part fails as the whole does and, in a strict search, its twin does not."""
        if answer is None or not is_alike(wrong, answer.wrong):
            return False
        return not self.is_strict or self._has_healthy_twin(region, answer)

    def _has_healthy_twin(self, region: Region, answer: _Answer) -> bool:
        save_model(answer.part.model, answer.question.path, compact=True)  # other parts were asked about since
        return self.twins is None or self.twins.is_healthy(region, answer.part, answer.question)

    def _result(self, region: Region, prefix: str, answer: _Answer | None, wrong: Wrong) -> Bisection:
        model = region.model
        layers = tuple(_culprit(model, model.layers[id], prefix) for id in region.layers)
        if answer is None:
            return Bisection(wrong.verdict, wrong, layers, self.runs, candidate=self.engine.name)
        model, question = answer.part.model, answer.question
        expected = _runs([model.result_name(result) for result in model.results], question.expected)
        feeds = _runs(question.inputs, question.feeds)
        name = self.engine.name
        return Bisection(wrong.verdict, wrong, layers, self.runs, model, tuple(feeds), tuple(expected), name)


@dataclass(frozen=True)
class _Answer:
    """A part that the candidate has run, what was wrong, and the question with the true values."""

    part: Part
    wrong: Wrong | None
    question: Question


def _middle(region: Region, low: int, high: int) -> int | None:
    """Return where to cut between two positions: near the middle, where the fewest values cross; or None.

    Where one value crosses, its layer dominates those behind it, and the candidate has no layers to fuse across.
    """
    third, middle = (high - low) / 3, (low + high) / 2
    cuts = [at for at in region.cuts if low < at < high]
    inner = [at for at in cuts if low + third <= at <= high - third] or cuts
    return min(inner, key=lambda at: (region.cuts[at], abs(at - middle)), default=None)


def _culprit(model: Model, layer: Layer, prefix: str) -> Culprit:
    line = model.source.span(layer.node).line if layer.node >= 0 else 0
    return Culprit(prefix + model.unique_names[layer.id], layer.type, model.source.path, line)


def _differences(
    reference: Subject, candidate: Subject, pairs: Mapping[Place, Place], layers: Sequence[Culprit]
) -> Iterator[str]:
    """Yield how the layers of a part differ between the files of two sides; of several layers, each with its name."""
    places = {other.layer: place for place, other in pairs.items()}
    for layer in layers:
        if layer.name in places:
            for text in differences(reference, candidate, pairs, places[layer.name]):
                yield text if len(layers) == 1 else f'"{layer.name}": {text}'


def _runs(names: Sequence[str], values: Sequence[Sequence[np.ndarray]]) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the values of each run by name."""
    for run in range(max(map(len, values), default=0)):
        yield {name: runs[run] for name, runs in zip(names, values) if run < len(runs)}

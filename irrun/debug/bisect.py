"""Find the smallest part of a model that a candidate computes wrongly, by running parts of it on true inputs.

The candidate shows nothing but outputs: each question is whether a part, cut out of its model and run on the values
that the reference has at the cut, gives the values that the reference has at its end. Two binary searches over the
topological order answer where the faulty part begins and where it ends. No output is added inside a part, so that a
fault in layers which the candidate fuses stays there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np

from irrun.api import read_model
from irrun.debug.metrics import measure
from irrun.debug.regions import Output, Part, Region
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import Diagnostic, EngineError
from irrun.engines import Crash, Engine, Failure, Limits, Loaded, Outputs, Place, Refusal, Side, Timeout, parse_side
from irrun.engines import open as open_engine
from irrun.ir.write import save_model
from irrun.model import Layer, Model

__all__ = ["Bisection", "Culprit", "Sample", "Verdict", "Wrong", "bisect"]

Sample = Mapping[str, np.ndarray]
"""The inputs of one run, by name."""

Verdict = Literal["agrees", "differs", "crash", "refusal", "timeout"]
_CUTTABLE: Final = ("irrun", "exact", "openvino")
"""The kinds of engines whose model is an IR, from which parts can be cut."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """A layer of the smallest part, with its place in the file of the candidate. Constants are not listed."""

    name: str
    type: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a part: a failure of the candidate, or the positions of the outputs that differ."""

    verdict: Verdict
    outputs: tuple[int, ...] = ()
    excess: float = 0.0
    """The greatest error of an output, in units of its tolerance."""
    message: str = ""
    """What a candidate that fails says, or why an output cannot be compared."""


@dataclass(frozen=True)
class Bisection:
    """The result of ``bisect``.

    ``layers`` are those of the smallest part that shows the same fault as the whole model; there are none if the sides
    agree. ``part`` is that part, ``inputs`` its true inputs and ``expected`` its true outputs, both by name for each
    run. ``runs`` counts the parts that the candidate was asked to run.
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


def bisect(
    reference: str | Side,
    candidate: str | Side,
    samples: Sequence[Sample],
    *,
    tolerances: Tolerances | None = None,
    limits: Limits | None = None,
    on_run: Callable[[int, int], None] | None = None,
) -> Bisection:
    """Find the smallest part of the candidate's model that it computes otherwise than the reference.

    The sides are written as for ``compare``. The candidate needs an IR: its kind is irrun, exact or openvino. The
    reference shows inner values, and its layers have the names of the candidate's. The samples are run in order, and
    the state of a model is kept from one to the next. ``on_run(runs, layers)`` is called before each run of the
    candidate with the number of layers in the part.

    Raises EngineError if a side cannot be used (IR701, IR702) or the reference fails (IR704), and the errors of
    ``irrun.read_model`` for the candidate's model.
    """
    of_candidate = parse_side(candidate) if isinstance(candidate, str) else candidate
    if of_candidate.kind not in _CUTTABLE or of_candidate.path is None:
        help = f"pass an IR file that one of {', '.join(_CUTTABLE)} runs"
        message = f"cannot bisect {of_candidate}: parts can be cut from the models of {', '.join(_CUTTABLE)} only"
        raise EngineError(Diagnostic("IR701", "error", message, help=help))
    model = read_model(of_candidate.path)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="irrun-")))
        truth = _Truth(stack.enter_context(open_engine(reference, limits)), samples)
        engine = stack.enter_context(open_engine(replace(of_candidate, path=None), limits))
        return _Search(truth, engine, tolerances or Tolerances(), folder, on_run).bisect(model)


class _Truth:
    """The values of the reference, for each sample and, in a body, for each iteration."""

    def __init__(self, engine: Engine, samples: Sequence[Sample]) -> None:
        self.engine, self.samples = engine, samples
        loaded = engine.load(inner=True)
        if not isinstance(loaded, Loaded):
            raise _unusable(engine, loaded)
        self.outputs = {name: position for position, names in enumerate(loaded.outputs) for name in reversed(names)}
        self.inputs = {name: input.names for input in loaded.inputs for name in input.names}
        self.places = {name: place for place, origin in loaded.places.items() for name in origin.names}
        self.places |= {str(place): place for place in loaded.places}

    def run(self, places: Sequence[Place]) -> tuple[list[Outputs], dict[Place, list[np.ndarray]]]:
        """Return the outputs of each sample, and the values at ``places``, of all samples one after the other.

        Raises EngineError (IR704) if the reference fails.
        """
        values: dict[Place, list[np.ndarray]] = {place: [] for place in places}

        def keep(value) -> None:
            values[value.place].append(value.array())
            value.drop()

        outputs: list[Outputs] = []
        self.engine.reset()
        for sample in self.samples:
            outcome = self.engine.infer(sample, places, keep)
            if not isinstance(outcome, Outputs):
                raise _unusable(self.engine, outcome)
            outputs.append(outcome)
        return outputs, values

    def sample_of(self, names: Sequence[str]) -> list[np.ndarray] | None:
        """Return the values of an input of the model, or None if it has none of the names."""
        for name in names:
            known = self.inputs.get(name, ())
            for key in known:
                if all(key in sample for sample in self.samples):
                    return [sample[key] for sample in self.samples]
        return None


def _unusable(engine: Engine, failure: Failure) -> EngineError:
    message = f"the reference {engine.name} gives no values: {said(failure)}"
    return EngineError(Diagnostic("IR704", "error", message, help="choose a reference that runs the model"))


def said(failure: Failure) -> str:
    """Return what a failure says, in words."""
    if isinstance(failure, Refusal):
        return failure.message
    return failure.cause if isinstance(failure, Crash) else f"no answer within {failure.seconds:g} s"


class _Search:
    """A search for the smallest wrong part."""

    def __init__(
        self, truth: _Truth, engine: Engine, tolerances: Tolerances, folder: Path,
        on_run: Callable[[int, int], None] | None,
    ) -> None:  # fmt: skip
        self.truth, self.engine, self.tolerances, self.folder = truth, engine, tolerances, folder
        self.on_run = on_run or (lambda runs, layers: None)
        self.runs = 0

    def bisect(self, model: Model) -> Bisection:
        """Return the smallest wrong part of a model."""
        wrong = self._whole(model)
        if wrong is None:
            return Bisection("agrees", None, (), self.runs, candidate=self.engine.name)
        results = [model.results[at].id for at in wrong.outputs] or [result.id for result in model.results]
        region = Region.of(model, self._known(model, ""), results)
        return self._narrowed(region, "", wrong)

    def _whole(self, model: Model) -> Wrong | None:
        """Return what is wrong with the model itself, or None."""
        outputs, _ = self.truth.run(())
        expected: list[list[np.ndarray]] = []
        for result in model.results:
            names = [name for name in model.result_names(result) if name in self.truth.outputs]
            position = self.truth.outputs[names[0]] if names else None
            expected.append([] if position is None else [run.outputs[position].array for run in outputs])
        feeds: list[list[np.ndarray]] = []
        for parameter in model.parameters:
            values = self.truth.sample_of(model.input_names(parameter))
            if values is None:
                message = f'the samples have no input "{parameter.name}" of the candidate'
                raise EngineError(Diagnostic("IR704", "error", message, help="name the inputs as the reference does"))
            feeds.append(values)
        names = [model.input_names(parameter)[0] for parameter in model.parameters]
        return self._judge(model.source.path, len(model.layers), names, feeds, expected, self.tolerances.of_output, [
            model.result_name(result) for result in model.results
        ])  # fmt: skip

    def _known(self, model: Model, prefix: str) -> dict[Output, Place | None]:
        """Return the outputs of layers whose true values the reference can show, each with its place there.

        The inputs of the whole model have no place: their values are the samples.
        """
        known: dict[Output, Place | None] = {}
        for id, layer in model.layers.items():
            for position, port in enumerate(layer.outputs):
                name = prefix + str(Place(model.unique_names[id], position))
                place = next((self.truth.places[n] for n in (name, *port.names) if n in self.truth.places), None)
                if place is not None:
                    known[id, position] = place
                elif not prefix and layer.type.lower() == "parameter":
                    known[id, position] = None
        return known

    def _narrowed(self, region: Region, prefix: str, wrong: Wrong) -> Bisection:
        """Return the smallest part of a region that is as wrong as the whole."""
        best = self._question(region, 0, None)
        if best is None or not self._same(wrong, best.wrong):
            # the values at the cuts do not show the fault: the whole model is the smallest part
            return self._result(region, None, wrong)
        while True:
            begin = self._first(region, wrong)
            end = self._last(region, begin, wrong)
            smaller = region.only(region.layers[begin:end])
            if len(smaller.layers) > 1:
                smaller = self._connected(smaller, wrong)
            question = self._question(smaller, 0, None)
            if question is None or not self._same(wrong, question.wrong):
                break
            best, progress = question, len(smaller.layers) < len(region.layers)
            region = smaller
            if not progress or len(region.layers) == 1:
                break
        inner = self._inside(region, prefix, wrong)
        return inner if inner is not None else self._result(region, best, best.wrong or wrong)

    def _first(self, region: Region, wrong: Wrong) -> int:
        """Return the last position such that the layers from there on are wrong."""
        low, high = 0, len(region.layers)
        while (middle := _middle(region, low, high)) is not None:
            question = self._question(region, middle, None)
            if question is not None and self._same(wrong, question.wrong):
                low = middle
            else:
                high = middle
        return low

    def _last(self, region: Region, begin: int, wrong: Wrong) -> int:
        """Return the first position such that the layers from ``begin`` up to there are wrong."""
        low, high = begin, len(region.layers)
        while (middle := _middle(region, low, high)) is not None:
            question = self._question(region, begin, middle)
            if question is not None and self._same(wrong, question.wrong):
                high = middle
            else:
                low = middle
        return high

    def _connected(self, region: Region, wrong: Wrong) -> Region:
        """Return the layers between the first and the last of a region, if they alone are wrong, else the region."""
        graph = region.model.graph.subgraph(region.layers)
        first, last = region.layers[0], region.layers[-1]
        import networkx as nx

        between = ({first} | nx.descendants(graph, first)) & ({last} | nx.ancestors(graph, last))
        smaller = region.only(between)
        if not between or len(between) == len(region.layers):
            return region
        question = self._question(smaller, 0, None)
        return smaller if question is not None and self._same(wrong, question.wrong) else region

    def _inside(self, region: Region, prefix: str, wrong: Wrong) -> Bisection | None:
        """Return the smallest wrong part of a body, if the region is a loop or If with a body that is wrong."""
        if len(region.layers) != 1 or wrong.verdict != "differs":
            return None
        (id,) = region.layers
        layer, inside = region.model.layers[id], f"{prefix}{region.model.unique_names[id]}/"
        for body in layer.bodies.values():
            inner = Region.of(body, self._known(body, inside), [result.id for result in body.results])
            question = self._question(inner, 0, None)
            if question is not None and question.wrong is not None and question.wrong.verdict == "differs":
                return self._narrowed(inner, inside, question.wrong)
        return None

    def _question(self, region: Region, begin: int, end: int | None) -> _Question | None:
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
        inner = len(part.model.layers)
        wrong = self._judge(str(path), inner, names, feeds, expected, self.tolerances.of_layer, layers)
        return _Question(part, wrong, feeds, expected)

    def _values(self, region: Region, output: Output, values: Mapping[Place, list[np.ndarray]]) -> list[np.ndarray]:
        """Return the true values of an output of a layer."""
        place = region.known[output]
        if place is not None:
            return values[place]
        return self.truth.sample_of(region.model.input_names(region.model.layers[output[0]])) or []

    def _judge(
        self,
        path: str,
        layers: int,
        names: Sequence[str],
        feeds: Sequence[Sequence[np.ndarray]],
        expected: Sequence[Sequence[np.ndarray]],
        tolerance: Callable[[str, str], tuple[float, float]],
        values: Sequence[str],
    ) -> Wrong | None:
        """Run a model with the candidate, and return what is wrong with it, or None.

        ``feeds`` and ``expected`` hold the values of each input and output for each run; ``values`` names the outputs.
        """
        self.runs += 1
        self.on_run(self.runs, layers)
        loaded = self.engine.load(path)
        if not isinstance(loaded, Loaded):
            return _failed(loaded)
        self.engine.reset()
        outside: dict[int, float] = {}
        problem = ""
        count = max((len(runs) for runs in (*feeds, *expected)), default=0)
        for run in range(count):
            outcome = self.engine.infer({name: runs[run] for name, runs in zip(names, feeds)})
            if not isinstance(outcome, Outputs):
                return _failed(outcome)
            for at, (output, runs) in enumerate(zip(outcome.outputs, expected)):
                if run < len(runs):
                    measurement = measure(runs[run], output.array, *tolerance(values[at], output.type))
                    if not measurement.agrees:
                        outside[at] = max(outside.get(at, 0), measurement.excess)
                        problem = problem or measurement.problem
        return Wrong("differs", tuple(sorted(outside)), max(outside.values()), problem) if outside else None

    @staticmethod
    def _same(whole: Wrong, part: Wrong | None) -> bool:
        """Return whether a part fails as the whole does."""
        return part is not None and part.verdict == whole.verdict

    def _result(self, region: Region, question: _Question | None, wrong: Wrong) -> Bisection:
        model = region.model
        layers = tuple(_culprit(model, model.layers[id]) for id in region.layers)
        if question is None:
            return Bisection(wrong.verdict, wrong, layers, self.runs, candidate=self.engine.name)
        inputs, outputs = question.part.model.parameters, question.part.model.results
        return Bisection(
            wrong.verdict, wrong, layers, self.runs, question.part.model,
            tuple(_runs([parameter.name for parameter in inputs], question.feeds)),
            tuple(_runs([question.part.model.result_name(result) for result in outputs], question.expected)),
            self.engine.name,
        )  # fmt: skip


@dataclass(frozen=True)
class _Question:
    """A part that the candidate was asked to run, what was wrong, and the true values of its inputs and outputs."""

    part: Part
    wrong: Wrong | None
    feeds: Sequence[Sequence[np.ndarray]]
    expected: Sequence[Sequence[np.ndarray]]


def _middle(region: Region, low: int, high: int) -> int | None:
    """Return where to cut between two positions: near the middle, where the fewest values cross; or None.

    Where one value crosses, its layer dominates those behind it, and the candidate has no layers to fuse across.
    """
    third, middle = (high - low) / 3, (low + high) / 2
    cuts = [at for at in region.cuts if low < at < high]
    inner = [at for at in cuts if low + third <= at <= high - third] or cuts
    return min(inner, key=lambda at: (region.cuts[at], abs(at - middle)), default=None)


def _culprit(model: Model, layer: Layer) -> Culprit:
    line = model.source.span(layer.node).line if layer.node >= 0 else 0
    return Culprit(layer.name, layer.type, model.source.path, line)


def _failed(failure: Failure) -> Wrong:
    verdict: Verdict = (
        "refusal" if isinstance(failure, Refusal) else "timeout" if isinstance(failure, Timeout) else "crash"
    )
    return Wrong(verdict, message=said(failure))


def _runs(names: Sequence[str], values: Sequence[Sequence[np.ndarray]]) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the values of each run by name."""
    for run in range(max(map(len, values), default=0)):
        yield {name: runs[run] for name, runs in zip(names, values) if run < len(runs)}

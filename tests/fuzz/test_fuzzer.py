"""The fuzzer: it finds, reduces, explains and keeps faults that are planted into an engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from conformance.in_process import InProcess
from irrun.conformance import read_suite
from irrun.engines import Crash, Failure, Limits, Output, Outputs, Place, Refusal, Timeout, Value
from irrun.fuzz import (
    Campaign,
    Figures,
    Invalid,
    Job,
    campaigns,
    described,
    explain,
    jobs,
    judge,
    reduced,
    reducing,
    repeating,
    run_jobs,
    single_layers,
    summary,
)
from irrun.growing import Draft, Graph, Grower, Node, Port, Ref, versions
from irrun.growing.drafts import failure
from irrun.opdef import find


def _campaign(count: int, seed: int = 5, **more: Any) -> Figures:
    campaign = Campaign(seed, **more)
    deque(campaign.run(count=count), maxlen=0)
    return campaign.figures


def test_irrun_agrees_with_itself() -> None:
    figures = _campaign(40)
    assert [str(finding.disagreement) for finding in figures.findings] == []
    assert figures.graphs == 40
    assert figures.invalid <= 10


# ---------------------------------------------------------------------------------------------
# faults


class Faulty(InProcess):
    """irrun with a fault in each model that has a layer of ``type``."""

    def __init__(self, type: str, fault: Callable[[Outputs], Outputs | Failure]) -> None:
        super().__init__(exact=True)
        self.type, self.fault = type, fault

    def infer(
        self, feeds: Mapping[Any, np.ndarray], taps: Sequence[Place] = (),
        on_value: Callable[[Value], None] | None = None, on_repeated: Callable[[Value], None] | None = None,
    ) -> Outputs | Failure:  # fmt: skip
        outputs = super().infer(feeds, taps, on_value)
        assert self.model is not None
        has = any(layer.type == self.type for layer in self.model.layers.values())
        return self.fault(outputs) if has and isinstance(outputs, Outputs) else outputs


def _doubled(outputs: Outputs) -> Outputs:
    return Outputs(tuple(Output(o.names, o.type, o.array + o.array) for o in outputs.outputs), 0)


FAULTS: dict[str, tuple[Callable[[Outputs], Outputs | Failure], str]] = {
    "values": (_doubled, "output 0 has"),
    "refusal": (lambda _: Refusal("no such kernel"), "no such kernel"),
    "crash": (lambda _: Crash("it was ended by SIGSEGV"), "SIGSEGV"),
    "hang": (lambda _: Timeout(3), "no answer within 3 s"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_found_and_reduced_to_its_layer(kind: str) -> None:
    fault, detail = FAULTS[kind]
    graph = _chain("ReLU", "Tanh", "Abs")
    found = judge(graph, Faulty("Tanh", fault))
    assert found is not None
    assert (found.judge, found.kind) == ("engine", kind)
    assert detail in found.detail
    engine = Faulty("Tanh", fault)

    def fails(candidate: Graph) -> bool:
        again = judge(candidate, engine)
        return again is not None and again.kind == kind

    small = reduced(graph, fails)
    assert [node.label for node in small.nodes if node.kind == "layer"] == ["Tanh-1"]
    assert not small.is_dynamic()


def _chain(*types: str) -> Graph:
    """A dynamic graph of element-wise layers."""
    nodes = [Node("parameter", type="f32", shape=(2, 3))]
    for type in types:
        (cls,) = find(type).values()
        nodes.append(Node("layer", cls, {}, [Ref(len(nodes) - 1)]))
    calls = [{0: (2, 3)}, {0: (1, 3)}, {0: (0, 3)}, {0: (2, 3)}]
    return Graph(1, nodes, [Ref(1), Ref(len(nodes) - 1)], calls, {0: frozenset([0])})


def test_a_graph_without_a_fault_agrees() -> None:
    assert judge(_chain("ReLU", "Tanh", "Abs"), Faulty("Exp", _doubled)) is None


@pytest.mark.parametrize("compared", [False, True], ids=["random-alone", "one-that-is-not"])
def test_random_numbers_are_not_compared(compared: bool) -> None:
    """Nor what is computed from them; another output of the same model is."""

    def moved(outputs: Outputs) -> Outputs:
        return Outputs(tuple(Output(o.names, o.type, o.array + np.float32(1000)) for o in outputs.outputs), 0)

    nodes = [
        Node("constant", type="i64", shape=(1,), data=np.array([4])),
        Node("constant", type="f32", shape=(), data=np.zeros((), np.float32)),
        Node("constant", type="f32", shape=(), data=np.ones((), np.float32)),
        Node("layer", versions()["RandomUniform-8"], {"output_type": "f32"}, [Ref(0), Ref(1), Ref(2)]),
        Node("layer", versions()["Tanh-1"], {}, [Ref(3)]),
        Node("parameter", type="f32", shape=(4,), data=np.ones(4, np.float32)),
        Node("layer", versions()["Abs-1"], {}, [Ref(5)]),
    ]
    found = judge(Graph(1, nodes, [Ref(3), Ref(4), *[Ref(6)] * compared], [{}]), Faulty("RandomUniform", moved))
    assert (found is not None) == compared
    assert found is None or "output 2" in found.detail


@pytest.mark.parametrize(
    ("layer", "type", "found"),
    [
        ("Convert", "f16", True),
        ("Transpose", "f16", True),
        ("Transpose", "f32", True),
        ("Transpose", "f64", False),
        ("Tanh", "f16", False),
    ],
)
def test_numbers_that_an_engine_only_moves_or_converts(layer: str, type: str, found: bool) -> None:
    """They are wrong if the last bit is, but f64 may be f32 in the engine. What is computed may be rounded."""

    def next_numbers(outputs: Outputs) -> Outputs:
        return Outputs(tuple(Output(o.names, o.type, _next(o.array)) for o in outputs.outputs), 0)

    source = "f32" if layer == "Convert" else type
    data = np.array([[1.75, 3.0], [0.0, 1.25]], {"f16": np.float16, "f32": np.float32, "f64": np.float64}[source])
    nodes = [Node("parameter", type=source, shape=(2, 2), data=data)]
    order = [Node("constant", type="i64", shape=(2,), data=np.array([1, 0]))] if layer == "Transpose" else []
    attributes = {"destination_type": type} if layer == "Convert" else {}
    cls = versions()[f"{layer}-1"]
    nodes += [*order, Node("layer", cls, attributes, [Ref(n) for n in range(1 + len(order))])]
    disagreement = judge(Graph(1, nodes, [Ref(len(nodes) - 1)], [{}]), Faulty(layer, next_numbers))
    assert (disagreement is not None) == found
    assert disagreement is None or "3 of 4" in disagreement.detail  # the least number above 0 may be 0


def _next(array: np.ndarray) -> np.ndarray:
    """Return the number above each, to the last bit of the type."""
    return np.nextafter(array, array.dtype.type(np.inf))


def test_a_distance_that_rounding_explains_is_none() -> None:
    """Sin of large numbers moves by all of its range when its input is rounded; Tanh of small ones does not."""

    def shifted(outputs: Outputs) -> Outputs:
        return Outputs(tuple(Output(o.names, o.type, o.array + np.float32(0.01)) for o in outputs.outputs), 0)

    large = _chain("Sin")
    large.nodes[0].data = np.full((2, 3), 1e7, np.float32)
    large.calls, large.open = [{0: (2, 3)}], {}
    assert judge(large, Faulty("Sin", shifted)) is None
    found = judge(_chain("Tanh"), Faulty("Tanh", shifted))
    assert found is not None
    assert found.kind == "values"


def test_an_element_that_rounding_moves_may_stay_twice() -> None:
    """Rounding moves 60 numbers before Floor with a probability of one half: some of them stay where they are."""

    def lower(outputs: Outputs) -> Outputs:
        return Outputs(tuple(Output(o.names, o.type, o.array - np.float16(1)) for o in outputs.outputs), 0)

    graph = _chain("Floor")
    graph.nodes[0] = Node("parameter", type="f16", shape=(60,), data=np.arange(1, 61, dtype=np.float16))
    graph.calls, graph.open = [{0: (60,)}], {}
    assert judge(graph, Faulty("Floor", lower)) is None
    graph.nodes[0].data = np.arange(1, 61, dtype=np.float16) + np.float16(0.5)
    assert judge(graph, Faulty("Floor", lower)) is not None


def test_a_kernel_that_fails_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that fails with the defining kernels, in any call."""
    graph = _chain("Tanh")
    (cls,) = find("Tanh").values()
    run = cls.run

    def fails(self: Any, x: np.ndarray) -> Any:
        if not x.size:
            raise IndexError("no elements")
        return run(self, x)

    monkeypatch.setattr(cls, "run", fails)
    found = judge(graph)
    assert found is not None
    assert (found.judge, found.kind) == ("exact", "crash")
    assert "no elements" in found.detail
    assert failure(Draft(cls, {}, [Port("f32", (0,))])) == ""  # so that graphs get the layer, and the judge sees it


def test_numbers_that_must_be_whole_are_not_rounded() -> None:
    cls = versions()["GatherTree-1"]
    shapes = [(3, 4, 5), (3, 4, 5), (4,), ()]
    nodes = [Node("parameter", type="f32", shape=shape, domain="whole") for shape in shapes]
    nodes.append(Node("layer", cls, {}, [Ref(n) for n in range(4)]))
    graph = Graph(1, nodes, [Ref(4)], [{}])
    assert judge(graph) is None
    for node in nodes[:2]:
        node.domain = ""
    with pytest.raises(Invalid):
        judge(graph)


# ---------------------------------------------------------------------------------------------
# campaigns


@pytest.mark.parametrize("vanishes", ["never", "from its file", "in a new process"])
def test_a_finding_comes_again_from_its_file(vanishes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that comes only while a graph is judged, or in a process that has run other models, is not reported."""
    crash, is_gone = Crash("it was ended by SIGSEGV"), False

    def release() -> None:
        nonlocal is_gone
        is_gone = True

    def repeats(*arguments: Any) -> bool:
        nonlocal is_gone
        is_gone = vanishes == "from its file"
        with monkeypatch.context() as patched:
            if vanishes == "in a new process":
                patched.setattr(engine, "release", release)
            found = repeating.repeats(*arguments)
        is_gone = False
        return found

    monkeypatch.setattr(campaigns, "repeats", repeats)
    engine = Faulty("Parameter", lambda outputs: outputs if is_gone else crash)
    campaign = Campaign(5, engine)
    deque(campaign.run(count=4), maxlen=0)
    assert bool(campaign.figures.findings) is (vanishes == "never")
    assert bool(campaign.figures.explained[repeating.UNREPEATED]) is (vanishes != "never")


def test_findings_are_kept_as_a_suite(tmp_path: Path) -> None:
    campaign = Campaign(5, Faulty("Parameter", lambda _: Crash("it was ended by SIGSEGV")), tmp_path)
    shown = [finding for finding in campaign.run(count=8) if finding is not None]
    figures = campaign.figures
    assert figures.findings == shown != []
    suite = read_suite(tmp_path / "findings.jsonl.xz")
    assert len(suite.cases) == len(figures.findings)
    for case in suite.cases:
        assert case.verdict == "open"
        assert list(case.observed.values()) == ["engine: crash: it was ended by SIGSEGV"]
        model = irrun.read_model(case.write(tmp_path))
        irrun.run(model, case.steps[0].feeds())
        assert case.operation in suite.operations


def test_a_finding_is_shown_once() -> None:
    engine = Faulty("Parameter", lambda _: Crash("it was ended by SIGSEGV"))
    figures = _campaign(20, engine=engine)
    signatures = [finding.signature for finding in figures.findings]
    assert len(signatures) == len(set(signatures))
    assert figures.refused == len(signatures) + figures.repeated.total() > 10


def test_an_explained_refusal_is_no_finding() -> None:
    engine = Faulty("Parameter", lambda _: Refusal("Opset opset17 doesn't contain the operation with type: Atan2"))
    figures = _campaign(10, engine=engine)
    assert figures.findings == []
    assert figures.explained["an operation that the engine does not have"] == figures.outcomes["engine refusal"] > 0
    assert any("100.0 % of the models run" in line for line in summary(figures))


def test_a_layer_is_explained_by_itself() -> None:
    """The page leaves Exp of NaN open; a fault of Tanh has no explanation."""
    chain = _chain("Tanh", "Exp")
    graph = Graph(1, chain.nodes, chain.results, [{}])
    graph.nodes[0].data = np.array([[np.nan, 0.5, 1], [2, 3, 4]], np.float32)
    engine = Faulty("Exp", _infinite)
    found = judge(graph, engine)
    assert found is not None
    assert explain(graph, found, engine).names == {"what the page leaves open: nan-of-element"}
    verdict = explain(graph, found, Faulty("Tanh", _doubled))
    assert not verdict.names
    assert described(verdict.graph, verdict.disagreement).startswith("values Tanh-1 (")


def _infinite(outputs: Outputs) -> Outputs:
    """Exponentials of NaN as OpenVINO gives them. Hyperbolic tangents stay."""
    arrays = [np.where(np.isnan(o.array), np.inf, o.array).astype(o.array.dtype) for o in outputs.outputs]
    last = len(arrays) - 1
    return Outputs(
        tuple(Output(o.names, o.type, arrays[n] if n == last else o.array) for n, o in enumerate(outputs.outputs)), 0
    )


def test_a_crash_in_the_second_run_hides_no_values() -> None:
    """Values are judged twice, and an engine may crash when it runs the model again."""
    answers = iter([_doubled])
    engine = Faulty("Tanh", lambda outputs: next(answers, lambda _: Crash("it was ended by SIGSEGV"))(outputs))
    found = judge(_chain("Tanh"), engine)
    assert found is not None
    assert found.kind == "values"


def test_a_crash_that_does_not_come_again_is_explained() -> None:
    crashes = iter([Crash("it was ended by SIGSEGV")])
    engine = Faulty("Tanh", lambda outputs: next(crashes, outputs))
    graph = _chain("Tanh")
    found = judge(graph, engine)
    assert found is not None
    assert explain(graph, found, engine).names == {"a crash that a new process does not repeat"}


def test_a_crash_after_another_layer_has_overwritten_memory_is_not_blamed_on_a_layer() -> None:
    class Overwriting(Faulty):
        """Tanh overwrites memory, and the next Abs crashes. Then, a new process begins."""

        overwritten = False

        def crash(self, outputs: Outputs) -> Outputs | Failure:
            assert self.model is not None
            types = {layer.type for layer in self.model.layers.values()}
            overwritten, self.overwritten = self.overwritten or "Tanh" in types, False
            if overwritten and "Abs" in types:
                return Crash("it was ended by SIGABRT")
            self.overwritten = overwritten
            return outputs

    engine = Overwriting("Parameter", lambda outputs: engine.crash(outputs))
    graph = _chain("Tanh", "Abs")
    found = judge(graph, engine)
    assert found is not None
    verdict = explain(graph, found, engine)
    assert not verdict.names
    assert {node.label for node in verdict.graph.nodes if node.kind == "layer"} == {"Tanh-1", "Abs-1"}
    assert verdict.disagreement.detail == "it was ended by SIGABRT"


def test_each_layer_is_shown_with_the_values_that_it_gets() -> None:
    graph = _chain("Tanh", "Exp")
    graph.nodes[0].data = np.full((2, 3), 0.5, np.float32)
    (_, first), (_, second) = single_layers(graph, 0)
    assert (first.signature(), second.signature()) == ("Tanh-1 of f32", "Exp-1 of f32")
    np.testing.assert_allclose(second.feeds()[0], np.tanh(np.full((2, 3), 0.5)), rtol=1e-6)


def test_a_model_is_the_same_alone_as_in_its_campaign() -> None:
    campaign = Campaign(5)
    shown = [campaign.figures.graphs for _ in campaign.run(first=2, count=1)]
    grower = Grower(5)
    graphs = [grower.grow(number) for number in range(3)]
    assert shown == [1]
    assert set(campaign.figures.reached) == graphs[2].versions()


def test_jobs_do_the_models_of_one_process() -> None:
    job = Job(3, None, Limits(), 0, 2)
    figures = Figures()
    parts = [figures.graphs for _ in run_jobs(job, 2, figures)]
    alone = _campaign(2, seed=3)
    assert (figures.graphs, figures.reached, figures.outcomes) == (2, alone.reached, alone.outcomes)
    assert parts == [2]
    late = Figures()
    deque(run_jobs(Job(3, None, Limits(), 0, 2, deadline=0.0), 1, late), maxlen=0)
    assert late.graphs == 0
    assert not late.interrupted


def test_ctrl_c_ends_all_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes before any process has begun. None of the graphs is grown then."""
    monkeypatch.setattr(jobs, "BLOCK", 5)
    as_completed, times = jobs.as_completed, iter([KeyboardInterrupt])

    def interrupted(waiting: Any) -> Any:
        for error in times:
            raise error
        return as_completed(waiting)

    monkeypatch.setattr(jobs, "as_completed", interrupted)
    figures = Figures()
    parts = list(run_jobs(Job(3, None, Limits(), 0, 10), 1, figures))
    assert (parts, figures.graphs, figures.interrupted) == ([[], []], 0, True)


def test_a_graph_is_reduced_until_nothing_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain that fails whatever is left of it, one layer stays; after the last trial a chain stays as it is."""
    tried: list[Graph] = []

    def fails(graph: Graph) -> bool:
        tried.append(graph)
        return True

    small = reduced(_chain("ReLU", "Tanh", "Abs"), fails)
    assert len([node for node in small.nodes if node.kind == "layer"]) == 1
    assert not small.is_dynamic()
    assert len(small.calls) == 1
    tried.clear()
    monkeypatch.setattr(reducing, "_MAX_TRIALS", 8)
    long = replace(_chain(*["ReLU"] * 15), calls=[{}], open={})
    assert reduced(long, lambda graph: bool(tried.append(graph))) == long
    assert len(tried) == 8


@pytest.mark.parametrize("since", [1, 3, 11])
def test_a_model_has_the_layers_of_its_graph(since: int) -> None:
    """Each version, attribute, number of outputs and connection."""
    cls = versions()[f"TopK-{since}"]
    attributes = {"axis": "1", "mode": "min", "sort": "value"}
    nodes = [
        Node("parameter", type="f32", shape=(2, 5)),
        Node("constant", type="i64", shape=(), data=np.array(3)),
        Node("layer", cls, attributes, [Ref(0), Ref(1)], outputs=2),
        Node("constant", type="i64", shape=(), data=np.array(1)),
        Node("parameter", type="i64", shape=(3,), data=np.array([1, 1, 1])),
        Node("layer", versions()["VariadicSplit-1"], {}, [Ref(2), Ref(3), Ref(4)], outputs=3),
    ]
    model = Graph(1, nodes, [Ref(2, 1), Ref(5, 2)], [{}]).model()
    top, split = (layer for layer in model.layers.values() if layer.type in ("TopK", "VariadicSplit"))
    assert (top.version, split.version) == (f"opset{since}", "opset1")
    assert attributes.items() <= top.attributes.items()
    assert (len(top.outputs), len(split.outputs)) == (2, 3)
    assert model.feeds[split.id][0] == (top.id, 0)
    assert [model.feeds[result.id][0] for result in model.results] == [(top.id, 1), (split.id, 2)]

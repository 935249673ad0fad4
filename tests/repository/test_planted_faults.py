"""The program that plants faults into irrun and lets ``irrun fuzz`` look for them."""

from pathlib import Path
from typing import Any

import pytest

from irrun.growing import Graph
from mutants import Project, Tree
from places import ROOT
from planted_faults import searching
from planted_faults.command import main
from planted_faults.graphs import grown, load, save
from planted_faults.searching import FAULTS, Fault, Outcome, Round

AGREED = {"outcome": "agreed", "explanations": [], "signature": "", "line": ""}
FINDING = {
    "outcome": "engine values",
    "explanations": [],
    "signature": "engine values: Tile-1 of f32",
    "line": "Tile-1",
}
OTHER = FINDING | {"signature": "engine values: Add-1 of f32"}
EXPLAINED = {"outcome": "engine values", "explanations": ["a dim of 0"], "signature": "", "line": ""}
BOTH = EXPLAINED | {"explanations": ["a dim of 0", "relu_nan"]}


@pytest.mark.parametrize("name", FAULTS)
def test_the_text_of_each_fault_is_there(name: str) -> None:
    """And the module with the fault is Python."""
    fault = FAULTS[name]
    source = (ROOT / fault.file).read_text("utf-8")
    planted = fault.planted(source)
    assert planted != source
    compile(planted, fault.file, "exec")


def test_a_fault_without_its_text_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"empty: irrun/ops/reduce\.py does not have"):
        FAULTS["empty"].planted("")


def test_graphs_are_the_same_after_a_file(tmp_path: Path) -> None:
    graphs = grown(3, 12)
    save(graphs, tmp_path / "graphs")
    again = load(tmp_path / "graphs")
    assert [_described(graph) for graph in again.values()] == [_described(graph) for graph in graphs.values()]


def _described(graph: Graph) -> tuple[Any, ...]:
    nodes = [(node.label, node.cls, node.attributes, node.inputs, node.type, node.shape) for node in graph.nodes]
    data = [None if node.data is None else node.data.tolist() for node in graph.nodes]
    return graph.signature(), nodes, str(data), graph.results, graph.calls, graph.open


class Judges(searching.Judges):
    """Gives the verdicts that a test names, one after the other; the last one again and again."""

    def __init__(self, *verdicts: dict[str, Any], controls: dict[Any, Any] | None = None) -> None:
        tree: Any = None
        super().__init__(tree, searching.Campaigns("openvino", 1, [], Path(), controls or {}), Round(1))
        self.verdicts, self.ended = list(verdicts), 0

    def judge(self, number: int) -> dict[str, Any]:
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]

    def end(self) -> None:
        self.ended += 1


@pytest.mark.parametrize(
    ("faulty", "sound", "verdict", "excused"),
    [
        ([AGREED], AGREED, "not found", []),
        ([FINDING], AGREED, "found", []),
        ([FINDING], EXPLAINED, "found", []),
        ([FINDING, AGREED], AGREED, "not found", []),  # not again in a new process
        ([FINDING], OTHER, "not found", []),
        ([FINDING], FINDING, "not found", []),
        ([EXPLAINED], AGREED, "excused", ["a dim of 0"]),
        ([EXPLAINED], EXPLAINED, "not found", []),
        ([BOTH], EXPLAINED, "excused", ["relu_nan"]),
        ([BOTH], FINDING, "not found", []),
        ([EXPLAINED, AGREED], AGREED, "not found", []),
        ([EXPLAINED | {"explanations": [searching.NOT_REPEATED]}], AGREED, "not found", []),
    ],
)
def test_what_a_verdict_shows(faulty: list[Any], sound: Any, verdict: str, excused: list[str]) -> None:
    outcome = Outcome(FAULTS["empty"])
    searching.judge_number(outcome, 7, Judges(*faulty), Judges(sound))
    assert (outcome.verdict, list(outcome.excused.elements()), outcome.judged) == (verdict, excused, 1)
    assert outcome.places == [(1, 7)] * bool(excused)


@pytest.mark.parametrize(("sound", "judged"), [(AGREED, 0), (FINDING, 0), (EXPLAINED, 1)])
def test_a_fault_beside_a_departure_needs_one(sound: Any, judged: int) -> None:
    outcome = Outcome(FAULTS["beside"])
    searching.judge_number(outcome, 7, Judges(FINDING), Judges(sound))
    assert outcome.judged == judged


@pytest.mark.processes
def test_a_fault_is_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Against irrun itself, which is no copy: in the third call of some of the first models."""
    arguments = ["third_call", "--against", "exact", "--seed", "5", "--seeds", "1", "--count", "6"]
    assert main([*arguments, "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "third_call: found (only from the third call of a compiled model on: " in printed
    assert "values: " in printed
    assert "irrun fuzz --against 'exact' --seed 5 --model " in printed
    assert printed.endswith("1 of 1 faults found\n")


@pytest.mark.processes
def test_a_tree_is_as_before(tmp_path: Path) -> None:
    """Also after a fault that no model shows, because none has its layer."""
    tree = Tree(Project(ROOT), tmp_path / "tree")
    fault: Fault = FAULTS["saturation"]
    before = (tree.root / fault.file).read_bytes()
    campaigns = searching.Campaigns("exact", 2, [Round(5)], tmp_path)
    outcome = searching.searched(fault, campaigns, tree, tree)
    assert outcome.verdict == "not found"
    assert (tree.root / fault.file).read_bytes() == before

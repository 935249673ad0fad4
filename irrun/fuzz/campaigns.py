"""Fuzz for a while: grow graphs, judge them, reduce disagreements, and keep those that are new."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from irrun.base.text import counted
from irrun.conformance import Case, Suite
from irrun.conformance.suite import Operation, Step, tensor_record, write_suite
from irrun.diagnostics import IrrunError
from irrun.engines.engine import Engine
from irrun.fuzz.graphs import Graph
from irrun.fuzz.growing import Grower
from irrun.fuzz.judging import Disagreement, Invalid, judge
from irrun.fuzz.known import NOT_REPEATED, described, explained
from irrun.fuzz.reducing import opened, reduced, single_layers
from irrun.fuzz.solving import versions
from irrun.ir.write import save_model
from irrun.opdef import labels

__all__ = ["BLOCK", "Campaign", "Figures", "Finding", "summary", "write_findings"]

BLOCK: Final = 1000
"""The number of graphs whose layers start from the same remembered solutions. A graph can be grown again with at most
this number of graphs before it."""
_COMMON: Final = {"Parameter-1", "Const-1", "Result-1"}


@dataclass(frozen=True)
class Finding:
    """A disagreement that nothing explains: the number of its graph, and the reduced graph."""

    number: int
    graph: Graph
    disagreement: Disagreement

    @property
    def signature(self) -> str:
        return f"{self.disagreement.judge} {self.disagreement.kind}: {self.graph.signature()}{self._check}"

    @property
    def line(self) -> str:
        """The description that explanations are compared with."""
        return described(self.graph, self.disagreement)

    @property
    def _check(self) -> str:
        """Which check of the engine refuses, if its message says so."""
        checks = re.findall(r"Check '(.*?)' failed at", self.disagreement.detail)
        return f", by {checks[-1]}" if checks else ""


@dataclass
class Figures:
    """What a campaign has done. ``reached`` counts the graphs of each version, ``invalid`` those that irrun's defining
    kernels refused, ``refused`` those that the engine refused or failed at without an explanation, and ``repeated``
    those with a disagreement like one that was found before."""

    graphs: int = 0
    invalid: int = 0
    refused: int = 0
    repeated: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    reached: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    """Disagreements with the engine, by their explanation."""
    findings: list[Finding] = field(default_factory=list)
    interrupted: bool = False

    @property
    def missing(self) -> list[str]:
        """The versions that no graph has."""
        return [name for name in versions() if not self.reached[name]]

    def add(self, other: Figures) -> list[Finding]:
        """Add the figures of another part of the campaign. Return its findings that are new."""
        self.graphs += other.graphs
        self.invalid += other.invalid
        self.refused += other.refused
        for name in ("repeated", "reached", "outcomes", "explained"):
            getattr(self, name).update(getattr(other, name))
        signatures = {finding.signature for finding in self.findings}
        new = [finding for finding in other.findings if finding.signature not in signatures]
        self.repeated.update(finding.signature for finding in other.findings if finding.signature in signatures)
        self.findings += new
        return new


@dataclass
class Campaign:
    """A campaign against an engine, or of irrun against itself if there is none.

    Disagreements with the same judge, kind, layers and message are one finding. A finding goes to ``folder`` as it
    comes. ``stopped`` is asked before each graph.
    """

    seed: int
    engine: Engine | None = None
    folder: Path | None = None
    on_graph: Callable[[Figures], None] = lambda figures: None
    on_finding: Callable[[Finding], None] = lambda finding: None
    stopped: Callable[[], bool] = lambda: False
    figures: Figures = field(default_factory=Figures)

    def run(self, *, seconds: float | None = None, first: int = 0, count: int | None = None) -> Figures:
        """Do graphs from ``first`` on, for so long or so many, and return the figures.

        The graphs of a block are grown one after the other from its first one on, also those before ``first``.
        """
        begin, number = time.monotonic(), first - first % BLOCK
        figures, grower = self.figures, Grower(self.seed, unranked=self.engine is None)
        while (count is None or number < first + count) and (seconds is None or time.monotonic() - begin < seconds):
            if self.stopped():
                break
            if number % BLOCK == 0:
                grower = Grower(self.seed, unranked=self.engine is None)
            graph = grower.grow(number)
            if number >= first:
                figures.reached.update(graph.versions())
                self._one(graph, number)
                figures.seconds = time.monotonic() - begin
                self.on_graph(figures)
            number += 1
        return figures

    def _one(self, graph: Graph, number: int) -> None:
        figures = self.figures
        figures.graphs += 1
        if not graph.results:
            figures.invalid += 1
            return
        try:
            found = judge(graph, self.engine)
        except Invalid:
            figures.invalid += 1
            return
        figures.outcomes["agreed" if found is None else f"{found.judge} {found.kind}"] += 1
        if found is None:
            return
        if found.judge == "engine":
            small, last, names = self._explained(graph, found)
            if small is None:
                figures.explained.update(names)
                return
            figures.refused += found.kind != "values"
        else:
            small, last = self._reduced(graph, found)
            if last.judge == "check" and (name := explained(described(small, last))):
                figures.explained[name] += 1
                return
        finding = Finding(number, small, last)
        if any(finding.signature == other.signature for other in figures.findings):
            figures.repeated[finding.signature] += 1
            return
        figures.findings.append(finding)
        self.on_finding(finding)
        if self.folder is not None:
            observer = "irrun" if self.engine is None else self.engine.name
            write_findings(figures.findings, self.folder, self.seed, observer)

    def _explained(self, graph: Graph, found: Disagreement) -> tuple[Graph | None, Disagreement, set[str]]:
        """Return the names of what explains a disagreement with the engine; or the smallest graph that nothing
        explains, with its disagreement."""
        if found.kind == "refusal" and (name := explained(f"refusal | {found.detail}")):
            return None, found, {name}
        names: set[str] = set()
        for make in (lambda layer: layer, opened):
            for layer in single_layers(graph, found.call):
                again = self._again(make(layer), found)
                if again is None:
                    continue
                name = explained(described(make(layer), again))
                if not name:
                    return make(layer), again, set()
                names.add(name)
            if names:
                return None, found, names
        small, last = self._reduced(graph, found)
        if small is graph and found.kind in ("crash", "hang"):
            again = judge(graph, self.engine)
            if again is None or again.kind != found.kind:
                return None, found, {NOT_REPEATED}
        if name := explained(described(small, last)):
            return None, found, {name}
        return small, last, set()

    def _reduced(self, graph: Graph, found: Disagreement) -> tuple[Graph, Disagreement]:
        last = found

        def fails(candidate: Graph) -> bool:
            nonlocal last
            again = self._again(candidate, found)
            last = again or last
            return again is not None

        return reduced(graph, fails), last

    def _again(self, graph: Graph, found: Disagreement) -> Disagreement | None:
        """Return the disagreement about a graph if its judge and its kind are those of ``found``.

        A crash must come twice: for the first one, memory may be responsible that the graph before has overwritten.
        """
        engine = self.engine if found.judge == "engine" else None
        try:
            again = judge(graph, engine)
            if engine is not None and again is not None and again.kind == "crash":
                again = judge(graph, engine)
        except (Invalid, IrrunError, ValueError, KeyError):
            return None
        return again if again is not None and (again.judge, again.kind) == (found.judge, found.kind) else None


def write_findings(findings: Sequence[Finding], folder: Path, seed: int, observer: str) -> None:
    """Write findings as a suite, of open cases: who is right, a person has to say. ``observer`` names the engine."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = [_case(finding, seed, observer) for finding in findings]
    names = {case.operation for case in cases}
    operations = {
        name: Operation(cls.spec, [], labels(cls)) for name, cls in versions().items() if name in names
    }  # fmt: skip
    write_suite(Suite(operations, {}, sorted(cases, key=lambda case: case.name)), folder / "findings.jsonl.xz")


def _case(finding: Finding, seed: int, observer: str) -> Case:
    graph = finding.graph
    model = graph.model(dynamic=True)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "model.xml")
        save_model(model, path)
        xml, weights = path.read_text("utf-8"), path.with_suffix(".bin")
        data = weights.read_bytes() if weights.exists() else b""
    steps = [
        Step([tensor_record(a, graph.nodes[n].type) for n, a in zip(graph.parameters, graph.feeds(call))])
        for call in range(len(graph.calls))
    ]  # fmt: skip
    layers = sorted(graph.versions() - _COMMON) or ["Parameter-1"]
    declaration = "rank" if graph.unranked else "dims" if graph.is_dynamic() else "static"
    return Case(
        f"{layers[0]}/fuzz/{seed}-{finding.number}", layers[0], declaration, "open",
        f"irrun fuzz --seed {seed} --model {finding.number}", xml, data, steps=steps,
        types=sorted({graph.nodes[n].type for n in graph.parameters}),
        observed={observer: str(finding.disagreement)},
    )  # fmt: skip


def summary(figures: Figures) -> Iterable[str]:
    """Yield lines that say what a campaign has done."""
    rate = figures.graphs / figures.seconds if figures.seconds else 0.0
    reached = len(versions()) - len(figures.missing)
    yield f"{counted(figures.graphs, 'model')}, {rate:.1f} a second, {reached} of {len(versions())} versions"
    yield ", ".join(f"{count:,} {outcome}" for outcome, count in figures.outcomes.most_common())
    if figures.explained:
        yield "explained: " + ", ".join(f"{count:,} {name}" for name, count in figures.explained.most_common())
    if figures.refused or figures.explained:
        share = 100 * (1 - figures.refused / figures.graphs)
        yield f"{share:.1f} % of the models run in the engine, or do not for a known reason or departure"
    yield f"{counted(len(figures.findings), 'finding')}, {figures.repeated.total():,} repeated"

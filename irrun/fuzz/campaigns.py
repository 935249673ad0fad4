"""Fuzz for a while: grow graphs, judge them, reduce disagreements, and keep those that are new."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from irrun.base.text import counted
from irrun.conformance import Case, Suite
from irrun.conformance.suite import Operation, Step, tensor_record, write_suite
from irrun.engines.engine import Engine
from irrun.fuzz.explaining import explain
from irrun.fuzz.judging import Disagreement, Invalid, judge
from irrun.fuzz.known import described
from irrun.fuzz.repeating import UNREPEATED, repeats
from irrun.growing.drafts import versions
from irrun.growing.graphs import Graph
from irrun.growing.grower import Grower
from irrun.ir.write import save_model
from irrun.opdef import labels

__all__ = ["BLOCK", "Campaign", "Figures", "Finding", "summary", "write_findings"]

BLOCK: Final = 1000
"""The number of graphs that share remembered solutions. To regrow one graph, at most this many must be grown first."""
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
    """What a campaign has done. ``reached`` counts the graphs of each version, ``algorithms`` those of each algorithm
    of the default plan, ``invalid`` those that irrun's defining kernels refused, ``refused`` those that the engine
    refused or failed at without an explanation, and ``repeated`` those with a disagreement like one that was found
    before."""

    graphs: int = 0
    invalid: int = 0
    refused: int = 0
    repeated: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    reached: Counter[str] = field(default_factory=Counter)
    algorithms: Counter[str] = field(default_factory=Counter)
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
        self.repeated += other.repeated
        self.reached += other.reached
        self.algorithms += other.algorithms
        self.outcomes += other.outcomes
        self.explained += other.explained
        return [finding for finding in other.findings if self.keep(finding)]

    def is_new(self, finding: Finding) -> bool:
        """Return whether no finding has the same signature."""
        return all(finding.signature != known.signature for known in self.findings)

    def keep(self, finding: Finding) -> bool:
        """Add a finding if it is new, and count it as repeated if it is not. Return whether it is new."""
        if not self.is_new(finding):
            self.repeated[finding.signature] += 1
            return False
        self.findings.append(finding)
        return True


@dataclass
class Campaign:
    """A campaign against an engine, or of irrun against itself if there is none.

    Disagreements with the same judge, kind, layers and message are one finding. A finding goes to ``folder`` as it
    comes.
    """

    seed: int
    engine: Engine | None = None
    folder: Path | None = None
    figures: Figures = field(default_factory=Figures)

    def run(
        self, *, seconds: float | None = None, first: int = 0, count: int | None = None
    ) -> Iterator[Finding | None]:
        """Judge graphs from ``first`` on, for so long or so many. After each graph, yield what was found in it, if it
        is new, or None.

        The graphs of a block are grown one after the other from its first one on, also those before ``first``.
        """
        begin, number = time.monotonic(), first - first % BLOCK
        grower = Grower(self.seed, for_engine=self.engine is not None)
        while (count is None or number < first + count) and (seconds is None or time.monotonic() - begin < seconds):
            if number % BLOCK == 0:
                grower = Grower(self.seed, for_engine=self.engine is not None)
            graph = grower.grow(number)
            if number >= first:
                finding = self.judge_graph(graph, number)
                self.figures.seconds = time.monotonic() - begin
                yield finding
            number += 1

    def judge_graph(self, graph: Graph, number: int) -> Finding | None:
        """Judge a graph, and count it. Return what was found, if it is new."""
        figures, reached = self.figures, set[str]()
        figures.graphs += 1
        figures.reached.update(graph.versions())
        try:
            found = judge(graph, self.engine, reached) if graph.results else None
        except Invalid:
            figures.invalid += 1
            return None
        finally:
            figures.algorithms.update(reached)
        if not graph.results:
            figures.invalid += 1
            return None
        figures.outcomes["agreed" if found is None else f"{found.judge} {found.kind}"] += 1
        if found is None:
            return None
        verdict = explain(graph, found, self.engine)
        if verdict.names:
            figures.explained.update(verdict.names)
            return None
        finding = Finding(number, verdict.graph, verdict.disagreement)
        if figures.is_new(finding) and not self._repeats(finding):
            figures.explained[UNREPEATED] += 1
            return None
        figures.refused += found.judge == "engine" and found.kind != "values"
        if not figures.keep(finding):
            return None
        if self.folder is not None:
            observer = "irrun" if self.engine is None else self.engine.name
            write_findings(figures.findings, self.folder, self.seed, observer)
        return finding

    def _repeats(self, finding: Finding) -> bool:
        """Return whether the engine disagrees again about the file of a finding."""
        if self.engine is None or finding.disagreement.judge != "engine":
            return True
        return repeats(_case(finding, self.seed, self.engine.name), finding.disagreement, self.engine)


def write_findings(findings: Sequence[Finding], folder: Path, seed: int, observer: str) -> None:
    """Write findings as a suite of open cases. A person decides who is right. ``observer`` names the engine."""
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
    yield f"{len(figures.algorithms)} algorithms of the default plan"
    if figures.explained:
        yield "explained: " + ", ".join(f"{count:,} {name}" for name, count in figures.explained.most_common())
    if figures.refused or figures.explained:
        share = 100 * (1 - figures.refused / figures.graphs)
        yield f"{share:.1f} % of the models run in the engine, or do not for a known reason or departure"
    yield f"{counted(len(figures.findings), 'finding')}, {figures.repeated.total():,} repeated"

"""Fuzz for a while: grow graphs, judge them, reduce disagreements, and keep those that are new."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from irrun.conformance import Case, Suite, read_suite
from irrun.conformance.suite import Operation, Step, tensor_record, write_suite
from irrun.diagnostics import IrrunError, counted
from irrun.engines.engine import Engine
from irrun.fuzz.graphs import Graph
from irrun.fuzz.growing import Grower
from irrun.fuzz.judging import Disagreement, Invalid, judge
from irrun.fuzz.reducing import reduced
from irrun.fuzz.solving import versions
from irrun.ir.write import save_model
from irrun.opdef import labels

__all__ = ["Campaign", "Figures", "Finding", "summary"]

_REASONS: Final = {
    "an operation that the engine does not have": r"doesn't contain the operation",
    "an input that must be constant": r"evaluate\(\) is not implemented for op|[Tt]ensor is not constant",
    "a Parameter of unknown rank": r"doesn't support Parameter operation with dynamic",
    "an element type": r"unsupported (src|dst)_prc|Element not supported|supportedPrecisions|m_output_type ==|"
    r"can't convert from|[Uu]nsupported .*(type|precision)|not support(ed)? .*(type|precision)|supported .*'data|"
    r"doesn't support .*precision|does not support \w+ for|lement type (must be|for the)",
    "a dim of 0": r"annel_count.get_length\(\) > 0|divisor != 0|greater or equal to 1|"
    r"out-of-range dimension|dimension=0",
}
"""Why engines refuse valid models, each with a pattern of the messages."""
_COMMON: Final = {"Parameter-1", "Const-1", "Result-1"}


@dataclass(frozen=True)
class Finding:
    """A disagreement: the number of its graph, the reduced graph, and the departure in the suite that it resembles."""

    number: int
    graph: Graph
    disagreement: Disagreement
    known: str = ""

    @property
    def signature(self) -> str:
        return f"{self.disagreement.judge} {self.disagreement.kind}: {self.graph.signature()}"


@dataclass
class Figures:
    """What a campaign has done. ``reached`` counts the graphs of each version, ``invalid`` those that irrun's defining
    kernels refused, and ``refused`` those that the engine refused or failed at without a known reason or departure."""

    graphs: int = 0
    invalid: int = 0
    refused: int = 0
    repeated: int = 0
    seconds: float = 0.0
    reached: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Refusals of the engine with a known reason, by the reason."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """The versions that no graph has."""
        return [name for name in versions() if not self.reached[name]]


@dataclass
class Campaign:
    """A campaign against an engine, or of irrun against itself if there is none.

    Disagreements with the same judge, kind and layers are one finding. A finding goes to ``folder`` as it comes.
    """

    seed: int
    engine: Engine | None = None
    folder: Path | None = None
    on_graph: Callable[[Figures], None] = lambda figures: None
    on_finding: Callable[[Finding], None] = lambda finding: None
    figures: Figures = field(default_factory=Figures)

    def run(self, *, seconds: float | None = None, first: int = 0, count: int | None = None) -> Figures:
        """Do graphs from ``first`` on, for so long or so many, and return the figures."""
        grower, begin, number = Grower(self.seed, unranked=self.engine is None), time.monotonic(), first
        seen: dict[str, str] = {}
        figures = self.figures
        figures.reached = grower.reached
        while (count is None or number < first + count) and (seconds is None or time.monotonic() - begin < seconds):
            self._one(grower.grow(number), number, seen)
            figures.seconds = time.monotonic() - begin
            self.on_graph(figures)
            number += 1
        return figures

    def _one(self, graph: Graph, number: int, seen: dict[str, str]) -> None:
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
        if found.judge == "engine" and found.kind == "refusal" and (reason := _reason(found.detail)):
            figures.reasons[reason] += 1
            return
        raw = f"{found.judge} {found.kind}: {graph.signature()}"
        if raw not in seen:
            small, last = self._reduced(graph, found)
            finding = Finding(number, small, last, self._known(small) if last.judge == "engine" else "")
            if finding.signature not in seen:
                figures.findings.append(finding)
                self.on_finding(finding)
                if self.folder is not None:
                    self._write(self.folder)
            else:
                figures.repeated += 1
            seen |= {raw: finding.known, finding.signature: finding.known}
        else:
            figures.repeated += 1
        figures.refused += found.judge == "engine" and found.kind != "values" and not seen[raw]

    def _reduced(self, graph: Graph, found: Disagreement) -> tuple[Graph, Disagreement]:
        last = found
        engine = self.engine if found.judge == "engine" else None

        def fails(candidate: Graph) -> bool:
            nonlocal last
            try:
                again = judge(candidate, engine)
            except (Invalid, IrrunError, ValueError, KeyError):
                return False
            if again is None or (again.judge, again.kind) != (found.judge, found.kind):
                return False
            last = again
            return True

        return reduced(graph, fails), last

    def _known(self, graph: Graph) -> str:
        """Return a departure in the suite whose operation the graph has and whose other layers it has, too."""
        layers = graph.versions() - _COMMON
        for name, operation, others in self._departures:
            if operation in layers and others <= {label.rsplit("-", 1)[0] for label in layers}:
                return name
        return ""

    @cached_property
    def _departures(self) -> list[tuple[str, str, set[str]]]:
        """The departures in the suite: name, operation, and the types of its layers."""
        cases = [case for case in read_suite().cases if "/departure/" in case.name]
        return [(c.name, c.operation, set(re.findall(r'<layer[^>]* type="(\w+)"', c.xml)) - _PLAIN) for c in cases]

    def _write(self, folder: Path) -> None:
        """Write all findings as a suite, of open cases: who is right, a person has to say."""
        folder.mkdir(parents=True, exist_ok=True)
        cases = [case for finding in self.figures.findings if (case := self._case(finding)) is not None]
        names = {case.operation for case in cases}
        operations = {
            name: Operation(cls.spec, [], labels(cls)) for name, cls in versions().items() if name in names
        }  # fmt: skip
        write_suite(Suite(operations, {}, sorted(cases, key=lambda case: case.name)), folder / "findings.jsonl.xz")

    def _case(self, finding: Finding) -> Case | None:
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
        observer = "irrun" if self.engine is None else self.engine.name
        return Case(
            f"{layers[0]}/fuzz/{self.seed}-{finding.number}", layers[0], declaration, "open",
            f"irrun fuzz --seed {self.seed}, graph {finding.number}", xml, data, steps=steps,
            types=sorted({graph.nodes[n].type for n in graph.parameters}),
            observed={observer: str(finding.disagreement)}, note=finding.known and f"resembles {finding.known}",
        )  # fmt: skip


_PLAIN: Final = {"Parameter", "Const", "Result", "Convert"}


def _reason(message: str) -> str:
    """Return the known reason of a refusal, or an empty text."""
    return next((reason for reason, pattern in _REASONS.items() if re.search(pattern, message)), "")


def summary(figures: Figures) -> Iterable[str]:
    """Yield lines that say what a campaign has done."""
    rate = figures.graphs / figures.seconds if figures.seconds else 0.0
    reached = len(versions()) - len(figures.missing)
    yield f"{figures.graphs:,} models, {rate:.1f} a second, {reached} of {len(versions())} versions"
    yield ", ".join(f"{count:,} {outcome}" for outcome, count in figures.outcomes.most_common())
    if figures.reasons:
        yield "refused: " + ", ".join(f"{count:,} for {reason}" for reason, count in figures.reasons.most_common())
    if figures.refused or figures.reasons:
        share = 100 * (1 - figures.refused / figures.graphs)
        yield f"{share:.1f} % of the models run in the engine, or do not for a known reason or departure"
    known = sum(bool(finding.known) for finding in figures.findings)
    repeated = figures.repeated
    yield f"{counted(len(figures.findings), 'finding')}, {known:,} like known departures, {repeated:,} repeated"

"""What releases of OpenVINO refuse on the CPU: the rules of ``table.json``, and the layers that they are about.

A rule was learned from models that a release refused, and says under which conditions. It holds for files that nobody
has tried: ``python -m tools releases --judge`` measures how often it is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from irrun.base.processor import has_flag
from irrun.codes import CODES
from irrun.diagnostics import Report
from irrun.inference.bind import opset_of
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed
from irrun.model import Layer
from irrun.targets.facts import Facts, facts
from irrun.targets.releases import RELEASES, has_operation, table

__all__ = ["PROCESSORS", "Reason", "Rule", "excused", "reasons", "releases_without", "this_processor"]

_FLAGS: Final = {"AVX-512": "avx512f", "AMX": "amx_tile"}
_ERROR: Final = "irrun reports "  # how the sentence about an error begins; its code follows
PROCESSORS: Final = frozenset(f"the processor has {no}{name}" for name in _FLAGS for no in ("", "no "))
"""The sentences about the processor. Some kernels of the plugin need its instructions, or differ with them."""


def this_processor() -> frozenset[str]:
    """Return the sentences about the processor of this machine."""
    return frozenset(f"the processor has {'' if has_flag(flag) else 'no '}{name}" for name, flag in _FLAGS.items())


@dataclass(frozen=True, slots=True)
class Rule:
    """A refusal. ``operation`` is a version (``AvgPool-14``), a type, a class of operations, or empty for all layers.

    ``sentences`` must all hold, and ``processor``, the sentence about the processor, unless it is empty.
    ``exceptions`` are types of operations that it is not about. ``models`` is the number of models that a release
    refused for it. ``loads`` marks an error of irrun that the releases do not report.
    """

    operation: str
    sentences: frozenset[str]
    processor: str
    exceptions: frozenset[str]
    releases: frozenset[str]
    models: int
    loads: bool

    def fits(self, fact: Facts) -> bool:
        """Return whether the rule is about a layer."""
        return self.sentences <= fact.sentences and not self.exceptions.intersection(fact.operations)

    @property
    def conditions(self) -> list[str]:
        """The sentences that must hold, that about the processor last."""
        return [*sorted(self.sentences), *filter(None, [self.processor])]

    @property
    def speaks_of_outputs(self) -> bool:
        """Whether one of the sentences is about an output."""
        return any(sentence.startswith(("output ", "an output ")) for sentence in self.sentences)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why releases do not load a model: they lack an operation, a rule says so, or irrun itself reports an error."""

    kind: Literal["operation", "rule", "error"]
    facts: Facts
    releases: tuple[str, ...]
    rule: Rule | None = None


@cache
def _rules() -> Mapping[str, Sequence[Rule]]:
    """Return the rules by operation."""
    found: dict[str, list[Rule]] = {}
    for row in table()["refusals"]:
        spans = [range(RELEASES.index(first), RELEASES.index(last) + 1) for first, last in row["releases"]]
        releases = frozenset(RELEASES[at] for span in spans for at in span)
        exceptions = frozenset(row.get("except", ()))
        sentences = frozenset(row["facts"])
        processor = next(iter(sentences & PROCESSORS), "")
        sentences -= PROCESSORS
        loads = row.get("loads", False)
        rule = Rule(row["operation"], sentences, processor, exceptions, releases, row["models"], loads)
        found.setdefault(rule.operation, []).append(rule)
    return found


def reasons(parsed: Parsed, report: Report, trace: Trace, processor: frozenset[str] = PROCESSORS) -> Iterator[Reason]:
    """Yield why releases do not load a model, layer by layer; ``examine`` gives ``report`` and ``trace``.

    A release that no reason names is expected to read the model and to compile it for the CPU. Rules about other
    processors than ``processor``, some of ``PROCESSORS``, are left out; by default, none are.
    """
    others = PROCESSORS - processor
    for fact in facts(parsed, report, trace):
        lacking = () if fact.layer is None else releases_without(fact.layer)
        if lacking:
            yield Reason("operation", fact, lacking)
        rules = [rule for name in ("", *fact.operations) for rule in _rules().get(name, ()) if rule.fits(fact)]
        rules = [rule for rule in rules if rule.processor not in others]
        seen = set(lacking)
        if fact.blocks:
            if releases := tuple(r for r in RELEASES if r not in excused(fact.sentences, rules)):
                seen.update(releases)
                yield Reason("error", fact, releases)
            rules = [rule for rule in rules if not rule.speaks_of_outputs]  # those of a layer with an error are unknown
        for rule in sorted((rule for rule in rules if not rule.loads), key=lambda rule: -rule.models):
            if releases := tuple(r for r in RELEASES if r in rule.releases and r not in seen):
                seen.update(releases)
                yield Reason("rule", fact, releases, rule)


def excused(sentences: Iterable[str], rules: Iterable[Rule]) -> frozenset[str]:
    """Return the releases that report none of the errors that irrun reports for a layer, by the rules that fit it."""
    found = [
        frozenset(release for rule in rules if rule.loads and error in rule.sentences for release in rule.releases)
        for error in sentences
        if error.startswith(_ERROR) and CODES[error.split()[2]].kind.blocks
    ]
    return frozenset(RELEASES).intersection(*found) if found else frozenset()


def releases_without(layer: Layer) -> tuple[str, ...]:
    """Return the measured releases that do not read the operation of a layer."""
    try:
        opset = opset_of(layer.version)
    except ValueError:
        return ()
    return tuple(release for release in RELEASES if not has_operation(release, layer.type, opset))

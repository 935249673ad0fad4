"""How often the rules are right: models that the table was not made of, against every installed release."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irrun.api import load
from irrun.checking.checker import examine
from irrun.diagnostics import IrrunError
from irrun.targets.releases import RELEASES
from irrun.targets.rules import Reason, reasons
from releases.probing import Answer

__all__ = ["Verdict", "judge", "predict"]


def predict(model: Path) -> dict[str, list[Reason]] | None:
    """Return why each release refuses a model, or None if irrun cannot read it: then every release is expected to."""
    try:
        parsed = load(model)
    except IrrunError:
        return None
    found: dict[str, list[Reason]] = {release: [] for release in RELEASES}
    for reason in reasons(parsed, *examine(parsed)):
        for release in reason.releases:
            found[release].append(reason)
    return found


@dataclass
class Verdict:
    """How predictions and answers agree, for each release, and the disagreements by their cause."""

    right: Counter[str] = field(default_factory=Counter)
    """Refusals that were predicted, by release."""
    missed: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    """Refusals that were predicted, and the release loads the model."""
    loaded: Counter[str] = field(default_factory=Counter)
    causes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Disagreements by kind, kind of model, and what the release or the rule says."""

    def figures(self) -> dict[str, Any]:
        """Return recall and precision of refusals, in all and for each release, as a dict for JSON."""
        rows = {r: _shares(self.right[r], self.missed[r], self.wrong[r], self.loaded[r]) for r in RELEASES}
        totals = [sum(count.values()) for count in (self.right, self.missed, self.wrong, self.loaded)]
        causes = [{"kind": k, "models": m, "cause": c, "count": n} for (k, m, c), n in self.causes.most_common(60)]
        return {"all": _shares(*totals), "releases": rows, "causes": causes}


def judge(models: Sequence[Path], answers: Mapping[str, Sequence[Answer | None]]) -> Verdict:
    """Return how the rules agree with what releases said. Answers of None are left out."""
    verdict = Verdict()
    for number, model in enumerate(models):
        expected = predict(model)
        kind = model.name.partition("-")[0]
        for release in RELEASES:
            answer = answers[release][number]
            if answer is None:
                continue
            why = None if expected is None else expected[release]
            refuses, refused = why is None or bool(why), bool(answer.stage)
            count = {
                (True, True): verdict.right, (False, True): verdict.missed,
                (True, False): verdict.wrong, (False, False): verdict.loaded,
            }[refuses, refused]  # fmt: skip
            count[release] += 1
            if refuses != refused:
                verdict.causes[("missed", kind, _said(answer)) if refused else ("wrong", kind, _because(why))] += 1
    return verdict


def _said(answer: Answer) -> str:
    return f"{answer.stage}: {answer.message[-120:]}"


def _because(why: Sequence[Reason] | None) -> str:
    if not why:
        return "irrun cannot read it"
    reason = why[0]
    operation = reason.facts.operations[-1] if reason.facts.operations else "the file"
    if reason.kind == "rule" and reason.rule is not None:
        return f"{operation}: {', '.join(sorted(reason.rule.sentences))}"
    codes = sorted(s for s in reason.facts.sentences if s.startswith("irrun reports"))
    return f"{operation}: {reason.kind} {', '.join(codes)}"


def _shares(right: int, missed: int, wrong: int, loaded: int) -> dict[str, Any]:
    return {
        "refused": right + missed,
        "loaded": loaded + wrong,
        "missed": missed,
        "wrong": wrong,
        "recall": round(right / (right + missed), 4) if right + missed else None,
        "precision": round(right / (right + wrong), 4) if right + wrong else None,
    }


def save(figures: Mapping[str, Any], path: Path) -> None:
    """Write figures to a file of ``docs/results``."""
    path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")

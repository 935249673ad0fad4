"""How often the rules are right: models that the table was not made of, against every installed release."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from irrun.api import load
from irrun.checking.checker import examine
from irrun.diagnostics import IrrunError
from irrun.targets.releases import RELEASES
from irrun.targets.rules import Reason, reasons, this_processor
from releases.probing import Answer

__all__ = ["judge", "predict"]


def predict(model: Path) -> dict[str, list[Reason]] | None:
    """Return why each release refuses a model on this processor, or None if irrun cannot read it.

    Every release is then expected to refuse it.
    """
    try:
        parsed = load(model)
    except IrrunError:
        return None
    found: dict[str, list[Reason]] = {release: [] for release in RELEASES}
    for reason in reasons(parsed, *examine(parsed), this_processor()):
        for release in reason.releases:
            found[release].append(reason)
    return found


_OUTCOMES: Final = {
    (True, True): "right", (False, True): "missed", (True, False): "wrong", (False, False): "loaded",
}  # fmt: skip
"""The outcomes by whether the rules expect a refusal, and whether the release refuses."""
_KINDS: Final = ("suite", "grown", "opset", "broken")
_MOST_CAUSES: Final = 13


def judge(models: Sequence[Path], answers: Mapping[str, Sequence[Answer]]) -> list[dict[str, Any]]:
    """Return how the rules agree with what releases said, as rows: in all, by kind of model, by release, and causes.

    ``missed`` refusals were not predicted, and ``wrong`` ones were predicted although the release loads the model.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    causes: Counter[tuple[str, str]] = Counter()
    asked = [release for release in RELEASES if release in answers]
    for number, model in enumerate(models):
        expected = predict(model)
        kind = model.name.partition("-")[0]
        for release in asked:
            answer = answers[release][number]
            why = None if expected is None else expected[release]
            outcome = _OUTCOMES[why is None or bool(why), bool(answer.stage)]
            for row in (("all", "all"), ("models", kind if kind in _KINDS else "other"), ("releases", release)):
                counts.setdefault(row, Counter())[outcome] += 1
            if outcome in ("missed", "wrong"):
                causes[outcome, _said(answer) if outcome == "missed" else _because(why)] += 1
    rows = [{"group": group, "name": name, **_shares(count)} for (group, name), count in sorted(counts.items())]
    common = causes.most_common(_MOST_CAUSES)
    return rows + [{"group": outcome, "name": text, "count": count} for (outcome, text), count in common]


def _said(answer: Answer) -> str:
    """Return the end of a message, without places in sources, names and numbers."""
    text = re.sub(r"(Exception from|Check '[^']*' failed at) \S+:\d+:?|'[^']*'|\[[^]]*\]|\d+", "", answer.message)
    return f"{answer.stage}: {' '.join(text.split()[-12:])}"


def _because(why: Sequence[Reason] | None) -> str:
    if not why:
        return "irrun cannot read it"
    reason = why[0]
    operation = reason.facts.operations[-1] if reason.facts.operations else "the file"
    if reason.kind == "rule" and reason.rule is not None:
        return f"{operation}: {', '.join(reason.rule.conditions)}"
    codes = sorted(s for s in reason.facts.sentences if s.startswith("irrun reports"))
    return f"{operation}: {reason.kind} {', '.join(codes)}"


def _shares(count: Mapping[str, int]) -> dict[str, Any]:
    right, missed, wrong, loaded = (count.get(key, 0) for key in ("right", "missed", "wrong", "loaded"))
    return {
        "refused": right + missed,
        "loads": loaded + wrong,
        "missed": missed,
        "wrong": wrong,
        "recall": round(right / (right + missed), 6) if right + missed else None,
        "precision": round(right / (right + wrong), 6) if right + wrong else None,
    }

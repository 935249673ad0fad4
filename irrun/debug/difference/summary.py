"""Summarize a difference by kind: how weights are stored, with their largest errors, and the types of layers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from irrun.debug.difference.constants import WeightsError
from irrun.debug.difference.layers import Change, Status, json_figure

__all__ = ["LayersRow", "Summary", "WeightsRow", "summarize"]


@dataclass(frozen=True, slots=True)
class WeightsRow:
    """The constants that are stored as ``a`` in the one model and as ``b`` in the other; both are None if alike.

    ``different`` of the ``weights`` have other values. ``max_abs`` and ``max_rel`` are the largest of their errors, or
    None without numbers; ``snr`` is the least signal-to-noise ratio, and ``worst`` the name of the weight that has it.
    """

    a: str | None
    b: str | None
    weights: int
    different: int
    max_abs: float | None
    max_rel: float | None
    snr: float | None
    worst: str


@dataclass(frozen=True, slots=True)
class LayersRow:
    """How many layers of a type are changed, added or removed, without those that follow and those in WeightsRows."""

    status: Status
    type: str
    layers: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A difference by kind, the rows of most layers first. ``follows`` counts the layers that follow from these."""

    weights: tuple[WeightsRow, ...]
    layers: tuple[LayersRow, ...]
    follows: int

    def record(self) -> dict[str, Any]:
        """Return the summary as a dict for JSON."""
        return {
            "weights": [
                {
                    "a": row.a,
                    "b": row.b,
                    "weights": row.weights,
                    "different": row.different,
                    "max_abs": json_figure(row.max_abs),
                    "max_rel": json_figure(row.max_rel),
                    "snr": row.snr,
                    "worst": row.worst,
                }
                for row in self.weights
            ],
            "layers": [{"status": row.status, "type": row.type, "layers": row.layers} for row in self.layers],
            "follows": self.follows,
        }


Entry = tuple[str, str, Status, tuple[Change, ...], bool]
"""The name, type, status and changes of a layer that differs, and whether it follows from another one."""


def summarize(entries: Iterable[Entry]) -> Summary:
    """Return the summary of the layers that differ."""
    weights: dict[tuple[str | None, str | None], list[tuple[str, WeightsError | None]]] = {}
    layers: Counter[tuple[Status, str]] = Counter()
    following = 0
    for name, type, status, changes, follows in entries:
        error = next((change.error for change in changes if change.kind == "weights"), None)
        stored = next(((change.a, change.b) for change in changes if change.kind == "stored"), None)
        if follows:
            following += 1
        elif error is not None or stored is not None:
            forms = stored or next(((c.a, c.b) for c in changes if c.kind == "precision"), (None, None))
            weights.setdefault(forms, []).append((name, error))
        else:
            layers[status, type] += 1
    rows = [_row(*forms, found) for forms, found in weights.items()]
    return Summary(
        tuple(sorted(rows, key=lambda row: -row.weights)),
        tuple(LayersRow(status, type, count) for (status, type), count in layers.most_common()),
        following,
    )


def _row(a: str | None, b: str | None, found: list[tuple[str, WeightsError | None]]) -> WeightsRow:
    errors = [(name, error) for name, error in found if error is not None]
    numbers = [(name, error) for name, error in errors if error.max_abs is not None]
    worst, least = min(numbers, key=lambda item: badness(item[1]), default=("", None))
    return WeightsRow(
        a, b, len(found), len(errors),
        max((error.max_abs or 0.0 for _, error in numbers), default=None),
        max((error.max_rel or 0.0 for _, error in numbers), default=None),
        None if least is None else least.snr, worst,
    )  # fmt: skip


def badness(error: WeightsError | None) -> tuple[float, float]:
    """Return a key that sorts errors from the worst to the least: by signal-to-noise ratio, then by the largest."""
    if error is None:
        return math.inf, 0.0
    if math.isinf(error.max_abs or 0.0):
        return -math.inf, 0.0
    return math.inf if error.snr is None else error.snr, -(error.max_abs or 0.0)

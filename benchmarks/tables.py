"""Tables of Markdown of stored results, which ``--save`` writes: ``python -m tools figures`` puts them into pages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

__all__ = ["comparisons", "fleet", "geometric_mean", "means", "milliseconds", "networks", "number", "origin", "speed"]

Stored = Mapping[str, Any]
"""A stored result: ``command``, ``date``, ``machine`` and ``rows``."""

DECODER: Final = "Llama"
"""How the names of the rows begin that are of the language model; the other rows are of the ten networks."""
TASK_MS: Final = 100
"""What a task of ``irrun batch`` takes on a worker, in ms: tasks grow up to 64 inputs."""

_ENGINES: Final = ("irrun", "numpy alone", "OpenVINO")
_WORKERS: Final = {
    "processes": "processes of `irrun batch`",
    "dask": "workers of a Dask cluster, whose scheduler is in the parent",
}


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def milliseconds(seconds: float) -> str:
    """Return a time in ms, with three digits."""
    value = seconds * 1e3
    return f"{value:.0f}" if value >= 1000 else f"{value:#.3g}".rstrip(".") if value >= 0.1 else f"{value:.4f}"


def number(value: float | None) -> str:
    """Return a ratio with two decimals; an empty text for None."""
    return "" if value is None else f"{value:.2f}"


def origin(stored: Stored) -> str:
    """Return the sentence that says where, when and how a result was measured."""
    machine, day = stored["machine"], date.fromisoformat(stored["date"])
    versions = [f"{name} {machine[key]}" for key, name in _VERSIONS.items() if key in machine]
    where = ", ".join([machine["cpu"], f"{machine['cores']} cores", *versions])
    return f"Measured on {day.day} {day:%B %Y}, {where}, with `{stored['command']}`."


_VERSIONS: Final = {"openvino": "OpenVINO", "numpy": "numpy"}


def networks(stored: Stored) -> str:
    """Return the table of the networks: times, ratios, error and memory."""
    titles = ["irrun ms", "numpy alone ms", "OpenVINO ms", "ratio", "of numpy alone", "error", "MB"]
    rows = (
        [
            row["name"],
            *(milliseconds(row["times"][name]["median"]) if name in row["times"] else "" for name in _ENGINES),
            number(row["ratio"]), number(row["numpy_ratio"]),
            "" if row["error"] is None else f"{row['error']:.0e}",
            *(f"{row['memory'][name] / 1e6:.0f}" if name in row["memory"] else "" for name in _ENGINES),
        ]
        for row in stored["rows"]
    )  # fmt: skip
    return f"{origin(stored)}\n\n{_table(['networks', *titles, 'numpy alone', 'OpenVINO'], 1, rows)}"


def means(results: Sequence[Stored]) -> str:
    """Return a table of the geometric means, the least and the largest ratios, by the number of threads."""
    rows = []
    for stored in results:
        for title, chosen in _groups(stored).items():
            ratios = [row["ratio"] for row in chosen]
            alone = geometric_mean(row["numpy_ratio"] for row in chosen)
            rows.append(
                [title, str(stored["machine"]["threads"]), number(geometric_mean(ratios)), number(min(ratios)),
                 number(max(ratios)), number(alone)]
            )  # fmt: skip
    return _table(["rows", "threads", "geometric mean", "least", "largest", "mean of numpy alone"], 1, rows)


def speed(results: Sequence[Stored]) -> str:
    """Return the table of the README: the ten networks, with and without compiled kernels."""
    machine, day = results[0]["machine"], date.fromisoformat(results[0]["date"])
    titles = ["OpenVINO's time divided by irrun's", *(f"threads: {stored['machine']['threads']}" for stored in results)]
    rows = [
        [title, *(_range([row[key] for row in _groups(stored)["the ten networks"]]) for stored in results)]
        for title, key in (("with the extra `fast`", "ratio"), ("without it", "numpy_ratio"))
    ]
    origin = f"{machine['cpu']}, {machine['cores']} cores, OpenVINO {machine['openvino']}, {day.day} {day:%B %Y}"
    head = f"Ten networks with f16 weights, computed in f32, geometric mean and range ({origin}):"
    return f"{head}\n\n{_table(titles, 1, rows)}"


def _range(ratios: Sequence[float]) -> str:
    return f"{number(geometric_mean(ratios))} ({number(min(ratios))} to {number(max(ratios))})"


def comparisons(stored: Stored) -> str:
    """Return the table of what ``irrun compare`` takes."""
    titles = [
        "network",
        "reference, candidate",
        "plain runs MB",
        "compare MB",
        "memory",
        "plain runs s",
        "compare s",
        "time",
    ]
    rows = (
        [
            row["network"], f"{row['reference']}, {row['candidate']}",
            " and ".join(map(str, row["plain_mb"])), str(row["mb"]), number(row["memory"]),
            " and ".join(f"{seconds:.1f}" for seconds in row["plain_s"]), f"{row['s']:.1f}", number(row["time"]),
        ]
        for row in stored["rows"]
    )  # fmt: skip
    return f"{origin(stored)}\n\n{_table(titles, 2, rows)}"


def fleet(stored: Stored) -> str:
    """Return the table of what handing out a task costs, and how many workers a parent can therefore feed."""
    titles = ["", "ms of the parent's processor for a task", f"workers fed with tasks of {TASK_MS} ms"]
    rows = ([_WORKERS[row["workers"]], f"{row['ms']:g}", f"{TASK_MS / row['ms']:.0f}"] for row in stored["rows"])
    return f"{origin(stored)}\n\n{_table(titles, 1, rows)}"


def _groups(stored: Stored) -> dict[str, list[Stored]]:
    ten = [row for row in stored["rows"] if not row["name"].startswith(DECODER)]
    decoder = [row for row in stored["rows"] if row["name"].startswith(DECODER)]
    return {"the ten networks": ten, "the decoder": decoder, "all rows": [*ten, *decoder]}


def _table(titles: Sequence[str], names: int, rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first ``names`` columns are texts, and whose other columns are numbers."""
    return "".join(f"{line}\n" for line in _lines(titles, names, rows))


def _lines(titles: Sequence[str], names: int, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield "| --- " * names + "| ---: " * (len(titles) - names) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"

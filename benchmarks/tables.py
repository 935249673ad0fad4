"""Tables of Markdown of stored results, which ``--save`` writes: ``python -m tools figures`` puts them into pages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

__all__ = [
    "LANES",
    "Lane",
    "comparisons",
    "disagreements",
    "exports",
    "fleet",
    "geometric_mean",
    "means",
    "milliseconds",
    "networks",
    "number",
    "origin",
    "releases",
    "served",
    "speed",
]

Stored = Mapping[str, Any]
"""A stored result: ``command``, ``date``, ``machine`` and ``rows``."""

DECODER: Final = "Llama"
"""How the names of the rows begin that are of the language model; the other rows are of the ten networks."""
TASK_MS: Final = 100
"""What a task of ``irrun batch`` takes on a worker, in ms: tasks grow up to 64 inputs."""

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


_VERSIONS: Final = {"openvino": "OpenVINO", "numpy": "numpy", "torch": "PyTorch", "onnxruntime": "onnxruntime"}


def networks(stored: Stored) -> str:
    """Return a table for each lane of the networks: times, ratios, errors and memory."""
    parts = [origin(stored)]
    for lane in LANES:
        rows = [(row, lane.texts(row)) for row in lane.rows(stored)]
        titles = [title for title in lane.titles if any(texts[title] for _, texts in rows)]
        if titles:
            table = _table(
                ["networks", *titles], 1, ([row["name"], *(texts[t] for t in titles)] for row, texts in rows)
            )
            parts.append(f"{lane.name}:\n\n{table}")
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


@dataclass(frozen=True)
class Lane:
    """A comparison in which both engines have the same freedom."""

    name: str
    forms: tuple[str, ...]
    """The forms of the weights, by which the names of its rows end."""
    ratio: str
    """The entry of a row that compares OpenVINO with irrun."""
    engines: tuple[str, ...]

    def rows(self, stored: Stored) -> list[Stored]:
        """Return the rows of a result that OpenVINO has run in this lane."""
        return [row for row in stored["rows"] if row["name"].endswith(self.forms) and row.get(self.ratio)]

    @property
    def titles(self) -> list[str]:
        """The columns of its table."""
        ratios = {"OpenVINO": "ratio", "OpenVINO as shipped": "ratio as shipped", "numpy alone": "ratio of numpy alone"}
        return [f"{name} {kind}" for kind in ("ms", "error", "MB") for name in self.engines] + [
            title for name, title in ratios.items() if name in self.engines
        ]

    def texts(self, row: Stored) -> dict[str, str]:
        """Return the cells of a row, by the titles of the columns."""
        return {title: number(row.get(key)) for title, key in _RATIOS.items()} | {
            f"{name} {kind}": text(row[entry][name]) if name in row.get(entry, ()) else ""
            for kind, (entry, text) in _KINDS.items()
            for name in self.engines
        }


_KINDS: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "ms": ("times", lambda times: milliseconds(times["median"])),
    "error": ("errors", lambda error: f"{error:.0e}"),
    "MB": ("memory", lambda size: f"{size / 1e6:.0f}"),
}
_RATIOS: Final = {"ratio": "ratio", "ratio as shipped": "shipped_ratio", "ratio of numpy alone": "numpy_ratio"}

LANES: Final = (
    Lane("f32 against f32, f16 weights", ("f16",), "ratio", ("irrun", "OpenVINO", "numpy alone")),
    Lane(
        "As shipped against as shipped, f16 weights", ("f16",), "shipped_ratio", ("irrun auto", "OpenVINO as shipped")
    ),
    Lane(
        "int8 and int4 weights",
        ("int8", "int4", "quantized"),
        "ratio",
        ("irrun", "OpenVINO", "irrun auto", "OpenVINO as shipped"),
    ),
)


def means(results: Sequence[Stored]) -> str:
    """Return a table of the geometric means, the least and the largest ratios, by lane and number of threads."""
    rows = []
    for stored in results:
        for lane in LANES:
            for title, chosen in _groups(lane.rows(stored)).items():
                ratios = [row[lane.ratio] for row in chosen]
                threads, mean = str(stored["machine"]["threads"]), geometric_mean(ratios)
                rows.append([lane.name, title, threads, number(mean), number(min(ratios)), number(max(ratios))])
    return _table(["lane", "rows", "threads", "geometric mean", "least", "largest"], 2, rows)


def speed(results: Sequence[Stored]) -> str:
    """Return the table of the README: the ten networks, with and without compiled kernels."""
    machine, day = results[0]["machine"], date.fromisoformat(results[0]["date"])
    columns = (f"{stored['machine']['cpu']}, threads: {stored['machine']['threads']}" for stored in results)
    titles = ["OpenVINO's time divided by irrun's", *columns]
    rows = [
        [
            title,
            *(_range([row[key] for row in _groups(LANES[0].rows(stored))["the ten networks"]]) for stored in results),
        ]
        for title, key in (("with the extra `fast`", "ratio"), ("without it", "numpy_ratio"))
    ]
    origin = f"{machine['cores']} cores, OpenVINO {machine['openvino']}, {day.day} {day:%B %Y}"
    head = f'Ten networks, lane "{LANES[0].name}", geometric mean and range ({origin}):'
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


def budgets(stored: Stored) -> str:
    """Return the table of budgets of error: a network has a row for f32, and then one for the engine as shipped."""
    pairs = list(zip(stored["rows"][::2], stored["rows"][1::2], strict=True))
    kinds = "f32", f"as shipped ({pairs[0][1]['precision']})"
    titles = ["network", "outputs of layers", *(f"{kind}: {what}" for kind in kinds for what in ("inside", "ratio"))]
    rows = (
        [
            full["network"], str(full["outputs"]), str(full["inside"]), f"{full['ratio']:.1f}", str(low["inside"]),
            f"{low['ratio']:.1f}",
        ]
        for full, low in pairs
    )  # fmt: skip
    return f"{origin(stored)}\n\n{_table(titles, 1, rows)}"


def fleet(stored: Stored) -> str:
    """Return the table of what handing out a task costs, and how many workers a parent can therefore feed."""
    titles = ["", "ms of the parent's processor for a task", f"workers fed with tasks of {TASK_MS} ms"]
    rows = ([_WORKERS[row["workers"]], f"{row['ms']:g}", f"{TASK_MS / row['ms']:.0f}"] for row in stored["rows"])
    return f"{origin(stored)}\n\n{_table(titles, 1, rows)}"


def exports(stored: Stored) -> str:
    """Return the table of networks that PyTorch and irrun have exported, each with its time in onnxruntime."""
    titles = ["network", "PyTorch's file ms", "irrun's file ms", "ratio", "largest difference"]
    rows = (
        [row["network"], f"{row['own']:.1f}", f"{row['irrun']:.1f}", f"{row['ratio']:.2f}", f"{row['error']:.0e}"]
        for row in stored["rows"]
    )
    return f"{origin(stored)}\n\n{_table(titles, 1, rows)}"


def served(stored: Stored) -> str:
    """Return the table of the families of language models: how each is rewritten, and how far its logits are apart."""
    titles = ["family", "operations", "schedules that agree", "tokens", "both forms in irrun", "irrun and OpenVINO"]
    rows = (
        [row["name"], "not rewritten", "", "", "", ""]
        if row["refusal"]
        else [
            row["name"], row["operations"], row["schedules"], str(row["tokens"]), f"{row['difference']:.1e}",
            f"{row['openvino']:.1e}",
        ]
        for row in stored["rows"]
    )  # fmt: skip
    return f"{origin(stored)}\n\n{_table(titles, 2, rows)}"


def releases(stored: Stored) -> str:
    """Return how often the rules about releases of OpenVINO are right, by kind of model and by release."""
    titles = ["", "refused", "missed", "recall", "load", "wrongly refused", "precision"]
    names = {"all": "all models and releases", "suite": "cases of the suite", "grown": "grown models"}
    names |= {"opset": "networks in several operation sets", "broken": "models with a fault", "other": "real models"}
    rows = [
        [
            names.get(row["name"], row["name"]), str(row["refused"]), str(row["missed"]), _percent(row["recall"]),
            str(row["loads"]), str(row["wrong"]), _percent(row["precision"]),
        ]
        for row in stored["rows"]
        if row["group"] in ("all", "models", "releases")
    ]  # fmt: skip
    return f"{origin(stored)}\n\n{_table(titles, 1, rows)}"


def disagreements(stored: Stored) -> str:
    """Return the most frequent causes of disagreements between the rules and the releases."""
    words = {"missed": "not predicted", "wrong": "predicted, but loads"}
    rows = [
        [words[row["group"]], _code(row["name"]), str(row["count"])] for row in stored["rows"] if row["group"] in words
    ]
    return _table(["refusal", "what the release says, or what the rule is about", "answers"], 2, rows)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _code(text: str) -> str:
    return f"`{text.replace('|', ' ').replace('`', ' ')}`"


def _groups(rows: Sequence[Stored]) -> dict[str, list[Stored]]:
    """Return the rows of the ten networks and of the decoder, without a group that has none."""
    ten = [row for row in rows if not row["name"].startswith(DECODER)]
    decoder = [row for row in rows if row["name"].startswith(DECODER)]
    return {title: found for title, found in (("the ten networks", ten), ("the decoder", decoder)) if found}


def _table(titles: Sequence[str], names: int, rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first ``names`` columns are texts, and whose other columns are numbers."""
    return "".join(f"{line}\n" for line in _lines(titles, names, rows))


def _lines(titles: Sequence[str], names: int, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield "| --- " * names + "| ---: " * (len(titles) - names) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"

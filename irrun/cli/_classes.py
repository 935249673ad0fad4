"""The likeliest classes of the outputs of a classifier, for ``irrun run --top N --labels FILE``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from rich.console import Console

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.cli._outputs import Output, number

__all__ = ["Scores", "read_labels", "scores", "show_classes"]

_MAX_ROWS: Final = 8
"""The most rows of an output, one for each input of a batch, whose classes are shown."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The likeliest classes of a row of an output: their indices, scores, probabilities, and labels if there are any.

    The probabilities are the softmax of the row, or the row itself if it is a distribution (``is_softmax`` is False).
    """

    output: str
    row: int
    classes: Sequence[int]
    scores: Sequence[float]
    probabilities: Sequence[float]
    labels: Sequence[str] | None
    is_softmax: bool

    def record(self) -> dict[str, Any]:
        """Return the classes as a dict for JSON."""
        labels = self.labels or [None] * len(self.classes)
        rows = zip(self.classes, labels, self.scores, self.probabilities)
        return {
            "output": self.output,
            "row": self.row,
            "classes": [dict(zip(("class", "label", "score", "probability"), row)) for row in rows],
        }


def read_labels(path: str) -> list[str]:
    """Return the names of classes from a file: one in each line, or a list or object in JSON.

    An object maps the index of a class to its name, or to a list that ends with it. Raises click.BadParameter.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
        if Path(path).suffix.lower() != ".json":
            return [line.strip() for line in text.rstrip().splitlines()]
        read: Any = json.loads(text)
        names = [read[str(index)] for index in range(len(read))] if isinstance(read, dict) else list(read)
        return [str(name[-1] if isinstance(name, list) else name) for name in names]
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except KeyError as error:
        reason = f"it has no class {error}"
    except (ValueError, TypeError, IndexError):
        reason = "it is neither text in UTF-8 with a name in each line, nor a list of names in JSON"
    raise click.BadParameter(f"cannot read {path}: {reason}", param_hint="--labels")


def scores(outputs: Sequence[Output], top: int, labels: Sequence[str] | None) -> list[Scores]:
    """Return the ``top`` classes of each row of the outputs that hold scores: [classes], or [rows, classes].

    Further dims may be 1, as in [1,1000,1,1]. With ``labels``, only outputs with as many classes count. Raises
    click.UsageError if no output holds scores.
    """
    found = [(output, rows) for output in outputs if (rows := _rows(output.array)) is not None]
    fitting = [(output, rows) for output, rows in found if labels is None or rows.shape[1] == len(labels)]
    if not fitting:
        shapes = ", ".join(f"[{','.join(map(str, output.array.shape))}]" for output in outputs)
        if not found:
            raise click.UsageError(f"no output holds scores of classes, [N] or [1,N]: the shapes are {shapes}")
        classes = ", ".join(f'"{printable(output.name)}" has {rows.shape[1]:,} classes' for output, rows in found)
        raise click.UsageError(f"--labels holds {counted(len(labels or ()), 'name')}, but {classes}")
    return [
        _likeliest(output.name, at, row, top, labels)
        for output, rows in fitting
        for at, row in enumerate(rows[:_MAX_ROWS])
    ]


def _rows(array: np.ndarray) -> np.ndarray | None:
    """Return the scores of each row as [rows, classes], or None if an output holds no scores of several classes."""
    if array.dtype.kind in "OUSb" or not array.size:
        return None
    dims = [dim for dim in array.shape[1:] if dim != 1]
    if array.ndim == 1 or (len(dims) == 1 and dims[0] > 1):
        rows = array.reshape(-1, array.shape[0] if array.ndim == 1 else dims[0]).astype(np.float64)
        return rows if rows.shape[1] > 1 and np.isfinite(rows).all() else None
    return None


def _likeliest(name: str, at: int, row: np.ndarray, top: int, labels: Sequence[str] | None) -> Scores:
    """Return the classes of a row with the highest scores; of equal ones, the first."""
    classes: list[int] = np.argsort(-row, kind="stable")[:top].tolist()
    is_softmax = bool(row.min() < 0 or abs(row.sum() - 1) > _SLACK)
    chances = np.exp(row - row.max()) / np.exp(row - row.max()).sum() if is_softmax else row
    named = None if labels is None else [labels[index] for index in classes]
    return Scores(name, at, classes, row[classes].tolist(), chances[classes].tolist(), named, is_softmax)


_SLACK: Final = 0.01
"""By how much the sum of probabilities, perhaps in f16, may differ from 1."""


def show_classes(out: Console, classes: Sequence[Scores]) -> None:
    """Print a table of the likeliest classes for each row of each output."""
    rows_of: Mapping[str, int] = {scores.output: scores.row + 1 for scores in classes}
    for scores in classes:
        place = f", row {scores.row}" if rows_of[scores.output] > 1 else ""
        _terminal.title(out, f'classes of "{printable(scores.output)}"{place}')
        chance = "softmax" if scores.is_softmax else "probability"
        columns = ["class", "score", chance, "label"]
        rows = [
            [str(index), number(score), f"{probability:.2%}"]
            for index, score, probability in zip(scores.classes, scores.scores, scores.probabilities)
        ]
        if scores.labels is None:
            columns.pop()
        else:
            rows = [[*row, label] for row, label in zip(rows, scores.labels)]
        _terminal.print_table(out, columns, rows, right=("class", "score", chance))

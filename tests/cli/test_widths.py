"""Tables in terminals of 60 to 200 columns: snapshots, names that stay different, and no number is ever broken.

``python -m tools snapshots`` writes the snapshots.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import irrun
from irrun import build as b
from irrun.cli import _execution, _results, _terminal, cli
from irrun.cli._names import shortened
from irrun.running.profile import Profile
from places import SAMPLES

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (60, 80, 100, 120, 200)


def terminal(width: int) -> Callable[..., Console]:
    """Return a function in place of ``_terminal.console``, for a terminal without colours."""

    def console(*, stderr: bool = False) -> Console:
        return _terminal._Console(
            file=sys.stderr if stderr else sys.stdout, width=width, force_terminal=True, force_interactive=False,
            color_system=None, markup=False, highlight=False, emoji=False, soft_wrap=True,
        )  # fmt: skip

    return console


def layers(width: int, patch: pytest.MonkeyPatch) -> str:
    patch.setattr(_terminal, "console", terminal(width))
    result = CliRunner().invoke(cli, ["show", str(SAMPLES / "convnet.xml"), "--layers"])
    assert result.exit_code == 0, result.output
    return result.stdout[result.stdout.index("layers\n") :]


def runs(width: int, patch: pytest.MonkeyPatch) -> str:
    """The times of runs that take 1, 2, 3, … milliseconds by a clock of the test."""
    patch.setattr(_terminal, "console", terminal(width))
    ticks = itertools.accumulate(number // 2 * 1e-3 if number % 2 else 1.0 for number in itertools.count(2))
    patch.setattr(_execution, "time", SimpleNamespace(perf_counter=lambda: next(ticks), monotonic=time.monotonic))
    result = CliRunner().invoke(cli, ["run", str(SAMPLES / "convnet.xml"), "--runs", "11"])
    assert result.exit_code == 0, result.output
    return result.stdout[result.stdout.index("times\n") :]


STEPS: Sequence[tuple[str, str, str, int, float]] = [
    ("/model/layers.0/self_attn/rotary_emb/Constant_1", "Concat", "", 0, 0.000012),
    ("/model/layers.0/self_attn/q_proj/MatMul", "MatMul", "packed u4", 2_000_000_000, 0.0123456),
    ("/model/layers.0/mlp/gate_proj/MatMul", "MatMul+Swish+Multiply", "packed u4", 8_000_000_000, 0.0453),
    ("/model/layers.10/mlp/down_proj/MatMul_with_a_name_that_no_terminal_shows_whole", "MatMul", "", 4 * 10**9, 1.25),
]


def profile(width: int, patch: pytest.MonkeyPatch) -> str:
    clock = iter([moment for at, (*_, took) in enumerate(STEPS) for moment in (float(at * 2), at * 2 + took)])
    patch.setattr(time, "perf_counter", lambda: next(clock))
    measured = Profile()
    for name, type, algorithm, flops, _ in STEPS:
        step: Any = SimpleNamespace(
            layers=tuple(SimpleNamespace(name=name, type=part, node=0) for part in type.split("+")),
            kernel=SimpleNamespace(algorithm=algorithm, flops=flops, out="whole"),
        )
        arrays = [np.zeros((1000, 1000), np.float32)]
        measured.before(step, arrays)
        measured.after(step, arrays, arrays)
    with CliRunner().isolation() as streams:
        _results._print_profile(terminal(width)(), measured, {}, 20)
        sys.stdout.flush()
        return re.sub(r"matrix products: \w+", "matrix products: …", streams[0].getvalue().decode())


TABLES = {"layers": layers, "runs": runs, "profile": profile}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_snapshot(table: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TABLES[table](width, monkeypatch)
    assert text == (SNAPSHOTS / f"{table}-{width}.txt").read_text("utf-8")
    assert all(
        len(line) <= width
        for line in text.splitlines()
        if line.startswith("  ") and not line.startswith(("  (", "  13 layers"))
    )


# ---------------------------------------------------------------------------------------------
# every command, with the names that converters write


Table = tuple[Sequence[str], Sequence[Sequence[Any]], dict[str, Any]]


def bert_names(layers: int) -> list[str]:
    """Return names of layers as the converter of PyTorch writes them for BERT."""
    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
    parts += ["attention.output.dense", "intermediate.dense", "output.dense"]
    kinds = ("aten::linear/MatMul", "aten::linear/Add")
    return [
        f"__module.bert.encoder.layer.{number}.{part}/{kind}"
        for number in range(layers)
        for part in parts
        for kind in kinds
    ]


def llama_names(layers: int) -> list[str]:
    """Return names of layers as the converter writes them for Llama."""
    parts = [f"self_attn.{part}_proj/ov_ext::linear/MatMul" for part in "qkvo"]
    parts += [f"mlp.{part}_proj/ov_ext::linear/MatMul" for part in ("gate", "up", "down")]
    parts += [f"{part}_layernorm/aten::mul/Multiply{end}" for part in ("input", "post_attention") for end in ("", "_1")]
    return [f"__module.model.layers.{number}.{part}" for number in range(layers) for part in parts]


def chain(names: Sequence[str], folder: Path, *, scale: float = 0.5) -> str:
    """Save a model with a layer for each name, of the type that the name ends with, and return its path."""
    x = b.parameter([1, 8], "f32", name="input_ids")
    value: Any = x
    weights = np.eye(8, dtype=np.float32) * np.float32(scale)
    for name in names:
        if "MatMul" in name:
            value = b.MatMul(value, weights, name=name)
        elif "Add" in name:
            value = b.Add(value, weights[:1], name=name)
        else:
            value = b.Multiply(value, weights[:1], name=name)
    path = folder / f"{scale}.xml"
    irrun.save_model(b.model(value), path)
    return str(path)


def tables(*arguments: str) -> list[Table]:
    """Return the columns, rows and options of each table that a command prints."""
    found: list[Table] = []

    def record(out: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]], **options: Any) -> None:
        found.append((columns, rows, options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_terminal, "print_table", record)
        result = CliRunner().invoke(cli, arguments)
    assert result.exit_code in (0, 1), result.output
    assert found
    return found


def rendered(table: Table, width: int, patch: pytest.MonkeyPatch) -> list[str]:
    with CliRunner().isolation() as streams:
        columns, rows, options = table
        _terminal.print_table(terminal(width)(), columns, rows, **options)
        sys.stdout.flush()
        return streams[0].getvalue().decode().splitlines()


COMMANDS: dict[str, Callable[[str, str], Sequence[str]]] = {
    "show": lambda model, other: ["show", model, "--layers"],
    "run": lambda model, other: ["run", model, "--profile", "--tap", "*MatMul*"],
    "compare": lambda model, other: ["compare", model, other],
    "precision": lambda model, other: ["precision", model, "--no-search", "--top", "500"],
    "summary": lambda model, other: ["check", model, other, "--summary"],
}


def hold(table: Table, width: int, patch: pytest.MonkeyPatch) -> None:
    """Assert that each row is one line, names differ as before, and each number is whole or in a column left out."""
    columns, rows, options = table
    if options.get("is_prose"):
        return
    head, *lines = rendered(table, width, patch)
    note = lines.pop() if len(lines) > len(rows) else ""
    assert len(lines) == len(rows)
    shown = [title for title in columns if title and f" {title} " in f" {head} "]
    assert all(title in note for title in columns if title not in shown), (head, note)
    assert max(map(len, lines)) <= width
    start = head.index(columns[0])
    end = next(
        (
            head.index(f"  {title}")
            for title in shown[1:2]
            if columns[1] == title and title not in options.get("right", ())
        ),
        None,
    )
    if end is not None:
        whole = [str(row[0]) for row in rows]
        names = [line[start:end].strip() for line in lines]
        assert len(set(names)) == len(set(whole)), [name for name in names if names.count(name) > 1][:4]
    for line, row in zip(lines, rows):
        numbers = [set(re.findall(r"\d+(?:\.\d+)?", text)) for text in (line, " ".join(map(str, row)))]
        assert numbers[0] <= numbers[1], (line, row)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("names", [bert_names, llama_names])
def test_names_differ_in_every_command(
    names: Callable[[int], list[str]], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, other = (chain(names(12), tmp_path, scale=scale) for scale in (0.5, 0.25))
    for table in tables(*COMMANDS[command](model, other)):
        for width in (60, 80, 100, 120):
            hold(table, width, monkeypatch)


def test_ten_thousand_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = llama_names(910)
    assert len(names) > 10_000
    table = tables("show", chain(names, tmp_path), "--layers")[-1]
    for width in (60, 120):
        hold(table, width, monkeypatch)


@pytest.mark.parametrize("width", [0, 1, 8, 12, 16, 24, 40])
def test_shortened_names(width: int) -> None:
    same = ["a" * 49, "a" * 50, "a" * 51, "a" * 50 + "1", "a" * 50 + "12", "层" * 30, "层" * 31]
    odd = ["", "…", "x", "a/b", "a.b", *same]
    names = [*bert_names(12), *llama_names(12), *odd, *odd]
    short = shortened(names, width)
    assert len(set(zip(names, short))) == len(set(names)) == len(set(short))
    for name, text in zip(names, short):
        assert {*re.findall(r"\d+", text.partition("#")[0])} <= {*re.findall(r"\d+", name)}
        assert text == name or "…" in text
    if width >= 40:
        assert all(len(text) <= width for name, text in zip(names, short) if name not in same)


def test_the_middle_of_a_name_is_left_out() -> None:
    names = [f"/model/layers.{number}/mlp/{part}_proj/MatMul" for number in range(3) for part in ("up", "down")]
    assert shortened(names, 24)[:2] == ["/model…0…up_proj/MatMul", "/model…0/mlp/down…MatMul"]
    assert shortened(names, 100) == names


@pytest.mark.parametrize("table", TABLES)
def test_no_number_is_broken(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every width, a row is one line, and each number in it is one of the row in a wide terminal."""
    whole = _rows(TABLES[table](400, monkeypatch))
    for width in range(42, 220, 3):
        shown = _rows(TABLES[table](width, monkeypatch))
        assert len(shown) == len(whole), width
        for row, complete in zip(shown, whole):
            assert set(_numbers(row)) <= set(_numbers(complete)), (width, row)


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("  ") and not line.startswith("  (")]


def _numbers(row: str) -> list[str]:
    return re.findall(r"\d[\d.]*", row)


def test_a_pipe_gets_the_whole_table() -> None:
    """Without a terminal, nothing is cut and no column is left out."""
    result = CliRunner().invoke(cli, ["show", str(SAMPLES / "convnet.xml"), "--layers"])
    assert "kernel=2,2 rounding_type=floor auto_pad=explicit" in result.stdout
    assert "…" not in result.stdout


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for name, function in TABLES.items():
        for columns in WIDTHS:
            with pytest.MonkeyPatch.context() as context:
                (SNAPSHOTS / f"{name}-{columns}.txt").write_text(function(columns, context), "utf-8")

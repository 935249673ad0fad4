"""Tables in terminals of 60 to 200 columns: snapshots, names that stay different, and no number is ever broken.

``python -m tools snapshots`` writes the snapshots.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
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
from irrun.cli import _execution, _results, _terminal, cli
from irrun.cli._names import shortened
from irrun.running.profile import Profile
from named_networks import bert, llama
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bert.xml"
        irrun.save_model(bert(2), path)
        result = CliRunner().invoke(cli, ["show", str(path), "--layers"])
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
            parts=None,
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
    assert all(len(line) <= width for line in _rows(text))


# ---------------------------------------------------------------------------------------------
# every command, with the names that converters write


Table = tuple[Sequence[str], Sequence[Sequence[Any]], dict[str, Any]]


def llama_names(layers: int) -> list[str]:
    """Return names of layers as the converter writes them for Llama."""
    parts = [f"self_attn.{part}_proj/ov_ext::linear/MatMul" for part in "qkvo"]
    parts += [f"mlp.{part}_proj/ov_ext::linear/MatMul" for part in ("gate", "up", "down")]
    parts += [f"{part}_layernorm/aten::mul/Multiply{end}" for part in ("input", "post_attention") for end in ("", "_1")]
    return [f"__module.model.layers.{number}.{part}" for number in range(layers) for part in parts]


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
    "run": lambda model, other: ["run", model, "--profile", "--top", "500", "--tap", "*MatMul*"],
    "compare": lambda model, other: ["compare", model, other],
    "bisect": lambda model, other: ["bisect", model, other],
    "precision": lambda model, other: ["precision", model, "--no-search", "--top", "500"],
    "check": lambda model, other: ["check", model, other, "--summary"],
    "statistics": lambda model, other: ["check", str(SAMPLES / "wrong_dim.xml"), "--statistics"],
}


def hold(table: Table, width: int, patch: pytest.MonkeyPatch) -> None:
    """Assert that each row is a line, names differ as before, and each number is whole or in a column left out."""
    columns, rows, options = table
    if options.get("is_prose"):
        return
    head, *lines = rendered(table, width, patch)
    assert max(map(len, lines)) <= width
    lines, note = lines[: len(rows)], " ".join(line.strip() for line in lines[len(rows) :])
    head += "  "
    places = {title: head.index(f"  {title}  ") + 2 for title in columns if title and f"  {title}  " in head}
    left_out = [title for title in columns if title and title not in places]
    said = re.fullmatch(r"columns left out: (.*); use a wider terminal or --format json", note)
    assert sorted(said[1].split(", ") if said else []) == sorted(left_out)
    for number, title in enumerate(columns):
        if title in places and title in _terminal._NAMES:
            whole = [str(row[number]) for row in rows]
            names = [re.split("  +", f"{line}  "[places[title] :], maxsplit=1)[0] for line in lines]
            assert len(set(zip(names, whole))) == len(set(names)) == len(set(whole)), title
    for line, row in zip(lines, rows):
        numbers = [set(re.findall(r"\d+(?:\.\d+)?", text)) for text in (line, " ".join(map(str, row)))]
        assert numbers[0] <= numbers[1], (line, row)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Return the paths of two models of each network, which differ in all weights."""
    folder = tmp_path_factory.mktemp("named")
    for network in (bert, llama):
        for seed in (0, 1):
            irrun.save_model(network(12, seed=seed), folder / f"{network.__name__}{seed}.xml")
    return {name: (str(folder / f"{name}0.xml"), str(folder / f"{name}1.xml")) for name in ("bert", "llama")}


@pytest.mark.parametrize(
    ("network", "command"), [*(("bert", command) for command in COMMANDS), ("llama", "show"), ("llama", "run")]
)
def test_names_differ_in_every_command(
    network: str, command: str, models: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in tables(*COMMANDS[command](*models[network])):
        for width in (60, 80, 100, 120):
            hold(table, width, monkeypatch)


def test_names_differ_in_what_openvino_runs(
    ov: Any, models: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in tables("runtime", models["bert"][0], "--all"):
        for width in (60, 80, 100, 120):
            hold(table, width, monkeypatch)


def test_the_beginning_that_most_names_share_is_left_out() -> None:
    names = [layer.name for layer in bert().layers.values() if "::" in layer.name]
    short = dict(zip(names, shortened(names, 44)))
    name = "__module.bert.encoder.layer.4.attention.self.value/aten::linear/Add"
    assert short[name] == "…layer.4.attention.self.value…linear/Add"


def test_ten_thousand_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    names = llama_names(910)
    assert len(names) > 10_000
    rows = [(name, name.rpartition("/")[2], str(number), f"{number / 7:.3f}") for number, name in enumerate(names)]
    hold((("layer", "type", "line", "ms"), rows, {"right": ("line", "ms")}), 80, monkeypatch)


@pytest.mark.parametrize("width", [0, 1, 8, 12, 16, 24, 40])
def test_shortened_names(width: int) -> None:
    same = ["a" * 49, "a" * 50, "a" * 51, "a" * 50 + "1", "a" * 50 + "12", "层" * 30, "层" * 31]
    odd = ["", "…", "x", "a/b", "a.b", *same]
    names = [*(layer.name for layer in bert().layers.values()), *llama_names(12), *odd, *odd]
    short = shortened(names, width)
    assert len(set(zip(names, short))) == len(set(names)) == len(set(short))
    for name, text in zip(names, short):
        assert {*re.findall(r"\d+", text.partition("#")[0])} <= {*re.findall(r"\d+", name)}
        assert text == name or "…" in text
    if width >= 40:
        assert all(len(text) <= width for name, text in zip(names, short) if name not in same)


def test_the_middle_of_a_name_is_left_out() -> None:
    names = [f"/model/layers.{number}/mlp/{part}_proj/MatMul" for number in range(3) for part in ("up", "down")]
    assert shortened(names, 24)[:2] == ["…layers.0…up_proj/MatMul", "…layers.0…down…MatMul"]
    assert shortened(names, 100) == names


@pytest.mark.parametrize("table", TABLES)
def test_no_number_is_broken(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every width, a row is one line, and each number in it is one of the row in a wide terminal."""
    whole = _rows(TABLES[table](400, monkeypatch))
    for width in range(42, 220, 8):
        shown = _rows(TABLES[table](width, monkeypatch))
        assert len(shown) == len(whole), width
        for row, complete in zip(shown, whole):
            assert set(_numbers(row)) <= set(_numbers(complete)), (width, row)


def _rows(text: str) -> list[str]:
    """Return the rows of a table: without the note on columns that are left out, and the sum."""
    table = re.sub(r"  columns left out: [^;]*;[^j]*json\n|  \d+ layers of .*\n", "", text)
    return [line for line in table.splitlines() if line.startswith("  ")]


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

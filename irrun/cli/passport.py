"""``irrun passport`` (look): Show what a model needs, and which releases load it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import click

from irrun.api import load
from irrun.base.text import counted, human, printable
from irrun.checking.checker import examine
from irrun.cli import _completion, _terminal
from irrun.cli._options import format_option, plugin_option, weights_option
from irrun.diagnostics import IrrunError
from irrun.engines.opening import open as open_engine
from irrun.engines.outcomes import Loaded, Outputs
from irrun.ir.parse import Parsed
from irrun.running.generate import draw
from irrun.running.live import default_max_memory
from irrun.running.memory import predicted
from irrun.targets.passport import passport
from irrun.targets.releases import span

__all__ = ["command"]

_MIN_TEXT_CHARS: Final = 30
"""The least width to which texts are wrapped."""


@click.command("passport")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@plugin_option
@click.option(
    "--try",
    "sides",
    metavar="ENGINE",
    multiple=True,
    help="Also load and run the model on an engine, such as openvino, with random inputs. May be repeated.",
)
@format_option("text", "json", "markdown")
def command(model: str, weights: str | None, sides: Sequence[str], form: str) -> int:
    """Show what a model needs, and which releases load it.

    The page lists operations with the first release that reads each, element types, memory, state, and whether shapes
    are static. For each measured release it says whether the release loads the model on the CPU, or why not. What it
    says of NPU and GPU comes from their documentation.
    """
    item = load(model, weights)
    record = {"digest": _digest(model, item), **passport(item, *examine(item)), "memory": _memory(item)}
    record["tried"] = [_tried(side, model, item) for side in sides]
    if form == "json":
        _terminal.print_json(record)
    else:
        for line in _markdown(model, record) if form == "markdown" else _text(model, record):
            click.echo(printable(line))
    return 0


def _digest(model: str, item: Parsed) -> dict[str, str | None]:
    """Return the SHA-256 digests of the .xml and of the .bin."""
    path = item.model.weights.path if item.model.weights else None
    return {"xml": _sha256(Path(model)), "bin": _sha256(Path(path)) if path else None}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _memory(item: Parsed) -> int | None:
    """Return the bytes that a run of irrun takes at most, or None if that depends on the inputs or it cannot run."""
    try:
        prediction = predicted(item.runnable(), default_max_memory(), {})
    except IrrunError:
        return None
    return None if prediction is None else prediction.total


def _tried(side: str, path: str, item: Parsed) -> dict[str, Any]:
    """Return what an engine did with the model: its name, and ``loads``, ``runs`` and a message."""
    with open_engine(side) as engine:
        loaded = engine.load(path)
        tried: dict[str, Any] = {"engine": engine.name, "loads": isinstance(loaded, Loaded), "runs": False}
        if not isinstance(loaded, Loaded):
            return {**tried, "message": _said(loaded)}
        run = engine.infer(dict(enumerate(draw(item.runnable(), 0).values())))
        ok = isinstance(run, Outputs)
        return {**tried, "runs": ok, "message": "" if ok else _said(run)}


def _said(failure: Any) -> str:
    text = getattr(failure, "message", "") or getattr(failure, "cause", "") or "it did not answer in time"
    return text.strip().splitlines()[-1]


def _digests(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the digest of each file as a name and a text."""
    return [(f"{kind} sha256", digest) for kind, digest in record["digest"].items() if digest]


def _needs(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the model is and needs, as rows of a name and a text."""
    yield "IR version", str(record["ir_version"])
    yield "shapes", "static" if record["is_static"] else "dynamic"
    yield "state", counted(len(record["variables"]), "variable") if record["variables"] else "none"
    yield "element types", ", ".join(record["types"])
    yield "weights", human(record["weight_bytes"])
    yield "memory", "depends on the inputs" if record["memory"] is None else f"{human(record['memory'])} in irrun"


def _where(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield which releases load the model, and which do not and why: neighbours with the same reasons together."""
    for why, rows in groupby(record["releases"], key=lambda row: tuple(row["reasons"])):
        text = "loads it"
        if why:
            reason = record["reasons"][why[0]]
            layer = f'"{reason["layer"]}", ' if reason["layer"] else ""
            text = f"{reason['text']} ({layer}line {reason['line']})"
            text += f", and {counted(len(why) - 1, 'more reason')}" if len(why) > 1 else ""
        yield f"OpenVINO {span(row['release'] for row in rows)}", text
    for device in record["devices"]:
        first, *others = device["limits"] or ["no documented limit is known to irrun"]
        yield device["device"], first + (f", and {counted(len(others), 'more reason')}" if others else "")
    for tried in record["tried"]:
        result = (
            "loads and runs it"
            if tried["runs"]
            else "loads it, and does not run it"
            if tried["loads"]
            else "refuses it"
        )
        yield f"tried: {tried['engine']}", f"{result}{': ' if tried['message'] else ''}{tried['message']}"


def _text(model: str, record: Mapping[str, Any]) -> Iterator[str]:
    yield f"{record['name']}  {model}"
    yield from (f"  {name}  {digest}" for name, digest in _digests(record))
    rows = [*_needs(record), *_where(record)]
    width = max(len(name) for name, _ in rows)
    room = max(_terminal.console().width - width - 4, _MIN_TEXT_CHARS)
    for name, text in rows:
        for number, line in enumerate(wrap(text, room, break_on_hyphens=False)):
            yield f"  {'' if number else name:<{width}}  {line}"
    yield "operations"
    operations = [(f"{o['type']} ({o['version']})", o["count"], o["since"] or "no opset") for o in record["operations"]]
    width = max(len(name) for name, _, _ in operations)
    yield from (f"  {name:<{width}}  {count:>5}  since {since}" for name, count, since in operations)


def _markdown(model: str, record: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {record['name']}"
    yield ""
    yield from ("| | |", "| --- | --- |", f"| file | `{model}` |")
    yield from (f"| {name} | {_cell(text)} |" for name, text in (*_digests(record), *_needs(record)))
    yield from ("", "## Where it loads", "", "| where | result |", "| --- | --- |")
    yield from (f"| {name} | {_cell(text)} |" for name, text in _where(record))
    yield from ("", "## Operations", "", "| operation | version | layers | since |", "| --- | --- | ---: | --- |")
    for row in record["operations"]:
        yield f"| {row['type']} | {row['version']} | {row['count']} | {row['since'] or 'no opset'} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

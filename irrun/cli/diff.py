"""``irrun diff`` (compare): Show where two models differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from irrun import api
from irrun.base.text import counted, printable
from irrun.cli import _completion, _errors, _terminal
from irrun.cli._options import format_option, plugin_option
from irrun.debug.difference import Change, Difference, LayerDifference, Place, diff
from irrun.diagnostics import IrrunError

__all__ = ["command"]


@click.command("diff")
@click.argument("a", metavar="A.xml", shell_complete=_completion.files)
@click.argument("b", metavar="B.xml", shell_complete=_completion.files)
@click.option("--weights-a", metavar="BIN", help="The .bin file of A. [default: next to the .xml, with the same name]")
@click.option("--weights-b", metavar="BIN", help="The .bin file of B. [default: next to the .xml, with the same name]")
@click.option("--rt-info", is_flag=True, help="Also compare rt_info and other elements that irrun does not use.")
@click.option("--all", "everything", is_flag=True, help="Also list layers that differ only because their inputs do.")
@plugin_option
@format_option("text", "json")
def command(
    a: str, b: str, weights_a: str | None, weights_b: str | None, rt_info: bool, everything: bool, form: str
) -> int:
    """Show where two models differ.

    Layers are matched by name, then by type, attributes, shapes, weights and neighbours. Ids, the order of layers, and
    the places of weights in the .bin make no difference. Weights are compared by value, in blocks. If a model has no
    .bin, the rest is compared. Layers of which only the declared shapes or precisions differ, because those of their
    inputs do, are counted and not listed.

    Exit status: 0 the models are the same, 1 they differ, 2 bad usage, an unreadable file, or an error in a model.
    """
    try:
        difference = diff(api.read_model(a, weights_a), api.read_model(b, weights_b), rt_info=rt_info)
    except IrrunError as error:
        status = max(2, _errors.exit_status(error.diagnostics))
        _errors.show(error.diagnostics)
        if form == "json":
            _errors.print_json("diff", status, str(error), error)
        return status
    if form == "json":
        _terminal.print_json(difference.record())
    else:
        _print(_terminal.console(), difference, everything=everything)
    return 0 if difference.same else 1


def _print(out: Console, difference: Difference, *, everything: bool) -> None:
    """Print the layers that differ, and below them what was not compared and how many layers differ."""
    if difference.model:
        out.print(Text("model", "bold"))
        _print_changes(out, difference.model)
        out.print()
    listed = [layer for layer in difference.layers if everything or not layer.follows]
    for number, layer in enumerate(listed):
        if number and (layer.changes or listed[number - 1].changes):
            out.print()
        _print_layer(out, layer)
    if listed:
        out.print()
    if difference.uncompared:
        lacking = " and ".join(printable(path) for path in difference.without_weights)
        verb = "has" if len(difference.without_weights) == 1 else "have"
        values = counted(difference.uncompared, "constant")
        out.print(f"{lacking} {verb} no .bin; the values of {values} were not compared")
    statuses = [layer.status for layer in difference.layers if not layer.follows]
    counts = [
        f"{statuses.count(status)} {word}"
        for status, word in (
            ("changed", "changed"),
            ("removed", f"only in {printable(difference.a)}"),
            ("added", f"only in {printable(difference.b)}"),
        )
        if statuses.count(status)
    ]
    if statuses:
        verb = "differs" if len(statuses) == 1 else "differ"
        out.print(f"{counted(len(statuses), 'layer')} {verb}: {', '.join(counts)}")
    if following := len(difference.layers) - len(statuses):
        verb = "follows" if following == 1 else "follow"
        shown = "" if everything else "; list them with --all"
        out.print(f"{counted(following, 'more layer')} {verb} from these, by shape or precision alone{shown}")
    elif difference.same:
        out.print("no other differences" if difference.uncompared else "no differences")


_MARKS: Final = {"changed": ("~", "bold"), "removed": ("-", "bold red"), "added": ("+", "bold green")}


def _print_layer(out: Console, layer: LayerDifference) -> None:
    mark, style = _MARKS[layer.status]
    places = [place for place in (layer.a, layer.b) if place is not None]
    title = Text(f"{mark} {_title(places[0])}", style)
    lines = ", ".join(f"{printable(p.file)}:{p.line}" if p.line else printable(p.file) for p in places)
    out.print(title + Text(f"  {lines}", "dim"))
    _print_changes(out, layer.changes)
    if layer.changes and layer.by == "order":
        out.print(Text("    paired by order: nothing else tells this layer from others of its type", "dim"))


def _title(place: Place) -> str:
    inside = f" in {printable(place.inside)}" if place.inside else ""
    return f'{printable(place.type)} "{printable(place.name)}"{inside}'


def _print_changes(out: Console, changes: Sequence[Change]) -> None:
    names = [printable(_name(change)) for change in changes]
    width = max(map(len, names), default=0)
    for name, change in zip(names, changes):
        line = Text(f"    {name:<{width}}  ")
        if change.error is None:
            line += Text(_side(change.a), "red") + Text(" → ") + Text(_side(change.b), "green")
        else:
            line += Text(_figures(change))
        out.print(line)


_WORDS: Final = {
    "ir_version": "IR version",
    "tensor_names": "tensor names",
    "ports": "number of",
    "edge": "reads",
    "port_map": "port map",
    "back_edges": "back edge",
}


def _name(change: Change) -> str:
    """Return what a change concerns: the name of an attribute, or ``output 0 shape``."""
    word = _WORDS.get(change.kind, change.kind)
    if change.kind == "attribute":
        return change.what
    if change.kind in ("port_map", "body", "rt_info"):
        return change.what
    if change.kind == "ports":
        return f"{word} {change.what}"
    return f"{change.what} {word}".strip()


_MAX_VALUE_CHARS: Final = 200
"""The most characters of a value that are printed."""


def _side(text: str | None) -> str:
    if text is None:
        return "nothing"
    shown = text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}…"
    return printable(shown) or '""'


def _figures(change: Change) -> str:
    """Return the figures of an error of weights."""
    error = change.error
    if error is None:
        return ""
    share = f"{error.different:,} of {_elements(error.elements)} ({100 * error.share:.3g} %) differ"
    if error.max_abs is None or error.max_rel is None:
        return share
    worst = f" at [{','.join(map(str, error.worst))}]" if error.worst else ""
    return f"{share}, max abs {error.max_abs:.6g}{worst}, max rel {error.max_rel:.6g}"


def _elements(number: int) -> str:
    return f"{number:,} element{'' if number == 1 else 's'}"

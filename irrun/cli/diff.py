"""``irrun diff`` (compare): Show where two models, or the graphs of engines, differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from irrun import api
from irrun.base.text import counted, printable
from irrun.cli import _completion, _errors, _runtime_difference, _terminal
from irrun.cli._comparison_options import LimitOptions, limit_options
from irrun.cli._exclusions import Exclusion, refuse
from irrun.cli._input_options import input_option, seed_option
from irrun.cli._inputs import gather
from irrun.cli._options import all_option, format_option, plugin_option, runs_option
from irrun.cli._settings import with_settings
from irrun.debug.difference import Change, Difference, LayerDifference, Place, WeightsRow, badness, diff
from irrun.debug.runtime import Runtime, RuntimeDifference, difference, runtime
from irrun.diagnostics import IrrunError
from irrun.engines import names_engine, parse_sides

__all__ = ["command"]


_EXCLUSIONS: Final = (
    Exclusion(
        ("-i", "--runs", "--seed", "--timeout", "--max-memory"),
        "{option} is for engines, and nothing runs; write openvino:MODEL.xml for a side, or leave {option} out",
        others=("files",),
    ),
    Exclusion(("--rt-info",), "--rt-info compares files; pass two files, or leave it out", others=("engines",)),
)


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun diff``."""

    a: str
    b: str
    weights_a: str | None
    weights_b: str | None
    rt_info: bool
    everything: bool
    inputs: Sequence[str]
    seed: int
    runs: int
    limit: LimitOptions
    form: str


@click.command("diff")
@click.argument("a", metavar="A", shell_complete=_completion.files)
@click.argument("b", metavar="B", shell_complete=_completion.files)
@click.option("--weights-a", metavar="BIN", help="The .bin file of A. [default: next to the .xml, with the same name]")
@click.option("--weights-b", metavar="BIN", help="The .bin file of B. [default: next to the .xml, with the same name]")
@click.option("--rt-info", is_flag=True, help="Also compare rt_info and other elements that irrun does not use.")
@all_option
@input_option(" For engines.")
@seed_option()
@runs_option(11)
@limit_options
@plugin_option
@format_option("text", "json")
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Show where two models, or the graphs of engines, differ.

    A and B are two IR files, or engines as in `irrun compare`: openvino:model.xml 'openvino[precision=f32]'.

    Layers are matched by name, then by type, attributes, shapes, weights and neighbours. Ids, the order of layers, and
    the places of weights in the .bin make no difference. Weights are compared by value, in blocks. If a model has no
    .bin, the rest is compared. A constant with the layers that decompress or quantize it is one weight, of which the
    values after these layers are compared.

    A summary by kind comes first. Layers of which only the declared shapes or precisions differ, because those of their
    inputs do, and layers that decompress a weight are counted and not listed. Of many layers that differ alike, three
    are listed: of weights, the three with the largest errors.

    With engines, the runtime graphs are compared: which layers other nodes compute, in which precision, by which
    kernel and in which layout, which conversions are inserted, which patterns are fused, and how the times differ.

    Exit status: 0 the models or graphs are the same, 1 they differ, 2 bad usage, an unreadable file, an error in a
    model, or an engine that shows no graph.
    """
    are_engines = names_engine(settings.a) or names_engine(settings.b)
    refuse(_EXCLUSIONS, "engines" if are_engines else "files")
    try:
        found = _graphs(settings) if are_engines else _models(settings)
    except IrrunError as error:
        status = max(2, _errors.exit_status(error.diagnostics))
        _errors.show(error.diagnostics)
        if settings.form == "json":
            _errors.print_json("diff", status, str(error), error)
        return status
    if settings.form == "json":
        _terminal.print_json(found.record())
    elif isinstance(found, RuntimeDifference):
        _runtime_difference.show(_terminal.console(), found, everything=settings.everything)
    else:
        _print(_terminal.console(), found, everything=settings.everything)
    return 0 if found.same else 1


def _models(settings: Settings) -> Difference:
    models = (api.read_model(settings.a, settings.weights_a), api.read_model(settings.b, settings.weights_b))
    return diff(*models, rt_info=settings.rt_info)


def _graphs(settings: Settings) -> RuntimeDifference:
    """Run the model of each side, and compare the graphs of both engines."""
    results: list[Runtime] = []
    sides, limit = parse_sides(settings.a, settings.b), settings.limit
    for side, path in zip(sides, (settings.weights_a, settings.weights_b)):
        side = side.with_weights(path)
        given = gather(api.read_model(str(side.path), side.weights), settings.inputs, settings.seed, limit.memory)
        arrays = {position: item.array for position, item in enumerate(given)}
        results.append(runtime(str(side.path), side, arrays, runs=settings.runs, limits=limit.limits))
    return difference(*results)


def _print(out: Console, difference: Difference, *, everything: bool) -> None:
    """Print a summary by kind, and below it the layers that differ."""
    for line in _summary(difference, everything=everything):
        out.print(line)
    if difference.model:
        out.print()
        out.print(Text("model", "bold"))
        _print_changes(out, difference.model)
    listed = [layer for layer in difference.layers if everything or not layer.follows]
    shown, left = (listed, {}) if everything else _folded(listed)
    for number, layer in enumerate(shown):
        if number == 0 or layer.changes or shown[number - 1].changes:
            out.print()
        _print_layer(out, layer)
    if left:
        out.print()
    for kind, count in left.items():
        out.print(f"  … and {count:,} more: {kind}; list them with --all")


_MAX_LINES: Final = 60
"""The most lines of changes that are listed without folding."""
_MAX_ALIKE: Final = 3
"""The most layers with the same kinds of changes that are listed when a list is folded."""


def _folded(layers: Sequence[LayerDifference]) -> tuple[Sequence[LayerDifference], dict[str, int]]:
    """Return the layers to list, and how many of each kind are left out. Of weights, the worst ones are listed."""
    if sum(len(layer.changes) + 2 for layer in layers) <= _MAX_LINES:
        return layers, {}
    kinds: dict[str, list[LayerDifference]] = {}
    for layer in layers:
        kinds.setdefault(_kind(layer), []).append(layer)
    kept = {id(layer) for kind in kinds.values() for layer in sorted(kind, key=_badness)[:_MAX_ALIKE]}
    left = {kind: len(found) - _MAX_ALIKE for kind, found in kinds.items() if len(found) > _MAX_ALIKE}
    return [layer for layer in layers if id(layer) in kept], left


def _kind(layer: LayerDifference) -> str:
    """Return a text that is equal for layers of one type with the same kinds of changes."""
    place = layer.a or layer.b
    assert place is not None
    what = ", ".join(
        f"{change.a} → {change.b}" if change.kind in ("stored", "precision") else printable(_name(change))
        for change in layer.changes
        if change.error is None
    )
    return f"{_MARKS[layer.status][0]} {printable(place.type)}" + (f" ({what})" if what else "")


def _badness(layer: LayerDifference) -> tuple[float, float]:
    return badness(next((change.error for change in layer.changes if change.error is not None), None))


def _summary(difference: Difference, *, everything: bool) -> Iterator[str]:
    """Yield the lines of the summary, and of what was not compared."""
    summary = difference.summary
    for row in summary.weights:
        yield _weights(row)
    for status, word in (
        ("changed", "changed"),
        ("removed", f"only in {printable(difference.a)}"),
        ("added", f"only in {printable(difference.b)}"),
    ):
        rows = [row for row in summary.layers if row.status == status]
        if rows:
            types = ", ".join(f"{row.layers:,} {printable(row.type)}" for row in rows)
            yield f"{counted(sum(row.layers for row in rows), 'layer')} {word}: {types}"
    if summary.follows:
        verb = "follows" if summary.follows == 1 else "follow"
        shown = "" if everything else "; list them with --all"
        yield f"{counted(summary.follows, 'more layer')} {verb} from these{shown}"
    if difference.uncompared:
        lacking = " and ".join(printable(path) for path in difference.without_weights)
        verb = "has" if len(difference.without_weights) == 1 else "have"
        yield f"{lacking} {verb} no .bin; the values of {counted(difference.uncompared, 'constant')} were not compared"
    if difference.same:
        yield "no other differences" if difference.uncompared else "no differences"
    elif not difference.layers:
        yield "the layers are the same"


def _weights(row: WeightsRow) -> str:
    """Return a line of the summary about weights that are stored alike."""
    forms = " differ" if row.a is None else f" {printable(row.a)} → {printable(row.b or '')}"
    head = (
        f"{counted(row.weights, 'weight' if row.a else 'constant')}{forms if row.a or row.weights > 1 else ' differs'}"
    )
    if not row.different:
        return f"{head}: equal values"
    if row.max_abs is None or row.max_rel is None:
        return head
    some = "" if row.different == row.weights else f" {row.different:,} with other values,"
    noise = "" if row.snr is None else f', least SNR {row.snr:.1f} dB in "{printable(row.worst)}"'
    return f"{head}:{some} largest error {row.max_abs:.2g} absolute, {row.max_rel:.2g} relative{noise}"


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
    noise = "" if error.snr is None else f", SNR {error.snr:.1f} dB"
    return f"{share}, max abs {error.max_abs:.6g}{worst}, max rel {error.max_rel:.6g}{noise}"


def _elements(number: int) -> str:
    return f"{number:,} element{'' if number == 1 else 's'}"

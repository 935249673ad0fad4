"""The result of ``irrun diff`` with files as text: a summary by kind, and the layers that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from irrun.base.text import counted, printable
from irrun.debug.difference import Change, Difference, LayerDifference, Place, WeightsRow, badness

__all__ = ["change_name", "figures", "folded", "show", "side", "summary"]


def show(out: Console, difference: Difference, *, everything: bool) -> None:
    """Print a summary by kind, and below it the layers that differ. ``everything`` also lists those that follow."""
    for line in summary(difference, everything=everything):
        out.print(line)
    if difference.model:
        out.print()
        out.print(Text("model", "bold"))
        _print_changes(out, difference.model)
    listed = [layer for layer in difference.layers if everything or not layer.follows]
    shown, left = (listed, {}) if everything else folded(listed)
    for number, layer in enumerate(shown):
        if number == 0 or layer.changes or shown[number - 1].changes:
            out.print()
        _print_layer(out, layer)
    if left:
        out.print()
    for kind, others in left.items():
        out.print(f"  … and {len(others):,} more: {kind}; list them with --all")


_MAX_LINES: Final = 60
"""The most lines of changes that are listed without folding."""
_MAX_ALIKE: Final = 3
"""The most layers with the same kinds of changes that are listed when a list is folded."""


def folded(
    layers: Sequence[LayerDifference],
) -> tuple[Sequence[LayerDifference], dict[str, Sequence[LayerDifference]]]:
    """Return the layers to list, and the others of each kind. Of weights, the worst ones are listed."""
    if sum(len(layer.changes) + 2 for layer in layers) <= _MAX_LINES:
        return layers, {}
    kinds: dict[str, list[LayerDifference]] = {}
    for layer in layers:
        kinds.setdefault(_kind(layer), []).append(layer)
    kept = {id(layer) for kind in kinds.values() for layer in sorted(kind, key=_badness)[:_MAX_ALIKE]}
    left = {kind: [layer for layer in found if id(layer) not in kept] for kind, found in kinds.items()}
    return [layer for layer in layers if id(layer) in kept], {kind: others for kind, others in left.items() if others}


def _kind(layer: LayerDifference) -> str:
    """Return a text that is equal for layers of one type with the same kinds of changes."""
    place = layer.a or layer.b
    assert place is not None
    what = ", ".join(
        f"{change.a} → {change.b}" if change.kind in ("stored", "precision") else printable(change_name(change))
        for change in layer.changes
        if change.error is None
    )
    return f"{_MARKS[layer.status][0]} {printable(place.type)}" + (f" ({what})" if what else "")


def _badness(layer: LayerDifference) -> tuple[float, float]:
    return badness(next((change.error for change in layer.changes if change.error is not None), None))


def summary(
    difference: Difference, *, everything: bool, shown: Callable[[str], str] = printable, most: int | None = None
) -> Iterator[str]:
    """Yield the lines of the summary, and of what was not compared.

    ``shown`` formats a name from a file. ``most`` is the greatest number of types that a line names.
    """
    found = difference.summary
    for row in found.weights:
        yield _weights(row, shown)
    for status, word in (
        ("changed", "changed"),
        ("removed", f"only in {shown(difference.a)}"),
        ("added", f"only in {shown(difference.b)}"),
    ):
        rows = [row for row in found.layers if row.status == status]
        if rows:
            types = ", ".join(f"{row.layers:,} {shown(row.type)}" for row in rows[:most])
            types += f", and {len(rows) - most} more types" if most is not None and len(rows) > most else ""
            yield f"{counted(sum(row.layers for row in rows), 'layer')} {word}: {types}"
    if found.follows:
        verb = "follows" if found.follows == 1 else "follow"
        how = "" if everything else "; list them with --all"
        yield f"{counted(found.follows, 'more layer')} {verb} from these{how}"
    if difference.uncompared:
        lacking = " and ".join(shown(path) for path in difference.without_weights)
        verb = "has" if len(difference.without_weights) == 1 else "have"
        yield f"{lacking} {verb} no .bin; the values of {counted(difference.uncompared, 'constant')} were not compared"
    if difference.same:
        yield "no other differences" if difference.uncompared else "no differences"
    elif not difference.layers:
        yield "the layers are the same"


def _weights(row: WeightsRow, shown: Callable[[str], str]) -> str:
    """Return a line of the summary about weights that are stored alike."""
    forms = " differ" if row.a is None else f" {shown(row.a)} → {shown(row.b or '')}"
    head = (
        f"{counted(row.weights, 'weight' if row.a else 'constant')}{forms if row.a or row.weights > 1 else ' differs'}"
    )
    if not row.different:
        return f"{head}: equal values"
    if row.max_abs is None or row.max_rel is None:
        return head
    some = "" if row.different == row.weights else f" {row.different:,} with other values,"
    noise = "" if row.snr is None else f', least SNR {row.snr:.1f} dB in "{shown(row.worst)}"'
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
    names = [printable(change_name(change)) for change in changes]
    width = max(map(len, names), default=0)
    for name, change in zip(names, changes):
        line = Text(f"    {name:<{width}}  ")
        if change.error is None:
            line += Text(side(change.a), "red") + Text(" → ") + Text(side(change.b), "green")
        else:
            line += Text(figures(change))
        out.print(line)


_WORDS: Final = {
    "ir_version": "IR version",
    "tensor_names": "tensor names",
    "ports": "number of",
    "edge": "reads",
    "port_map": "port map",
    "back_edges": "back edge",
}


def change_name(change: Change) -> str:
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


def side(text: str | None) -> str:
    if text is None:
        return "nothing"
    shown = text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}…"
    return printable(shown) or '""'


def figures(change: Change) -> str:
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

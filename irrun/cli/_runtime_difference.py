"""The result of ``irrun diff`` with engines as text: a summary, the parts that run otherwise, and what is inserted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.cli._runtime import time
from irrun.debug.runtime import RuntimeDifference
from irrun.debug.runtime.difference import FusionChange, InsertedChange, Part, Timing

__all__ = ["show"]

_MAX_ALIKE: Final = 3
"""The most parts with the same changes that are listed without ``--all``."""
_MAX_TEXT_CHARS: Final = 120
"""The most characters of a side of a change that are listed without ``--all``."""


def show(out: Console, found: RuntimeDifference, *, everything: bool) -> None:
    """Print how two runtime graphs differ. ``everything`` lists all parts in full."""
    for mark, result in (("a", found.a), ("b", found.b)):
        out.print(f"{mark}  {printable(result.side)}  ({printable(result.engine)}, {printable(result.path)})")
    for name, (a, b) in found.properties.items():
        out.print(f"   {printable(name)}  {_side(a)} → {_side(b)}")
    out.print()
    for line in _summary(found):
        out.print(line)
    _show_parts(out, found.changed, everything=everything)
    if found.inserted:
        out.print()
        _terminal.title(out, "inserted nodes")
        columns = ("type", "changes", "a", "b", "time")
        rows = [_inserted(item) for item in found.inserted]
        _terminal.print_table(out, columns, rows, right=("a", "b"))
    if found.fusions:
        out.print()
        _terminal.title(out, "patterns")
        for fusion in found.fusions:
            _show_fusion(out, fusion)


def _summary(found: RuntimeDifference) -> Iterator[Text]:
    runs = counted(found.a.graph.runs, "run")
    yield Text(f"time: {_times(found.timing)}, medians of {runs}", "bold")
    count = found.summary
    if found.same:
        yield Text("the same nodes, precisions, kernels and layouts")
    else:
        words = {
            "fewer_nodes": "in fewer nodes", "more_nodes": "in more nodes", "precision": "in another precision",
            "primitive": "by another kernel", "layout": "in another layout",
        }  # fmt: skip
        texts = [f"{count[key]:,} {text}" for key, text in words.items() if count[key]]
        verb = "runs" if count["changed"] == 1 else "run"
        head = f"{count['changed']:,} of {counted(count['parts'], 'part')} {verb} otherwise"
        yield Text(f"{head}: {', '.join(texts)}" if texts else head)
    yield Text(f"beyond the noise: {counted(count['faster'], 'part')} faster, {count['slower']:,} slower")


def _show_parts(out: Console, parts: Sequence[Part], *, everything: bool) -> None:
    """Print the parts, those with the same changes together: the ones whose times differ most."""
    alike: dict[tuple[object, ...], list[Part]] = {}
    for part in parts:
        alike.setdefault(_kind(part), []).append(part)
    for group in alike.values():
        kept = group if everything else sorted(group, key=lambda part: -abs(part.timing.change))[:_MAX_ALIKE]
        for part in group:
            if part in kept:
                _show_part(out, part, everything=everything)
        if len(kept) < len(group):
            out.print()
            timing = Timing(*(sum(values) for values in zip(*(_figures(part) for part in group if part not in kept))))
            more = f"… and {len(group) - len(kept):,} more alike"
            out.print(f"  {more}, {_times(timing)}; list them with --all")


def _figures(part: Part) -> tuple[float, float, float]:
    return part.timing.a, part.timing.b, part.timing.noise


def _kind(part: Part) -> tuple[object, ...]:
    """Return what two parts share if they differ in the same way: their types of layers, and their changes."""
    types = tuple(sorted({pair.any.layer.type for pair in part.layers}))
    changes = ((change.kind, "" if change.kind == "nodes" else (change.a, change.b)) for change in part.changes)
    nodes = (tuple(node.type for node in part.a), tuple(node.type for node in part.b))
    return types, tuple(changes), nodes


def _show_part(out: Console, part: Part, *, everything: bool) -> None:
    names = [pair.any.name for pair in part.layers]
    title = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({counted(len(names), 'layer')})"
    line = part.layers[0].any.line
    out.print()
    out.print(Text(f'~ {part.layers[0].any.layer.type} "{printable(title)}", line {line}', "bold"))
    labels = [f"{change.layer}: state" if change.layer else change.kind for change in part.changes]
    width = max(map(len, (*labels, "time")))
    for label, change in zip(labels, part.changes):
        a, b = (_side(text if everything else _cut(text)) for text in (change.a, change.b))
        out.print(Text(f"    {printable(label):<{width}}  ") + Text(a, "red") + Text(" → ") + Text(b, "green"))
    if part.timing.a or part.timing.b:
        out.print(f"    {'time':<{width}}  {_times(part.timing)}")


def _inserted(item: InsertedChange) -> tuple[str, ...]:
    where = ", before the run" if item.before_run else ""
    times = "" if item.before_run else _times(item.timing)
    return item.type, item.changes + where, str(len(item.a)), str(len(item.b)), times


def _show_fusion(out: Console, change: FusionChange) -> None:
    either = change.a or change.b
    assert either is not None
    a, b = ("absent" if f is None else "fused" if f.fused else "not fused" for f in (change.a, change.b))
    out.print(f'  {either.pattern} "{printable(either.layer)}", line {either.line}: {a} → {b}')
    for fusion in (change.a, change.b):
        if fusion is not None and fusion.condition:
            out.print(f"      needed: {fusion.condition}; but {printable(fusion.found)}")


def _times(timing: Timing) -> str:
    """Return both times, and their difference with its noise."""
    sign = "+" if timing.change >= 0 else "-"
    change = f"{sign}{time(abs(timing.change))} ± {time(timing.noise)}"
    return f"{time(timing.a)} → {time(timing.b)} ({change})"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_CHARS else f"{text[:_MAX_TEXT_CHARS]}…"


def _side(text: str | None) -> str:
    return "nothing" if not text else printable(text)

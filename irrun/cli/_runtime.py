"""The result of ``irrun runtime`` as text: a summary, the costliest nodes, what was not fused, and the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.debug.runtime import Fusion, Inserted, LayerRun, Runtime
from irrun.engines import RunNode

__all__ = ["show", "time"]


_STATES: Final = {
    "named": "named in a node",
    "inside": "inside a node",
    "removed": "removed",
    "folded": "constant before the run",
    "decompression": "decompress weights",
}
"""The words for each state of a layer."""
_MAX_LISTED: Final = 60
"""The most layers that are listed without ``--all``."""


def show(out: Console, result: Runtime, top: int, *, everything: bool) -> None:
    """Print a result, with at most ``top`` costly nodes. ``everything`` lists all layers, and every fused pattern."""
    _terminal.title(out, f"{result.engine}, {printable(result.path)}")
    for name, text in result.graph.properties.items():
        out.print(f"  {printable(name)}={printable(text)}")
    out.print()
    _show_summary(out, result)
    costly = sorted((node for node in result.executed if node.microseconds), key=lambda node: -node.time)[:top]
    if costly:
        out.print()
        _terminal.title(out, "costliest nodes")
        rows = [_costly(result, node) for node in costly]
        columns = ("node", "type", "layers", "precision", "primitive", "time", "share")
        right = ("layers", "time", "share")
        _terminal.print_table(out, columns, rows, right=right, spare=("primitive", "layers", "type"))
    _show_fusions(out, result, everything=everything)
    _show_layers(out, result, everything=everything)
    _show_inserted(out, result, top)


def _show_summary(out: Console, result: Runtime) -> None:
    runs = counted(result.graph.runs, "run")
    summary = result.summary
    sizes = f"{counted(summary['layers'], 'layer')} run as {counted(summary['nodes'], 'node')}"
    out.print(Text(f"{sizes}, {time(result.microseconds)} in a run (median of {runs})", "bold"))
    states = [f"{number:,} {_STATES[state]}" for state, number in summary["states"].items()]
    parts = [counted(summary["constants"], "constant"), f"{summary['ports']:,} inputs and outputs", *states]
    out.print(f"  {summary['layers']:,} layers in the file: {', '.join(parts)}")
    precisions = ", ".join(f"{number:,} in {precision}" for precision, number in summary["precisions"].items())
    out.print(f"  {summary['computed']:,} layers in the nodes: {precisions or 'none'}")
    share = sum(result.share(item.node) for item in result.added)
    types = ", ".join(f"{number:,} {type}" for type, number in summary["inserted"].items())
    which = f" ({types}; {share:.1%} of the time)" if types else ""
    nodes = f"{summary['of_layers']:,} compute these layers, {len(result.added):,} inserted{which}"
    out.print(f"  {counted(summary['nodes'], 'node')} in a run: {nodes}")


def _costly(result: Runtime, node: RunNode) -> tuple[str, ...]:
    layers = sum(any(own.name == node.name for own in layer.nodes) for layer in result.layers)
    share = f"{result.share(node):.1%}"
    return node.name, node.type, str(layers or ""), node.computes_in, node.primitive, time(node.time), share


def _show_fusions(out: Console, result: Runtime, *, everything: bool) -> None:
    """Print the patterns that were not fused, each with its reason, and how many were."""
    if not result.fusions:
        return
    out.print()
    _terminal.title(out, "patterns")
    for pattern in dict.fromkeys(fusion.pattern for fusion in result.fusions):
        found = [fusion for fusion in result.fusions if fusion.pattern == pattern]
        fused = [fusion for fusion in found if fusion.fused]
        out.print(f"  {pattern}: {len(fused):,} of {len(found):,} run as {found[0].becomes}")
        left = [fusion for fusion in found if not fusion.fused]
        alike: dict[tuple[str, str], list[Fusion]] = {}
        for fusion in left:
            alike.setdefault((fusion.condition, fusion.found), []).append(fusion)
        for group in alike.values():
            _show_unfused(out, group, everything=everything)


def _show_unfused(out: Console, group: Sequence[Fusion], *, everything: bool) -> None:
    """Print fusions that were not made for the same reason: the first, or all with ``everything``."""
    for fusion in group if everything else group[:1]:
        out.print(Text(f'    not fused: "{printable(fusion.layer)}", line {fusion.line}', "yellow"))
    if len(group) > 1 and not everything:
        out.print(f"      and {len(group) - 1:,} alike; list them with --all")
    first = group[0]
    if first.condition:
        out.print(f"      needed: {first.condition}")
        out.print(f"      but {printable(first.found)}")
    else:
        out.print("      the file meets every condition that irrun knows: see the properties, and the engine's version")


def _show_layers(out: Console, result: Runtime, *, everything: bool) -> None:
    """Print a row for each layer: all of them, or those of the costliest nodes."""
    listed = list(result.layers)
    if len(listed) > _MAX_LISTED and not everything:
        listed.sort(key=lambda layer: -max((node.time for node in layer.nodes), default=-1))
        kept = {layer.name for layer in listed[:_MAX_LISTED]}
        listed = [layer for layer in result.layers if layer.name in kept]
    out.print()
    _terminal.title(out, "layers")
    shown: set[str] = set()
    rows = [_row(result, layer, shown) for layer in listed]
    columns = ("layer", "type", "runs in", "precision", "primitive", "share")
    _terminal.print_table(out, columns, rows, right=("share",), spare=("primitive", "type"))
    if len(listed) < len(result.layers):
        out.print(f"  and {len(result.layers) - len(listed):,} more; list them with --all")


def _row(result: Runtime, layer: LayerRun, shown: set[str]) -> tuple[str, ...]:
    """Return the cells of a layer. The share of a node stands beside the first of its layers."""
    if not layer.nodes:
        return layer.name, layer.layer.type, f"- ({_STATES[layer.state]})", "", "", ""
    node = layer.nodes[-1]
    more = "" if len(layer.nodes) == 1 else f" and {len(layer.nodes) - 1} more"
    place = node.type if node.name == layer.name else f"{node.type} {node.name}"
    share = f"{result.share(node):.1%}" if node.microseconds and node.name not in shown else ""
    shown.add(node.name)
    primitive = "" if node.primitive.startswith("unknown") else node.primitive
    return layer.name, layer.layer.type, place + more, "/".join(layer.precisions), primitive, share


def _show_inserted(out: Console, result: Runtime, top: int) -> None:
    """Print the costliest nodes that compute no layer of the file."""
    if not result.added:
        return
    out.print()
    _terminal.title(out, "inserted nodes")
    costly = sorted(result.added, key=lambda item: -item.node.time)[:top]
    rows = [_inserted(result, item) for item in costly]
    columns = ("type", "changes", "between", "and", "share")
    _terminal.print_table(out, columns, rows, right=("share",))
    if len(costly) < len(result.added):
        out.print(f"  and {len(result.added) - len(costly):,} more; --top lists more of them")


def _inserted(result: Runtime, item: Inserted) -> tuple[str, ...]:
    share = f"{result.share(item.node):.1%}" if item.node.microseconds else ""
    return item.node.type, item.changes, item.source, item.target, share


def time(microseconds: float) -> str:
    """Return a time in a readable unit."""
    return f"{microseconds / 1e3:.3g} ms" if microseconds >= 1e3 else f"{microseconds:.0f} µs"

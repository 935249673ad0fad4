"""``irrun ops``: the operations that irrun knows, from its registry."""

from __future__ import annotations

import click

from irrun.cli import _terminal
from irrun.cli._options import format_option
from irrun.cli.op import place
from irrun.opdef import Op, all_ops

__all__ = ["command"]


@click.command("ops")
@format_option("text", "json", "markdown")
def command(form: str) -> None:
    """List the operations that irrun knows."""
    if form == "json":
        _terminal.print_json([_record(cls) for cls in all_ops()])
        return
    versions: dict[str, list[type[Op]]] = {}
    for cls in all_ops():
        versions.setdefault(cls.type, []).append(cls)
    rows = [(type, ", ".join(str(c.since) for c in found), place(found[0])[0]) for type, found in versions.items()]
    if form == "markdown":
        print("| operation | versions | file |\n| --- | --- | --- |")
        for row in rows:
            print(f"| {' | '.join(row)} |")
    else:
        _terminal.print_table(_terminal.console(), ("operation", "versions", "file"), rows)


def _record(cls: type[Op]) -> dict[str, object]:
    file, line = place(cls)
    return {"type": cls.type, "version": cls.since, "spec": cls.spec, "file": file, "line": line}

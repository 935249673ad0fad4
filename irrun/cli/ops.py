"""``irrun ops`` (look): List the operations that irrun knows."""

from __future__ import annotations

import click

from irrun.cli import _terminal
from irrun.cli._options import format_option
from irrun.cli.op import place
from irrun.opdef import Op, all_ops, labels

__all__ = ["command"]


@click.command("ops")
@format_option("text", "json", "markdown")
def command(form: str) -> None:
    """List the operations that irrun knows.

    The markdown table lists the element types and the enforced constraints of each version. irrun's tests break
    each of these constraints.
    """
    if form == "json":
        _terminal.print_json({"operations": [_record(cls) for cls in all_ops()]})
        return
    if form == "markdown":
        print("| operation | element types | constraints | specification | file |\n| --- | --- | --- | --- | --- |")
        for cls in all_ops():
            print(f"| {' | '.join(_row(cls))} |")
        return
    versions: dict[str, list[type[Op]]] = {}
    for cls in all_ops():
        versions.setdefault(cls.type, []).append(cls)
    rows = [(type, ", ".join(str(c.since) for c in ops), place(ops[0])[0]) for type, ops in versions.items()]
    _terminal.print_table(_terminal.console(), ("operation", "versions", "file"), rows)


def _row(cls: type[Op]) -> tuple[str, ...]:
    ports = {port.type: cls.types.get(port.type) for port in cls.inputs}
    types = "; ".join(name if allowed is None else f"{name}: {allowed}" for name, allowed in ports.items())
    return f"{cls.type}-{cls.since}", types or "-", " ".join(labels(cls)) or "-", cls.spec, place(cls)[0]


def _record(cls: type[Op]) -> dict[str, object]:
    file, line = place(cls)
    return {"type": cls.type, "version": cls.since, "spec": cls.spec, "file": file, "line": line}

"""``irrun schema`` (check): Write a schema of the IR for editors."""

from __future__ import annotations

import click

from irrun.cli._options import format_option, plugin_option

__all__ = ["command"]


@click.command("schema")
@format_option("rng", "xsd")
@plugin_option
def command(form: str) -> int:
    """Write a schema of the IR for editors.

    It covers IR versions 10 and 11, and is made from the operations that irrun knows. RELAX NG (rng, in XML
    syntax) says for each operation which attributes, inputs and outputs a layer has. XSD 1.0 (xsd) cannot: any <data>
    may have the attributes of all operations. But it finds ids that occur twice and edges to layers that do not exist.
    """
    from irrun.ir import schema  # imported here because it imports all operations and lxml

    click.echo(schema.relax_ng() if form == "rng" else schema.xsd(), nl=False)
    return 0

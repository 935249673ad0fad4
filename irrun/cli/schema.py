"""``irrun schema`` (check): Write a schema of the IR for editors."""

from __future__ import annotations

import click

from irrun.cli._options import file_to_write, plugin_option
from irrun.files import NewFile

__all__ = ["command"]


@click.command("schema")
@click.option(
    "--format",
    "form",
    type=click.Choice(["rng", "xsd"]),
    default="rng",
    show_default=True,
    help="RELAX NG (XML syntax), or XSD 1.0.",
)
@click.option("-o", "--output", metavar="FILE", help="The file to write. [default: standard output]")
@plugin_option
def command(form: str, output: str | None) -> int:
    """Write a schema of the IR for editors.

    It covers IR versions 10 and 11, and is made from the operations that irrun knows. RELAX NG says for each operation
    which attributes, inputs and outputs a layer has. XSD 1.0 cannot: any <data> may have the attributes of all
    operations. But it finds ids that occur twice and edges to layers that do not exist.
    """
    from irrun.ir import schema  # imported here because it imports all operations and lxml

    target = None if output is None else file_to_write(output, "-o")
    text = schema.relax_ng() if form == "rng" else schema.xsd()
    if target is None:
        click.echo(text, nl=False)
        return 0
    with NewFile(target) as new:
        new.file.write(text.encode())
        new.finish()
    return 0

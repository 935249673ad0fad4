"""``irrun conformance show``: show a case of the suite."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.base.text import printable
from irrun.cli import _terminal
from irrun.cli._options import format_option
from irrun.cli.conformance._shared import suite_option
from irrun.conformance import read_suite
from irrun.conformance.suite import SUITE

__all__ = ["command"]


@click.command("show")
@click.argument("name", metavar="CASE")
@click.option("-o", "--output", metavar="FOLDER", help="Write the model to a folder, as model.xml and model.bin.")
@suite_option
@format_option("text", "json", is_long=True)
def command(name: str, output: str | None, suite: str | None, form: str) -> int:
    """Show a case of the suite: its verdict, its source, and the sentence of the specification."""
    whole = read_suite(suite or SUITE)
    cases = [case for case in whole.cases if case.name == name]
    if not cases:
        raise click.BadParameter(f"the suite has no case {name!r}; `irrun conformance run --only` takes patterns")
    case, out = cases[0], _terminal.console()
    rows = {
        "operation": case.operation,
        "verdict": case.verdict,
        "source": case.source,
        "clause": case.clause,
        "demands": whole.demand(case),
        "sentence": case.sentence,
        "declared": case.declaration,
        "types": ", ".join(case.types),
        "tolerance": f"rtol {case.rtol:g}, atol {case.atol:g}" if case.verdict == "values" else "",
        "note": case.note,
        **{f"observed, {engine}": text for engine, text in case.observed.items()},
    }
    written = None
    if output is not None:
        Path(output).mkdir(parents=True, exist_ok=True)
        written = str(case.write(Path(output)))
    if form == "json":
        facts = {key: text for key, text in rows.items() if text}
        steps = [{"inputs": [*step.inputs], "outputs": [*step.outputs]} for step in case.steps]
        _terminal.print_json({"case": name, **facts, "steps": steps, "wrote": written})
        return 0
    for key, text in rows.items():
        if text:
            out.print(f"{key:<10} {printable(text)}")
    for number, step in enumerate(case.steps):
        for title, records in (("input", step.inputs), ("output", step.outputs)):
            for position, record in enumerate(records):
                out.print(f"{title} {position} of inference {number + 1}: {record['type']}{record['shape']}")
    if written is not None:
        out.print(f"wrote {printable(written)}")
    return 0

"""``irrun conformance compare``: compare two runs of the suite."""

from __future__ import annotations

import click

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.cli._options import format_option
from irrun.cli.conformance._shared import summary
from irrun.conformance import read_run

__all__ = ["command"]


@click.command("compare")
@click.argument("old", metavar="OLD.jsonl")
@click.argument("new", metavar="NEW.jsonl")
@format_option("text", "json")
def command(old: str, new: str, form: str) -> int:
    """Compare two runs: which cases passed and do not pass any more, and the reverse.

    Exit status: 0 no case was lost, 1 some were, 2 an unreadable input, or runs without a case in common.
    """
    first, second = read_run(old), read_run(new)
    names = sorted(first.results.keys() & second.results.keys())
    if not names:
        raise click.UsageError(f"{old} and {new} have the result of no case in common: nothing was compared")
    passed = [{name for name in names if item.results[name].status == "passed"} for item in (first, second)]
    lost, gained = sorted(passed[0] - passed[1]), sorted(passed[1] - passed[0])
    if form == "json":
        _terminal.print_json(
            {
                "old": first.engine,
                "new": second.engine,
                "compared": len(names),
                "lost": lost,
                "gained": gained,
            }
        )
        return int(bool(lost))
    out = _terminal.console()
    out.print(f"old  {first.engine}: {summary(first)}")
    out.print(f"new  {second.engine}: {summary(second)}")
    out.print(f"compared: {counted(len(names), 'case')}")
    for title, listed in (("lost", lost), ("gained", gained)):
        out.print(f"{title}: {counted(len(listed), 'case')}")
        for name in listed:
            detail = second.results[name].detail if title == "lost" else ""
            out.print(f"  {printable(name)}{f': {printable(detail)}' if detail else ''}")
    return int(bool(lost))

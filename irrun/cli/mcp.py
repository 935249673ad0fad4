"""``irrun mcp`` (serve): Serve an agent: the commands of irrun as tools."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Sequence
from typing import Final

import click

from irrun import __version__
from irrun.cli import _servers

__all__ = ["command"]

_ONE_AT_A_TIME: Final = threading.Lock()
"""Held while a command runs: it writes to the standard output of the process."""


@click.command("mcp")
def command() -> None:
    """Serve an agent: the commands of irrun as tools.

    The server speaks the Model Context Protocol on standard input and output; the agent starts it. Its tools are
    check, show, why, compare, bisect, op and explain. They return the JSON of these commands, and cut long lists.
    docs/agents.md says how an agent decides whether a conversion is right. The server needs the extra `mcp`.
    """
    try:
        from irrun.server import agents
    except ModuleNotFoundError as error:
        raise _servers.missing(error, "mcp") from None
    agents.make_server(_run, __version__).run()


def _run(arguments: Sequence[str]) -> tuple[int, str]:
    """Run a command of irrun in this process, and return its exit status and what it writes to standard output."""
    from irrun.cli import cli

    out = io.StringIO()
    with _ONE_AT_A_TIME, contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            status = cli.main([*arguments], prog_name="irrun", standalone_mode=False)
        except click.ClickException as error:  # reported as JSON by the command line
            status = error.exit_code
    return status or 0, out.getvalue()

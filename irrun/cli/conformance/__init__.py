"""``irrun conformance`` (judge): Judge engines by a suite of models with verdicts.

Each of its commands has a file of its own in this folder.
"""

from __future__ import annotations

import click

from irrun.cli.conformance import compare, report, run, scoreboard, show, smoke

__all__ = ["command"]


@click.group("conformance")
def command() -> None:
    """Judge engines by a suite of models with verdicts.

    An engine is a side without a path, as in `irrun compare`: irrun, exact, openvino, openvino[python=PATH,device=GPU];
    or the command of a harness (--harness).
    """


for _module in (run, scoreboard, smoke, compare, report, show):
    command.add_command(_module.command)

"""Write irrun/cli/completion.json, from which the shell completes: ``python -m tools completion``.

A completion must not import a command, because each imports numpy and lxml. The table holds the commands' options.
``tests/cli/test_completion.py`` says whether it is up to date.
"""

from __future__ import annotations

import json
from typing import Any

import click

from irrun.cli import COMMANDS, cli
from irrun.cli._completion import TABLE


def main() -> None:
    """Write the table."""
    TABLE.write_text(text(), "ascii")


def text() -> str:
    """Return the table as JSON, with a line for each option or argument."""
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    rows = [f"{json.dumps(name)}: {_command(command)}" for name, command in commands.items() if command is not None]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _command(command: click.Command) -> str:
    if isinstance(command, click.Group):
        parts = (f"{json.dumps(name)}: {_command(part)}" for name, part in command.commands.items())
        return "{\n" + ",\n".join(parts) + "\n}"
    return "[\n" + ",\n".join(json.dumps(_param(param)) for param in command.params) + "\n]"


def _param(param: click.Parameter) -> dict[str, Any]:
    """Return what click has to know of an option or argument to complete it."""
    complete: Any = getattr(param, "_custom_shell_complete", None)
    record: dict[str, Any] = {"names": [*param.opts, *(f"/{name}" for name in param.secondary_opts)]}
    if isinstance(param, click.Option):
        record |= {"help": param.help, "flag": param.is_flag, "multiple": param.multiple, "hidden": param.hidden}
    else:
        record |= {"nargs": param.nargs}
    if isinstance(param.type, click.Choice):
        record["choices"] = [*param.type.choices]
    return record | ({} if complete is None else {"complete": complete.__name__})


if __name__ == "__main__":
    main()

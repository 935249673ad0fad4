"""The command line: one file per command, each imported when it is called.

``irrun --help`` must answer at once, so nothing but click is imported here.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import os
import sys
from typing import Any, Final

import click

from irrun import __version__

__all__ = ["cli", "main"]

COMMANDS: Final = {
    "run": "Run a model and show its outputs.",
    "check": "Check models: every shape and precision that they declare.",
    "why": "Tell where the dims of a layer come from.",
    "extract": "Cut a model out of another.",
    "show": "Show what a model takes, gives and consists of.",
    "ops": "List the operations that irrun knows.",
    "op": "Show an operation: inputs, attributes, constraints.",
    "explain": "Explain the code of a finding, such as IR401.",
}
"""Name and short help; the command is ``command`` in the file of its name."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return importlib.import_module(f"irrun.cli.{cmd_name}").command if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            also = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
            ctx.fail(f"there is no command {args[0]!r}; {also}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, which returns its exit status, and turn what it raises into one."""
        try:
            status = super().invoke(ctx)
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:
            status = 130
        except BrokenPipeError:  # the reader of our output, such as head, has seen enough
            _discard_output()
            status = 141
        except Exception as error:
            status = _failed(error)
        ctx.exit(status or 0)


def _failed(error: Exception) -> int:
    from irrun.cli import _errors

    return _errors.failed(error)


def _discard_output() -> None:
    """Let what is still buffered go nowhere, so that Python's last flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from irrun.kernels.blas import expected

        click.echo(f"irrun {__version__} (matrix products: {expected()})")
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version, and what multiplies matrices, and exit.",
)
def cli() -> None:
    """Read, check and run OpenVINO IR (model.xml + model.bin) in pure Python.

    Exit status: 0 all right, 1 findings or a run that failed, 2 bad usage or unreadable input, 3 something
    that irrun does not support yet.
    """


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name must not break a terminal that has no such letter
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(prog_name="irrun")
    except OSError as error:  # --help, onto a full disk
        sys.exit(_failed(error))

"""The command line. Each command has a file of its own, which is imported only when the command is called.

The first line of that file says what the command does, and in which group ``irrun --help`` lists it (see
``irrun.cli._groups``). ``irrun --help`` must answer at once, so this module imports no package but click.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from irrun import __version__
from irrun.cli._groups import COMMANDS, GROUPS

__all__ = ["COMMANDS", "cli", "main"]


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if ctx.resilient_parsing:  # a shell completes the line
            from irrun.cli import _completion

            if (light := _completion.command(cmd_name)) is not None:
                return light
        return importlib.import_module(f"irrun.cli.{cmd_name}").command if cmd_name in COMMANDS else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands without importing them."""
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from irrun.model.lookup import nearest

            near = nearest(args[0], COMMANDS)
            help = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(COMMANDS)}"
            help = _ELSEWHERE.get(args[0], help)
            ctx.fail(f"there is no command {args[0]!r}; {help}")
        return super().resolve_command(ctx, args)

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **options: Any) -> click.Context:
        if args[:1] == ["help"]:  # as git and others take it
            args = [*args[1:2], "--help"]
        given = list(args)
        try:
            with _printable_errors():
                context = super().make_context(info_name, args, *more, **options)
        except click.UsageError as error:
            report_error(given, 2, error.format_message())
            raise
        context.meta["irrun.arguments"] = given
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Exit with the status that it returns, or the status for the exception that it raises."""
        try:
            with contextlib.ExitStack() as files:
                ctx.meta["irrun.files"] = files  # what receives the output of the command: see format_option
                status = self._status(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:  # such a file cannot be written
            status = _failed(error)
        ctx.exit(status or 0)

    def _status(self, ctx: click.Context) -> int | None:
        """Run a command, report the exception that it raises, and return the exit status."""
        try:
            with _printable_errors():
                status = super().invoke(ctx)
            sys.stdout.flush()
        except click.ClickException as error:
            report_error(ctx.meta["irrun.arguments"], error.exit_code, error.format_message())
            raise
        except click.exceptions.Exit:
            raise
        except KeyboardInterrupt as error:
            status = 130
            report_error(ctx.meta["irrun.arguments"], status, "interrupted", error)
        except BrokenPipeError:  # the program that reads the output, such as head, has closed the pipe
            _discard_output()
            status = 141
        except Exception as error:
            status = _failed(error)
            report_error(ctx.meta["irrun.arguments"], status, str(error), error)
        if status in (1, 2) and (chosen := ctx.meta.get("irrun.chosen")):
            from irrun.cli import _inputs

            _inputs.print_chosen_shapes(chosen.values())
        return status


_HINTS: Final = {
    "--device": "irrun runs on the CPU; openvino[device=GPU]:MODEL.xml is a side of `irrun compare`",
    "--output": "the result is written with -o FILE",
    "--shape": "write the model at the shape first, with `irrun edit MODEL.xml --shape NAME=SHAPE -o OUT.xml`",
}
"""What to do in place of options that users expect, where a command does not have them."""
_ELSEWHERE: Final = {"version": "write irrun --version", "install": "see docs/install.md"}
"""What to do in place of commands that users expect."""


@contextlib.contextmanager
def _printable_errors() -> Iterator[None]:
    """Escape unprintable characters in usage errors, which quote arguments, and say what to write instead."""
    try:
        yield
    except click.UsageError as error:
        message = error.format_message()
        if (hint := _hint(error)) is not None:
            raise click.UsageError(f"{message.partition('Did you')[0].rstrip(' (.')}; {hint}", error.ctx) from None
        if all(line.isprintable() for line in message.split("\n")):
            raise
        from irrun.base.text import printable

        raise click.UsageError(printable(message), error.ctx) from None


def _hint(error: click.UsageError) -> str | None:
    """Return what to write instead of an option or a choice that a command does not have, or None."""
    if isinstance(error, click.NoSuchOption):
        return _HINTS.get(error.option_name)
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param is not None else None
    quoted = re.match("'(.*?)' is not one of", error.message)
    if not isinstance(kind, click.Choice) or quoted is None:
        return None
    from irrun.model.lookup import nearest

    near = nearest(quoted[1], kind.choices)
    return f"did you mean '{near[0]}'?" if near else None


def report_error(arguments: list[str], status: int, message: str, error: BaseException | None = None) -> None:
    """Print the error of a command as JSON if the ``arguments`` of the command line ask for this format."""
    values = [text.partition("=")[2] for text in arguments if text.startswith("--format=")]
    values += [after for text, after in itertools.pairwise(arguments) if text == "--format"]
    if values and values[-1] == "json":
        from irrun.cli import _errors

        _errors.print_json(next((text for text in arguments if text in COMMANDS), None), status, message, error)


def _failed(error: Exception) -> int:
    from irrun.cli import _errors

    return _errors.failed(error)


def _discard_output() -> None:
    """Redirect standard output to the null device, so that Python's last flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):  # standard output has no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from irrun.kernels.blas import expected

        click.echo(f"irrun {__version__} (matrix products: {expected()})")
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and the library that computes matrix products, and exit.",
)
def cli() -> None:
    """Read, check and run OpenVINO IR (model.xml + model.bin) in pure Python.

    Exit status: 0 success, 1 an error in the model or a failed run, 2 bad usage or an unreadable input, 3 an
    operation that irrun does not support yet, 70 a bug in irrun, 130 Ctrl-C, 141 the program that reads the output has
    closed it.
    """


def main() -> None:
    """Run the command line: the entry point of the program ``irrun``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # write letters that the encoding of the terminal lacks as escapes
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(prog_name="irrun")
    except OSError as error:  # for example, --help cannot be written because the disk is full
        sys.exit(_failed(error))

"""Command line options that several commands share, or that have to be parsed."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from irrun.files import write_file
from irrun.opdef import PRECISIONS
from irrun.opdef.plugins import load_plugin

__all__ = [
    "Size",
    "all_option",
    "exact_option",
    "file_to_write",
    "folder_to_write",
    "force_option",
    "format_option",
    "jobs_option",
    "memory_option",
    "model_to_write",
    "new_file",
    "plugin_option",
    "precision_option",
    "refuse_to_replace",
    "refuse_to_replace_in",
    "require_ending",
    "runs_option",
    "target_option",
    "timeout_option",
    "together",
    "top_option",
    "weights_option",
]

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MAX_SIZE_DIGITS: Final = 30
"""The most digits of a number of bytes: far more than any memory has, and few enough for a float."""


class Size(click.ParamType):
    """The type of a parameter that is a number of bytes, such as ``2GiB``, ``500M`` or ``1000``. K is 1024 bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", value, re.IGNORECASE)
        is_number = match is not None and len(match[1]) <= _MAX_SIZE_DIGITS
        size = int(float(match[1]) * _UNITS[match[2].upper()]) if match and is_number else 0
        if size <= 0:
            self.fail(f"{value!r} is not a size; write it as 2GiB or 500MiB", param, ctx)
        return size


def together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options, which the help lists in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def format_option(*formats: str, is_long: bool = False) -> Callable[[Any], Any]:
    """Return the options ``--format`` and ``--output-file``. The command gets ``form``, by default the first format.

    ``-o`` is the short form of ``--output-file``, except of a command that writes other files (``is_long``).
    """

    def add(command: Callable[..., Any]) -> Any:
        @functools.wraps(command)
        def run(*args: Any, output_file: str | None, **options: Any) -> Any:
            if output_file is not None:
                target = new_file(output_file, "--output-file")
                click.get_current_context().meta["irrun.files"].enter_context(_output_to(target))
            return command(*args, **options)

        names = ("--output-file",) if is_long else ("-o", "--output-file")
        file = click.option(*names, metavar="FILE", help="Write the result to a file, not to standard output.")
        choice = click.option(
            "--format", "form", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
        )
        return choice(file(run))

    return add


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Write what is printed to a file, which is replaced as a whole at the end, also if the command fails."""
    stream = io.TextIOWrapper(data := io.BytesIO(), "utf-8", "backslashreplace", "\n", write_through=True)
    with contextlib.redirect_stdout(stream):
        yield
    write_file(path, data.getvalue())


def top_option(default: str) -> Any:
    """Return the option ``--top``, which passes a number or None. ``default`` is its text in the help."""
    help = f"The most rows of each ranking to show. [default: {default}]"
    return click.option("--top", type=click.IntRange(min=1), metavar="N", help=help)


def runs_option(default: int) -> Any:
    """Return the option ``--runs``: how often the model runs to be timed."""
    help = "Number of runs that are timed, after one that is not if there are several."
    return click.option(
        "--runs", type=click.IntRange(min=1), metavar="N", default=default, show_default=True, help=help
    )


all_option: Final = click.option("--all", "everything", is_flag=True, help="List everything, and fold nothing.")


def jobs_option(default: int | str) -> Any:
    """Return the option ``-j``. ``default`` is a number, or a text for the help."""
    of = {"default": default, "show_default": True} if isinstance(default, int) else {}
    said = "" if of else f" [default: {default}]"
    return click.option(
        "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help=f"Number of processes at a time.{said}", **of
    )


def timeout_option(default: int | None, what: str = "a run") -> Any:
    """Return the option ``--timeout``: the most seconds that ``what`` may take."""
    help = f"The most seconds that {what} may take." + ("" if default else " [default: no limit]")
    kind = click.FloatRange(min=0, min_open=True)
    return click.option(
        "--timeout", type=kind, metavar="SECONDS", default=default, show_default=default is not None, help=help
    )


def memory_option(default: str = "3/4 of the memory", what: str = "a run") -> Any:
    """Return the option ``--max-memory``: the most memory that ``what`` may hold at once."""
    help = f"The most memory of {what}, such as 2GiB. [default: {default}]"
    return click.option("--max-memory", type=Size(), metavar="SIZE", help=help)


exact_option: Final = click.option(
    "--exact",
    is_flag=True,
    default=None,
    help="Compute each layer on its own, by the kernel that defines it, on one thread.",
)


precision_option: Final = click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="f32",
    show_default=True,
    help="bf16 rounds what attention, and products and convolutions with constant weights multiply, int8-activations "
    "what integer weights are multiplied by; auto does each on processors that have instructions for it.",
)


weights_option: Final = click.option(
    "-w", "--weights", metavar="BIN", help="The .bin file. [default: next to the .xml, with the same name]"
)


def _targets(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of targets. Raises BadParameter for one that is no target."""
    from irrun.targets import parse_target  # imported late: most commands name no target

    try:
        return tuple(parse_target(text).text for text in values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


target_option: Final = click.option(
    "--target",
    "targets",
    metavar="TARGET",
    multiple=True,
    callback=_targets,
    help="Where the model must load: openvino==2024.6, 'openvino>=2022.1,<2025', npu or gpu. May be repeated.",
)


def file_to_write(path: str, option: str) -> Path:
    """Return the path of a file to write. Raises click.BadParameter, before the run, if it cannot be written."""
    target = Path(path)
    folder = target.resolve().parent
    problem = ""
    if not folder.is_dir():
        problem = f"there is no folder {folder}; create it first"
    elif target.exists() and not target.is_file():
        problem = "it is a folder or a device; choose the path of a file"
    if problem:
        raise click.BadParameter(f"cannot write {path}: {problem}", param_hint=option)
    return target


def refuse_to_replace(path: Path, option: str, advice: str = "choose another file") -> None:
    """Raise click.BadParameter if a file to write is one that the command reads, under whatever name.

    The command reads the files that its other arguments name: models with their .bin, inputs, tolerances, suites.
    """
    for other in _other_paths(option) if path.exists() else ():
        if _same(path, other):
            what = {".xml": "the model", ".bin": "its .bin"}.get(other.suffix, "a file that the command reads")
            raise click.BadParameter(f"{path} is {what}; {advice}", param_hint=option)


def refuse_to_replace_in(folder: str, option: str) -> None:
    """Raise click.BadParameter if the command reads a .npy in a folder to which it will write such files."""
    for other in _other_paths(option):
        if other.suffix.lower() == ".npy" and other.is_file() and _same(Path(folder), other.parent):
            message = f"the command reads {other}, and would write such files to {folder}; choose another folder"
            raise click.BadParameter(message, param_hint=option)


def _other_paths(option: str) -> Iterator[Path]:
    """Yield each path that an argument other than ``option`` may mean. Most of them do not exist."""
    context = click.get_current_context()
    for param in context.command.params:
        values = context.params.get(param.name or "") if option not in param.opts else None
        for text in (values,) if isinstance(values, str) else values if isinstance(values, (tuple, list)) else ():
            if isinstance(text, str):
                yield from _paths_in(text)


def _paths_in(text: str) -> Iterator[Path]:
    """Yield each path that an argument may mean: PATH, NAME=PATH, PATH:KEY or KIND[weights=PATH]:PATH.

    The .bin beside an .xml comes after the .xml.
    """
    starts = [0, *(match.end() for match in re.finditer(r"[=:]", text))]
    ends = [len(text), *(match.start() for match in re.finditer(r"[:\],]", text))]
    for path in [Path(text[start:end]) for start in starts for end in ends if start < end]:
        yield path
        if path.suffix.lower() == ".xml":
            yield path.with_suffix(".bin")


def _same(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except (OSError, ValueError):  # there is no such file
        return False


def model_to_write(path: str, option: str, *, force: bool) -> Path:
    """Return the path of an .xml to write with its .bin. Unless ``force``, neither is a file that the command reads.

    Raises click.BadParameter, before the model is read.
    """
    if not path.endswith(".xml"):
        raise click.BadParameter(f"{path} does not end in .xml; the .bin gets the same name", param_hint=option)
    for target in (file_to_write(path, option), Path(path).with_suffix(".bin")):
        if not force:
            refuse_to_replace(target, option, "choose another file, or replace it with --force")
    return Path(path)


force_option: Final = click.option("--force", is_flag=True, help="Let OUT.xml replace a model that the command reads.")


def require_ending(path: str, option: str, endings: Sequence[str], what: str) -> None:
    """Raise click.BadParameter if a path has the ending of another kind of file. ``what`` names the written kind."""
    ending = Path(path).suffix.lower()
    if ending and ending not in endings:
        message = f"{path} ends in {ending}, but {what} is written; write {Path(path).with_suffix(endings[0])}"
        raise click.BadParameter(message, param_hint=option)


def folder_to_write(path: str, option: str = "-o") -> Path:
    """Return the path of a folder. Raises click.BadParameter if it is a file, or has the ending of a file."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise click.BadParameter(f"{path} is a file; pass a folder", param_hint=option)
    if not folder.exists() and folder.suffix.lower() in _ENDINGS_OF_FILES:
        message = f"{path} ends in {folder.suffix}, but a folder is written; write {folder.with_suffix('')}"
        raise click.BadParameter(f"{message}, or > {path} for what the command prints", param_hint=option)
    return folder


_ENDINGS_OF_FILES: Final = (".csv", ".html", ".json", ".md", ".npy", ".npz", ".pdf", ".txt", ".xml", ".zip")


def new_file(path: str, option: str) -> Path:
    """Return the path of a file to write, as ``file_to_write``, but none that the command reads."""
    target = file_to_write(path, option)
    refuse_to_replace(target, option)
    return target


def _import(ctx: click.Context, param: click.Parameter, files: Sequence[str]) -> None:
    """Import plugin files. Raises click.BadParameter with the line of the file that fails."""
    for file in files:
        try:
            load_plugin(file)
        except OSError as error:
            raise click.BadParameter(
                f"cannot read {file}: {(error.strerror or str(error)).lower()}", ctx, param
            ) from None
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
            place = f"{file}:{frames[-1].lineno}" if frames else file
            raise click.BadParameter(f"{place}: {type(error).__name__}: {error}", ctx, param) from None


plugin_option: Final = click.option(
    "--plugin",
    metavar="FILE.py",
    multiple=True,
    callback=_import,
    expose_value=False,
    is_eager=True,
    help="A Python file that registers operations of your own with @irrun.op. May be repeated.",
)

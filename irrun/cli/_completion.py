"""What the shell completes: options, codes, operations, files, and the layers and inputs of the model on the line.

Options are in a table (``python -m tools completion`` writes it), because a completion must not import a command.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from html import unescape
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, split_arg_string

__all__ = ["TABLE", "codes", "command", "files", "inputs", "layers", "operations"]


TABLE: Final = Path(__file__).with_name("completion.json")
"""The options and arguments of each command."""


def command(name: str) -> click.Command | None:
    """Return a command that has the options and arguments of the table, and does nothing; None if it is not there."""
    try:
        known = json.loads(TABLE.read_text("ascii")).get(name)
    except (OSError, ValueError):
        return None
    return None if known is None else _command(name, known)


def _command(name: str, known: Any) -> click.Command:
    if isinstance(known, dict):
        return click.Group(name, {part: _command(part, params) for part, params in known.items()})
    return click.Command(name, params=[_param(**record) for record in known])


def _param(
    names: Sequence[str], choices: Sequence[str] = (), complete: str = "", nargs: int = 1, **option: Any
) -> click.Parameter:
    """Return an option or argument of the table."""
    kind = click.Choice(choices) if choices else None
    own = {"shell_complete": globals()[complete]} if complete else {}
    if not option:
        return click.Argument([*names], type=kind, nargs=nargs, required=False, **own)
    flag = {"is_flag": True} if option.pop("flag") else {"type": kind}
    joined = ["/".join(name.lstrip("/") for name in names)] if any(name[0] == "/" for name in names) else [*names]
    return click.Option([*joined, "_value"], **option, **flag, **own)


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the codes of findings, or their names if the word begins with a letter that no code has."""
    from irrun.codes import CODES

    ids = [CompletionItem(code.id, help=code.name) for code in CODES.values()]
    names = [CompletionItem(code.name, help=code.id) for code in CODES.values()] if incomplete else []
    return [item for item in (*ids, *names) if item.value.lower().startswith(incomplete.lower())]


def operations(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the types of operations."""
    from irrun.opdef import all_ops

    return _beginning(sorted({cls.type for cls in all_ops()}), incomplete)


def layers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of the layers in the model on the line."""
    return _beginning(_names(""), incomplete)


def inputs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ``NAME=`` for each input of the model on the line; after the ``=``, let the shell complete a file."""
    if "=" in incomplete:
        return [CompletionItem(incomplete, type="file")]
    return _beginning([f"{name}=" for name in _names("Parameter")], incomplete)


def _beginning(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the words that begin like the incomplete one, in upper or lower case."""
    return [CompletionItem(word) for word in words if word.lower().startswith(incomplete.lower())]


def _names(type: str) -> Sequence[str]:
    """Return the names of the layers of a type, or of all layers, in the file of the line; none if it has no file.

    The file is searched, not parsed: a completion must answer at once, also for a file that is being edited.
    """
    # click has not parsed the arguments if the line ends with an option without its value
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    path = next((Path(word) for word in words if word.lower().endswith(".xml") and Path(word).is_file()), None)
    try:
        text = "" if path is None else path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ()
    tags = re.findall(r"<layer\b[^>]*>", text)
    wanted = [tag for tag in tags if not type or f'type="{type}"' in tag]
    found = [unescape(match[1]) for tag in wanted if (match := re.search(r'\sname="([^"]*)"', tag))]
    return list(dict.fromkeys(name for name in found if name))

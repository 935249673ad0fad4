"""What the shell completes: codes, operations, files, and the layers and inputs of the model on the line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from html import unescape
from pathlib import Path

import click
from click.shell_completion import CompletionItem, split_arg_string

__all__ = ["codes", "files", "inputs", "layers", "operations"]


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

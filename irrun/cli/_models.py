"""How commands get at the models in a file."""

from __future__ import annotations

import sys

from irrun import api
from irrun.diagnostics import ReadError
from irrun.ir.parse import Parsed
from irrun.source import STDIN

__all__ = ["is_example", "load", "title"]


def load(path: str, weights: str | None = None, *, may_be_empty: bool = False) -> list[Parsed | ReadError]:
    """The model of an IR file, or the examples of a page: each read, or why it cannot be. Raises ReadError.

    The path ``-`` is standard input. A page without examples is an error unless it ``may_be_empty``.
    """
    data = sys.stdin.buffer.read() if path == "-" else None
    found = api.load_all(STDIN if path == "-" else path, weights, data)
    if not found and not may_be_empty:
        raise api.no_examples(path)
    return found


def is_example(found: Parsed | ReadError) -> bool:
    """Whether it was cut from a page. (What is wrong with a whole file is raised, not listed.)"""
    return isinstance(found, ReadError) or found.model.is_fragment


def title(path: str, found: Parsed | ReadError) -> str:
    """How an example of a page is called: ``broadcast-3.en.txt:75  Broadcast``."""
    if isinstance(found, ReadError):
        first = found.diagnostics[0]
        return f"{path}:{first.line}" if first.line else path
    layer = found.model.layers[0]
    return f"{path}:{found.model.source.span(layer.node).line}  {layer.type}"

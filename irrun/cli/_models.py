"""Load the models in a file for a command."""

from __future__ import annotations

import sys

from irrun import api
from irrun.base.source import STDIN
from irrun.diagnostics import ReadError
from irrun.ir.parse import Parsed

__all__ = ["is_example", "load", "title"]


def load(path: str, weights: str | None = None, *, may_be_empty: bool = False) -> list[Parsed | ReadError]:
    """Return the model of an IR file, or the examples of a page. A ReadError takes the place of an unreadable example.

    The path ``-`` is standard input. Raises ReadError for a file that cannot be read, and for a page without examples
    unless it ``may_be_empty``.
    """
    data = sys.stdin.buffer.read() if path == "-" else None
    items = api.load_all(STDIN if path == "-" else path, weights, data)
    if not items and not may_be_empty:
        raise api.no_examples(path)
    return items


def is_example(item: Parsed | ReadError) -> bool:
    """Return whether an item of ``load`` is an example of a page. (``load`` raises the errors of whole files.)"""
    return isinstance(item, ReadError) or item.model.is_fragment


def title(path: str, item: Parsed | ReadError) -> str:
    """Return the title of an example of a page, such as ``broadcast-3.en.txt:75  Broadcast``."""
    if isinstance(item, ReadError):
        first = item.diagnostics[0]
        return f"{path}:{first.line}" if first.line else path
    layer = item.model.layers[0]
    return f"{path}:{item.model.source.span(layer.node).line}  {layer.type}"

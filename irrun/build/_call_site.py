"""The line of the user's script that called ``irrun.build``, as the place of diagnostics."""

from __future__ import annotations

import linecache
import os
import sys
from typing import Final

from irrun.base.source import Source, Span
from irrun.model import VERSIONS, Model

__all__ = ["CallSite", "empty_model"]

_PACKAGE: Final = os.path.dirname(__file__)


class CallSite(Source):
    """The innermost line outside ``irrun.build`` on the call stack, as the source of diagnostics."""

    is_script = True

    def __init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _PACKAGE:
            frame = frame.f_back
        super().__init__(frame.f_code.co_filename, b"")
        self.number = frame.f_lineno

    def line(self, number: int) -> str:
        """Return a line of the script without its line break."""
        return linecache.getline(self.path, number).rstrip("\n")

    def span(self, node: int, attribute: str | None = None) -> Span:
        """Return the whole line of the call, whichever element or attribute is asked for."""
        text = self.line(self.number)
        start = len(text) - len(text.lstrip())
        return Span(self.number, start + 1, max(len(text.rstrip()), start + 1) + 1)

    def children(self, node: int, tag: str) -> list[int]:
        """Return an element for ``<data>``, so that attributes have a place, and none for any other tag."""
        return [node] if tag == "data" else []


def empty_model(source: Source) -> Model:
    """Return a model without layers whose diagnostics point to ``source``."""
    return Model("", VERSIONS[-1], {}, (), {}, source)

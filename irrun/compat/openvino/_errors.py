"""The errors of the stand-in, and the base class of its objects."""

from __future__ import annotations

import difflib
import logging
from typing import NoReturn

from irrun.diagnostics import Diagnostic, IrrunError

__all__ = [
    "Covered", "NotCovered", "NotCoveredAttribute", "NotCoveredModule", "OpenVINOError", "say_once", "translated",
]  # fmt: skip

_said: set[str] = set()
_log = logging.getLogger("irrun.compat.openvino")


class OpenVINOError(IrrunError, RuntimeError):
    """An error that openvino raises as a RuntimeError."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        RuntimeError.__init__(self, message)
        self.diagnostics = diagnostics


class NotCovered(IrrunError, NotImplementedError):  # noqa: N818
    """The error for a part of openvino that the stand-in does not cover.

    For a missing attribute it is also an AttributeError, and for a missing module an ImportError. ``nearest`` is what
    the reader may have meant, or can use instead.
    """

    def __init__(self, part: str, nearest: str | None = None) -> None:
        help = f"; the nearest thing that it has is {nearest}" if nearest else ""
        Exception.__init__(self, f"irrun.compat.openvino does not cover {part}{help}")
        self.diagnostics = ()


class NotCoveredAttribute(NotCovered, AttributeError):  # noqa: N818
    """The error for an attribute of a module or class that is not covered."""


class NotCoveredModule(NotCovered, ImportError):  # noqa: N818
    """The error for a module of openvino that is not covered."""


class Covered:
    """Base of the stand-in's classes: an attribute that is not covered raises NotCoveredAttribute.

    Public attributes are those of openvino. An attribute that the modules of the stand-in share begins with ``_``.
    """

    def __getattr__(self, name: str) -> NoReturn:
        kind = type(self).__name__
        near = difflib.get_close_matches(name, [n for n in dir(type(self)) if not n.startswith("_")], 1)
        raise NotCoveredAttribute(f"{kind}.{name}", f"{kind}.{near[0]}" if near else None)


def translated(error: IrrunError) -> OpenVINOError:
    """Return the error to raise in place of one of irrun's, with the same message and diagnostics."""
    return OpenVINOError(str(error), error.diagnostics)


def say_once(what: str, why: str) -> None:
    """Log a warning, once in this process, that something which openvino understands has no effect here."""
    if what not in _said:
        _said.add(what)
        _log.warning("%s has no effect: %s", what, why)

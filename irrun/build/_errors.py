"""The error of a wrong argument, with the line of the user's script that passes it."""

from __future__ import annotations

from irrun.build._call_site import CallSite
from irrun.diagnostics import BuildError, diagnostic

__all__ = ["bad_call"]


def bad_call(text: str, code: str = "IR609") -> BuildError:
    """Return the error for a call of ``irrun.build`` with an argument that it cannot use.

    ``text`` says what is wrong and, after a semicolon, what to do.
    """
    message, _, help = text.partition("; ")
    return BuildError(diagnostic(code, message, source=CallSite(), node=0, help=help or None))

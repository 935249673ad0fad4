"""The error of a server whose packages are not installed."""

from __future__ import annotations

import click

from irrun.base.extras import install

__all__ = ["missing"]


def missing(error: ModuleNotFoundError, extra: str) -> Exception:
    """Return the error for a package that an extra of irrun installs; ``error`` itself for a module of irrun."""
    if (error.name or "").split(".")[0] == "irrun":
        return error
    return click.UsageError(f"this needs the Python package {error.name}, which is not installed; {install(extra)}")

"""The error of a server whose packages are not installed."""

from __future__ import annotations

import click

__all__ = ["missing"]


def missing(error: ModuleNotFoundError, extra: str) -> Exception:
    """Return the error for a package that an extra of irrun installs; ``error`` itself for a module of irrun."""
    if (error.name or "").split(".")[0] == "irrun":
        return error
    return click.UsageError(f"the package {error.name} is missing; install the extra: pip install 'irrun[{extra}]'")

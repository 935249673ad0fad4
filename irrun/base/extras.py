"""The extras of irrun: packages that only some users need."""

from __future__ import annotations

__all__ = ["install"]


def install(extra: str) -> str:
    """Return the help of an error about a package that belongs to an extra and is not installed."""
    return f'install it: pip install ".[{extra}]", in the folder of irrun'

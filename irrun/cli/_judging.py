"""What the commands that judge engines share: the limits of each engine, and the folder that they write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from irrun.cli._options import Size, together
from irrun.engines import Limits
from irrun.running.live import default_max_memory

__all__ = ["LimitOptions", "folder_to_write", "limit_options"]

_MEMORY_DIVISOR: Final = 3
"""An engine may take the default of a run, which is 3/4 of the memory, divided by this."""


@dataclass(frozen=True)
class LimitOptions:
    """The limits of each engine: seconds for a request, and bytes of memory, None for the default."""

    timeout: float
    max_memory: int | None

    @property
    def limits(self) -> Limits:
        """The limits as an engine takes them."""
        return Limits(self.timeout, self.max_memory or default_max_memory() // _MEMORY_DIVISOR)


limit_options: Final = together(
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=60,
        show_default=True,
        metavar="SECONDS",
        help="The most seconds that an engine may take for a request.",
    ),
    click.option("--max-memory", type=Size(), help="The most memory of each engine. [default: 1/4 of the memory]"),
)
"""The options that fill ``LimitOptions``."""


def folder_to_write(path: str) -> Path:
    """Return the path of a folder. Raises click.BadParameter if it is a file."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise click.BadParameter(f"{path} is a file; pass a folder", param_hint="-o")
    return folder

"""What the commands that judge engines share: the limits of each engine, and the folder that they write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from irrun.cli._options import memory_option, timeout_option, together
from irrun.engines import Limits
from irrun.running.live import default_max_memory

__all__ = ["LimitOptions", "limit_options"]

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


limit_options: Final = together(timeout_option(60, "an engine"), memory_option("1/4 of the memory", "each engine"))
"""The options that fill ``LimitOptions``."""

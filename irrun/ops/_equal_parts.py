"""Shared by Split, ShuffleChannels and the block operations: a dim that is cut into equal parts."""

from irrun.opdef import Site
from irrun.types import Dim


def part(at: Site, dim: Dim, count: Dim | int, label: str, what: str) -> Dim:
    """Return ``dim`` divided by ``count``, which is positive. Refuses a dim that cannot be a multiple of ``count``."""
    length = dim // count
    at.require(dim.ceil_div(count).lo <= length.hi, label, f"{what} is {dim}, not a multiple of {count}")
    return length

"""What Split, ShuffleChannels and the block operations share: a dim cut into equal parts."""

from irrun.opdef import Site
from irrun.types import Dim


def part(at: Site, dim: Dim, count: Dim | int, label: str, what: str) -> Dim:
    """A ``count``-th of ``dim``; refuses one that is surely no multiple of ``count``, which is positive."""
    length = dim // count
    at.require(dim.ceil_div(count).lo <= length.hi, label, f"{what} is {dim}, no multiple of {count}")
    return length

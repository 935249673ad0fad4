"""Shared by BatchToSpace and SpaceToBatch: a block size and two edges (pads or crops) for each axis."""

from irrun.opdef import Site, Value, few
from irrun.types import INF, Dim, PartialShape

Dims = tuple[Dim, ...]


def aligned(at: Site, data: Value, block_shape: Value, **edges: Value) -> tuple[Dims, Dims, Dims, Dims] | None:
    """Return the dims of ``data``, the block sizes and the entries of both edges, one for each axis.

    Return None if the rank is unknown. Refuses by the clauses that both operations have: the rank (C1), the number of
    entries (C2), blocks (C3) and edges (C4).
    """
    rank = data.rank
    for name, value in {"block_shape": block_shape, **edges}.items():
        at.require(value.rank in (None, 1), "C2", f"{name} is {value.shape}, not 1D")
        count = value.shape.count()
        rank = few(count) if rank is None else rank
        at.require(rank is None or count.fits(rank), "C2", f"{name} has length {count}, but data has rank {rank}")
    if rank is None:
        return None
    at.require(rank >= 2, "C1", f"data has rank {rank}, less than 2")
    begins, ends = (_entries(at, name, value, rank, 0, "C4") for name, value in edges.items())
    blocks = _entries(at, "block_shape", block_shape, rank, 1, "C3")
    return data.shape.dims or tuple(PartialShape.of_rank(rank)), blocks, begins, ends


def _entries(at: Site, name: str, value: Value, rank: int, least: int, label: str) -> Dims:
    """Return the entries of an input. Refuses entries below ``least``, and a first entry other than ``least``."""
    entries = value.dims() or (Dim(-INF, INF),) * rank
    listed = f"{name} [{','.join(map(str, entries))}]"
    at.require(all(n.hi >= least for n in entries), label, f"{listed} has an entry below {least}")
    at.require(entries[0].fits(least), label, f"{listed} does not begin with {least}")
    return (Dim(least), *(n.max(least) for n in entries[1:]))

"""One thing in a valid model corrupted at random: nearly always reported at its place, and repaired."""

from typing import Any

from mutations import ATTRIBUTE_KINDS, KINDS, PORT_KINDS, run
from oracle import Oracle

COUNT, SEED = 1000, 2026


def test_mutations(ov: Any, oracle: Oracle) -> None:
    figures = run(COUNT, SEED, ov, oracle)
    table = "\n".join([*figures.missed, figures.table()])
    assert figures.total == COUNT
    assert all(figures.counts[kind, "known"] > 25 for kind in KINDS), table
    # what can be known is reported at its layer and line, and one fault is one finding
    assert figures.rate("reported", KINDS) >= 0.99, table
    assert all(figures.rate("reported", [kind]) >= 0.98 for kind in KINDS), table
    assert figures.rate("alone", KINDS) >= 0.98, table
    # little cannot be known
    assert sum(figures.counts[kind, "silent"] for kind in ATTRIBUTE_KINDS) < COUNT // 20, table
    assert not any(figures.counts[kind, "silent"] for kind in PORT_KINDS), table
    # dims and precisions are repaired to the original bytes, and what was fixed checks clean
    assert all(figures.rate("repaired", [kind]) >= 0.95 for kind in PORT_KINDS), table
    assert figures.rate("clean", PORT_KINDS) >= 0.98, table
    assert figures.rate("repaired", ["misspelt"]) >= 0.95, table

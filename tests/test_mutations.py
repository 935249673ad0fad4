"""One thing in a valid model corrupted at random: nearly always reported where it stands, and put right again."""

from typing import Any

import pytest

from mutations import ATTRIBUTE_KINDS, KINDS, PORT_KINDS, Figures, run
from oracle import Oracle

COUNT, SEED = 1000, 2026


@pytest.fixture(scope="module")
def figures(ov: Any, oracle: Oracle) -> Figures:
    found = run(COUNT, SEED, ov, oracle)
    print(*found.missed, found.table(), sep="\n")
    return found


def test_what_can_be_known_is_reported_at_its_layer_and_line(figures: Figures) -> None:
    assert figures.total == COUNT
    assert all(figures.counts[kind, "known"] > 25 for kind in KINDS)
    assert figures.rate("reported", KINDS) >= 0.99, figures.table()
    assert all(figures.rate("reported", [kind]) >= 0.98 for kind in KINDS), figures.table()


def test_one_fault_is_one_finding(figures: Figures) -> None:
    assert figures.rate("alone", KINDS) >= 0.98, figures.table()


def test_little_cannot_be_known(figures: Figures) -> None:
    silent = sum(figures.counts[kind, "silent"] for kind in ATTRIBUTE_KINDS)
    assert silent < COUNT // 20, figures.table()
    assert not any(figures.counts[kind, "silent"] for kind in PORT_KINDS)


def test_dims_and_precisions_are_repaired_to_the_original_bytes(figures: Figures) -> None:
    assert figures.rate("repaired", PORT_KINDS) >= 0.95, figures.table()
    assert all(figures.rate("repaired", [kind]) >= 0.95 for kind in PORT_KINDS), figures.table()


def test_what_was_fixed_checks_clean(figures: Figures) -> None:
    assert figures.rate("clean", PORT_KINDS) >= 0.98, figures.table()


def test_misspelt_attributes_are_renamed(figures: Figures) -> None:
    assert figures.rate("repaired", ["misspelt"]) >= 0.95, figures.table()

"""The program of pairs: healthy files in other precisions agree, and a fault is named where it is."""

from __future__ import annotations

from typing import Any

import pytest

from pairs.command import judged


@pytest.mark.slow
def test_pairs_are_judged_rightly(ov: Any) -> None:
    """Twenty pairs: each of five networks twice with a fault, and twice in another precision or instruction set."""
    counts = judged(20, 1, also=True)
    assert counts["harmless"] == counts["harmless that agree"] == 10
    assert counts["faults"] == counts["faults that compare names"] == counts["faults that bisect names"] == 10

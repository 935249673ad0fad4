"""Models that run with a wrong declaration, fixed: each gives what it gave, in irrun and in OpenVINO."""

from typing import Any

from fixes import run
from oracle import Oracle


def test_fixes(ov: Any, oracle: Oracle) -> None:
    figures = run(60, 2026, ov, oracle)
    assert not figures.broken
    assert figures.counts["same"] == figures.counts["ran"] == 60, str(figures)
    # most are restored byte for byte; a declaration that nothing contradicts stays
    assert figures.counts["as original"] >= 45, str(figures)
    assert figures.counts["in OpenVINO"] >= 50, str(figures)

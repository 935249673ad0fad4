"""How a test of precisions runs its models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irrun.fast import available


@pytest.fixture(params=["numpy", "compiled", "exact"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a way to run models, which is in effect."""
    if request.param == "compiled":
        pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setenv("IRRUN_FAST", "always" if request.param == "compiled" else "0")
    available.cache_clear()
    yield request.param
    available.cache_clear()

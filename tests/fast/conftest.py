"""Random numbers for each test, which depend on no other test, and models that are large enough for compiled kernels."""

import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from irrun import fast
from irrun.planning import plans


@pytest.fixture(autouse=True)
def _random(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed the ``RANDOM`` of a module by the name of the test."""
    if hasattr(request.module, "RANDOM"):
        monkeypatch.setattr(request.module, "RANDOM", np.random.default_rng(zlib.crc32(request.node.name.encode())))


@pytest.fixture
def every_model_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if every model were large enough for compiled kernels."""
    monkeypatch.setattr(plans, "_COMPILED", 0)
    monkeypatch.setenv("IRRUN_FAST", "1")
    fast.available.cache_clear()
    yield
    fast.available.cache_clear()

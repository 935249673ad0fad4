"""A generator of random numbers for each test: its data depend neither on the tests before it nor on their order."""

import zlib

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _random(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed the ``RANDOM`` of a module by the name of the test."""
    if hasattr(request.module, "RANDOM"):
        monkeypatch.setattr(request.module, "RANDOM", np.random.default_rng(zlib.crc32(request.node.name.encode())))

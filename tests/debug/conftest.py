"""Engines that the tests of comparisons share: a process takes about a second to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irrun import engines
from irrun.engines import Engine, Limits


@pytest.fixture(scope="session")
def two() -> Iterator[tuple[Engine, Engine]]:
    """Return two processes of irrun, the sides of a comparison of IR files."""
    with engines.open("irrun", Limits(120)) as first, engines.open("irrun", Limits(120)) as second:
        yield first, second


@pytest.fixture(scope="session")
def against_openvino() -> Iterator[tuple[Engine, Engine]]:
    """Return irrun and OpenVINO."""
    limits = Limits(120)
    with engines.open("irrun", limits) as first, engines.open("openvino[precision=f32,threads=1]", limits) as second:
        yield first, second

"""Engines that several tests share: a process takes about a second to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irrun import engines
from irrun.engines import Engine, Limits


@pytest.fixture(scope="session")
def own() -> Iterator[Engine]:
    """Return irrun as an engine, to which each test passes its model."""
    with engines.open("irrun", Limits(120)) as engine:
        yield engine


@pytest.fixture(scope="session")
def exact() -> Iterator[Engine]:
    with engines.open("exact", Limits(120)) as engine:
        yield engine


@pytest.fixture(scope="session")
def openvino() -> Iterator[Engine]:
    with engines.open("openvino[threads=1,precision=f32]", Limits(120)) as engine:
        yield engine

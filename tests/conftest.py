"""The lanes of the tests, and OpenVINO as their witness.

- ``spec``: what needs neither OpenVINO nor long: every test that no other lane claims.
- ``openvino``: tests that take the fixture ``ov`` or ``oracle``, or are marked because a process that they start
  needs OpenVINO.
- ``processes``: tests marked so, mostly modules, which start many processes or a browser.
- ``slow``: tests marked so.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import grouped
import warm
from irrun import fast
from irrun.engines import process
from irrun.files import kernels_folder
from irrun.kernels import threads
from oracle import Oracle
from places import ROOT

sys.path.append(str(ROOT))  # for benchmarks: last, so that tests of a wheel import its irrun
pytest.register_assert_rewrite("kit")  # a row of a table that fails then shows both values

WITNESSES = {"ov", "oracle"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--each-row", action="store_true", help="collect each row of a table as a test of its own")


def pytest_configure(config: pytest.Config) -> None:
    grouped.each_row = config.getoption("each_row")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") or item.get_closest_marker("openvino"):
            continue
        if WITNESSES & set(getattr(item, "fixturenames", ())):
            item.add_marker("openvino")
        elif not item.get_closest_marker("processes"):
            item.add_marker("spec")


def pytest_sessionstart() -> None:
    gc.disable()
    if kernels := kernels_folder():  # compiled once for all sessions
        os.environ["NUMBA_CACHE_DIR"] = str(kernels)
    os.environ["IRRUN_CACHE_DIR"] = ""  # what one test has found is no answer to another
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it, with all it starts


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through tens of thousands of collected tests again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _forked_harnesses() -> Iterator[None]:
    """Fork the harnesses of engines from a warm process."""
    before = process.subprocess
    process.subprocess = warm.Forking  # type: ignore[assignment]
    yield
    process.subprocess = before


@pytest.fixture
def numpy_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No compiled kernels: they hold some weights in f16, and numba itself takes memory."""
    monkeypatch.setenv("IRRUN_FAST", "0")
    fast.available.cache_clear()
    yield
    fast.available.cache_clear()


@pytest.fixture
def compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compiled kernels, even where IRRUN_FAST declines them."""
    monkeypatch.setenv("IRRUN_FAST", "1")
    fast.available.cache_clear()
    yield
    fast.available.cache_clear()


@pytest.fixture(params=[1, 3])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, and three that share everything."""
    monkeypatch.setenv("IRRUN_THREADS", str(request.param))
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "WORTH_NATIVELY", 1)
    monkeypatch.setattr(threads, "WORTH_WAKING", 1)
    threads.threads.cache_clear()
    threads._tasks.cache_clear()
    yield
    threads.threads.cache_clear()
    threads._tasks.cache_clear()


@pytest.fixture(scope="session")
def ov() -> Any:
    """Return the module openvino, which builds models."""
    import openvino

    return openvino


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Start OpenVINO in a process of its own, and end it with the tests."""
    oracle = Oracle()
    yield oracle
    oracle.close()

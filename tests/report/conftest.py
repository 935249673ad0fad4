"""The browser that the tests of the page share: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import NO_BROWSER, Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a headless Chromium; skip without one."""
    if chromium() is None:
        pytest.skip(NO_BROWSER)
    with Browser() as opened:
        yield opened

"""The browser that the tests of the page share, for it takes seconds to start, and how they open a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import NO_BROWSER, Browser, Tab, chromium
from irrun.report import collect
from nets import Net


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a headless Chromium; skip without one."""
    if chromium() is None:
        pytest.skip(NO_BROWSER)
    with Browser() as opened:
        yield opened


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Any:
    """Return a function that reports a model and opens the page. The page must log no error and ask for nothing."""
    tabs: list[Tab] = []

    def show(path: Path | Net, feeds: Any = None, *, address: str = "", dark: bool = False, **more: Any) -> Tab:
        path = path.save(tmp_path) if isinstance(path, Net) else path
        target = tmp_path / f"report{len(tabs)}.html"
        collect(path, feeds, runs=1, **more).write(target)
        tabs.append(browser.open(target.as_uri() + address, dark=dark))
        return tabs[-1]

    yield show
    for tab in tabs:
        assert tab.problems() == []
        assert all(re.match(r"file:|data:,$", url) for url in tab.requests())
        assert len([url for url in tab.requests() if url.startswith("file:")]) == 1
        tab.close()

"""A copy of the project that tests change in turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from copies import copy_tree, restore


@pytest.fixture(scope="session")
def _copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_tree(tmp_path_factory.mktemp("copy") / "tree")


@pytest.fixture
def tree(_copied: Path) -> Iterator[Path]:
    """Return a copy of the project, which is restored after the test."""
    yield _copied
    restore(_copied)

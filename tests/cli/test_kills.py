"""Processes that are killed while they write leave whole files. ``python -m tools kills 500`` kills more of them."""

import sys

import pytest

from kills import WRITERS, campaign


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the system decides which open files can be removed")
@pytest.mark.parametrize("writer", WRITERS)
def test_killed_while_writing(writer: str) -> None:
    campaign(writer, 3)

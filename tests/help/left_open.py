"""Require that a behaviour of ``irrun.specification.undefined`` leaves exactly the expected elements open."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.specification.undefined import BEHAVIOURS
from kit import operation

__all__ = ["check_left_open"]


def check_left_open(
    behaviour: str, name: str, attributes: dict[str, Any], inputs: list[np.ndarray | None], expected: Any
) -> None:
    """Require that ``behaviour`` of operation ``name`` returns ``expected``, in the same shape."""
    found = np.asarray(BEHAVIOURS[behaviour](operation(name, attributes), inputs))
    np.testing.assert_array_equal(found, np.asarray(expected))
    assert found.shape == np.shape(expected)

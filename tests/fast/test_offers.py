"""The seam of compiled kernels: which operations have some, and that operations of other packages have none."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from irrun import fast
from irrun.opdef import Op, Request, Value, find
from kit import operation

pytest.importorskip("numba", reason="the extra `fast` is not installed")


@pytest.mark.parametrize("type", fast.OFFERS)
def test_each_row_names_an_operation_and_a_module(type: str) -> None:
    assert find(type)
    assert callable(import_module(f"irrun.fast.{fast.OFFERS[type]}").offer)


def test_an_operation_of_another_package_has_no_compiled_kernel() -> None:
    """Even if it has the type of one that has."""

    class Custom(Op):
        type, since, spec = "Tanh", 1, ""

    request = Request((Value.of(np.ones((2, 3), np.float32)),))
    assert fast.kernel(operation("Tanh-1"), request) is not None
    assert fast.kernel(Custom(), request) is None

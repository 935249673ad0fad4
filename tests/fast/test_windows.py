"""Windows of channels-last data, called as threads call them."""

from __future__ import annotations

import numpy as np
import pytest

from irrun.kernels.convolution.windows import Axis

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.convolution.methods import PackedFilters
from irrun.fast.convolution.stage import Stage
from irrun.fast.convolution.windows import convolution_of, geometry_of


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@pytest.mark.parametrize("depth", [0, 3])
def test_a_thread_without_windows(depth: int) -> None:
    data, out, nothing = normal(1, 4, 4, 3), normal(1, 4, 4, 3), np.empty(0, np.float32)
    packed = PackedFilters(normal(1, 3, 3, 1, 1) if depth else normal(3, 1, 1, 1, 1))
    axis, before = Axis(4, 1, 1, 1, 0, 0, 4), out.copy()
    stage = Stage((axis, axis), packed.panels, 1, depth, 3, 3, nothing, nothing, 0)
    function, arguments = convolution_of(stage, geometry_of(axis, axis), data, None, out)
    function(*arguments, 7, 7)
    np.testing.assert_array_equal(out, before)

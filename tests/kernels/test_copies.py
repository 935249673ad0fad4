"""Copies of views: whatever the order of their axes, the elements arrive where they belong."""

from itertools import permutations

import numpy as np
import pytest

from irrun.kernels.copies import copy_to

SHAPES = [(2, 70, 600), (3, 130, 140), (2, 40, 64, 64), (3, 5, 200, 40), (5, 128, 256), (20_000, 3), (1, 90, 1, 300)]


def check(view: np.ndarray) -> None:
    out = np.zeros(view.shape, view.dtype)
    copy_to(out, view)
    np.testing.assert_array_equal(out, view)


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orders(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    order = tuple(axis for axis in order if axis < len(shape))
    data = np.arange(np.prod(shape)).reshape(shape)
    for dtype in (np.float32, np.int8, np.float64):
        check(data.astype(dtype).transpose(order))


def test_other_views() -> None:
    data = np.random.default_rng(0).standard_normal((300, 400)).astype(np.float32)
    for view in (data, data[::-1].T, data.T[::-1], data[:, ::2].T, data[::2].T, data[10:, 7:].T, np.broadcast_to(data[0], (300, 400)),
                 np.broadcast_to(data[:, :1], (300, 400)).T, data[:0].T, data[3, 4]):  # fmt: skip
        check(np.asarray(view))
    check(np.array([["a", "bc"]] * 40_000, object).T)

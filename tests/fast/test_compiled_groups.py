"""GroupNormalization with compiled kernels: the definition in f64, whatever follows it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.activations import Activation, activation
from irrun.fast.groups import group_normalization
from irrun.opdef import Epilogue

RANDOM = np.random.default_rng(0)
SHAPES = [((1, 5, 7, 6), 3), ((2, 6, 5, 7), 1), ((3, 1, 1, 4), 4), ((2, 40, 30, 48), 4), ((1, 9, 8, 35), 5)]


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def defined(x: np.ndarray, groups: int, epsilon: float, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return the definition in f64, channels last."""
    batch, channels = x.shape[0], x.shape[-1]
    grouped = x.astype(np.float64).reshape(batch, -1, groups, channels // groups)
    middle = grouped.mean((1, 3), keepdims=True)
    variance = ((grouped - middle) ** 2).mean((1, 3), keepdims=True)
    return ((grouped - middle) / np.sqrt(variance + epsilon)).reshape(x.shape) * scale + bias


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(("shape", "groups"), SHAPES)
@pytest.mark.parametrize("offset", [0, 1000])
def test_the_definition(shape: tuple[int, ...], groups: int, offset: int) -> None:
    x, scale, bias = normal(*shape) + np.float32(offset), normal(shape[-1]), normal(shape[-1])
    wanted = defined(x, groups, 0.01, scale, bias)
    kernel = group_normalization(shape, groups, 0.01)
    np.testing.assert_allclose(kernel.call(x, scale, bias), wanted, rtol=1e-4, atol=1e-3 if offset else 1e-5)
    out = np.empty(shape, np.float32)
    assert kernel.call(x, scale, bias, out=out) is out
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-3 if offset else 1e-5)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def swished(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("then", [None, relu, swished])
def test_what_follows(residual: bool, biased: bool, then: Callable[[np.ndarray], np.ndarray] | None) -> None:
    shape = 2, 9, 8, 12
    x, scale, bias, more, added = normal(*shape), normal(12), normal(12), normal(*shape), normal(12)
    wanted = defined(x, 3, 0.1, scale, bias) + (more if residual else 0) + (added if biased else 0)
    epilogue = Epilogue(
        added if biased else None,
        residual,
        (0, np.inf) if then is relu else None,
        activation(Activation.SWISH).joins.change if then is swished else None,
    )
    with_epilogue = group_normalization(shape, 3, 0.1).joins.with_epilogue
    assert with_epilogue is not None
    found = with_epilogue(epilogue).call(x, scale, bias, *([more] if residual else []))
    np.testing.assert_allclose(found, wanted if then is None else then(wanted), rtol=1e-4, atol=1e-5)


def test_infinities_stay_in_their_group() -> None:
    x = normal(1, 4, 4, 6)
    x[0, 1, 1, 0] = np.inf
    found = group_normalization(x.shape, 3, 0.1).call(x, np.ones(6, np.float32), np.zeros(6, np.float32))
    assert np.isnan(found[..., :2]).all()
    assert np.isfinite(found[..., 2:]).all()

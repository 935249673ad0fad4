"""Compiled kernels that one step calls in turn, wherever the arrays of a run are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b

pytest.importorskip("numba", reason="the extra `fast` is not installed")

RANDOM = np.random.default_rng(0)
CHANNELS = 32


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


@pytest.fixture(autouse=True)
def every_model_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRRUN_FAST", "always")


def convolution(x: Any, kernel: int) -> Any:
    """A convolution with a bias. With kernels of 3, it is computed by Winograd's method."""
    pads = [kernel // 2] * 2
    filters = normal(CHANNELS, CHANNELS, kernel, kernel) / (5 * kernel)
    y = b.Convolution(x, filters, strides=[1, 1], dilations=[1, 1], pads_begin=pads, pads_end=pads)
    return b.Add(y, normal(1, CHANNELS, 1, 1))


def block(x: Any, row: Any, kernel: int) -> Any:
    """A block of a diffusion network: two convolutions after normalizations, and a row that is added to each pixel."""
    y = b.Swish(b.GroupNormalization(x, normal(CHANNELS), normal(CHANNELS), num_groups=4, epsilon=1e-3))
    y = b.Add(convolution(y, kernel), row)
    y = b.Swish(b.GroupNormalization(y, normal(CHANNELS), normal(CHANNELS), num_groups=4, epsilon=1e-3))
    return b.Add(convolution(y, kernel), x)


def network(batch: int, kernels: tuple[int, ...]) -> irrun.Model:
    """Blocks whose rows depend on an input of their own, with a result in the middle."""
    x = b.parameter([batch, CHANNELS, 14, 11], "f32", name="x")
    y = convolution(x, 1)
    time = b.parameter([1, CHANNELS], "f32", name="time")
    results = {}
    for n, kernel in enumerate(kernels):
        row = b.Unsqueeze(b.Unsqueeze(b.MatMul(time, normal(CHANNELS, CHANNELS) / 6), 2), 3)
        y = block(y, row, kernel)
        results[f"block {n}"] = y
    return b.model({name: node for n, (name, node) in enumerate(results.items()) if n % 2} | {"last": b.Relu(y)})


def feeds_of(model: irrun.Model) -> list[np.ndarray]:
    return [normal(*(int(dim) for dim in p.attributes["shape"].split(","))) for p in model.parameters]


def assert_close(found: Any, wanted: Any) -> None:
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-3)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("kernels", [(3, 3, 3, 3), (1, 5, 1, 3)], ids=["Winograd", "others"])
def test_blocks_are_one_step(batch: int, kernels: tuple[int, ...]) -> None:
    """What computes the rows comes before all of them, although it is between them in the file."""
    model = network(batch, kernels)
    executable, exact, feeds = irrun.compile(model, exact=False), irrun.compile(model, exact=True), feeds_of(model)
    for _ in range(3):
        assert_close(executable(feeds), exact(feeds))
    turns = [step for step in executable.plan.steps if step.kernel.algorithm == "compiled in turn"]
    assert [sum(layer.type == "Convolution" for layer in step.layers) for step in turns] == [1 + 2 * len(kernels)]
    assert not any(step.op.type == "Add" and step.kernel.out == "elementwise" for step in executable.plan.steps)


@pytest.mark.usefixtures("workers")
def test_arrays_at_other_addresses() -> None:
    """Results stay as they are in later runs, and inputs may have any strides."""
    model = network(2, (3, 1))
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    runs: list[tuple[Any, Any]] = []
    for n in range(6):
        x, time = feeds_of(model)
        wide = np.repeat(x, 2, 3)
        x = (x, np.asfortranarray(x), wide[..., ::2])[n % 3]
        runs.append((executable([x, time]), exact([x, time])))
    for found, wanted in runs:
        assert_close(found, wanted)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_what_is_not_finite_reaches_the_windows_that_see_it(precision: Any) -> None:
    """A tile of Winograd's method would spread it: the step computes its kernels one by one then, and only then.

    In bf16, this method takes longer, so that no kernel checks its results.
    """
    x = b.parameter([2, CHANNELS, 14, 11], "f32", name="x")
    model = b.model(convolution(b.Relu(convolution(b.Swish(convolution(x, 3)), 3)), 1))
    compiled = irrun.compile(model, exact=False, precision=precision)
    exact = irrun.compile(model, exact=True, precision=precision)
    (step,) = compiled.plan.steps
    assert step.kernel.algorithm == "compiled in turn"
    for faults in ([], [np.nan], [np.nan, -np.inf], []):
        data = normal(2, CHANNELS, 14, 11)
        for place, fault in zip(((1, 3, 2, 2), (0, 9, 9, 5)), faults):
            data[place] = fault
        found, wanted = compiled([data])[0], exact([data])[0]
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3 if precision == "f32" else 0.05)


def test_runs_at_the_same_time() -> None:
    model = network(2, (3, 1))
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    feeds = [feeds_of(model) for _ in range(12)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(executable, feeds))
    for got, given in zip(found, feeds):
        assert_close(got, exact(given))

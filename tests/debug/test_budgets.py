"""Budgets of error: what a precision explains, and faults that are smaller than its errors in the outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.debug import Limit, Tolerances, compare
from irrun.model import is_constant
from small_networks import bert, resnet

SIDES = ("openvino", "openvino[precision=bf16]", "openvino[precision=f32]")


@pytest.fixture(scope="module", params=[bert, resnet], ids=lambda build: build.__name__)
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import openvino as ov

    build: Callable[[Any], Any] = request.param
    path = tmp_path_factory.mktemp("network") / f"{build.__name__}.xml"
    ov.save_model(build(ov), path, compress_to_fp16=False)
    return path


@pytest.mark.parametrize("side", SIDES)
def test_a_healthy_network_agrees(network: Path, side: str) -> None:
    comparison = compare(str(network), f"{side}:{network}")
    assert comparison.agrees
    assert all(layer.budget is not None and layer.budget.is_explained for layer in comparison.outputs)


@pytest.mark.parametrize("side", SIDES)
def test_a_channel_that_is_scaled_is_named(network: Path, side: str, tmp_path: Path) -> None:
    """One channel of one weight is larger by 1 %: bf16 itself errs by as much in single elements."""
    model = irrun.read_model(network)
    reader, weight = next(
        (model.layers[id], model.layers[feeds[1][0]])
        for id, feeds in model.feeds.items()
        if model.layers[id].type in ("MatMul", "Convolution") and feeds[1] and is_constant(model.layers[feeds[1][0]])
    )
    data = bytearray(network.with_suffix(".bin").read_bytes())
    offset, size = (int(weight.attributes[name]) for name in ("offset", "size"))
    shape = [int(dim) for dim in weight.attributes["shape"].split(",")]
    values = np.frombuffer(data, np.float32, size // 4, offset).reshape(shape)
    values[0] *= 1.01
    wrong = tmp_path / "wrong.xml"
    wrong.write_bytes(network.read_bytes())
    wrong.with_suffix(".bin").write_bytes(data)
    comparison = compare(str(network), f"{side}:{wrong}")
    assert comparison.verdict == "differ"
    assert comparison.first is not None
    assert comparison.first.layer.name == reader.name


def test_tolerances_decide_instead(network: Path) -> None:
    strict = Tolerances(everywhere=Limit(0, 0))
    comparison = compare(str(network), f"openvino[precision=bf16]:{network}", tolerances=strict)
    assert comparison.verdict == "differ"
    assert all(layer.budget is None for layer in comparison.layers)

"""MOE, GatherMatmul, GatherMatmulCompressed, GatedResidual and ConvolutionBiased."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from internal_operations import made, ran
from irrun.opdef import Site


def _draw(seed: int) -> Callable[..., np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.normal(size=shape).astype(np.float32)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def swiglu(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray, beta: float) -> np.ndarray:
    """One token through one expert, element by element."""
    inner = []
    for row, other in zip(gate, up):
        a = float(row @ x)
        inner.append(a * _sigmoid(beta * a) * float(other @ x))
    return down @ np.array(inner)


def clamped(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, down: np.ndarray, last: np.ndarray, limit: float, beta: float
) -> np.ndarray:
    """One token through one expert of gpt-oss, element by element."""
    both = x @ weight + bias[0]
    inner = []
    for linear, gate in zip(both[::2], both[1::2]):
        gate = min(float(gate), limit)
        inner.append((min(max(float(linear), -limit), limit) + 1) * gate * _sigmoid(beta * gate))
    return np.array(inner) @ down + last[0]


ROWS = np.array([[0, 2], [1, 3], [2, 2]], np.int32)
"""The third token names an expert twice."""


@pytest.mark.parametrize("shape", [(3, 4), (1, 3, 4), (3, 1, 4)])
@pytest.mark.parametrize("last", [(), (1,)])
def test_three_matrices(shape: tuple[int, ...], last: tuple[int, ...]) -> None:
    draw = _draw(0)
    x, routing = draw(*shape), draw(3, 2)
    gate, up, down = draw(4, 5, 4), draw(4, 5, 4), draw(4, 4, 5)
    (found,) = ran(
        "MOE", [x, routing.reshape(3, 2, *last), ROWS, gate, up, down], expert_type="GEMM3_SWIGLU", expert_beta=1.5
    )
    for token, own in enumerate(x.reshape(3, 4)):
        expected = sum(
            routing[token, slot] * swiglu(own, gate[e], up[e], down[e], 1.5) for slot, e in enumerate(ROWS[token])
        )
        np.testing.assert_allclose(found.reshape(3, 4)[token], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("biases", [0, 1, 2])
def test_two_matrices(biases: int) -> None:
    """An empty bias, and one that is left out, add nothing."""
    draw = _draw(1)
    x, routing = draw(3, 4) * 3, draw(3, 2)
    weight, bias, down, last = draw(4, 4, 6) * 3, draw(4, 1, 6), draw(4, 3, 4), draw(4, 1, 4)
    empty = np.zeros(0, np.float32)
    given = [weight, bias if biases else empty, down, *([last] if biases > 1 else [empty] if biases else [])]
    attributes = {"expert_type": "GEMM2_BIAS_SWIGLU_CLAMP", "expert_alpha": 2.0, "expert_beta": 1.702}
    (found,) = ran("MOE", [x, routing, ROWS, *given], **attributes)
    own_bias, own_last = bias * (biases > 0), last * (biases > 1)
    for token, own in enumerate(x):
        expected = sum(
            routing[token, slot] * clamped(own, weight[e], own_bias[e], down[e], own_last[e], 2.0, 1.702)
            for slot, e in enumerate(ROWS[token])
        )
        np.testing.assert_allclose(found[token], expected, rtol=1e-4, atol=1e-4)


def test_weights_for_all_experts() -> None:
    """(experts, batch, tokens, 1): the sum that the pseudocode of the page forms, whatever the indices are."""
    draw = _draw(2)
    x, routing = draw(2, 3, 4), draw(4, 2, 3, 1)
    gate, up, down = draw(4, 5, 4), draw(4, 5, 4), draw(4, 4, 5)
    indices = np.zeros((6, 2), np.int64)
    (found,) = ran("MOE", [x, routing, indices, gate, up, down], expert_type="GEMM3_SWIGLU")
    for n in range(2):
        for t in range(3):
            expected = sum(routing[e, n, t, 0] * swiglu(x[n, t], gate[e], up[e], down[e], 1.0) for e in range(4))
            np.testing.assert_allclose(found[n, t], expected, rtol=1e-4, atol=1e-5)


def test_revisions_of_moe_differ() -> None:
    """Both revisions fit a layer, and the newest counts: a bound of 0, its default, leaves nothing but the last bias."""
    draw = _draw(3)
    inputs = [draw(3, 4), draw(3, 2), ROWS, draw(4, 4, 6), draw(4, 1, 6) + 9, draw(4, 3, 4), draw(4, 1, 4)]
    (found,) = ran("MOE", inputs, expert_type="GEMM2_BIAS_SWIGLU_CLAMP")
    routing, last = inputs[1], inputs[-1]
    expected = sum(routing[:, slot, None] * last[ROWS[:, slot], 0] for slot in range(2))
    gates = [inputs[0][t] @ inputs[3][e] + inputs[4][e, 0] for t in range(3) for e in ROWS[t]]
    assert min(gate[1::2].min() for gate in gates) > 0  # the clamp takes all of them to 0
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "doubtful"),
    [
        ({"expert_alpha": 7.0, "expert_beta": 1.702}, False),
        ({"expert_alpha": 1.702, "expert_beta": 7.0}, True),
        ({}, True),
        ({"expert_type": "GEMM3_SWIGLU"}, False),
    ],
)
def test_a_file_of_the_first_revision_is_doubtful(attributes: dict[str, Any], doubtful: bool) -> None:
    """gpt-oss clamps to 7 and has the factor 1.702: in a file of commit 95359d3, the two are exchanged."""
    op = made("MOE", 7, {"expert_type": "GEMM2_BIAS_SWIGLU_CLAMP", **attributes})
    assert [(doubt.code, "95359d3" in str(doubt)) for doubt in op.doubts(Site())] == [("IR406", True)] * doubtful


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("bias", [None, "empty", "each"])
def test_gather_matmul(slots: int, bias: str | None) -> None:
    draw = _draw(4)
    rows, matrices, own = draw(slots, 3, 4), draw(4, 5, 4), draw(4, 1, 5)
    given = {None: [], "empty": [np.zeros(0, np.float32)], "each": [own]}[bias]
    (found,) = ran("GatherMatmul", [rows, matrices, ROWS, *given])
    for slot in range(2):
        for row in range(3):
            expert = ROWS[row, slot]
            expected = matrices[expert] @ rows[slot % slots, row] + own[expert, 0] * (bias == "each")
            np.testing.assert_allclose(found[slot, row], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, ml_dtypes.uint4])
def test_gather_matmul_of_packed_weights(zero: bool, dtype: Any) -> None:
    """Weights in groups of two columns, each with a scale and a zero point of its own."""
    draw, rng = _draw(5), np.random.default_rng(5)
    rows, weights = draw(1, 3, 4), rng.integers(0, 15, (4, 5, 2, 2)).astype(dtype)
    scales, zeros = draw(4, 5, 2, 1), rng.integers(0, 7, (4, 5, 2, 1)).astype(dtype)
    given = [np.zeros(0, np.float32), scales, zeros if zero else np.zeros(0, dtype)]
    (found,) = ran("GatherMatmulCompressed", [rows, weights, ROWS, *given])
    plain = (weights.astype(np.float64) - zeros.astype(np.float64) * zero) * scales
    for slot in range(2):
        for row in range(3):
            expected = plain[ROWS[row, slot]].reshape(5, 4) @ rows[0, row]
            np.testing.assert_allclose(found[slot, row], expected, rtol=1e-4, atol=1e-4)


SIZES = {"hc_count": 2, "hidden_size": 3, "lowrank": 2}


@pytest.mark.parametrize("leading", [(2, 2), (3,)])
@pytest.mark.parametrize(("mode", "gated"), [(0, False), (0, True), (2, False)])
@pytest.mark.parametrize("plus_one", [True, False])
def test_gated_residual_reads(leading: tuple[int, ...], mode: int, gated: bool, plus_one: bool) -> None:
    draw = _draw(6)
    residual, norm, down, up, inject = draw(*leading, 6), draw(6), draw(2, 6), draw(6, 2), draw(2, 6)
    attributes = {**SIZES, "mode": mode, "epsilon": 0.5, "norm_gain_plus_one": plus_one, "produce_write_gate": gated}
    found = ran("GatedResidual", [residual, norm, down, up, *([inject] if gated else [])], **attributes)
    assert len(found) == 1 + gated
    for place, row in enumerate(residual.reshape(-1, 6)):
        normal = [
            value / math.sqrt(np.mean(row[3 * (i // 3) : 3 * (i // 3) + 3] ** 2) + 0.5) * (norm[i] + plus_one)
            for i, value in enumerate(row)
        ]
        low = [v * _sigmoid(v) for v in (float(line @ normal) / 2 for line in down)]
        gate = [_sigmoid(float(line @ low)) for line in up]
        mixed = [sum(gate[3 * c + d] * normal[3 * c + d] for c in range(2)) / 2 for d in range(3)]
        np.testing.assert_allclose(found[0].reshape(-1, 3)[place], mixed, rtol=1e-4, atol=1e-5)
        if gated:
            writes = [2 * _sigmoid(float(line @ normal) / 2) for line in inject]
            np.testing.assert_allclose(found[1].reshape(-1, 2)[place], writes, rtol=1e-4, atol=1e-5)


def test_gated_residual_writes() -> None:
    """By hand: each branch gets the output of the layer times its gate."""
    residual = np.array([[[1, 2, 3, 10, 20, 30]]], np.float32)
    layer, gate = np.array([[[1, -1, 2]]], np.float32), np.array([[[2, 0.5]]], np.float32)
    (found,) = ran("GatedResidual", [residual, layer, gate], mode=1, **SIZES)
    assert found.tolist() == [[[3, 0, 7, 10.5, 19.5, 31]]]


@pytest.mark.parametrize("auto_pad", ["explicit", "valid", "same_upper", "same_lower"])
@pytest.mark.parametrize("bias", [None, (1, 3, 1), (2, 3, 0)])
def test_convolution_biased(auto_pad: str, bias: tuple[int, ...] | None) -> None:
    """One axis, as a sum over the kernel. A bias of the shape of the output is drawn for a dim 0."""
    draw = _draw(7)
    data, filters = draw(2, 4, 9), draw(3, 4, 3)
    stride, dilation, pads = 2, 2, {"explicit": (1, 2), "valid": (0, 0), "same_upper": (2, 2), "same_lower": (2, 2)}
    padded = np.pad(data, ((0, 0), (0, 0), pads[auto_pad]))
    width = (padded.shape[-1] - 5) // stride + 1
    given = [] if bias is None else [draw(*(width if n == 0 else n for n in bias))]
    (found,) = ran(
        "ConvolutionBiased", [data, filters, *given],
        strides=(stride,), dilations=(dilation,), pads_begin=(1,), pads_end=(2,), auto_pad=auto_pad,
    )  # fmt: skip
    expected = np.zeros((2, 3, width))
    for n in range(2):
        for o in range(3):
            for i in range(width):
                expected[n, o, i] = sum(
                    padded[n, c, i * stride + k * dilation] * filters[o, c, k] for c in range(4) for k in range(3)
                )
    np.testing.assert_allclose(found, expected + (given[0] if given else 0), rtol=1e-4, atol=1e-5)


def test_convolution_biased_of_integers_in_three_axes() -> None:
    """All ones: each element of the output counts the elements of its window in the data."""
    data, filters = np.ones((1, 2, 3, 3, 3), np.int32), np.ones((1, 2, 2, 2, 2), np.int32)
    ones = (1, 1, 1)
    (found,) = ran(
        "ConvolutionBiased", [data, filters, np.full((1, 1, 1, 1, 1), 5, np.int32)],
        strides=ones, dilations=ones, pads_begin=(1, 0, 0), pads_end=(0, 0, 0), auto_pad="explicit",
    )  # fmt: skip
    assert found.dtype == np.int32
    assert found[0, 0, :, 0, 0].tolist() == [13, 21, 21]

"""Sums inside operations: every order of a sum in f32 is explained, and a small fault beside it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from irrun import build as b
from judging import judged

Sum = Callable[[np.ndarray], np.ndarray]
"""Adds up the last axis in f32."""


def _chain(terms: np.ndarray) -> np.ndarray:
    return np.cumsum(terms, -1, dtype=np.float32)[..., -1]


def _pairwise(terms: np.ndarray) -> np.ndarray:
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            terms = np.concatenate([terms, np.zeros_like(terms[..., :1])], -1)
        terms = terms[..., ::2] + terms[..., 1::2]
    return terms[..., 0]


def _in_lanes(count: int) -> Sum:
    def add(terms: np.ndarray) -> np.ndarray:
        lanes = terms.reshape(*terms.shape[:-1], -1, count)
        return _chain(_chain(lanes.swapaxes(-1, -2)))

    return add


ORDERS: Final = {
    "chain": _chain, "reversed": lambda terms: _chain(terms[..., ::-1]), "pairwise": _pairwise,
    "8 lanes": _in_lanes(8), "16 lanes": _in_lanes(16),
}  # fmt: skip
EPSILON: Final = 1e-5
SHAPE: Final = (1, 8, 32, 64)
_RNG: Final = np.random.default_rng(7)
SCALE, SHIFT = (_RNG.normal(size=8).astype(np.float32) for _ in range(2))
DATA: Final = {
    "random": _RNG.normal(0, 0.1, SHAPE),
    "beside a mean": 3 + _RNG.normal(0, 0.1, SHAPE),
    "equal": np.broadcast_to(np.where(np.arange(SHAPE[-1]) < 48, 0.1, 0.3), SHAPE),
    "a ramp": np.linspace(-1, 1, 32 * 64).reshape(32, 64) + np.zeros(SHAPE),
}


def _standardised(rows: np.ndarray, add: Sum, epsilon: float, *, one_pass: bool = False) -> np.ndarray:
    count = np.float32(rows.shape[-1])
    mean = add(rows)[..., None] / count
    if one_pass:
        variance = add(rows * rows)[..., None] / count - mean * mean
    else:
        variance = add((rows - mean) * (rows - mean))[..., None] / count
    return (rows - mean) / np.sqrt(variance + rows.dtype.type(epsilon))


def _grouped(x: np.ndarray, add: Sum, epsilon: float, *, one_pass: bool = False) -> np.ndarray:
    standardised = _standardised(x.reshape(1, 2, -1), add, epsilon, one_pass=one_pass).reshape(x.shape)
    scale, shift = (each.astype(x.dtype).reshape(-1, 1, 1) for each in (SCALE, SHIFT))
    return standardised * scale + shift


def _by_root(rows: np.ndarray, add: Sum, epsilon: float, count: int) -> np.ndarray:
    return rows / np.sqrt(add(rows * rows)[..., None] / rows.dtype.type(count) + rows.dtype.type(epsilon))


def _soft(x: np.ndarray, add: Sum, epsilon: float) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / add(powers)[..., None]


def _rows(x: np.ndarray) -> np.ndarray:
    return x.reshape(1, 8, -1)


LAST: Final = np.array([2, 3])
LAYERS: Final[dict[str, tuple[Callable[[Any], Any], Callable[..., np.ndarray]]]] = {
    "GroupNormalization": (
        lambda x: b.GroupNormalization(x, SCALE, SHIFT, num_groups=2, epsilon=EPSILON, name="layer"), _grouped,
    ),
    "MVN": (
        lambda x: b.MVN(x, LAST, normalize_variance=True, eps=EPSILON, eps_mode="inside_sqrt", name="layer"),
        lambda x, add, epsilon, **form: _standardised(_rows(x), add, epsilon, **form).reshape(x.shape),
    ),
    "RMS": (
        lambda x: b.RMS(x, epsilon=EPSILON, name="layer"),
        lambda x, add, epsilon: _by_root(_rows(x), add, epsilon, 2048),
    ),
    "NormalizeL2": (
        lambda x: b.NormalizeL2(x, LAST, eps=EPSILON, eps_mode="add", name="layer"),
        lambda x, add, epsilon: _by_root(_rows(x), add, epsilon, 1).reshape(x.shape),
    ),
    "SoftMax": (
        lambda x: b.SoftMax(x, axis=2, name="layer"),
        lambda x, add, epsilon: _soft(_rows(x), add, epsilon),
    ),
    "ReduceSum": (lambda x: b.ReduceSum(x, LAST, name="layer"), lambda x, add, epsilon: add(_rows(x))),
    "ReduceMean": (
        lambda x: b.ReduceMean(x, LAST, name="layer"), lambda x, add, epsilon: add(_rows(x)) / x.dtype.type(2048),
    ),
    "ReduceL1": (lambda x: b.ReduceL1(x, LAST, name="layer"), lambda x, add, epsilon: add(np.abs(_rows(x)))),
    "ReduceL2": (
        lambda x: b.ReduceL2(x, LAST, name="layer"), lambda x, add, epsilon: np.sqrt(add(_rows(x) * _rows(x))),
    ),
    "AvgPool": (
        lambda x: b.AvgPool(
            x, strides=[32, 64], pads_begin=[0, 0], pads_end=[0, 0], kernel=[32, 64], exclude_pad=True, name="layer"
        ),
        lambda x, add, epsilon: (add(_rows(x)) / x.dtype.type(2048)).reshape(1, 8, 1, 1),
    ),
    "Einsum": (
        lambda x: b.Einsum(x, OTHER, equation="ik,jk->ij", name="layer"),
        lambda x, add, epsilon: add(_rows(x)[0][:, None] * OTHER.astype(x.dtype)),
    ),
}  # fmt: skip
OTHER: Final = _RNG.normal(size=(16, 2048)).astype(np.float32)
SHAPES: Final = {"RMS": (1, 8, 2048), "SoftMax": (1, 8, 2048), "Einsum": (8, 2048)}
"""Those that are not ``SHAPE``."""
NORMALISATIONS: Final = ("GroupNormalization", "MVN")


def _exactly(terms: np.ndarray) -> np.ndarray:
    return terms.sum(-1, dtype=np.float64)


def _is_explained(kind: str, x: np.ndarray, shown: np.ndarray, folder: Path) -> bool:
    layer, _ = LAYERS[kind]
    (folder := folder / str(len(list(folder.iterdir())))).mkdir()
    x = x.reshape(SHAPES.get(kind, SHAPE))
    return judged(b.model([layer(b.parameter(x.shape, name="x"))]), x, "layer", shown, folder).is_explained


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", LAYERS)
def test_every_order_of_a_sum_is_explained(kind: str, data: str, tmp_path: Path) -> None:
    x, (_, computed) = DATA[data].astype(np.float32), LAYERS[kind]
    for order, add in ORDERS.items():
        assert _is_explained(kind, x, computed(x, add, EPSILON), tmp_path), order
        if kind in NORMALISATIONS:
            assert _is_explained(kind, x, computed(x, add, EPSILON, one_pass=True), tmp_path), f"one pass, {order}"


@pytest.mark.parametrize("kind", LAYERS)
def test_an_error_beyond_every_order_is_none_of_f32(kind: str, tmp_path: Path) -> None:
    x, (_, computed) = DATA["random"].astype(np.float32), LAYERS[kind]
    true = computed(x.astype(np.float64), _exactly, EPSILON)
    error = computed(x, _chain, EPSILON) - true
    error = true * 2.0**-20 if kind == "SoftMax" else error  # engines approximate functions
    assert not _is_explained(kind, x, (true + 30 * error).astype(np.float32), tmp_path)


@pytest.mark.parametrize("kind", ["GroupNormalization", "MVN", "RMS"])
def test_another_epsilon_is_found(kind: str, tmp_path: Path) -> None:
    """It changes the outputs by 0.05 %."""
    x, (_, computed) = DATA["random"].astype(np.float32), LAYERS[kind]
    assert not _is_explained(kind, x, computed(x, _chain, 2 * EPSILON), tmp_path)


@pytest.mark.parametrize(
    ("data", "fault"), [("random", 1e-4), ("beside a mean", 2e-2), ("equal", 1e-3), ("a ramp", 1e-4)]
)
def test_the_scale_of_a_channel_is_found(data: str, fault: float, tmp_path: Path) -> None:
    """Beside a mean of 30 deviations, a variance in one pass itself errs by some thousandths."""
    x = DATA[data].astype(np.float32)
    shown = _grouped(x, _pairwise, EPSILON)
    shown[:, 3] += (shown[:, 3] - SHIFT[3]) * np.float32(fault)
    assert not _is_explained("GroupNormalization", x, shown, tmp_path)


def test_a_variance_in_one_pass_beside_a_mean_is_a_form_of_its_own(tmp_path: Path) -> None:
    """Beside a mean of 300 deviations, the mean of squares cancels: the form has a name, and two passes err less."""
    x = (30 + _RNG.normal(0, 0.1, SHAPE)).astype(np.float32)
    model = b.model([LAYERS["MVN"][0](b.parameter(SHAPE, name="x"))])
    shown = LAYERS["MVN"][1](x, _chain, EPSILON, one_pass=True)
    budget = judged(model, x, "layer", shown, tmp_path)
    assert budget.is_explained
    assert budget.form == "f32 with a variance in one pass"


@pytest.mark.parametrize("data", DATA)
def test_running_sums_are_explained(data: str, tmp_path: Path) -> None:
    """In a chain, and in blocks of 16 whose sums are added to each other; an element that is left out is found."""
    x = DATA[data].astype(np.float32).reshape(8, 2048)
    model = b.model([b.CumSum(b.parameter(x.shape, name="x"), np.array(1), name="layer")])
    within = np.cumsum(x.reshape(8, 128, 16), -1, dtype=np.float32)
    before = np.cumsum(within[..., -1], -1, dtype=np.float32)
    before = np.concatenate([np.zeros((8, 1), np.float32), before[:, :-1]], 1)
    chain, blocks = np.cumsum(x, 1, dtype=np.float32), (before[..., None] + within).reshape(8, 2048)
    faulty = blocks.copy()
    faulty[5, 1000:] -= x[5, 1000]
    for number, (shown, explained) in enumerate(((chain, True), (blocks, True), (faulty, False))):
        (folder := tmp_path / str(number)).mkdir()
        assert judged(model, x, "layer", shown, folder).is_explained is explained, number


@pytest.mark.parametrize(("fault", "explained"), [(0.0, True), (1e-4, False)])
@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_a_transform_by_sums_of_products_is_explained(
    mean: float, fault: float, explained: bool, tmp_path: Path
) -> None:
    """Each element is a chain of 1,024 products; an engine may transform in fewer steps, and errs less then."""
    x = (mean + _RNG.normal(size=(2, 512, 2))).astype(np.float32)
    turns = np.outer(np.arange(512), np.arange(512)) % 512 * (2 * np.pi / 512)
    cos, sin = np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)
    real, imaginary = x[:, None, :, 0], x[:, None, :, 1]
    parts = (
        np.concatenate([real * cos, imaginary * sin], -1),
        np.concatenate([imaginary * cos, -real * sin], -1),
    )
    shown = np.stack([_chain(part) for part in parts], -1)
    shown[1] *= np.float32(1 + fault)
    model = b.model([b.DFT(b.parameter(x.shape, name="x"), np.array([1]), name="layer")])
    assert judged(model, x, "layer", shown, tmp_path).is_explained is explained


@pytest.mark.parametrize(("fault", "explained"), [(0.0, True), (1e-3, False)])
def test_attention_over_many_keys_is_explained(fault: float, explained: bool, tmp_path: Path) -> None:
    """The weights of 2,048 keys are added in a chain, and so are the weighted values."""
    q, k, v = (_RNG.normal(size=(1, count, 8)).astype(np.float32) for count in (16, 2048, 2048))
    scores = (q @ k.swapaxes(1, 2) / np.float32(8**0.5)).astype(np.float32)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    shown = _chain(powers[:, :, None] * v.swapaxes(1, 2)[:, None]) / _chain(powers)[..., None]
    shown[:, 3] *= np.float32(1 + fault)
    node = b.ScaledDotProductAttention(b.parameter(q.shape, name="x"), k, v, causal=False, name="layer")
    assert judged(b.model([node]), q, "layer", shown, tmp_path).is_explained is explained

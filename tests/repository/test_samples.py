"""The models in samples/: valid but for the one that is not, and giving what the specification says."""

from pathlib import Path

import numpy as np
import pytest

import irrun
from places import SAMPLES

VALID = sorted(p for p in SAMPLES.glob("*.xml") if p.name != "wrong_dim.xml")


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.stem)
def test_checks_clean(path: Path) -> None:
    assert not irrun.check(path).diagnostics


def test_wrong_dim_is_found() -> None:
    path = SAMPLES / "wrong_dim.xml"
    (problem,) = irrun.check(path)
    assert problem.code == "IR401"
    assert problem.line is not None
    assert "<dim>48</dim>" in path.read_text().splitlines()[problem.line - 1]
    with pytest.raises(irrun.ExecutionError, match="IR602"):
        irrun.run(path, np.ones((16, 1, 1), np.float32), strict=True)


_DATA = {
    "broadcast_numpy": ((16, 1, 1), lambda x: np.broadcast_to(x, (1, 16, 50, 50))),
    "broadcast_explicit_channels": ((16,), lambda x: np.broadcast_to(x.reshape(16, 1, 1), (1, 16, 50, 50))),
    "broadcast_explicit_spatial": ((50, 50), lambda x: np.broadcast_to(x[:, :, None], (1, 50, 50, 16))),
    "broadcast_bidirectional": ((16, 1, 1), lambda x: np.broadcast_to(x, (1, 16, 50, 50))),
    "tile_equal": ((2, 3, 4), lambda x: np.tile(x, (1, 2, 3))),
    "tile_data_promoted": ((2, 3, 4), lambda x: np.tile(x, (5, 1, 2, 3))),
    "tile_repeats_promoted": ((5, 2, 3, 4), lambda x: np.tile(x, (1, 2, 3))),
}


@pytest.mark.parametrize("name", _DATA)
def test_movement(name: str) -> None:
    shape, expected = _DATA[name]
    data = np.random.default_rng(0).random(shape, np.float32)
    np.testing.assert_array_equal(irrun.run(SAMPLES / f"{name}.xml", data, strict=True)["out"], expected(data))


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_elementwise_takes_any_batch(batch: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((batch, 3, 4), np.float32), rng.random((3, 1), np.float32)
    out = irrun.run(SAMPLES / "elementwise.xml", {"a": a, "b": b}, strict=True)["out"]
    np.testing.assert_allclose(out, np.clip(a * np.array([0.5, 1, 2, 4], np.float32) + b, 0, 6), rtol=1e-6)


def test_convnet_gives_probabilities() -> None:
    out = irrun.run(SAMPLES / "convnet.xml", np.load(SAMPLES / "image.npy"), strict=True)["out"]
    assert out.shape == (1, 10)
    np.testing.assert_allclose(out.sum(), 1, rtol=1e-5)

"""PaKVReorder: tokens move within the blocks of their sequence."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.extensions.internal.pa_kv_reorder import PaKVReorder


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def _caches(dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Six blocks of two heads with four slots. A row of the key cache holds the number of its slot among all."""
    key = np.arange(6 * 4).reshape(6, 1, 4, 1) + np.zeros((6, 2, 4, 3))
    return key.astype(dtype), (key[..., :2] + 100).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8])
def test_tokens_move(dtype: type) -> None:
    """Sequence 0 has the blocks 5 and 2, sequence 1 the block 0. Position 5 is slot 1 of block 2, number 9 of all."""
    key, value = _caches(dtype)
    tables = i32(5, 2, 0), i32(0, 2, 3)
    moves = i32(5, 1, 7, 2, 3, 0), i32(0, 2, 3)
    status, moved, moved_value = PaKVReorder().run(key, value, *tables, *moves)
    expected = np.arange(24).reshape(6, 4)
    expected[5, 1], expected[5, 2], expected[0, 0] = 9, 11, 3
    assert status.tolist() == [0]
    assert status.dtype == np.uint8
    assert (moved == expected[:, None, :, None].astype(dtype)).all()
    assert (moved_value == (expected[:, None, :, None] + 100).astype(dtype)).all()
    assert (key == _caches(dtype)[0]).all()


def test_a_chain_of_moves() -> None:
    """The moves of a sequence follow one another: position 0 goes to 1, and from there to 2."""
    key, value = _caches()
    moved = PaKVReorder().run(key, value, i32(0), i32(0, 1), i32(0, 1, 1, 2), i32(0, 2))[1]
    assert moved[0, 0, :, 0].tolist() == [0, 0, 0, 3]


GOOD = {
    "key_cache": (6, 2, 4, 3), "value_cache": (6, 2, 4, 2), "block_indices": i32(5, 2, 0),
    "block_indices_begins": i32(0, 2, 3), "block_update_indices": i32(5, 1, 3, 0),
    "block_update_indices_begins": i32(0, 1, 2),
}  # fmt: skip


def _built(inputs: dict[str, object]) -> b.Node:
    """Return a layer whose caches are Parameters of these shapes, and whose other inputs are constants."""
    return b.PaKVReorder(*[
        b.parameter(list(value), "f32", name=name) if isinstance(value, tuple) else b.constant(value)
        for name, value in inputs.items()
    ])  # fmt: skip


def test_shape() -> None:
    (status,) = _built(GOOD).values
    assert (status.type.name, str(status.shape)) == ("u8", "[1]")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file whose only layer moves tokens."""
    parameters = [
        b.parameter([None] * (4 if "cache" in name else 1), "f32" if "cache" in name else "i32", name=name)
        for name in GOOD
    ]
    irrun.save_model(b.model(b.PaKVReorder(*parameters)), tmp_path / "reorder.xml")
    return tmp_path / "reorder.xml"


def test_a_file(file: Path) -> None:
    """The layer of a file is found by ``version="extension"``, and a wrong table is found when the file runs."""
    assert 'type="PaKVReorder" version="extension"' in file.read_text()
    assert not irrun.check(file).diagnostics
    key, value = _caches()
    feeds = {**GOOD, "key_cache": key, "value_cache": value}
    assert irrun.run(file, feeds)[0].tolist() == [0]
    with pytest.raises(irrun.ExecutionError, match=r"names block 6.*C4"):
        irrun.run(file, {**feeds, "block_indices": i32(5, 6, 0)})


@pytest.mark.parametrize("exact", [False, True])
def test_caches_stay_from_run_to_run(file: Path, exact: bool) -> None:
    """Each run moves the token of position 1 to 0 and that of 2 to 1. The first array stays as it was passed."""
    model = irrun.compile(file, exact=exact)
    key, value = _caches()
    tables = {
        "block_indices": i32(0), "block_indices_begins": i32(0, 1), "block_update_indices": i32(1, 0, 2, 1),
        "block_update_indices_begins": i32(0, 2),
    }  # fmt: skip
    model({"key_cache": key, "value_cache": value, **tables})
    first = model.state["key_cache"]
    model(tables)
    assert first[0, 0, :, 0].tolist() == [1, 2, 2, 3]
    assert model.state["key_cache"][0, 0, :, 0].tolist() == [2, 2, 2, 3]
    assert model.state["value_cache"][0, 1, :, 0].tolist() == [102, 102, 102, 103]
    assert key[0, 0, :, 0].tolist() == [0, 1, 2, 3]
    with pytest.raises(irrun.ExecutionError):
        model({**tables, "block_indices": i32(9)})
    assert model.state["key_cache"][0, 0, :, 0].tolist() == [2, 2, 2, 3]
    model({**tables, "key_cache": key})
    assert model.state["key_cache"][0, 0, :, 0].tolist() == [1, 2, 2, 3]
    model.reset_state()
    with pytest.raises(irrun.FeedError, match=r"key_cache.*is missing"):
        model(tables)
    model({**tables, "key_cache": key, "value_cache": value})
    assert model.state["key_cache"][0, 0, :, 0].tolist() == [1, 2, 2, 3]


def test_caches_count_as_memory(file: Path) -> None:
    key, value = _caches()
    feeds = {**GOOD, "key_cache": key, "value_cache": value}
    size = key.nbytes + value.nbytes
    model = irrun.compile(file, max_memory=size + 100)
    model(feeds)
    with pytest.raises(irrun.ExecutionError, match="IR604"):
        model(feeds)
    with pytest.raises(irrun.ExecutionError, match="IR604"):
        irrun.compile(file, max_memory=size - 1)(feeds)

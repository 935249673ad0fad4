"""A stateful decoder that OpenVINO rewrites to paged attention: irrun runs the saved file as OpenVINO runs its graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun.debug import compare
from language_models import decoder

VOCABULARY, BLOCKS, HEADS, SIZE = 50, 9, 4, 16
F32 = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
GROUPS = {"KEY_CACHE_GROUP_SIZE": "8", "VALUE_CACHE_GROUP_SIZE": "8"}
TEXTS = [np.random.default_rng(seed).integers(0, VOCABULARY, 50) for seed in (1, 2)]
TABLES = [[7, 2], [0, 5]]
SCHEDULE = [[(0, 0, 33)], [(1, 0, 3), (0, 33, 34)], [(0, 34, 40), (1, 3, 40)], [(1, 40, 41), (0, 40, 41)]]
"""The calls: for each sequence in it, its number and the first and last position of its new tokens."""


def feeds(work: list[tuple[int, int, int]]) -> dict[str, np.ndarray]:
    """Return the inputs of one call, without the caches."""
    return {
        "input_ids": np.concatenate([TEXTS[s][begin:end] for s, begin, end in work]),
        "position_ids": np.concatenate([np.arange(begin, end) for _, begin, end in work]),
        "max_context_len": np.array(max(end for _, _, end in work), np.int32),
        "past_lens": np.array([begin for _, begin, _ in work], np.int32),
        "subsequence_begins": np.cumsum([0] + [end - begin for _, begin, end in work]).astype(np.int32),
        "block_indices": np.array([block for s, _, _ in work for block in TABLES[s]], np.int32),
        "block_indices_begins": np.arange(0, 2 * len(work) + 1, 2, dtype=np.int32),
    }


class Rewritten:
    """OpenVINO's paged form of a model, with caches of zeros, and the file that it saves."""

    def __init__(self, ov: Any, stateful: Path, properties: Mapping[str, str], **options: bool) -> None:
        from openvino._offline_transformations import paged_attention_transformation

        self.ov, self.file = ov, stateful.with_name("paged.xml")
        model = ov.Core().read_model(stateful)
        paged_attention_transformation(model, **options)
        ov.save_model(model, self.file, compress_to_fp16=False)
        compiled = ov.Core().compile_model(model, "CPU", dict(properties))
        self.request, self.caches = compiled.create_infer_request(), {}
        for port in compiled.inputs:
            if "cache" in port.any_name:
                shape = [BLOCKS, *(dim.get_length() for dim in list(port.partial_shape)[1:])]
                tensor = self.caches[port.any_name] = ov.Tensor(port.element_type, ov.Shape(shape))
                tensor.data[...] = 0
                self.request.set_tensor(port.any_name, tensor)

    def __call__(self, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        for name, array in given.items():
            self.request.set_tensor(name, self.ov.Tensor(array))
        self.request.infer()
        return [tensor.data.copy() for tensor in self.request.output_tensors]


def zeros(tensor: Any) -> np.ndarray:
    """Return a cache of zeros for irrun. OpenVINO's arrays of u4 have two elements in a byte, and one axis."""
    type = ml_dtypes.uint4 if tensor.element_type.get_type_name() == "u4" else tensor.data.dtype
    return np.zeros(list(tensor.shape), type)


@pytest.fixture
def stateful(tmp_path: Path) -> Path:
    irrun.save_model(decoder(VOCABULARY, width=HEADS * SIZE), tmp_path / "stateful.xml")
    return tmp_path / "stateful.xml"


@pytest.mark.parametrize(
    ("properties", "tolerance"),
    [
        (F32, 5e-5),
        ({**F32, "KV_CACHE_PRECISION": "u8"}, 5e-3),
        ({**F32, "KV_CACHE_PRECISION": "u8", "KEY_CACHE_QUANT_MODE": "BY_TOKEN"}, 5e-3),
        ({**F32, "KV_CACHE_PRECISION": "u8", "KEY_CACHE_QUANT_MODE": "BY_TOKEN", "KEY_CACHE_GROUP_SIZE": "8"}, 5e-3),
        ({**F32, "KV_CACHE_PRECISION": "u4"}, 5e-2),
        ({**F32, "KV_CACHE_PRECISION": "u4", "KEY_CACHE_QUANT_MODE": "BY_TOKEN"}, 5e-2),
        ({**F32, "KV_CACHE_PRECISION": "u4", "KEY_CACHE_QUANT_MODE": "BY_TOKEN", **GROUPS}, 5e-2),
    ],
    ids=["f32", "u8-by-channel", "u8-by-token", "u8-groups", "u4-by-channel", "u4-by-token", "u4-groups"],
)
def test_logits(ov: Any, stateful: Path, properties: dict[str, str], tolerance: float) -> None:
    """Two sequences, in pieces and in calls of both, in blocks that are out of order.

    A number at the border of two codes may get either. The codes themselves move the logits by 0.05 in u8, and by
    0.7 in u4.
    """
    theirs = Rewritten(ov, stateful, properties)
    ours = irrun.compile(theirs.file)
    passed = {name: zeros(tensor) for name, tensor in theirs.caches.items()}
    for work in SCHEDULE:
        given = feeds(work)
        logits = ours({**given, **passed})["logits"]
        assert np.isfinite(logits).all()
        wanted = theirs(given)[0]
        if "VALUE_CACHE_GROUP_SIZE" in properties and np.isnan(wanted).any():
            pytest.skip("OpenVINO computes NaN, as it does with groups of u4 on a processor without AVX-512")
        assert np.abs(logits - wanted).max() < tolerance
        passed = {}
    if properties == F32:
        held = [np.abs(ours.state[name] - tensor.data).max() for name, tensor in theirs.caches.items()]
        assert max(held) < 1e-5


def test_the_stateful_model_says_the_same(ov: Any, stateful: Path) -> None:
    """irrun's paged run has the logits of irrun's stateful run, sequence by sequence."""
    paged = irrun.compile(Rewritten(ov, stateful, F32).file)
    passed = {
        f"{kind}_cache.{layer}": np.zeros((BLOCKS, HEADS, 32, SIZE), np.float32)
        for kind in ("key", "value")
        for layer in (0, 1)
    }
    found: list[list[np.ndarray]] = [[], []]
    for work in SCHEDULE:
        logits, done = paged({**feeds(work), **passed})["logits"].reshape(-1, VOCABULARY), 0
        for sequence, begin, end in work:
            found[sequence].append(logits[done : done + end - begin])
            done += end - begin
        passed = {}
    for text, pieces in zip(TEXTS, found):
        inputs = [text[None, :41], np.ones((1, 41), np.int64), np.arange(41)[None], np.zeros(1, np.int32)]
        assert np.abs(np.concatenate(pieces) - irrun.run(stateful, inputs)["logits"][0]).max() < 5e-5


def test_scores(ov: Any, stateful: Path) -> None:
    """The second output, over the last queries that an input names, and over the last one without that input."""
    windows = {"score_aggregation_window": np.array([1, 5], np.int32)}
    for options, given in (({}, {}), ({"allow_score_aggregation": True}, windows)):
        theirs = Rewritten(ov, stateful, F32, use_score_outputs=True, **options)
        ours = irrun.compile(theirs.file)
        passed = {name: tensor.data.copy() for name, tensor in theirs.caches.items()}
        work = feeds([(0, 0, 33), (1, 0, 8)]) | given
        for mine, expected in zip(ours({**work, **passed}).arrays, theirs(work)):
            assert mine.shape == expected.shape
            assert np.abs(mine - expected).max() < 5e-5


def test_keys_turn_once(ov: Any, stateful: Path) -> None:
    """A call with rotated blocks leaves the turned keys in the cache: the next call turns nothing."""
    theirs = Rewritten(ov, stateful, F32, allow_cache_rotation=True)
    ours = irrun.compile(theirs.file)
    angles = np.linspace(0, 1, 4 * SIZE // 2).reshape(4, -1)
    table = np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    passed = {name: tensor.data.copy() for name, tensor in theirs.caches.items()}
    for number, work in enumerate(SCHEDULE):
        given = feeds(work) | {"model_rotation_trig_lut": table}
        for layer in (0, 1):
            rotated = [7] if number == 2 else []
            given[f"rotated_block_indices.{layer}"] = np.array(rotated, np.int32)
            given[f"rotation_deltas.{layer}"] = np.full((len(rotated), 1), 3, np.int32)
        assert np.abs(ours({**given, **passed})["logits"] - theirs(given)[0]).max() < 5e-5
        passed = {}


def test_sparse_prefill(ov: Any, stateful: Path) -> None:
    """OpenVINO takes strided scores along antidiagonals."""
    theirs = Rewritten(ov, stateful, F32, allow_xattention=True)
    ours = irrun.compile(theirs.file)
    given = {
        "input_ids": np.random.default_rng(5).integers(0, VOCABULARY, 160), "position_ids": np.arange(160),
        "max_context_len": np.array(160, np.int32), "past_lens": np.array([0], np.int32),
        "subsequence_begins": np.array([0, 160], np.int32), "block_indices": np.array([7, 2, 0, 5, 3], np.int32),
        "block_indices_begins": np.array([0, 5], np.int32), "xattention_block_size": np.array(32, np.int32),
        "xattention_stride": np.array(8, np.int32),
        **{f"xattention_threshold.{layer}": np.array([0.3], np.float32) for layer in (0, 1)},
    }  # fmt: skip
    passed = {name: tensor.data.copy() for name, tensor in theirs.caches.items()}
    expected = theirs(given)[0]
    assert np.abs(ours({**given, **passed})["logits"] - expected).max() < 5e-5
    whole = {
        **given,
        "xattention_threshold.0": np.ones(1, np.float32),
        "xattention_threshold.1": np.ones(1, np.float32),
    }
    assert np.abs(ours({**whole, **passed})["logits"] - expected).max() > 0.01


def test_a_side_is_rewritten(ov: Any, stateful: Path) -> None:
    """``openvino[transform=paged]`` has the inputs of the paged form, and the values of irrun's run of the saved file."""
    file = Rewritten(ov, stateful, F32).file
    caches = {
        f"{kind}_cache.{layer}": np.zeros((BLOCKS, HEADS, 32, SIZE), np.float32)
        for kind in ("key", "value")
        for layer in (0, 1)
    }
    comparison = compare(str(file), f"openvino[transform=paged,precision=f32]:{stateful}", feeds(SCHEDULE[0]) | caches)
    assert comparison.verdict == "agree"

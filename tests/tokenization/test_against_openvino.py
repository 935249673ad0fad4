"""Tokenizers of 30 kinds, trained and converted now, run by irrun and by OpenVINO."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from tokenization.corpus import INVALID
from tokenization.record import Witness, inputs_of
from tokenization.train import kinds, train

PACKAGES = ("openvino_tokenizers", "tokenizers", "transformers", "sentencepiece", "regex")
MISSING = [name for name in PACKAGES if find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"the packages {', '.join(MISSING)} are not installed"),
]
BATCHES = 64


def _objects(texts: list[str]) -> np.ndarray:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def _names() -> list[str]:
    return [] if MISSING else [kind.name for kind in kinds()]


@pytest.mark.parametrize("name", _names())
def test_all_outputs_are_equal(name: str, tmp_path: Path, ov: Any) -> None:
    assert train(tmp_path, [name]) == [name]
    folder = tmp_path / name
    witness = Witness(folder)
    encode = irrun.compile(folder / "openvino_tokenizer.xml", strict=True)
    decode = irrun.compile(folder / "openvino_detokenizer.xml", strict=True)
    size = 0
    for texts in inputs_of(BATCHES + 12, witness.inputs):
        expected = witness.encode(texts)
        if expected is None:
            continue
        size += 1
        outputs = encode([_objects(own) for own in texts]).arrays
        assert [o.tolist() for o in outputs] == [e.tolist() for e in expected], texts
        if outputs[0].size and (decoded := witness.decode(outputs[0])) is not None:
            assert decode(outputs[0]).arrays[0].tolist() == decoded, texts
    assert size >= 60


@pytest.mark.parametrize("name", ["gpt2", "llama2", "gemma", "o200k"])
def test_random_ids_are_decoded_alike(name: str, tmp_path: Path, ov: Any) -> None:
    """Random ids give bytes that are not UTF-8."""
    train(tmp_path, [name])
    witness, rng = Witness(tmp_path / name), np.random.default_rng(5)
    decode = irrun.compile(tmp_path / name / "openvino_detokenizer.xml", strict=True)
    size = 0
    for _ in range(120):
        ids = rng.integers(-2, 720, (2, 12))
        decoded = witness.decode(ids)
        if decoded is not None:
            size += 1
            ours = [text.rstrip("\0") for text in decode(ids).arrays[0].tolist()]  # as numpy gives those of OpenVINO
            assert ours == decoded, ids
    assert size >= 60


@pytest.mark.parametrize("name", ["qwen", "neox-nfc", "lower-bytes", "t5", "albert", "gemma", "clip"])
def test_bytes_that_are_not_utf8_are_encoded_alike(name: str, tmp_path: Path, ov: Any) -> None:
    """These tokenizers normalise first, or split by plain text; PCRE2 does not check the texts of the others."""
    train(tmp_path, [name])
    witness = Witness(tmp_path / name)
    encode = irrun.compile(tmp_path / name / "openvino_tokenizer.xml", strict=True)
    for data in INVALID:
        expected = witness.encode([[data]])
        assert expected is not None
        outputs = encode([_objects([data.decode("utf-8", "surrogateescape")])]).arrays
        assert [o.tolist() for o in outputs] == [e.tolist() for e in expected], data

"""Tokenizers of 30 kinds, against what OpenVINO gave for them (``record.py``)."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from tokenizer_texts import INVALID

pytest.importorskip("regex", reason="the tokenizers need the package regex")

RECORDED = Path(__file__).parent / "recorded.tar.xz"


@cache
def _contents() -> dict[str, bytes]:
    with tarfile.open(RECORDED) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        files = [(member.name, archive.extractfile(member)) for member in members]
        return {name: file.read() for name, file in files if file is not None}


NAMES = sorted(name.removesuffix(".json") for name in _contents() if name.endswith(".json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models of all tokenizers, a folder each."""
    root = tmp_path_factory.mktemp("recorded")
    for name, data in _contents().items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    return root


def _model(folder: Path, name: str, kind: str = "tokenizer") -> Path:
    return folder / name / f"openvino_{kind}.xml"


def _strings(texts: list[str]) -> np.ndarray:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def test_there_are_many_kinds() -> None:
    assert len(NAMES) >= 24
    assert all(len(json.loads(_contents()[f"{name}.json"])) >= 60 for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["tokenizer", "detokenizer"])
def test_check(name: str, kind: str, folder: Path) -> None:
    found = irrun.check(_model(folder, name, kind)).diagnostics
    # the pattern of BLOOM does not compile: its class ends at the first ], and a ) follows that has no (
    assert [d.code for d in found] == (["IR406"] if (name, kind) == ("bloom", "tokenizer") else [])


@pytest.mark.parametrize("exact", [False, True], ids=["prepared", "exact"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, exact: bool, folder: Path) -> None:
    """What ``prepare`` makes of constants gives the same as ``run`` alone."""
    rows: list[dict[str, Any]] = json.loads(_contents()[f"{name}.json"])
    encode = irrun.compile(_model(folder, name), exact=exact, strict=True)
    decode = irrun.compile(_model(folder, name, "detokenizer"), exact=exact, strict=True)
    for row in rows[::4] if exact else rows:
        outputs = encode([_strings(texts) for texts in row["texts"]]).arrays
        assert [output.tolist() for output in outputs] == row["outputs"], row["texts"]
        if row["decoded"] is not None:
            assert decode(outputs[0]).arrays[0].tolist() == row["decoded"], row["texts"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_kept(name: str, folder: Path) -> None:
    """A batch of empty strings has a row for each string, although OpenVINO gives one row or none."""
    model = irrun.compile(_model(folder, name), strict=True)
    empty = _strings(["", ""])
    outputs = model([empty] * len(model.model.parameters)).arrays
    assert all(output.shape[0] == 2 for output in outputs)
    assert (outputs[0][0] == outputs[0][1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_bytes_that_are_not_utf8(name: str, folder: Path) -> None:
    """Invalid bytes are the business of the operations: no batch of them stops a run."""

    model = irrun.compile(_model(folder, name), strict=True)
    strings = _strings([data.decode("utf-8", "surrogateescape") for data in INVALID])
    outputs = model([strings] * len(model.model.parameters)).arrays
    assert all(output.shape[0] == len(INVALID) for output in outputs)


LONG = ["a" * 200_000, " " * 100_000, "word " * 40_000, "é" * 60_000, "<" + " " * 100_000, "▁" * 50_000]


@pytest.mark.parametrize("text", LONG, ids=lambda t: f"{t[:2]}x{len(t)}")
@pytest.mark.parametrize("name", ["bert-uncased", "llama2", "t5", "added-tokens"])
def test_a_long_string(name: str, text: str, folder: Path) -> None:
    """No step takes quadratic time: the limit is generous, quadratic steps take hours."""
    model = irrun.compile(_model(folder, name), strict=True, timeout=300)
    ids = model([_strings([text])]).arrays[0]
    assert ids.shape[0] == 1


@pytest.mark.parametrize("name", NAMES)
def test_any_ids_can_be_decoded(name: str, folder: Path) -> None:
    """Ids that the vocabulary lacks are left out."""
    model = irrun.compile(_model(folder, name, "detokenizer"), strict=True)
    ids = np.array([[-1, 5, 2**31 - 1], [100_000, -(2**31), 7]], np.int64)
    texts = model(ids).arrays[0]
    assert texts.shape == (2,)
    assert model(ids[:, :0]).arrays[0].tolist() == ["", ""] or name.startswith(("bert", "mpnet", "electra", "word"))

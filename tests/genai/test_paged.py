"""Several texts at once: the schedule of a server, and the texts of the stateful model one prompt at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.diagnostics import FeedError, ModelError
from irrun.genai import PagedPipeline, Pipeline, Sampling
from irrun.genai.paged import Paged
from irrun.genai.schedule import SLOTS, Blocks, Schedule
from irrun.genai.streaming import Text, TextStream
from language_models import decoder, write
from paged_models import paged_decoder

pytest.importorskip("regex", reason="the tokenizers need the package regex")

PROMPTS = ["The quick brown fox", "abc", "Once upon a time there was a dog that ran and ran over the hill", "1 2 3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("model"))
    irrun.save_model(paged_decoder(), folder / "paged.xml")
    return folder


@pytest.fixture(scope="module")
def alone(folder: Path) -> list[Any]:
    """The texts of the stateful model, one prompt at a time."""
    pipeline = Pipeline(folder)
    return [pipeline.generate(prompt, max_new_tokens=50, eos=frozenset()) for prompt in PROMPTS]


def test_the_texts_are_those_of_each_prompt(folder: Path, alone: list[Any]) -> None:
    pipeline = PagedPipeline(folder, folder / "paged.xml")
    for _ in range(2):  # a second batch begins with empty caches
        batch = pipeline.generate(PROMPTS, max_new_tokens=50, eos=frozenset())
        assert list(batch.texts) == alone
        assert batch.restarts == 0
        assert batch.calls == 50  # every prompt fits the first call, and a call gives each text a token


def test_little_memory(folder: Path, alone: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks for less than two whole texts, texts give their blocks back, and are still the same."""
    needs = [-(-(len(text.prompt_ids) + 50) // SLOTS) for text in alone]
    pipeline = PagedPipeline(folder, folder / "paged.xml", max_memory=800_000)
    begin = pipeline._paged.begin
    for blocks in (max(needs), max(needs) + 2):
        monkeypatch.setattr(pipeline._paged, "begin", lambda count, most=blocks: begin(min(count, most)))
        batch = pipeline.generate(PROMPTS, max_new_tokens=50, eos=frozenset())
        assert list(batch.texts) == alone, blocks
        assert batch.most_blocks == batch.blocks == blocks
        assert batch.calls > 50
        assert batch.restarts or blocks > max(needs)
    with pytest.raises(FeedError, match=r"IR601.*needs 19 blocks, but max_memory allows \d+"):
        pipeline.generate(["abc"], max_new_tokens=600)


def test_drawn_tokens_and_ends(folder: Path) -> None:
    """Each text has its own random numbers, stop text and end."""
    sampling = Sampling(do_sample=True, seed=3, max_new_tokens=30, eos=frozenset(range(0, 700, 9)))
    pipeline = Pipeline(folder)
    own = [pipeline.generate(prompt, sampling) for prompt in PROMPTS]
    batch = PagedPipeline(folder, folder / "paged.xml").generate(PROMPTS, sampling)
    assert list(batch.texts) == own
    assert {text.ended_by for text in own} == {"eos"}
    assert len({len(text.ids) for text in own}) > 2


def text(prompt: int, new: int) -> Text:
    return Text(range(prompt), Sampling(), new, TextStream(lambda ids: "x" * len(ids)))


def test_a_schedule() -> None:
    """Three blocks: the third text waits for one, the second gives its block back, and all end."""
    texts = [text(SLOTS - 1, 40), text(SLOTS - 2, 10), text(2 * SLOTS + 5, 1)]
    blocks = Blocks(3)
    schedule = Schedule(blocks, texts)
    calls: list[list[tuple[int, int]]] = []
    while call := schedule.call():
        calls.append([(texts.index(running.text), count) for running, count in call])
        held = [block for running, _ in call for block in running.blocks]
        assert len(held) == len(set(held))
        for running, count in call:
            running.held += count
            assert running.held <= SLOTS * len(running.blocks)
            if not running.lacking:
                running.text.add(np.ones(3, np.float32))
                if running.text.ended_by is not None:
                    schedule.end(running)
    assert calls[0] == [(0, 31), (1, 30)]
    assert calls[1] == calls[2] == [(0, 1), (1, 1)]
    assert calls[-1] == [(2, 2 * SLOTS + 5)]
    assert [len(t.tokens) - len(t.prompt) for t in texts] == [40, 10, 1]
    assert (blocks.free, blocks.most) == (3, 3)


def test_a_text_restarts() -> None:
    """Two texts in three blocks: the first one needs the block of the second, which is computed again."""
    texts = [text(SLOTS, 2 * SLOTS), text(SLOTS - 1, 3)]
    schedule = Schedule(Blocks(3), texts)
    first = schedule.call()
    assert [count for _, count in first] == [SLOTS, SLOTS - 1]
    for running, count in first:
        running.held += count
        running.text.add(np.ones(3, np.float32))
    second = schedule.call()  # the first takes the last free block, the second still has a slot
    assert [(len(running.blocks), count) for running, count in second] == [(2, 1), (1, 1)]
    for running, count in second:
        running.held += count
        running.text.add(np.ones(3, np.float32))
    third = schedule.call()
    assert [running.text for running, _ in third] == [texts[0]]
    assert schedule.restarts == 1


def test_a_long_prompt_is_computed_in_pieces() -> None:
    schedule = Schedule(Blocks(40), [text(3, 9), text(600, 9)])
    calls = []
    for _ in range(3):
        call = schedule.call()
        calls.append([count for _, count in call])
        for running, count in call:
            running.held += count
            if not running.lacking:
                running.text.add(np.ones(3, np.float32))
    assert calls == [[3, 253], [1, 255], [1, 92]]


def test_other_models(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"IR805.*the model has no layer PagedAttentionExtension"):
        PagedPipeline(folder, folder / "openvino_model.xml")
    paged = irrun.read_model(folder / "paged.xml")
    source = (folder / "paged.xml").read_text()
    (tmp_path / "other.bin").write_bytes((folder / "paged.bin").read_bytes())
    (tmp_path / "other.xml").write_text(source.replace("position_ids", "places"))
    with pytest.raises(ModelError, match=r'IR805.*no generation can feed the input "places"'):
        Paged(irrun.compile(tmp_path / "other.xml"))
    with pytest.raises(FeedError, match=r"IR601.*the prompt has no tokens"):
        PagedPipeline(write(tmp_path / "gpt2", "gpt2"), paged.source.path).generate([""])


def test_openvino_rewrites(ov: Any, folder: Path, alone: list[Any]) -> None:
    """The paged form that OpenVINO makes gives the same texts."""
    batch = PagedPipeline(folder, "openvino").generate(PROMPTS, max_new_tokens=50, eos=frozenset())
    assert list(batch.texts) == alone


def test_the_paged_decoder_is_the_stateful_one(folder: Path) -> None:
    """The model of these tests is what it says: one call has the logits of the stateful decoder."""
    ids = np.arange(5, 45)
    paged = irrun.compile(folder / "paged.xml")
    caches = {f"{k}_cache.{n}": np.zeros((2, 4, SLOTS, 8), np.float32) for k in ("key", "value") for n in (0, 1)}
    tables = {
        "max_context_len": np.int32(40), "past_lens": np.zeros(1, np.int32), "block_indices": np.array([1, 0], np.int32),
        "subsequence_begins": np.array([0, 40], np.int32), "block_indices_begins": np.array([0, 2], np.int32),
    }  # fmt: skip
    logits = paged({"input_ids": ids, "position_ids": np.arange(40), **tables, **caches})[0]
    inputs = [ids[None], np.ones((1, 40), np.int64), np.arange(40)[None], np.zeros(1, np.int32)]
    assert np.abs(logits[:, 0] - irrun.run(decoder(), inputs)[0][0]).max() < 1e-4

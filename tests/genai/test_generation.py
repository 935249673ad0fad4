"""A pipeline: prompts to tokens, tokens to text, as pieces and as a whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
import warm
from irrun.diagnostics import ExecutionError, FeedError
from irrun.genai import Pipeline, Sampling
from irrun.genai.decoder import Decoder
from irrun.genai.sampling import Sampler
from irrun.genai.streaming import TextStream
from language_models import VOCABULARY, decoder, write

pytest.importorskip("regex", reason="the tokenizers need the package regex")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def pipeline(folder: Path) -> Pipeline:
    return Pipeline(folder)


def greedy(model: irrun.Model, prompt: list[int], count: int) -> list[int]:
    """Return the likeliest tokens, computed from the whole text each time, without a past."""
    executable = irrun.compile(model)
    ids = list(prompt)
    for _ in range(count):
        executable.reset_state()
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
        feeds |= {"position_ids": np.arange(len(ids))[None], "beam_idx": np.zeros(1, np.int32)}
        names = {parameter.name for parameter in model.parameters}
        ids.append(int(executable({k: v for k, v in feeds.items() if k in names})["logits"][0, -1].argmax()))
    return ids[len(prompt) :]


# ---------------------------------------------------------------------------------------------
# tokens


def test_the_tokens_are_those_of_the_whole_text(folder: Path, pipeline: Pipeline) -> None:
    """Feeding one token at a time, with the past in variables, gives what feeding everything gives."""
    result = pipeline.generate("The quick brown fox", max_new_tokens=12)
    model = irrun.read_model(folder / "openvino_model.xml")
    assert list(result.ids) == greedy(model, list(result.prompt_ids), 12)
    assert result.ended_by == "length"
    assert len(set(result.ids)) > 4
    assert result.text == pipeline.decode(result.ids)


@pytest.mark.parametrize(
    "inputs", [("attention_mask",), ("beam_idx",), ("attention_mask", "beam_idx"), ("position_ids",)]
)
def test_inputs_are_optional(inputs: tuple[str, ...], tmp_path: Path) -> None:
    model = decoder(inputs=inputs)
    result = Pipeline(write(tmp_path, model=model)).generate("abc", max_new_tokens=6)
    assert list(result.ids) == greedy(model, list(result.prompt_ids), 6)


def test_a_model_without_variables_gets_the_whole_text(tmp_path: Path) -> None:
    from irrun import build as b

    ids, mask = (b.parameter([None, None], "i64", name=name) for name in ("input_ids", "attention_mask"))
    total = b.ReduceSum(b.Multiply(ids, mask), [1], keep_dims=True)
    logits = b.Unsqueeze(b.OneHot(b.Mod(total, 700), 700, 1.0, 0.0, axis=-1), 1)
    model = b.model({"logits": b.Reshape(logits, [1, 1, 700], special_zero=False)}, inputs=[ids, mask])
    result = Pipeline(write(tmp_path, model=model)).generate("ab", max_new_tokens=3, eos=frozenset())
    expected, total = [], sum(result.prompt_ids)
    for _ in range(3):
        expected.append(total % 700)
        total += expected[-1]
    assert list(result.ids) == expected


def test_generations_are_independent(pipeline: Pipeline) -> None:
    first = pipeline.generate("one", max_new_tokens=5)
    pipeline.generate("another text", max_new_tokens=7)
    next(pipeline.stream("begun and left", max_new_tokens=7))
    assert pipeline.generate("one", max_new_tokens=5) == first


def test_it_ends_at_any_of_the_ends(pipeline: Pipeline) -> None:
    ids = pipeline.generate("The quick", max_new_tokens=8).ids
    result = pipeline.generate("The quick", max_new_tokens=8, eos={ids[3], 699})
    assert result.ended_by == "eos"
    assert result.ids == ids[: ids.index(ids[3]) + 1]
    later = pipeline.generate("The quick", max_new_tokens=8, eos={ids[3]}, min_new_tokens=6)
    assert len(later.ids) >= 6
    assert ids[3] not in later.ids[:6]


def test_ends_are_those_of_the_files(tmp_path: Path) -> None:
    def ends(**files: Any) -> frozenset[int]:
        return Pipeline(write(tmp_path / str(len(list(tmp_path.iterdir()))), **files)).sampling.eos

    assert ends(generation_config={"eos_token_id": [3, 4]}, config={"eos_token_id": 5}) == {3, 4}
    assert ends(generation_config={}, config={"eos_token_id": 5}) == {5}
    assert ends(generation_config=None, config=None) == {0}  # from the tokenizer's rt_info
    assert ends(generation_config={"eos_token_id": -1}, config={"eos_token_id": None}) == {0}


def test_it_ends_where_the_model_does(tmp_path: Path) -> None:
    pipeline = Pipeline(write(tmp_path, config={"max_position_embeddings": 10}))
    result = pipeline.generate("abc", eos=frozenset())
    assert len(result.prompt_ids) + len(result.ids) == 10
    with pytest.raises(FeedError, match=r"IR601.*the prompt has \d+ tokens, the model takes 10"):
        pipeline.generate("a text that is longer than ten tokens", max_new_tokens=1)


def test_it_ends_without_an_end(tmp_path: Path) -> None:
    assert Pipeline(write(tmp_path)).sampling.max_new_tokens == 256
    assert Pipeline(write(tmp_path, generation_config={"max_new_tokens": 7})).sampling.max_new_tokens == 7


def test_special_tokens_are_left_out(pipeline: Pipeline) -> None:
    assert pipeline.encode("abc")[0] == 1
    assert pipeline.encode("abc", add_special_tokens=False) == pipeline.encode("abc")[1:]
    assert pipeline.decode(pipeline.encode("abc ü")) == "abc ü"
    assert pipeline.decode([]) == ""


def test_a_prompt_without_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match=r"IR601.*the prompt has no tokens"):
        Pipeline(write(tmp_path, "gpt2")).generate("")


def test_the_logits_must_be_numbers(tmp_path: Path) -> None:
    from irrun import build as b

    ids = b.parameter([None, None], "i64", name="input_ids")
    logits = b.Gather(np.full((700, 700), np.nan, np.float32), ids, 0)
    pipeline = Pipeline(write(tmp_path, model=b.model({"logits": logits})))
    with pytest.raises(ExecutionError, match=r"IR605.*the logits have NaN"):
        pipeline.generate("a")


def test_no_openvino_is_imported(folder: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('openvino', 'openvino_tokenizers', 'openvino_genai', 'transformers', 'torch'): sys.modules[name] = None\n"
        "from irrun.genai import Pipeline\n"
        f"print(Pipeline({str(folder)!r}).generate('abc', max_new_tokens=3).ids)"
    )
    done = warm.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(")


# ---------------------------------------------------------------------------------------------
# sampling


def drawn(logits: list[float], count: int = 2000, **settings: Any) -> np.ndarray:
    """Return how often each token was drawn."""
    sampler = Sampler(Sampling(do_sample=True, **settings), ())
    ids = [sampler(np.array(logits, np.float32)) for _ in range(count)]
    return np.bincount(ids, minlength=len(logits)) / count


def test_tokens_are_drawn_by_their_probabilities() -> None:
    odds = np.array([0.5, 0.3, 0.15, 0.05])
    np.testing.assert_allclose(drawn(np.log(odds).tolist()), odds, atol=0.03)
    squared = odds**2 / (odds**2).sum()
    np.testing.assert_allclose(drawn(np.log(odds).tolist(), temperature=0.5), squared, atol=0.03)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"top_k": 2}, [0.5 / 0.8, 0.3 / 0.8, 0, 0]), ({"top_p": 0.5}, [1, 0, 0, 0]), ({"top_p": 0.51}, [0.5 / 0.8, 0.3 / 0.8, 0, 0]),
        ({"min_p": 0.29}, [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0]), ({"top_k": 3, "top_p": 0.8}, [0.5 / 0.8, 0.3 / 0.8, 0, 0]),
        ({"top_k": 100}, [0.5, 0.3, 0.15, 0.05]),
    ],
)  # fmt: skip
def test_few_of_them(settings: dict[str, Any], left: list[float]) -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    if settings == {"top_p": 0.5}:
        logits[0] += 1e-3  # so that rounding does not decide
    np.testing.assert_allclose(drawn(logits.tolist(), **settings), left, atol=0.035)


def test_the_seed_decides(pipeline: Pipeline) -> None:
    def ids(seed: int) -> tuple[int, ...]:
        return pipeline.generate("abc", do_sample=True, seed=seed, max_new_tokens=8).ids

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)


def test_repetitions_are_penalised() -> None:
    sampler = Sampler(Sampling(repetition_penalty=2), [0])
    logits = np.array([3, 2, -1, -1.5], np.float32)
    assert [sampler(logits) for _ in range(2)] == [1, 0]  # 3/2 < 2, then 2/2 < 3/2
    assert logits.tolist() == [3, 2, -1, -1.5]
    negative = Sampler(Sampling(repetition_penalty=2), [0])
    assert negative(np.array([-1, -1.5], np.float32)) == 1  # -2 < -1.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0}, "temperature is 0; pass a number > 0"), ({"top_p": 1.5}, "top_p is 1.5"), ({"top_k": -1}, "top_k is -1"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"), ({"stop": "abc"}, "stop is abc"), ({"stop": ("",)}, "stop is"),
        ({"temprature": 1}, "there is no setting temprature"), ({"max_new_tokens": True}, "max_new_tokens is True"),
        ({"temperature": float("nan")}, "temperature is nan"), ({"min_p": 1}, "min_p is 1"), ({"repetition_penalty": 0}, "repetition_penalty is 0"),
    ],
)  # fmt: skip
def test_bad_settings(settings: dict[str, Any], message: str, pipeline: Pipeline) -> None:
    with pytest.raises(FeedError, match=r"IR802") as caught:
        pipeline.generate("a", **settings)
    assert message in str(caught.value)


# ---------------------------------------------------------------------------------------------
# pieces


@pytest.mark.parametrize("kind", ["llama3", "llama2", "gemma", "bert-cased", "clip", "t5", "o200k"])
def test_pieces_make_the_text(kind: str, tmp_path: Path) -> None:
    """Random tokens cut characters anywhere; the detokenizers of BERT and CLIP change text that they have given."""
    pipeline = Pipeline(write(tmp_path, kind, model=decoder(900)))
    stream = TextStream(pipeline.decode, rewrites=pipeline.rewrites)
    ids = np.random.default_rng(7).integers(0, 550, 300).tolist()
    pieces = [stream.add(id) for id in ids]
    assert "".join(pieces) + stream.finish() == stream.text == pipeline.decode(ids)
    assert sum(map(bool, pieces)) > 100


class Bytes:
    """A detokenizer for bytes: an id is a byte."""

    def __init__(self) -> None:
        self.longest = 0

    def __call__(self, ids: Any) -> str:
        self.longest = max(self.longest, len(ids))
        return bytes(ids).decode("utf-8", "replace")


def test_no_character_is_cut() -> None:
    stream = TextStream(Bytes())
    assert [stream.add(byte) for byte in "aé€😀b".encode()] == ["a", "", "é", "", "", "€", "", "", "", "😀", "b"]
    assert [TextStream(Bytes()).add(0xFF)] == [""]


def test_bytes_that_are_no_character_come_at_last() -> None:
    stream = TextStream(Bytes())
    assert "".join([*map(stream.add, b"a\xf0\x9f"), stream.finish()]) == "a\ufffd"


def test_stop_texts() -> None:
    stream = TextStream(Bytes(), ("END", "é!"))
    pieces = [stream.add(byte) for byte in b"abEx ENDing"]
    assert pieces[:8] == ["a", "b", "", "Ex", " ", "", "", ""]
    assert stream.stopped
    assert stream.text == "abEx "
    stream = TextStream(Bytes(), ("é!",))
    assert [stream.add(byte) for byte in "aé!".encode()] == ["a", "", "", ""]
    assert stream.text == "a"


def test_spaces_that_may_vanish_are_held_back() -> None:
    """As with clean_up_tokenization_spaces."""

    def decode(ids: Any) -> str:
        return bytes(ids).decode().replace(" .", ".").replace(" n't", "n't")

    stream = TextStream(decode, rewrites=True)
    pieces = [stream.add(byte) for byte in b"I do n't know . Yes"]
    assert "".join(pieces) + stream.finish() == "I don't know. Yes"
    assert pieces[:2] == ["I", ""]


def test_only_the_end_of_a_long_text_is_decoded() -> None:
    decode, text = Bytes(), "Größe 😀 und mehr. " * 100
    stream = TextStream(decode)
    assert "".join(stream.add(byte) for byte in text.encode()) == text
    assert decode.longest < 300


def test_a_result_needs_an_end(tmp_path: Path, pipeline: Pipeline) -> None:
    stream = pipeline.stream("abc", max_new_tokens=4)
    first = next(stream)
    assert stream.result.text.startswith(first)
    assert len(stream.result.ids) == 4
    assert stream.result.tokens_per_second > 0


def test_the_decoder_refuses_other_logits() -> None:
    from irrun import build as b

    ids = b.parameter([None, None], "i64", name="input_ids")
    model = b.model({"logits": b.ReduceMean(b.Gather(np.eye(VOCABULARY, dtype=np.float32), ids, 0), [0, 1, 2])})
    with pytest.raises(ExecutionError, match=r"IR605.*the logits are \[\], not \[1,2,vocabulary\]"):
        Decoder(irrun.compile(model))([1, 2])

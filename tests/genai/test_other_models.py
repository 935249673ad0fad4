"""Models that read text and generate none: `generate` refuses them, and `check` of their folder says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import irrun
from irrun import build as b
from irrun.cli import cli
from irrun.diagnostics import ExecutionError, IrrunError
from irrun.genai import Pipeline, check
from language_models import decoder, write

pytest.importorskip("regex", reason="the tokenizers need the package regex")

TABLE = np.random.default_rng(0).normal(0, 1, (700, 16)).astype(np.float32)


def call(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def hidden() -> tuple[list[Any], Any]:
    """Return the inputs of an encoder like BERT, and its hidden states."""
    ids, mask = (b.parameter([None, None], "i64", name=name) for name in ("input_ids", "attention_mask"))
    weight = b.Unsqueeze(b.Convert(mask, destination_type="f32"), 2)
    return [ids, mask], b.Multiply(b.Gather(TABLE, ids, 0), weight)


def text_classifier() -> irrun.Model:
    inputs, states = hidden()
    labels = b.MatMul(b.ReduceMean(states, [1]), np.ones((16, 2), np.float32))
    return b.model({"logits": labels}, inputs=inputs)


def token_classifier() -> irrun.Model:
    inputs, states = hidden()
    return b.model({"logits": b.MatMul(states, np.ones((16, 9), np.float32))}, inputs=inputs)


def embeddings() -> irrun.Model:
    inputs, states = hidden()
    return b.model({"last_hidden_state": states}, inputs=inputs)


def wide_embeddings() -> irrun.Model:
    """As wide as the vocabulary is long: only the name tells."""
    inputs, states = hidden()
    return b.model({"last_hidden_state": b.MatMul(states, np.ones((16, 700), np.float32))}, inputs=inputs)


def answers() -> irrun.Model:
    inputs, states = hidden()
    places = b.ReduceSum(states, [2])
    return b.model({"start_logits": places, "end_logits": b.Negative(places)}, inputs=inputs)


def chosen_tokens() -> irrun.Model:
    inputs, states = hidden()
    ids = b.TopK(states, np.int64(1), axis=2, mode="max", sort="value")[1]
    return b.model({"logits": ids}, inputs=inputs)


def one_score() -> irrun.Model:
    inputs, states = hidden()
    return b.model({"logits": b.ReduceMean(states, [1, 2])}, inputs=inputs)


def language_model() -> irrun.Model:
    inputs, states = hidden()
    return b.model({"logits": b.MatMul(states, np.ones((16, 700), np.float32))}, inputs=inputs)


def with_decoder() -> irrun.Model:
    inputs, states = hidden()
    other = b.parameter([None, None], "i64", name="decoder_input_ids")
    logits = b.MatMul(b.Add(states, b.Gather(TABLE, other, 0)), np.ones((16, 700), np.float32))
    return b.model({"logits": logits}, inputs=[*inputs, other])


def speech() -> irrun.Model:
    x = b.parameter([1, 80, 30], name="input_features")
    return b.model({"logits": b.MatMul(x, np.ones((30, 700), np.float32))})


def pictures() -> irrun.Model:
    x = b.parameter([None, None, 16], name="inputs_embeds")
    return b.model({"logits": b.MatMul(x, np.ones((16, 700), np.float32))})


OTHERS: dict[Callable[[], irrun.Model], str] = {
    text_classifier: "its logits have 2 columns, but there are 700 tokens",
    token_classifier: "its logits have 9 columns, but there are 700 tokens",
    embeddings: "its output is last_hidden_state: it computes embeddings",
    wide_embeddings: "its output is last_hidden_state: it computes embeddings",
    answers: "the model has no output logits",
    chosen_tokens: "its logits are i32, not floats",
    one_score: "its logits are [?], not [batch,length,vocabulary]",
    with_decoder: 'no generation can feed the input "decoder_input_ids"',
    speech: 'no generation can feed the input "input_features"',
    pictures: 'no generation can feed the input "inputs_embeds"',
}


@pytest.mark.parametrize("build", OTHERS, ids=lambda build: build.__name__)
def test_generate_refuses(build: Callable[[], irrun.Model], tmp_path: Path) -> None:
    """A text classifier "generated" 256 tokens without text."""
    with pytest.raises(IrrunError) as caught:
        Pipeline(write(tmp_path, model=build()))
    first = caught.value.diagnostics[0]
    assert first.code == "IR805"
    assert OTHERS[build] in first.message
    assert first.file == str(tmp_path / "openvino_model.xml")
    assert first.help


@pytest.mark.parametrize("build", OTHERS, ids=lambda build: build.__name__)
def test_check_says_so(build: Callable[[], irrun.Model], tmp_path: Path) -> None:
    """It is an error where the folder says how to generate, and a warning where it only has a detokenizer."""
    write(tmp_path, model=build())
    (first, *_) = [d for d in check(tmp_path) if d.code == "IR805"]
    assert OTHERS[build] in first.message
    (tmp_path / "generation_config.json").unlink()
    (warning,) = check(tmp_path)
    assert (warning.code, warning.severity) == ("IR807", "warning")
    assert OTHERS[build] in warning.message
    assert "a model of another task needs no openvino_detokenizer.xml" in (warning.help or "")
    for suffix in ("xml", "bin"):
        (tmp_path / f"openvino_detokenizer.{suffix}").unlink()
    assert list(check(tmp_path)) == []


def test_a_model_without_past_generates(tmp_path: Path) -> None:
    write(tmp_path, model=language_model(), generation_config=None)
    assert list(check(tmp_path)) == []
    assert len(Pipeline(tmp_path).generate("abc", max_new_tokens=3, eos=frozenset()).ids) == 3


def test_a_tokenizer_with_some_more_tokens_generates(tmp_path: Path) -> None:
    """The tokens that were added later are in no logits; `check` reports them."""
    write(tmp_path, model=decoder(690))
    assert {d.code for d in check(tmp_path)} == {"IR803"}
    assert len(Pipeline(tmp_path).generate("abc", max_new_tokens=3).ids) == 3


@pytest.mark.parametrize(
    ("name", "task"),
    [("BertForMaskedLM", "fills in masked tokens"), ("XForSequenceClassification", "chooses a label for a text")],
)
def test_the_configuration_names_another_task(name: str, task: str, tmp_path: Path) -> None:
    write(tmp_path, model=language_model(), config={"architectures": [name]})
    with pytest.raises(IrrunError, match=f"IR805.*config.json says {name}, which {task}"):
        Pipeline(tmp_path)
    for good in ("LlamaForCausalLM", "GPT2LMHeadModel", "ChatGLMModel", 7):
        (tmp_path / "config.json").write_text(json.dumps({"architectures": [good]}))
        Pipeline(tmp_path)


def test_logits_of_unknown_width(tmp_path: Path) -> None:
    """Only a run shows that there are as few as labels."""
    inputs, states = hidden()
    width = b.Concat(b.Gather(b.ShapeOf(inputs[0], output_type="i64"), [0, 1], 0), np.array([-1]), axis=0)
    labels = b.Reshape(b.MatMul(states, np.ones((16, 2), np.float32)), width, special_zero=False)
    model = b.model({"logits": labels}, inputs=inputs)
    pipeline = Pipeline(write(tmp_path, model=model))
    with pytest.raises(ExecutionError, match=r"IR605.*the logits have 2 columns, but there are 700 tokens"):
        pipeline.generate("abc")


def test_generate_ends_with_one_message(tmp_path: Path) -> None:
    write(tmp_path, model=text_classifier(), generation_config=None)
    result = call("generate", tmp_path, "-p", "abc")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("error[") == 1
    assert "the model is no causal language model" in result.stderr
    assert call("check", tmp_path).stdout.count("warning[IR807") == 1


def test_tokens_without_text_are_told(tmp_path: Path) -> None:
    """A model that chooses a special token again and again gives no text: that is said."""
    ids = b.parameter([None, None], "i64", name="input_ids")
    logits = np.zeros((700, 700), np.float32)
    logits[:, 0] = 1
    model = b.model({"logits": b.Gather(logits, ids, 0)})
    write(tmp_path, model=model, generation_config={"eos_token_id": 5})
    result = call("generate", tmp_path, "-p", "abc", "-n", 20)
    assert (result.exit_code, result.stdout) == (0, "\n")
    assert "the detokenizer gives no text for any of 20 new tokens" in result.stderr

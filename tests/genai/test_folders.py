"""Folders of language models: what is missing or wrong, and whether the files belong together."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.diagnostics import IrrunError
from irrun.genai import Pipeline, check, is_folder
from irrun.genai import folder as genai_folder
from language_models import decoder, tokenizer, write

pytest.importorskip("regex", reason="the tokenizers need the package regex")

KINDS = ["llama3", "llama2", "gemma", "bert-cased", "clip", "t5", "word-level", "added-tokens", "albert"]


def refused(folder: Path) -> irrun.Diagnostic:
    with pytest.raises(IrrunError) as caught:
        Pipeline(folder)
    (found,) = caught.value.diagnostics
    return found


# ---------------------------------------------------------------------------------------------
# what is no folder of a language model


def test_no_folder(tmp_path: Path) -> None:
    found = refused(tmp_path / "nothing")
    assert (found.code, found.message) == ("IR801", "there is no such folder")
    (tmp_path / "file.xml").touch()
    found = refused(tmp_path / "file.xml")
    assert (found.code, found.help) == ("IR801", "pass the folder that holds openvino_model.xml")


@pytest.mark.parametrize(
    ("files", "message", "help"),
    [
        ([], "the folder has no openvino_model.xml", "pass the folder that optimum-intel has written"),
        (["inner/openvino_model.xml"], "the folder has no openvino_model.xml", "pass a folder in it: inner"),
        (["model.safetensors"], "but model.safetensors: it is a model that is not exported yet", "run `optimum-cli export openvino"),
        (["openvino_decoder_model.xml"], "it is an encoder and a decoder", "irrun generates with decoders alone"),
        (["openvino_language_model.xml"], "it is a model that also reads pictures", "irrun generates from text alone"),
        (["model_index.json"], "it is a pipeline that makes pictures", "irrun generates text alone"),
        (["openvino_model.xml"], "the folder has no openvino_tokenizer.xml", "convert_tokenizer"),
        (["openvino_model.xml", "openvino_tokenizer.xml"], "the folder has no openvino_detokenizer.xml", "--with-detokenizer"),
    ],
)  # fmt: skip
def test_what_is_missing(files: list[str], message: str, help: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    found = refused(tmp_path)
    assert (found.code, found.file) == ("IR801", str(tmp_path))
    assert message in found.message
    assert help in (found.help or "")


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    tokenizer(tmp_path, "llama3")
    (tmp_path / "openvino_model.xml").mkdir()
    assert refused(tmp_path).code == "IR000"


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_a_pipe_in_place_of_a_file(tmp_path: Path) -> None:
    tokenizer(tmp_path, "llama3")
    os.mkfifo(tmp_path / "openvino_model.xml")
    assert "it is a pipe, not a file" in refused(tmp_path).message


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("config.json", '{\n"a": 1,\n}', 3, "the file is not JSON"), ("generation_config.json", "[1]", None, "the file holds a list, not an object"),
        ("config.json", "", 1, "the file is not JSON: expecting value"), ("config.json", "[" * 99999, None, "the file is not JSON"),
        ("config.json", '{"a": ' + "9" * 5000 + "}", None, "the file is not JSON"),
        ("generation_config.json", '{\n "eos_token_id": "2"\n}', 2, "eos_token_id is a text, not token ids"),
        ("generation_config.json", '{\n\n "temperature": 0\n}', 3, "temperature is 0"), ("generation_config.json", '{"top_k": 1.5}', 1, "top_k is 1.5, not a whole number"),
        ("generation_config.json", '{"do_sample": 1}', 1, "do_sample is 1, not true or false"), ("generation_config.json", '{"stop_strings": [1]}', 1, "stop_strings is not a list"),
        ("config.json", '{"max_position_embeddings": "x"}', 1, "max_position_embeddings is a text, not a whole number"), ("generation_config.json", '{"top_p": true}', 1, "top_p is true, not a number"),
    ],
)  # fmt: skip
def test_bad_json(name: str, text: str, line: int | None, message: str, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / name).write_text(text)
    found = refused(tmp_path)
    assert (found.code, found.file, found.line) == ("IR802", str(tmp_path / name), line)
    assert message in found.message


def test_json_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(genai_folder, "_LARGEST", 100)
    write(tmp_path, config={"a": "x" * 100})
    assert refused(tmp_path).message == "the file has 109 bytes, more than any"


def test_json_that_is_not_utf8(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "config.json").write_bytes(b'{"a": "\xff"}')
    assert refused(tmp_path).code == "IR802"


def test_the_settings_of_a_folder(tmp_path: Path) -> None:
    settings = {
        "do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9, "max_new_tokens": 9, "repetition_penalty": 1.1,
        "eos_token_id": [1, 2], "stop_strings": "END", "transformers_version": "5", "min_p": None,
    }  # fmt: skip
    own = Pipeline(write(tmp_path, generation_config=settings)).sampling
    assert (own.do_sample, own.temperature, own.top_k, own.top_p, own.min_p) == (True, 0.6, 20, 0.9, 0)
    assert (own.max_new_tokens, own.repetition_penalty, own.eos, own.stop) == (9, 1.1, {1, 2}, ("END",))


# ---------------------------------------------------------------------------------------------
# files that do not belong together


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_one_export(kind: str, tmp_path: Path) -> None:
    assert list(check(write(tmp_path, kind, model=decoder(900)))) == []
    assert is_folder(tmp_path)


def found(folder: Path) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in check(folder)]


def test_a_model_with_fewer_tokens(tmp_path: Path) -> None:
    write(tmp_path, model=decoder(690))
    assert found(tmp_path) == [
        ("IR803", "the embedding has 690 rows, but the tokenizer has 700 tokens"),
        ("IR803", "the logits have 690 columns, but the tokenizer has 700 tokens"),
    ]
    first = next(iter(check(tmp_path)))
    assert first.file == str(tmp_path / "openvino_model.xml")
    assert first.notes[0].startswith('BPETokenizer "')


@pytest.mark.parametrize(
    ("one", "other"),
    [("deepseek", "o200k"), ("llama2", "gemma"), ("bert-cased", "bert-uncased"), ("added-tokens", "gpt2")],
)
def test_a_detokenizer_of_another_tokenizer(one: str, other: str, tmp_path: Path) -> None:
    write(tmp_path, one, model=decoder(900))
    tokenizer(tmp_path / "other", other)
    for suffix in ("xml", "bin"):
        (tmp_path / "other" / f"openvino_detokenizer.{suffix}").replace(tmp_path / f"openvino_detokenizer.{suffix}")
    ((code, message),) = found(tmp_path)
    assert code == "IR803"
    assert "differ from those of the tokenizer" in message or "the detokenizer has" in message


@pytest.mark.parametrize(
    ("name", "data", "line", "message"),
    [
        ("config.json", {"a": 1, "eos_token_id": 700}, 3, "eos_token_id is 700, but the tokenizer has 700 tokens"),
        ("generation_config.json", {"eos_token_id": [0, 5000]}, 2, "eos_token_id is 5000, but the tokenizer has 700 tokens"),
        ("generation_config.json", {"pad_token_id": -7, "eos_token_id": 0}, 2, "pad_token_id is -7, but the tokenizer has 700 tokens"),
    ],
)  # fmt: skip
def test_special_tokens(name: str, data: dict[str, Any], line: int, message: str, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / name).write_text(json.dumps(data, indent=1))
    (one,) = check(tmp_path)
    assert (one.code, one.message, one.file, one.line) == ("IR804", message, str(tmp_path / name), line)


def test_inputs_that_nobody_feeds(tmp_path: Path) -> None:
    ids = b.parameter([None, None], "i64", name="input_ids")
    cache = b.parameter([None, 700], "f32", name="past_key_values.0.key")
    logits = b.Add(b.Gather(np.eye(700, dtype=np.float32), ids, 0), b.ReduceSum(cache, [0]))
    write(tmp_path, model=b.model({"logits": logits}))
    (one,) = check(tmp_path)
    assert (one.code, one.layer) == ("IR805", "past_key_values.0.key")
    assert one.help == "export the model again, without --disable-stateful"
    assert refused(tmp_path) == one


def test_no_language_model_at_all(tmp_path: Path) -> None:
    x = b.parameter([1, 3], name="pixels")
    write(tmp_path, model=b.model({"a": b.Exp(x), "b": b.Negative(x)}))
    assert [code for code, _ in found(tmp_path)] == ["IR805"] * 3


def test_a_model_that_generates_no_text(tmp_path: Path) -> None:
    """Such as BERT with a tokenizer: it needs no detokenizer, and its logits are no tokens."""
    ids, mask = (b.parameter([None, None], "i64", name=name) for name in ("input_ids", "attention_mask"))
    hidden = b.Gather(np.ones((800, 2), np.float32), b.Multiply(ids, mask), 0)
    write(tmp_path, "bert-cased", model=b.model({"logits": hidden}), generation_config=None)
    for suffix in ("xml", "bin"):
        (tmp_path / f"openvino_detokenizer.{suffix}").unlink()
    assert found(tmp_path) == []
    (tmp_path / "config.json").write_text('{"pad_token_id": 900}')
    assert found(tmp_path) == [("IR804", "pad_token_id is 900, but the tokenizer has 792 tokens")]


def test_unreadable_files_are_findings(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "openvino_tokenizer.xml").write_text("<net")
    assert [code for code, _ in found(tmp_path)] == ["IR001"]
    (tmp_path / "config.json").write_text("{")
    assert [code for code, _ in found(tmp_path)] == ["IR802"]
    assert [code for code, _ in found(tmp_path / "nothing")] == ["IR801"]


def test_many_faults_at_once(tmp_path: Path) -> None:
    write(tmp_path, model=decoder(690), config={"eos_token_id": 800}, generation_config={"temperature": -1})
    (tmp_path / "chat_template.jinja").write_text("{% if %}")
    assert {code for code, _ in found(tmp_path)} == {"IR802", "IR803", "IR804", "IR806"}

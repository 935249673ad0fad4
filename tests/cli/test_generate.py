"""``irrun generate``, and ``irrun check`` of a language model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

import irrun
from irrun.cli import cli
from irrun.genai import Pipeline
from language_models import decoder, write
from paged_models import paged_decoder
from places import ROOT

pytest.importorskip("regex", reason="the tokenizers need the package regex")

SCHEMA = json.loads((ROOT / "irrun/cli/schemas/generate.json").read_text("utf-8"))
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def expected(folder: Path) -> Any:
    return Pipeline(folder).generate("The quick brown", max_new_tokens=6)


def test_text(folder: Path, expected: Any, call: Any) -> None:
    result = call("generate", folder, "--prompt", "The quick brown", "-n", 6)
    assert result.exit_code == 0
    assert result.stdout == expected.text + "\n"
    said = f"{len(expected.prompt_ids)} tokens of prompt, 6 new tokens, "
    assert result.stderr.startswith(said)
    assert " per second; first after " in result.stderr
    assert result.stderr.endswith("--max-new-tokens was reached\n")


def test_json(folder: Path, expected: Any, call: Any) -> None:
    result = call("generate", folder, "-p", "The quick brown", "-n", 6, "--format", "json")
    record = json.loads(result.stdout)
    assert (record["text"], record["ids"]) == (expected.text, list(expected.ids))
    assert (record["prompt_ids"], record["ended_by"]) == (list(expected.prompt_ids), "length")
    assert record["seconds"] >= record["first_seconds"] > 0


def test_standard_input(folder: Path, expected: Any) -> None:
    args = ["generate", str(folder), "-p", "-", "-n", "6"]
    assert CliRunner().invoke(cli, args, input="The quick brown").stdout == expected.text + "\n"
    bad = CliRunner().invoke(cli, args, input=b"a\xff")
    assert bad.exit_code == 2
    assert "standard input is not UTF-8 at byte 1; convert it" in bad.stderr


def test_a_prompt_without_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irrun.cli.generate._MAX_PROMPT_BYTES", 3)
    bad = CliRunner().invoke(cli, ["generate", str(folder), "-p", "-"], input="abcd")
    assert bad.exit_code == 2
    assert "standard input has more than 3 bytes; pass a shorter prompt" in bad.stderr


def test_settings_are_passed_on(folder: Path, call: Any) -> None:
    def ids(*options: object) -> list[int]:
        result = call("generate", folder, "-p", "abc", "-n", 6, "--format", "json", *options)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)["ids"]

    pipeline = Pipeline(folder)

    def own(**settings: Any) -> list[int]:
        return list(pipeline.generate("abc", max_new_tokens=6, **settings).ids)

    greedy = own()
    assert ids() == ids("--temperature", 0) == ids("--top-k", 1) == greedy
    assert ids("--temperature", 2, "--seed", 5) == own(do_sample=True, temperature=2, seed=5) != greedy
    assert ids("--top-p", 0.9, "--top-k", 50) == own(do_sample=True, top_p=0.9, top_k=50)
    assert ids("--repetition-penalty", 5) == own(repetition_penalty=5.0)


def test_a_stop_text(folder: Path, expected: Any, call: Any) -> None:
    stop = expected.text[2:4]
    result = call("generate", folder, "-p", "The quick brown", "-n", 6, "--stop", stop)
    assert result.stdout == expected.text[: expected.text.index(stop)] + "\n"
    assert "a --stop was found" in result.stderr


def test_several_texts(folder: Path, call: Any, tmp_path: Path) -> None:
    irrun.save_model(paged_decoder(), tmp_path / "paged.xml")
    prompts = ["The quick brown", "abc"]
    options = [option for prompt in prompts for option in ("-p", prompt)]
    args = ("generate", folder, *options, "-n", 6)
    own = Pipeline(folder)
    expected = [own.generate(prompt, max_new_tokens=6) for prompt in prompts]
    done = call(*args, "--paged", "paged.xml", "--format", "json")
    record = json.loads(done.stdout)
    assert [text["ids"] for text in record["texts"]] == [list(text.ids) for text in expected]
    assert [record[name] for name in ("calls", "blocks", "most_blocks", "restarts")] == [6, 2, 2, 0]
    jsonschema.validate({"version": 1, "command": "generate", **record}, SCHEMA)
    done = call(*args, "--paged", "paged.xml")
    assert done.stdout == "".join(f"{text.text}\n" for text in expected)
    tokens = sum(len(text.prompt_ids) for text in expected)
    assert done.stderr == (
        f"2 texts: {tokens} tokens of prompt, 12 new tokens in 6 calls; at most 2 of 2 blocks in use\n"
    )
    assert "several prompts need --paged" in call(*args).stderr


def test_a_chat(tmp_path: Path, call: Any) -> None:
    pytest.importorskip("jinja2", reason="chat templates need the package jinja2")
    write(tmp_path / "model")
    plain = call("generate", "model", "-p", "abc", "--chat")
    assert plain.exit_code == 2
    assert "the folder has no chat template" in plain.stderr
    text = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
    (tmp_path / "model" / "chat_template.jinja").write_text(text)
    pipeline = Pipeline(tmp_path / "model")
    for options, prompt in ((["--chat"], "user:abc\n"), (["--system", "hi"], "system:hi\nuser:abc\n")):
        result = call("generate", "model", "-p", "abc", "-n", 1, "--format", "json", *options)
        ids = json.loads(result.stdout)["prompt_ids"]
        assert ids == pipeline.encode(prompt, add_special_tokens=False)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing", "-p", "a"], "there is no such folder"), (["."], "Missing option"), ([".", "-p", "a"], "the folder has no openvino_model.xml"),
        ([".", "-p", "a", "-n", "0"], "-n"), ([".", "-p", "a", "--top-p", "2"], "--top-p"), ([".", "-p", "a", "--temperature", "-1"], "--temperature"),
    ],
)  # fmt: skip
def test_wrong_use(args: list[str], message: str, call: Any) -> None:
    result = call("generate", *args)
    assert result.exit_code == 2
    assert message in result.stderr


def _process(*args: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "irrun", "generate", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@posix
def test_ctrl_c_ends_cleanly(folder: Path) -> None:
    process = _process(folder, "-p", "abc", "-n", 100000)
    assert process.stdout is not None
    first = process.stdout.read(3)  # the text comes before the end
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert first
    assert out.endswith(b"\n")
    assert (process.returncode, err) == (130, b"interrupted\n")


@posix
def test_a_closed_pipe(folder: Path) -> None:
    process = _process(folder, "-p", "abc", "-n", 100000)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(3)
    process.stdout.close()
    assert (process.wait(timeout=120), process.stderr.read()) == (141, b"")
    process.stderr.close()


# ---------------------------------------------------------------------------------------------
# irrun check


def test_check_of_a_good_folder(folder: Path, call: Any) -> None:
    result = call("check", folder)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "checked 3 files: 0 errors, 0 warnings\n"


@pytest.mark.parametrize("options", [(), ("--fix",), ("-j", 2), ("--diff",)])
def test_check_of_files_that_do_not_belong_together(options: tuple[object, ...], tmp_path: Path, call: Any) -> None:
    write(tmp_path / "models" / "a", model=decoder(690))
    write(tmp_path / "models" / "b", config={"eos_token_id": 800})
    result = call("check", "models", "--format", "concise", *options)
    assert result.exit_code == (options != ("--diff",))
    lines = result.stdout.splitlines() + result.stderr.splitlines()
    place = "models/b/config.json:1:2: IR804 eos_token_id is 800, but the tokenizer has 700 tokens"
    if options != ("--diff",):
        assert place.replace("/", os.sep, 3) in lines
        assert sum("IR803 the embedding has 690 rows" in line for line in lines) == 1


def test_check_of_a_folder_can_be_limited(tmp_path: Path, call: Any) -> None:
    write(tmp_path / "a", model=decoder(690))
    assert call("check", "a", "--ignore", "IR803").exit_code == 0
    assert call("check", "a", "--shape", "input_ids=[1,2]").stdout.count("IR803") == 0
    records = json.loads(call("check", "a", "--format", "json").stdout)
    assert json.dumps(records).count('"IR803"') == 2

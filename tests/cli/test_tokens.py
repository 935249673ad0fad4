"""irrun compare with language models: --prompt and --tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import irrun
import language_models
from irrun import build as b

Call = Callable[..., Result]
IDS = ("-i", "input_ids=[[2,5]]")


@pytest.fixture(autouse=True)
def _models(tmp_path: Path) -> None:
    """Write two models that continue the alphabet. After letter 7, the second one gives 20 in place of 8."""
    for name, wrong in (("right", 0.0), ("wrong", 1.25)):
        table = np.roll(np.eye(26, dtype=np.float32), 1, axis=1)
        table[7, 20] = wrong
        logits = b.Gather(table, b.parameter([None, None], "i64", name="input_ids"), 0, name="table")
        irrun.save_model(b.model({"logits": logits}), tmp_path / f"{name}.xml")


def test_another_token(call: Call) -> None:
    """The margin of 1 is less than twice the tolerance of a logit, or more."""
    for atol, words in (
        ("0.75", "explained, margin 1; f32 explains 1.5"),
        ("0.4", "not explained, margin 1; f32 explains 0.8"),
    ):
        result = call("compare", "right.xml", "wrong.xml", *IDS, "--tokens", 4, "--atol", atol, "--rtol", 0)
        assert result.exit_code == 1
        lines = [line.split() for line in result.stdout.splitlines()]
        assert ["1", "2", "6", "6", "1", "0"] in [line[:6] for line in lines]
        assert ["3", "4", "8", "20", "1"] in [line[:5] for line in lines]
        assert f"the first other token is that of step 3, 20 in place of 8: {words}" in result.stdout
    assert 'the first divergence is Gather "table"' in result.stdout
    assert "step 3 of 4" in result.stdout


def test_the_same_tokens(call: Call) -> None:
    result = call("compare", "right.xml", "exact:right.xml", *IDS, "--tokens", 3, "--outputs-only")
    assert result.exit_code == 0
    assert "agree: 1 output, 3 steps\n" in result.stdout
    assert "both choose the same 3 tokens" in result.stdout


def test_json_and_saved_measurements(call: Call) -> None:
    options = (*IDS, "--tokens", 4, "--atol", 0.75, "--rtol", 0, "--format", "json", "--save", "m.json")
    fields = json.loads(call("compare", "right.xml", "wrong.xml", *options).stdout)
    assert [(step["length"], step["reference"], step["candidate"]) for step in fields["steps"]] == [
        (2, 6, 6), (3, 7, 7), (4, 8, 20), (5, 9, 9)
    ]  # fmt: skip
    assert (fields["steps"][2]["margin"], fields["steps"][2]["allowed"]) == (1, 1.5)
    assert [step["is_explained"] for step in fields["steps"]] == [True] * 4
    again = json.loads(call("compare", "--load", "m.json", "--atol", 2, "--format", "json").stdout)
    assert (again["verdict"], again["steps"][2]["candidate"], again["steps"][2]["allowed"]) == ("agree", 20, None)


def test_a_folder_and_a_text(call: Call, tmp_path: Path) -> None:
    folder = language_models.write(tmp_path / "llm")
    tokens = json.loads(call("generate", folder, "--prompt", "The fox", "-n", 2, "--format", "json").stdout)
    result = call("compare", folder, f"exact:{folder}", "--prompt", "The fox", "--tokens", 2, "--outputs-only", "--format", "json")  # fmt: skip
    fields = json.loads(result.stdout)
    assert [step["reference"] for step in fields["steps"]] == tokens["ids"]
    assert fields["steps"][0]["length"] == len(tokens["prompt_ids"])
    assert "".join(step["candidate_text"] for step in fields["steps"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--prompt", "a", *IDS), "--prompt is the text that -i would be; pass one of them"),
        (("--tokens", 2, *IDS, "--keep-state"), "--tokens decodes one text; leave out --keep-state"),
        (("--tokens", 2), "pass --prompt TEXT, or -i input_ids=[[1,2,3]] alone"),
        (("--tokens", 2, "-i", "input_ids=[[1],[2]]"), "has the shape [2,1], which is no single text"),
        (("--prompt", "a"), "a prompt that is a text needs openvino_tokenizer.xml and openvino_detokenizer.xml"),
    ],
)
def test_mistakes(options: tuple[object, ...], words: str, call: Call) -> None:
    result = call("compare", "right.xml", "right.xml", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())

"""Language models that read the same tokens: other tokens, what explains them, and the layer and step of a fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug import Limit, Tolerances, compare_tokens
from irrun.debug.budget import Accumulated, InEffect
from irrun.debug.tokens import comparison
from irrun.diagnostics import EngineError, FeedError, ModelError, ReadError
from irrun.engines import Engine, Side
from irrun.model.weights import Weights
from llama import FAULTS, PROMPT, llama

Write = Callable[..., str]
PROMPT_IDS = [3, 7, 300, 21, 5, 99][:PROMPT]


@pytest.fixture(autouse=True)
def _running(two: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two sides that irrun runs use the processes that are running already."""
    start = comparison.open_all

    def opened(sides: Sequence[Side], *arguments: Any) -> AbstractContextManager[Sequence[Engine]]:
        return nullcontext(two) if {side.kind for side in sides} == {"irrun"} else start(sides, *arguments)

    monkeypatch.setattr(comparison, "open_all", opened)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Returns the path of a model that it saves."""

    def save(model: irrun.Model, name: str = "right") -> str:
        irrun.save_model(model, tmp_path / f"{name}.xml")
        return str(tmp_path / f"{name}.xml")

    return save


def _alphabet(wrong: float = 0.0) -> irrun.Model:
    """Return a model that reads the whole text in each step: after letter n it gives 1 to n + 1, and 0 to the others.

    After letter 7, letter 20 gets ``wrong``.
    """
    table = np.roll(np.eye(26, dtype=np.float32), 1, axis=1)
    table[7, 20] = wrong
    return b.model({"logits": b.Gather(table, b.parameter([None, None], "i64", name="input_ids"), 0, name="table")})


@pytest.mark.parametrize(("atol", "is_explained"), [(0.49, False), (0.51, True)])
def test_a_token_is_explained_by_the_tolerance_of_two_logits(write: Write, atol: float, is_explained: bool) -> None:
    """The margin is 1; the logits of both tokens may be off by ``atol`` each."""
    limits = Tolerances(everywhere=Limit(0, atol))
    found = compare_tokens(
        write(_alphabet()), write(_alphabet(1.2), "wrong"), [2, 5], 4, layers=False, tolerances=limits
    )
    assert [(step.length, step.reference, step.candidate) for step in found.steps] == [
        (2, 6, 6),
        (3, 7, 7),
        (4, 8, 20),
        (5, 9, 9),
    ]
    assert found.other_token == (2, found.steps[2])
    assert (found.steps[2].margin, found.steps[0].margin) == (1.0, 1.0)
    assert found.steps[2].allowed == pytest.approx(2 * atol)
    assert [step.is_explained for step in found.steps] == [True, True, is_explained, True]
    rms = np.sqrt(4 / (4 * 26))  # a text of four letters has four logits of 1, of 26 each
    assert found.steps[2].error == pytest.approx(1.2 / rms)
    assert found.steps[2].explained == pytest.approx(atol / rms)
    assert found.verdict == "differ"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_step(fault: str, write: Write) -> None:
    layer, step = FAULTS[fault][0]
    right, wrong = write(llama(cached=True)), write(llama(cached=True, fault=fault), "wrong")
    found = compare_tokens(right, wrong, (PROMPT_IDS * 4)[: PROMPT + max(step - 2, 0)], 2)
    assert found.verdict == "differ"
    assert found.first is not None
    assert (found.first.layer.name, found.first.layer.sample + 1) == (layer, min(step, 2))


def test_equal_models_agree_in_all_steps(write: Write) -> None:
    path = write(llama(cached=True))
    found = compare_tokens(path, f"exact:{path}", PROMPT_IDS, 3)
    assert (found.verdict, found.samples, found.other_token) == ("agree", 3, None)
    assert [step.length for step in found.steps] == [6, 7, 8]
    assert all(step.explained is not None and step.error <= step.explained < 1e-3 for step in found.steps)


def test_a_model_without_variables_reads_the_text_again(write: Write) -> None:
    """With a cache and without, the same weights choose the same tokens."""
    paths = [write(llama(cached=cached), f"{cached}") for cached in (False, True)]
    plain, cached = (compare_tokens(path, path, PROMPT_IDS, 3, layers=False) for path in paths)
    assert [step.reference for step in plain.steps] == [step.reference for step in cached.steps]


def _rounded(model: irrun.Model) -> irrun.Model:
    """Return a model whose constants are rounded to bf16."""
    assert model.weights is not None
    data = bytearray(model.weights.data)
    for layer in model.layers.values():
        if layer.type == "Const" and layer.attributes["element_type"] == "f32":
            begin, size = int(layer.attributes["offset"]), int(layer.attributes["size"])
            values = np.frombuffer(bytes(data[begin : begin + size]), np.float32)
            data[begin : begin + size] = values.astype(ml_dtypes.bfloat16).astype(np.float32).tobytes()
    return replace(model, weights=Weights(data=bytes(data)))


def test_bf16_explains_another_token(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidate has the weights that bf16 has: an engine that says bf16 of itself is right, and another one not."""
    right, rounded = write(llama(cached=True)), write(_rounded(llama(cached=True)), "rounded")
    ids = [631, 179, 158]
    (step,) = compare_tokens(right, rounded, ids, 1, layers=False).steps
    assert not step.is_explained
    of = InEffect.of
    monkeypatch.setattr(InEffect, "of", lambda properties: of({**properties, "INFERENCE_PRECISION_HINT": "bf16"}))
    found = compare_tokens(right, rounded, ids, 1)
    assert (found.verdict, found.other_token) == ("agree", (0, found.steps[0]))
    assert found.steps[0].is_explained
    assert found.steps[0].margin == pytest.approx(step.margin)


@pytest.mark.parametrize("cache", ["f32", "u8"])
def test_a_budget_does_not_grow_with_the_length_of_a_cache(cache: str) -> None:
    """A value that is kept is rounded once, however long it stays."""
    held = b.ReadValue(
        np.zeros((1, 0, 8), np.float32), variable_id="v", variable_type="f32", variable_shape=[1, None, 8]
    )
    whole = b.Concat([held, b.ReLU(b.parameter([1, 1, 8], name="x"))], axis=1)
    model = b.model({"y": whole}, sinks=[b.Assign(whole, variable_id="v")])
    budget = Accumulated(model, (InEffect.of({}), InEffect.of({"KV_CACHE_PRECISION": cache})), True)
    x, first = np.arange(8, dtype=np.float32).reshape(1, 1, 8), 0.0
    for step in range(1, 40):
        budget.run({0: x})
        y = np.repeat(x, step, axis=1)
        allowed = budget.allowed(0, y, y, 0.0, 0.0)
        assert allowed is not None
        first = first or float(allowed.max())
        assert 0 < allowed.max() < 3 * first


def test_models_that_cannot_read_the_same_tokens_are_refused(write: Write, tmp_path: Path) -> None:
    plain, cached = write(llama()), write(llama(cached=True), "cached")
    with pytest.raises(EngineError, match=r"IR707.*cached\.xml keeps the past in variables, and .*right\.xml reads it"):
        compare_tokens(plain, cached, [1])
    (dump := tmp_path / "dump").mkdir()
    (dump / "index.json").write_text("[]")
    with pytest.raises(EngineError, match=r"IR707.*is no IR file"):
        compare_tokens(f"{dump}", plain, [1])
    with pytest.raises(FeedError, match=r"IR601.*the prompt has no tokens"):
        compare_tokens(plain, plain, [])
    with pytest.raises(ReadError, match=r"IR801.*openvino_tokenizer"):
        compare_tokens(plain, plain, "text")
    image = write(b.model([b.ReLU(b.parameter([1, 3], name="image"))]), "image")
    with pytest.raises(ModelError, match="IR805"):
        compare_tokens(image, image, [1])


def test_a_side_that_fails_keeps_the_steps_before(write: Write) -> None:
    ids = b.parameter([None, None], "i64", name="input_ids")
    table = np.roll(np.eye(26, dtype=np.float32), 1, axis=1)
    few = b.Minimum(b.ShapeOf(ids, output_type="i64"), np.array([1, 3]))  # four tokens do not fit
    wrong = b.model({"logits": b.Gather(table, b.Reshape(ids, few, special_zero=False), 0)}, inputs=[ids])
    found = compare_tokens(write(_alphabet()), write(wrong, "short"), [2, 5], 4, layers=False)
    assert (found.verdict, len(found.steps)) == ("refused", 2)
    assert found.failure is not None
    assert (found.failure.side, found.failure.sample) == ("candidate", 2)


@pytest.mark.openvino
@pytest.mark.parametrize("cache", ["f32", "u8"])
def test_a_healthy_cache_agrees(cache: str, write: Write, ov: Any) -> None:
    """OpenVINO really quantizes the cache, and what that does to the logits is explained."""
    path = write(llama(cached=True))
    found = compare_tokens(
        path, f"openvino[INFERENCE_PRECISION_HINT=f32,KV_CACHE_PRECISION={cache}]:{path}", PROMPT_IDS, 3
    )
    assert found.verdict == "agree"
    errors = [step.error for step in found.steps[1:]]
    assert min(errors) > 1e-4 if cache == "u8" else max(errors) < 1e-4
    assert all(step.is_explained for step in found.steps)

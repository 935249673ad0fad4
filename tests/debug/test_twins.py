"""Bisection counts a part only if it fails as the whole model does, and the same part of the reference does not fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug import Bisection, bisect
from irrun.debug.bisection import judging, search, twins
from irrun.debug.bisection.judging import Question, Wrong, is_alike
from irrun.engines import Engine

INT64_MAX = 2**63 - 1


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(0, 0.3, shape).astype(np.float32)


def decoder() -> irrun.Model:
    """A decoder with a cache that grows, beam indices, and shapes that are computed from the inputs."""
    x, beam = b.parameter(["?", "?", 8], "f32", name="x"), b.parameter(["?"], "i32", name="beam")
    first, zero = np.array([0], np.int64), np.int64(0)
    batch = b.Gather(b.ShapeOf(x, output_type="i64", name="shape"), first, zero, name="batch")
    empty = b.Concat(batch, np.array([0, 8], np.int64), axis=0, name="empty_shape")
    empty = b.Broadcast(np.float32(0), empty, mode="numpy", name="empty")
    past = b.ReadValue(empty, variable_id="k", variable_type="f32", variable_shape=["?", "?", 8], name="past")
    keys = b.MatMul(x, weights(8, 8), name="keys")
    cache = b.Concat(b.Gather(past, beam, zero, name="reorder"), keys, axis=1, name="cache")
    length = b.Gather(b.ShapeOf(cache, output_type="i64", name="cache_shape"), first + 1, zero, name="length")
    scores = b.MatMul(b.MatMul(x, weights(8, 8), name="queries"), cache, transpose_b=True, name="scores")
    heads = b.Reshape(cache, np.array([0, 0, 2, 4], np.int64), special_zero=True, name="heads")
    kept = b.Slice(heads, first, np.array([INT64_MAX], np.int64), first + 1, first + 2, name="slice")
    flat = b.Concat(batch, length, np.array([8], np.int64), axis=0, name="flat_shape")
    values = b.Reshape(kept, flat, special_zero=False, name="values")
    attended = b.MatMul(b.SoftMax(scores, axis=2, name="soft"), values, name="attended")
    head = b.MatMul(b.Add(attended, x, name="residual"), weights(8, 8), name="head")
    return b.model({"y": head}, sinks=[b.Assign(cache, variable_id="k")])


@pytest.fixture
def decoders(tmp_path: Path) -> tuple[str, str]:
    """Return a decoder, and a copy whose Slice ends at -1, so that the last head is lost."""
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    irrun.save_model(decoder(), good)
    bad.write_text(good.read_text())
    data = good.with_suffix(".bin").read_bytes()
    assert data.count(np.int64(INT64_MAX).tobytes()) == 1
    bad.with_suffix(".bin").write_bytes(data.replace(np.int64(INT64_MAX).tobytes(), np.int64(-1).tobytes()))
    return str(good), str(bad)


def names(bisection: Bisection) -> list[str]:
    return [layer.name for layer in bisection.layers]


@pytest.mark.parametrize("kind", ["", "exact:", pytest.param("openvino[precision=f32]:", marks=pytest.mark.openvino)])
@pytest.mark.parametrize("samples", [1, 2])
def test_a_refusal_in_a_model_with_state(kind: str, samples: int, decoders: tuple[str, str]) -> None:
    """The Reshape alone is refused as well, because the true value of its input has another shape than the part says.

    This is another cause: only the Slice and the Reshape together fail as the whole model does.
    """
    good, bad = decoders
    sample = {"x": weights(1, 3, 8), "beam": np.zeros(1, np.int32)}
    bisection = bisect(good, kind + bad, [sample] * samples)
    assert bisection.verdict == "refused"
    assert names(bisection) == ["slice", "values"]
    assert bisection.wrong is not None
    assert "values" in bisection.wrong.message
    if "openvino" not in kind:  # which refuses the Assign of the right model
        assert bisect(good, kind + good, [sample] * samples).verdict == "agree"


def shaped() -> irrun.Model:
    """A chain in which a shape is computed from an early value, and read late."""
    x = b.parameter([2, 8], "f32", name="x")
    first = b.Tanh(b.MatMul(x, weights(8, 8), name="m1"), name="t1")
    shape = b.ShapeOf(first, output_type="i64", name="shape")
    value = b.ReLU(b.Add(b.MatMul(first, weights(8, 8), name="m2"), weights(1, 8), name="a2"), name="r2")
    for number in range(3, 9):
        value = b.Sigmoid(b.Add(value, weights(1, 8), name=f"a{number}"), name=f"s{number}")
    value = b.Reshape(value, shape, special_zero=False, name="reshape")
    return b.model(b.SoftMax(b.Add(value, weights(1, 8), name="a9"), axis=1, name="y"))


def fakes(monkeypatch: pytest.MonkeyPatch, failure: Wrong) -> list[tuple[str, bool]]:
    """Let engines fail for the layer t1 if it is wrong, and for every model with an input of integers.

    Return a list that gets the name of the engine and whether it failed, for each model.
    """
    asked: list[tuple[str, bool]] = []

    def judge(engine: Engine, question: Question) -> Wrong | None:
        model = irrun.read_model(question.path)
        layers = {layer.name: layer.type for layer in model.layers.values()}
        is_cut = any(str(p.outputs[0].type) == "i64" for p in model.parameters)
        is_faulty = layers.get("t1") == "Sigmoid" or (layers.get("t1") == "Tanh" and "exact" in engine.name)
        asked.append((engine.name, is_cut or is_faulty))
        return failure if is_cut or is_faulty else judging.judge(engine, question)

    monkeypatch.setattr(search, "judge", judge)
    monkeypatch.setattr(twins, "judge", judge)
    return asked


FAILURES = [
    Wrong("timeout", message="no answer within 1 s"),
    Wrong("crashed", message="it was ended by signal 11"),
    Wrong("refused", message="cannot compile"),
    Wrong("differ", (0,), 5.0),
]
failures = pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.verdict)


@failures
def test_a_cut_that_fails_in_the_file_of_the_reference_too(
    failure: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine fails for a wrong layer, but also for parts whose shape has become an input."""
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    irrun.save_model(shaped(), good)
    bad.write_text(good.read_text().replace('name="t1" type="Tanh"', 'name="t1" type="Sigmoid"'))
    bad.with_suffix(".bin").write_bytes(good.with_suffix(".bin").read_bytes())
    fakes(monkeypatch, failure)
    bisection = bisect(str(good), str(bad))
    assert (bisection.verdict, names(bisection)) == (failure.verdict, ["t1"])


@failures
def test_a_cut_that_fails_in_the_engine_of_the_reference_too(
    failure: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides have the same file: the engine is to blame, and that of the reference tells which cuts are healthy."""
    path = tmp_path / "model.xml"
    irrun.save_model(shaped(), path)
    asked = fakes(monkeypatch, failure)
    bisection = bisect(str(path), f"exact:{path}")
    assert (bisection.verdict, names(bisection)) == (failure.verdict, ["t1"])
    assert any("exact" not in engine for engine, _ in asked)


@failures
def test_an_engine_that_fails_for_both_files(failure: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files have other names, and the candidate's engine fails for both: the file is not to blame."""
    good, other = tmp_path / "good.xml", tmp_path / "other.xml"
    irrun.save_model(shaped(), good)
    other.write_text(good.read_text().replace('name="m2"', 'name="second"'))
    other.with_suffix(".bin").write_bytes(good.with_suffix(".bin").read_bytes())
    fakes(monkeypatch, failure)
    bisection = bisect(str(good), f"exact:{other}")
    assert (bisection.verdict, names(bisection)) == (failure.verdict, ["t1"])


RESHAPE = """Exception from src/inference/src/cpp/infer_request.cpp:224:
Exception from src/plugins/intel_cpu/src/node.cpp:794:
[CPU] Reshape node with name '{}' Check 'inputProduct == outputProduct' failed at src/plugins/reshape.cpp:77:
[cpu]reshape: the shape of input data ({}) conflicts with the reshape pattern ({})"""
INPUT = """Exception from src/inference/src/cpp/infer_request.cpp:104:
Check 'shape.compatible(shape)' failed at src/plugins/intel_cpu/src/infer_request.cpp:385:
Can't set the input tensor with index: 0, because the model input (shape=[?,4]) and the tensor (shape=(1.3)) differ"""
IRRUN = '{}:3: error[IR605 invalid-value] Reshape "{}": data {} cannot have the shape [1, 3, 8]'


@pytest.mark.parametrize(
    ("whole", "part", "expected"),
    [
        (RESHAPE.format("back", "1.3.1.4", "0.0.8"), RESHAPE.format("back", "1.3.1.4", "1.3.8"), True),
        (RESHAPE.format("back", "1.3.1.4", "0.0.8"), RESHAPE.format("other", "1.3.1.4", "0.0.8"), False),
        (RESHAPE.format("back", "1.3.1.4", "0.0.8"), INPUT, False),
        (IRRUN.format("bad.xml:421", "v", "[1, 3, 1, 4]"), IRRUN.format("/tmp/a b/p.xml:8", "v", "[1, 3, 1, 4]"), True),
        (IRRUN.format("bad.xml:421", "v1", "[1, 3]"), IRRUN.format("/tmp/p.xml:8", "v2", "[1, 3]"), False),
        (
            IRRUN.format("bad.xml:421", "v", "[1, 3]"),
            'p.xml:4:3: error[IR601 bad-feed] input "v" has shape [1,3]',
            False,
        ),
        (
            IRRUN.format("a.xml:1", "v", "[1]") + "\n" + IRRUN.format("a.xml:9", "w", "[1]"),
            IRRUN.format("p.xml:4", "w", "[1]"),
            True,
        ),
        (RESHAPE.format("back", "1", "1"), IRRUN.format("p.xml:4", "back", "[1]"), False),
    ],
)
def test_the_cause_of_a_refusal(whole: str, part: str, expected: bool) -> None:
    assert is_alike(Wrong("refused", message=whole), Wrong("refused", message=part)) is expected
    assert not is_alike(Wrong("crashed", message=whole), Wrong("refused", message=part))
    assert not is_alike(Wrong("refused", message=whole), None)


def test_a_twin_that_runs_is_healthy_if_the_part_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine rounds so coarsely that all parts of the reference are outside their tolerances, but they run."""
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    irrun.save_model(shaped(), good)
    bad.write_text(good.read_text().replace('name="t1" type="Tanh"', 'name="t1" type="Sigmoid"'))
    bad.with_suffix(".bin").write_bytes(good.with_suffix(".bin").read_bytes())

    def judge(engine: Engine, question: Question) -> Wrong | None:
        layers = {layer.name: layer.type for layer in irrun.read_model(question.path).layers.values()}
        if layers.get("t1") == "Sigmoid":
            return Wrong("crashed", message="it was ended by SIGFPE")
        coarse = Path(question.path).stem in ("reference", "twin")
        return Wrong("differ", (0,), 100.0) if coarse else judging.judge(engine, question)

    monkeypatch.setattr(search, "judge", judge)
    monkeypatch.setattr(twins, "judge", judge)
    bisection = bisect(str(good), str(bad))
    assert (bisection.verdict, names(bisection)) == ("crashed", ["t1"])
    assert bisection.differences == ("the type is Sigmoid, in the reference Tanh",)
    assert not bisection.blames_file

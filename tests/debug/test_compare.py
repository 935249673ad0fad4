"""Comparisons: faults that were planted are found, in every kind of side, sample and body."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
import planted
from irrun import build as b
from irrun.debug import Comparison, Limit, Tolerances, by_name, compare, record
from irrun.debug.measurements import apply_tolerances, read_measurements, write_measurements
from irrun.debug.shelf import Shelf
from irrun.engines import Engine, Place, Refusal
from irrun.engines import open as open_engine
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"
RNG = np.random.default_rng(0)
Compare = Callable[..., Comparison]


@pytest.fixture
def run(two: tuple[Engine, Engine]) -> Compare:
    """Return ``compare`` for two IR files that irrun runs, in processes that are running already."""
    return functools.partial(compare, running=two)


def looping() -> irrun.Model:
    """Return a model with layers before, in and after a Loop, which takes 4 iterations."""
    x = b.parameter([4, 6], name="x")
    first = b.Tanh(b.MatMul(x, b.constant(RNG.normal(size=(6, 6)).astype(np.float32)), name="before"), name="tanh")

    def body(i: Any, row: Any, a: Any) -> tuple[Any, ...]:
        mixed = b.MatMul(a, b.constant(RNG.normal(size=(6, 6)).astype(np.float32)), name="mix")
        new = b.Sigmoid(b.Add(mixed, row, name="join"), name="squash")
        return True, new, b.concatenated(b.Multiply(new, 3.0, name="scaled"))

    start = b.constant(np.zeros((1, 6), np.float32))
    last, rows = b.Loop(4, True, b.sliced(first), start, body=body, name="loop")
    return b.model({"y": b.Subtract(rows, last, name="after"), "z": b.ReLU(last, name="relu")})


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loop") / "loop.xml"
    irrun.save_model(looping(), path)
    return path


def _faults(path: Path) -> list[planted.Fault]:
    return list(planted.faults(irrun.read_model(path)))


@pytest.mark.parametrize("fault", _faults(CONVNET), ids=lambda f: f"{f.kind}-{f.layer}")
def test_faults_in_a_convnet(fault: planted.Fault, run: Compare, tmp_path: Path) -> None:
    planted.plant(CONVNET, fault, tmp_path / "faulty.xml")
    _is_found(run(str(CONVNET), str(tmp_path / "faulty.xml")), fault)


def _is_found(comparison: Comparison, fault: planted.Fault) -> None:
    assert comparison.verdict == "differ"
    first = comparison.first
    assert first is not None
    assert first.layer.name == fault.layer
    assert first.layer.line is not None
    assert first.layer.file is not None
    line = Path(first.layer.file).read_text().splitlines()[first.layer.line - 1]
    assert f'name="{fault.layer.split("/")[-1] if fault.layer.startswith("loop") else fault.layer}"' in line
    assert all(not i.measurement.max_abs for i in first.inputs if i.measurement and i.kind == "layer")
    if fault.kind == "weight":
        assert [i.kind for i in first.inputs if i.measurement and i.measurement.max_abs] == ["constant"]
    else:
        assert first.differences


def test_faults_in_and_around_a_loop(loop: Path, run: Compare, tmp_path: Path) -> None:
    """Each fault of the body is named there, although the loop, and what comes after it, are wrong as well."""
    every = _faults(loop)
    assert {"loop/mix", "loop/join", "loop/squash", "loop/scaled", "before", "tanh", "after"} <= {
        f.layer for f in every
    }
    for number, fault in enumerate(every):
        path = tmp_path / f"faulty{number}.xml"
        planted.plant(loop, fault, path)
        comparison = run(str(loop), str(path))
        _is_found(comparison, fault)
        assert comparison.first is not None
        expected = 0 if "/" in fault.layer else None
        # a zero start makes the first product 0, whatever the weights are
        assert comparison.first.layer.iteration == (
            1 if fault == planted.Fault("weight", fault.path, "loop/mix") else expected
        )


def test_the_first_iteration_comes_before_the_second(loop: Path, run: Compare, tmp_path: Path) -> None:
    """A fault late in the body makes what comes early wrong in the next iteration; the late one is named."""
    (fault,) = (f for f in _faults(loop) if (f.layer, f.kind) == ("loop/squash", "type"))
    planted.plant(loop, fault, tmp_path / "faulty.xml")
    comparison = run(str(loop), str(tmp_path / "faulty.xml"))
    wrong = [layer.name for layer in comparison.layers if not layer.measurement.agrees]
    assert wrong.index("loop/mix") < wrong.index("loop/squash")
    assert [layer.name for layer in comparison.layers if not layer.agrees] == ["loop/squash"]
    assert comparison.first is not None
    assert comparison.first.layer.name == "loop/squash"


def _saved(model: irrun.Model, path: Path) -> str:
    irrun.save_model(model, path)
    return str(path)


def _pair(folder: Path, make: Callable[[bool], Any]) -> list[str]:
    return [_saved(b.model({"y": make(wrong)}), folder / f"{wrong}.xml") for wrong in (False, True)]


def test_a_fault_that_only_the_second_sample_shows(run: Compare, tmp_path: Path) -> None:
    paths = _pair(
        tmp_path,
        lambda wrong: b.ReLU(b.Clamp(b.parameter([3], name="x"), min=-5.0, max=4.0 if wrong else 9.0, name="clamp")),
    )
    low, high = np.array([1, 2, 3], np.float32), np.array([1, 2, 8], np.float32)
    assert run(*paths, {"x": low}).agrees
    for samples in ([low, high], [low, high, low]):
        comparison = run(*paths, [{"x": array} for array in samples])
        assert comparison.verdict == "differ"
        assert comparison.samples == len(samples)
        assert comparison.first is not None
        assert (comparison.first.layer.name, comparison.first.layer.sample) == ("clamp", 1)
        assert comparison.outputs[0].sample == 1
        assert comparison.outputs[0].measurement.max_abs == 4


def test_random_samples_differ(run: Compare, tmp_path: Path) -> None:
    """Of 50 random samples, some have a value above 0.9; the first alone has none."""
    paths = _pair(tmp_path, lambda wrong: b.Clamp(b.parameter([2], name="x"), min=-5.0, max=0.9 if wrong else 9.0))
    assert run(*paths, samples=1).agrees
    assert not run(*paths, samples=50).agrees
    assert run(*paths, {"x": np.zeros(2, np.float32)}, samples=5).agrees


def test_state_from_sample_to_sample(run: Compare, tmp_path: Path) -> None:
    """A variable with a wrong factor shows in the second run of a sequence, and in no first one."""

    def model(factor: float) -> irrun.Model:
        held = b.ReadValue(
            np.zeros(2, np.float32), variable_id="v", variable_type="f32", variable_shape=[2], name="held"
        )
        total = b.Add(held, b.parameter([2], name="x"), name="total")
        kept = b.Assign(b.Multiply(total, factor, name="decay"), variable_id="v")
        return b.model({"y": total}, sinks=[kept])

    paths = [_saved(model(factor), tmp_path / f"{factor}.xml") for factor in (0.5, 0.25)]
    ones = [{"x": np.ones(2, np.float32)}] * 3
    first = run(*paths, ones, layers=False)
    assert first.agrees
    sequence = run(*paths, ones, keep_state=True, layers=False)
    assert (sequence.verdict, sequence.outputs[0].agrees) == ("differ", False)
    observed = run(*paths, ones, keep_state=True)
    assert observed.first is not None
    assert observed.first.layer.name == "decay"


def test_equal_models_agree(run: Compare) -> None:
    comparison = run(str(CONVNET), str(CONVNET), samples=2)
    assert comparison.verdict == "agree"
    assert comparison.first is None
    assert len(comparison.layers) == 13
    assert [layer.name for layer in comparison.layers][:3] == ["block1/conv", "block1/add", "block1/relu"]


def test_json(run: Compare, tmp_path: Path) -> None:
    fault = next(f for f in _faults(CONVNET) if f.kind == "type")
    planted.plant(CONVNET, fault, tmp_path / "faulty.xml")
    fields = json.loads(json.dumps(record(run(str(CONVNET), str(tmp_path / "faulty.xml"))), allow_nan=False))
    assert list(fields) == [
        "verdict",
        "first",
        "outputs",
        "layers",
        "inputs",
        "properties",
        "processor",
        "unseen",
        "conduct",
        "content",
        "storage",
        "steps",
    ]
    assert fields["verdict"] == "differ"
    assert {"layer", "type", "port", "line"} <= fields["first"].keys()
    assert (fields["first"]["layer"], fields["first"]["file"]) == (fault.layer, str(tmp_path / "faulty.xml"))
    (output,) = fields["outputs"]
    assert output["name"] == "out"
    assert record(run(str(CONVNET), str(CONVNET)))["first"] is None


def test_the_error_of_the_inputs(run: Compare, tmp_path: Path) -> None:
    """A layer that turns a tolerated error into one that is not: its gain is the quotient of both errors."""
    x = b.parameter([1, 2], name="x")

    def model(shift: float) -> irrun.Model:
        near = b.Add(x, [[shift, shift]], name="near")
        return b.model({"y": b.Subtract(near, [[1.0, 1.0]], name="cancel")})

    paths = [_saved(model(shift), tmp_path / f"{shift}.xml") for shift in (1.0, 1.00002)]
    feeds = {"x": np.array([[1e-3, 2e-3]], np.float32)}
    comparison = run(*paths, feeds, tolerances=Tolerances(Limit(1e-4, 0)))
    first = comparison.first
    assert first is not None
    assert first.layer.name == "cancel"
    near, one = first.inputs
    assert (near.name, near.kind, one.kind) == ("near", "layer", "constant")
    assert near.measurement is not None
    assert one.measurement is not None
    assert one.measurement.agrees
    assert first.gain == pytest.approx(2e-5 / 1.58e-3 / (2e-5 / 1.0015), rel=0.05)


def test_tolerances_of_a_layer_and_an_output(run: Compare, tmp_path: Path) -> None:
    paths = _pair(
        tmp_path,
        lambda wrong: b.ReLU(b.Add(b.parameter([2], name="x"), 1.1 if wrong else 1.0, name="sum"), name="relu"),
    )
    feeds = {"x": np.ones(2, np.float32)}
    loose = Limit(rtol=0.5)
    assert not run(*paths, feeds).agrees
    assert run(*paths, feeds, tolerances=Tolerances(loose)).agrees
    comparison = run(*paths, feeds, tolerances=Tolerances(layers={"s*": loose}))
    assert comparison.first is not None
    assert comparison.first.layer.name == "relu"
    comparison = run(*paths, feeds, tolerances=Tolerances(layers={"*": loose}))
    assert (comparison.verdict, comparison.first) == ("differ", None)
    assert run(*paths, feeds, tolerances=Tolerances(layers={"*": loose}, outputs={"y": loose})).agrees


def test_a_comparator(run: Compare, tmp_path: Path) -> None:
    paths = _pair(tmp_path, lambda wrong: b.Add(b.parameter([2], name="x"), 1.1 if wrong else 1.0, name="sum"))
    names: list[str] = []

    def signs(reference: np.ndarray, candidate: np.ndarray, name: str) -> np.bool_:
        names.append(name)
        return (np.sign(reference) == np.sign(candidate)).all()

    assert run(*paths, comparator=signs).agrees
    assert names == ["sum", "y"]
    assert run(*paths, comparator=lambda *_: True).agrees
    assert run(*paths, comparator=lambda *_: "").agrees
    for answer in (False, np.False_):
        comparison = run(*paths, comparator=lambda *_, answer=answer: answer)
        assert comparison.first is not None
        assert comparison.first.layer.measurement.problem == "the comparator returned False"
    comparison = run(*paths, comparator=lambda *_: "the sums differ")
    assert comparison.first is not None
    assert comparison.first.layer.measurement.problem == "the sums differ"
    for wrong in (lambda *_: 1 / 0, lambda *_: None):
        with pytest.raises(irrun.EngineError) as caught:
            run(*paths, comparator=wrong)
        assert caught.value.diagnostics[0].code == "IR705"


def test_shapes_and_types_that_differ(run: Compare, tmp_path: Path) -> None:
    x = b.parameter([2, 3], name="x")
    models = [
        b.model({"y": b.ReduceSum(x, [0], keep_dims=False, name="sum")}),
        b.model({"y": b.ReduceSum(x, [1], keep_dims=False, name="sum")}),
        b.model({"y": b.Convert(b.ReduceSum(x, [0], keep_dims=False, name="sum"), destination_type="f16")}),
    ]
    paths = [_saved(model, tmp_path / f"{number}.xml") for number, model in enumerate(models)]
    comparison = run(paths[0], paths[1])
    assert comparison.first is not None
    assert comparison.first.layer.measurement.problem == "the shape is [2], that of the reference [3]"
    comparison = run(paths[0], paths[2])
    assert comparison.agrees
    assert (comparison.outputs[0].element_type, comparison.outputs[0].rtol) == ("f16", 1e-2)


def test_loops_of_different_lengths(run: Compare, tmp_path: Path) -> None:
    def make(wrong: bool) -> Any:
        x = b.parameter([2], name="x")
        return b.Loop(
            3 if wrong else 4, True, x, body=lambda i, a: (True, b.Multiply(a, 1.0, name="same")), name="loop"
        )

    right, wrong = _pair(tmp_path, make)
    for paths, role in (((right, wrong), "candidate"), ((wrong, right), "reference")):
        comparison = run(*paths)
        assert comparison.first is not None
        assert (comparison.first.layer.name, comparison.first.layer.type) == ("loop", "Loop")
        counts = "3 times, in the reference 4 times" if role == "candidate" else "4 times, in the reference 3 times"
        assert comparison.first.layer.measurement.problem == f"its body runs {counts}"


def test_a_side_that_refuses(run: Compare, tmp_path: Path) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text(CONVNET.read_text().replace('type="ReLU"', 'type="Mystery"'))
    (tmp_path / "bad.bin").write_bytes(CONVNET.with_suffix(".bin").read_bytes())
    for paths, role in (((str(CONVNET), str(bad)), "candidate"), ((str(bad), str(CONVNET)), "reference")):
        comparison = run(*paths)
        assert comparison.verdict == "refused"
        assert comparison.failure is not None
        assert (comparison.failure.side, comparison.failure.sample) == (role, None)
        assert isinstance(comparison.failure.outcome, Refusal)
        assert "Mystery" in comparison.failure.outcome.message
        assert record(comparison)["failure"]["side"] == role


def test_a_run_that_fails_keeps_what_was_compared(run: Compare, tmp_path: Path) -> None:
    """The candidate fails in its last layer: the layers before it were compared."""

    def make(wrong: bool) -> Any:
        x, size = b.parameter([3], name="x"), b.parameter([1], "i64", name="size")
        target = b.Add(size, b.constant([5 if wrong else 0], "i64"), name="target")
        return b.Reshape(b.ReLU(x, name="relu"), target, special_zero=False, name="last")

    paths = _pair(tmp_path, make)
    comparison = run(*paths, {"size": np.array([3])})
    assert comparison.verdict == "refused"
    assert comparison.failure is not None
    assert (comparison.failure.side, comparison.failure.sample) == ("candidate", 0)
    assert [(layer.name, layer.agrees) for layer in comparison.layers] == [("relu", True), ("target", False)]
    assert comparison.first is not None
    assert comparison.first.layer.name == "target"


def test_nothing_in_common(run: Compare, tmp_path: Path) -> None:
    x = b.parameter([2], name="x")
    other = b.model({"p": b.ReLU(x, name="q"), "r": b.Tanh(x, name="s")})
    with pytest.raises(irrun.EngineError) as caught:
        run(str(CONVNET), _saved(other, tmp_path / "other.xml"))
    assert caught.value.diagnostics[0].code == "IR704"


def test_names_that_a_pairing_gives(run: Compare, tmp_path: Path) -> None:
    x = b.parameter([2], name="x")
    paths = [
        _saved(b.model({"y": b.Tanh(b.ReLU(x, name=name), name=f"{name}/tanh")}), tmp_path / f"{name}.xml")
        for name in ("first", "other")
    ]
    pairs = [(layer.name, layer.candidate) for layer in run(*paths).layers]
    assert pairs == [("first", "other"), ("first/tanh", "other/tanh")]  # by structure
    (layer,) = run(*paths, pairing=by_name).layers  # the tensors of the last layers have the same name
    assert (layer.name, layer.candidate) == ("first/tanh", "other/tanh")
    comparison = run(*paths, pairing=lambda *_: {Place("first"): Place("other")})
    (layer,) = comparison.layers
    assert (layer.name, layer.candidate, layer.agrees) == ("first", "other", True)


def test_a_dump_and_an_archive(run: Compare, tmp_path: Path) -> None:
    array = np.load(SAMPLES / "image.npy")
    with irrun.Dump(tmp_path / "dump") as dump:
        outputs = irrun.compile(CONVNET)(array, hooks=[dump])
    np.savez(tmp_path / "out.npz", out=outputs["out"])
    fault = next(f for f in _faults(CONVNET) if f.layer == "block2/relu")
    planted.plant(CONVNET, fault, tmp_path / "faulty.xml")
    feeds = {"image": array}
    with open_engine("irrun") as engine:
        for side, layers in (("dump", 13), ("out.npz", 0)):
            with open_engine(str(tmp_path / side)) as recording:
                for model, agrees in ((CONVNET, True), (tmp_path / "faulty.xml", False)):
                    comparison = compare(str(tmp_path / side), str(model), feeds, running=(recording, engine))
                    assert (comparison.agrees, len(comparison.layers)) == (agrees, layers)
                    if layers and not agrees:
                        assert comparison.first is not None
                        assert comparison.first.layer.name == "block2/relu"


def test_saved_measurements(run: Compare, loop: Path, tmp_path: Path) -> None:
    """Whatever tolerances are applied to saved measurements, the answer is that of a run with them."""
    fault = next(f for f in _faults(loop) if (f.kind, f.layer) == ("weight", "loop/mix"))
    planted.plant(loop, fault, tmp_path / "faulty.xml")
    paths = str(loop), str(tmp_path / "faulty.xml")
    made = run(*paths, samples=2, frontier=True)
    write_measurements(made, tmp_path / "saved.json")
    saved = read_measurements(tmp_path / "saved.json")
    assert saved == made
    for rtol in (1e-6, 1e-3, 1e-2, 0.1, 0.5, 2, 100):
        limits = Tolerances(Limit(rtol, 0))
        again, applied = run(*paths, samples=2, tolerances=limits), apply_tolerances(saved, limits)
        for a, s in zip((*again.outputs, *again.layers), (*applied.outputs, *applied.layers), strict=True):
            if not 0.99 < a.measurement.excess < 1.01:
                assert (a.name, a.agrees) == (s.name, s.agrees)
        assert again.verdict == applied.verdict


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 9}', '{"version": 1}', "{" * 100_000])
def test_files_that_are_no_measurements(text: str, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text(text)
    with pytest.raises(irrun.EngineError) as caught:
        read_measurements(tmp_path / "saved.json")
    assert caught.value.diagnostics[0].code == "IR706"


@pytest.mark.parametrize("most", [0, 3000, 20_000])
def test_little_room_on_disk(
    most: int, loop: Path, run: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples and inner values that have no room are compared in further rounds, with the same result."""
    (fault,) = (f for f in _faults(loop) if (f.layer, f.kind) == ("loop/squash", "type"))
    planted.plant(loop, fault, tmp_path / "faulty.xml")
    paths = str(loop), str(tmp_path / "faulty.xml")
    expected = run(*paths, samples=3)
    monkeypatch.setattr("irrun.debug.rounds._MAX_WAITING_BYTES", most)
    seen: list[int] = []
    monkeypatch.setattr(
        Shelf, "keep", lambda self, value, keep=Shelf.keep: (seen.append(self.size), keep(self, value))[1]
    )
    found = run(*paths, samples=3)
    assert record(found) == record(expected)
    assert len(found.layers) > 6
    assert max(seen) < most + 5000


def test_random_numbers_without_a_seed_are_told(run: Compare, tmp_path: Path) -> None:
    """Two runs of one model differ: its layer says so, and is no error."""
    x = b.parameter([4], name="x")
    noise = b.RandomUniform(np.array([4]), np.float32(0), np.float32(1), output_type="f32", name="noise")
    irrun.save_model(b.model({"y": b.Add(x, noise, name="sum")}), tmp_path / "a.xml")
    comparison = run(str(tmp_path / "a.xml"), str(tmp_path / "a.xml"))
    assert comparison.first is not None
    assert comparison.first.layer.name == "noise"
    assert "it has no seed" in comparison.first.differences[0]

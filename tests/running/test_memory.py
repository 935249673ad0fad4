"""What a run takes, predicted from its plan."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from benchmarks.measure import Job, Task, alone
from irrun import build as b
from irrun.cli import cli
from irrun.model import Model
from irrun.running.memory import predicted
from irrun.types import PartialShape
from nets import Net

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("numpy_alone")]

RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def images() -> Model:
    """Convolutions, a residual that lives long, and pooling."""
    x = b.parameter([4, 3, 128, 128], "f32", name="x")
    same = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    first = y = b.ReLU(b.Convolution(x, b.constant(random(32, 3, 1, 1)), **same))
    for _ in range(3):
        y = b.ReLU(b.Convolution(y, b.constant(random(32, 32, 1, 1)), **same))
    y = b.Concat(b.Add(first, y), first, axis=1)
    return b.model({"y": b.ReduceMean(y, [2, 3])})


def matrices() -> Model:
    """Matrix products, and views between them."""
    x = b.parameter([512, 1024], "f32", name="x")
    y = x
    for _ in range(3):
        y = b.MatMul(y, b.constant(random(1024, 1024)))
        y = b.Transpose(b.Reshape(y, [512, 16, 64], special_zero=False), [1, 0, 2])
        y = b.Reshape(y, [512, 1024], special_zero=False)
    return b.model({"y": b.SoftMax(y, axis=1)})


@pytest.mark.parametrize("made", [images, matrices])
def test_the_peak_is_within_a_fifth(made: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irrun.base.memory._in_large_pages", lambda size: None)  # tracemalloc does not see these
    model = made()  # type: ignore[operator]
    (parameter,) = model.parameters
    fed = random(*parameter.outputs[0].shape.static)
    found = predicted(model, 1 << 40)
    assert found is not None
    irrun.compile(made(), exact=False)([fed])  # type: ignore[operator]  # what is imported late takes memory, too
    tracemalloc.start()
    executable = irrun.compile(model, exact=False)
    executable([fed])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.prepared + found.values == pytest.approx(peak + fed.nbytes, rel=0.2)


def texts() -> Model:
    """A large table of which a few rows are read, and matrices that are turned."""
    x = b.parameter([16], "i32", name="x")
    y = b.Gather(b.constant(random(20_000, 512)), x, b.constant(np.array(0)))
    for size in (512, 2048, 2048, 2048):
        y = b.Tanh(b.MatMul(y, b.constant(random(2048, size)), transpose_b=True))
    return b.model({"y": y})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_a_process_takes_what_was_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IRRUN_EXACT", raising=False)  # which the process would take over
    path = tmp_path / "m.xml"
    irrun.save_model(texts(), path)
    feeds: dict[str, Any] = {"0.0": np.arange(16, dtype=np.int32)}
    np.savez(path.with_suffix(".npz"), **feeds)
    found = predicted(irrun.read_model(path), 1 << 40)
    assert found is not None
    task = Task(Job(str(path)), "irrun", 1, exact=False)
    alone(task)  # what is imported late takes memory, too
    measured = alone(task).memory
    assert found.total == pytest.approx(measured, rel=0.2)


def test_what_is_read_of_the_weights(tmp_path: Path) -> None:
    irrun.save_model(texts(), tmp_path / "m.xml")
    found = predicted(irrun.read_model(tmp_path / "m.xml"), 1 << 40)
    assert found is not None
    assert found.prepared == pytest.approx(4 * 2048 * (512 + 3 * 2048), rel=0.05)
    assert found.weights < 4 * 20_000 * 512


@pytest.mark.parametrize("shape", ["", "0", "4"])
def test_a_constant_whose_size_is_too_large(shape: str, tmp_path: Path) -> None:
    """Such a size is a warning (IR508). The bytes after the constant do not count."""
    net = Net()
    count = int(shape or 1)
    constant = net.const("f32", shape, bytes(4 * count + 3))
    net.result(net.add("Multiply", [net.parameter("f32", "1"), constant], [("FP32", shape or "1")]))
    memory = predicted(irrun.read_model(net.save(tmp_path)), 1 << 40)
    assert memory is not None
    assert memory.weights == 4 * count


def test_open_dims_cannot_be_told() -> None:
    x = b.parameter([-1], "f32", name="x")
    assert predicted(b.model({"y": b.Tanh(x)}), 1 << 30) is None


def test_matrices_that_stay_as_the_file_has_them_count_as_such() -> None:
    """Planning reads the 16-bit matrices, and holds them as f32. What it reads is no more than the file."""
    x = y = b.parameter([1, 512], "f32", name="x")
    for _ in range(4):
        matrix = b.Convert(b.constant(random(512, 512).astype(np.float16)), destination_type="f32")
        y = b.MatMul(y, matrix, transpose_b=True)
    found = predicted(b.model(y, inputs=[x]), 1 << 40)
    assert found is not None
    assert found.weights == 4 * 512 * 512 * 2
    assert found.prepared == pytest.approx(4 * 512 * 512 * 4, rel=0.2)
    # those that may not be unpacked are read in place
    found = predicted(b.model(y, inputs=[x]), 512 * 512 * 4)
    assert found is not None
    assert found.weights == 4 * 512 * 512 * 2
    assert found.prepared < 512 * 512 * 4


def growing() -> Model:
    """A variable [1,n,1000] that grows by one row in each run."""
    x = b.parameter([1, 1, 1000], "f32", name="x")
    past = b.ReadValue(
        np.zeros((1, 0, 1000), np.float32), variable_id="past.0", variable_type="f32", variable_shape=[1, None, 1000],
        opset=6,
    )  # fmt: skip
    whole = b.Concat([past, x], axis=1)
    return b.model(b.ReduceSum(whole, [1]), sinks=[b.Assign(whole, variable_id="past.0")])


def test_variables() -> None:
    row = 4000
    first = predicted(growing(), 1 << 40)
    assert first is not None
    assert 3 * row <= first.values <= 5 * row  # the input, the new value with room for more, and the sum
    later = predicted(growing(), 1 << 40, {"past.0": PartialShape.of([1, 999, 1000])})
    assert later is not None
    assert later.values == pytest.approx((999 + 1000 * 1.5) * row, rel=0.01)  # the old value and the new one


def test_command_with_variables(tmp_path: Path) -> None:
    irrun.save_model(growing(), tmp_path / "m.xml")
    values: list[int] = []
    for option in ([], ["--shape", "past.*=[1,99,1000]"], ["--shape", "past.0=[1,99,1000]"]):
        done = CliRunner().invoke(
            cli, ["show", str(tmp_path / "m.xml"), "--memory", "--format", "json", *option]
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        values.append(json.loads(done.output)["memory"]["values"])
    assert values[0] < 30_000
    assert values[1] == values[2] >= 1.5 * 100 * 4000
    done = CliRunner().invoke(cli, ["show", str(tmp_path / "m.xml"), "--memory", "--shape", "other=[1]"])
    assert done.exit_code == 2
    done = CliRunner().invoke(cli, ["show", str(tmp_path / "m.xml"), "--memory", "--shape", "past.*=x"])
    assert done.exit_code == 2


def test_command(tmp_path: Path) -> None:
    x = b.parameter([-1, 1000], "f32", name="x")
    path = tmp_path / "m.xml"
    irrun.save_model(b.model({"y": b.MatMul(x, b.constant(random(1000, 10)))}), path)
    done = CliRunner().invoke(cli, ["show", str(path), "--memory", "--format", "json"])
    assert done.exit_code == 2
    assert "--shape" in done.output
    done = CliRunner().invoke(cli, ["show", str(path), "--memory", "--shape", "x=[50,1000]", "--format", "json"])
    assert done.exit_code == 0
    memory = json.loads(done.output)["memory"]
    assert memory["weights"] == 40_000
    assert memory["values"] == 4 * (50 * 1000 + 50 * 10)
    assert memory["total"] == memory["weights"] + memory["prepared"] + memory["values"]
    done = CliRunner().invoke(cli, ["show", str(path), "--memory", "--shape", "x=[50,1000]"])
    assert "memory of a run" in done.output
    path.with_suffix(".bin").unlink()
    done = CliRunner().invoke(cli, ["show", str(path), "--memory"])
    assert "IR501" in done.output

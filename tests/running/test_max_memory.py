"""``max_memory`` bounds the bytes that a run holds at once."""

from __future__ import annotations

import os
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli
from irrun.running import executor  # noqa: F401  # importing it allocates memory
from nets import Net

MIB = 1 << 20
SQUARE = np.ones((1024, 1024), np.float32)
"""An array of 4 MiB."""


pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("numpy_alone")]


@contextmanager
def allocating_at_most(size: int) -> Iterator[None]:
    """Fail if more than ``size`` bytes are allocated at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


def refused(layer: str, says: str, call: Callable[[], object]) -> None:
    with pytest.raises(irrun.ExecutionError, match=says) as caught:
        call()
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.layer) == ("IR604", layer)
    assert "--max-memory" in (finding.help or "")


def _joined(rows: int | None) -> irrun.Model:
    """Return Concat(sin x, cos x): with 1024 rows, 4 + 4 + 8 MiB are live at the Concat, 12 MiB at most in one."""
    x = b.parameter([rows, 1024], name="x")
    return b.model(b.Concat(b.Sin(x), b.Cos(x), axis=0, name="joined"))


@pytest.mark.parametrize("exact", [False, True])
def test_known_shapes_are_refused_before_anything_is_allocated(exact: bool) -> None:
    model = _joined(1024)
    says = r"takes 16\.0 MiB here, more than the 15\.0 MiB allowed: 16\.0 MiB of live tensors"
    with allocating_at_most(4 * MIB):
        refused("joined", says, lambda: irrun.compile(model, max_memory=15 * MIB, exact=exact))
    outputs = irrun.compile(model, max_memory=16 * MIB, exact=exact)(SQUARE)
    assert outputs[0].shape == (2048, 1024)


@pytest.mark.parametrize("exact", [False, True])
def test_open_dims_are_counted_as_they_come(exact: bool) -> None:
    executable = irrun.compile(_joined(None), max_memory=15 * MIB, exact=exact)
    for _ in range(5):  # a narrow plan for these dims is made after three runs
        with allocating_at_most(15 * MIB):
            refused("joined", "16.0 MiB here, more than the 15.0 MiB", lambda: executable(SQUARE))
        assert executable(SQUARE[:512])[0].shape == (1024, 1024)
    assert irrun.compile(_joined(None), max_memory=16 * MIB, exact=exact)(SQUARE)[0].shape == (2048, 1024)


def test_memory_that_is_free_again_does_not_count() -> None:
    for rows in (1024, None):
        y = b.parameter([rows, 1024], name="x")
        for _ in range(20):
            y = b.Transpose(b.SoftMax(y, axis=1), [1, 0])
        executable = irrun.compile(b.model(y), max_memory=13 * MIB)
        for _ in range(3):
            assert executable(SQUARE)[0].shape == (1024, 1024)


def test_memory_that_other_shapes_left_is_released() -> None:
    x = b.parameter([None, 1024], name="x")
    executable = irrun.compile(b.model(b.SoftMax(b.MatMul(x, SQUARE), axis=1)), max_memory=20 * MIB)
    for rows in (1024, 900, 800, 1024, 1000, 1024, 1024, 1024):
        with allocating_at_most(20 * MIB):
            assert executable(SQUARE[:rows])[0].shape == (rows, 1024)


def test_results_that_are_copied_count() -> None:
    for rows in (1024, None):
        x = b.parameter([rows, 1024], name="x")
        model = b.model({"turned": b.Transpose(x, [1, 0]), "same": x})
        with pytest.raises(irrun.ExecutionError, match=r"IR604.*8\.0 MiB here"):
            irrun.compile(model, max_memory=7 * MIB)(SQUARE)
        assert irrun.compile(model, max_memory=8 * MIB)(SQUARE)[0].shape == (1024, 1024)


def test_inputs_count_if_they_are_converted() -> None:
    model = b.model(b.ReduceMax(b.parameter([None, 1024], name="x"), [0, 1], name="most"))
    executable = irrun.compile(model, max_memory=4 * MIB)
    assert executable(SQUARE)[0] == 1
    assert executable({"x": SQUARE})[0] == 1
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*4\.0 MiB of constants, variables and converted inputs"):
        executable(SQUARE.astype(">f4"))


def _multiplied(weights: np.ndarray, element_type: str) -> irrun.Model:
    x = b.parameter([1, 1024], name="x")
    constant = b.constant(weights, element_type)
    return b.model(b.MatMul(x, b.Convert(constant, destination_type="f32"), name="product"))


@pytest.mark.parametrize("element_type", ["u4", "f16", "nf4", "i8"])
def test_unpacked_and_folded_weights_count(element_type: str, tmp_path: Path) -> None:
    """A million weights take 4 MiB in f32."""
    path = tmp_path / "net.xml"
    irrun.save_model(_multiplied(SQUARE, element_type), path)
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*of constants"), allocating_at_most(8 * MIB):
        irrun.compile(path, max_memory=4 * MIB, max_weights_memory=16 * MIB)
    assert irrun.compile(path, max_memory=16 * MIB)(SQUARE[:1])[0][0, 0] == 1024


@pytest.mark.parametrize("element_type", ["u4", "f16", "i8"])
def test_weights_that_do_not_fit_are_unpacked_in_parts(element_type: str, tmp_path: Path) -> None:
    """By default, unpacked weights take at most half of the memory."""
    path = tmp_path / "net.xml"
    irrun.save_model(_multiplied(SQUARE, element_type), path)
    if os.environ.get("IRRUN_EXACT", "") not in ("", "0"):
        pytest.skip("exact runs unpack all weights")
    with allocating_at_most(4 * MIB):
        assert irrun.compile(path, max_memory=4 * MIB)(SQUARE[:1])[0][0, 0] == 1024


@pytest.mark.parametrize("transpose", [False, True])
def test_packed_weights_count(transpose: bool) -> None:
    """A matrix that is read as it is in the .bin takes nothing, a transposed one 4 MiB."""
    x = b.parameter([1, 1024], name="x")
    model = b.model(b.MatMul(x, SQUARE, transpose_b=transpose, name="product"))
    if transpose:
        says = "4.0 MiB of constants"
        refused("product", says, lambda: irrun.compile(model, max_memory=4 * MIB, exact=False))
    else:
        assert irrun.compile(model, max_memory=4 * MIB, exact=False)(SQUARE[:1])[0][0, 0] == 1024


def test_winograd_filters_count() -> None:
    """256 × 256 filters of 3×3 take 2.25 MiB, transformed 9 MiB (F(4×4): 36 numbers for 9) or 4 MiB (F(2×2): 16)."""
    x = b.parameter([1, 256, 16, 16], name="x")
    filters = np.ones((256, 256, 3, 3), np.float32)
    pads = {"pads_begin": [1, 1], "pads_end": [1, 1]}
    model = b.model(b.Convolution(x, filters, strides=[1, 1], dilations=[1, 1], **pads, name="convolution"))
    refused("convolution", "of constants", lambda: irrun.compile(model, max_memory=3 * MIB, exact=False))
    assert irrun.compile(model, max_memory=16 * MIB, exact=False)(np.zeros((1, 256, 16, 16), np.float32))[0].max() == 0


BODIES: dict[str, tuple[Callable[[b.Node, b.Node], b.Node], int]] = {
    "a branch": (lambda x, c: b.If(c, x, then=lambda a: b.Sin(a), otherwise=lambda a: b.Cos(a)), 4),
    "a branch of three": (lambda x, c: b.If(c, x, then=_product, otherwise=lambda a: b.Cos(a)), 12),
    "the other branch of three": (lambda x, c: b.If(c, x, then=lambda a: b.Cos(a), otherwise=_product), 12),
    "an iteration and the one before": (lambda x, c: b.Loop(3, True, x, body=lambda i, a: (True, b.Sin(a))), 9),
    "three values and the iteration before": (
        lambda x, c: b.Loop(3, True, x, body=lambda i, a: (True, _product(a))),
        17,
    ),
    "rows of one KiB, and all of them": (
        lambda x, c: b.TensorIterator(b.sliced(x), body=lambda a: b.concatenated(b.Sin(a))),
        9,
    ),
}
"""Bodies on an array of 4 MiB, each with the MiB that it takes. A Loop also takes a few bytes for the counter."""


def _product(x: b.Node) -> b.Node:
    return b.Multiply(b.Sin(x), b.Cos(x))


@pytest.mark.parametrize("name", BODIES)
def test_bodies_take_what_their_layers_take(name: str) -> None:
    make, mebibytes = BODIES[name]
    model = b.model(make(b.parameter([1024, 1024], name="x"), b.parameter([], "boolean", name="c")))
    with pytest.raises(irrun.ExecutionError, match="IR604"):
        irrun.compile(model, max_memory=(mebibytes - 1) * MIB, exact=True)
    executable = irrun.compile(model, max_memory=mebibytes * MIB, exact=True)
    feeds = {"x": SQUARE, "c": np.array(name != "the other branch of three")}
    with allocating_at_most(mebibytes * MIB + MIB // 4):
        executable({key: array for key, array in feeds.items() if key == "x" or "branch" in name})


@pytest.mark.parametrize("count", [64, None])
def test_pieces_that_a_loop_collects(count: int | None) -> None:
    """64 pieces of 64 KiB are 4 MiB, and as many again when they are concatenated."""
    x = b.parameter([16, 1024], name="x")
    trips = b.parameter([], "i64", name="trips") if count is None else np.int64(count)
    node = b.Loop(trips, True, x, body=lambda i, a: (True, a, b.concatenated(b.Sin(a), 0)), name="loop")
    model = b.model(node)
    feeds = {"x": SQUARE[:16]} | ({"trips": np.int64(64)} if count is None else {})

    def run(most: int) -> irrun.Outputs:
        return irrun.compile(model, max_memory=most)(feeds)

    with pytest.raises(irrun.ExecutionError, match=r'IR604.*"loop"|IR604.*Result'), allocating_at_most(7 * MIB):
        run(6 * MIB)
    assert run(10 * MIB)[1].shape == (1024, 1024)


def _cache() -> Net:
    """Return a model that appends its input to a variable."""
    net = Net()
    x = net.parameter("f32", "256,1024", name="x")
    start = net.const("f32", "0,1024", b"")
    net.bin += b"\0"
    variable: dict[str, Any] = {"variable_id": "v", "variable_type": "f32", "variable_shape": "?,1024"}
    held = net.add("ReadValue", [start], [("FP32", "-1,1024")], opset="opset6", **variable)
    longer = net.add("Concat", [held, x], [("FP32", "-1,1024")], name="longer", axis="0")
    net.add("Assign", [longer], [("FP32", "-1,1024")], opset="opset6", variable_id="v")
    net.result(longer)
    return net


def test_variables_count(tmp_path: Path) -> None:
    """The state grows by 1 MiB in each run. A run holds it, the longer one, and what it returns."""
    executable = irrun.compile(_cache().save(tmp_path), max_memory=10 * MIB)
    runs = (executable(SQUARE[:256]) for _ in range(20))
    with allocating_at_most(12 * MIB), pytest.raises(irrun.ExecutionError, match=r"IR604.*variables"):
        deque(runs, maxlen=0)
    assert 3 * MIB <= executable.state["v"].nbytes <= 9 * MIB
    executable.reset_state()
    assert executable(SQUARE[:256])[0].shape == (256, 1024)


def test_a_copy_of_the_bin_counts(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    irrun.save_model(b.model(b.MatMul(b.parameter([1, 1024], name="x"), SQUARE, name="product")), path)
    assert irrun.compile(path, max_memory=4 * MIB)(SQUARE[:1])[0][0, 0] == 1024
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*4\.0 MiB of constants"):
        irrun.compile(path, max_memory=4 * MIB, copy_weights=True)


def test_run_and_the_command_take_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    irrun.save_model(_joined(1024), path)
    refused("joined", "15.0 MiB allowed", lambda: irrun.run(path, SQUARE, max_memory=15 * MIB))
    result = CliRunner().invoke(cli, ["run", str(path), "--max-memory", "15M"])
    assert (result.exit_code, "IR604" in result.output) == (1, True)
    assert CliRunner().invoke(cli, ["run", str(path), "--max-memory", "25M"]).exit_code == 0


@pytest.mark.parametrize(("element_type", "stored"), [("u1", 1), ("boolean", 8)])
def test_a_check_unpacks_no_large_constants(element_type: str, stored: int, tmp_path: Path) -> None:
    """A thousand constants that share 128 KiB of the .bin would take a gigabyte unpacked from u1."""
    net = Net()
    count = 8 * MIB // 8 // stored
    net.bin += bytes(count * stored // 8)
    for _ in range(1000):
        net.result(net.const(element_type, str(count), b"", offset=0))
    path = net.save(tmp_path)
    text = path.read_text().replace('size="0"', f'size="{count * stored // 8}"')
    path.write_text(text)
    with allocating_at_most(64 * MIB):
        report = irrun.check(path)
    assert not [d for d in report if d.severity == "error"], report
    with pytest.raises(irrun.ExecutionError, match="IR604"), allocating_at_most(256 * MIB):
        irrun.compile(path, max_memory=100 * MIB)


def test_many_small_arrays() -> None:
    """Of 10,000 iterations that return 4 KiB each, two are live at once."""
    trips, x = b.parameter([], "i64", name="trips"), b.parameter([None], name="x")
    executable = irrun.compile(
        b.model(b.Loop(trips, True, x, body=lambda i, a: (True, b.Sin(a)), name="loop")), max_memory=64 << 10
    )
    assert executable([np.int64(10_000), SQUARE[0]])[0].shape == (1024,)
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*64\.0 KiB allowed"):
        executable([np.int64(10_000), SQUARE[:16].ravel()])


def test_a_view_keeps_what_it_is_a_view_of() -> None:
    """The first output of each Split is a quarter of its input, and keeps the memory of all four."""
    y = b.Sin(b.parameter([None, 1024], name="x"))
    kept = [b.Split(b.Sin(y), 0, num_splits=4)[0] for _ in range(3)]
    model = b.model(b.Concat(*kept, axis=0))
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*16\.0 MiB here, more than the 15\.0 MiB"):
        irrun.compile(model, max_memory=15 * MIB, exact=True)(SQUARE)
    assert irrun.compile(model, max_memory=16 * MIB, exact=True)(SQUARE)[0].shape == (768, 1024)

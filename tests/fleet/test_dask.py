"""Models on a Dask cluster: of threads of this process, and of two processes on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun.dask
from fleets import batch, check, contents, dask, run, write_inputs, write_network
from irrun import build as b
from irrun.fleet.workers import Lost

WEIGHTS = np.array([[1, -1], [0, 2], [3, 0]], np.float32)
ROWS = np.arange(21, dtype=np.float32).reshape(7, 3)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """``product`` is the rows times ``WEIGHTS``, ``whole`` the sums of the rows as integers."""
    x = b.parameter(["?", 3], "f32", name="x")
    whole = b.Convert(b.ReduceSum(x, [1], keep_dims=True), destination_type="i64")
    irrun.save_model(b.model({"product": b.MatMul(x, b.constant(WEIGHTS)), "whole": whole}), tmp_path / "net.xml")
    return tmp_path / "net.xml"


@pytest.mark.parametrize("scatter", [False, True])
def test_many_inputs_give_their_outputs_in_order(scatter: bool, client: Any, model: Path) -> None:
    """They are taken as results are read: three for each thread."""
    taken: list[int] = []

    def feeds() -> Iterator[dict[str, np.ndarray]]:
        for number in range(40):
            taken.append(number)
            yield {"x": ROWS[:2] + number}

    results = irrun.dask.run_many(client, model, feeds(), scatter=scatter)
    found = [next(results)]
    assert len(taken) < 20
    found += results
    assert len(found) == len(taken) == 40
    for number, outputs in enumerate(found):
        assert list(outputs) == ["product", "whole"]
        np.testing.assert_array_equal(outputs["product"], (ROWS[:2] + number) @ WEIGHTS)
        np.testing.assert_array_equal(outputs["whole"], [[3 + 3 * number], [12 + 3 * number]])


def test_weights_of_another_name(client: Any, model: Path) -> None:
    """Both where workers read the files, and where these travel; a file that changes is read again."""
    other = model.with_name("other.bin")
    for factor in (1, 2):
        data = np.frombuffer(model.with_suffix(".bin").read_bytes(), np.uint8).copy()
        at = data.tobytes().index(WEIGHTS.tobytes())
        data[at : at + WEIGHTS.nbytes] = np.frombuffer((WEIGHTS * factor).tobytes(), np.uint8)
        other.write_bytes(data.tobytes())
        for scatter in (False, True):
            (found,) = irrun.dask.run_many(client, model, [ROWS], weights=other, scatter=scatter)
            np.testing.assert_array_equal(found["product"], ROWS @ WEIGHTS * factor)


def test_errors_reach_the_program(client: Any, model: Path) -> None:
    with pytest.raises(irrun.FeedError, match=r"has shape \[2,2\]"):
        list(irrun.dask.run_many(client, model, [ROWS, np.zeros((2, 2), np.float32)]))
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*memory.*1\.0 KiB allowed"):
        list(irrun.dask.run_many(client, model, [np.zeros((999, 3), np.float32)], max_memory=1024))
    with pytest.raises(irrun.ReadError, match=r"none\.xml"):
        list(irrun.dask.run_many(client, model.with_name("none.xml"), [ROWS]))
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*ended twice.*run it alone"):
        irrun.dask._outputs(model, Lost())


@pytest.mark.parametrize("scatter", [False, True])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("output", "dtype"), [(0, np.float32), ("product", np.float32), (1, np.int64), ("whole", np.int64)]
)
def test_blocks(output: int | str, dtype: Any, batch: int, scatter: bool, model: Path) -> None:
    """Chunks of rows of any number stay; chunks of columns are joined."""
    pytest.importorskip("dask")
    import dask.array

    wanted = ROWS @ WEIGHTS if dtype is np.float32 else ROWS.sum(axis=1, keepdims=True).astype(np.int64)
    chunks: Any = (3, 1, 3), (2, 1)
    array = dask.array.from_array(ROWS, chunks=chunks)
    mapped = irrun.dask.map_blocks(model, array, output=output, batch=batch, scatter=scatter)
    assert (mapped.shape, mapped.dtype, mapped.chunks[0]) == (wanted.shape, dtype, (3, 1, 3))
    np.testing.assert_array_equal(mapped.compute(scheduler="synchronous"), wanted)
    empty = irrun.dask.map_blocks(model, array[:0], output=output, batch=batch, scatter=scatter)
    assert empty.compute(scheduler="synchronous").shape == (0, wanted.shape[1])


def _with_two_inputs(x: b.Node) -> b.Node:
    return b.Add(x, b.parameter(["?", 3], "f32", name="other"))


@pytest.mark.parametrize(
    ("make", "output", "said"),
    [
        (b.ReLU, 1, r"IR601.*has no output 1; its outputs are y"),
        (b.ReLU, -1, r"IR601.*has no output -1"),
        (b.ReLU, "z", r"IR601.*has no output 'z'"),
        (_with_two_inputs, 0, r"IR601.*needs a model with one input, this one has 2; use run_many"),
        (lambda x: b.ReduceSum(x, [0]), 0, r'IR601.*the shape of "y" is not known before a run, or has no row'),
        (b.NonZero, 0, r'IR601.*the shape of "y" is not known'),
        (lambda x: b.ReLU(b.parameter(["?", 4], "f32", name="wide")), 0, r"IR601.*has shape \[1,3\]"),
    ],
    ids=["beyond", "negative", "unknown", "two-inputs", "no-row", "of-contents", "columns"],
)  # fmt: skip
def test_what_cannot_be_mapped(make: Any, output: int | str, said: str, tmp_path: Path) -> None:
    pytest.importorskip("dask")
    import dask.array

    irrun.save_model(b.model({"y": make(b.parameter(["?", 3], "f32", name="x"))}), tmp_path / "net.xml")
    with pytest.raises(irrun.FeedError, match=said):
        irrun.dask.map_blocks(tmp_path / "net.xml", dask.array.from_array(ROWS), output=output)


SCRIPT = """
import sys
import numpy as np
import dask.array
import irrun, irrun.dask
from distributed import Client, LocalCluster

if __name__ == "__main__":
    model, stack = sys.argv[1], np.load(sys.argv[2])
    alone = irrun.compile(model)
    wanted = np.concatenate([alone(row[None]).arrays[0] for row in stack])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        for scatter in (False, True):
            found = irrun.dask.run_many(client, model, (row[None] for row in stack), scatter=scatter)
            assert (np.concatenate([next(iter(one.values())) for one in found]) == wanted).all()
            array = dask.array.from_array(stack, chunks=(3, 3, 16, 32))
            mapped = irrun.dask.map_blocks(model, array, scatter=scatter)
            assert mapped.shape == wanted.shape and mapped.dtype == wanted.dtype
            assert (mapped.compute() == wanted).all()
        try:
            list(irrun.dask.run_many(client, model, [np.zeros((2, 2), np.float32)]))
        except irrun.FeedError as error:
            assert "has shape [2,2]" in str(error)
        else:
            raise AssertionError
    print("equal")
"""


@pytest.mark.slow
def test_programs(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    model = write_network(tmp_path / "net.xml")
    np.save(tmp_path / "s.npy", np.random.default_rng(0).random((10, 3, 32, 32), np.float32))
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(model), str(tmp_path / "s.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "equal\n", done.stderr


@pytest.mark.slow
def test_commands(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    model, inputs = write_network(tmp_path / "net.xml"), write_inputs(tmp_path / "in", 20)
    for name, more in (("one", ()), ("dask", ("--dask", "local"))):
        status, _, err = run(["batch", model, inputs, "-o", tmp_path / name, "-j", "2", *more])
        assert status == 0, err
    assert contents(tmp_path / "one") == contents(tmp_path / "dask")
    status, out, err = run(["check", model, model.with_suffix(".bin"), "--dask", "local", "-j", "1"])
    assert status == 2, err  # the .bin is no model
    assert "IR001" in out or "IR006" in out or "IR003" in out


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("campaign", [batch, dask, check])
def test_killed_in_full(campaign, tmp_path: Path) -> None:
    """What ``python -m tools fleets`` does with 10,000 inputs and 2,000 models."""
    if campaign is dask:
        pytest.importorskip("distributed")
    assert list(campaign(60 if campaign is check else 600, tmp_path))


@pytest.mark.slow
def test_a_cluster_that_shrinks() -> None:
    """Fewer tasks are handed out than wait already."""
    distributed = pytest.importorskip("distributed")
    from irrun.fleet.cluster import Cluster

    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        results = Cluster(client).results(abs, range(-40, 0), "abs")
        found = dict([next(results)])
        cluster.scale(1)
        while len(client.nthreads()) > 1:
            time.sleep(0.01)
        found.update(results)
    assert found == {number: -number for number in range(-40, 0)}

"""The same on a Dask cluster of two processes on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fleets import batch, check, contents, dask, run, write_inputs, write_network

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

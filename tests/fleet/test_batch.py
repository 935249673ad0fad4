"""irrun batch: kinds of inputs and outputs, bad inputs, kills, and what makes results equal."""

from __future__ import annotations

import json
import os
import signal
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import irrun
from fleets import contents, ended, run, start, wait_for_results, workers, write_inputs, write_network
from irrun import build as b
from irrun.cli import cli
from irrun.fleet.batch import prepare
from irrun.fleet.session import Job, rows_are_independent
from irrun.fleet.workers import Lost, Processes

pytestmark = pytest.mark.processes

_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def batch(*arguments: object) -> Result:
    """Run the command in this process; its workers are others."""
    return CliRunner().invoke(cli, ["batch", *map(str, arguments)])


@pytest.fixture
def tripler(tmp_path: Path) -> Path:
    """A model [?,2] -> 3 x, which can run inputs at once."""
    irrun.save_model(b.model([b.Multiply(b.parameter([-1, 2], "f32", name="x"), np.float32(3))]), tmp_path / "m.xml")
    return tmp_path / "m.xml"


def numbers(count: int) -> np.ndarray:
    return np.arange(count * 2, dtype=np.float32).reshape(count, 2)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".zarr", ""])
@pytest.mark.parametrize("kind", ["npy", "npz", "compressed", "zarr", "files"])
def test_kinds(kind: str, ending: str, tripler: Path, tmp_path: Path) -> None:
    """Each kind of input gives each kind of output. 11 inputs are one batch of 8 and three alone."""
    zarr: Any = pytest.importorskip("zarr") if "zarr" in (kind, ending[1:]) else None
    data, given, out = numbers(11), tmp_path / "stack", tmp_path / f"out{ending}"
    match kind:
        case "npy":
            np.save(given := tmp_path / "stack.npy", data)
        case "npz":
            np.savez(given := tmp_path / "stack.npz", x=data)
        case "compressed":
            np.savez_compressed(given := tmp_path / "stack.npz", x=data)
        case "zarr":
            zarr.save(given := tmp_path / "stack.zarr", data)
        case "files":
            given.mkdir()
            for number, row in enumerate(data):
                np.save(given / f"{number:02}.npy", row)
    result = batch(tripler, given, "-o", out, "-j", 1)
    assert result.exit_code == 0, result.output
    assert "11 inputs: 11 done" in result.stderr
    if ending == ".npy":
        got = np.load(out)
    elif ending == ".npz":
        with np.load(out) as archive:
            (name,) = archive.files
            got = archive[name]
    elif ending == ".zarr":
        got = zarr.open(out)[:]
    else:
        got = np.concatenate([np.load(path) for path in sorted(out.glob("*.npy"))])
    np.testing.assert_array_equal(got, data * 3)
    again = batch(tripler, given, "-o", out, "-j", 1)
    assert (again.exit_code, "0 done, 11 kept from before" in again.stderr) == (0, True)


def test_several_inputs_and_outputs(tmp_path: Path) -> None:
    one, two = b.parameter([1, 2], "f32", name="a"), b.parameter([1, 2], "f32", name="b")
    irrun.save_model(b.model({"sum": b.Add(one, two), "less": b.Less(one, two)}), tmp_path / "m.xml")
    folder = tmp_path / "in"
    folder.mkdir()
    np.savez(folder / "x.npz", a=np.array([[1, 2]], np.float32), b=np.array([[3, 1]], np.float32))
    assert batch(tmp_path / "m.xml", folder, "-o", tmp_path / "out", "-j", 1).exit_code == 0
    with np.load(tmp_path / "out" / "x.npz") as out:
        assert out["sum"].tolist() == [[4, 3]]
        assert out["less"].tolist() == [[True, False]]
    refused = batch(tmp_path / "m.xml", folder, "-o", tmp_path / "out.npy")
    assert (refused.exit_code, "has 2 outputs" in refused.stderr) == (2, True)


def test_pictures_and_bad_inputs(tmp_path: Path) -> None:
    """A corrupt picture, an array of a wrong shape and a missing file are named; the others are there."""
    image = pytest.importorskip("PIL.Image")
    net = b.model([b.ReduceMean(b.parameter([1, 1, 4, 4], "f32", name="x"), [1, 2, 3], keep_dims=False)])
    irrun.save_model(net, tmp_path / "m.xml")
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for number in range(20):
        image.fromarray(np.full((4, 4), number, np.uint8)).save(folder / f"{number:02}.png")
    np.save(folder / "deep" / "a.npy", np.full((1, 4, 4), 7, np.float32))
    np.save(folder / "wrong.npy", np.zeros((5, 5), np.float32))
    (folder / "broken\n\x1b[31m.png").write_bytes(b"\x89PNG nonsense")
    (folder / "notes.txt").write_text("no input")
    (folder / ".hidden.npy").write_text("no input")
    for out in (tmp_path / "out", tmp_path / "out.npy"):
        result = batch(tmp_path / "m.xml", folder, tmp_path / "none.npy", "-o", out, "-j", 1)
        assert result.exit_code == 1
        assert result.stderr.splitlines()[-1].startswith(
            "24 inputs: 21 done, 3 bad, 1 file of another kind left out"
        ), result.stderr
        bad = result.stderr.splitlines()[:-1]
        for name in ("wrong.npy: ", r"broken\n\x1b[31m.png: ", "none.npy: "):
            assert sum(name in line for line in bad) == 1, bad
        assert len(bad) == 3
        assert "\x1b" not in result.stderr
    results = contents(tmp_path / "out")
    assert len(results) == 21
    assert np.load(tmp_path / "out" / "13.png.npy").tolist() == [13]
    assert np.load(tmp_path / "out" / "deep" / "a.npy").tolist() == [7]
    stack = np.load(tmp_path / "out.npy")
    assert stack.shape == (24,)
    assert np.isnan(stack).sum() == 3
    fast = batch(tmp_path / "m.xml", folder, "-o", tmp_path / "fast", "-j", 1, "--fail-fast", "--format", "json")
    assert fast.exit_code == 1
    assert 1 <= len(json.loads(fast.stdout)["bad"]) < 3


def test_a_bad_input_that_is_corrected(tripler: Path, tmp_path: Path) -> None:
    """What was missing is done by the next run, in a folder and in a stack."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number, row in enumerate(numbers(20)):
        np.save(folder / f"{number:02}.npy", row if number != 4 else row[:1])
    for out in (tmp_path / "out", tmp_path / "out.npy"):
        assert batch(tripler, folder, "-o", out, "-j", 1).exit_code == 1
    np.save(folder / "04.npy", numbers(20)[4])
    for out in (tmp_path / "out", tmp_path / "out.npy"):
        assert batch(tripler, folder, "-o", out, "-j", 1).exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), numbers(20) * 3)
    assert len(contents(tmp_path / "out")) == 20


def test_what_is_refused(tripler: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    np.save(tmp_path / "s.npy", numbers(3))
    np.save(tmp_path / "wide.npy", np.zeros((3, 4, 5, 6), np.float32))
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "s.npy", numbers(3))
    (tmp_path / "taken.npy").write_bytes(b"mine")
    rows: list[tuple[list[object], str]] = [
        ([tmp_path / "empty", "-o", tmp_path / "o"], "there is no input in"),
        ([tmp_path / "no", "-o", tmp_path / "o"], "no such file"),
        ([tmp_path / "no.npy", "-o", tmp_path / "o"], "cannot be read: no such file"),
        ([tmp_path / "wide.npy", "-o", tmp_path / "o"], "whose rows do not fit"),
        ([tmp_path / "s.npy", "-o", tmp_path / "full"], "holds files that no `irrun batch` has written"),
        ([tmp_path / "s.npy", "-o", tmp_path / "taken.npy"], "pass --overwrite"),
        ([tmp_path / "s.npy", "-o", tmp_path / "none" / "o.npy"], "there is no folder"),
        ([tmp_path / "s.npy", tmp_path / "other" / "s.npy", "-o", tmp_path / "o"], "results of the same name"),
    ]
    for arguments, said in rows:
        result = batch(tripler, *arguments)
        assert (result.exit_code, said in result.stderr.replace("\n", " ")) == (2, True), result.stderr
    assert (tmp_path / "taken.npy").read_bytes() == b"mine"
    assert batch(tmp_path / "no.xml", tmp_path / "s.npy", "-o", tmp_path / "o").exit_code == 2


def test_results_of_another_model_are_not_mixed(tripler: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", numbers(3))
    for out in (tmp_path / "o", tmp_path / "o.npy"):
        assert batch(tripler, tmp_path / "s.npy", "-o", out, "-j", 1).exit_code == 0
    irrun.save_model(b.model([b.Multiply(b.parameter([-1, 2], "f32", name="x"), np.float32(5))]), tripler)
    for out in (tmp_path / "o", tmp_path / "o.npy"):
        result = batch(tripler, tmp_path / "s.npy", "-o", out, "-j", 1)
        assert (result.exit_code, "another model" in result.stderr) == (2, True)
        assert batch(tripler, tmp_path / "s.npy", "-o", out, "-j", 1, "--overwrite").exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), numbers(3) * 5)
    np.testing.assert_array_equal(np.load(tmp_path / "o" / "000000.npy"), numbers(1) * 5)


def test_results_of_another_precision_are_not_mixed(tmp_path: Path) -> None:
    x = b.parameter([-1, 1], "f32", name="x")
    irrun.save_model(b.model([b.MatMul(x, np.full((1, 1), 257, np.float32))]), tmp_path / "m.xml")
    np.save(tmp_path / "s.npy", np.ones((3, 1), np.float32))
    arguments = tmp_path / "m.xml", tmp_path / "s.npy", "-o", tmp_path / "o.npy", "-j", 1
    assert batch(*arguments, "--precision", "bf16").exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), np.full((3, 1), 256))
    result = batch(*arguments)
    assert (result.exit_code, "another --precision" in result.stderr) == (2, True)


def test_which_models_run_inputs_at_once(tripler: Path, tmp_path: Path) -> None:
    """Only those of which a row gives the same alone."""
    assert rows_are_independent(Job(str(tripler)))
    x = b.parameter([-1, 2], "f32", name="x")
    irrun.save_model(b.model([b.Subtract(x, b.ReduceMean(x, [0], keep_dims=True))]), tmp_path / "mixing.xml")
    assert not rows_are_independent(Job(str(tmp_path / "mixing.xml")))
    irrun.save_model(b.model([b.ReLU(b.parameter([1, 2], "f32"))]), tmp_path / "static.xml")
    assert not rows_are_independent(Job(str(tmp_path / "static.xml")))
    np.save(tmp_path / "s.npy", numbers(3))
    result = batch(tmp_path / "mixing.xml", tmp_path / "s.npy", "-o", tmp_path / "o", "--batch", 4)
    assert (result.exit_code, "affect each other" in result.stderr) == (2, True)


def test_a_run_that_is_taken_up_again_gives_the_same_bytes(tmp_path: Path) -> None:
    """Also where inputs are run in batches, of which some results are missing."""
    rng = np.random.default_rng(0)
    x = b.parameter([-1, 300], "f32", name="x")
    irrun.save_model(b.model([b.MatMul(x, rng.normal(size=(300, 70)).astype(np.float32))]), tmp_path / "m.xml")
    np.save(tmp_path / "s.npy", rng.normal(size=(37, 300)).astype(np.float32))
    command = (tmp_path / "m.xml", tmp_path / "s.npy", "-o", tmp_path / "out")
    assert batch(*command, "-j", 1).exit_code == 0
    whole = contents(tmp_path / "out")
    assert len(whole) == 37
    for number in (0, 3, 11, 36):
        (tmp_path / "out" / f"{number:06}.npy").unlink()
    again = batch(*command, "-j", 2)
    assert "4 done, 33 kept" in again.stderr
    assert contents(tmp_path / "out") == whole


@_linux
def test_killed_and_taken_up_again(tmp_path: Path) -> None:
    model, inputs = write_network(tmp_path / "net.xml"), write_inputs(tmp_path / "in", 800)
    status, _, err = run(["batch", model, inputs, "-o", tmp_path / "whole", "-j", "1"])
    assert status == 0, err
    whole = contents(tmp_path / "whole")
    command = ["batch", model, inputs, "-o", tmp_path / "out", "-j", "2"]
    process = start(command)
    wait_for_results(tmp_path / "out", 20)
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    wait_for_results(tmp_path / "out", 100)
    left = workers(process.pid)
    process.kill()
    process.communicate()
    assert ended(left), "workers outlive their parent"
    kept = len(list((tmp_path / "out").rglob("*.npy")))  # beside them, a file that was written may be left aside
    assert kept < 800
    status, _, err = run(command)
    assert status == 0, err
    assert f"{800 - kept} done, {kept} kept from before" in err
    assert contents(tmp_path / "out") == whole


@_linux
def test_interrupted(tmp_path: Path) -> None:
    model, inputs = write_network(tmp_path / "net.xml"), write_inputs(tmp_path / "in", 400)
    process = start(["batch", model, inputs, "-o", tmp_path / "out", "-j", "1"])
    wait_for_results(tmp_path / "out", 5)
    left = workers(process.pid)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert ended(left)


def _work(number: int) -> int:
    """Kill this process for 13."""
    if number == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 2


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_task_that_kills_its_process_is_named() -> None:
    """The others are done, also those that ran beside it."""
    results = dict(Processes(2).results(_work, range(9, 18), "work"))
    assert results == {n: Lost() if n == 13 else n * 2 for n in range(9, 18)}


def test_the_bytes_of_a_npz_hold_no_time(tripler: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", numbers(2))
    assert batch(tripler, tmp_path / "s.npy", "-o", tmp_path / "o.npz", "-j", 1).exit_code == 0
    with zipfile.ZipFile(tmp_path / "o.npz") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_what_a_lost_process_leaves_is_removed(tripler: Path, tmp_path: Path) -> None:
    """In the run that lost it: a temporary file without a lock."""
    (tmp_path / "in").mkdir()
    for number, row in enumerate(numbers(3)):
        np.save(tmp_path / "in" / f"{number}.npy", row)
    ready = prepare(str(tripler), None, [str(tmp_path / "in")], str(tmp_path / "out"))
    litter = tmp_path / "out" / ".1.npy.0123abcd.part"
    litter.write_bytes(b"half")
    assert sum(step.done for step in ready.run(Processes(1))) == 3
    ready.close()
    assert not litter.exists()
    assert sorted(contents(tmp_path / "out")) == ["0.npy", "1.npy", "2.npy"]


class _Failing:
    """Workers of which one is ended while it writes, because the disk of another one is full."""

    jobs = 1

    def __init__(self, litter: Path) -> None:
        self.litter = litter

    def results(self, function: Any, tasks: Any, name: str) -> Any:
        self.litter.write_bytes(b"")
        raise OSError("the disk is full")
        yield


def test_what_an_ended_process_leaves_is_removed(tripler: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "0.npy", numbers(1)[0])
    ready = prepare(str(tripler), None, [str(tmp_path / "in")], str(tmp_path / "out"))
    litter = tmp_path / "out" / ".0.npy.0123abcd.part"
    with pytest.raises(OSError, match="the disk is full"):
        next(ready.run(_Failing(litter)))
    ready.close()
    assert not litter.exists()

"""Many models: summaries, processes, and the cache."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

import irrun
import irrun.fleet.cache
from fleets import write_network
from irrun.base.identity import identity
from irrun.cli import cli
from irrun.fleet.cache import from_record, to_record
from irrun.fleet.trees import Outcome, RandomRun, outcomes
from irrun.fleet.workers import Processes
from places import INVALID, SAMPLES

pytestmark = pytest.mark.processes


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def rows(*arguments: object) -> dict[str, dict]:
    result = call(*arguments, "--format", "json")
    return {Path(row["file"]).name: row for row in json.loads(result.stdout)["models"]}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three models: one right, one with a wrong dim, one that is no XML; and a cache."""
    monkeypatch.setenv("IRRUN_CACHE_DIR", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    tree.mkdir()
    write_network(tree / "right.xml")
    (tree / "wrong.xml").write_bytes((SAMPLES / "wrong_dim.xml").read_bytes())
    (tree / "wrong.bin").write_bytes((SAMPLES / "wrong_dim.bin").read_bytes())
    (tree / "broken.xml").write_text("<net")
    return tree


def test_what_is_known_is_not_done_again(tree: Path) -> None:
    check = ("check", tree, "--summary")
    first = rows(*check)
    assert {name: row["status"] for name, row in first.items()} == {
        "broken.xml": "unreadable", "right.xml": "ok", "wrong.xml": "failed",
    }  # fmt: skip
    assert first["wrong.xml"]["errors"] == 1
    assert not any(row["cached"] for row in first.values())
    again = rows(*check)
    assert all(row["cached"] for row in again.values())
    assert [row["seconds"] for row in again.values()] == [row["seconds"] for row in first.values()]
    weights = tree / "right.bin"
    for change in (
        lambda: (tree / "right.xml").write_text((tree / "right.xml").read_text() + "\n"),
        lambda: weights.write_bytes(bytes([weights.read_bytes()[0] ^ 1]) + weights.read_bytes()[1:]),
        lambda: weights.unlink(),
    ):
        change()
        assert {name for name, row in rows(*check).items() if not row["cached"]} == {"right.xml"}
    assert not any(row["cached"] for row in rows(*check, "--shape", "data=[16,1,1]").values())
    assert not any(row["cached"] for row in rows(*check, "--no-cache").values())
    for path in (tree.parent / "cache").rglob("*.json"):
        path.write_text("[1")
    assert not any(row["cached"] for row in rows(*check).values())


def test_unchanged_files_are_not_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they have just been changed: then their times might stay the same at the next change."""
    read: list[str] = []

    def identity(path: str) -> str:
        if Path(path).parent == tree:  # not those of extensions that other tests have loaded
            read.append(Path(path).name)
        return contents(path)

    contents = irrun.fleet.cache.identity
    monkeypatch.setattr("irrun.fleet.cache.identity", identity)
    rows("check", tree, "--summary")
    rows("check", tree, "--summary")
    assert read.count("right.xml") >= 2
    monkeypatch.setattr("irrun.base.identity._TICK", -1.0)
    rows("check", tree, "--summary")
    read.clear()
    assert all(row["cached"] for row in rows("check", tree, "--summary").values())
    assert not read
    (tree / "right.bin").write_bytes((tree / "right.bin").read_bytes()[::-1])
    assert {name for name, row in rows("check", tree, "--summary").items() if not row["cached"]} == {"right.xml"}


def test_a_cache_changes_no_report(tree: Path) -> None:
    """Excerpts and fixes are there, too."""
    for form in ("full", "concise", "json", "sarif", "junit"):
        reports = {call("check", tree, "--format", form, *more).stdout for more in ((), (), ("--no-cache",))}
        assert len(reports) == 1
    assert "^^^" in call("check", tree).stdout


def test_diagnostics_come_back() -> None:
    for path in (SAMPLES / "wrong_dim.xml", INVALID / "dim.xml"):
        for found in irrun.check(path) if path.exists() else ():
            assert from_record(json.loads(json.dumps(to_record(found))), found.source) == found


def test_large_files_are_not_read(tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(1 << 36)
    before, status = identity(large), large.stat()
    assert identity(large) == before
    with large.open("r+b") as file:
        file.write(b"x")
    os.utime(large, ns=(status.st_atime_ns, status.st_mtime_ns))  # as if nothing had happened
    assert identity(large) != before


def test_run_random(tree: Path) -> None:
    result = call("run", "--random", tree, "--strict")
    assert result.exit_code == 2  # one cannot be read
    assert result.stderr.endswith("ran 3 files: 1 failed, 1 ok, 1 unreadable\n")
    assert "IR602" in result.stderr
    again = rows("run", "--random", tree, "--strict", "-j", 2)
    assert all(row["cached"] for row in again.values())
    assert {row["status"] for row in rows("run", "--random", tree).values()} == {"ok", "unreadable"}
    suites = ElementTree.fromstring(call("run", "--random", tree, "--strict", "--format", "junit").stdout)
    assert [suite.get("failures") for suite in suites] == ["1", "0", "1"]
    assert all(float(suite.get("time", "")) >= 0 for suite in suites)
    (log,) = json.loads(call("check", tree, "--summary", "--format", "sarif").stdout)["runs"]
    assert len(log["properties"]["models"]) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", SAMPLES / "convnet.xml", SAMPLES / "swiglu.xml"), "run all with --random"),
        (("run", "--random", SAMPLES, "-o", "x.npz"), "is for one"),
        (("run", SAMPLES / "convnet.xml", "--format", "junit"), "is for --random"),
        (("check", SAMPLES, "--summary", "--format", "github"), "--summary supports"),
        (("check", SAMPLES, "--dask", "127.0.0.1:1"), "no Dask scheduler answers"),
    ],
)
def test_bad_usage(arguments: tuple, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--dask" in arguments:
        pytest.importorskip("distributed")
        monkeypatch.setattr("irrun.fleet.cluster.CONNECT_SECONDS", 0.5)
    result = call(*arguments)
    assert (result.exit_code, said in " ".join(result.stderr.replace("│", " ").split())) == (2, True), result.stderr


def test_a_cache_that_cannot_be_written(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRRUN_CACHE_DIR", str(tree / "right.xml"))  # a file
    assert call("check", tree, "--format", "concise").exit_code == 2
    monkeypatch.setenv("IRRUN_CACHE_DIR", "")
    assert not any(row["cached"] for _ in range(2) for row in rows("check", tree, "--summary").values())


def test_processes_give_the_same(tree: Path) -> None:
    files = sorted(map(str, tree.glob("*.xml"))) * 3
    here = [*outcomes(RandomRun(), files, None, lambda _: None)]
    there = [*outcomes(RandomRun(), files, None, lambda _: Processes(2))]
    assert list(map(_found, here)) == list(map(_found, there))


def _found(outcome: Outcome) -> tuple:
    return outcome.status, [str(d) for d in outcome.diagnostics]

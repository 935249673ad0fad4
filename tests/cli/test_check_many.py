"""`irrun check` of many files, in processes, and again whenever they change; at other shapes."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent.parent.parent / "samples"
IRRUN = [sys.executable, "-m", "irrun"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve models, every third of them with a wrong dim."""
    for number in range(12):
        name = "wrong_dim" if number % 3 == 1 else "convnet"
        for ending in (".xml", ".bin"):
            shutil.copy(SAMPLES / f"{name}{ending}", tmp_path / f"m{number:02}{ending}")
    return tmp_path


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*IRRUN, "check", *args], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("form", ["full", "json"])
def test_processes_change_nothing(form: str, folder: Path) -> None:
    one, four = (run(folder, ".", "--format", form, "-j", jobs) for jobs in ("1", "4"))
    assert one.returncode == four.returncode == 1
    assert one.stdout == four.stdout
    assert one.stderr == four.stderr
    if form == "json":
        found = [d["file"] for d in json.loads(one.stdout)["diagnostics"]]
        assert found == ["m01.xml", "m04.xml", "m07.xml", "m10.xml"]


def test_processes_know_the_plugins(folder: Path) -> None:
    plugin = (
        "import irrun\n@irrun.op('Mine', since=1)\nclass Mine(irrun.Op):\n"
        "    inputs = irrun.ports(x='T')\n    def infer(self, at, x): return x\n"
    )
    (folder / "plugin.py").write_text(plugin)
    layer = '<layer type="Mine"><input><port id="0"><dim>2</dim></port></input></layer>'
    for number in range(4):
        (folder / f"mine{number}.txt").write_text(layer)
    files = [f"mine{number}.txt" for number in range(4)]
    assert run(folder, *files, "-j", "2").returncode == 3
    assert run(folder, *files, "-j", "2", "--plugin", "plugin.py").returncode == 0


def test_where_there_are_no_processes(folder: Path, call: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "emscripten")
    result = call("check", folder, "-j", 4, "--format", "concise")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 4


def test_examples_are_counted(call: Callable) -> None:
    Path("page.md").write_text("```xml\n<layer type='Add' version='opset1'><data/> ... </layer>\n```\n" * 3)
    result = call("check", "page.md")
    assert result.stderr.startswith("checked 1 file (3 examples): 0 errors")


@pytest.mark.parametrize(
    ("shape", "status", "said"),
    [
        ("image=[8,1,28,28]", 0, "0 errors"),
        ("image=?,1,28..30,28", 0, "0 errors"),
        ("image=[1,1,32,32]", 1, 'MatMul "logits"'),
        ("0=[1,2,28,28]", 1, "Convolution"),
        ("imag=[1]", 2, 'its inputs are "image"'),
        ("image=[x]", 2, 'the shape "x"'),
        ("image", 2, "is not NAME=SHAPE"),
    ],
)
def test_shapes(shape: str, status: int, said: str, call: Callable) -> None:
    result = call("check", SAMPLES / "convnet.xml", "--shape", shape, "--select", "IR4")
    assert result.exit_code == status
    assert said in result.output
    assert result.stdout.count("error[") == (status > 0 and "NAME=" not in said)


def _hears_interrupts() -> None:
    """A job in the background ignores them, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes to wait at, and no SIGINT to send")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_it(jobs: str, folder: Path) -> None:
    """While its processes wait for a pipe that nobody writes into."""
    pipes = [folder / "one.xml", folder / "two.xml"]
    for pipe in pipes:
        os.mkfifo(pipe)
    with subprocess.Popen(
        [*IRRUN, "check", *map(str, pipes), "-j", jobs], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=_hears_interrupts,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            end = time.monotonic() + 60
            writing = -1
            while writing < 0:
                assert time.monotonic() < end
                with contextlib.suppress(OSError):  # until it is read
                    writing = os.open(pipes[0], os.O_WRONLY | os.O_NONBLOCK)
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stdout.read() == b""
            os.close(writing)
        finally:
            process.kill()


# ---------------------------------------------------------------------------------------------
# --watch


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Callable[[str, int], list[str]]]:
    """Watches net.xml; waits until so many summaries were printed, and gives all lines up to then."""
    shutil.copy(SAMPLES / "convnet.bin", tmp_path / "net.bin")
    shutil.copy(SAMPLES / "convnet.xml", tmp_path / "net.xml")
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*IRRUN, "check", "net.xml", "--watch", "--format", "concise"], cwd=tmp_path, stdout=out, stderr=out,
            preexec_fn=_hears_interrupts if os.name != "nt" else None,
        )  # fmt: skip

    def printed(what: str, times: int) -> list[str]:
        end = time.monotonic() + 60
        while log.read_text().count(what) < times:
            assert process.poll() is None
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        return log.read_text().splitlines()

    try:
        yield printed
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()


@pytest.mark.skipif(os.name == "nt", reason="a process cannot be interrupted there as a person does it")
def test_watch(watching: Callable[[str, int], list[str]], tmp_path: Path) -> None:
    file = tmp_path / "net.xml"
    right = file.read_text()
    assert watching("watching", 1)[0] == "checked 1 file: 0 errors, 0 warnings"
    file.write_text(right.replace("<dim>28</dim>", "<dim>29</dim>", 1))
    assert "net.xml:10:" in "\n".join(watching("1 error", 1))
    file.write_text(right)
    watching("0 errors", 2)
    (tmp_path / "net.bin").unlink()  # which belongs to it
    watching("IR501", 1)
    file.unlink()
    watching("IR000", 1)


@pytest.mark.parametrize(("args", "said"), [(("-",), "standard input"), (("net.xml", "--format", "json"), "json")])
def test_what_watch_does_not_go_with(args: tuple[str, ...], said: str, call: Callable) -> None:
    result = call("check", *args, "--watch")
    assert result.exit_code == 2
    assert said in result.stderr

"""`irrun check` of many files, in processes, and again whenever they change; at other shapes."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

import warm
from nets import Net
from places import SAMPLES

pytestmark = pytest.mark.processes

T = TypeVar("T")

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
    done = warm.run([*IRRUN, "check", *args], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
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
        ("image=[x]", 2, 'the shape "[x]"'),
        ("image", 2, "is not NAME=SHAPE"),
    ],
)
def test_shapes(shape: str, status: int, said: str, call: Callable) -> None:
    result = call("check", SAMPLES / "convnet.xml", "--shape", shape, "--select", "IR4")
    assert result.exit_code == status
    assert said in result.output
    assert result.stdout.count("error[") == (status > 0 and "NAME=" not in said)


# ---------------------------------------------------------------------------------------------
# while it runs


def plain(dims: str = "2,3") -> str:
    """A model without constants; it is wrong with other dims."""
    net = Net()
    net.result(net.add("ReLU", [net.parameter("f32", "2,3", name="x")], [("FP32", dims)], name="relu"))
    return net.text


_GUARD = 300
"""Seconds after which a test gives up on a process: far more than any machine needs."""
_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes, no pseudo-terminals and no SIGINT")


def _wait(process: subprocess.Popen, until: Callable[[], T | None]) -> T:
    """What ``until`` gives as soon as it gives something; fails if the process ends before."""
    end = time.monotonic() + _GUARD
    while (found := until()) is None:
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def _writer(process: subprocess.Popen, pipe: Path) -> int:
    """A named pipe opened for writing, as soon as the process reads it."""

    def opened() -> int | None:
        with contextlib.suppress(OSError):  # nobody reads it
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        return None

    return _wait(process, opened)


@_posix
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_it(jobs: str, folder: Path) -> None:
    """While its processes wait for a pipe that nobody writes into."""
    pipes = [folder / "one.xml", folder / "two.xml"]
    for pipe in pipes:
        os.mkfifo(pipe)
    with subprocess.Popen(
        [*IRRUN, "check", *map(str, pipes), "-j", jobs], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            writing = _writer(process, pipes[0])
            time.sleep(0.2)  # Python misses a signal that comes in the instant before the system call that reads
            process.send_signal(signal.SIGINT)
            assert process.wait(_GUARD) == 130
            assert process.stdout.read() == b""
            os.close(writing)
        finally:
            process.kill()


class Slow:
    """`irrun check` of models that come through named pipes, each when the test writes it."""

    def __init__(self, folder: Path, slow: Sequence[str], *args: str, on_terminal: bool) -> None:
        import pty

        for name in slow:
            os.mkfifo(folder / name)
        self.folder, self.text = folder, b""
        self.reader, writer = pty.openpty() if on_terminal else os.pipe()
        away = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
        environment = {k: v for k, v in os.environ.items() if k not in away} | {"TERM": "xterm"}
        self.process = warm.Popen([*IRRUN, "check", *args], cwd=folder, stdout=writer, stderr=writer, env=environment)
        os.close(writer)

    def write(self, name: str, *, seconds: float = 0) -> None:
        """Let the process read a model, and for so long wait for it."""
        writing = _writer(self.process, self.folder / name)
        time.sleep(seconds)
        os.write(writing, plain().encode())
        os.close(writing)

    def read(self, until: bytes | None = None) -> bytes:
        """What is printed: all that was up to now as soon as it holds ``until``, or all at the end."""
        end = time.monotonic() + _GUARD
        while until is None or until not in self.text:
            select.select([self.reader], [], [], _GUARD)
            assert time.monotonic() < end, self.text
            try:
                block = os.read(self.reader, 4096)
            except OSError:  # Linux: the terminal is closed
                block = b""
            if not block:
                assert until is None, self.text
                break
            self.text += block
        return self.text


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Slow]]:
    started: list[Slow] = []

    def start(*arguments: Any, **keywords: Any) -> Slow:
        started.append(Slow(folder, *arguments, **keywords))
        return started[-1]

    yield start
    for slow in started:
        slow.process.kill()
        slow.process.wait(_GUARD)
        os.close(slow.reader)


@_posix
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_terminal_shows_how_far_it_is(jobs: str, start: Callable[..., Slow]) -> None:
    slow = start(["a.xml", "b.xml"], "m01.xml", "a.xml", "b.xml", "-j", jobs, on_terminal=True)
    slow.write("a.xml", seconds=1.2)
    shown = slow.read(until=b"67%")
    assert b"checking" in shown
    assert b"IR401" not in shown  # the bar and the findings would stand in each other's way
    slow.write("b.xml")
    text = slow.read()
    assert slow.process.wait(_GUARD) == 1
    bar, after = text[: text.rindex(b"checking")], text[text.rindex(b"checking") :]
    assert b"IR401" not in bar
    assert b"\x1b[2K" in after  # the bar is erased
    assert b"\x1b[?25h" in after  # and the cursor is there again
    assert b"m01.xml" in after
    assert b"checked 3 files: 1 error" in after


@_posix
@pytest.mark.parametrize(
    ("files", "on_terminal"), [(["m01.xml", "a.xml"], False), (["a.xml"], True)], ids=["no terminal", "one file"]
)
def test_there_is_no_bar(files: list[str], on_terminal: bool, start: Callable[..., Slow]) -> None:
    slow = start(["a.xml"], *files, on_terminal=on_terminal)
    slow.write("a.xml", seconds=1.2)
    text = slow.read()
    assert slow.process.wait(_GUARD) == len(files) - 1
    assert b"checking" not in text
    assert b"%" not in text
    assert f"checked {len(files)} file".encode() in text


# ---------------------------------------------------------------------------------------------
# --watch


class Watch:
    """`irrun check --watch`: what it prints, look by look."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.log, self.looks = folder / "log", 0
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [*IRRUN, "check", *args, "--watch", "--format", "concise"], cwd=folder, stdout=out, stderr=out,
            )  # fmt: skip

    def look(self) -> list[str]:
        """Wait for another look, and give what it prints."""
        looks = _wait(self.process, lambda: self.printed() if len(self.printed()) > self.looks else None)
        self.looks += 1
        return looks[self.looks - 1].splitlines()

    def printed(self) -> list[str]:
        """What each look that is over printed."""
        return self.log.read_text().split("watching for changes; press Ctrl-C to stop\n")[:-1]


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., Watch]]:
    started: list[Watch] = []

    def start(*args: str) -> Watch:
        started.append(Watch(tmp_path, *args))
        return started[-1]

    try:
        yield start
        for one in started:
            assert one.process.poll() is None
            one.process.send_signal(signal.SIGINT)
            assert one.process.wait(_GUARD) == 130
            assert "Traceback" not in one.log.read_text()
            assert len(one.printed()) == one.looks, "it looked again though nothing had changed"
    finally:
        for one in started:
            one.process.kill()


def put(path: Path, content: bytes | str) -> None:
    """Change a file at once: nobody sees it half written."""
    new = path.with_suffix(".new")
    new.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(new, path)


def sample(name: str, path: Path) -> None:
    for ending in (".xml", ".bin"):
        shutil.copy(SAMPLES / f"{name}{ending}", path.with_suffix(ending))


_CLEAN = "checked 1 file: 0 errors, 0 warnings"


@_posix
def test_watch(watch: Callable[..., Watch], tmp_path: Path) -> None:
    file, weights = tmp_path / "net.xml", tmp_path / "net.bin"
    sample("convnet", file)
    right, numbers = file.read_text(), weights.read_bytes()
    watching = watch("net.xml")
    assert watching.look() == [_CLEAN]
    put(file, right.replace("<dim>28</dim>", "<dim>29</dim>", 1))
    finding, summary = watching.look()
    assert finding.startswith("net.xml:10:")
    assert summary.startswith("checked 1 file: 1 error")
    put(file, right)
    assert watching.look() == [_CLEAN]
    weights.unlink()  # which belongs to it
    assert "IR501" in watching.look()[0]
    put(weights, numbers[:-4])
    assert "IR502" in watching.look()[0]
    put(weights, numbers)
    assert watching.look() == [_CLEAN]
    file.unlink()
    assert "IR000" in watching.look()[0]
    put(file, right)
    assert watching.look() == [_CLEAN]
    time.sleep(1)  # some pauses between two looks: nothing changes, and nothing is printed


@_posix
def test_watch_a_folder(watch: Callable[..., Watch], tmp_path: Path) -> None:
    """Models come and go; what was found in the others stays."""
    models = tmp_path / "models"
    models.mkdir()
    sample("wrong_dim", models / "b.xml")
    watching = watch("models")
    wrong, summary = watching.look()
    assert wrong.startswith("models/b.xml:")
    assert summary.startswith("checked 1 file: 1 error")
    put(models / "a.xml", plain())
    assert watching.look() == [wrong, summary.replace("1 file", "2 files")]
    sample("wrong_dim", tmp_path / "c.xml")  # beside the folder
    put(models / "a.xml", plain("2,4"))
    lines = watching.look()
    assert [line.partition(":")[0] for line in lines] == ["models/a.xml", "models/b.xml", "checked 2 files"]
    put(models / "b.xml", plain())
    assert watching.look() == [lines[0], lines[2].replace(" (2 fixable", " (1 fixable").replace("2 errors", "1 error")]
    (models / "a.xml").unlink()
    assert watching.look() == [_CLEAN]


@_posix
def test_watch_weights_of_another_name(watch: Callable[..., Watch], tmp_path: Path) -> None:
    file, weights = tmp_path / "net.xml", tmp_path / "other.weights"
    sample("convnet", file)
    numbers = file.with_suffix(".bin").read_bytes()
    put(weights, numbers)
    watching = watch("net.xml", "--weights", "other.weights")
    assert watching.look() == [_CLEAN]
    file.with_suffix(".bin").unlink()  # which nobody reads
    put(weights, numbers[:-4])
    assert "IR502" in watching.look()[0]


@pytest.mark.parametrize(("args", "said"), [(("-",), "standard input"), (("net.xml", "--format", "json"), "json")])
def test_what_watch_does_not_go_with(args: tuple[str, ...], said: str, call: Callable) -> None:
    result = call("check", *args, "--watch")
    assert result.exit_code == 2
    assert said in result.stderr

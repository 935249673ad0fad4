"""The frame of the command line: start, exit status, pipes, interruption, colours, letters."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import irrun
from irrun.cli import COMMANDS, cli
from nets import Net

pytestmark = pytest.mark.processes

_GUARD = 300
"""Seconds after which a process counts as hung: far more than any machine needs."""
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def shell(folder: Path, *args: object, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "irrun", *map(str, args)]
    return subprocess.run(command, cwd=folder, env=_clean() | environment, capture_output=True, timeout=_GUARD)


def _clean() -> dict[str, str]:
    away = ("NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "PYTHONUTF8")
    here = str(Path(irrun.__file__).parent.parent)
    return {k: v for k, v in os.environ.items() if k not in away} | {"PYTHONPATH": here}


def test_help_lists_the_commands(call):
    result = call("--help")
    assert result.exit_code == 0
    assert [
        short for name, short in COMMANDS.items() if not re.search(rf"  {name} +{re.escape(short)}\n", result.stdout)
    ] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_is_that_of_the_command(name, call):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.get_short_help_str(200) == COMMANDS[name]
    result = call(name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: cli {name} ")


def test_version(call, monkeypatch):
    monkeypatch.setenv("IRRUN_BLAS", "numpy")
    assert call("--version").stdout == f"irrun {irrun.__version__} (matrix products: numpy)\n"


def test_unknown_command(call):
    result = call("chek")
    assert result.exit_code == 2
    assert "there is no command 'chek'; did you mean check?" in result.stderr


def test_unknown_option(call):
    assert call("check", "--frobnicate", "x.xml").exit_code == 2


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_nothing_heavy_is_imported_at_the_start(option, tmp_path):
    code = (
        "import sys\nfrom irrun.cli import main\nsys.argv = ['irrun', sys.argv[1]]\n"
        "try: main()\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, option], cwd=tmp_path, env=_clean(), capture_output=True)
    loaded = set(done.stderr.decode().split())
    assert "click" in loaded
    assert not loaded & {"numpy", "lxml", "lxml.etree", "networkx", "rich", "ml_dtypes", "irrun.api"}


def test_the_start_takes_well_under_half_a_second(tmp_path):
    """Of the processor, whatever else it does at the time."""
    code = (
        "import sys, time\nfrom irrun.cli import main\nsys.argv = ['irrun', '--help']\n"
        "try: main()\nexcept SystemExit: pass\nprint(time.process_time(), file=sys.stderr)"
    )

    def measured() -> float:
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=_clean(), capture_output=True)
        assert done.stdout.startswith(b"Usage: ")
        return float(done.stderr)

    assert min(measured() for _ in range(3)) < 0.5


def test_a_bug_says_so(call, tmp_path, monkeypatch):
    from irrun.cli import show

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(show, "predicted", broken)
    path = Net().save(tmp_path)
    result = call("show", "--memory", path)
    assert result.exit_code == 70
    assert "this is a bug in irrun" in result.stderr
    assert "ZeroDivisionError: boom" in result.stderr


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (PermissionError(13, "Permission denied", "net.xml"), 2, "irrun: net.xml: permission denied\n"),
        (MemoryError("8 GiB"), 1, "irrun: out of memory: 8 GiB\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
    ],
    ids=["os", "memory", "interrupt", "pipe"],
)
def test_what_is_no_bug_gets_no_traceback(raised, status, said, call, tmp_path, monkeypatch):
    from irrun.cli import show

    def failing(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(show, "predicted", failing)
    result = call("show", "--memory", Net().save(tmp_path))
    assert (result.exit_code, result.stderr) == (status, said)


@posix
def test_a_closed_pipe_is_quiet(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "irrun", "explain"], cwd=tmp_path, env=_clean(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    assert process.wait(timeout=_GUARD) == 141
    process.stderr.close()


@posix
def test_ctrl_c_is_quiet(tmp_path):
    os.mkfifo(tmp_path / "net.xml")  # reading it waits for ever
    process = subprocess.Popen(
        [sys.executable, "-m", "irrun", "check", "net.xml"], cwd=tmp_path, env=_clean(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    writer = os.open(tmp_path / "net.xml", os.O_WRONLY)  # opens as soon as irrun reads
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=_GUARD)
    os.close(writer)
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.parametrize("command", ["run", "check", "show"])
def test_a_missing_file_is_one_line(command, tmp_path):
    done = shell(tmp_path, command, "nosuch.xml")
    assert done.returncode == 2
    lines = (done.stdout + done.stderr).decode().splitlines()
    assert lines[0] == "error[IR000 unreadable]: cannot read nosuch.xml: no such file or directory"
    assert "Traceback" not in str(lines)


def _odd_names(folder: Path) -> Path:
    net = Net()
    net.result(net.parameter("f32", "2", name="名é\u009b"), name="ü=\u2028")
    path = folder / "net.xml"
    path.write_text(net.text, encoding="utf-8")
    return path


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("command", ["run", "show"])
def test_a_terminal_without_the_letters(encoding, command, tmp_path):
    done = shell(tmp_path, command, _odd_names(tmp_path), PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode(encoding)
    assert ("名é" in text) == (encoding == "utf-8")
    assert "\u009b" not in text
    assert "\u2028" not in text


def test_json_is_ascii(tmp_path):
    assert shell(tmp_path, "show", _odd_names(tmp_path), "--format", "json").stdout.isascii()


def _on_a_terminal(folder: Path, *args: object, **environment: str) -> bytes:
    import pty

    reader, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "irrun", *map(str, args)], cwd=folder, stdout=terminal, stderr=terminal,
        env=_clean() | {"TERM": "xterm"} | environment,
    )  # fmt: skip
    os.close(terminal)
    text = b""
    while True:
        try:
            block = os.read(reader, 4096)
        except OSError:  # Linux: the other side is closed
            break
        if not block:
            break
        text += block
    process.wait(timeout=_GUARD)
    os.close(reader)
    return text


@posix
@pytest.mark.parametrize("args", [("check", "net.xml"), ("run", "net.xml"), ("explain", "IR401")], ids=lambda a: a[0])
def test_colours_on_a_terminal_only(args, tmp_path):
    net = Net()
    net.add("Nonsense", [net.parameter("f32", "2")], [("FP32", "2")])
    net.save(tmp_path)
    assert b"\x1b[" in _on_a_terminal(tmp_path, *args)
    assert b"\x1b" not in _on_a_terminal(tmp_path, *args, NO_COLOR="1")
    done = shell(tmp_path, *args)
    assert b"\x1b" not in done.stdout + done.stderr

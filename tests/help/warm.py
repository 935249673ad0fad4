"""Start Python programs from a process that has imported their packages already: most of a short program is imports.

``run`` and ``Popen`` are those of ``subprocess``. Where they start this interpreter with a script, a module or ``-c``,
a child is forked from a warm process, one for each process of the tests, which ``serve`` in this file runs. It gets its
own folder, environment, standard streams and session, and ends as any program does.

They start a real process where a forked one could differ: on Windows, with options of Python, with another irrun in
``PYTHONPATH`` or in the folder, and if a variable differs that Python or a package reads when it starts. Tests of these
things, of start-up times, and at least one of each command use ``subprocess`` itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, NoReturn

import numpy

__all__ = ["Popen", "run"]

_PRELOADED: Final = (
    "irrun.api", "irrun.build", "irrun.cli", "irrun.conformance", "irrun.debug", "irrun.engines.opening", "irrun.fleet",
    "irrun.fuzz", "irrun.genai", "irrun.report", "irrun.testing", "hypothesis", "jinja2", "lxml.etree", "ml_dtypes",
    "networkx", "numba", "numpy", "numpy.random", "pytest", "regex", "rich.console", "rich.table", "rich.progress",
    "threadpoolctl", "yaml",
)  # fmt: skip
"""What the warm process imports, and the modules of all commands. A package that is not installed is left out."""
_READ_AT_START: Final = ("PYTHON", "OPENBLAS", "OMP_", "MKL_", "NUMBA", "LC_", "LANG", "LD_", "COVERAGE")
"""Beginnings of the names of variables that Python and packages read when they start."""
_READ_BY_FORKS: Final = ("PYTHONPATH", "PYTHONIOENCODING")
"""Variables of Python that a forked process follows."""
_MAX_REQUEST_BYTES: Final = 1 << 24
"""The most bytes of a request: the words of a command, and an environment."""


# ---------------------------------------------------------------------------------------------
# the process that asks


class _Server:
    """The warm process of this process, started when it is first needed."""

    def __init__(self) -> None:
        self.path = ""
        """The socket that it listens to."""
        self.started_by = 0
        """The process that has started it. In a forked process, this object names the same server."""
        self.variables: dict[str, str] = {}
        """The variables that it has read when it started."""
        self._starting = threading.Lock()

    def start(self) -> None:
        folder = tempfile.mkdtemp(prefix="warm-", dir="/tmp" if os.path.isdir("/tmp") else None)  # a short path
        self.path, self.variables = os.path.join(folder, "s"), _read_at_start(os.environ)
        life, ours = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, __file__, self.path], stdin=life, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(life)
        atexit.register(self._stop, ours, folder)
        assert self._process.stdout is not None
        with self._process.stdout as answer:
            assert answer.read() == b"ready\n", "the warm process does not start"

    def _stop(self, life: int, folder: str) -> None:
        if os.getpid() == self.started_by:
            os.close(life)
            self._process.wait()
            with contextlib.suppress(OSError):
                os.unlink(self.path)
                os.rmdir(folder)

    def connect(self) -> socket.socket:
        with self._starting:  # two threads may need the first process at once
            if not self.path:
                self.started_by = os.getpid()
                self.start()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.path)
        return connection


_server: Final = _Server()


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """``subprocess.Popen``, which forks the warm process where it can."""

    _status: socket.socket | None = None

    def _execute_child(self, *arguments: Any) -> None:
        args, executable, preexec, _, passed, cwd, env, _, _, shell, *rest = arguments
        (stdin, _, _, stdout, _, stderr), (_, gid, gids, uid, umask, session, group) = rest[:6], rest[6:13]
        words = [os.fsdecode(word) for word in args] if isinstance(args, (list, tuple)) else []
        special = executable is not None or preexec or passed or shell or gid or gids or uid or group not in (-1, None)
        if special or umask != -1 or not _is_forkable(words, cwd, os.environ if env is None else env):
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        mask = os.umask(0)
        os.umask(mask)
        request = {
            "words": words[1:], "cwd": os.fspath(cwd or os.getcwd()), "umask": mask, "session": bool(session),
            "env": {os.fsdecode(k): os.fsdecode(v) for k, v in (os.environ if env is None else env).items()},
            "server": [_server.path, _server.variables],
        }  # fmt: skip
        self._status = connection = _server.connect()
        request["server"] = [_server.path, _server.variables]
        fds = [own if given == -1 else given for own, given in enumerate((stdin, stdout, stderr))]
        data = json.dumps(request).encode("utf-8", "surrogateescape")
        socket.send_fds(connection, [b"%12d" % len(data)], fds)
        connection.sendall(data)
        self._close_pipe_fds(*rest[:6])  # type: ignore[attr-defined]
        self.pid = int(self._answer())
        self._child_created = True

    def _answer(self) -> str:
        assert self._status is not None
        text = b""
        while not text.endswith(b"\n"):
            byte = self._status.recv(1)
            if not byte:
                return f"-{int(signal.SIGKILL)}"  # the server was killed
            text += byte
        return text.decode()

    def _internal_poll(self, *arguments: Any, **keywords: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(*arguments, **keywords)  # type: ignore[misc]
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._end()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self._status is None:
            return super()._wait(timeout)  # type: ignore[misc]
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def _end(self) -> None:
        assert self._status is not None
        self.returncode = int(self._answer())
        self._status.close()


def run(
    args: Sequence[Any], *, input: Any = None, capture_output: bool = False, timeout: float | None = None,
    check: bool = False, **settings: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """Run a command as ``subprocess.run`` does, in a forked process where that is the same."""
    if input is not None:
        settings["stdin"] = subprocess.PIPE
    if capture_output:
        settings |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = [os.fspath(word) if isinstance(word, os.PathLike) else word for word in args]
    with Popen(words, **settings) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words, out, err)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def _is_forkable(words: Sequence[str], cwd: Any, env: Mapping[Any, Any]) -> bool:
    if not hasattr(os, "fork") or not hasattr(socket, "send_fds") or sys.platform == "darwin" or len(words) < 2:
        return False
    if words[0] != sys.executable or (words[1].startswith("-") and words[1] not in ("-m", "-c")):
        return False
    variables = {os.fsdecode(k): os.fsdecode(v) for k, v in env.items()}
    if _read_at_start(variables) != (_server.variables if _server.path else _read_at_start(os.environ)):
        return False
    places = [os.path.abspath(place) for place in variables.get("PYTHONPATH", "").split(os.pathsep) if place]
    script = os.path.dirname(os.path.abspath(words[1])) if not words[1].startswith("-") else os.path.abspath(cwd or ".")
    own = os.path.dirname(os.path.dirname(os.path.realpath(_irrun())))
    return all(os.path.realpath(p) == own for p in (script, *places) if os.path.isdir(os.path.join(p, "irrun")))


def _irrun() -> str:
    spec = find_spec("irrun")
    assert spec is not None
    return spec.origin or ""


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in env.items() if k.startswith(_READ_AT_START) and k not in _READ_BY_FORKS}


# ---------------------------------------------------------------------------------------------
# the warm process


def serve(path: str) -> dict[str, Any]:
    """Fork a process for each request, until the standard input ends. Return the request in a forked process."""
    children: dict[int, socket.socket] = {}
    wake, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    os.write(1, b"ready\n")
    os.dup2(2, 1)
    while True:
        ready, _, _ = select.select([0, wake, listener], [], [])
        if wake in ready:
            os.read(wake, 4096)
            while ended := _ended():
                pid, status = ended
                with children.pop(pid) as connection, contextlib.suppress(OSError):
                    connection.sendall(b"%d\n" % status)
        if 0 in ready:
            for pid in children:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            os._exit(0)
        if listener in ready:
            connection, _ = listener.accept()
            header, fds, _, _ = socket.recv_fds(connection, 12, 3)
            request = json.loads(_received(connection, int(header)).decode("utf-8", "surrogateescape"))
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                for other in (listener, *children.values()):
                    other.close()
                for fd in (wake, signalled):
                    os.close(fd)
                _become(request, fds)
                connection.sendall(b"%d\n" % os.getpid())
                connection.close()
                return request
            for fd in fds:
                os.close(fd)
            children[pid] = connection


def _received(connection: socket.socket, size: int) -> bytes:
    assert size <= _MAX_REQUEST_BYTES
    data = b""
    while len(data) < size:
        block = connection.recv(size - len(data))
        assert block, "the request ends early"
        data += block
    return data


def _ended() -> tuple[int, int] | None:
    """Return a child that has ended, and its status as ``subprocess`` reports it."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None


def _become(request: dict[str, Any], fds: Sequence[int]) -> None:
    """Take over the streams, the folder, the environment and the settings that a new process would have."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    if request["session"]:
        os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    encoding = encoding or sys.stdout.encoding
    sys.stdin = sys.__stdin__ = open(0, encoding=encoding, closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = open(  # type: ignore[misc]
        1, "w", encoding=encoding, errors=errors or None, closefd=False, buffering=1 if os.isatty(1) else -1
    )
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]
        2, "w", encoding=encoding, errors="backslashreplace", closefd=False, buffering=1
    )
    random.seed()
    numpy.random.seed()
    use_in_engines(*request["server"])


def use_in_engines(path: str, variables: dict[str, str]) -> None:
    """Let the engines of this process fork their harnesses from the warm process at ``path``, too."""
    from irrun.engines import process

    _server.path, _server.variables = path, variables
    process.subprocess = Forking  # type: ignore[assignment]


class Forking:
    """What ``irrun.engines.process`` uses of ``subprocess``, with processes that are forked."""

    PIPE, TimeoutExpired, Popen = subprocess.PIPE, subprocess.TimeoutExpired, Popen


def _preload() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        from irrun.cli import COMMANDS
        from irrun.opdef import all_ops

        for name in COMMANDS:
            importlib.import_module(f"irrun.cli.{name}")
        list(all_ops())


def main() -> None:
    """Serve requests; in a forked process, run what was asked for, and end as Python does."""
    path = sys.argv[1]
    del sys.path[0]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    installed = [place for place in sys.path if place not in given]
    _preload()
    gc.collect()
    gc.freeze()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads: those of BLAS are idle
        request = serve(path)
    _end(_status_of(request["words"], installed))


def _status_of(words: list[str], installed: list[str]) -> int:
    """Run a program and return its exit status."""
    try:
        _run(words, installed)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
            frames = frames.tb_next
        sys.excepthook(type(error), error, frames)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run(words: list[str], installed: list[str]) -> None:
    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.orig_argv = [sys.executable, *words]
    if words[0] == "-m":
        sys.path[:] = [os.getcwd(), *places, *installed]
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.path[:] = ["", *places, *installed]
        sys.argv = ["-c", *words[2:]]
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
    else:
        sys.path[:] = [os.path.dirname(os.path.abspath(words[0])), *places, *installed]
        sys.argv = words
        main = types.ModuleType("__main__")
        main.__file__ = words[0]
        sys.modules["__main__"] = main
        with open(words[0], "rb") as file:
            exec(compile(file.read(), words[0], "exec"), main.__dict__)


def _end(status: int) -> NoReturn:
    """End as Python does, but do not free each object, which takes longer than most programs."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 120
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 255)


if __name__ == "__main__":
    import warm  # so that the programs find this module by its name

    warm.main()

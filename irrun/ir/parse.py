"""Read an IR document: the front door of this folder for everything that needs a model and its problems."""

from __future__ import annotations

import errno
import gc
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from irrun.base.source import Source
from irrun.diagnostics import Diagnostic, ModelError, ReadError, diagnostic
from irrun.ir.reader import Reader
from irrun.ir.recognition import what_to_do_with_folder
from irrun.ir.safe_xml import read_xml
from irrun.model import Model, Shapes
from irrun.model.weights import Weights

__all__ = ["Parsed", "no_garbage", "parse", "read_bytes", "require_file", "unreadable"]


@dataclass(slots=True)
class Parsed:
    """A model, and the problems that were found while its file was read."""

    model: Model
    problems: list[Diagnostic]

    def runnable(self) -> Model:
        """Return the model. Raises ModelError if a problem leaves its meaning open."""
        errors = [problem for problem in self.problems if problem.blocks]
        if errors:
            raise ModelError(errors)
        return self.model

    def reshape(self, shapes: Shapes) -> Parsed:
        """Return the model with other input shapes, as ``Model.reshape``, and the problems of its file.

        Raises FeedError (IR601) if the model has no such input or a shape cannot be parsed.
        """
        return Parsed(self.model.reshape(shapes), self.problems)


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file. Raises ReadError (IR000) if it cannot be read.

    A pipe that ends, such as the ``<(command)`` of a shell, is read as well.
    """
    try:
        if path.is_fifo():
            return _read_pipe(path)
        require_file(path)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


_PATIENCE: Final = 5.0
"""Seconds to wait for a process that writes to a named pipe. Without a limit, irrun would wait for ever for none."""


def _read_pipe(path: Path) -> bytes:
    """Return what is written to a named pipe. Raises OSError if no process has opened it to write in time."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        end = time.monotonic() + _PATIENCE
        start = b""
        try:
            while not start:  # no process has opened the pipe, or one has closed it again without a byte
                if time.monotonic() > end:
                    raise OSError(errno.EPIPE, "no process writes to the pipe")
                time.sleep(0.01)
                start = os.read(descriptor, 1)
        except BlockingIOError:  # a process has opened the pipe, but not written yet
            pass
        os.set_blocking(descriptor, True)
        return start + file.read()


def require_file(path: Path) -> None:
    """Raise OSError unless ``path`` leads to a file. Reading a device may never end, and a pipe cannot be mapped."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise OSError(errno.EINVAL, f"it is {kinds.get(stat.S_IFMT(mode), 'a device')}, not a file")


def unreadable(path: Path, error: OSError | ValueError) -> ReadError:
    """Return the error (IR000) for a file that cannot be read because of ``error``."""
    if url := _URL.match(str(path)):
        address = f"{url[1]}://{str(path)[url.end() :]}"  # a Path has lost a slash
        message = f"cannot read {address}: irrun reads local files"
        return ReadError(diagnostic("IR000", message, file=address, help="download the .xml and the .bin"))
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    help = what_to_do_with_folder(path) if path.is_dir() else "check the path"
    return ReadError(diagnostic("IR000", f"cannot read {path}: {reason}", file=str(path), help=help))


_URL: Final = re.compile(r"(https?|ftp|s3|gs|hf):[/\\]+")
"""The beginning of an address."""


@contextmanager
def no_garbage() -> Iterator[None]:
    """Pause the garbage collector inside a ``with`` block.

    A large model creates many objects, and collecting garbage among them would take a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def parse(source: Source, weights: Weights | None = None) -> Parsed:
    """Read an IR document, and return its model with all problems that leave it readable.

    Raises ReadError (IR001 to IR006) if the document holds no model.
    """
    with no_garbage():
        reader = read_xml(source, Reader(source, weights))
    if reader.model is None:
        raise ReadError(reader.problems.diagnostics())
    return Parsed(reader.model, reader.problems.diagnostics())

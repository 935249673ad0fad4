"""The loop of a harness: read requests, call an engine, and write replies.

``python serve.py ENGINE.py`` serves the class ``Harness`` of a file. This file needs nothing but Python 3.9 and numpy,
because it also runs with interpreters that have no irrun. docs/engines.md describes the protocol.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # the folder of this file must not hide packages: openvino.py lies beside it
    del sys.path[0]

import base64
import importlib.util
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import numpy as np

__all__ = ["Server"]

VERSION = 1
INLINE = 1 << 12
"""The most bytes of a tensor that a message contains itself. A larger tensor is passed in a file."""


class Server:
    """A harness between its requests and its replies. ``make`` starts its engine with options.

    ``requests`` and ``replies`` are JSON lines, and large tensors are passed in files of the folder that ``start`` names.
    """

    def __init__(self, requests: IO[bytes], replies: IO[bytes], make: Any) -> None:
        self.requests, self.replies, self.make = requests, replies, make
        self.harness: Any = None
        self.folder = ""
        self.written = 0

    def serve(self) -> None:
        """Answer requests until ``stop``, or until the other process is gone."""
        for line in self.requests:
            request = json.loads(line)
            try:
                answer = self.answer(**request)
            except ImportError as error:
                self.refuse(error, "unavailable" if self.harness is None else "")
            except MemoryError as error:
                self.refuse(error, "memory")
            except Exception as error:
                self.refuse(error, "")
            else:
                self.reply("ok", answer)
            if request["cmd"] == "stop":
                return
        shutil.rmtree(self.folder, ignore_errors=True)  # the other process was killed and has left it

    def answer(self, cmd: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a request. Raises whatever the engine raises."""
        if cmd == "start":
            self.folder = arguments["folder"]
            self.harness = self.make(arguments["options"])
            return {"name": self.harness.name, "version": VERSION}
        if cmd == "load":
            return self.harness.load(arguments["model"], arguments["inner"])
        if cmd == "infer":
            feeds = [_read(record) for record in arguments["inputs"]]
            taps = [(layer, port) for layer, port in arguments["taps"]]
            return {"outputs": [self.record(*tensor) for tensor in self.harness.infer(feeds, taps, self.show)]}
        if cmd == "reset":
            self.harness.reset()
        return {}

    def show(self, layer: str, port: int, tensor: Any) -> None:
        """Send an inner value."""
        self.reply("value", {"layer": layer, "port": port, "tensor": self.record(*tensor)})

    def record(self, type: str, shape: Sequence[int], contents: Any) -> dict[str, Any]:
        """Return the record of a tensor, whose contents are uint8 [n], bytes, or a list of strings."""
        record: dict[str, Any] = {"type": type, "shape": [int(dim) for dim in shape]}
        if isinstance(contents, list):
            return {**record, "values": contents}
        if len(contents) <= INLINE:
            return {**record, "data": base64.b64encode(contents).decode()}
        path = os.path.join(self.folder, f"{self.written}.bin")
        self.written += 1
        with open(path, "wb") as file:
            file.write(contents)
        return {**record, "file": path}

    def refuse(self, error: Exception, reason: str) -> None:
        self.reply("refused", {"message": str(error) or type(error).__name__, "reason": reason})

    def reply(self, kind: str, content: dict[str, Any]) -> None:
        self.replies.write(json.dumps({kind: content}).encode() + b"\n")
        self.replies.flush()


def _read(record: dict[str, Any]) -> tuple[str, tuple[int, ...], Any]:
    """Return a tensor as type, shape and contents: uint8 [n], or a list of strings."""
    if "values" in record:
        contents: Any = record["values"]
    elif "file" in record:
        contents = np.fromfile(record["file"], np.uint8)
    else:
        contents = np.frombuffer(base64.b64decode(record["data"]), np.uint8)
    return record["type"], tuple(record["shape"]), contents


def main() -> None:
    """Serve the engine of the file that the command line names.

    Requests and replies get file descriptors of their own first, so that nothing that the engine prints mixes with them.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if memory runs out, Linux ends this process and not the one that compares

    def make(options: dict[str, str]) -> Any:
        spec = importlib.util.spec_from_file_location("irrun_harness", sys.argv[1])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.Harness(options)

    Server(requests, replies, make).serve()


if __name__ == "__main__":
    main()

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
import queue
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

import numpy as np

__all__ = ["Server"]

VERSION = 1
INLINE = 1 << 12
"""The most bytes of a tensor that a message contains itself. A larger tensor is passed in a file."""


class Server:
    """A harness between its requests and its replies. ``make`` starts its engine with options.

    ``requests`` and ``replies`` are JSON lines. Large tensors are passed in files of the folder that ``start`` names.
    A harness gets and returns tensors as type, shape and bytes or, with a true attribute ``takes_arrays``, as arrays.
    """

    def __init__(self, requests: Iterable[bytes], replies: IO[bytes], make: Any) -> None:
        self.requests, self.replies, self.make = requests, replies, make
        self.harness: Any = None
        self.folder = self.session = ""
        self.written = 0

    def serve(self) -> None:
        """Answer requests until ``stop``, or until there are no more."""
        for line in self.requests:
            request = json.loads(line)
            try:
                answer = self.answer(**request)
            except ImportError as error:
                self.refuse(error, "unavailable" if self.harness is None else "")
            except NotImplementedError as error:
                self.refuse(error, "unavailable")
            except MemoryError as error:
                self.refuse(error, "memory")
            except Exception as error:
                self.refuse(error, "")
            else:
                self.reply("ok", answer)
            if request["cmd"] == "stop":
                return

    def answer(self, cmd: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a request. Raises whatever the engine raises."""
        if cmd == "start":
            self.folder = arguments["folder"]
            self.session = arguments.get("session", self.folder)
            self.harness = self.make(arguments["options"])
            properties = dict(getattr(self.harness, "properties", {}))
            return {"name": self.harness.name, "version": VERSION, "properties": properties}
        if cmd == "load":
            return self.harness.load(arguments["model"], arguments["inner"])
        if cmd == "infer":
            feeds = self.feeds(arguments["inputs"])
            taps = [(layer, port) for layer, port in arguments["taps"]]
            more = {"repeat": True} if arguments.get("repeat") and getattr(self.harness, "repeats", False) else {}
            outputs = self.harness.infer(feeds, taps, self.show, **more)
            unseen = [list(tap) for tap in getattr(self.harness, "unseen", []) if tap in taps]
            return {"outputs": [self.record(tensor) for tensor in outputs], **({"unseen": unseen} if unseen else {})}
        if cmd == "runtime":
            if not hasattr(self.harness, "runtime"):
                raise NotImplementedError(f"{self.harness.name} shows no runtime graph")
            return self.harness.runtime(self.feeds(arguments["inputs"]), arguments["runs"])
        if cmd == "save":
            if not hasattr(self.harness, "save"):
                raise NotImplementedError(f"{self.harness.name} saves no model")
            self.harness.save(arguments["path"])
            return {"saved": True}
        if cmd == "reset":
            self.harness.reset()
        return {}

    def feeds(self, records: Sequence[Any]) -> list[Any]:
        """Return the inputs in the form that the harness takes."""
        feeds = [_read(record) for record in records]
        return [_array(*feed) for feed in feeds] if self.takes_arrays else feeds

    @property
    def takes_arrays(self) -> bool:
        return getattr(self.harness, "takes_arrays", False)

    def show(self, layer: str, port: int, tensor: Any, copy: int = 0, repeated: bool = False) -> None:
        """Send an inner value of a copy of the model: ``repeated`` if another copy has shown the place as well."""
        more = {"copy": copy, "repeated": repeated} if copy else {}
        self.reply("value", {"layer": layer, "port": port, "tensor": self.record(tensor), **more})

    def record(self, tensor: Any) -> dict[str, Any]:
        """Return the record of a tensor: an array, or type, shape and contents (uint8 [n], bytes, list of strings)."""
        type, shape, contents = _tensor(tensor) if self.takes_arrays else tensor
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


NUMPY = {
    "boolean": "bool", "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
    "i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u4": "uint4", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
"""The dtype of each element type, of numpy or of ml_dtypes, whose arrays of 4-bit types take a byte an element."""


def _array(type: str, shape: tuple[int, ...], contents: Any) -> Any:
    """Return the array of a tensor. Raises KeyError for an element type that no dtype holds."""
    if isinstance(contents, list):
        return np.array(contents, object).reshape(shape)
    name = NUMPY[type]
    if not hasattr(np, name) and name != "bool":
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, name))
    else:
        dtype = np.dtype(name)
    if "4" in type[-2:] and dtype.itemsize == 1:
        contents = np.stack([contents & 15, contents >> 4], -1).reshape(-1)[: int(np.prod(shape))]
        if type == "i4":
            contents = ((contents ^ 8).astype(np.int8) - 8).astype(np.int8)
    return contents.view(dtype).reshape(shape)


def _tensor(array: Any) -> tuple[str, tuple[int, ...], Any]:
    """Return type, shape and contents of an array. Raises TypeError if no element type has its dtype."""
    array = np.asarray(array)
    if array.dtype.kind in "OUT":
        return "string", array.shape, [word.decode() if isinstance(word, bytes) else str(word) for word in array.flat]
    types = [type for type, dtype in NUMPY.items() if dtype == array.dtype.name]
    if not types:
        raise TypeError(f"no element type has dtype {array.dtype.name}")
    contents = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if types[0] in ("f4e2m1", "i4", "u4"):
        codes = np.pad(contents & 15, (0, contents.size % 2)).reshape(-1, 2)
        contents = codes[:, 0] | codes[:, 1] << 4
    return types[0], array.shape, contents


class Requests:
    """The lines of a pipe. At its end, ``abandon`` is called: the process that wrote the requests was killed.

    A thread reads the pipe, so that the end is seen even while an engine computes or hangs.
    """

    def __init__(self, pipe: IO[bytes], abandon: Callable[[], None]) -> None:
        self.lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.abandon = abandon
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self.lines.get()

    def _read(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self.lines.put(line)
        self.abandon()


def main() -> None:
    """Serve the engine of the file that the command line names.

    Requests and replies get file descriptors of their own first, so that what the engine prints does not mix with them.
    """
    pipe, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
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

    server = Server((), replies, make)

    def abandon() -> None:
        shutil.rmtree(server.session, ignore_errors=True)
        os._exit(1)

    server.requests = Requests(pipe, abandon)
    server.serve()
    os._exit(0)  # the thread waits for a line; the interpreter would wait for the thread, or for the engine's


if __name__ == "__main__":
    main()

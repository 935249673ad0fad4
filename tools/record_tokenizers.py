"""Record what OpenVINO gives for the trained tokenizers: ``python -m tools record_tokenizers FOLDER``.

FOLDER is one that ``train.py`` has written. The result is ``recorded.tar.xz``: the models, and for each tokenizer the
texts, ids and decoded texts as JSON. This needs openvino_tokenizers.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from places import TESTS
from tokenizer_texts import batches

RECORDED = TESTS / "extensions" / "recorded.tar.xz"
BATCHES = 72


class Witness:
    """The tokenizer and the detokenizer of one folder, run by OpenVINO."""

    def __init__(self, folder: Path) -> None:
        import openvino as ov
        import openvino_tokenizers  # noqa: F401  (registers the operations)

        core = ov.Core()
        self.tokenizer: Any = core.compile_model(folder / "openvino_tokenizer.xml", "CPU")
        self.detokenizer: Any = core.compile_model(folder / "openvino_detokenizer.xml", "CPU")
        self.inputs = len(self.tokenizer.inputs)
        self.printed = self._printed()

    def encode(self, texts: Sequence[Sequence[str]]) -> list[Any] | None:
        """Return the outputs as arrays; None if OpenVINO fails, or if it cannot be asked.

        It loses rows or crashes if a batch holds no character, and numpy drops a NUL at the end of a string. A byte
        that is not UTF-8 is a surrogate (``surrogateescape``).
        """
        given = [[text.encode("utf-8", "surrogateescape") for text in batch] for batch in texts]
        if not all(any(batch) and all(t[-1:] != b"\0" and is_defined(t) for t in batch) for batch in given):
            return None
        try:
            return list(self.tokenizer(dict(enumerate(given))).values())
        except RuntimeError:
            return None

    def decode(self, ids: np.ndarray) -> list[str] | None:
        """Return the texts of ids, bytes that are not UTF-8 as surrogates; None if OpenVINO fails.

        A row that has a text goes with them, because an output without any byte is memory that is not initialised.
        """
        texts = self._decoded(np.vstack([ids, np.full_like(ids[:1], self.printed)]))
        return None if texts is None else texts[:-1]

    def _printed(self) -> int:
        """Return an id that has a text. Two different texts are not what lies in uninitialised memory."""
        for id in range(1000):
            texts = self._decoded(np.array([[id], [id + 1]]))
            if texts is not None and all(texts) and texts[0] != texts[1]:
                return id
        raise ValueError("no id has a text")

    def _decoded(self, ids: np.ndarray) -> list[str] | None:
        request = self.detokenizer.create_infer_request()
        try:
            request.infer({0: ids})
        except RuntimeError:
            return None
        texts = request.get_output_tensor(0).bytes_data.ravel().tolist()
        return [text.decode("utf-8", "surrogateescape") for text in texts]


def is_defined(data: bytes) -> bool:
    """Return whether the result of PCRE2 is a function of these bytes.

    PCRE2 takes the length of a sequence from its first byte, without a check. It reads on beyond the end of the string,
    and looks up numbers above 10FFFF beyond the end of its tables: the result differs from run to run, and sometimes
    the process dies.
    """
    at = 0
    while at < len(data):
        lead = data[at]
        size = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if lead >= 0xF8 or at + size > len(data):
            return False
        if size == 4 and (lead & 7) << 18 | (data[at + 1] & 0x3F) << 12 > 0x10FFFF:
            return False
        at += size
    return True


def inputs_of(count: int, inputs: int) -> Iterator[list[list[str]]]:
    """Yield batches for each input of a tokenizer."""
    for number, texts in enumerate(batches(count)):
        second = [["a second text"] * len(texts), texts[::-1], ["x y z " * 5] * len(texts)][number % 3]
        yield [texts, second][:inputs]


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def record(folder: Path) -> None:
    with tarfile.open(RECORDED, "w:xz", preset=9) as archive:
        for own in sorted(path.parent for path in folder.glob("*/openvino_tokenizer.xml")):
            witness, rows = Witness(own), []
            for texts in inputs_of(BATCHES, witness.inputs):
                outputs = witness.encode(texts)
                if outputs is not None:
                    ids = outputs[0]
                    decoded = witness.decode(ids) if ids.size else None
                    rows.append({"texts": texts, "outputs": [o.tolist() for o in outputs], "decoded": decoded})
            _add(archive, f"{own.name}.json", json.dumps(rows).encode())
            for file in sorted(own.glob("openvino_*")):
                _add(archive, f"{own.name}/{file.name}", file.read_bytes())
    print(f"{RECORDED}: {RECORDED.stat().st_size:,} bytes")


if __name__ == "__main__":
    record(Path(sys.argv[1]))

"""Record what OpenVINO gives for the trained tokenizers: ``python tests/tokenization/record.py FOLDER``.

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

sys.path.insert(0, str(Path(__file__).parent.parent))

from tokenization.corpus import batches

RECORDED = Path(__file__).parent / "recorded.tar.xz"
BATCHES = 40


class Witness:
    """The tokenizer and the detokenizer of one folder, run by OpenVINO."""

    def __init__(self, folder: Path) -> None:
        import openvino as ov
        import openvino_tokenizers  # noqa: F401  (registers the operations)

        core = ov.Core()
        self.tokenizer: Any = core.compile_model(folder / "openvino_tokenizer.xml", "CPU")
        self.detokenizer: Any = core.compile_model(folder / "openvino_detokenizer.xml", "CPU")
        self.inputs = len(self.tokenizer.inputs)

    def encode(self, texts: Sequence[Sequence[str | bytes]]) -> list[Any] | None:
        """Return the outputs as arrays; None if OpenVINO fails, or if it cannot be asked.

        It loses rows or crashes if a batch holds no character, and numpy drops a NUL at the end of a string.
        """
        if not all(any(batch) and all(t[-1:] not in ("\0", b"\0") for t in batch) for batch in texts):
            return None
        try:
            return list(self.tokenizer(dict(enumerate(map(list, texts)))).values())
        except RuntimeError:
            return None

    def decode(self, ids: Any) -> list[str] | None:
        """Return the texts of ids, bytes that are not UTF-8 as surrogates; None if OpenVINO fails."""
        try:
            texts = self.detokenizer({0: ids})[0].ravel().tolist()
        except RuntimeError:
            return None
        found = [text if isinstance(text, str) else text.decode("utf-8", "surrogateescape") for text in texts]
        return None if not all(found) else found  # the memory of an output without any byte is not initialised


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

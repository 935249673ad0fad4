"""OpenVINO's answers to the tables in ``tests/ops``, stored so that a run of the tests does not compute them again.

`python tests/answers.py` asks OpenVINO for every case and writes ``answers.xz``. An answer belongs to the contents of
a case and to a version of OpenVINO: a changed case, or another version, is computed anew in each run until then.
The lane ``slow`` compares every stored answer with the OpenVINO at hand.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.types import ELEMENT_TYPES, ElementType

if TYPE_CHECKING:
    from kit import Case

FILE = Path(__file__).with_name("answers.xz")
# the file: one line of JSON, {"openvino": version, "answers": {key: [[element type, shape], …]}}, then the elements of
# all these tensors in this order; strings are JSON lists in the line of JSON, as a third item


class Answers:
    """The stored answers; empty where they were made by another version of OpenVINO than the one installed."""

    def get(self, case: Case) -> list[np.ndarray] | None:
        """The outputs of OpenVINO for a case, or None where they are not stored."""
        return self._stored.get(key(case))

    def __contains__(self, case: Case) -> bool:
        return key(case) in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    @cached_property
    def _stored(self) -> Mapping[str, list[np.ndarray]]:
        head, _, elements = lzma.decompress(FILE.read_bytes()).partition(b"\n")
        stored = json.loads(head)
        if stored["openvino"] != version("openvino"):
            return {}
        answers, offset = {}, 0
        for name, outputs in stored["answers"].items():
            answers[name] = []
            for type, shape, *strings in outputs:
                if strings:
                    answers[name].append(np.array(strings[0], np.str_).reshape(shape))
                    continue
                dtype, count = ELEMENT_TYPES[type].dtype, int(np.prod(shape))
                answers[name].append(np.frombuffer(elements, dtype, count, offset).reshape(shape))
                offset += count * dtype.itemsize
        return answers


def key(case: Case) -> str:
    """A digest of all that decides what OpenVINO answers."""
    digest = hashlib.sha256(repr((case.op, sorted(case.attributes.items()), case.constants, case.how)).encode())
    for array in case.inputs:
        digest.update(repr((array.dtype, array.shape)).encode())
        digest.update(repr(array.tolist()).encode() if array.dtype.kind in "UO" else array.tobytes())
    return digest.hexdigest()[:24]


def write(answers: Mapping[str, Sequence[np.ndarray]]) -> None:
    """Replace the stored answers; the same answers give the same bytes."""
    head: dict[str, list[Any]] = {}
    elements = []
    for name, outputs in sorted(answers.items()):
        head[name] = []
        for output in outputs:
            element_type = ElementType.of(output.dtype)
            assert element_type is not None
            strings = [output.tolist()] if element_type.name == "string" else []
            head[name].append([element_type.name, output.shape, *strings])
            if not strings:
                elements.append(output.tobytes())
    line = json.dumps({"openvino": version("openvino"), "answers": head}, separators=(",", ":"))
    FILE.write_bytes(lzma.compress(line.encode() + b"\n" + b"".join(elements), preset=9))


def main() -> None:
    import kit
    from oracle import Oracle
    from tables import cases

    oracle, answers = Oracle(), {}
    for case in cases():
        if case.expected is None:
            answers[key(case)] = kit.ask(case, oracle)
    write(answers)
    print(f"{len(answers):,} answers of OpenVINO {version('openvino')}, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

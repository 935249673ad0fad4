"""The conformance suite: models with inputs and verdicts in one file that any language reads.

The file is JSON lines, compressed with xz. docs/conformance.md describes each field. ``read_suite`` returns its
contents, and ``write_suite`` writes the same bytes for the same contents.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.diagnostics import ReadError, diagnostic
from irrun.engines.tensors import encoded
from irrun.engines.values import read_tensor
from irrun.files import write_file, write_pair
from irrun.types import ELEMENT_TYPES

__all__ = [
    "BASES", "CONTENT", "INTERNAL", "SUITE", "Case", "Operation", "Step", "Suite", "read_suite", "tensor_record",
    "write_suite",
]  # fmt: skip

FORMAT: Final = "OpenVINO IR conformance suite"
VERSION: Final = 2
"""The version of the format. It changes when a reader of the old version would misunderstand the file."""
CONTENT: Final = "2026.11"
"""The version of the contents. It changes with any verdict; ``docs/conformance-changes.md`` says which."""
LICENCE: Final = "Apache-2.0"
SUITE: Final = Path(__file__).with_name("suite.jsonl.xz")
"""The suite that is part of irrun."""
INTERNAL: Final = Path(__file__).with_name("internal.jsonl.xz")
"""The suite of OpenVINO's internal operations, ``internal`` for ``read_suite``. Their pages have no versions."""

VERDICTS: Final = ("values", "refuse", "open")
BASES: Final = ("page", "engine")
"""What expected values come from: from the page alone, or from an engine with which irrun agrees."""
DECLARATIONS: Final = ("static", "dims", "rank")
"""How the inputs of a model are declared: with all dims, or with unknown dims or intervals. ``rank`` is a model with an
input of unknown rank, or with another tensor for which OpenVINO infers no rank."""
_TYPE_WORDS: Final = {*ELEMENT_TYPES, "bool", "bfloat16"} | {
    f"{name}{bits}" for name in ("float", "int", "uint") for bits in (8, 16, 32, 64)
}
"""The words in names of rows that name an element type."""


@dataclass(frozen=True, slots=True)
class Step:
    """One inference: its inputs and its expected outputs, as records of tensors in the order of the model.

    With ``reset``, the variables of the model have their initial values again before it. ``outputs`` is empty in a case
    without expected values. ``seen`` are then the outputs that engines gave, on which no verdict rests.
    """

    inputs: Sequence[Mapping[str, Any]] = ()
    outputs: Sequence[Mapping[str, Any]] = ()
    reset: bool = False
    seen: Sequence[Mapping[str, Any]] = ()

    def feeds(self) -> list[np.ndarray]:
        """Return the arrays of the inputs."""
        return [read_tensor(record) for record in self.inputs]

    def expected(self) -> list[np.ndarray]:
        """Return the arrays of the expected outputs."""
        return [read_tensor(record) for record in self.outputs]


_REMARKS: Final = ("source", "basis", "sentence", "note", "observed")
"""The fields of a case on which no judgement rests."""


@dataclass(frozen=True)
class Case:
    """A model and what an engine must do with it.

    ``name`` is ``OPERATION/TABLE/ROW`` or ``OPERATION/TABLE/ROW/DECLARATION``. ``clause`` is the label of the
    constraint that the model breaks (``C3``), the code of a general rule (``IR301``), or empty. ``types`` are the
    element types of the operation's inputs and outputs. ``verdict`` is one of ``VERDICTS``. ``sentence`` quotes the
    page of the operation: what the verdict rests on, or what leaves it open. ``source`` says how expected values were
    made, and ``basis``, one of ``BASES``, what they come from. ``observed`` records what engines do, by engine. ``xml``
    is the text of the IR and ``bin`` its weights, empty if it has none.
    """

    name: str
    operation: str
    declaration: str
    verdict: str
    source: str
    xml: str
    bin: bytes = b""
    clause: str = ""
    types: Sequence[str] = ()
    steps: Sequence[Step] = ()
    rtol: float = 0.0
    atol: float = 0.0
    observed: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    sentence: str = ""
    basis: str = "page"

    @cached_property
    def row(self) -> str:
        """The row that the case belongs to: cases of one row differ in declarations and element types alone."""
        origin = re.search(r"carried over from (.+)$", self.source)
        if origin is not None:
            id = origin[1]
        else:
            parts = self.name.split("/")[2:]
            id = "/".join(parts[:-1] if parts[-1].removesuffix("-fed") in DECLARATIONS else parts)
        kept = [word for word in re.split(r"[-~]", id) if word not in _TYPE_WORDS]
        return f"{self.operation}/{'-'.join(kept)}"

    @cached_property
    def digest(self) -> str:
        """Digest of everything that the judgement of the case rests on."""
        record = {key: value for key, value in to_record(self).items() if key not in _REMARKS}
        return hashlib.sha256(_line(record)).hexdigest()[:16]

    def write(self, folder: Path) -> Path:
        """Write the model to ``folder`` as ``model.xml`` and ``model.bin``, and return the path of the former."""
        path = folder / "model.xml"
        write_pair(path, self.xml.encode(), self.bin)
        return path


@dataclass(frozen=True, slots=True)
class Operation:
    """A version of an operation: its page in the specification, the commit of the page that sentences are quoted from,
    the element types that its inputs may have, and what each of its clauses demands, by label."""

    page: str
    types: Sequence[str]
    clauses: Mapping[str, str]
    commit: str = ""


@dataclass(frozen=True)
class Suite:
    """All cases, sorted by name, the operations by name (``Tile-1``), and the general rules by code.

    ``content`` is the version of the contents.
    """

    operations: Mapping[str, Operation]
    rules: Mapping[str, str]
    cases: Sequence[Case]
    content: str = CONTENT

    @cached_property
    def digest(self) -> str:
        """Digest of the contents. Two suites with the same digest have the same cases."""
        digest = hashlib.sha256()
        for line in _lines(self):
            digest.update(line)
        return digest.hexdigest()[:16]

    def demand(self, case: Case) -> str:
        """Return what the clause or rule of a case demands, or an empty text."""
        clauses = self.operations[case.operation].clauses
        return clauses.get(case.clause) or self.rules.get(case.clause, "")


def tensor_record(array: np.ndarray, type: str | None = None) -> dict[str, Any]:
    """Return the record of a tensor, as the protocol of harnesses has it. ``type`` is its element type in the IR."""
    name, shape, data = encoded(array, type)
    contents = {"values": data} if isinstance(data, list) else {"data": base64.b64encode(data).decode("ascii")}
    return {"type": name, "shape": list(shape), **contents}


def write_suite(suite: Suite, path: str | os.PathLike[str]) -> int:
    """Write a suite to a file, as a whole or not at all, and return its size in bytes."""
    data = lzma.compress(b"".join(_lines(suite)), preset=9)
    write_file(path, data)
    return len(data)


def read_suite(path: str | os.PathLike[str] = SUITE) -> Suite:
    """Return the suite in a file, or that of internal operations for ``internal``.

    Raises ReadError (IR000) if it cannot be read or has another version.
    """
    try:
        lines = lzma.decompress((INTERNAL if os.fspath(path) == "internal" else Path(path)).read_bytes()).split(b"\n")
        head = json.loads(lines[0])
        if head["format"] != FORMAT or head["version"] != VERSION:
            raise ValueError(f"it is no suite of version {VERSION}")
        cases = [from_record(json.loads(line)) for line in lines[1:-1]]
        if len(cases) != head["cases"]:
            raise ValueError(f"it has {len(cases)} of {head['cases']} cases")
        operations = {
            name: Operation(o["page"], o["types"], o["clauses"], o["commit"]) for name, o in head["operations"].items()
        }
        return Suite(operations, head["rules"], cases, head.get("content", ""))
    except OSError as error:
        raise _unreadable(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, lzma.LZMAError, RecursionError) as error:
        raise _unreadable(path, f"it is damaged, or no suite: {error}") from None


def _unreadable(path: str | os.PathLike[str], why: str) -> ReadError:
    message = f"cannot read the suite: {why}"
    return ReadError(diagnostic("IR000", message, file=os.fspath(path)))


def _lines(suite: Suite) -> list[bytes]:
    operations = {
        name: {**asdict(operation), "types": list(operation.types)} for name, operation in suite.operations.items()
    }
    head = {
        "format": FORMAT,
        "version": VERSION,
        "content": suite.content,
        "licence": LICENCE,
        "cases": len(suite.cases),
        "operations": operations,
        "rules": suite.rules,
    }
    return [_line(head), *(_line(to_record(case)) for case in suite.cases)]


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"


def to_record(case: Case) -> dict[str, Any]:
    """Return the object of JSON that the line of a case has. Fields that are empty are left out."""
    steps = [
        {
            "inputs": list(step.inputs),
            "outputs": list(step.outputs),
            **({"reset": True} if step.reset else {}),
            **({"seen": list(step.seen)} if step.seen else {}),
        }
        for step in case.steps
    ]
    fields = {
        "name": case.name,
        "operation": case.operation,
        "clause": case.clause,
        "types": list(case.types),
        "declaration": case.declaration,
        "verdict": case.verdict,
        "sentence": case.sentence,
        "source": case.source,
        "basis": case.basis,
        "rtol": case.rtol,
        "atol": case.atol,
        "note": case.note,
        "observed": dict(case.observed),
        "xml": case.xml,
        "bin": base64.b64encode(case.bin).decode("ascii"),
        "steps": steps,
    }
    return {key: value for key, value in fields.items() if value}


def from_record(record: Mapping[str, Any]) -> Case:
    """Return the case of a line. Raises KeyError, TypeError or ValueError if a field is missing, unknown or wrong."""
    if record["verdict"] not in VERDICTS:
        raise ValueError(f"there is no verdict {record['verdict']!r}")
    steps = [Step(s["inputs"], s["outputs"], s.get("reset", False), s.get("seen", ())) for s in record.get("steps", ())]
    return Case(**{**record, "bin": base64.b64decode(record.get("bin", "")), "steps": steps})

"""The documents that the mutation fuzzer begins with: files of the repository, small models and pages."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from irrun import build as b
from irrun.diagnostics import IrrunError
from irrun.growing import Grower
from irrun.ir.pages import has_examples
from irrun.model import Model
from irrun.opdef import resolve
from irrun.types import ElementType
from kit import Case, Values
from places import ROOT
from tables import FOLDER, rows

__all__ = ["Document", "corpus"]

_LARGEST = 40_000
"""The most bytes of a file that is mutated: larger files take longer and show nothing else."""
_LARGEST_INPUTS = 1 << 12
"""The most bytes of the inputs of a single operation."""
_ROWS = 2
"""The most rows of the tables that are taken for each version of an operation."""
_GRAPHS = 80


@dataclass(frozen=True, slots=True)
class Document:
    """A file to mutate. ``suffix`` is that of its name, ``bin`` the file beside it, and ``origin`` names its source."""

    origin: str
    suffix: str
    text: bytes
    bin: bytes | None = None


def corpus() -> list[Document]:
    """Return all documents, in the same order each time."""
    return [*_files(), *_operations(), *_graphs(), *_pages()]


def _files() -> Iterator[Document]:
    for folder in ("samples", "samples/pytest_project/models", "tests/checking/invalid", "irrun/departures"):
        for path in sorted((ROOT / folder).glob("*.xml")):
            if path.stat().st_size <= _LARGEST:
                weights = path.with_suffix(".bin")
                data = weights.read_bytes() if weights.exists() else None
                yield Document(f"{folder}/{path.name}", ".xml", path.read_bytes(), data)


def _graphs() -> Iterator[Document]:
    grower = Grower(1)
    for number in range(_GRAPHS):
        graph = grower.grow_chain(number, layers=4)
        yield _document(f"graph {number}", graph.model(dynamic=True))


def _document(origin: str, model: Model) -> Document:
    data = None if model.weights is None else model.weights.data.tobytes()
    return Document(origin, ".xml", model.source.data, data)


def _operations() -> Iterator[Document]:
    """Yield models of one operation, from the tables of ``tests/ops``: static ones, and ones with open dims."""
    taken: dict[str, int] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        for row in rows(path):
            if not isinstance(row, (Case, Values)):
                continue
            arrays = [None if array is None else np.asarray(array) for array in row.inputs]
            name, count = row.op, taken.get(row.op, 0)
            if count >= _ROWS or sum(a.nbytes for a in arrays if a is not None) > _LARGEST_INPUTS:
                continue
            for dynamic in (False, True):
                try:
                    model = _single(row, arrays, dynamic)
                except (IrrunError, TypeError, ValueError, AttributeError):  # the row names an attribute otherwise
                    continue
                taken[name] = count + 1
                yield _document(f"{name} {row.id}{' dynamic' if dynamic else ''}", model)


def _single(row: Case | Values, arrays: list[np.ndarray | None], dynamic: bool) -> Model:
    """Return the model of a row. Small integers, which may be shapes and axes, are constants unless it is dynamic."""
    type, opset = row.op.split("-")
    inputs: list[Any] = []
    for array in arrays:
        element_type = None if array is None else ElementType.of(array.dtype)
        if array is None or element_type is None:
            inputs.append(None)
        elif array.ndim < 2 and array.dtype.kind in "iu" and not dynamic:
            inputs.append(b.constant(array))
        else:
            shape = [-1] * array.ndim if dynamic else list(array.shape)
            inputs.append(b.parameter(shape, element_type.name))
    cls = resolve(type, int(opset))
    spellings = {} if cls is None else {s: k for k, a in cls.attributes.items() for s in (a.name, *a.aliases)}
    attributes = {spellings.get(key, key): value for key, value in row.attributes.items()}
    node = getattr(b, type)(*inputs, opset=int(opset), **attributes)
    return b.model(list(node))


def _pages() -> Iterator[Document]:
    """Yield the pages of the repository with examples, in Markdown and in the other languages of markup."""
    for path in sorted([*(ROOT / "irrun/explanations").glob("*.md"), *(ROOT / "docs").glob("*.md")]):
        text = path.read_text("utf-8")
        if len(text) > _LARGEST or not has_examples(path.name, text):
            continue
        yield Document(path.name, ".md", text.encode())
        blocks = [block.partition("\n")[2] for block in text.split("```")[1::2]]
        pre = "\n".join(f"<p>An example:</p>\n<pre>{html.escape(block)}</pre>" for block in blocks)
        yield Document(f"{path.name} as HTML", ".html", f"<html><body>\n{pre}\n</body></html>\n".encode())
        indented = ["\n".join(f"   {line}" for line in block.split("\n")) for block in blocks]
        rst = "\n\n".join(f".. code-block:: xml\n\n{block}" for block in indented)
        yield Document(f"{path.name} as RST", ".rst", f"Title\n=====\n\n{rst}\n".encode())
        yield Document(f"{path.name} as text", ".txt", ("An example.\n\n" + "\n\n".join(blocks)).encode())

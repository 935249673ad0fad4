"""Bare ``<layer>`` examples, as the specification prints them, read as one-layer models.

A page may hold several, amid prose. They have no ``<net>``, no edges, often no ids, a literal `` ... `` in the
tag, and the contents of a shape input only in a comment. Every input port becomes a Parameter and every
output port a Result, named by position; what is irregular is a warning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.diagnostics import Diagnostic, ReadError, diagnostic
from irrun.model import Edge, Layer, Model, Port
from irrun.parse import Parsed, Reader
from irrun.safe_xml import read_xml
from irrun.source import Source, Span
from irrun.types import ELEMENT_TYPES

__all__ = ["has_fragments", "read_fragments"]

_TAG: Final = re.compile(r"<layer\b[^<>]*?(/?)>|</layer\s*>", re.IGNORECASE)
_FIRST: Final = re.compile(r"<!--.*?(?:-->|\Z)|<\s*([\w.-]+)", re.DOTALL)
_ELLIPSIS: Final = re.compile(r"(?<=\s)(?:\.\.\.|…)(?=[\s/>])")


def has_fragments(text: str) -> bool:
    """Whether a document is not IR itself, but holds ``<layer>`` examples."""
    first = next((found[1] for found in _FIRST.finditer(text) if found[1]), "net")
    layer = re.search(r"<(layers?)\b", text, re.IGNORECASE)
    if first.lower() == "net" or layer is None or layer[1].lower() == "layers":  # the last: IR with a broken root
        return False
    return next(_examples(text), None) is not None


def read_fragments(path: str, data: bytes) -> list[Parsed | ReadError]:
    """Each example of a document in its order: read, or why it cannot be."""
    text = data.decode("utf-8", "replace")
    found: list[Parsed | ReadError] = []
    for start, end in _examples(text):
        line = text.count("\n", 0, start) + 1
        indent = start - (text.rfind("\n", 0, start) + 1)
        example = " " * indent + text[start:end]  # so that columns are those of the document
        try:
            found.append(_read(path, example, line, data))
        except ReadError as error:
            found.append(error)
    return found


def _examples(text: str) -> Iterator[tuple[int, int]]:
    """Where each outermost ``<layer> … </layer>`` begins and ends."""
    depth, start = 0, -1
    for tag in _TAG.finditer(text):
        if tag[0].startswith("</"):
            depth = max(depth - 1, 0)
        else:
            if depth == 0:
                start = tag.start()
            depth += not tag[1]
        if depth == 0 and start >= 0:
            yield start, tag.end()
            start = -1
    if start >= 0:  # never closed: the parser tells
        yield start, len(text)


def _read(path: str, example: str, line: int, whole: bytes) -> Parsed:
    problems: list[Diagnostic] = []

    def blank(tag: re.Match[str]) -> str:
        return _ELLIPSIS.sub(lambda dots: " " * len(dots[0]), tag[0])

    cleaned = _TAG.sub(blank, example)
    source = Source(path, cleaned.encode(), line, whole)
    if cleaned != example:
        at = next(i for i, (a, b) in enumerate(zip(example, cleaned)) if a != b)
        row = example.count("\n", 0, at)
        column = at - (example.rfind("\n", 0, at) + 1)
        span = Span(line + row, column + 1, column + 4)
        message = 'the tag holds a literal "...", which is passed over'
        problems.append(Diagnostic("IR008", "warning", message, file=path, span=span, source=source))
    reader = read_xml(source, Reader(source))
    problems += reader.problems()
    if reader.layer is None:
        raise ReadError(problems)
    layer = _renumbered(reader.layer, source, problems)
    return Parsed(_model(source, layer, _contents(source, layer, reader.comments, problems)), problems)


def _renumbered(layer: Layer, source: Source, problems: list[Diagnostic]) -> Layer:
    """The layer with a name, and its ports numbered by position where an id is missing or used twice."""
    ports = (*layer.inputs, *layer.outputs)
    seen: set[int] = set()
    for position, port in enumerate(ports):
        if port.id in seen and port.id >= 0:
            message = f"port id {port.id} is used twice; ports are taken by position, this one is {position}"
            problems.append(diagnostic("IR008", message, source=source, node=port.node, attribute="id"))
        seen.add(port.id)
    if len(seen) < len(ports) or -1 in seen:
        ports = tuple(replace(port, id=position) for position, port in enumerate(ports))
    count = len(layer.inputs)
    return replace(layer, name=layer.name or layer.type, inputs=ports[:count], outputs=ports[count:])


def _contents(
    source: Source, layer: Layer, comments: list[tuple[int, str]], problems: list[Diagnostic]
) -> dict[int, tuple[np.ndarray, int]]:
    """What comments within the input ports say that they hold: by position, with the comment's line."""
    found: dict[int, tuple[np.ndarray, int]] = {}
    for position, port in enumerate(layer.inputs):
        for comment in (text for node, text in comments if node == port.node):
            lists = [_numbers(inside) for inside in re.findall(r"\[([^\[\]]*)\]", comment)]
            known = [numbers for numbers in lists if numbers is not None]
            if not known or position in found:
                continue
            line = _line_of(source, port, comment)
            shape = port.shape.static if port.shape is not None else None
            fitting = [n for n in known if shape is None or n.size == math.prod(shape)]
            if not fitting:
                message = f"the comment lists {known[0].size} numbers, but port {position} has shape {port.shape}"
                problems.append(
                    Diagnostic("IR008", "warning", message, file=source.path, span=Span(line, 1, 2), source=source)
                )
                continue
            array = fitting[0] if shape is None else fitting[0].reshape(shape)
            found[position] = (array.astype(port.type.dtype) if port.type else array, line)
    return found


def _line_of(source: Source, port: Port, comment: str) -> int:
    line = source.span(port.node).line
    while comment.strip().split("\n")[0] not in source.line(line):
        line += 1
    return line


def _numbers(text: str) -> np.ndarray | None:
    """``1, 16, 50, 50`` as an int64 array, or float32 where there are fractions; None for anything else."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    try:
        return np.array([int(part) for part in parts], np.int64)
    except ValueError:
        try:
            return np.array([float(part) for part in parts], np.float32)
        except ValueError:
            return None


def _model(source: Source, layer: Layer, contents: dict[int, tuple[np.ndarray, int]]) -> Model:
    layers = {0: layer}
    edges: list[Edge] = []
    feeds: dict[int, tuple[tuple[int, int] | None, ...]] = {}
    for position, port in enumerate(layer.inputs):
        id = 1 + position
        element_type = port.type or ELEMENT_TYPES["dynamic"]
        shape = "..." if port.shape is None else str(port.shape).strip("[]")
        attributes = {"element_type": element_type.name, "shape": shape}
        output = Port(0, port.type, port.shape, (), port.node)
        layers[id] = Layer(id, str(position), "Parameter", "opset1", attributes, (), (output,), port.node)
        feeds[id] = ()
        edges.append(Edge(id, 0, 0, port.id, port.node))
    feeds[0] = tuple((1 + position, 0) for position in range(len(layer.inputs)))
    for position, port in enumerate(layer.outputs):
        id = 1 + len(layer.inputs) + position
        result = Port(0, port.type, port.shape, (), port.node)
        layers[id] = Layer(id, str(position), "Result", "opset1", {}, (result,), (), port.node)
        feeds[id] = ((0, position),)
        edges.append(Edge(0, port.id, id, 0, port.node))
    held = {1 + position: said for position, said in contents.items()}
    return Model(layer.name, 0, layers, tuple(edges), feeds, source, None, held)

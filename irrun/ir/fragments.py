"""Read ``<layer>`` examples, as the specification prints them, as models of one layer.

An example has no ``<net>`` and no edges, and often no ids. A literal ``...`` may stand for omitted parts, and a dim may
be a name such as ``N`` or ``H_out``. The contents of a shape input may be in a comment only.

Each input port becomes a Parameter and each output port a Result, named by position. Irregularities are warnings. For
an example without ``version``, the page decides the version of the operation.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.base.source import Source
from irrun.diagnostics import Diagnostic, ReadError, diagnostic
from irrun.inference.bind import ALIASES
from irrun.ir.pages import Example, examples, is_document
from irrun.ir.parse import Parsed
from irrun.ir.reader import Reader
from irrun.ir.safe_xml import read_xml
from irrun.model import Edge, Layer, Model, Port
from irrun.opdef import find, is_custom
from irrun.types import ELEMENT_TYPES

__all__ = ["read_fragments"]


def read_fragments(path: str, data: bytes) -> list[Parsed | ReadError]:
    """Read each example of a document, in order. An example that cannot be read gives its ReadError."""
    text = _text(data)
    named = _named(text)
    models: list[Parsed | ReadError] = []
    for example in examples(path, text):
        try:
            models.append(_Fragment(path, example, data, named).read())
        except ReadError as error:
            models.append(error)
    return models


def _text(data: bytes) -> str:
    """Return a document as text in which every line ends with a line feed."""
    return re.sub(r"\r\n?", "\n", data.decode("utf-8", "replace"))


def _named(page: str) -> dict[str, int]:
    """Return the version in the first ``Broadcast-3`` on a page, for each name that the page versions in this way."""
    named: dict[str, int] = {}
    for name in _NAMED.finditer(page):
        named.setdefault(name[1], int(name[2]))
    return named


_NAMED: Final = re.compile(r"\b(\w+)-(?=(\d{1,3})\b)")
_DOTS: Final = r"(?:\.\.\.|…)"
_IN_TAG: Final = re.compile(r"<[a-zA-Z][^<>]*>")
_TAG_DOTS: Final = re.compile(rf"(?<=[\s\"']){_DOTS}(?=[\s/>])")
_LEFT_OUT: Final = re.compile(rf">\s*{_DOTS}\s*<")
_PORT: Final = re.compile(r"<port\b[^<>]*(?<!/)>(?:(?!</?port\b).)*</port\s*>", re.DOTALL | re.IGNORECASE)
_DIM: Final = re.compile(r"(?<=<dim>)[^<>]*(?=</dim\s*>)", re.IGNORECASE)
_ANY_DIM: Final = re.compile(rf"<dim>[^<>]*</dim\s*>|{_DOTS}", re.IGNORECASE)
_TERM: Final = re.compile(r"[A-Za-z_]\w*|\d+\b|[-+*/(),?\s]")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def _blanks(match: re.Match[str]) -> str:
    """Return spaces in place of a match, with its line breaks kept, so that positions do not change."""
    return re.sub(r"[^\n]", " ", match[0])


def _dims(port: re.Match[str]) -> str:
    """Return a port with ``?`` for each symbolic dim, or without dims if ``...`` stands for some of them."""
    without_comments = _COMMENT.sub("", port[0])
    if re.search(rf">\s*{_DOTS}\s*<", without_comments):
        return _ANY_DIM.sub(_blanks, port[0])
    return _DIM.sub(lambda dim: "?".ljust(len(dim[0])) if _is_symbolic(dim[0]) else dim[0], port[0])


def _is_symbolic(dim: str) -> bool:
    """Return whether a dim is a name or an expression with a name: ``N``, ``2 * H_out``."""
    return re.search("[A-Za-z_]", dim) is not None and len(dim) < 200 and not _TERM.sub("", dim)


_OF_PARTS: Final = ("IR007", "IR103", "IR104", "IR105", "IR112")
"""Diagnostics that do not apply to an example that leaves out ports, entries or other parts."""


class _Fragment:
    """An example while it is being read."""

    def __init__(self, path: str, example: Example, whole: bytes, named: dict[str, int]) -> None:
        tags = _IN_TAG.sub(lambda tag: _TAG_DOTS.sub(_blanks, tag[0]), example.text)
        cleaned = _PORT.sub(_dims, tags)
        self.source = Source(path, cleaned.encode(), example.line, whole, example.columns)
        self.named = named
        self.problems: list[Diagnostic] = []
        self.doubtful: set[int] = set()
        """Positions of inputs whose comment and dims contradict each other. Neither of them is used."""
        shown = _COMMENT.sub("", cleaned)
        self.abbreviated = _LEFT_OUT.search(shown) is not None or re.search(r"<port\b", shown, re.I) is None
        if tags != example.text and not is_document(path):  # in a page of documentation, dots are usual
            at = next(i for i, (a, b) in enumerate(zip(example.text, tags)) if a != b)
            line = example.text.count("\n", 0, at) + 1
            column = at - (example.text.rfind("\n", 0, at) + 1)
            self._warn('the tag holds a literal "...", which irrun ignores', line, column + 1, column + 4)

    def _warn(self, message: str, line: int, column: int, end: int) -> None:
        span = self.source.stretch(line, column, end)
        self.problems.append(diagnostic("IR008", message, file=self.source.path, span=span, source=self.source))

    def read(self) -> Parsed:
        """Return the model of the example. Raises ReadError if it is not well-formed or has no usable layer."""
        reader = read_xml(self.source, Reader(self.source))
        # symbolic dims are read as ?
        self.problems += (p for p in reader.problems.diagnostics() if p.code != "IR407")
        if self.abbreviated:
            self.problems = [p for p in self.problems if p.code not in _OF_PARTS]
        if reader.layer is None:
            raise ReadError(self.problems)
        layer = self._renumbered(reader.layer)
        contents = self._contents(layer, reader.comments)
        return Parsed(self._model(layer, contents), self.problems)

    def _renumbered(self, layer: Layer) -> Layer:
        """Return the layer with a name and a version.

        If a port id is missing or used twice, all ports are numbered by position.
        """
        ports = (*layer.inputs, *layer.outputs)
        seen: set[int] = set()
        for position, port in enumerate(ports):
            if port.id in seen and port.id >= 0:
                message = f"port id {port.id} is used twice; irrun takes ports by position, this one as {position}"
                self.problems.append(diagnostic("IR008", message, source=self.source, node=port.node, attribute="id"))
            seen.add(port.id)
        if len(seen) < len(ports) or -1 in seen:
            ports = tuple(replace(port, id=position) for position, port in enumerate(ports))
        count = len(layer.inputs)
        return replace(
            layer, name=layer.name or layer.type, version=layer.version or self._version(layer.type),
            inputs=ports[:count], outputs=ports[count:],
        )  # fmt: skip

    def _version(self, type: str) -> str | None:
        """Return the opset of the operation that the page describes, or None for the newest.

        The page names it as ``Broadcast-3``; the first such name counts. An operation of an extension has no opset.
        """
        versions = find(ALIASES.get(type.lower(), type))
        if versions and all(map(is_custom, versions.values())):
            return "extension"
        if type not in self.named or not versions:
            return None
        # some operations first appear in a later opset than the number in their name
        return f"opset{max((v for v in versions if v <= self.named[type]), default=min(versions))}"

    def _contents(self, layer: Layer, comments: list[tuple[int, str]]) -> dict[int, tuple[np.ndarray, int]]:
        """Return the contents that comments within input ports list, by position, with the line of each comment."""
        contents: dict[int, tuple[np.ndarray, int]] = {}
        by_port: dict[int, list[str]] = {}
        for node, text in comments:
            by_port.setdefault(node, []).append(text)
        for position, port in enumerate(layer.inputs):
            for comment in by_port.get(port.node, ()):
                known = _numbers(comment, scalar=port.shape is None or port.shape.static in ((), (1,)))
                if not known or position in contents:
                    continue
                line, column, end = self._place_of(port, comment)
                shape = port.shape.static if port.shape is not None else None
                fitting = [n for n in known if shape is None or n.size == math.prod(shape)]
                if fitting:
                    array = fitting[0] if shape is None else fitting[0].reshape(shape)
                    array = array.astype(port.type.dtype) if port.type else array
                    contents[position] = (array, self.source.first_line - 1 + line)
                elif shape is not None and len(shape) == 1 and "shape" not in comment:
                    message = f"the comment lists {known[0].size} numbers, but port {position} has shape {port.shape}"
                    self._warn(message, line, column, end)
                    self.doubtful.add(position)
        return contents

    def _place_of(self, port: Port, comment: str) -> tuple[int, int, int]:
        """Return the line and the columns of the first line of a comment within a port.

        They count from 1 within the example, and the second column is the one past the end.
        """
        begin = self.source.span(port.node).line - self.source.first_line + 1
        first = comment.strip().split("\n")[0]
        for line in range(begin, begin + self.source.data.count(b"\n") + 1):
            if (column := self.source.own_line(line).find(first)) >= 0:
                return line, column + 1, column + 1 + len(first)
        return begin, 1, 2

    def _model(self, layer: Layer, contents: dict[int, tuple[np.ndarray, int]]) -> Model:
        """Return the model of a layer: the layer itself, a Parameter for each input, and a Result for each output."""
        inputs = tuple(replace(p, shape=None) if i in self.doubtful else p for i, p in enumerate(layer.inputs))
        layer = replace(layer, inputs=inputs)
        layers = {0: layer}
        edges: list[Edge] = []
        feeds: dict[int, tuple[tuple[int, int] | None, ...]] = {}
        for position, port in enumerate(inputs):
            id = 1 + position
            element_type = port.type or ELEMENT_TYPES["dynamic"]
            shape = "..." if port.shape is None else str(port.shape).strip("[]")
            attributes = {"element_type": element_type.name, "shape": shape}
            output = Port(0, port.type, port.shape, (), port.node)
            layers[id] = Layer(id, str(position), "Parameter", "opset1", attributes, (), (output,), port.node)
            feeds[id] = ()
            edges.append(Edge(id, 0, 0, port.id, port.node))
        # an abbreviated example gets an unconnected input more: a layer with one is not checked
        feeds[0] = (*((1 + position, 0) for position in range(len(inputs))), *[None] * self.abbreviated)
        for position, port in enumerate(layer.outputs):
            id = 1 + len(inputs) + position
            result = Port(0, port.type, port.shape, (), port.node)
            layers[id] = Layer(id, str(position), "Result", "opset1", {}, (result,), (), port.node)
            feeds[id] = ((0, position),)
            edges.append(Edge(0, port.id, id, 0, port.node))
        of_parameters = {1 + position: array for position, array in contents.items()}
        return Model(layer.name, 0, layers, tuple(edges), feeds, self.source, None, of_parameters)


_LIST: Final = re.compile(r"\[[\s\d,.eE+\[\]-]*\]")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_SCALAR: Final = re.compile(rf"(?:[:=]|\bis|\bvalue)\s*({_NUMBER.pattern})\s*\.?\s*\Z")


def _numbers(comment: str, scalar: bool) -> list[np.ndarray]:
    """Return each list in a comment, such as ``[1, 16, 50, 50]``, as a flat array of int64, or float32 for fractions.

    Without a list, a ``scalar`` may be the number that ends the comment, as in ``k = 3``: an array of shape [].
    """
    arrays = [_array(_NUMBER.findall(listed[0])) for listed in _LIST.finditer(comment)]
    if not arrays and scalar and (number := _SCALAR.search(comment)):
        arrays = [_array([number[1]]).reshape(())]
    return arrays


def _array(numbers: list[str]) -> np.ndarray:
    try:
        return np.array([int(number) for number in numbers], np.int64)
    except ValueError:
        return np.array([float(number) for number in numbers], np.float32)

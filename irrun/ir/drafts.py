"""Models and layers while they are being read, and the problems that reading finds in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irrun.base.source import Source
from irrun.diagnostics import Diagnostic, diagnostic
from irrun.ir.texts import parse_integer
from irrun.model import Edge, Layer, Model, Port

__all__ = ["LayerDraft", "NetDraft", "Problems"]


@dataclass(slots=True)
class NetDraft:
    """A ``<net>`` or a body while it is being read."""

    tag: str
    name: str
    version: int
    node: int
    layers: dict[int, Layer] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    parts: set[str] = field(default_factory=set)
    """The tags of ``<layers>`` and ``<edges>``, as far as they are read."""
    doubtful: bool = False
    """Whether layers, ports or edges could not be identified.

    Problems of the edges are then not reported, because they would only follow from that.
    """


@dataclass(slots=True)
class LayerDraft:
    """A layer while it is being read. ``tag`` holds the attributes of its start tag, ``node`` its ordinal.

    Each entry in ``maps`` consists of its tag, its attributes and its ordinal. Each item in ``back_edges`` consists of
    two layer ids (``from-layer``, ``to-layer``) and its ordinal.
    """

    tag: Mapping[str, str]
    name: str
    node: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: dict[str, Model] = field(default_factory=dict)
    maps: dict[str, list[tuple[str, Mapping[str, str], int]]] = field(default_factory=dict)
    back_edges: list[tuple[int, int, int]] = field(default_factory=list)
    parts: set[str] = field(default_factory=set)
    """The tags of the child elements read so far."""


class Problems:
    """The problems of a document, in the order in which they were found.

    An element is identified by its ordinal. Lines and columns are looked up only by ``diagnostics``, after reading,
    because only a well-formed document has them.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: list[tuple[str, str, int, str | None, dict[str, Any]]] = []

    def report(self, code: str, message: str, node: int, attribute: str | None = None, **more: Any) -> None:
        """Record a problem at an element or at one of its attributes. ``more`` holds further fields of Diagnostic."""
        self._found.append((code, message, node, attribute, more))

    def diagnostics(self) -> list[Diagnostic]:
        """Return the recorded problems as diagnostics."""
        return [
            diagnostic(code, message, source=self._source, node=node, attribute=attribute, **more)
            for code, message, node, attribute, more in self._found
        ]

    def integer(
        self, attributes: Mapping[str, str], name: str, what: str, node: int, layer: str | None = None
    ) -> int | None:
        """Return an attribute as an integer; report it (IR007) and return None if it is missing or no integer.

        ``what`` names the element in the message.
        """
        text = attributes.get(name)
        if text is None:
            self.report("IR007", f"{what} has no {name}", node, layer=layer)
            return None
        number = parse_integer(text)
        if number is None:
            wanted = "an integer of at most 18 digits" if text.strip().isdecimal() else "an integer"
            self.report("IR007", f'{what} has {name}="{text}", which is not {wanted}', node, name, layer=layer)
        return number

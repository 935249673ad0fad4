"""Read the ports of layers: id, precision, tensor names and dims."""

from __future__ import annotations

from collections.abc import Mapping

from irrun.ir.drafts import LayerDraft, NetDraft, Problems
from irrun.ir.texts import parse_dim, tensor_names
from irrun.model import Port
from irrun.types import Dim, ElementType, PartialShape

__all__ = ["PortReader"]


class PortReader:
    """Builds the ports of a document, one after another.

    It remembers the precisions, lists of dims and whole contents that it has read, because a large model consists
    mostly of ports that repeat earlier ones.
    """

    def __init__(self, problems: Problems) -> None:
        self.attributes: Mapping[str, str] = {}
        self.node = 0
        self.content = b""
        """The bytes between the tags of the current port; empty if no other port may be read by them."""
        self.dims: list[str] = []
        """The texts of the ``<dim>`` elements read so far."""
        self.dim_nodes: list[int] = []
        self._problems = problems
        self._contents: dict[bytes, tuple[PartialShape | None, int]] = {}
        self._shapes: dict[tuple[str, ...], PartialShape] = {}
        self._types: dict[str, ElementType] = {}

    def open(self, attributes: Mapping[str, str], node: int, content: bytes) -> tuple[PartialShape | None, int] | None:
        """Begin a port. Return the shape and the number of elements in ``content``, or None if it is not known yet."""
        self.attributes, self.node, self.content = attributes, node, content
        if self.dims:
            self.dims, self.dim_nodes = [], []
        return self._contents.get(content)

    def open_dim(self, node: int) -> None:
        """Begin a ``<dim>`` of the port. Its text is added to ``dims[-1]``."""
        self.dims.append("")
        self.dim_nodes.append(node)

    def remember(self, last: int) -> None:
        """Remember the content of the port, which ends after the element ``last``, unless its dims are invalid."""
        dims = tuple(self.dims)
        if not dims or dims in self._shapes:
            self._contents[self.content] = (self._shapes.get(dims), last - self.node)

    def port(self, layer: LayerDraft, net: NetDraft | None, shape: PartialShape | None) -> Port:
        """Return the current port of ``layer``, with the shape of its ``<dim>`` elements or else ``shape``.

        ``net`` is None for a document whose root element is the layer.
        """
        attributes = self.attributes
        text = attributes.get("id")
        if text is None and net is None:
            id = -1  # a bare layer's ports are numbered by position
        elif text is not None and text.isdecimal() and len(text) < 10:
            id = int(text)
        else:
            number = self._problems.integer(attributes, "id", f'a port of layer "{layer.name}"', self.node, layer.name)
            if number is None and net is not None:
                net.doubtful = True
            id = -2 - len(layer.inputs) - len(layer.outputs) if number is None else number
        precision, names = attributes.get("precision"), attributes.get("names")
        type = self._types.get(precision) if precision else None
        if precision and type is None:
            type = self._precision(precision, layer.name, id)
        if self.dims:
            shape = self._shape(layer.name, id)
        return Port(id, type, shape, tensor_names(names) if names else (), self.node)

    def _precision(self, text: str, layer: str, port: int) -> ElementType | None:
        """Return the element type of a port; report it (IR305) and return None if it is unknown."""
        element_type = ElementType.parse(text)
        if element_type is not None:
            self._types[text] = element_type
        else:
            message = f'precision "{text}" of port {port} of "{layer}" is not an element type'
            help = "write an element type such as FP32, I64 or BOOL"
            self._problems.report("IR305", message, self.node, "precision", layer=layer, port=port, help=help)
        return element_type

    def _shape(self, layer: str, port: int) -> PartialShape:
        """Return the shape of the dims just read. Report each invalid dim (IR404, IR407) and take it as unknown."""
        key = tuple(self.dims)
        shape = self._shapes.get(key)
        if shape is not None:
            return shape
        dims = [parse_dim(text) for text in key]
        for axis, (dim, node) in enumerate(zip(dims, self.dim_nodes)):
            if dim is not None and key[axis].strip() == "?":
                message = f'dim {axis} of port {port} of "{layer}" is "?", which OpenVINO refuses in a port'
                self._problems.report("IR407", message, node, layer=layer, port=port, help="write -1")
            if dim is None:
                message = f'dim {axis} of port {port} of "{layer}" is "{key[axis].strip()}", which is not a dim'
                help = "write a number, or -1 if unknown"
                self._problems.report("IR404", message, node, layer=layer, port=port, help=help)
        shape = PartialShape(tuple(dim or Dim.unknown() for dim in dims))
        if None not in dims and not any("?" in text for text in key):  # report each port
            self._shapes[key] = shape
        return shape

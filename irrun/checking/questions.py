"""Find the outputs that a question names: by layer, tensor, port, or position in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from irrun.diagnostics import ModelError, diagnostic
from irrun.inference.trace import Trace
from irrun.model import Layer
from irrun.model.lookup import nearest, quoted

__all__ = ["Asked", "at_line", "by_glob", "by_name", "only", "outputs"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question is about: outputs of a layer (by position), or only their dim ``axis``."""

    trace: Trace
    layer: Layer
    outputs: tuple[int, ...]
    axis: int | None = None


def by_name(traces: Sequence[Trace], name: str) -> Asked:
    """Return the outputs that a name means: the name of a layer or of a tensor, or ``LAYER:PORT``.

    The port of an input means the output that feeds it. Layers of bodies are found as well. Raises ModelError (IR606)
    if no layer, or more than one, has the name.
    """
    everywhere = [t for trace in traces for t in trace.all()]
    if candidates := _named(everywhere, name):
        return _only(candidates, name)
    layer, colon, port = name.rpartition(":")
    if colon and port.isdecimal() and len(port) < 10 and (candidates := _named(everywhere, layer)):
        asked = _only(candidates, layer)
        return _at_port(asked.trace, asked.layer, int(port))
    names = list(dict.fromkeys(n for t in everywhere for n in t.model.unique_names.values()))
    wanted = layer if colon and port.isdecimal() and len(port) < 10 else name
    near = nearest(wanted, names, 3) or nearest(wanted.rstrip("0123456789"), names, 3)
    help = f"did you mean {' or '.join(map(quoted, near))}?" if near else "name a layer, or a line as FILE.xml:LINE"
    source = traces[0].model.source
    raise ModelError(diagnostic("IR606", f'no layer is called "{wanted}"', source=source, help=help))


def by_glob(traces: Sequence[Trace], pattern: str) -> list[Asked]:
    """Return the outputs of each layer, also of bodies, whose unique name matches a glob; none if none matches."""
    return [
        _whole(trace, layer)
        for top in traces
        for trace in top.all()
        for layer in _layers([trace])
        if fnmatchcase(trace.model.unique_names[layer.id], pattern) and (layer.outputs or layer.inputs)
    ]


def only(traces: Sequence[Trace], name: str) -> Asked:
    """Return the outputs that a name means, as ``by_name``, or those of the only layer that matches it as a glob.

    Raises ModelError (IR606).
    """
    try:
        return by_name(traces, name)
    except ModelError:
        matching = by_glob(traces, name)
        if not matching:
            raise
    return _only(matching, name)


def at_line(traces: Sequence[Trace], line: int, column: int | None = None) -> Asked:
    """Return the outputs at a line of the file: those of a layer, of one of its ports, or one dim of a port.

    A line with an edge means the output where the edge begins. Without ``column``, the first element that begins on
    the line counts. Raises ModelError (IR606) if there is no layer on the line, or if several layers begin on the line
    and no column is given.
    """
    path = traces[0].model.source.path
    for top in traces:
        source, inside = top.model.source, list(top.all())
        if column is None:
            begun = source.begun_on(line)
            count = sum(layer.node in begun for layer in _layers(inside))
            if count > 1:
                message, help = f"{count} layers begin on line {line}", f"name a layer, or {path}:{line}:COLUMN"
                raise ModelError(diagnostic("IR606", message, source=source, help=help))
        nodes = source.around(line, column)
        for node in nodes:
            if asked := _at_node(inside, node):
                dims = source.children(node, "dim") if node != nodes[0] else []
                return replace(asked, axis=dims.index(nodes[0]) if nodes[0] in dims else None)
    help = "name a line of a <layer> or an <edge>"
    raise ModelError(diagnostic("IR606", f"there is no layer on line {line}", source=traces[0].model.source, help=help))


def outputs(traces: Sequence[Trace]) -> list[Asked]:
    """Return the outputs of each model, or of the layer of each example of a page."""
    asked: list[Asked] = []
    for trace in traces:
        model = trace.model
        layers = [model.layers[0]] if model.is_fragment else list(model.results)
        asked += [_whole(trace, layer) for layer in layers]
    return asked


def _layers(traces: Sequence[Trace]) -> Iterator[Layer]:
    """Yield the layers of models and bodies, without the Parameters and Results added to an example of a page."""
    for trace in traces:
        layers = trace.model.layers
        yield from [layers[0]] if trace.model.is_fragment and trace.outer is None else layers.values()


def _named(traces: Sequence[Trace], name: str) -> list[Asked]:
    """Return all layers with a name or, if there are none, all outputs whose tensor has this name."""
    layers = [
        _whole(trace, layer)
        for trace in traces
        for layer in _layers([trace])
        if name in (layer.name, trace.model.unique_names[layer.id])
    ]
    return layers or [
        Asked(trace, layer, (position,))
        for trace in traces
        for layer in _layers([trace])
        for position, port in enumerate(layer.outputs)
        if name in port.names
    ]


def _only(candidates: Sequence[Asked], name: str) -> Asked:
    """Return the only one of the ``candidates``. Raises ModelError (IR606) if there are several."""
    if len(candidates) == 1:
        return candidates[0]
    source = candidates[0].trace.model.source
    lines = [source.span(asked.layer.node).line for asked in candidates]
    message = f'{len(candidates)} layers are called "{name}", on lines {", ".join(map(str, lines))}'
    raise ModelError(
        diagnostic("IR606", message, source=source, help=f"name one by its line: {source.path}:{lines[0]}")
    )


def _whole(trace: Trace, layer: Layer) -> Asked:
    """Return all outputs of a layer; for a Result, the output that feeds it."""
    if not layer.outputs and layer.inputs and trace.model.fed_by(layer, 0):
        return _at_port(trace, layer, layer.inputs[0].id)
    return Asked(trace, layer, tuple(range(len(layer.outputs))))


def _at_port(trace: Trace, layer: Layer, id: int) -> Asked:
    """Return the output with a port id, or the output that feeds the input with this id. Raises ModelError (IR606)."""
    for position, port in enumerate(layer.outputs):
        if port.id == id:
            return Asked(trace, layer, (position,))
    for position, port in enumerate(layer.inputs):
        feed = trace.model.feeds[layer.id][position]
        if port.id == id and feed is not None:
            return Asked(trace, trace.model.layers[feed[0]], (feed[1],))
    known = ", ".join(str(port.id) for port in (*layer.inputs, *layer.outputs)) or "none"
    message = f'{layer.type} "{layer.name}" has no connected port {id}'
    source = trace.model.source
    raise ModelError(diagnostic("IR606", message, source=source, node=layer.node, help=f"its ports are {known}"))


def _at_node(traces: Sequence[Trace], node: int) -> Asked | None:
    """Return the outputs that an element of the file means: a layer, a port or an edge; None for any other element."""
    for trace in traces:
        for layer in _layers([trace]):
            if layer.node == node:
                return _whole(trace, layer)
            for port in (*layer.inputs, *layer.outputs):
                if port.node == node:
                    return _at_port(trace, layer, port.id)
        for edge in trace.model.edges:
            if edge.node == node and edge.from_layer in trace.model.layers and not trace.model.is_fragment:
                return _at_port(trace, trace.model.layers[edge.from_layer], edge.from_port)
    return None

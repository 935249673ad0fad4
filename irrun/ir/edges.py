"""Connect the layers of a model: resolve its edges, and report those that lead nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irrun.ir.drafts import NetDraft, Problems
from irrun.model import Edge, Layer, Model, Port

__all__ = ["connect", "report_cycle", "report_port_twice", "report_shared_ids"]

Feeds = dict[int, list[tuple[int, int] | None]]
"""``Model.feeds`` while edges are still being added."""


def connect(net: NetDraft, problems: Problems) -> dict[int, tuple[tuple[int, int] | None, ...]]:
    """Resolve the edges: return for each layer id which output feeds each input, as ``Model.feeds``.

    Report edges that lead nowhere (IR103, IR110), inputs with two edges (IR105), and inputs with none (IR104).
    """
    layers = net.layers
    outputs = {(l.id, p.id): i for l in layers.values() for i, p in enumerate(l.outputs)}
    inputs = {(l.id, p.id): i for l in layers.values() for i, p in enumerate(l.inputs)}
    feeds: Feeds = {l.id: [None] * len(l.inputs) for l in layers.values()}
    broken: set[int] = set()  # layers with an input that an invalid edge may be meant for
    lost = 0  # number of invalid edges that may belong to any layer
    strays: list[Edge] = []
    for edge in net.edges:
        start = outputs.get((edge.from_layer, edge.from_port))
        end = inputs.get((edge.to_layer, edge.to_port))
        if edge.from_layer not in layers and edge.to_layer not in layers:
            strays.append(edge)
            continue
        if start is None or end is None:
            side, wrong = ("from", inputs) if start is None else ("to", outputs)
            if not net.doubtful:
                _report_dangling(edge, layers, side, wrong, problems)
            broken.add(edge.to_layer)
            lost += edge.to_layer not in layers
            continue
        row = feeds[edge.to_layer]
        if row[end] is not None:
            layer = layers[edge.to_layer]
            message = f'two edges lead to input port {edge.to_port} of {layer.type} "{layer.name}"'
            if not net.doubtful:
                problems.report(
                    "IR105", message, edge.node, layer=layer.name, port=edge.to_port, help="remove one of them"
                )
            lost += 1
            continue
        row[end] = (edge.from_layer, start)
    if not net.doubtful:
        for edge in strays:
            if any(None in row for row in feeds.values()):  # the edge may be meant for one of these inputs
                _report_dangling(edge, layers, "from", inputs, problems)
                lost += 1
            else:
                message = f"an edge leads from layer {edge.from_layer} to layer {edge.to_layer}; neither exists"
                problems.report("IR110", message, edge.node, help="remove the edge")
        _report_unfed(layers, feeds, broken, lost, problems)
    return {id: tuple(row) for id, row in feeds.items()}


def report_shared_ids(net: NetDraft, problems: Problems) -> None:
    """Report an input and an output of a layer that share an id (IR102), if an edge may mean either of them.

    An edge begins at an output and ends at an input, so that a shared id is clear. It is not clear if an edge refers to
    a port that the layer does not have.
    """
    shared: dict[int, Port] = {}
    for layer in net.layers.values():
        inputs = {port.id for port in layer.inputs}
        port = next((port for port in layer.outputs if port.id in inputs), None)
        if port is not None:
            shared[layer.id] = port
    for edge in net.edges if shared else ():
        for id, port_id, is_start in (
            (edge.from_layer, edge.from_port, True),
            (edge.to_layer, edge.to_port, False),
        ):
            if id not in shared:
                continue
            layer = net.layers[id]
            if all(port.id != port_id for port in (layer.outputs if is_start else layer.inputs)):
                report_port_twice(layer.type, layer.name, shared.pop(id), problems)
                net.doubtful = True


def report_port_twice(type: str, name: str, port: Port, problems: Problems) -> None:
    """Report a port whose id an earlier port of the layer has (IR102)."""
    message = f'{type} "{name}" has two ports with the id {port.id}'
    help = "give each port its own id"
    problems.report("IR102", message, port.node, "id", layer=name, port=port.id, help=help)


def _report_unfed(layers: Mapping[int, Layer], feeds: Feeds, broken: set[int], lost: int, problems: Problems) -> None:
    """Report the inputs that no edge feeds (IR104).

    Leave out the layers ``broken``. Report nothing if ``lost`` edges, whose ends are wrong, may be meant for them all.
    """
    unfed = [
        (layers[id], port)
        for id, row in feeds.items()
        if None in row and id not in broken
        for port, feed in zip(layers[id].inputs, row)
        if feed is None
    ]
    if len(unfed) > lost:
        for layer, port in unfed:
            message = f'no edge leads to input port {port.id} of {layer.type} "{layer.name}"'
            help = "add the edge, or remove the port"
            problems.report("IR104", message, port.node, layer=layer.name, port=port.id, help=help)


def _report_dangling(
    edge: Edge, layers: Mapping[int, Layer], side: str, wrong: Mapping[tuple[int, int], int], problems: Problems
) -> None:
    """Report an edge of which one end (``from`` or ``to``) does not exist or is a port of the wrong kind (IR103).

    ``wrong`` holds the ports of the wrong kind: inputs for ``from``, outputs for ``to``.
    """
    id, port = (edge.from_layer, edge.from_port) if side == "from" else (edge.to_layer, edge.to_port)
    layer = layers.get(id)
    if layer is None:
        message, attribute = f"an edge leads {side} layer {id}, which does not exist", f"{side}-layer"
        help = None
    else:
        kind, other = ("output", "an input") if side == "from" else ("input", "an output")
        ports = layer.outputs if side == "from" else layer.inputs
        why = f"which is {other}" if (id, port) in wrong else "which does not exist"
        message = f'an edge leads {side} port {port} of {layer.type} "{layer.name}", {why}'
        attribute = f"{side}-port"
        help = f"its {kind} ports are {', '.join(str(p.id) for p in ports) or 'none'}"
    problems.report("IR103", message, edge.node, attribute, layer=layer.name if layer else None, help=help)


def report_cycle(model: Model, problems: Problems) -> None:
    """Report one cycle of the model (IR106), if it has any."""
    cycle: Sequence[Layer] = model.cycle()
    if not cycle:
        return
    names = [f'"{layer.name}"' for layer in cycle]
    names = names if len(names) < 8 else [*names[:6], "…", names[-1]]
    message = f"the layers form a cycle: {' -> '.join((*names, names[0]))}"
    help = "correct or remove one of these edges; a computation that repeats needs a Loop or TensorIterator"
    problems.report("IR106", message, cycle[0].node, layer=cycle[0].name, help=help)

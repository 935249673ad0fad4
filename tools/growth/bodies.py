"""Models with many bodies, port maps, carried values and variables."""

from __future__ import annotations

from typing import Final

from growth.catalogue import ALL, CHECK, FIX, TWO, case, chain_of, end, start
from nets import Net, Ref


def _body(inner: str, edges: str, last: int) -> str:
    """Return the layers and edges of a body: a Parameter 0, ``inner``, and a Result, the layer ``last``."""
    port = '<port id="{}" precision="FP32"><dim>2</dim></port>'
    return (
        '<layers><layer id="0" name="p" type="Parameter" version="opset1"><data element_type="f32" shape="2"/>'
        f"<output>{port.format(0)}</output></layer>{inner}"
        f'<layer id="{last}" name="r" type="Result" version="opset1"><input>{port.format(0)}</input></layer>'
        f"</layers><edges>{edges}</edges>\n"
    )


RELU_BODY: Final = _body(
    '<layer id="1" name="e" type="ReLU" version="opset1"><input><port id="0" precision="FP32"><dim>2</dim></port>'
    '</input><output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>',
    '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>', 2,
)  # fmt: skip


def _iterated(body: str, last: int = 2) -> str:
    """Return the parts of a TensorIterator around a body whose Result is the layer ``last``."""
    return (
        '<port_map><input external_port_id="0" internal_layer_id="0"/>'
        f'<output external_port_id="1" internal_layer_id="{last}"/></port_map>'
        f'<back_edges><edge from-layer="{last}" to-layer="0"/></back_edges><body>{body}</body></layer>\n'
    )


def _loops(count: int, body: str, last: int = 2) -> str:
    """Return a chain of TensorIterators, each with the body."""
    text = chain_of(count, ("TensorIterator",)).text
    parts = _iterated(body, last)
    return (
        text.replace("</output>\n\t\t</layer>\n\t\t<layer id", "</output>\n\t\t</layer>\n\t\t<layer id")
        .replace("</layer>", "\0")
        .replace("\0", "</layer>", 1)
        .replace("\0", parts, count)
        .replace("\0", "</layer>")
    )


@case(ALL)
def bodies(count: int) -> str:
    return _loops(count, RELU_BODY)


@case(FIX)
def wrong_bodies(count: int) -> str:
    return _loops(count, RELU_BODY.replace("<dim>2</dim>", "<dim>3</dim>", 3))


@case(ALL)
def layers_of_a_body(count: int) -> str:
    return _loops(1, _layers_of(count, "2"), count + 1)


@case(FIX)
def wrong_layers_of_a_body(count: int) -> str:
    return _loops(1, _layers_of(count, "3"), count + 1)


def _layers_of(count: int, declared: str) -> str:
    layers = "".join(
        f'<layer id="{i}" name="e{i}" type="ReLU" version="opset1"><input><port id="0" precision="FP32"><dim>{declared}'
        f'</dim></port></input><output><port id="1" precision="FP32"><dim>{declared}</dim></port></output></layer>\n'
        for i in range(1, count + 1)
    )
    edges = "".join(
        f'<edge from-layer="{i}" from-port="{int(i > 0)}" to-layer="{i + 1}" to-port="0"/>\n' for i in range(count + 1)
    )
    return _body(layers, edges, count + 1)


DEPTH: Final = 50
"""How deep bodies are nested: each takes four elements of the 256 that a file may nest."""


@case(ALL)
def nested_bodies(count: int) -> str:
    """Towers of nested bodies, ``count`` bodies in all."""
    body = RELU_BODY
    for _ in range(min(DEPTH, count) - 1):
        inner = (
            '<layer id="1" name="t" type="TensorIterator" version="opset1">'
            '<input><port id="0" precision="FP32"><dim>2</dim></port></input>'
            f'<output><port id="1" precision="FP32"><dim>2</dim></port></output>{_iterated(body)}'
        )
        edges = (
            '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
            '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
        )
        body = _body(inner, edges, 2)
    return _loops(max(count // DEPTH, 1), body)


def _growing_loop(id: int, inner: str | None, depth: int) -> str:
    """Return a TensorIterator whose body appends its second input, or what a loop inside gives, to the first."""
    port = '<port id="{}" precision="FP32"><dim>-1</dim></port>'
    parameters = "".join(
        f'<layer id="{i}" name="p{i}" type="Parameter" version="opset1"><data element_type="f32" shape="?"/>'
        f"<output>{port.format(0)}</output></layer>"
        for i in (0, 1)
    )
    edge = '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>'
    edges = edge.format(0, 0, 2, 0) + edge.format(2, 2, 4, 0)
    if inner is None:
        edges += edge.format(1, 0, 2, 1)
    else:
        edges += edge.format(1, 0, 3, 0) + edge.format(1, 0, 3, 1) + edge.format(3, 2, 2, 1)
    return (
        f'<layer id="{id}" name="t{depth}" type="TensorIterator" version="opset1">'
        f"<input>{port.format(0)}{port.format(1)}</input><output>{port.format(2)}</output>"
        '<port_map><input external_port_id="0" internal_layer_id="0"/>'
        '<input external_port_id="1" internal_layer_id="1"/><output external_port_id="2" internal_layer_id="4"/></port_map>'
        f'<back_edges><edge from-layer="4" to-layer="0"/></back_edges><body><layers>{parameters}'
        '<layer id="2" name="c" type="Concat" version="opset1"><data axis="0"/>'
        f"<input>{port.format(0)}{port.format(1)}</input><output>{port.format(2)}</output></layer>{inner or ''}"
        f'<layer id="4" name="r" type="Result" version="opset1"><input>{port.format(0)}</input></layer></layers>'
        f"<edges>{edges}</edges></body></layer>\n"
    )


@case(("check", "why", "show"))
def nested_growing_loops(count: int) -> str:
    """Towers of loops, each of which infers its body twice because its value grows."""
    net = Net()
    x = net.parameter("f32", "?", name="x")
    tower = None
    for depth in range(min(DEPTH, count)):
        tower = _growing_loop(3, tower, depth)
    assert tower is not None
    for _ in range(max(count // DEPTH, 1)):
        id = len(net.layers)
        net.layers.append(tower.replace('id="3"', f'id="{id}"', 1))
        net.edges += [f'<edge from-layer="0" from-port="0" to-layer="{id}" to-port="{port}"/>' for port in (0, 1)]
        net.result(Ref(id, 2, ("FP32", "-1")))
    return end(net, x).text


@case(("check", "why", "show"))
def carried_values(count: int) -> str:
    """A loop that carries each value to the place of the next, so that a growing one changes all of them in turn."""
    net = Net()
    x = net.parameter("f32", "?", name="x")
    y = ("FP32", "-1")
    loop = net.add("TensorIterator", [x] * count, [y])
    net.result(loop)
    inner = Net()
    values = [inner.parameter("f32", "?") for _ in range(count)]
    results = [inner.result(inner.add("Concat", [values[0], values[0]], [y], axis=0))]
    results += [inner.result(value) for value in values[:-1]]
    maps = "".join(f'<input external_port_id="{i}" internal_layer_id="{i}"/>\n' for i in range(count))
    maps += f'<output external_port_id="{count}" internal_layer_id="{results[-1].layer}"/>'
    edges = "".join(f'<edge from-layer="{r.layer}" to-layer="{v.layer}"/>\n' for r, v in zip(results, values))
    body = inner.text.partition("<layers>")[2].partition("<rt_info/>")[0]
    parts = f"<port_map>{maps}</port_map><back_edges>{edges}</back_edges><body><layers>{body}</body></layer>"
    net.layers[loop.layer] = net.layers[loop.layer].removesuffix("</layer>") + parts
    return net.text


@case(CHECK)
def port_maps(count: int) -> str:
    entry = '<input external_port_id="0" internal_layer_id="0"/>\n'
    return _loops(1, RELU_BODY).replace("<port_map>", "<port_map>" + entry * count)


@case(CHECK)
def port_maps_to_missing_layers(count: int) -> str:
    entries = "".join(f'<input external_port_id="{i}" internal_layer_id="{i}"/>\n' for i in range(5, count + 5))
    return _loops(1, RELU_BODY).replace("<port_map>", "<port_map>" + entries)


@case(CHECK)
def back_edges(count: int) -> str:
    return _loops(1, RELU_BODY).replace(
        "<back_edges>",
        '<back_edges><edge from-layer="2" to-layer="0"/>' * 1 + '<edge from-layer="2" to-layer="0"/>\n' * count,
    )


@case(ALL)
def inputs_of_a_body(count: int) -> str:
    """A TensorIterator with ``count`` inputs and outputs, each with a Parameter and a Result of the body."""
    net, x = start()
    loop = net.add("TensorIterator", [x] * count, [TWO] * count)
    end(net, *(Ref(loop.layer, count + i, TWO) for i in range(count)))
    inner = Net()
    names = [inner.parameter("f32", "2") for _ in range(count)]
    for name in names:
        inner.result(inner.add("ReLU", [name], [TWO]))
    maps = "".join(f'<input external_port_id="{i}" internal_layer_id="{i}"/>\n' for i in range(count)) + "".join(
        f'<output external_port_id="{count + i}" internal_layer_id="{count + 2 * i + 1}"/>\n' for i in range(count)
    )
    edges = "".join(f'<edge from-layer="{count + 2 * i + 1}" to-layer="{i}"/>\n' for i in range(count))
    body = inner.text.partition("<layers>")[2].partition("<rt_info/>")[0]
    parts = f"<port_map>{maps}</port_map><back_edges>{edges}</back_edges><body><layers>{body}</body></layer>"
    net.layers[loop.layer] = net.layers[loop.layer].removesuffix("</layer>") + parts
    return net.text


@case(ALL)
def variables(count: int) -> Net:
    net, x = start()
    for number in range(count):
        read = net.add(
            "ReadValue", [x], [TWO], opset="opset6", variable_id=f"v{number}", variable_type="f32", variable_shape="2"
        )
        net.add("Assign", [read], [TWO], opset="opset6", variable_id=f"v{number}")
    return end(net, x)


@case(CHECK)
def variables_of_two_names(count: int) -> Net:
    net, x = start()
    for number in range(count):
        read = net.add(
            "ReadValue", [x], [TWO], opset="opset6", variable_id=f"v{number}", variable_type="f32", variable_shape="2"
        )
        net.add("Assign", [read], [TWO], opset="opset6", variable_id=f"w{number}")
    return end(net, x)


@case(CHECK)
def uses_of_a_variable(count: int) -> Net:
    net, x = start()
    for _ in range(count):
        read = net.add(
            "ReadValue", [x], [TWO], opset="opset6", variable_id="v", variable_type="f32", variable_shape="2"
        )
        net.add("Assign", [read], [TWO], opset="opset6", variable_id="v")
    return end(net, x)

"""Files with n of one thing: the catalogue of what ``tests/test_growth.py`` and ``python -m tests.growth`` time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nets import Net, Ref

__all__ = ["CASES", "Case"]

ALL: Final = ("check", "fix", "diff", "run", "extract", "why", "show")
"""The commands for a model that runs."""
CHECK: Final = ("check", "diff")
"""The commands for a file with errors that fixes do not concern."""
FIX: Final = ("check", "fix", "diff", "show")
"""The commands for a file that fixes change."""
READ: Final = ("check", "run", "why", "show")
"""The commands for a model that runs, and that has nothing to cut or to fix."""
PAGE: Final = ("check", "run")
"""The commands for a page."""

TWO: Final = ("FP32", "2")
"""The port of almost all layers: two elements."""


@dataclass(frozen=True)
class Case:
    """One thing to count: ``text`` writes a file with n of it, and each of ``commands`` is timed on this file."""

    name: str
    commands: Sequence[str]
    text: Callable[[int], str | Net]
    suffix: str = ".xml"
    encoding: str = "utf-8"

    def write(self, folder: Path, count: int) -> Path:
        """Write the file with ``count`` things, and its .bin if it has one. Return the path."""
        path = folder / f"{self.name}{self.suffix}"
        made = self.text(count)
        if isinstance(made, Net):
            if made.bin:
                path.with_suffix(".bin").write_bytes(made.bin)
            made = made.text
        path.write_text(made, self.encoding, newline="\n")
        return path


CASES: Final[dict[str, Case]] = {}


def _case(
    commands: Sequence[str], suffix: str = ".xml", encoding: str = "utf-8"
) -> Callable[[Callable[[int], str | Net]], Callable[[int], str | Net]]:
    """Add the function to the catalogue, under its name with hyphens."""

    def add(text: Callable[[int], str | Net]) -> Callable[[int], str | Net]:
        name = text.__name__.strip("_").replace("_", "-")
        CASES[name] = Case(name, commands, text, suffix, encoding)
        return text

    return add


# ---------------------------------------------------------------------------------------------
# layers and edges


def _start() -> tuple[Net, Ref]:
    net = Net()
    return net, net.parameter("f32", "2", name="x")


def _end(net: Net, *refs: Ref) -> Net:
    for ref in refs:
        net.result(ref)
    return net


def _small() -> Net:
    """Return a model of a Parameter, a ReLU and a Result."""
    net, x = _start()
    return _end(net, net.add("ReLU", [x], [TWO], name="relu"))


def _chain(count: int, types: Sequence[str] = ("ReLU",), declared: Callable[[int], str] = lambda _: "2") -> Net:
    net, last = _start()
    for number in range(count):
        last = net.add(types[number % len(types)], [last], [("FP32", declared(number))], name=f"layer{number}")
    return _end(net, last)


@_case(ALL)
def chain(count: int) -> Net:
    return _chain(count)


@_case(ALL)
def chain_of_two_types(count: int) -> Net:
    return _chain(count, ("Sigmoid", "Tanh"))


@_case(ALL)
def branches(count: int) -> Net:
    net, x = _start()
    return _end(net, *(net.add("ReLU", [x], [TWO]) for _ in range(count)))


@_case(ALL)
def unused_layers(count: int) -> Net:
    net, x = _start()
    for _ in range(count):
        net.add("ReLU", [x], [TWO])
    return _end(net, x)


@_case(CHECK)
def unused_layers_of_one_chain(count: int) -> Net:
    """A chain that nobody needs, with many layers at its end that nobody reads."""
    net, x = _start()
    last = x
    for _ in range(count // 2):
        last = net.add("ReLU", [last], [TWO])
    for _ in range(count // 2):
        net.add("ReLU", [last], [TWO])
    return _end(net, x)


@_case(READ)
def parameters_of_no_type(count: int) -> Net:
    net = Net()
    return _end(net, *(net.add("ReLU", [net.add("Parameter", [], [("", "2")], element_type="dynamic", shape="2")], [("", "2")]) for _ in range(count)))


@_case(FIX)
def refused_layers_before_one(count: int) -> Net:
    """Many refused layers, all of which feed the same layer."""
    net, x = _start()
    y = net.parameter("f32", "3", name="y")
    sums = [net.add("Add", [x, y], [TWO], auto_broadcast="numpy") for _ in range(count)]
    return _end(net, net.add("Concat", sums, [("FP32", str(2 * count))], axis=0))


@_case(ALL)
def diamonds(count: int) -> Net:
    net, last = _start()
    for _ in range(count):
        last = net.add("Add", [last, last], [TWO], auto_broadcast="numpy")
    return _end(net, last)


@_case(ALL)
def sum_of_branches(count: int) -> Net:
    """All branches live at once."""
    net, x = _start()
    branches = [net.add("Sigmoid", [x], [TWO]) for _ in range(count)]
    total = branches[0]
    for branch in branches[1:]:
        total = net.add("Add", [total, branch], [TWO], auto_broadcast="numpy")
    return _end(net, total)


@_case(ALL)
def sum_of_branches_backwards(count: int) -> Net:
    net, x = _start()
    branches = [net.add("Sigmoid", [x], [TWO]) for _ in range(count)]
    total = branches[-1]
    for branch in branches[-2::-1]:
        total = net.add("Add", [branch, total], [TWO], auto_broadcast="numpy")
    return _end(net, total)


@_case(ALL)
def parameters(count: int) -> Net:
    net = Net()
    return _end(net, *(net.add("ReLU", [net.parameter("f32", "2")], [TWO]) for _ in range(count)))


@_case(ALL)
def inputs_of_a_layer(count: int) -> Net:
    net, x = _start()
    return _end(net, net.add("Concat", [x] * count, [("FP32", str(2 * count))], axis=0))


@_case(ALL)
def outputs_of_a_layer(count: int) -> Net:
    net = Net()
    x = net.parameter("f32", str(2 * count), name="x")
    axis = net.const("i64", "", struct.pack("<q", 0))
    first = net.add("Split", [x, axis], [TWO] * count, num_splits=count)
    return _end(net, *(Ref(first.layer, first.port + number, TWO) for number in range(count)))


@_case(ALL)
def constants(count: int) -> Net:
    net, last = _start()
    for _ in range(count):
        last = net.add("Add", [last, net.const("f32", "2", bytes(8))], [TWO], auto_broadcast="numpy")
    return _end(net, last)


@_case(ALL)
def constant_layers(count: int) -> Net:
    """A chain of layers that the planner folds."""
    net, x = _start()
    last = net.const("f32", "2", bytes(8))
    for _ in range(count):
        last = net.add("Sigmoid", [last], [TWO])
    return _end(net, net.add("Add", [x, last], [TWO], auto_broadcast="numpy"))


@_case(ALL)
def shared_constant(count: int) -> Net:
    net, last = _start()
    constant = net.const("f32", "2", bytes(8))
    for _ in range(count):
        last = net.add("Add", [last, constant], [TWO], auto_broadcast="numpy")
    return _end(net, last)


@_case(CHECK)
def overlapping_constants(count: int) -> Net:
    net, x = _start()
    net.bin += bytes(4 * count + 4)
    for number in range(count):
        net.result(net.const("f32", "2", bytes(8), offset=4 * number))
    return _end(net, x)


@_case(READ)
def strings(count: int) -> Net:
    net, x = _start()
    data = struct.pack(f"<I{count + 1}I", count, *range(count + 1)) + b"a" * count
    net.result(net.const("string", str(count), data))
    return _end(net, x)


@_case(READ)
def convolutions(count: int) -> Net:
    net = Net()
    last = net.parameter("f32", "1,1,4,4", name="x")
    weights = net.const("f32", "1,1,1,1", bytes(4))
    given = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    for _ in range(count):
        last = net.add("Convolution", [last, weights], [("FP32", "1,1,4,4")], **given)
    return _end(net, last)


@_case(READ)
def pools_of_unknown_size(count: int) -> Net:
    """Formulas of dims that are as deep as the chain."""
    net = Net()
    last = net.parameter("f32", "1,1,?,?", name="x")
    given = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "1,1", "kernel": "2,2", "exclude-pad": "true"}
    for _ in range(count):
        last = net.add("AvgPool", [last], [("FP32", "1,1,-1,-1")], rounding_type="floor", **given)
    return _end(net, last)


@_case(("check", "why", "show"))
def growing_dims(count: int) -> Net:
    """Formulas of dims that nothing cancels."""
    net = Net()
    last = net.parameter("f32", "?,1", name="x")
    for _ in range(count):
        last = net.add("Concat", [last, last], [("FP32", "-1,1")], axis=0)
    return _end(net, last)


@_case(READ)
def arithmetic_on_shapes(count: int) -> Net:
    net = Net()
    x = net.parameter("f32", "?", name="x")
    last = net.add("ShapeOf", [x], [("I64", "1")])
    one = net.const("i64", "1", struct.pack("<q", 1))
    two = net.const("i64", "1", struct.pack("<q", 2))
    for number in range(count):
        type, operand = (("Add", one), ("Multiply", two), ("Divide", two))[number % 3]
        last = net.add(type, [last, operand], [("I64", "1")], auto_broadcast="numpy")
    return _end(net, net.add("Broadcast", [x, last], [("FP32", "-1")], opset="opset3", mode="bidirectional"))


@_case(READ)
def reshapes(count: int) -> Net:
    net = Net()
    last = net.parameter("f32", "2,3", name="x")
    shapes = [net.const("i64", "2", struct.pack("<2q", *dims)) for dims in ((2, 3), (3, 2))]
    for number in range(count):
        last = net.add("Reshape", [last, shapes[number % 2]], [("FP32", ("2,3", "3,2")[number % 2])], special_zero="true")
    return _end(net, last)


@_case(CHECK)
def edges_into_one_input(count: int) -> str:
    return _with_edges(['<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'] * count)


@_case(CHECK)
def edges_between_missing_layers(count: int) -> str:
    return _with_edges([f'<edge from-layer="{i + 9}" from-port="0" to-layer="{i + 8}" to-port="0"/>' for i in range(count)])


@_case(CHECK)
def edges_from_missing_ports(count: int) -> str:
    return _with_edges([f'<edge from-layer="0" from-port="{i + 9}" to-layer="1" to-port="{i + 8}"/>' for i in range(count)])


def _with_edges(edges: Sequence[str]) -> str:
    return _small().text.replace("</edges>", "\n".join([*edges, "</edges>"]))


@_case(CHECK)
def cycles(count: int) -> str:
    net = _small()
    for _ in range(count):
        a = net.add("ReLU", [Ref(len(net.layers) + 1, 1, TWO)], [TWO])
        net.add("ReLU", [a], [TWO])
    return net.text


@_case(CHECK)
def cycle(count: int) -> str:
    net = _small()
    last = Ref(len(net.layers) + count - 1, 1, TWO)
    for _ in range(count):
        last = net.add("ReLU", [last], [TWO])
    return net.text


@_case(CHECK)
def missing_edges(count: int) -> str:
    net = _chain(count)
    net.edges = net.edges[:1]
    return net.text


# ---------------------------------------------------------------------------------------------
# declarations that are wrong


@_case(FIX)
def wrong_chain(count: int) -> Net:
    """Each layer declares a wrong dim."""
    return _chain(count, declared=lambda _: "3")


@_case(FIX)
def wrong_dims(count: int) -> Net:
    """Every other layer declares a wrong dim."""
    return _chain(count, declared=lambda number: "23"[number % 2])


@_case(FIX)
def wrong_at_the_start(count: int) -> Net:
    """A refused layer before a chain that depends on it."""
    return _chain(count, declared=lambda number: "2" if number else "3")


@_case(FIX)
def different_wrong_dims(count: int) -> Net:
    return _chain(count, declared=lambda number: str(number + 3))


@_case(FIX)
def wrong_inputs(count: int) -> Net:
    net, x = _start()
    return _end(net, net.add("Concat", [Ref(0, 0, ("FP32", "3"))] * count, [("FP32", str(2 * count))], axis=0))


@_case(FIX)
def different_wrong_inputs(count: int) -> Net:
    net, x = _start()
    inputs = [Ref(0, 0, ("FP32", str(number + 3))) for number in range(count)]
    return _end(net, net.add("Concat", inputs, [("FP32", str(2 * count))], axis=0))


@_case(FIX)
def wrong_consumers(count: int) -> Net:
    net, x = _start()
    return _end(net, *(net.add("ReLU", [Ref(0, 0, ("FP32", "23"[i % 2]))], [TWO]) for i in range(count)))


@_case(FIX)
def wrong_precisions(count: int) -> Net:
    net, last = _start()
    for _ in range(count):
        last = net.add("ReLU", [last], [("I64", "2")])
    return _end(net, last)


@_case(FIX)
def dims_of_a_port(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", "<dim>2</dim>\n" * count, 2)


@_case(FIX)
def words_as_dims(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", "<dim>x</dim>\n" * count, 2)


@_case(FIX)
def ones_after_a_dim(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", "<dim>2</dim>" + "\n<dim>1</dim>" * count)


@_case(FIX)
def refused_layers(count: int) -> Net:
    """Layers that refuse their inputs, each before a layer that depends on it."""
    net, x = _start()
    y = net.parameter("f32", "3", name="y")
    sums = [net.add("Add", [x, y], [TWO], auto_broadcast="numpy") for _ in range(count)]
    return _end(net, *(net.add("ReLU", [total], [TWO]) for total in sums))


@_case(FIX)
def chain_of_refused_layers(count: int) -> Net:
    net, last = _start()
    y = net.parameter("f32", "3", name="y")
    for _ in range(count):
        last = net.add("Add", [last, y], [TWO], auto_broadcast="numpy")
    return _end(net, last)


@_case(FIX)
def unknown_operations(count: int) -> Net:
    return _chain(count, ("Relu6", "Softmaxx"))


@_case(FIX)
def contradicting_parameters(count: int) -> Net:
    """Parameters whose ports contradict their attributes."""
    net = Net()
    layers = [net.add("Parameter", [], [("FP32", "3")], element_type="f32", shape="2") for _ in range(count)]
    return _end(net, *(net.add("ReLU", [layer], [TWO]) for layer in layers))


# ---------------------------------------------------------------------------------------------
# other encodings, and long lines


@_case(FIX, encoding="utf-16")
def wrong_dims_in_utf_16(count: int) -> str:
    return _chain(count, declared=lambda number: "23"[number % 2]).text


@_case(FIX, encoding="latin-1")
def wrong_dims_in_latin_1(count: int) -> str:
    text = _chain(count, declared=lambda number: "23"[number % 2]).text
    return text.replace("?>", ' encoding="latin-1"?>', 1).replace('name="layer', 'name="ä')


@_case(FIX)
def wrong_dims_in_one_line(count: int) -> str:
    return _chain(count, declared=lambda number: "23"[number % 2]).text.replace("\n", "").replace('name="layer', 'name="ä')


@_case(FIX, encoding="utf-16")
def wrong_dims_in_one_line_of_utf_16(count: int) -> str:
    return wrong_dims_in_one_line(count)  # type: ignore[return-value]


@_case(FIX)
def lines(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", "\n" * count + "<dim>3</dim>", 2)


@_case(FIX)
def spaces(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", " " * count + "<dim>3</dim>", 2)


@_case(FIX)
def spaces_around_a_number(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", f"<dim>{' ' * count}3{' ' * count}</dim>", 2)


@_case(CHECK)
def digits(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", f"<dim>{'3' * count}</dim>", 2)


@_case(CHECK)
def letters_of_a_name(count: int) -> str:
    return _small().text.replace('name="relu"', f'name="{"r" * count}"').replace("<dim>2</dim>", "<dim>3</dim>", 2)


@_case(CHECK)
def broken_tags(count: int) -> str:
    return "<net><layers>" + "<layer>\n" * min(count, 200) + "<" * count


# ---------------------------------------------------------------------------------------------
# attributes and elements


def _with_attributes(attributes: str) -> str:
    net, x = _start()
    net = _end(net, net.add("Concat", [x, x], [("FP32", "4")], axis=0))
    return net.text.replace(' axis="0"', f' axis="0"{attributes}')


@_case(CHECK)
def attributes(count: int) -> str:
    return _with_attributes("".join(f' a{i}="1"' for i in range(count)))


@_case(CHECK)
def attributes_in_lines(count: int) -> str:
    return _with_attributes("".join(f'\na{i}="1"' for i in range(count)))


@_case(FIX)
def misspelt_attributes(count: int) -> str:
    return _with_attributes("".join(f' axis{i}="1"' for i in range(count)))


@_case(CHECK)
def attributes_of_a_layer(count: int) -> str:
    text = _small().text.replace("<dim>2</dim>", "<dim>3</dim>", 2)
    return text.replace('name="relu"', 'name="relu"' + "".join(f' a{i}="1"' for i in range(count)))


@_case(CHECK)
def items_of_an_attribute(count: int) -> str:
    return _small().text.replace('shape="2"', f'shape="{",".join("2" * count)}"')


@_case(CHECK)
def strides(count: int) -> str:
    net = Net()
    x = net.parameter("f32", "1,1,4,4", name="x")
    weights = net.const("f32", "1,1,1,1", bytes(4))
    given = {"strides": ",".join("1" * count), "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    net.bin.clear()
    return _end(net, net.add("Convolution", [x, weights], [("FP32", "1,1,4,4")], **given)).text


@_case(ALL)
def names_of_a_tensor(count: int) -> Net:
    net = Net()
    x = net.parameter("f32", "2", name="x", names=",".join(f"t{i}" for i in range(count)))
    return _end(net, net.add("ReLU", [x], [TWO]))


@_case(ALL)
def layers_of_one_name(count: int) -> str:
    return _chain(count).text.replace('name="layer', 'name="layer" old="')


@_case(ALL)
def rt_info(count: int) -> str:
    entries = "".join(f'<info{i} value="{i}"/>\n' for i in range(count))
    return _small().text.replace("<rt_info/>", f"<rt_info>{entries}</rt_info>")


@_case(ALL)
def rt_info_of_a_layer(count: int) -> str:
    entries = "".join(f'<attribute name="a{i}" version="0" value="{i}"/>\n' for i in range(count))
    return _small().text.replace("<input>", f"<rt_info>{entries}</rt_info><input>", 1)


@_case(ALL)
def rt_info_of_layers(count: int) -> str:
    return _chain(count).text.replace("<input>", '<rt_info><attribute name="fused_names" value="a"/></rt_info><input>')


@_case(ALL)
def unknown_elements(count: int) -> str:
    return _small().text.replace("</layers>", "<what><is this='1'/></what>\n" * count + "</layers>")


@_case(ALL)
def prefixes(count: int) -> str:
    names = "".join(f' xmlns:p{i}="urn:{i}"' for i in range(count))
    return _small().text.replace("<rt_info/>", f"<rt_info{names}/>")


@_case(ALL)
def prefixed_elements(count: int) -> str:
    entries = "".join(f'<p{i}:e xmlns:p{i}="urn:{i}"/>\n' for i in range(count))
    return _small().text.replace("<rt_info/>", f"<rt_info>{entries}</rt_info>")


@_case(ALL)
def comments(count: int) -> str:
    return _small().text.replace("<dim>2</dim>", "<dim>2</dim><!-- two -->" + "\n<!-- two -->" * count)


@_case(CHECK)
def comments_that_ignore(count: int) -> str:
    text = _chain(count, declared=lambda _: "3").text
    return text.replace("<dim>3</dim>", "<dim>3</dim> <!-- irrun: ignore IR401 -->")


@_case(CHECK)
def comments_that_ignore_in_one_line(count: int) -> str:
    return comments_that_ignore(count).replace("\n", " ")  # type: ignore[union-attr]


@_case(CHECK)
def codes_of_a_comment(count: int) -> str:
    text = _chain(count, declared=lambda _: "3").text.replace("\n", " ")
    return text.replace("<edges>", f"<!-- irrun: ignore {', '.join(f'IR{i}' for i in range(count))} --><edges>")


@_case(CHECK)
def duplicate_ids_of_layers(count: int) -> str:
    return _small().text.replace("</layers>", '<layer id="1" name="a" type="ReLU" version="opset1"/>\n' * count + "</layers>")


@_case(CHECK)
def duplicate_ids_of_ports(count: int) -> str:
    net, x = _start()
    return _end(net, net.add("Concat", [x] * count, [TWO], axis=0)).text.replace('<port id="', '<port id="0" was="')


@_case(CHECK)
def duplicate_data(count: int) -> str:
    return _with_attributes("").replace("<data axis", '<data axis="0"/>\n' * count + "<data axis")


@_case(CHECK)
def duplicate_parts(count: int) -> str:
    return _small().text.replace("</layers>", "</layers>" + "<layers/>\n" * count)


@_case(CHECK)
def layers_without_a_type(count: int) -> str:
    return _chain(count).text.replace(' type="ReLU"', "")


@_case(CHECK)
def layers_without_a_version(count: int) -> str:
    return _chain(count).text.replace(' version="opset1"', "")


# ---------------------------------------------------------------------------------------------
# bodies and variables


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
    text = _chain(count, ("TensorIterator",)).text
    parts = _iterated(body, last)
    return text.replace("</output>\n\t\t</layer>\n\t\t<layer id", "</output>\n\t\t</layer>\n\t\t<layer id").replace(
        "</layer>", "\0"
    ).replace("\0", "</layer>", 1).replace("\0", parts, count).replace("\0", "</layer>")


@_case(ALL)
def bodies(count: int) -> str:
    return _loops(count, RELU_BODY)


@_case(FIX)
def wrong_bodies(count: int) -> str:
    return _loops(count, RELU_BODY.replace("<dim>2</dim>", "<dim>3</dim>", 3))


@_case(ALL)
def layers_of_a_body(count: int) -> str:
    return _loops(1, _layers_of(count, "2"), count + 1)


@_case(FIX)
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


@_case(ALL)
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


@_case(("check", "why", "show"))
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
    return _end(net, x).text


@_case(("check", "why", "show"))
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


@_case(CHECK)
def port_maps(count: int) -> str:
    entry = '<input external_port_id="0" internal_layer_id="0"/>\n'
    return _loops(1, RELU_BODY).replace("<port_map>", "<port_map>" + entry * count)


@_case(CHECK)
def port_maps_to_missing_layers(count: int) -> str:
    entries = "".join(f'<input external_port_id="{i}" internal_layer_id="{i}"/>\n' for i in range(5, count + 5))
    return _loops(1, RELU_BODY).replace("<port_map>", "<port_map>" + entries)


@_case(CHECK)
def back_edges(count: int) -> str:
    return _loops(1, RELU_BODY).replace("<back_edges>", '<back_edges><edge from-layer="2" to-layer="0"/>' * 1 + '<edge from-layer="2" to-layer="0"/>\n' * count)


@_case(ALL)
def inputs_of_a_body(count: int) -> str:
    """A TensorIterator with ``count`` inputs and outputs, each with a Parameter and a Result of the body."""
    net, x = _start()
    loop = net.add("TensorIterator", [x] * count, [TWO] * count)
    _end(net, *(Ref(loop.layer, count + i, TWO) for i in range(count)))
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


@_case(ALL)
def variables(count: int) -> Net:
    net, x = _start()
    given = {"variable_type": "f32", "variable_shape": "2"}
    for number in range(count):
        read = net.add("ReadValue", [x], [TWO], opset="opset6", variable_id=f"v{number}", **given)
        net.add("Assign", [read], [TWO], opset="opset6", variable_id=f"v{number}")
    return _end(net, x)


@_case(CHECK)
def variables_of_two_names(count: int) -> Net:
    net, x = _start()
    given = {"variable_type": "f32", "variable_shape": "2"}
    for number in range(count):
        read = net.add("ReadValue", [x], [TWO], opset="opset6", variable_id=f"v{number}", **given)
        net.add("Assign", [read], [TWO], opset="opset6", variable_id=f"w{number}")
    return _end(net, x)


@_case(CHECK)
def uses_of_a_variable(count: int) -> Net:
    net, x = _start()
    given = {"variable_type": "f32", "variable_shape": "2"}
    for _ in range(count):
        read = net.add("ReadValue", [x], [TWO], opset="opset6", variable_id="v", **given)
        net.add("Assign", [read], [TWO], opset="opset6", variable_id="v")
    return _end(net, x)


# ---------------------------------------------------------------------------------------------
# pages

EXAMPLE: Final = (
    '<layer type="ReLU"><input><port id="0"><dim>2</dim></port></input>'
    '<output><port id="1"><dim>{}</dim></port></output></layer>\n'
)


def _page(examples: str) -> str:
    return f"Examples\n\n```xml\n{examples}```\n"


@_case(PAGE, ".md")
def examples(count: int) -> str:
    return _page(EXAMPLE.format(2)) * count


@_case(PAGE, ".md")
def examples_of_a_block(count: int) -> str:
    return _page(EXAMPLE.format(2) * count)


@_case(("check",), ".md")
def examples_with_findings(count: int) -> str:
    return _page(EXAMPLE.format(3)) * count


@_case(PAGE, ".rst")
def examples_in_rst(count: int) -> str:
    return ("Title\n=====\n\n.. code-block:: xml\n\n    " + EXAMPLE.format(2) + "\n") * count


@_case(PAGE, ".html")
def examples_in_html(count: int) -> str:
    return f"<html><body>{('<pre>' + EXAMPLE.format(2).replace('<', '&lt;') + '</pre>') * count}</body></html>"


@_case(PAGE, ".html")
def examples_in_a_line_of_html(count: int) -> str:
    return f"<html><pre>{EXAMPLE.strip().format(2).replace('<', '&lt;') * count}"


@_case(("check",), ".html")
def findings_in_a_line_of_html(count: int) -> str:
    return f"<html><pre>{EXAMPLE.strip().format(3).replace('<', '&lt;') * count}"


@_case(PAGE, ".txt")
def examples_in_a_line(count: int) -> str:
    return "Examples " + EXAMPLE.strip().format(2) * count


@_case(PAGE, ".md")
def headings(count: int) -> str:
    return "# Heading\n\n" * count + _page(EXAMPLE.format(2))


@_case(PAGE, ".rst")
def headings_in_rst(count: int) -> str:
    return "Heading\n=======\n\n" * count + _page(EXAMPLE.format(2))


@_case(PAGE, ".md")
def code_blocks(count: int) -> str:
    return "```\ncode\n```\n" * count + _page(EXAMPLE.format(2))


@_case(PAGE, ".md")
def open_code_blocks(count: int) -> str:
    return "".join(f"{'`' * (3 + i % 9)}\n" for i in range(count)) + _page(EXAMPLE.format(2))


@_case(PAGE, ".html")
def tags_of_a_page(count: int) -> str:
    return f"<html>{'<p>text &amp; text</p>' * count}<pre>{EXAMPLE.format(2).replace('<', '&lt;')}</pre></html>"


@_case(PAGE, ".html")
def open_tags_of_a_page(count: int) -> str:
    return f"<html>{'<pre><div>' * count}{EXAMPLE.format(2).replace('<', '&lt;')}"


@_case(("check",), ".md")
def unclosed_layers(count: int) -> str:
    return _page("<layer type='ReLU'>\n" * count)


@_case(("check",), ".txt")
def unclosed_layers_in_text(count: int) -> str:
    return "Examples\n" + "<layer type='ReLU'>\n" * count


@_case(("check",), ".txt")
def unclosed_layers_in_a_line(count: int) -> str:
    return "Examples\n" + "<layer type='ReLU'>" * count


@_case(("check",), ".md")
def unclosed_layers_deeper(count: int) -> str:
    return _page("".join(" " * (i % 90) + "<layer type='a'>\n" for i in range(count)))


@_case(("check",), ".md")
def closing_tags(count: int) -> str:
    return _page("</layer>\n" * count + EXAMPLE.format(2))


@_case(("check",), ".md")
def layer_tags_cut_short(count: int) -> str:
    return _page("<layer \n" * count)


@_case(PAGE, ".md")
def comments_in_an_example(count: int) -> str:
    return _page(EXAMPLE.format(2).replace("</input>", "<!-- two -->\n" * count + "</input>"))


@_case(PAGE, ".md")
def contents_in_a_comment(count: int) -> str:
    example = EXAMPLE.format(count).replace("<dim>2</dim>", f"<dim>{count}</dim><!-- [{', '.join('2' * count)}] -->")
    return _page(example)


@_case(("check",), ".md")
def inputs_of_an_example(count: int) -> str:
    ports = "".join(f'<port id="{i}"><dim>2</dim></port>\n' for i in range(count))
    data = f'<data axis="0"/><input>{ports}</input><output><port id="{count}"><dim>3</dim></port></output>'
    return _page(f'<layer type="Concat">{data}</layer>\n')

"""Models with many layers, edges, inputs, outputs or constants."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from growth.catalogue import ALL, CHECK, FIX, READ, TWO, case, chain_of, end, small, start
from nets import Net, Ref


@case(ALL)
def chain(count: int) -> Net:
    return chain_of(count)


@case(ALL)
def chain_of_two_types(count: int) -> Net:
    return chain_of(count, ("Sigmoid", "Tanh"))


@case(ALL)
def branches(count: int) -> Net:
    net, x = start()
    return end(net, *(net.add("ReLU", [x], [TWO]) for _ in range(count)))


@case(ALL)
def unused_layers(count: int) -> Net:
    net, x = start()
    for _ in range(count):
        net.add("ReLU", [x], [TWO])
    return end(net, x)


@case(CHECK)
def unused_layers_of_one_chain(count: int) -> Net:
    """A chain that nobody needs, with many layers at its end that nobody reads."""
    net, x = start()
    last = x
    for _ in range(count // 2):
        last = net.add("ReLU", [last], [TWO])
    for _ in range(count // 2):
        net.add("ReLU", [last], [TWO])
    return end(net, x)


@case(READ)
def parameters_of_no_type(count: int) -> Net:
    net = Net()
    return end(
        net,
        *(
            net.add("ReLU", [net.add("Parameter", [], [("", "2")], element_type="dynamic", shape="2")], [("", "2")])
            for _ in range(count)
        ),
    )


@case(FIX)
def refused_layers_before_one(count: int) -> Net:
    """Many refused layers, all of which feed the same layer."""
    net, x = start()
    y = net.parameter("f32", "3", name="y")
    sums = [net.add("Add", [x, y], [TWO], auto_broadcast="numpy") for _ in range(count)]
    return end(net, net.add("Concat", sums, [("FP32", str(2 * count))], axis=0))


@case(ALL)
def diamonds(count: int) -> Net:
    net, last = start()
    for _ in range(count):
        last = net.add("Add", [last, last], [TWO], auto_broadcast="numpy")
    return end(net, last)


@case(ALL)
def sum_of_branches(count: int) -> Net:
    """All branches live at once."""
    net, x = start()
    branches = [net.add("Sigmoid", [x], [TWO]) for _ in range(count)]
    total = branches[0]
    for branch in branches[1:]:
        total = net.add("Add", [total, branch], [TWO], auto_broadcast="numpy")
    return end(net, total)


@case(ALL)
def sum_of_branches_backwards(count: int) -> Net:
    net, x = start()
    branches = [net.add("Sigmoid", [x], [TWO]) for _ in range(count)]
    total = branches[-1]
    for branch in branches[-2::-1]:
        total = net.add("Add", [branch, total], [TWO], auto_broadcast="numpy")
    return end(net, total)


@case(ALL)
def parameters(count: int) -> Net:
    net = Net()
    return end(net, *(net.add("ReLU", [net.parameter("f32", "2")], [TWO]) for _ in range(count)))


@case(ALL)
def inputs_of_a_layer(count: int) -> Net:
    net, x = start()
    return end(net, net.add("Concat", [x] * count, [("FP32", str(2 * count))], axis=0))


@case(ALL)
def outputs_of_a_layer(count: int) -> Net:
    net = Net()
    x = net.parameter("f32", str(2 * count), name="x")
    axis = net.const("i64", "", struct.pack("<q", 0))
    first = net.add("Split", [x, axis], [TWO] * count, num_splits=count)
    return end(net, *(Ref(first.layer, first.port + number, TWO) for number in range(count)))


@case(ALL)
def constants(count: int) -> Net:
    net, last = start()
    for _ in range(count):
        last = net.add("Add", [last, net.const("f32", "2", bytes(8))], [TWO], auto_broadcast="numpy")
    return end(net, last)


@case(ALL)
def constant_layers(count: int) -> Net:
    """A chain of layers that the planner folds."""
    net, x = start()
    last = net.const("f32", "2", bytes(8))
    for _ in range(count):
        last = net.add("Sigmoid", [last], [TWO])
    return end(net, net.add("Add", [x, last], [TWO], auto_broadcast="numpy"))


@case(ALL)
def shared_constant(count: int) -> Net:
    net, last = start()
    constant = net.const("f32", "2", bytes(8))
    for _ in range(count):
        last = net.add("Add", [last, constant], [TWO], auto_broadcast="numpy")
    return end(net, last)


@case(CHECK)
def overlapping_constants(count: int) -> Net:
    net, x = start()
    net.bin += bytes(4 * count + 4)
    for number in range(count):
        net.result(net.const("f32", "2", bytes(8), offset=4 * number))
    return end(net, x)


@case(READ)
def strings(count: int) -> Net:
    net, x = start()
    data = struct.pack(f"<I{count + 1}I", count, *range(count + 1)) + b"a" * count
    net.result(net.const("string", str(count), data))
    return end(net, x)


@case(READ)
def convolutions(count: int) -> Net:
    net = Net()
    last = net.parameter("f32", "1,1,4,4", name="x")
    weights = net.const("f32", "1,1,1,1", bytes(4))
    for _ in range(count):
        last = net.add(
            "Convolution",
            [last, weights],
            [("FP32", "1,1,4,4")],
            strides="1,1",
            pads_begin="0,0",
            pads_end="0,0",
            dilations="1,1",
        )
    return end(net, last)


@case(READ)
def pools_of_unknown_size(count: int) -> Net:
    """Formulas of dims that are as deep as the chain."""
    net = Net()
    last = net.parameter("f32", "1,1,?,?", name="x")
    for _ in range(count):
        last = net.add(
            "AvgPool",
            [last],
            [("FP32", "1,1,-1,-1")],
            rounding_type="floor",
            strides="1,1",
            pads_begin="0,0",
            pads_end="1,1",
            kernel="2,2",
            exclude_pad="true",
        )
    return end(net, last)


@case(("check", "why", "show"))
def growing_dims(count: int) -> Net:
    """Formulas of dims that nothing cancels."""
    net = Net()
    last = net.parameter("f32", "?,1", name="x")
    for _ in range(count):
        last = net.add("Concat", [last, last], [("FP32", "-1,1")], axis=0)
    return end(net, last)


@case(READ)
def arithmetic_on_shapes(count: int) -> Net:
    net = Net()
    x = net.parameter("f32", "?", name="x")
    last = net.add("ShapeOf", [x], [("I64", "1")])
    one = net.const("i64", "1", struct.pack("<q", 1))
    two = net.const("i64", "1", struct.pack("<q", 2))
    for number in range(count):
        type, operand = (("Add", one), ("Multiply", two), ("Divide", two))[number % 3]
        last = net.add(type, [last, operand], [("I64", "1")], auto_broadcast="numpy")
    return end(net, net.add("Broadcast", [x, last], [("FP32", "-1")], opset="opset3", mode="bidirectional"))


@case(READ)
def reshapes(count: int) -> Net:
    net = Net()
    last = net.parameter("f32", "2,3", name="x")
    shapes = [net.const("i64", "2", struct.pack("<2q", *dims)) for dims in ((2, 3), (3, 2))]
    for number in range(count):
        last = net.add(
            "Reshape", [last, shapes[number % 2]], [("FP32", ("2,3", "3,2")[number % 2])], special_zero="true"
        )
    return end(net, last)


@case(CHECK)
def edges_into_one_input(count: int) -> str:
    return _with_edges(['<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'] * count)


@case(CHECK)
def edges_between_missing_layers(count: int) -> str:
    return _with_edges(
        [f'<edge from-layer="{i + 9}" from-port="0" to-layer="{i + 8}" to-port="0"/>' for i in range(count)]
    )


@case(CHECK)
def edges_from_missing_ports(count: int) -> str:
    return _with_edges(
        [f'<edge from-layer="0" from-port="{i + 9}" to-layer="1" to-port="{i + 8}"/>' for i in range(count)]
    )


def _with_edges(edges: Sequence[str]) -> str:
    return small().text.replace("</edges>", "\n".join([*edges, "</edges>"]))


@case(CHECK)
def cycles(count: int) -> str:
    net = small()
    for _ in range(count):
        a = net.add("ReLU", [Ref(len(net.layers) + 1, 1, TWO)], [TWO])
        net.add("ReLU", [a], [TWO])
    return net.text


@case(CHECK)
def cycle(count: int) -> str:
    net = small()
    last = Ref(len(net.layers) + count - 1, 1, TWO)
    for _ in range(count):
        last = net.add("ReLU", [last], [TWO])
    return net.text


@case(CHECK)
def missing_edges(count: int) -> str:
    net = chain_of(count)
    net.edges = net.edges[:1]
    return net.text

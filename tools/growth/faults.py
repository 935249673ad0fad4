"""Models with many wrong declarations, also in other encodings and on long lines."""

from __future__ import annotations

from growth.catalogue import CHECK, FIX, TWO, case, chain_of, end, small, start
from nets import Net, Ref


@case(FIX)
def wrong_chain(count: int) -> Net:
    """Each layer declares a wrong dim."""
    return chain_of(count, declared=lambda _: "3")


@case(FIX)
def wrong_dims(count: int) -> Net:
    """Every other layer declares a wrong dim."""
    return chain_of(count, declared=lambda number: "23"[number % 2])


@case(FIX)
def wrong_at_the_start(count: int) -> Net:
    """A refused layer before a chain that depends on it."""
    return chain_of(count, declared=lambda number: "2" if number else "3")


@case(FIX)
def different_wrong_dims(count: int) -> Net:
    return chain_of(count, declared=lambda number: str(number + 3))


@case(FIX)
def wrong_inputs(count: int) -> Net:
    net, _ = start()
    return end(net, net.add("Concat", [Ref(0, 0, ("FP32", "3"))] * count, [("FP32", str(2 * count))], axis=0))


@case(FIX)
def different_wrong_inputs(count: int) -> Net:
    net, _ = start()
    inputs = [Ref(0, 0, ("FP32", str(number + 3))) for number in range(count)]
    return end(net, net.add("Concat", inputs, [("FP32", str(2 * count))], axis=0))


@case(FIX)
def wrong_consumers(count: int) -> Net:
    net, _ = start()
    return end(net, *(net.add("ReLU", [Ref(0, 0, ("FP32", "23"[i % 2]))], [TWO]) for i in range(count)))


@case(FIX)
def wrong_precisions(count: int) -> Net:
    net, last = start()
    for _ in range(count):
        last = net.add("ReLU", [last], [("I64", "2")])
    return end(net, last)


@case(FIX)
def dims_of_a_port(count: int) -> str:
    return small().text.replace("<dim>2</dim>", "<dim>2</dim>\n" * count, 2)


@case(FIX)
def words_as_dims(count: int) -> str:
    return small().text.replace("<dim>2</dim>", "<dim>x</dim>\n" * count, 2)


@case(FIX)
def ones_after_a_dim(count: int) -> str:
    return small().text.replace("<dim>2</dim>", "<dim>2</dim>" + "\n<dim>1</dim>" * count)


@case(FIX)
def refused_layers(count: int) -> Net:
    """Layers that refuse their inputs, each before a layer that depends on it."""
    net, x = start()
    y = net.parameter("f32", "3", name="y")
    sums = [net.add("Add", [x, y], [TWO], auto_broadcast="numpy") for _ in range(count)]
    return end(net, *(net.add("ReLU", [total], [TWO]) for total in sums))


@case(FIX)
def chain_of_refused_layers(count: int) -> Net:
    net, last = start()
    y = net.parameter("f32", "3", name="y")
    for _ in range(count):
        last = net.add("Add", [last, y], [TWO], auto_broadcast="numpy")
    return end(net, last)


@case(FIX)
def unknown_operations(count: int) -> Net:
    return chain_of(count, ("Relu6", "Softmaxx"))


@case(FIX)
def contradicting_parameters(count: int) -> Net:
    """Parameters whose ports contradict their attributes."""
    net = Net()
    layers = [net.add("Parameter", [], [("FP32", "3")], element_type="f32", shape="2") for _ in range(count)]
    return end(net, *(net.add("ReLU", [layer], [TWO]) for layer in layers))


@case(FIX, encoding="utf-16")
def wrong_dims_in_utf_16(count: int) -> str:
    return chain_of(count, declared=lambda number: "23"[number % 2]).text


@case(FIX, encoding="latin-1")
def wrong_dims_in_latin_1(count: int) -> str:
    text = chain_of(count, declared=lambda number: "23"[number % 2]).text
    return text.replace("?>", ' encoding="latin-1"?>', 1).replace('name="layer', 'name="ä')


@case(FIX)
def wrong_dims_in_one_line(count: int) -> str:
    return (
        chain_of(count, declared=lambda number: "23"[number % 2])
        .text.replace("\n", "")
        .replace('name="layer', 'name="ä')
    )


@case(FIX, encoding="utf-16")
def wrong_dims_in_one_line_of_utf_16(count: int) -> str:
    return wrong_dims_in_one_line(count)  # type: ignore[return-value]


@case(FIX)
def lines(count: int) -> str:
    return small().text.replace("<dim>2</dim>", "\n" * count + "<dim>3</dim>", 2)


@case(FIX)
def spaces(count: int) -> str:
    return small().text.replace("<dim>2</dim>", " " * count + "<dim>3</dim>", 2)


@case(FIX)
def spaces_around_a_number(count: int) -> str:
    return small().text.replace("<dim>2</dim>", f"<dim>{' ' * count}3{' ' * count}</dim>", 2)


@case(CHECK)
def digits(count: int) -> str:
    return small().text.replace("<dim>2</dim>", f"<dim>{'3' * count}</dim>", 2)


@case(CHECK)
def letters_of_a_name(count: int) -> str:
    return small().text.replace('name="relu"', f'name="{"r" * count}"').replace("<dim>2</dim>", "<dim>3</dim>", 2)


@case(CHECK)
def broken_tags(count: int) -> str:
    return "<net><layers>" + "<layer>\n" * min(count, 200) + "<" * count

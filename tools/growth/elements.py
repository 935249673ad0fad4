"""Models with many attributes, names, comments and unknown or repeated elements."""

from __future__ import annotations

from growth.catalogue import ALL, CHECK, FIX, TWO, case, chain_of, end, small, start
from nets import Net


def _with_attributes(attributes: str) -> str:
    net, x = start()
    net = end(net, net.add("Concat", [x, x], [("FP32", "4")], axis=0))
    return net.text.replace(' axis="0"', f' axis="0"{attributes}')


@case(CHECK)
def attributes(count: int) -> str:
    return _with_attributes("".join(f' a{i}="1"' for i in range(count)))


@case(CHECK)
def attributes_in_lines(count: int) -> str:
    return _with_attributes("".join(f'\na{i}="1"' for i in range(count)))


@case(FIX)
def misspelt_attributes(count: int) -> str:
    return _with_attributes("".join(f' axis{i}="1"' for i in range(count)))


@case(CHECK)
def attributes_of_a_layer(count: int) -> str:
    text = small().text.replace("<dim>2</dim>", "<dim>3</dim>", 2)
    return text.replace('name="relu"', 'name="relu"' + "".join(f' a{i}="1"' for i in range(count)))


@case(CHECK)
def items_of_an_attribute(count: int) -> str:
    return small().text.replace('shape="2"', f'shape="{",".join("2" * count)}"')


@case(CHECK)
def strides(count: int) -> str:
    net = Net()
    x = net.parameter("f32", "1,1,4,4", name="x")
    weights = net.const("f32", "1,1,1,1", bytes(4))
    net.bin.clear()
    return end(
        net,
        net.add(
            "Convolution",
            [x, weights],
            [("FP32", "1,1,4,4")],
            strides=",".join("1" * count),
            pads_begin="0,0",
            pads_end="0,0",
            dilations="1,1",
        ),
    ).text


@case(ALL)
def names_of_a_tensor(count: int) -> Net:
    net = Net()
    x = net.parameter("f32", "2", name="x", names=",".join(f"t{i}" for i in range(count)))
    return end(net, net.add("ReLU", [x], [TWO]))


@case(ALL)
def layers_of_one_name(count: int) -> str:
    return chain_of(count).text.replace('name="layer', 'name="layer" old="')


@case(ALL)
def rt_info(count: int) -> str:
    entries = "".join(f'<info{i} value="{i}"/>\n' for i in range(count))
    return small().text.replace("<rt_info/>", f"<rt_info>{entries}</rt_info>")


@case(ALL)
def rt_info_of_a_layer(count: int) -> str:
    entries = "".join(f'<attribute name="a{i}" version="0" value="{i}"/>\n' for i in range(count))
    return small().text.replace("<input>", f"<rt_info>{entries}</rt_info><input>", 1)


@case(ALL)
def rt_info_of_layers(count: int) -> str:
    return chain_of(count).text.replace(
        "<input>", '<rt_info><attribute name="fused_names" value="a"/></rt_info><input>'
    )


@case(ALL)
def unknown_elements(count: int) -> str:
    return small().text.replace("</layers>", "<what><is this='1'/></what>\n" * count + "</layers>")


@case(ALL)
def prefixes(count: int) -> str:
    names = "".join(f' xmlns:p{i}="urn:{i}"' for i in range(count))
    return small().text.replace("<rt_info/>", f"<rt_info{names}/>")


@case(ALL)
def prefixed_elements(count: int) -> str:
    entries = "".join(f'<p{i}:e xmlns:p{i}="urn:{i}"/>\n' for i in range(count))
    return small().text.replace("<rt_info/>", f"<rt_info>{entries}</rt_info>")


@case(ALL)
def comments(count: int) -> str:
    return small().text.replace("<dim>2</dim>", "<dim>2</dim><!-- two -->" + "\n<!-- two -->" * count)


@case(CHECK)
def comments_that_ignore(count: int) -> str:
    text = chain_of(count, declared=lambda _: "3").text
    return text.replace("<dim>3</dim>", "<dim>3</dim> <!-- irrun: ignore IR401 -->")


@case(CHECK)
def comments_that_ignore_in_one_line(count: int) -> str:
    return comments_that_ignore(count).replace("\n", " ")  # type: ignore[union-attr]


@case(CHECK)
def codes_of_a_comment(count: int) -> str:
    text = chain_of(count, declared=lambda _: "3").text.replace("\n", " ")
    return text.replace("<edges>", f"<!-- irrun: ignore {', '.join(f'IR{i}' for i in range(count))} --><edges>")


@case(CHECK)
def duplicate_ids_of_layers(count: int) -> str:
    return small().text.replace(
        "</layers>", '<layer id="1" name="a" type="ReLU" version="opset1"/>\n' * count + "</layers>"
    )


@case(CHECK)
def duplicate_ids_of_ports(count: int) -> str:
    net, x = start()
    return end(net, net.add("Concat", [x] * count, [TWO], axis=0)).text.replace('<port id="', '<port id="0" was="')


@case(CHECK)
def duplicate_data(count: int) -> str:
    return _with_attributes("").replace("<data axis", '<data axis="0"/>\n' * count + "<data axis")


@case(CHECK)
def duplicate_parts(count: int) -> str:
    return small().text.replace("</layers>", "</layers>" + "<layers/>\n" * count)


@case(CHECK)
def layers_without_a_type(count: int) -> str:
    return chain_of(count).text.replace(' type="ReLU"', "")


@case(CHECK)
def layers_without_a_version(count: int) -> str:
    return chain_of(count).text.replace(' version="opset1"', "")

"""irrun why: formulas that hold, followed back to where a number stands in the file."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from formulas import in_a_run, prove
from irrun import build as b
from irrun.cli import cli
from irrun.inference.trace import Place, Trace, chain
from nets import Net
from places import ROOT, SAMPLES

CONVNET = ROOT / "samples" / "convnet.xml"


def rows(path: Path, what: str | int, everything: bool = False) -> list[str]:
    """The lines of an answer below its title, with single spaces."""
    text = str(irrun.why(path, what, everything=everything))
    return [re.sub(r" +", " ", line).strip() for line in text.splitlines()[1:]]


def line_of(path: Path, text: str) -> int:
    """The first line that a text stands on."""
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def saved(model: irrun.Model, folder: Path) -> Path:
    irrun.save_model(model, folder / "net.xml")
    return folder / "net.xml"


# ---------------------------------------------------------------------------------------------
# formulas


def _f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def _convolutions(shape: list[int | str]) -> irrun.Model:
    x = b.parameter(shape, "f32", name="x")
    pads = {"pads_begin": (1, 0), "pads_end": (1, 2), "dilations": (1, 2)}
    strided = b.Convolution(x, _f32(4, 3, 3, 2), strides=(2, 1), **pads)
    pooled = b.MaxPool(strided, strides=(2, 2), kernel=(2, 3), pads_begin=(0, 0), pads_end=(0, 0), rounding_type="ceil")
    upsampled = b.ConvolutionBackpropData(pooled[0], _f32(4, 2, 2, 2), strides=(2, 2), dilations=(1, 1),
                                          pads_begin=(0, 0), pads_end=(0, 0))  # fmt: skip
    return b.model({"y": b.Concat(upsampled, b.ReLU(upsampled), axis=-1)})


def _heads(shape: list[int | str]) -> irrun.Model:
    x = b.parameter(shape, "f32", name="x")
    sizes = b.ShapeOf(x)
    target = b.Concat(b.Gather(sizes, [0, 1], 0), [2, -1], axis=0)
    heads = b.Transpose(b.Reshape(x, target, special_zero=False), [0, 2, 1, 3])
    scores = b.MatMul(heads, heads, transpose_b=True)
    flat = b.Reshape(scores, [0, -1], special_zero=True)
    halves = b.VariadicSplit(flat, 1, b.Concat([1], [-1], axis=0))
    return b.model({"y": b.Pad(halves[1], [0, 1], [0, 3], 0.0, pad_mode="constant")})


def _shapes(shape: list[int | str]) -> irrun.Model:
    x = b.parameter(shape, "f32", name="x")
    sizes = b.ShapeOf(x, output_type="i32")
    last = b.Squeeze(b.Slice(sizes, [-1], [3], [1]), 0)
    rest = b.Squeeze(b.Gather(sizes, [1], 0), 0)
    numbers = b.Range(2, b.Add(b.Multiply(last, 3), 1), 2, output_type="i64")
    rows = b.Range(0, b.Maximum(b.Subtract(rest, 1), b.FloorMod(last, 2)), 1, output_type="i64")
    chosen = b.Select(b.Greater(b.ReduceProd(b.Gather(sizes, [0, 1], 0), [0]), 1000), b.Divide(last, 2), rest)
    both = b.Add(b.Convert(numbers, destination_type="f32"), b.Unsqueeze(b.Convert(rows, destination_type="f32"), 1))
    tall = b.Tile(b.Broadcast(0.5, b.Concat(b.Unsqueeze(chosen, 0), b.Unsqueeze(last, 0), axis=0)), [2, 1])
    return b.model({"both": both, "tall": tall})


def _bodies(shape: list[int | str]) -> irrun.Model:
    x = b.parameter(shape, "f32", name="x")
    table = b.parameter([4, 5], "f32", name="table")

    def body(i, a, row):  # a grows in neither direction, what is concatenated has a constant in it
        wide = b.Concat(row, _f32(1, 3), axis=1)
        return True, b.Add(a, 1.0), b.concatenated(wide, axis=1)

    loop = b.Loop(3, True, x, b.sliced(table), body=body, name="loop")
    chosen = b.If(b.Less(b.ReduceMax(x, [0, 1]), 2.0), x, then=lambda v: b.Concat(v, v, axis=0), otherwise=lambda v: v)
    scanned = b.TensorIterator(b.sliced(x, axis=1, part_size=2), body=lambda part: b.concatenated(part, axis=0))
    return b.model({"last": loop[0], "all": loop[1], "if": chosen, "scan": scanned})


CASES: dict[str, tuple[Callable[[list[int | str]], irrun.Model], list[int | str], list[list[int]]]] = {
    "convolutions": (_convolutions, ["?", 3, "?", "7.."], [[1, 3, 9, 11], [2, 3, 12, 8]]),
    "heads": (_heads, ["?", "?", 8], [[2, 5, 8], [1, 3, 8]]),
    "shapes": (_shapes, ["?", "2..", "1..40"], [[3, 4, 5], [1, 2, 9], [40, 40, 4]]),
    "bodies": (_bodies, ["?", "2.."], [[2, 6], [1, 4]]),
}


@pytest.mark.parametrize("case", CASES)
def test_formulas_give_what_a_run_gives(case: str) -> None:
    """Over known dims and over unknown ones, with all sizes: each formula, from its text."""
    make, unknown, sizes = CASES[case]
    dynamic = make(unknown)
    for size in sizes:
        feeds = [np.ones(size, np.float32), *[_f32(4, 5)] * (len(dynamic.parameters) - 1)]
        assert prove(Trace(dynamic), in_a_run(dynamic, feeds))["formula"] > 3
        static = make(list(size))
        prove(Trace(static), in_a_run(static, feeds))
        assert prove(Trace(static))["untold"] == (case == "bodies")  # which branch is taken


def test_formulas_of_a_model_that_openvino_wrote(tmp_path: Path, ov: Any) -> None:
    o = ov.opset13
    x = o.parameter([-1, 3, -1, -1], ov.Type.f32, name="x")
    conv = o.convolution(x, _f32(4, 3, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1])
    mean = o.reduce_mean(o.relu(conv), np.array([2]), keep_dims=False)
    size = o.gather(o.shape_of(mean), np.array([0, 2]), np.array(0))
    flat = o.reshape(mean, o.concat([size, np.array([-1])], 0), False)
    ov.serialize(ov.Model([o.result(flat)], [x], "m"), tmp_path / "m.xml")
    model = irrun.read_model(tmp_path / "m.xml")
    for size in ([2, 3, 9, 16], [1, 3, 1, 5]):
        assert prove(Trace(model), in_a_run(model, [np.ones(size, np.float32)]))["untold"] == 0


# ---------------------------------------------------------------------------------------------
# the answer


def test_a_convolution_is_told_with_its_numbers(tmp_path: Path) -> None:
    x = b.parameter([1, 3, 112, 112], "f32", name="image")
    relu = b.ReLU(b.ReLU(x), name="relu")
    path = saved(b.model({"y": b.Convolution(relu, _f32(8, 3, 3, 3), strides=(2, 2), pads_begin=(1, 1),
                                             pads_end=(1, 1), dilations=(1, 1), name="conv")}), tmp_path)  # fmt: skip
    image, filters = line_of(path, 'name="image"'), line_of(path, 'type="Const"')
    found = rows(path, "conv")
    assert found[0] == f'dim 0 = 1 line {image}, Parameter "image" dim 0, through 2 layers'
    assert re.fullmatch(f'dim 1 = 8 line {filters}, Const ".*" dim 0', found[1])
    head = r"dim 2 = floor\(\(112 \+ 1 \+ 1 - 3\) / 2\) \+ 1 = 56 "
    attributes = set(re.sub(head, "", found[2]).split())
    assert attributes == {"strides=2,2", "pads_begin=1,1", "pads_end=1,1", "dilations=1,1"}
    assert found[3] == f'112 line {image}, Parameter "image" dim 2, through 2 layers'
    assert re.fullmatch(f'3 line {filters}, Const ".*" dim 2', found[4])


def test_a_dim_carried_far_is_one_line_and_all_tells_of_each_layer(tmp_path: Path) -> None:
    x = b.parameter([2, "?"], "f32", name="x")
    last: object = x
    for i in range(40):  # a 3x1 window that keeps the dim is no more than a ReLU
        last = b.ReLU(last, name=f"relu{i}") if i % 2 else b.Add(last, 1.0, name=f"add{i}")
    path = saved(b.model({"y": last}), tmp_path)
    found = rows(path, "relu39")
    assert found == [
        f'dim {axis} = {dim} line {line_of(path, "Parameter")}, Parameter "x" dim {axis}, through 39 layers'
        for axis, dim in enumerate(["2", "x[1]"])
    ]
    assert len(rows(path, "relu39", everything=True)) == 2 * 41


def test_a_chain_ends_at_what_is_told_already_or_at_so_many_links() -> None:
    windows = {"strides": [2], "pads_begin": [0], "pads_end": [0], "kernel": [2], "dilations": [1]}
    last: Any = b.parameter([1, 1, 80], "f32", name="x")
    for name in ("first", "second", "third"):
        last = b.ReLU(b.MaxPool(last, **windows, name=name)[0], name=f"relu-{name}")
    model = b.model({"y": last})
    ids = {layer.name: layer.id for layer in model.layers.values()}
    trace = Trace(model)

    def places(*names: str) -> list[Place]:
        return [Place(trace, ids[name], 0, 2) for name in names]

    def told(**options: Any) -> list[tuple[Place, int]]:
        return [(link.derivation.place, link.through) for link in chain(*places("relu-third"), **options)]

    every = [*zip(places("third", "second", "first", "x"), [0, 1, 1, 0])]
    assert told() == every
    assert told(told=places("second")) == every[:2]
    assert told(told=places("third", "first")) == every[:1]
    assert told(most=3) == every[:3]
    layers = ("relu-third", "third", "relu-second", "second", "relu-first", "first", "x")
    assert told(everything=True) == [(place, 0) for place in places(*layers)]
    assert told(everything=True, told=places("relu-second")) == [(place, 0) for place in places(*layers[:3])]


def test_a_chain_counts_the_layers_that_it_skips() -> None:
    """Jumps over 32 layers that an earlier question has recorded change no count."""
    last: Any = b.parameter([1, 1, 80], "f32", name="x")
    last = b.MaxPool(last, strides=[2], pads_begin=[0], pads_end=[0], kernel=[2], dilations=[1], name="pool")[0]
    for number in range(100):
        last = b.ReLU(last, name=f"relu{number}")
    model = b.model({"y": last})
    ids = {layer.name: layer.id for layer in model.layers.values()}
    trace = Trace(model)
    for number in (99, 99, 70, 90, 40):
        link, parameter = chain(Place(trace, ids[f"relu{number}"], 0, 2), most=9)
        assert (link.derivation.place.layer, link.through) == (ids["pool"], number)
        assert (parameter.derivation.place.layer, parameter.through) == (ids["x"], 0)


def test_a_convolution_that_keeps_a_dim_only_passes_it_on(tmp_path: Path) -> None:
    x = b.parameter([1, 2, "?"], "f32", name="x")
    last: object = x
    for _ in range(3):
        same = b.Convolution(last, _f32(2, 2, 3), strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
        last = b.Add(last, same)  # the two are known to be equal
    path = saved(b.model({"y": b.ReLU(last, name="relu")}), tmp_path)
    assert (
        rows(path, "relu")[-1]
        == f'dim 2 = x[2] line {line_of(path, "Parameter")}, Parameter "x" dim 2, through 3 layers'
    )


def test_shape_subgraphs_are_followed_by_element(tmp_path: Path) -> None:
    x = b.parameter(["?", 6, 10], "f32", name="ids")
    target = b.Concat(b.Gather(b.ShapeOf(x), [0], 0), [4, -1], axis=0, name="target")
    path = saved(b.model({"y": b.Reshape(x, target, special_zero=False, name="split")}), tmp_path)
    where = f'line {line_of(path, "Parameter")}, Parameter "ids"'
    first, second, third, *rest = rows(path, "split")
    assert first == f"dim 0 = ids[0] {where} dim 0"  # by way of target, too
    assert re.fullmatch(r'dim 1 = 4 line \d+, Const ".*" element 0, through 1 layer', second)
    assert third == "dim 2 = floor(6 * 10 / 4) = 15"  # ids[0] stands on both sides
    assert [row.split(" line ")[0] for row in rest] == ["6", "10", "4"]
    assert f"element 0 = ids[0] {where} dim 0, through 2 layers" in rows(path, "target")


def test_the_elements_of_a_shape_are_told_as_well() -> None:
    x = b.parameter(["?", 6], "f32", name="x")
    sizes = b.Multiply(b.ShapeOf(x), [2, 5], name="sizes")
    text = str(irrun.why(b.model({"y": sizes}), "sizes"))
    assert re.search(r"element 0 = x\[0\] \* 2\n", text)
    assert re.search(r"element 1 = 6 \* 5 = 30\n", text)


def test_unknown_numbers_have_names_of_their_own() -> None:
    x = b.parameter(["?"], "f32", name="x")
    half = b.Slice(x, [0], [9999], [2], name="half")
    text = str(irrun.why(b.model({"y": b.Concat(half, half, [1.0], axis=0, name="twice")}), "twice"))
    assert re.search(r"dim 0 = n1 \+ n1 \+ 1\n +n1 = ceil\(.*x\[0\].* / 2\) +line", text)


def test_what_depends_on_data_is_said_to() -> None:
    x = b.parameter([4, 4], "f32", name="x")
    text = str(irrun.why(b.model({"y": b.NonZero(x, name="where")}), "where"))
    assert re.search(r"dim 0 = 2 ", text)
    assert re.search(r"dim 1 = n1 +0\.\.16, known only at run time", text)


def test_bodies_are_followed_out_of_and_into() -> None:
    """A Parameter of a body comes from what the layer reads; an output of the layer, from constants in its body."""
    model = _bodies([2, 6])
    loop = next(layer for layer in model.layers.values() if layer.type == "Loop")
    inner = loop.bodies["body"]
    sliced = next(p for p in inner.parameters if p.outputs[0].shape and p.outputs[0].shape.static == (1, 5))
    trace = Trace(model).bodies(loop.id)["body"]
    rows, columns = (trace.derivation(place) for place in trace.places(sliced.id, 0))
    assert rows.formula == 1  # the size of a slice
    (source,) = columns.sources.values()
    assert (source.trace.model, source.trace.model.layers[source.layer].name, source.index) == (model, "table", 1)
    text = str(irrun.why(model, f"loop:{loop.outputs[1].id}"))
    assert re.search(r"dim 1 = \(5 \+ 3\) \* 3 = 24", text)
    assert re.search(r' 3 +line \d+, Const ".*" dim 1\n', text)


def test_json() -> None:
    found = json.loads(json.dumps(irrun.why(CONVNET, "block1/pool").record()))
    assert (found["layer"], found["type"], found["line"]) == ("block1/pool", "MaxPool", 105)
    output = found["outputs"][0]
    assert [d["value"] for d in output["dims"]] == [1, 8, 14, 14]
    third = output["dims"][2]
    assert third["formula"] == "floor((data.shape[2] - 2) / 2) + 1"
    step = found["steps"][third["step"]]
    assert step["attributes"] == {"strides": "2,2", "kernel": "2,2"} | step["attributes"]
    (source,) = step["sources"]
    assert source["symbol"] == "data.shape[2]"
    end = found["steps"][source["step"]]
    assert (end["layer"], end["line"], end["dim"], end["value"], end["formula"]) == ("image", 4, 2, 28, None)
    assert {"x[0]"} == {d["symbol"] for d in irrun.why(_heads(["?", 4, 8]), "x").record()["outputs"][0]["dims"][:1]}


# ---------------------------------------------------------------------------------------------
# what may be asked


@pytest.fixture
def net(tmp_path: Path) -> Path:
    net = Net()
    x = net.parameter("f32", "2,6", name="x", names="in:0")
    split = net.add("Split", [x, net.const("i64", "", bytes(8), name="axis")], [("FP32", "1,6"), ("FP32", "1,6")],
                    name="a/b:c", num_splits=2)  # fmt: skip
    again = net.add("ReLU", [split], [("FP32", "1,6")], name="twin", names="out")
    net.result(net.add("ReLU", [again], [("FP32", "1,6")], name="twin"), name="y")
    return net.save(tmp_path)


@pytest.mark.parametrize(
    ("what", "title"),
    [
        ("a/b:c", "Split \"a/b:c\" output 2: [1,6]"),
        ("a/b:c:3", "Split \"a/b:c\" output 3: [1,6]"),
        ("a/b:c:0", "Parameter \"x\" output 0: [2,6]"),
        ("in:0", "Parameter \"x\" output 0: [2,6]"),
        ("out", "ReLU \"twin\" output 1: [1,6]"),
        ("twin#3", "ReLU \"twin\" output 1: [1,6]"),
        ("y", "ReLU \"twin\" output 1: [1,6]"),
    ],
)  # fmt: skip
def test_names(what: str, title: str, net: Path) -> None:
    assert str(irrun.why(net, what)).startswith(f"{title}  {net}:")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("twin", r"2 layers are called \"twin\", on lines \d+, \d+.*name one by its line"),
        ("twn#3", r"no layer is called \"twn#3\".*did you mean \"twin#3\"\?"),
        ("B:C", r"no layer is called.*did you mean \"a/b:c\"\?"),
        ("zzz", r"no layer is called \"zzz\".*name a layer, or a line"),
        ("x:9", r"Parameter \"x\" has no connected port 9.*its ports are 0"),
        (1, r"there is no layer on line 1"),
        (9999, r"there is no layer on line 9999"),
    ],
)
def test_names_that_mean_nothing_or_too_much(what: str | int, said: str, net: Path) -> None:
    with pytest.raises(irrun.ModelError) as caught:
        irrun.why(net, what)
    (found,) = caught.value.diagnostics
    assert found.code == "IR606"
    assert re.search(said, f"{found.message} {found.help}", re.DOTALL)


def test_lines(net: Path) -> None:
    lines = net.read_text().splitlines()
    split = line_of(net, 'type="Split"')
    assert str(irrun.why(net, split)).count("output") == 2
    port = next(i for i in range(split, len(lines)) if 'port id="3"' in lines[i]) + 1
    assert "output 3: [1,6]" in str(irrun.why(net, port))
    assert rows(net, port + 2) == [f'dim 1 = 6 line {line_of(net, "Parameter")}, Parameter "x" dim 1']
    read = next(i for i in range(split, len(lines)) if 'port id="0"' in lines[i]) + 1
    assert str(irrun.why(net, read)).startswith('Parameter "x"')
    edge = line_of(net, '<edge from-layer="2" from-port="2"')
    assert str(irrun.why(net, edge)).startswith('Split "a/b:c" output 2')


def test_many_layers_on_one_line(net: Path) -> None:
    net.write_text(net.read_text().replace("\n", " "))
    with pytest.raises(irrun.ModelError, match="6 layers begin on line 1"):
        irrun.why(net, 1)
    assert str(irrun.why(net, "a/b:c")).startswith("Split")


def test_layers_of_bodies_have_names_and_lines(tmp_path: Path) -> None:
    x = b.parameter([2, 3], "f32", name="x")
    loop = b.Loop(3, True, x, body=lambda i, a: (True, b.ReLU(a, name="inside")))
    path = saved(b.model({"y": loop}), tmp_path)
    expected = [
        f'dim {i} = {n} line {line_of(path, "Parameter")}, Parameter "x" dim {i}, through 1 layer'
        for i, n in ((0, 2), (1, 3))
    ]
    assert rows(path, "inside") == expected
    assert rows(path, line_of(path, 'name="inside"')) == expected


PAGE = """
A page.

<layer ... type="Convolution" ...>
    <data dilations="1" pads_begin="0" pads_end="0" strides="2"/>
    <input>
        <port id="0"><dim>1</dim><dim>3</dim><dim>9</dim></port>
        <port id="1"><dim>4</dim><dim>3</dim><dim>3</dim></port>
    </input>
    <output>
        <port id="2"><dim>1</dim><dim>4</dim><dim>5</dim></port>
    </output>
</layer>
"""


def test_examples_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text(PAGE)
    title, *found = str(irrun.why(page, 11)).splitlines()
    assert title.startswith('Convolution "Convolution" output 2: [1,4,4], declared [1,4,5]')
    assert re.sub(" +", " ", found[2]).startswith(" dim 2 = floor((9 - 3) / 2) + 1 = 4 ")
    assert found[3].endswith("line 7, input 0 dim 2")


# ---------------------------------------------------------------------------------------------
# models with errors


def test_a_layer_that_is_refused_and_what_follows_it(tmp_path: Path) -> None:
    net = Net()
    a, c = net.parameter("f32", "2,3", name="a"), net.parameter("f32", "2,4", name="c")
    add = net.add("Add", [a, c], [("FP32", "2,3")], name="sum")
    path = net.add("ReLU", [add], [("FP32", "2,3")], name="relu") and net.save(tmp_path)
    first, *_ = rows(path, "sum")
    assert first.startswith("cannot be inferred: a [2,3] and b [2,4] cannot be broadcast")
    assert rows(path, "relu")[0].startswith(f'dim 0 = 2 line {line_of(path, "Add")}, Add "sum" dim 0')


def test_a_cycle_and_an_unknown_operation(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    first = net.add("Add", [x, x], [("FP32", "2")], name="first")
    second = net.add("ReLU", [net.add("Unheard", [first], [("FP32", "2")], name="odd")], [("FP32", "2")], name="second")
    net.result(second)
    net.edges[1] = net.edges[1].replace('from-layer="0" from-port="0"', 'from-layer="3" from-port="1"')
    path = net.save(tmp_path)
    for name in ("first", "odd", "second"):
        assert rows(path, name) == [] or rows(path, name)
    net.edges[1] = net.edges[1].replace('from-layer="3" from-port="1"', 'from-layer="0" from-port="0"')
    path = net.save(tmp_path)
    assert rows(path, "second") == [f'dim 0 = 2 line {line_of(path, "Unheard")}, Unheard "odd" dim 0']


# ---------------------------------------------------------------------------------------------
# under a finding


def notes(net: Net, folder: Path) -> list[str]:
    (found,) = [d for d in irrun.check(net.save(folder)) if d.severity == "error"]
    return list(found.notes)


def test_a_broadcast_that_fails_is_drawn(tmp_path: Path) -> None:
    net = Net()
    a, c = net.parameter("f32", "8,1,3,32", name="a"), net.parameter("f32", "12,4,32", name="c")
    net.result(net.add("Add", [a, c], [("FP32", "8,12,3,32")], name="sum"))
    assert notes(net, tmp_path)[:3] == [
        "a  [8,  1, 3, 32]",
        "b     [12, 4, 32]",
        "           ^",
    ]  # fmt: skip


def test_what_cannot_be_broadcast_is_followed_back(tmp_path: Path) -> None:
    net = Net()
    image = net.parameter("f32", "1,3,9", name="image")
    filters = net.const("f32", "3,3,2", bytes(72), name="filters")
    conv = net.add("Convolution", [image, filters], [("FP32", "1,3,8")], name="conv", strides="1", pads_begin="0",
                   pads_end="0", dilations="1")  # fmt: skip
    net.result(net.add("Add", [net.add("ReLU", [conv], [("FP32", "1,3,8")]), image], [("FP32", "1,3,8")], name="sum"))
    found = [re.sub(" +", " ", note) for note in notes(net, tmp_path)]
    assert any(n.startswith("a.shape[2] = 9 - 2 + 1 = 8 line ") and 'Convolution "conv" dim 2' in n for n in found)
    assert any(n.startswith(" 9 line ") and n.endswith('Parameter "image" dim 2') for n in found)


def test_a_reshape_that_fails_shows_both_products(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2,3,4", name="x")
    shape = net.const("i64", "2", np.array([5, 6]).tobytes(), name="shape")
    net.result(net.add("Reshape", [x, shape], [("FP32", "5,6")], name="r", special_zero="false"))
    assert notes(net, tmp_path)[:2] == ["data   2 * 3 * 4 = 24", "shape  5 * 6     = 30"]


def test_a_concat_that_fails_marks_the_dim_that_differs(tmp_path: Path) -> None:
    net = Net()
    parts = [net.parameter("f32", shape, name=f"x{i}") for i, shape in enumerate(("1,10,8", "1,20,8", "1,7,16"))]
    net.result(net.add("Concat", parts, [("FP32", "1,37,8")], name="joined", axis=1))
    drawn = notes(net, tmp_path)[:3]
    assert drawn[1] == "input 2    [1,  7, 16]"
    assert drawn[2] == "                   ^^"


def test_a_wrong_dim_is_followed_back(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "1,1,28", name="x")
    pool = net.add(
        "MaxPool", [x], [("FP32", "1,1,15")], name="pool", strides="2", kernel="2", pads_begin="0", pads_end="0"
    )
    net.result(pool)
    found = [re.sub(" +", " ", note) for note in notes(net, tmp_path)]
    assert any(n.startswith("dim 2 = floor((28 - 2) / 2) + 1 = 14 strides=2") for n in found)


# ---------------------------------------------------------------------------------------------
# the command


def test_the_command(tmp_path: Path) -> None:
    def call(*args: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(cli, ["why", *map(str, args)])
        return result.exit_code, result.stdout, result.stderr

    pool = str(irrun.why(CONVNET, "block1/pool"))
    third = f"{pool.splitlines()[0]}\n{chr(10).join(pool.splitlines()[3:5])}\n"
    assert call(CONVNET, "block1/pool") == (0, pool, "")
    dim = line_of(CONVNET, 'name="block1/pool"') + 14
    for spelling in ([f"{CONVNET}:{dim}"], [f"{CONVNET}:{dim}:6"], [CONVNET, dim], [CONVNET, f"{dim}:6"]):
        assert call(*spelling) == (0, third, "")
    (found,) = json.loads(call(CONVNET, "block1/pool", "--format", "json")[1])["explanations"]
    assert found == irrun.why(CONVNET, "block1/pool").record()
    status, outputs, _ = call(CONVNET)
    assert status == 0
    assert outputs.startswith('SoftMax "probabilities" output 1: [1,10]')
    alone = tmp_path / "alone.xml"
    alone.write_bytes(CONVNET.read_bytes())
    status, outputs, said = call(alone, "flatten")
    assert (status, outputs.split("\n")[2].strip()) == (0, "dim 1 = n2  known only at run time")
    assert "there is no .bin" in said
    status, _, said = call(CONVNET, "block1/poool")
    assert status == 2
    assert 'did you mean "block1/pool"?' in said
    assert call("nothing.xml:3")[0] == 2
    assert call(f"{CONVNET}:3", "x")[0] == 2
    (tmp_path / "page.md").write_text("A page without an example.")
    assert call(tmp_path / "page.md")[0] == 2


def test_the_page_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "checking.md").read_text("utf-8")
    ((arguments, shown),) = re.findall(r"```console\n\$ irrun (why [^\n]*)\n(.*?)```", page, re.DOTALL)
    assert CliRunner().invoke(cli, arguments.split()).stdout == shown


def test_a_formula_too_long_to_write_is_counted() -> None:
    x = b.parameter(["?", 2], "f32", name="x")
    start = b.Gather(b.ShapeOf(x), [0], 0)

    def body(a):
        for _ in range(60):
            a = b.Add(a, a)
        return a

    chosen = b.If(True, start, then=body, otherwise=lambda a: a, name="chosen")
    text = str(irrun.why(b.model({"y": chosen}), "chosen"))
    assert re.search(r"dim 0 = 1 ", text)
    for count, written in ((64, True), (65, False)):
        model = b.model({"y": b.Concat(*[x] * count, axis=0, name="wide")})
        (output,) = irrun.why(model, "wide").record()["outputs"]
        assert [(dim["symbol"] is not None, dim["formula"] is not None) for dim in output["dims"]] == [
            (written, written),
            (True, True),
        ]
    wide = b.Concat(*[x] * 70, axis=0, name="wide")
    text = str(irrun.why(b.model({"y": wide}), "wide"))
    assert "dim 0 = a formula of 70 terms" in text
    assert irrun.why(b.model({"y": wide}), "wide").record()["outputs"][0]["dims"][0]["formula"] is None


def test_a_glob_names_the_layers_that_tap_names() -> None:
    path = str(SAMPLES / "convnet.xml")
    result = CliRunner().invoke(cli, ["why", path, "block*/pool"])
    assert result.exit_code == 0
    titles = [line.split(": ")[0] for line in result.stdout.splitlines() if line[:1].strip()]
    assert titles == [f'MaxPool "block{block}/pool" output {port}' for block in (1, 2) for port in (1, 2)]
    assert str(irrun.why(path, "block1/po*")) == str(irrun.why(path, "block1/pool"))
    with pytest.raises(irrun.ModelError, match=r'2 layers are called "block\*/pool"'):
        irrun.why(path, "block*/pool")
    result = CliRunner().invoke(cli, ["why", path, "block"])
    assert 'did you mean "block1/add" or "block2/add" or "block1/conv"?' in result.stderr

"""irrun run."""

import json
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
import irrun.build as build
from irrun.types import ELEMENT_TYPES
from nets import Net
from places import SAMPLES

DTYPES = [name for name in ELEMENT_TYPES if name != "dynamic"]


def echo(*inputs: tuple[str, str], version: int = 11) -> Net:
    """A model that gives back its inputs x0, x1, … as y0, y1, …"""
    net = Net(version)
    for i, (element_type, shape) in enumerate(inputs):
        net.result(net.parameter(element_type, shape, name=f"x{i}"), name=f"y{i}")
    return net


def divide() -> Net:
    net = Net()
    a, b = (net.parameter("f32", "2", name=name, names=f"tensor_{name}") for name in "ab")
    net.result(net.add("Divide", [a, b], [("FP32", "2")], names="quotient"))
    return net


def table(text: str) -> list[list[str]]:
    """The rows of the tables, split at two spaces or more."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def record(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


# ---------------------------------------------------------------------------------------------
# the tables


def test_the_tables(call, tmp_path):
    path = divide().save(tmp_path)
    result = call("run", path, "-i", "a=[1, 3]", "-i", "tensor_b=2")
    assert result.exit_code == 2  # a scalar is no [2]
    result = call("run", path, "-i", "a=[1, 3]", "-i", "tensor_b=[2,2]")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert table(result.stdout) == [
        ["inputs"],
        ["name", "type", "shape", "from"],
        ["a", "f32", "[2]", "as given"],
        ["b", "f32", "[2]", "as given"],
        ["outputs"],
        ["name", "type", "shape", "declared", "min", "mean", "max", "first values"],
        ["quotient", "f32", "[2]", "yes", "0.5", "1", "1.5", "0.5 1.5"],
    ]
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


def test_json_has_the_same_facts(call, tmp_path):
    found = record(call("run", divide().save(tmp_path), "-i", "0=[1,3]", "-i", "1=[2,2]", "--format", "json"))
    assert found["inputs"][0] == {"name": "a", "type": "f32", "shape": [2], "from": "as given"}
    assert found["outputs"] == [
        {
            "name": "quotient", "type": "f32", "shape": [2], "as_declared": True, "declared_type": "f32",
            "declared_shape": [2], "min": 0.5, "mean": 1.0, "max": 1.5, "nan": 0, "inf": 0, "first": [0.5, 1.5],
        }
    ]  # fmt: skip


def test_nan_and_infinity(call, tmp_path):
    args = ("run", divide().save(tmp_path), "-i", "a=[1,0]", "-i", "b=zeros")
    row = table(call(*args).stdout)[-1]
    assert row == ["quotient", "f32", "[2]", "yes", "-", "-", "-", "1 nan, 1 inf", "inf nan"]
    output = record(call(*args, "--format", "json"))["outputs"][0]
    assert (output["min"], output["nan"], output["inf"], output["first"]) == (None, 1, 1, ["inf", "nan"])


@pytest.mark.parametrize("element_type", DTYPES)
def test_every_element_type(element_type, call, tmp_path):
    path = echo((element_type, "2,3"), (element_type, ""), (element_type, "0,3")).save(tmp_path)
    rows = table(call("run", path).stdout)
    assert [row[:3] for row in rows[2:5]] == [
        [f"x{i}", element_type, s] for i, s in enumerate(("[2,3]", "[]", "[0,3]"))
    ]
    assert [row[3] for row in rows[7:]] == ["yes"] * 3
    assert rows[-1][-1] == "(no elements)"
    assert all(call("run", path, "-i", f"x0={how}").exit_code == 0 for how in ("zeros", "ones", "arange", "random"))


def test_more_values_than_fit(call, tmp_path):
    path = echo(("boolean", "9"), ("string", "1"), ("i64", "1")).save(tmp_path)
    long = json.dumps(["x" * 99])
    rows = table(call("run", path, "-i", "x0=arange", "-i", f"x1={long}", "-i", "x2=[9223372036854775807]").stdout)
    assert rows[-3][4:] == ["false", "0.444444", "true", "false true false true false true ..."]
    assert rows[-2][-1] == '"' + "x" * 21 + '..."'
    assert rows[-1][-1] == "9223372036854775807"


def test_two_outputs_of_one_name(call, tmp_path):
    net = Net()
    x = net.parameter("f32", "2", names="t")
    for name in ("first", "second"):
        net.result(x, name=name)
    result = call("run", net.save(tmp_path), "-o", "out.npz")
    assert result.exit_code == 0
    assert np.load("out.npz").files == ["t", "second"]


def test_what_is_not_as_declared(call, tmp_path):
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Add", [x, x], [("FP32", "3")], name="sum"))
    path = net.save(tmp_path)
    strict = call("run", path, "--strict")
    assert strict.exit_code == 1
    assert "error[IR602 not-as-declared]" in strict.stderr
    assert strict.stdout == ""
    loose = call("run", path)
    assert loose.exit_code == 0
    assert table(loose.stdout)[-1][:4] == ["result2", "f32", "[2]", "no: f32 [3]"]


# ---------------------------------------------------------------------------------------------
# inputs


def test_inputs_that_are_not_given(call, tmp_path):
    path = echo(("f32", "2"), ("i64", "?,1..4,3..9")).save(tmp_path)
    one, two, other = (call("run", path, "--seed", seed).stdout for seed in (1, 1, 2))
    assert one == two
    assert one != other
    assert "x0    f32   [2]      not given: random, seed 1\n" in one
    assert "x1    i64   [1,1,3]  not given: random, seed 1, shape chosen for [?,1..4,3..9]\n" in one


def test_a_drawn_input_does_not_depend_on_those_given(call, tmp_path):
    path = echo(("f32", "2"), ("f32", "3")).save(tmp_path)
    assert table(call("run", path).stdout)[-1] == table(call("run", path, "-i", "x0=zeros").stdout)[-1]


def test_dims_of_generated_inputs(call, tmp_path):
    path = echo(("f32", "?,3"), ("f32", "...")).save(tmp_path)
    rows = table(call("run", path, "-i", "x0=arange:[2,3]", "-i", "1=ones:[]").stdout)
    assert rows[-2] == ["y0", "f32", "[2,3]", "yes", "0", "2.5", "5", "0 1 2 3 4 5"]
    assert rows[-1][:3] == ["y1", "f32", "[]"]


def test_a_failed_run_tells_which_dims_were_chosen(call, tmp_path):
    net = Net()
    x, y = net.parameter("f32", "?", name="x"), net.parameter("f32", "2..3", name="y")
    shape = net.parameter("i64", "1", name="shape")
    net.result(net.add("Broadcast", [net.add("Add", [x, y], [("FP32", "?")]), shape], [("FP32", "?")], opset="opset3"))
    result = call("run", net.save(tmp_path), "-i", "shape=[5]")
    assert result.exit_code == 1
    assert (
        "note: input \"y\" has the dynamic shape [2..3], for which irrun chose [2]; choose other dims with -i 'y=random:[...]'"
        in (result.stderr)
    )
    assert "IR605" in result.stderr


def test_npy_and_npz(call, tmp_path):
    path = divide().save(tmp_path)
    np.save("a.npy", np.array([6, 8], ">f4"))  # of the other byte order
    np.savez("both.npz", a=np.ones(2, np.float32), tensor_b=np.array([2, 4], np.float32))
    np.savez("one.npz", whatever=np.full(2, 3, np.float32))
    assert table(call("run", path, "-i", "a=a.npy", "-i", "b=both.npz").stdout)[-1][-1] == "3 2"
    assert table(call("run", path, "-i", "a=both.npz:tensor_b", "-i", "b=one.npz").stdout)[-1][-1] == "0.666667 1.33333"


def test_what_is_written_can_be_read(call, tmp_path):
    """.npz holds no bf16, f8, 4-bit types: they go as float32 or int8, and come back."""
    path = echo(*((name, "2,3") for name in DTYPES)).save(tmp_path)
    first = call("run", path, "-o", "out.npz")
    assert first.exit_code == 0
    assert [line.split('"')[1] for line in first.stderr.splitlines()] == [
        f"y{i}" for i, name in enumerate(DTYPES) if ELEMENT_TYPES[name].dtype.isbuiltin == 2
    ]
    assert 'note: "y1" is bf16, which a .npz cannot hold; saved as float32' in first.stderr
    back = [part for i in range(len(DTYPES)) for part in ("-i", f"x{i}=out.npz:y{i}")]
    second = call("run", path, *back)
    assert second.exit_code == 0, second.stderr
    count = len(DTYPES)
    assert table(first.stdout)[-count:] == table(second.stdout)[-count:]


def test_npy_of_bf16(call, tmp_path):
    """numpy writes an array of ml_dtypes as raw bytes."""
    path = echo(("bf16", "2")).save(tmp_path)
    np.save("x.npy", np.array([1.5, -2], ml_dtypes.bfloat16))
    assert table(call("run", path, "-i", "x0=x.npy").stdout)[-1][-1] == "1.5 -2"


@pytest.mark.parametrize(
    ("element_type", "literal", "values"),
    [
        ("f32", "[1, 2.5]", "1 2.5"),
        ("f32", "[NaN, -Infinity]", "nan -inf"),
        ("f16", "[true, 2]", "1 2"),
        ("bf16", "[1, 3]", "1 3"),
        ("i64", "[-9223372036854775808, 9223372036854775807]", "-9223372036854775808 9223372036854775807"),
        ("u64", "[18446744073709551615, 0]", "18446744073709551615 0"),
        ("i4", "[-8, 7]", "-8 7"),
        ("boolean", "[true, 0]", "true false"),
        ("string", '["a", "b\\n"]', '"a" "b\\n"'),
    ],
)
def test_literals(element_type, literal, values, call, tmp_path):
    path = echo((element_type, "2")).save(tmp_path)
    result = call("run", path, "-i", f"x0={literal}")
    assert result.exit_code == 0, result.stderr
    assert table(result.stdout)[-1][-1] == values


@pytest.mark.parametrize(
    ("element_type", "spec", "said"),
    [
        ("i32", "[1.0, 2]", "1.0 is not an integer from"),
        ("i8", "[128, 0]", "128 is not an integer from -128 to 127"),
        ("u8", "[-1, 0]", "-1 is not an integer from 0 to 255"),
        ("u1", "[2, 0]", "2 is not an integer from 0 to 1"),
        ("boolean", "[2, 0]", "2 is neither true nor false"),
        ("f32", '["1", "2"]', '"1" is text; write numbers without quotes'),
        ("string", "[1, 2]", "write text in double quotes"),
        ("f32", "[null, 1]", "it cannot hold null"),
        ("f32", '{"a": 1}', "it cannot hold an object"),
        ("f32", "[[1], [1, 2]]", "its inner lists have different lengths"),
        ("f32", "[1, 1e999999, 1" + "0" * 400 + "]", "too large"),
        ("f32", "[" * 5000, "which is neither a file nor JSON"),
        ("f32", "[1, 2, 3]", "has shape [3], the model takes [2]"),
        ("f32", "nonsense", 'cannot be read from "nonsense", which is neither a file nor JSON'),
        ("f32", "", 'cannot be read from "", which is neither'),
        ("f32", "random:2", "write them as [1,3,224,224]"),
        ("f32", "random:[-1]", "write them as [1,3,224,224]"),
        ("f32", "random:[3]", "takes [2], not [3]"),
        ("f32", "nosuch.npy", "cannot be read from nosuch.npy: no such file or directory"),
        ("f32", "nosuch.npz:a", "cannot be read from nosuch.npz: no such file or directory"),
        ("f32", "broken.npy", "cannot be read from broken.npy"),
        ("f32", "broken.npz", "cannot be read from broken.npz"),
        ("f32", "array.npz", "cannot be read from array.npz: the file is a NumPy array (.npy)"),
        ("f32", "zip.npy", "cannot be read from zip.npy: the file is a .npz"),
        ("f32", "object.npy", "cannot be read from object.npy"),
        ("f32", "two.npz", "name one as two.npz:KEY; it holds a, b"),
        ("f32", "two.npz:c", 'two.npz has no array "c"'),
        ("f32", "two.npz:a", "is float64, the model takes f32"),
        ("f32", "x.png", "has shape [2], which no picture fits"),
    ],
)
def test_bad_inputs(element_type, spec, said, call, tmp_path):
    path = echo((element_type, "2")).save(tmp_path)
    for name in ("broken.npy", "broken.npz"):
        Path(name).write_bytes(b"PK\x03\x04 and no more" if name.endswith("z") else b"\x93NUMPY\x01")
    np.save("object.npy", np.array([None, 1], object))
    np.save("array.npy", np.zeros(2, np.float32))
    Path("array.npy").rename("array.npz")
    np.savez("two.npz", a=np.zeros(2), b=np.zeros(2))
    Path("zip.npy").write_bytes(Path("two.npz").read_bytes())
    result = call("run", path, "-i", f"x0={spec}", "-o", "out.npz")
    assert result.exit_code == 2
    assert "error[IR601 bad-feed]" in result.stderr
    assert said in result.stderr
    assert not Path("out.npz").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["X0=1"], 'did you mean "x0"?'),
        (["elephant=1"], 'its inputs are "x0"'),
        (["1=1"], 'no input "1"'),
        (["x0=zeros", "0=ones"], 'input "x0" is passed twice'),
        (["x0"], "which is neither a file nor JSON"),
    ],
)
def test_bad_names(given, said, call, tmp_path):
    path = echo(("f32", "2")).save(tmp_path)
    result = call("run", path, *(part for text in given for part in ("-i", text)))
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_name_with_an_equals_sign(call, tmp_path):
    net = Net()
    net.result(net.parameter("f32", "1", name="a=b"))
    assert table(call("run", net.save(tmp_path), "-i", "a=b=[7]").stdout)[-1][-1] == "7"


# ---------------------------------------------------------------------------------------------
# pictures


def picture(name: str, mode: str = "RGB", size: tuple[int, int] = (4, 2)) -> np.ndarray:
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(size[0] * size[1] * 3, dtype=np.uint8).reshape(size[1], size[0], 3)
    image.fromarray(pixels).convert(mode).save(name)
    return pixels


@pytest.mark.parametrize(
    ("shape", "axes"),
    [("1,3,2,4", (2, 0, 1)), ("1,2,4,3", (0, 1, 2)), ("3,?,?", (2, 0, 1)), ("?,?,?,3", (0, 1, 2))],
)
@pytest.mark.parametrize("element_type", ["f32", "u8", "f16", "i64"])
def test_colour_pictures(shape, axes, element_type, call, tmp_path):
    path = echo((element_type, shape)).save(tmp_path)
    pixels = picture("p.png")
    assert call("run", path, "-i", "x0=p.png", "-o", "out.npz").exit_code == 0
    got = np.load("out.npz")["y0"]
    np.testing.assert_array_equal(got.reshape(got.shape[-3:]), pixels.transpose(axes))


@pytest.mark.parametrize("shape", ["1,1,28,28", "1,28,28,1", "1,28,28", "28,28,1", "28,28"])
def test_grey_pictures_are_scaled(shape, call, tmp_path):
    picture("p.png", "L", (56, 28))
    result = call("run", echo(("f32", shape)).save(tmp_path), "-i", "x0=p.png")
    assert table(result.stdout)[-1][2] == f"[{shape}]"


@pytest.mark.parametrize(
    ("element_type", "shape", "name", "said"),
    [
        ("f32", "1,2,8,8", "p.png", "which no picture fits"),
        ("f32", "2,3,8,8", "p.png", "which no picture fits"),
        ("f32", "...", "p.png", "which no picture fits"),
        ("i8", "1,3,8,8", "p.png", "cannot hold the values 0 to 255"),
        ("boolean", "1,3,8,8", "p.png", "cannot hold the values 0 to 255"),
        ("f8e4m3", "1,3,8,8", "p.png", "cannot hold the values 0 to 255"),
        ("f32", "1,3,8,8", "nosuch.jpg", "no such file"),
        ("f32", "1,3,8,8", "broken.png", "cannot identify"),
    ],
)
def test_pictures_that_do_not_fit(element_type, shape, name, said, call, tmp_path):
    picture("p.png")
    Path("broken.png").write_text("no picture")
    result = call("run", echo((element_type, shape)).save(tmp_path), "-i", f"x0={name}")
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_picture_without_pillow(call, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    result = call("run", echo(("f32", "1,3,8,8")).save(tmp_path), "-i", "x0=p.png")
    assert result.exit_code == 2
    assert 'pip install ".[image]"' in result.stderr


# ---------------------------------------------------------------------------------------------
# -o


def test_names_that_are_no_keywords(call, tmp_path):
    net = Net()
    for name in ("file", "allow_pickle", "a/b"):
        net.result(net.parameter("f32", "2"), name=name)
    assert call("run", net.save(tmp_path), "-o", "out").exit_code == 0
    assert np.load("out").files == ["file", "allow_pickle", "a/b"]


def test_an_output_is_written_whole_or_not_at_all(call, tmp_path, monkeypatch):
    path = echo(("f32", "2"), ("f32", "2")).save(tmp_path)
    Path("out.npz").write_text("as it was")
    write = np.lib.format.write_array

    def full(member: zipfile.ZipExtFile, array: np.ndarray, **more: Any) -> None:
        write(member, array, **more)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    result = call("run", path, "-o", "out.npz")
    assert result.exit_code == 2
    assert "no space left on device" in result.stderr
    assert Path("out.npz").read_text() == "as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.xml", "out.npz"]


@pytest.mark.parametrize("target", ["no/such/folder/out.npz", "."])
def test_an_output_that_cannot_be_written_is_refused_before_the_run(target, call, tmp_path):
    result = call("run", echo(("f32", "2")).save(tmp_path), "-o", target)
    assert result.exit_code == 2
    assert f"cannot write {target}" in result.stderr
    assert result.stdout == ""


def test_a_failed_run_writes_nothing(call, tmp_path):
    net = Net()
    net.result(net.add("Nonsense", [net.parameter("f32", "2")], [("FP32", "2")]))
    assert call("run", net.save(tmp_path), "-o", "out.npz").exit_code == 3
    assert not Path("out.npz").exists()


# ---------------------------------------------------------------------------------------------
# exit status


def test_an_unknown_operation_is_not_supported(call, tmp_path):
    net = Net()
    x = net.parameter("f32", "2")
    for _ in range(12):
        net.add("Nonsense", [x], [("FP32", "2")])
    result = call("run", net.save(tmp_path))
    assert result.exit_code == 3
    assert result.stderr.count("error[IR201") == 10
    assert "and 2 more; `irrun check` lists them" in result.stderr


def test_a_broken_model(call, tmp_path):
    path = echo(("f32", "2")).save(tmp_path)
    path.write_text(path.read_text().replace('to-layer="1"', 'to-layer="7"'))
    result = call("run", path)
    assert result.exit_code == 1
    assert "error[IR103" in result.stderr


@pytest.mark.parametrize("text", ["", "<html/>", "no XML", '<net version="5"/>'])
def test_what_is_no_model(text, call):
    Path("net.xml").write_text(text)
    result = call("run", "net.xml")
    assert result.exit_code == 2
    assert result.stdout == ""


def test_missing_weights(call, tmp_path):
    net = Net()
    net.result(net.const("f32", "1", b"\0\0\x80\x3f"))
    path = net.save(tmp_path)
    path.with_suffix(".bin").rename("elsewhere")
    assert call("run", path).exit_code == 1
    assert "error[IR501" in call("run", path).stderr
    assert table(call("run", path, "-w", "elsewhere").stdout)[-1][-1] == "1"
    assert call("run", path, "-w", "nosuch.bin").exit_code == 2


@pytest.mark.parametrize(
    ("size", "status"), [("8", 0), ("7", 1), ("1KiB", 0), ("0.5k", 0), ("1 GB", 0), ("x", 2), ("0", 2)]
)
def test_max_memory(size, status, call, tmp_path):
    result = call("run", echo(("f32", "2")).save(tmp_path), "--max-memory", size)
    assert result.exit_code == status


@pytest.mark.parametrize(("size", "status"), [("8", 0), ("1.5GiB", 0), ("x", 2), ("0", 2)])
def test_max_weights_memory(size, status, call, tmp_path):
    path = tmp_path / "product.xml"
    x = build.parameter([1, 128], "f32", name="x")
    weights = build.Convert(build.constant(np.ones((128, 128), np.float16)), destination_type="f32")
    irrun.save_model(build.model(build.MatMul(x, weights)), path)
    result = call("run", path, "--max-weights-memory", size, "--profile", "-i", "x=ones")
    assert result.exit_code == status
    if status:
        assert "--max-weights-memory" in result.stderr
    else:
        assert ("unpacked in parts" in result.stdout) == (size == "8")


@pytest.mark.parametrize("more", [(), ("--exact",)])
@pytest.mark.parametrize(("precision", "product"), [("f32", 257 * 257 + 3), ("bf16", 256 * 256 + 3)])
def test_precision(precision, product, more, call, tmp_path):
    """257 is between two numbers of bf16: 256, which is even, and 258."""
    path = tmp_path / "product.xml"
    x = build.parameter([1, 2], "f32", name="x")
    irrun.save_model(build.model({"y": build.MatMul(x, np.array([[257], [1]], np.float32))}), path)
    out = tmp_path / "y.npy"
    assert call("run", path, "-i", "x=[[257,3]]", "--precision", precision, "-o", out, *more).exit_code == 0
    assert np.load(out).tolist() == [[product]]


def test_an_unknown_precision(call, tmp_path):
    result = call("run", echo(("f32", "2")).save(tmp_path), "--precision", "f8")
    assert result.exit_code == 2
    assert "'f32', 'bf16', 'int8-activations', 'auto'" in result.stderr


def test_an_input_of_terabytes_is_refused(call, tmp_path):
    result = call("run", echo(("f32", "?,?")).save(tmp_path), "-i", "x0=random:[1000000,100000000]")
    assert result.exit_code == 1
    assert "error[IR604" in result.stderr


# ---------------------------------------------------------------------------------------------
# pages of examples

PAGE = """Broadcast

Some prose, and an example:

<layer ... type="Broadcast" ...>
    <data mode="numpy"/>
    <input>
        <port id="0">
            <dim>16</dim><dim>1</dim><dim>1</dim>
        </port>
        <port id="1">
            <dim>4</dim>   <!--The tensor contains 4 elements: [1, 16, 5, 5] -->
        </port>
    </input>
    <output>
        <port id="2">
            <dim>1</dim><dim>16</dim><dim>5</dim><dim>5</dim>
        </port>
    </output>
</layer>

A broken one:

<layer type="Broadcast">
    <input>
        <port id="0">
            <dim>5/dim>
        </port>
    </input>
</layer>

<layer type="LogicalAnd">
    <input>
        <port id="0"><dim>2</dim></port>
        <port id="1"><dim>2</dim></port>
    </input>
    <output>
        <port id="2"><dim>2</dim></port>
    </output>
</layer>
"""


def test_each_example_of_a_page_is_run(call):
    Path("page.txt").write_text(PAGE)
    result = call("run", "page.txt")
    assert result.exit_code == 2  # the broken one
    titles = [line for line in result.stdout.splitlines() if line.startswith("page.txt")]
    assert titles == ["page.txt:5  Broadcast", "page.txt:27", "page.txt:32  LogicalAnd"]
    rows = table(result.stdout)
    assert ["0", "f32", "[16,1,1]", "not given: random, seed 0"] in rows
    assert ["1", "i64", "[4]", "from the comment at line 12"] in rows
    assert ["1", "boolean", "[2]", "not given: random, seed 0"] in rows
    assert "page.txt:5:8: IR008" in result.stderr
    assert "write <dim>5</dim>" in result.stderr


def test_one_example_of_a_page(call):
    Path("page.txt").write_text(PAGE)
    found = record(
        call("run", "page.txt", "--example", 1, "-i", "0=ones", "-i", "1=[1,16,2,2]", "--no-strict", "--format", "json")
    )
    assert found["title"] == "page.txt:5  Broadcast"
    assert found["outputs"][0]["shape"] == [1, 16, 2, 2]
    assert call("run", "page.txt", "--example", 4).exit_code == 2
    assert call("run", "page.txt", "-i", "0=ones").exit_code == 2
    assert call("run", "page.txt", "-o", "x.npz").exit_code == 2


def test_a_page_as_json(call):
    Path("page.txt").write_text(PAGE)
    result = call("run", "page.txt", "--format", "json")
    first, broken, last = json.loads(result.stdout)["examples"]
    assert first["inputs"][1]["from"] == "from the comment at line 12"
    assert broken["diagnostics"][0]["code"] == "IR001"
    assert last["outputs"][0]["type"] == "boolean"


def test_a_failed_run_as_json(call, tmp_path):
    net = Net()
    net.add("Nonsense", [net.parameter("f32", "2")], [("FP32", "2")])
    result = call("run", net.save(tmp_path), "--format", "json")
    assert [d["code"] for d in json.loads(result.stdout)["error"]["diagnostics"]] == ["IR201"]
    assert result.exit_code == 3


def test_a_harmless_error_leaves_the_result_and_shows_in_the_exit_status(call: Any, tmp_path: Path) -> None:
    text = divide().text
    stray = '<edge from-layer="70" from-port="0" to-layer="80" to-port="0"/>'
    path = tmp_path / "net.xml"
    path.write_text(text.replace("</edges>", f"{stray}</edges>"))
    result = call("run", path)
    assert result.exit_code == 1
    assert "quotient" in result.stdout
    assert "IR110" in result.stderr


ELEMENTWISE = SAMPLES / "elementwise.xml"


def test_a_file_of_inputs(call, tmp_path):
    """An array file without a name passes each of its arrays to the input of its name."""
    a, c = np.arange(12, dtype=np.float32).reshape(1, 3, 4), np.array([[1], [2], [3]], np.float32)
    np.savez(tmp_path / "in.npz", a=a, b=c)
    result = call("run", ELEMENTWISE, "-i", "in.npz", "-o", "out.npz")
    assert result.exit_code == 0
    assert "in.npz:a" in result.stdout
    expected = np.clip(a * np.array([0.5, 1, 2, 4], np.float32) + c, 0, 6)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["out"], expected)
    for arguments, said in (
        (["-i", "in.npz", "-i", "a=zeros"], 'input "a" is passed twice'),
        (["-i", "none.npz"], "the inputs cannot be read from none.npz: no such file"),
        (["-i", "bad.npz"], "the inputs cannot be read from bad.npz: file is not a zip file"),
        (["-i", "more.npz"], 'more.npz holds an array "x", but the model has no such input'),
    ):
        (tmp_path / "bad.npz").write_text("no archive")
        np.savez(tmp_path / "more.npz", x=a)
        result = call("run", ELEMENTWISE, *arguments)
        assert result.exit_code == 2
        assert said in result.stderr.replace("File is", "file is")


def test_each_run_begins_anew(call, tmp_path):
    """State and random numbers begin again, so that the outputs do not depend on the number of runs."""
    noise = build.RandomUniform(np.array([3]), np.float32(0), np.float32(1), output_type="f32", op_seed=7)
    irrun.save_model(build.model({"y": noise}), tmp_path / "a.xml")
    once, often = (json.loads(call("run", "a.xml", "--runs", n, "--format", "json").stdout) for n in (1, 3))
    assert once["outputs"] == often["outputs"]

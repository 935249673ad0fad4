"""Inputs that irrun makes up."""

import string
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import ExecutionError, FeedError
from irrun.ir.fragments import read_fragments
from irrun.ir.parse import Parsed
from irrun.model import Model
from irrun.running import generate
from irrun.types import ELEMENT_TYPES, PartialShape
from nets import Net

TYPES = [t for t in ELEMENT_TYPES.values() if t.kind != "dynamic"]


def model(folder: Path, *inputs: tuple[str, str]) -> Model:
    net = Net()
    for i, (element_type, shape) in enumerate(inputs):
        net.result(net.parameter(element_type, shape, name=f"x{i}", names=f"t{i}"))
    return irrun.read_model(net.save(folder))


def example(type: str, *ports: str) -> Model:
    """A bare layer; each port as ``<dim>…</dim>`` and comments."""
    inputs = "".join(f'<port id="{i}">{port}</port>' for i, port in enumerate(ports))
    (found,) = read_fragments("page.txt", f'<layer type="{type}"><input>{inputs}</input></layer>'.encode())
    assert isinstance(found, Parsed)
    return found.model


def test_draw(tmp_path):
    m = model(tmp_path, ("f32", "2,3"), ("i64", "?"), ("string", "1"))
    drawn = generate.draw(m, seed=3, shapes={"t1": [4]}, given={2: np.array(["s"])})
    assert {k: (v.dtype, v.shape) for k, v in drawn.items()} == {0: (np.float32, (2, 3)), 1: (np.int64, (4,))}
    outputs = irrun.run(m, {**drawn, "x2": np.array(["s"])})
    np.testing.assert_array_equal(outputs[0], drawn[0])
    again = generate.draw(m, seed=3)
    np.testing.assert_array_equal(again[0], drawn[0])
    assert again[2].shape == (1,)
    assert (generate.draw(m, seed=4)[0] != drawn[0]).any()


@pytest.mark.parametrize("more", [{"shapes": {"x9": [1]}}, {"given": {7: np.zeros(1)}}, {"shapes": {0: [3]}}])
def test_draw_refuses(more, tmp_path):
    with pytest.raises(FeedError):
        generate.draw(model(tmp_path, ("f32", "2")), **more)


def test_draw_allocates_no_more_than_allowed(tmp_path):
    m = model(tmp_path, ("f32", "?"))
    assert generate.draw(m, shapes={0: [1 << 18]}, max_memory=1 << 20)[0].nbytes == 1 << 20
    for count, most in (((1 << 18) + 1, 1 << 20), (1 << 48, None)):
        with pytest.raises(ExecutionError, match=r"IR604.*Parameter"):
            generate.draw(m, shapes={0: [count]}, max_memory=most)


@pytest.mark.parametrize("how", generate.GENERATORS)
@pytest.mark.parametrize("element_type", TYPES, ids=str)
@pytest.mark.parametrize("shape", ["", "0", "40,50"], ids=["scalar", "empty", "many"])
def test_generators(how, element_type, shape, tmp_path):
    m = model(tmp_path, (element_type.name, shape))
    array = generate.generate(how, m, 0, element_type)
    assert isinstance(array, np.ndarray)
    dims = PartialShape.parse(shape)
    assert dims is not None
    assert array.shape == dims.static
    if element_type.kind == "string":
        assert array.dtype == object
        if how == "random":
            assert {len(word) for word in array.flat} <= set(range(1, 9))
            assert {letter for word in array.flat for letter in word} <= set(string.ascii_lowercase)
        return
    assert array.dtype == element_type.dtype
    if element_type.name == "f8e8m0" and how in ("zeros", "arange"):
        return  # it has no zero
    numbers = array.astype(np.float64)
    assert np.isfinite(numbers).all()
    if how in ("zeros", "ones"):
        assert (numbers == (how == "ones")).all()
    if how == "random":
        if element_type.name != "f8e8m0":
            assert numbers.min(initial=0) >= -1
            assert numbers.max(initial=0) <= 9
        assert array.size < 2000 or len(np.unique(numbers)) > 1
    if how == "arange":
        assert numbers.ravel()[:2].tolist() == [0, 1][: array.size]


@pytest.mark.parametrize(
    ("shape", "dims"), [("2,0", (2, 0)), ("?,3", (1, 3)), ("4..8,..5,7..,..0", (4, 1, 7, 0)), ("...", ()), ("", ())]
)
def test_smallest(shape, dims):
    parsed = PartialShape.parse(shape)
    assert parsed is not None
    assert generate.smallest(parsed) == dims
    assert parsed.fits(dims)


def test_position(tmp_path):
    m = model(tmp_path, ("f32", "1"), ("f32", "1"))
    assert [m.input_position(name) for name in ("x0", "t1", "1", "2", "-1", "x", "²")] == [0, 1, 1] + [None] * 4


TWO = "<dim>2</dim>"


@pytest.mark.parametrize(
    ("type", "ports", "types"),
    [
        ("Broadcast", (TWO, TWO), ["f32", "i64"]),
        ("Broadcast", (TWO, TWO + "<!-- [3, 2] -->"), ["f32", "i64"]),
        ("LogicalAnd", (TWO, TWO), ["boolean", "boolean"]),
        ("Add", (TWO, TWO + "<!-- [3, 2] -->"), ["i64", "i64"]),
        ("Add", (TWO, TWO), ["f32", "f32"]),
        ("Select", (TWO, TWO, TWO), ["boolean", "f32", "f32"]),
        ("Nonsense", (TWO,), ["f32"]),
    ],
)
def test_element_types_of_examples(type, ports, types):
    assert [str(t) for t in generate.element_types(example(type, *ports), {})] == types


def test_element_types_follow_what_is_given():
    m = example("Add", TWO, TWO)
    drawn = generate.draw(m, given={1: np.zeros(2, np.float16)})
    assert {k: v.dtype for k, v in drawn.items()} == {0: np.float16}


def test_what_a_comment_tells_is_not_drawn():
    assert list(generate.draw(example("Broadcast", TWO, TWO + "<!-- [3, 2] -->"))) == [0]

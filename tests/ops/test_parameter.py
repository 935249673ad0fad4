"""Parameter-1. (Feeding it: test_executor.py.)"""

import pytest

from irrun.inference.layer import infer
from irrun.opdef import Site, Value, resolve
from kit import *


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("", "[]"),
        ("2, 3", "[2,3]"),
        ("?,3,1..8", "[?,3,1..8]"),
        ("-1", "[?]"),
        ("..200,120..", "[..200,120..]"),
        ("...", "[...]"),
    ],
)
def test_shapes(shape: str, expected: str) -> None:
    (value,) = infer(operation("Parameter-1", {"element_type": "bf16", "shape": shape}), Site(name="x"), [], {})
    assert (str(value.type), str(value.shape), value.data) == ("bf16", expected, None)


def test_unknown_dims_are_named_after_their_place() -> None:
    def parameter(name: str) -> Value:
        (value,) = infer(operation("Parameter-1", {"element_type": "f32", "shape": "?,?"}), Site(name=name), [], {})
        return value

    x, again, y = parameter("x"), parameter("x"), parameter("y")
    assert [str(d.term) for d in x.shape] == ["x[0]", "x[1]"]
    assert x.shape[0].same(again.shape[0])
    assert not x.shape[0].same(x.shape[1])
    assert not x.shape[0].same(y.shape[0])


@pytest.mark.parametrize("attributes", [{"shape": "2"}, {"element_type": "f32"}])
def test_both_attributes_are_required(attributes: dict[str, str]) -> None:
    with pytest.raises(TypeError, match="needs the attribute"):
        operation("Parameter-1", attributes)


def test_no_other_attributes() -> None:
    parameter = resolve("Parameter", 1)
    assert parameter is not None
    with pytest.raises(TypeError, match=r"Parameter has no attribute size, dims$"):
        parameter(element_type="f32", shape="2", size=1, dims=2)

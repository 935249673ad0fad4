"""A Const or Parameter without ``element_type``: the specification requires it, but files of IR v10 may lack it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.api import load
from irrun.checking.fix import fix
from nets import Net


def constant(version: int, element_type: str = "f32", dtype: Any = np.float32) -> Net:
    """A model that gives a constant [1,0], whose type only its output port declares."""
    net = Net(version)
    net.result(net.const(element_type, "2", np.array([1, 0], dtype).tobytes(), name="c"), name="y")
    return without(net, f' element_type="{element_type}"')


def without(net: Net, text: str) -> Net:
    """Remove a text from the first layer."""
    assert text in net.layers[0]
    net.layers[0] = net.layers[0].replace(text, "")
    return net


@pytest.mark.parametrize(
    ("element_type", "dtype"), [("f32", np.float32), ("f16", np.float16), ("i64", np.int64), ("boolean", np.bool_)]
)
def test_in_v10_the_port_gives_the_type_of_a_constant(element_type: str, dtype: Any, tmp_path: Path) -> None:
    path = constant(10, element_type, dtype).save(tmp_path)
    assert not irrun.check(path).diagnostics
    (array,) = irrun.run(path, []).arrays
    assert array.dtype == dtype
    assert array.tolist() == [1, 0]


def test_in_v10_without_a_precision_nothing_gives_the_type(tmp_path: Path) -> None:
    path = without(constant(10), ' precision="FP32"').save(tmp_path)
    (found,) = irrun.check(path)
    assert (found.code, found.layer, found.label) == ("IR403", "c", "C2")
    assert "neither the attribute element_type nor a precision of its port" in found.message
    with pytest.raises(irrun.ModelError, match="neither the attribute element_type"):
        irrun.run(path, [])


def test_in_v10_the_size_is_that_of_the_type_of_the_port(tmp_path: Path) -> None:
    net = constant(10)
    net.layers[0] = net.layers[0].replace('size="8"', 'size="4"')
    (found,) = irrun.check(net.save(tmp_path))
    assert (found.code, found.layer) == ("IR503", "c")
    assert "size is 4, but shape [2] of f32 takes 8 bytes" in found.message


def test_since_v11_a_constant_must_have_it(tmp_path: Path) -> None:
    path = constant(11).save(tmp_path)
    (found,) = irrun.check(path)
    assert (found.code, found.severity, found.layer) == ("IR202", "error", "c")
    assert "element_type is missing" in found.message
    with pytest.raises(irrun.ModelError, match="element_type is missing"):
        irrun.run(path, [])


@pytest.mark.parametrize("version", [10, 11])
def test_a_parameter_must_have_it(version: int, tmp_path: Path) -> None:
    net = Net(version)
    net.result(net.parameter("f32", "2", name="x"), name="y")
    (found,) = irrun.check(without(net, ' element_type="f32"').save(tmp_path))
    assert (found.code, found.layer) == ("IR202", "x")


def test_the_fix_writes_the_type_of_the_port(tmp_path: Path) -> None:
    """It is not safe: the attribute could have said something else."""
    path = constant(11).save(tmp_path)
    assert fix(load(path)).count == 0
    fixed = fix(load(path), unsafe=True)
    assert (fixed.count, fixed.left) == (1, ())
    path.write_bytes(fixed.data)
    assert irrun.run(path, []).arrays[0].tolist() == [1, 0]


@pytest.mark.parametrize("precision", ["", ' precision="FP99"'])
def test_no_fix_without_a_readable_precision(precision: str, tmp_path: Path) -> None:
    net = constant(11)
    net.layers[0] = net.layers[0].replace(' precision="FP32"', precision)
    missing = [d for d in irrun.check(net.save(tmp_path)) if d.code == "IR202"]
    assert [d.fix for d in missing] == [None]

"""Const-1. (How each element type lies in the .bin: test_weights.py.)"""

from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun.api import load
from irrun.checking.fix import fix
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.model.weights import Weights
from irrun.opdef import Site
from irrun.types import ELEMENT_TYPES
from kit import *
from nets import Net

_WEIGHTS = Weights(data=np.arange(4, dtype=np.float32).tobytes() + b"\2\0\0\0\0\0\0\0\5\0\0\0\3\0\0\0abcde")


@pytest.mark.parametrize(
    ("shape", "offset", "size", "expected"),
    [
        ("2,2", 0, 16, [[0, 1], [2, 3]]),
        ("", 4, 4, 1),
        (" 3 ", 4, 12, [1, 2, 3]),
        ("0", 7, 1, []),
        ("2,0", 0, 0, [[], []]),
        ("3", 0, 16, [0, 1, 2]),
        ("0", 0, 16, []),
    ],
)
def test_values(shape: str, offset: int, size: int, expected: object) -> None:
    op = operation("Const-1", {"element_type": "f32", "shape": shape, "offset": offset, "size": size})
    (value,) = infer(op, Site(), [], {"weights": _WEIGHTS})
    assert value.data is not None
    assert value.data.tolist() == expected
    assert value.shape.static == value.data.shape
    assert op.run(weights=_WEIGHTS).tolist() == expected


def test_the_shape_is_known_without_the_bin() -> None:
    op = operation("Const-1", {"element_type": "i64", "shape": "2,3", "offset": 0, "size": 48})
    (value,) = infer(op, Site(), [], {"weights": None})
    assert (str(value.type), str(value.shape), value.data) == ("i64", "[2,3]", None)


def test_the_port_tells_the_element_type_where_the_attribute_is_missing() -> None:
    op = operation("Const-1", {"shape": "4", "offset": 0, "size": 16})
    (value,) = infer(op, Site(declared=(ELEMENT_TYPES["f32"],)), [], {"weights": _WEIGHTS})
    assert value.data is not None
    assert value.data.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("label", "attributes"),
    [
        ("C1", {"shape": "8", "offset": 8, "size": 32}),
        ("C1", {"shape": "1", "offset": -4, "size": 4}),
        ("C2", {"shape": "4", "offset": 0, "size": 8}),
        ("C2", {"shape": "4", "offset": 0, "size": 16, "element_type": None}),
        ("C3", {"shape": "2", "offset": 16, "size": 21, "element_type": "string"}),
        ("C4", {"shape": "2,?", "offset": 0, "size": 16}),
        ("C4", {"shape": "...", "offset": 0, "size": 16}),
        ("C4", {"shape": "1..4", "offset": 0, "size": 16}),
    ],
)
def test_refusals(label: str, attributes: dict[str, object]) -> None:
    given = {k: v for k, v in ({"element_type": "f32"} | attributes).items() if v is not None}
    for declared in ((None,), ()):
        with pytest.raises(Refused) as caught:
            infer(operation("Const-1", given), Site(declared=declared), [], {"weights": _WEIGHTS})
        assert caught.value.label == label


def test_excess_size_is_a_warning(tmp_path: Path) -> None:
    net = Net()
    net.result(net.const("i32", "2", bytes(range(12))))
    path = net.save(tmp_path)
    (finding,) = irrun.check(path)
    assert (finding.code, finding.severity, finding.help) == ("IR508", "warning", 'write size="8"')
    assert finding.message == 'Const "const0": size is 12, but shape [2] of i32 takes only 8 bytes (Const-1 C2)'
    assert irrun.run(path)[0].tolist() == [0x03020100, 0x07060504]
    fixed = fix(load(path))
    assert b'size="8"' in fixed.data
    assert not fixed.left


def test_excess_size_next_to_another_constant(tmp_path: Path) -> None:
    net = Net()
    a = net.const("i32", "2", bytes(8))
    net.bin += bytes(8)
    net.layers[0] = net.layers[0].replace('size="8"', 'size="12"')
    b = net.const("i32", "2", b"", offset=8)
    net.layers[1] = net.layers[1].replace('size="0"', 'size="8"')
    net.result(net.add("Add", [a, b], [("I32", "2")]))
    assert [finding.code for finding in irrun.check(net.save(tmp_path))] == ["IR508"]


def test_also_spelt_constant(tmp_path: Path) -> None:
    net = Net()
    net.result(net.const("i32", "2", bytes(8)))
    net.layers[0] = net.layers[0].replace('type="Const"', 'type="Constant"')
    path = net.save(tmp_path)
    assert not irrun.check(path).diagnostics
    assert irrun.run(path)[0].tolist() == [0, 0]
    path.with_suffix(".bin").unlink()
    assert [d.code for d in irrun.check(path)] == ["IR501"]

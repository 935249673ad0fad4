"""A model that ran before an edit runs after it, and gives the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.model import Model
from irrun.running.unchanged import Unchanged
from nets import Net


def model(folder: Path, kind: str = "ReLU", shape: str = "2,3", **attributes: Any) -> Callable[[], Model]:
    """Return a function that reads a model of one layer."""
    net = Net()
    x = net.parameter("f32", shape, name="x")
    net.result(net.add(kind, [x], [("FP32", shape.replace("?", "-1"))], **attributes))
    path = net.save(folder)
    return lambda: irrun.read_model(path)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (("ReLU", "2,3"), ("ReLU", "2,3"), True),
        (("ReLU", "2,3"), ("Sigmoid", "2,3"), False),  # other values
        (("ReLU", "2,3"), ("ReLU", "2,4"), False),  # other inputs
        (("ReLU", "?,3"), ("ReLU", "1,3"), False),  # fewer inputs: [1,3], which is drawn, still runs
        (("Rellu", "2,3"), ("Sigmoid", "2,3"), True),  # it did not run
        (("ReLU", "2,3"), ("Rellu", "2,3"), False),
    ],
)
def test_values(before: tuple[str, str], after: tuple[str, str], same: bool, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    unchanged = Unchanged(model(folders[0], *before))
    assert unchanged(model(folders[1], *after)) is same
    assert unchanged.unchecked is None


def test_values_that_are_not_defined_may_change(tmp_path: Path) -> None:
    read = model(tmp_path)
    (tmp_path / "after").mkdir()
    after = model(tmp_path / "after", "Sigmoid")
    assert not Unchanged(read)(after)
    assert Unchanged(read, values=False)(after)


def test_what_takes_too_long_is_not_checked(tmp_path: Path) -> None:
    unchanged = Unchanged(model(tmp_path), seconds=0)
    assert unchanged(model(tmp_path))
    assert unchanged.unchecked == "both models together run longer than irrun waits"


def test_random_numbers_without_a_seed_may_differ(tmp_path: Path) -> None:
    net = Net()
    shape = net.const("i64", "1", np.int64(4).tobytes())
    ends = [net.const("f32", "", np.float32(end).tobytes()) for end in (0, 1)]
    attributes: dict[str, Any] = {"output_type": "f32", "global_seed": "0", "op_seed": "0"}
    net.result(net.add("RandomUniform", [shape, *ends], [("FP32", "4")], opset="opset8", **attributes))
    path = net.save(tmp_path)
    assert Unchanged(lambda: irrun.read_model(path))(lambda: irrun.read_model(path))

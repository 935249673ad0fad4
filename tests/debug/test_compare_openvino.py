"""Comparisons with OpenVINO, and of ONNX models with what was converted from them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
import planted
from irrun import build as b
from irrun import engines
from irrun.debug import bisect, compare, results, write_reproduction
from irrun.engines import Crash, Engine, parse_side
from places import DEPARTURES
from small_networks import bert, resnet

onnx: Any = pytest.importorskip("onnx", reason="the extra `test` is not installed")
pytest.importorskip("onnx.helper")
pytest.importorskip("onnx.numpy_helper")

pytestmark = pytest.mark.openvino


@pytest.mark.parametrize(("make", "seed"), [(resnet, 1), (bert, 2)], ids=["resnet", "bert"])
def test_twenty_faults_in_a_network(
    make: Callable[[Any], Any], seed: int, ov: Any, against_openvino: tuple[Engine, Engine], tmp_path: Path
) -> None:
    """OpenVINO runs the faulty file, in which it fuses most layers; the layer is named in every case."""
    right = tmp_path / "right.xml"
    ov.save_model(make(ov), right, compress_to_fp16=False)
    feeds = {} if make is resnet else {"attention_mask": np.array([[1] * 8 + [0] * 4])}
    agreeing = compare(str(right), f"openvino:{right}", feeds, running=against_openvino)
    assert agreeing.agrees
    assert len(agreeing.layers) > 30
    every = planted.chosen(irrun.read_model(right), 20, seed)
    assert {fault.kind for fault in every} == {"weight", "attribute", "type"}
    for number, fault in enumerate(every):
        wrong = tmp_path / f"wrong{number}.xml"
        planted.plant(right, fault, wrong)
        comparison = compare(str(right), f"openvino:{wrong}", feeds, running=against_openvino)
        if comparison.first is None:  # a weight that meets nothing but padding changes no value
            same = compare(str(right), str(wrong), feeds)
            assert not any(layer.measurement.max_abs for layer in same.layers), fault
        else:
            assert comparison.first.layer.name == fault.layer


def test_a_candidate_that_crashes() -> None:
    path = DEPARTURES / "col2im_defaults.xml"
    comparison = compare(str(path), f"openvino:{path}")
    assert comparison.verdict == "crashed"
    assert comparison.failure is not None
    assert comparison.failure.side == "candidate"
    assert isinstance(comparison.failure.outcome, Crash)


def test_a_fault_in_a_loop_names_the_loop(against_openvino: tuple[Engine, Engine], tmp_path: Path) -> None:
    """OpenVINO shows no values of bodies."""
    for factor in (2.0, 3.0):
        x = b.parameter([2], name="x")
        loop = b.Loop(
            3, True, b.ReLU(x, name="relu"), body=lambda i, a, f=factor: (True, b.Multiply(a, f)), name="loop"
        )
        irrun.save_model(b.model({"y": loop}), tmp_path / f"{factor}.xml")
    feeds = {"x": np.ones(2, np.float32)}
    comparison = compare(str(tmp_path / "2.0.xml"), f"openvino:{tmp_path / '3.0.xml'}", feeds, running=against_openvino)
    assert comparison.first is not None
    assert (comparison.first.layer.name, comparison.first.layer.iteration) == ("loop", None)


def test_an_onnx_model_and_what_was_converted_from_it(ov: Any, tmp_path: Path) -> None:
    """Layers that the converter has renamed are matched by the names of their tensors."""
    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["product"], name="multiply"),
        onnx.helper.make_node("Relu", ["product"], ["positive"], name="cut"),
        onnx.helper.make_node("Softmax", ["positive"], ["y"], name="soft"),
    ]
    ends = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n", size]) for n, size in (("x", 4), ("y", 3))
    ]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], [onnx.numpy_helper.from_array(weights, "w")])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    ov.save_model(ov.convert_model(path), tmp_path / "right.xml", compress_to_fp16=False)
    comparison = compare(f"onnx:{path}", str(tmp_path / "right.xml"), {"x": np.ones((2, 4), np.float32)})
    assert comparison.agrees
    assert [layer.name for layer in comparison.layers] == ["product", "positive", "y"]
    model = irrun.read_model(tmp_path / "right.xml")
    (fault,) = (f for f in planted.faults(model) if f.kind == "type")
    planted.plant(tmp_path / "right.xml", fault, tmp_path / "wrong.xml")
    comparison = compare(f"onnx:{path}", str(tmp_path / "wrong.xml"))
    assert comparison.first is not None
    assert (comparison.first.layer.name, comparison.first.layer.type) == ("positive", "Tanh")
    assert comparison.first.layer.line is not None


def test_strings(against_openvino: tuple[Engine, Engine], tmp_path: Path) -> None:
    """Strings keep their NULs and bytes that are not UTF-8, and one wrong index is found and reproduced."""
    x = b.parameter([3], "string", name="x")
    turned = b.Gather(x, b.constant(np.array([2, 1, 0])), b.constant(np.array(0)), name="turned")
    irrun.save_model(b.model({"y": b.Concat(turned, x, axis=0, name="joined")}), tmp_path / "right.xml")
    (tmp_path / "wrong.xml").write_bytes((tmp_path / "right.xml").read_bytes())
    weights = bytearray((tmp_path / "right.bin").read_bytes())
    weights[0] = 1
    (tmp_path / "wrong.bin").write_bytes(weights)
    feeds = {"x": np.array(["a\0", "\udcff", "b"], object)}
    right, wrong = str(tmp_path / "right.xml"), f"openvino:{tmp_path / 'wrong.xml'}"
    assert compare(right, f"openvino:{right}", feeds, running=against_openvino).agrees
    first = compare(right, wrong, feeds, running=against_openvino).first
    assert first is not None
    assert (first.layer.name, first.layer.measurement.outside) == ("turned", 1)
    bisection = bisect(right, wrong, {"x": np.array(["a", "ü", "b"], object)})
    assert [layer.name for layer in bisection.layers] == ["turned"]
    write_reproduction(bisection, parse_side(wrong), tmp_path / "alone", 0, 0)
    command = [sys.executable, "reproduce.py"]
    script = subprocess.run(command, cwd=tmp_path / "alone", capture_output=True, text=True, check=False)
    assert (script.returncode, "1 of 3 strings are wrong" in script.stdout) == (1, True), script


PICKY = """import importlib.util, sys
spec = importlib.util.spec_from_file_location("picky", {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)


class Harness(module.Harness):
    def _observer(self, batch):
        if any(layer in ("second", "seventh") for layer, _ in batch):
            raise RuntimeError("the plugin expects static shapes")
        return super()._observer(batch)
"""


@pytest.mark.parametrize("role", ["reference", "candidate"])
def test_values_with_which_the_engine_refuses_the_model(role: str, tmp_path: Path) -> None:
    """OpenVINO 2026.4 runs a decoder in bf16, and refuses it with four of its inner values as further outputs."""
    x = y = b.parameter([2, 4], name="x")
    for name in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"):
        y = b.Multiply(b.Add(y, 1.0, name=f"{name}/add"), 0.5, name=name)
    path = tmp_path / "model.xml"
    irrun.save_model(b.model({"y": y}, inputs=[x]), path)
    folder = Path(engines.__file__).parent / "harnesses"
    (tmp_path / "picky.py").write_text(PICKY.format(path=str(folder / "openvino.py")))
    picky = engines.ChildEngine([sys.executable, str(folder / "serve.py"), str(tmp_path / "picky.py")])
    try:
        with engines.open("irrun") as right:
            pair = (picky, right) if role == "reference" else (right, picky)
            comparison = compare(str(path), str(path), running=pair)
            assert comparison.agrees, comparison
            assert comparison.unseen == ((role, "second"), (role, "seventh"))
            assert len(comparison.layers) == 14
            record = results.record(comparison)["unseen"]
            assert record == [{"side": role, "layer": "second"}, {"side": role, "layer": "seventh"}]
    finally:
        picky.release()

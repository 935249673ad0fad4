"""irrun export."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from places import SAMPLES

pytest.importorskip("onnx", reason="ONNX models need the extra `onnx`")
ort = pytest.importorskip("onnxruntime", reason="ONNX models are run by onnxruntime, of the extra `onnx`")

CONVNET = SAMPLES / "convnet.xml"


def test_a_network(call):
    result = call("export", CONVNET, "-i", f"image={SAMPLES / 'image.npy'}", "-o", "net.onnx")
    assert (result.exit_code, result.stdout) == (0, "")
    said = (
        r"wrote net.onnx: \d+ nodes of operation set 21; inputs image; outputs out; equal in onnxruntime on the inputs"
    )
    assert re.fullmatch(said, result.stderr.strip())
    session = ort.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    assert session.run(None, {"image": np.load(SAMPLES / "image.npy")})[0].argmax() == 2  # as the README says


def test_json_and_external_data(call):
    result = call("export", CONVNET, "--external", "--no-verify", "--opset", 18, "--format", "json", "-o", "net.onnx")
    record = json.loads(result.stdout)
    assert record["wrote"] == ["net.onnx", "net.onnx.data"]
    assert (record["opset"], record["verified"], record["states"]) == (18, False, {})


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-o", "net.xml"], 2, "ends in .xml, but ONNX is written"),
        (["--opset", "9", "-o", "net.onnx"], 1, "IR610.*operation set 9"),
        (["--shape", "image=[1,3,7]", "-o", "net.onnx"], 1, "IR"),
        ([], 2, "Missing option '-o'"),
    ],
)
def test_refusals(call, arguments, status, said):
    result = call("export", CONVNET, *arguments)
    assert result.exit_code == status, result.output
    assert re.search(said, result.output)

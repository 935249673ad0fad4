"""irrun check --target, and the targets of a project."""

from pathlib import Path
from typing import Any

from nets import Net


def _inverse(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2,2", name="x")
    net.result(net.add("Inverse", [x], [("FP32", "2,2")], name="inverse", opset="opset14", adjoint="false"))
    net.save(tmp_path)


def test_the_command_and_the_project(call: Any, tmp_path: Path) -> None:
    _inverse(tmp_path)
    result = call("check", "net.xml", "--target", "openvino==2022.3", "--format", "concise")
    assert (result.exit_code, result.stdout.count("IR901")) == (1, 1)
    Path("pyproject.toml").write_text('[tool.irrun]\ntargets = ["openvino>=2022.3", "npu"]')
    assert "2022.3 to 2023.3" in call("check", "net.xml", "--format", "concise").stdout
    assert call("check", "net.xml", "--target", "openvino==2024.1").exit_code == 0, "the command line comes first"
    for wrong in ('"openvino"', '["openvino==1"]', "[1]"):
        Path("pyproject.toml").write_text(f"[tool.irrun]\ntargets = {wrong}")
        assert call("check", "net.xml").exit_code == 2
    Path("pyproject.toml").unlink()
    assert "no target" in call("check", "net.xml", "--target", "pytorch").stderr
    assert call("check", "net.xml", "--target", "openvino", "--fix").exit_code == 2

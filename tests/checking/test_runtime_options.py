"""The properties that a file sets for its compilation: rt_info/runtime_options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import irrun
from irrun import build as b


def _file(folder: Path, **options: str) -> Path:
    path = folder / "model.xml"
    irrun.save_model(b.model({"y": b.ReLU(b.parameter([2], name="x"))}), path)
    lines = "".join(f'\n<{name} value="{text}"/>' for name, text in options.items())
    info = f"<rt_info><runtime_options>{lines}\n</runtime_options></rt_info></net>"
    path.write_text(path.read_text().replace("</net>", info))
    return path


@pytest.mark.parametrize(
    ("name", "text", "message", "help"),
    [
        ("INFERENCE_PRECISION_HINT", "f32", "OpenVINO ignores it in a file", "when the model is compiled"),
        ("KV_CACHE_PRECISON", "u8", "OpenVINO ignores it in a file", "did you mean KV_CACHE_PRECISION?"),
        ("KV_CACHE_PRECISION", "half", "refuses the model", "write u8"),
        ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "-5", "no number of elements", "from 0"),
    ],
)
def test_what_is_reported(tmp_path: Path, name: str, text: str, message: str, help: str) -> None:
    path = _file(tmp_path, **{name: text})
    (finding,) = irrun.check(path)
    assert (finding.code, finding.severity) == ("IR113", "warning")
    assert f'the runtime option {name}="{text}": ' in finding.message
    assert message in finding.message
    assert help in (finding.help or "")
    assert f"<{name} " in path.read_text().splitlines()[(finding.line or 1) - 1]


def test_what_openvino_reads(tmp_path: Path) -> None:
    options = {
        "KV_CACHE_PRECISION": "f16", "KEY_CACHE_PRECISION": "u4", "VALUE_CACHE_GROUP_SIZE": "32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "ACTIVATIONS_SCALE_FACTOR": "8.0",
    }  # fmt: skip
    assert list(irrun.check(_file(tmp_path, **options))) == []


def test_openvino_agrees(ov: Any, tmp_path: Path) -> None:
    """OpenVINO reads what irrun knows, ignores what it does not, and refuses a precision that does not exist."""
    known = {"KV_CACHE_PRECISION": "f16", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "64", "KEY_CACHE_GROUP_SIZE": "16"}
    compiled = ov.Core().compile_model(_file(tmp_path, **known), "CPU")
    assert compiled.get_property("KV_CACHE_PRECISION") == ov.Type.f16
    assert compiled.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE") == 64
    ignored = ov.Core().compile_model(_file(tmp_path, EXECUTION_MODE_HINT="ACCURACY"), "CPU")
    assert "ACCURACY" not in str(ignored.get_property("EXECUTION_MODE_HINT"))
    with pytest.raises(RuntimeError):
        ov.Core().compile_model(_file(tmp_path, KV_CACHE_PRECISION="half"), "CPU")

"""What the page shows of an engine: its graph, and the errors to expect of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser import Tab
from fused_patterns import layer_norm
from irrun.ir.write import save_model
from places import SAMPLES

pytestmark = pytest.mark.processes

Open = Callable[..., Tab]


def test_the_graph_that_openvino_runs(ov: Any, show: Open) -> None:
    tab = show(SAMPLES / "convnet.xml", side="openvino[precision=f32,threads=1]", expected="openvino[precision=bf16]")
    overview = tab.text("#panel")
    for part in (
        "What the engine runs",
        "19 layers run as",
        "6 constants",
        "11 named",
        "Costliest nodes",
        "Errors to expect in bf16",
    ):
        assert part.lower() in overview.lower()
    tab.run("location.hash = '#layer=block1%2Frelu'")
    tab.wait("document.querySelector('#panel h2').innerText === 'ReLU'")
    text = tab.text("#panel")
    for part in ("Convolution block1/conv", "node precision", "Convolution block1/conv", "Add block1/add"):
        assert part in text
    assert re.search(r"expect 0\.\d+ % in bf16", text)
    tab.run("[...document.querySelectorAll('#panel .jump')].find(e => e.textContent === 'Add block1/add').click()")
    assert tab.text("#panel .sub") == "block1/add"


def test_a_pattern_that_is_not_fused(ov: Any, show: Open, tmp_path: Path) -> None:
    save_model(layer_norm(axes=(1,)), tmp_path / "norm.xml")
    tab = show(tmp_path / "norm.xml", engine="openvino[precision=f32,threads=1]", run=False)
    text = tab.text("#panel")
    assert "needed: the axes are all but the first one or two, of at most five" in text
    assert "but the axes are [1] of 3" in text
    tab.run("[...document.querySelectorAll('#panel .jump')].find(e => e.textContent === 'LayerNorm scaled').click()")
    assert tab.text("#panel .sub") == "scaled"

"""irrun paged: faults planted into the paged form of a decoder are found at their token, block and layer."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.debug.paged import serving
from irrun.model import Layer, Model
from language_models import decoder
from places import SAMPLES


@pytest.fixture(scope="module")
def folder(ov: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stateful decoder and its paged form, by OpenVINO."""
    from openvino._offline_transformations import paged_attention_transformation

    folder = tmp_path_factory.mktemp("paged")
    irrun.save_model(decoder(50), folder / "stateful.xml")
    model = ov.Core().read_model(folder / "stateful.xml")
    paged_attention_transformation(model)
    ov.save_model(model, folder / "paged.xml", compress_to_fp16=False)
    return folder


def test_both_agree(folder: Path, call: Any) -> None:
    done = call("paged", str(folder / "stateful.xml"), str(folder / "paged.xml"), "--format", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert found["agrees"]
    assert [(s["name"], s["tokens"]) for s in found["schedules"]] == [
        ("whole prompts", 140), ("permuted blocks", 140), ("pieces", 140), ("interleaved", 140), ("shared prefix", 106)
    ]  # fmt: skip
    assert all(schedule["difference"] < found["allowed"] / 100 for schedule in found["schedules"])


def _attention(model: Model, number: int) -> Layer:
    return [layer for layer in model.layers.values() if layer.type == "PagedAttentionExtension"][number]


def _constant(folder: Path, layer: Layer, position: int, value: Any) -> str:
    """Give a layer of broken.xml another constant at the beginning of an input, and return the name of the layer.

    OpenVINO stores equal constants once, so the contents are copied to the end of broken.bin before they change.
    """
    model = irrun.read_model(folder / "broken.xml")
    feed = model.feeds[layer.id][position]
    assert feed is not None
    constant = model.layers[feed[0]]
    offset, size = (int(constant.attributes[name]) for name in ("offset", "size"))
    data = (folder / "broken.bin").read_bytes()
    data += bytes(-len(data) % 64)
    (folder / "broken.bin").write_bytes(data + value.tobytes() + data[offset + value.nbytes : offset + size])
    text = (folder / "broken.xml").read_text()
    pattern = rf'(<layer id="{constant.id}" .*?offset=")\d+'
    (folder / "broken.xml").write_text(re.sub(pattern, rf"\g<1>{len(data)}", text, count=1, flags=re.DOTALL))
    return layer.name


def _scale(folder: Path) -> str:
    return _constant(folder, _attention(irrun.read_model(folder / "broken.xml"), 1), 9, np.float32(0.5))


def _window(folder: Path) -> str:
    return _constant(folder, _attention(irrun.read_model(folder / "broken.xml"), 0), 10, np.int32(33))


def _weight(folder: Path) -> str:
    """Change a weight of the projection behind the second attention."""
    model = irrun.read_model(folder / "broken.xml")
    order = [model.layers[id] for id in model.order]
    behind = order[order.index(_attention(model, 1)) :]
    return _constant(folder, next(layer for layer in behind if layer.type == "MatMul"), 1, np.float32(9))


@pytest.mark.parametrize(
    ("plant", "schedule", "position", "block"),
    [(_scale, "whole prompts", 1, 0), (_window, "whole prompts", 33, 1), (_weight, "whole prompts", 0, 0)],
)
def test_a_planted_fault(
    folder: Path, tmp_path: Path, plant: Callable[[Path], str], schedule: str, position: int, block: int
) -> None:
    """A wrong scale shows at the second token, a window of 33 tokens at token 33, which is the second of block 1."""
    for suffix in (".xml", ".bin"):
        shutil.copy(folder / f"paged{suffix}", tmp_path / f"broken{suffix}")
    layer = plant(tmp_path)
    found = serving(str(folder / "stateful.xml"), str(tmp_path / "broken.xml"))
    faults = [(s.name, s.fault) for s in found.schedules if s.fault is not None]
    assert not found.agrees
    name, fault = faults[0]
    assert (name, fault.position, fault.block, fault.layer) == (schedule, position, block, layer)


def test_other_models(call: Any) -> None:
    done = call("paged", str(SAMPLES / "convnet.xml"), str(SAMPLES / "convnet.xml"))
    assert done.exit_code == 2
    assert "no input block_indices" in done.stderr
    done = call("paged", "a.xml", "b.xml", "--tokens", "10")
    assert done.exit_code == 2
    assert "raise --tokens" in done.stderr

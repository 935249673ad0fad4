"""A decoder with variables, what OpenVINO makes of it for a server, and changes of that file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import irrun
from irrun.debug.paged import serving
from irrun.model import Layer, Model

__all__ = ["attention", "broken_copy", "named_cause", "rewritten", "rewritten_file", "set_constant"]


def rewritten(ov: Any, folder: Path, model: Model) -> None:
    """Write a decoder, stateful.xml, and what OpenVINO makes of it, paged.xml."""
    irrun.save_model(model, folder / "stateful.xml")
    rewritten_file(ov, folder / "stateful.xml", folder / "paged.xml")


def rewritten_file(ov: Any, stateful: Path, paged: Path, *, compress: bool = False) -> None:
    """Let OpenVINO rewrite a file, and perhaps round its weights to f16."""
    from openvino._offline_transformations import paged_attention_transformation

    model = ov.Core().read_model(stateful)
    paged_attention_transformation(model)
    ov.save_model(model, paged, compress_to_fp16=compress)


def attention(model: Model, number: int) -> Layer:
    return [layer for layer in model.layers.values() if layer.type == "PagedAttentionExtension"][number]


def set_constant(folder: Path, layer: Layer, position: int, value: Any) -> str:
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


def broken_copy(folder: Path, tmp_path: Path) -> tuple[list[Layer], Callable[[Layer], Layer]]:
    """Copy the paged form as broken.xml. Return its matrix products, and a function that returns the Const of one."""
    for suffix in (".xml", ".bin"):
        shutil.copy(folder / f"paged{suffix}", tmp_path / f"broken{suffix}")
    model = irrun.read_model(tmp_path / "broken.xml")

    def weight(product: Layer) -> Layer:
        feed = model.feeds[product.id][1]
        assert feed is not None
        return model.layers[feed[0]]

    return [model.layers[id] for id in model.order if model.layers[id].type == "MatMul"], weight


def named_cause(folder: Path, tmp_path: Path) -> tuple[str | None, str]:
    fault = serving(str(folder / "stateful.xml"), str(tmp_path / "broken.xml")).schedules[0].fault
    assert fault is not None
    return fault.layer, fault.cause or ""

"""Which decoders OpenVINO rewrites to paged attention: those of the wheel's transformation, and otherwise the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import irrun
from irrun.debug.paged.servable import servability
from served_decoders import BROKEN, SERVED, decoder

CHANGES = SERVED | {name: changes for name, (_, _, changes) in BROKEN.items()}


@pytest.mark.parametrize("name", SERVED)
def test_served(name: str) -> None:
    found = servability(decoder(**SERVED[name]))
    assert found.obstacles == ()
    assert found.servable
    assert found.attentions == SERVED[name].get("layers", 2)


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    condition, type, changes = BROKEN[name]
    model = decoder(**changes)
    found = servability(model)
    assert not found.servable
    assert {obstacle.condition for obstacle in found.obstacles} == {condition}
    types = {layer.name: layer.type for layer in model.layers.values()}
    assert types.get(found.obstacles[0].layer or "", "") == type


@pytest.mark.parametrize("name", CHANGES)
def test_openvino_says_the_same(ov: Any, name: str, tmp_path: Path) -> None:
    """A model is rewritten if the transformation does not fail, and leaves no attention and no variable."""
    from openvino._offline_transformations import paged_attention_transformation

    irrun.save_model(decoder(**CHANGES[name]), tmp_path / "model.xml")
    model = ov.Core().read_model(tmp_path / "model.xml")
    attentions = sum(node.get_type_name() == "ScaledDotProductAttention" for node in model.get_ops())
    try:
        paged_attention_transformation(model)
    except RuntimeError:
        is_rewritten = False
    else:
        types = [node.get_type_name() for node in model.get_ops()]
        left = {"ScaledDotProductAttention", "ReadValue", "Assign"} & {*types}
        is_rewritten = not left and types.count("PagedAttentionExtension") == attentions
    assert is_rewritten == (name in SERVED)

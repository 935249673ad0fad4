"""Each clause of the internal operations is broken by one input or attribute of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from internal_faults import LAYERS, inferred
from internal_operations import found, i32, made, written
from internal_refusals import BROKEN, Broken
from irrun.diagnostics import Refused
from irrun.opdef import labels, resolve


@pytest.mark.parametrize("type", LAYERS)
def test_the_layer_is_right(type: str) -> None:
    inferred(type, *LAYERS[type])


@pytest.mark.parametrize("row", BROKEN, ids=lambda row: f"{row.type}-{row.clause}-{row.id}")
def test_broken(row: Broken, tmp_path: Path) -> None:
    """A file with the layer has one finding, which names the layer, its line and the clause."""
    inputs, attributes = LAYERS[row.type]
    given = row.given(inputs)
    declared = inferred(row.type, inputs, attributes)
    path = written(tmp_path, row.type, given, {**attributes, **row.attributes}, declared)
    assert [(finding.code, finding.label) for finding in found(path)] == [("IR403", row.clause)]


def test_every_clause_is_broken() -> None:
    for type in LAYERS:
        cls = resolve(type, None, "extension")
        assert cls is not None
        assert {row.clause for row in BROKEN if row.type == type} == {*labels(cls)}, type


@pytest.mark.parametrize("type", ["PagedGatedDeltaNet", "PagedCausalConv1D", "PagedSelectiveSSM"])
def test_a_run_refuses_tables(type: str) -> None:
    """The kernel refuses what the shape rule refuses, since it may get tables that no rule has seen."""
    inputs, _ = LAYERS[type]
    arrays = [np.zeros([d.lo for d in v.shape], np.float32) if v.exact is None else v.exact for v in inputs]
    arrays[-4] = i32(0, 1, 2, 3, 9)
    with pytest.raises(Refused, match="names block 9") as caught:
        made(type, len(arrays), {}).run(*arrays)
    assert caught.value.label == "C5"

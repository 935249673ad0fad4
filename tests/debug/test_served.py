"""Small models of transformers: irrun runs the paged form as OpenVINO does, and as the stateful form."""

from __future__ import annotations

from pathlib import Path

import pytest

import irrun
from irrun.debug.paged.servable import servability

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "operations", "schedules"),
    [
        ("llama", "2 PagedAttentionExtension", "6 of 6"),
        ("gpt-oss", "2 PagedAttentionExtension", "5 of 5"),
        ("bloom", "2 PagedAttentionExtension", "5 of 5"),
        ("lfm2", "1 PagedAttentionExtension, 1 PagedCausalConv1D", "6 of 6"),
        ("qwen3-next", "1 PagedAttentionExtension, 1 PagedCausalConv1D, 1 PagedGatedDeltaNet", "6 of 6"),
        ("bamba", "1 PagedAttentionExtension, 1 PagedCausalConv1D, 1 PagedSelectiveSSM", "6 of 6"),
    ],
)
def test_a_family(name: str, operations: str, schedules: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the models need the extra `networks`")
    pytest.importorskip("torch", reason="the models need the extra `networks`")
    from served.command import outcome

    found = outcome(name, tmp_path)
    assert (found.operations, found.schedules) == (operations, schedules)
    assert found.openvino < 1e-4
    assert servability(irrun.read_model(tmp_path / f"{name}.xml")).servable


def test_planted_faults(tmp_path: Path) -> None:
    """Of 40 faults, half of them in files whose layers have numbers for names, at least 38 are named."""
    pytest.importorskip("transformers", reason="the models need the extra `networks`")
    pytest.importorskip("torch", reason="the models need the extra `networks`")
    from served.command import main

    assert main(["--faults", "40", "7", "--keep", str(tmp_path)]) == 0

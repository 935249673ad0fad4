"""What the processor can do, and what oneDNN's variable forbids."""

from __future__ import annotations

import platform

import pytest

from irrun.base import processor


@pytest.mark.parametrize(
    ("machine", "flag", "variable", "exact"),
    [
        ("x86_64", "avx2", "", False),
        ("x86_64", "avx512_vnni", "", True),
        ("x86_64", "avx512_vnni", "AVX512_CORE_VNNI", True),
        ("x86_64", "avx512_vnni", "AVX512_CORE", False),
        ("x86_64", "avx_vnni", "avx2", False),
        ("aarch64", "asimd", "", True),
    ],
)
def test_products_of_bytes(
    machine: str, flag: str, variable: str, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """oneDNN documents ONEDNN_MAX_CPU_ISA: below VNNI, it multiplies bytes by vpmaddubsw, which saturates."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(processor, "has_flag", lambda name: name == flag)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", variable)
    assert processor.adds_bytes_exactly() is exact

"""Instruction sets that this processor has, with the settings with which kernels are compiled for no more than each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from irrun.fast.machine.library import binding

__all__ = ["FORMS"]

_BEYOND_AVX512: Final = ("avx10", "avxv", "avxi", "avxn", "amx")
_BEYOND_AVX2: Final = (*_BEYOND_AVX512, "avx5")
_LEVELS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "sse": ("nehalem", "sse4.2", ("avx", "fma", "f16c", "vaes", "vpclmul", "amx", "xop")),
    "avx": ("sandybridge", "avx", (*_BEYOND_AVX2, "avx2", "fma", "f16c", "vaes", "vpclmul")),
    "avx2": ("haswell", "avx2", _BEYOND_AVX2),
    "avx512bf16": ("cooperlake", "avx512bf16", (*_BEYOND_AVX512, "avx512fp16")),
    "avx512": ("skylake-avx512", "avx512f", (*_BEYOND_AVX512, "avx512bf16", "avx512fp16", "avx512vnni")),
}
"""By the name of a form: the processor that has it, the feature a machine must have, and how those begin that it must
not use."""


def _forms() -> dict[str, dict[str, str]]:
    if find_spec("llvmlite") is None:  # kernels that were made ahead of time have the form of their library
        return {"native": {}}
    features = binding().get_host_cpu_features()
    found: dict[str, dict[str, str]] = {"native": {}}
    for form, (name, needed, without) in _LEVELS.items():
        if features.get(needed):
            kept = {feature: has and not feature.startswith(without) for feature, has in features.items()}
            listed = ",".join(("+" if has else "-") + feature for feature, has in kept.items())
            found[form] = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": listed}
    return found


FORMS: Final[Mapping[str, Mapping[str, str]]] = _forms()
"""The environment variables of each form that this machine can run; ``native`` is the machine as it is."""

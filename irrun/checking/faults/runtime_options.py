"""Check the properties that a file sets for its compilation: ``rt_info/runtime_options``."""

from __future__ import annotations

from typing import Final

from irrun.checking.faults.evidence import Evidence
from irrun.diagnostics import diagnostic
from irrun.ir.rt_info import runtime_options
from irrun.model.lookup import nearest
from irrun.types import ElementType

__all__ = ["check_runtime_options"]

_PRECISIONS: Final = ("KV_CACHE_PRECISION", "KEY_CACHE_PRECISION", "VALUE_CACHE_PRECISION")
_SIZES: Final = ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "KEY_CACHE_GROUP_SIZE", "VALUE_CACHE_GROUP_SIZE")
_NUMBERS: Final = ("ACTIVATIONS_SCALE_FACTOR",)
_KNOWN: Final = (*_PRECISIONS, *_SIZES, *_NUMBERS)
"""The properties that plugins of OpenVINO read from a file."""
_COMPILING: Final = ("INFERENCE_PRECISION_HINT", "EXECUTION_MODE_HINT", "PERFORMANCE_HINT", "INFERENCE_NUM_THREADS")
"""Properties of a compilation that plugins do not read from a file."""


def check_runtime_options(evidence: Evidence) -> None:
    """Report runtime options that no plugin reads, and values that no plugin takes (IR113)."""
    source = evidence.model.source
    for name, text in runtime_options(evidence.model).items():
        problem, help = _problem(name, text)
        if not problem:
            continue
        nodes = [0]
        for tag in ("rt_info", "runtime_options", name.lower()):
            nodes = [child for node in nodes for child in source.children(node, tag)]
        message = f'the runtime option {name}="{text}": {problem}'
        evidence.add(diagnostic("IR113", message, source=source, node=(nodes or [0])[0], help=help))


def _problem(name: str, text: str) -> tuple[str, str]:
    """Return what is wrong with a runtime option, and what to do; two empty texts if nothing is."""
    if name not in _KNOWN:
        near = [] if name in _COMPILING else nearest(name, _KNOWN)
        help = f"did you mean {near[0]}?" if near else "remove it, and set the property when the model is compiled"
        return "OpenVINO ignores it in a file", help
    if name in _PRECISIONS and ElementType.parse(text) is None:
        return "OpenVINO knows no such element type, and refuses the model", "write u8, i8, u4, f16, bf16 or f32"
    if name in _SIZES and not text.isdecimal():
        return "it is no number of elements", "write a number from 0, which means no groups"
    return "", ""

"""A few cases of the suite, each of which needs another part of the protocol of harnesses."""

from __future__ import annotations

from typing import Final

from irrun.conformance.suite import Case, Suite

__all__ = ["smoke_cases"]

_PURPOSES: Final = (
    ("an input that is the output", "Parameter-1/composed/f32-static"),
    ("booleans", "Parameter-1/composed/boolean-static"),
    ("integers of 64 bits", "Parameter-1/composed/i64-static"),
    ("bf16", "Parameter-1/composed/bf16-static"),
    ("two elements in a byte", "Parameter-1/composed/u4-static"),
    ("strings", "Parameter-1/composed/string-static"),
    ("unknown dims", "Parameter-1/composed/f32-dims"),
    ("an unknown rank", "Parameter-1/composed/f32-rank"),
    ("no elements", "Parameter-1/composed/f32-dims-empty"),
    ("constants from the .bin", "Const-1/composed/f32"),
    ("two outputs", "TensorIterator-1/composed/running-sum-static"),
    ("several inferences of one model", "If-8/composed/two-branches-static"),
    ("state, and its reset", "ReadValue-6/composed/sum-in-a-variable"),
    ("a model to refuse", "Const-1/refusal/c1-beyond-the-bin"),
)
"""What each case needs, in words, and its name."""


def smoke_cases(suite: Suite) -> list[tuple[str, Case]]:
    """Return the cases with what each of them needs. A suite without one of them leaves it out."""
    cases = {case.name: case for case in suite.cases}
    return [(purpose, cases[name]) for purpose, name in _PURPOSES if name in cases]

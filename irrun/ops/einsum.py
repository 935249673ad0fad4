"""Einsum: sums of products over named axes.  Spec: matrix/einsum-7."""

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports, variadic
from irrun.ops._gemm import matmul, narrow, wide
from irrun.types import UNKNOWN_RANK, Dim

Labels = tuple[str, ...]
"""A name for each axis: a letter, or a number for one that an ellipsis covers, counted from the right."""


@op("Einsum", since=7, spec="matrix/einsum-7")
class Einsum(Op):
    """Multiply the inputs along axes of one label, and sum over the labels that the output does not have.

    C1  ``equation`` is well-formed: letters and at most one ellipsis in each subscript.
    C2  ``equation`` has one subscript per input, and it covers each axis of the input.
    C3  Axes of one label within an input have one dim.
    C4  Axes of one label, and those of ellipses, can be broadcast.
    C5  The labels of the output are among those of the inputs, and none is there twice.
    """

    equation = attr.str()
    inputs = ports(inputs=variadic("T"))
    types = {"T": "numeric"}

    def infer(self, at: Site, *inputs: Value) -> Value:
        subscripts, output = self._subscripts(at)
        at.require(len(subscripts) == len(inputs), "C2", f"{self.equation} is for {len(subscripts)} inputs")
        at.require(
            set(output) <= set("".join(subscripts)) | {"…"} and len(set(output)) == len(output),
            "C5",
            f"the output of {self.equation} has a label twice, or one that no input has",
        )
        sizes: dict[str, Dim] = {}
        covered: int | None = 0
        for i, (subscript, value) in enumerate(zip(subscripts, inputs)):
            if value.shape.dims is None:
                for label in subscript.replace("…", ""):
                    self._broadcast(at, sizes, label, Dim.unknown())
                covered = None if "…" in subscript else covered
                continue
            labels = _expanded(subscript, len(value.shape))
            at.require(labels is not None, "C2", f"{self.equation} does not cover input {i}, which is {value.shape}")
            assert labels is not None
            for label, dim in _own(at, labels, value.shape.dims).items():
                self._broadcast(at, sizes, label, dim)
            covered = None if covered is None else max(covered, _count(labels))
        if "…" in output and covered is None:
            return inputs[0].reshaped(UNKNOWN_RANK)
        return inputs[0].reshaped([sizes[label] for label in _named(output, covered or 0)])

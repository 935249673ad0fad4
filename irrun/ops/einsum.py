"""Einsum: sums of products over named axes.  Spec: matrix/einsum-7."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from math import prod

import numpy as np

from irrun.kernels.matmul import matmul, narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, ports, variadic
from irrun.types import UNKNOWN_RANK, Dim, product

Labels = Sequence[str]
"""A label for each axis: a letter, or for an axis under an ellipsis its number, counted from the right."""


@op("Einsum", since=7, spec="matrix/einsum-7")
class Einsum(Op):
    """Multiply the inputs along axes with the same label, and sum over the labels that the output does not have.

    C1  Each subscript of ``equation`` consists of letters and at most one ellipsis.
    C2  ``equation`` has one subscript for each input, and the subscript has a label for each axis of the input.
    C3  Axes of one input with the same label have equal dims.
    C4  Axes of different inputs with the same label, and axes under ellipses, can be broadcast.
    C5  Each label of the output occurs in an input, and only once in the output.
    """

    equation = attr.str()
    inputs = ports(inputs=variadic("T"))
    types = {"T": "numeric"}

    def infer(self, at: Site, *inputs: Value) -> Value:
        subscripts, output = self._subscripts()
        well_formed = all(re.fullmatch("[A-Za-z]*…?[A-Za-z]*", text) for text in (*subscripts, output))
        at.require(well_formed, "C1", f"equation {self.equation} has a subscript of more than letters and one ellipsis")
        message = f"equation {self.equation} has {len(subscripts)} subscripts, but there are {len(inputs)} inputs"
        at.require(len(subscripts) == len(inputs), "C2", message)
        known = set("".join(subscripts)) | {"…"}
        at.require(set(output) <= known, "C5", f"the output of equation {self.equation} has a label that no input has")
        at.require(len(set(output)) == len(output), "C5", f"the output of equation {self.equation} has a label twice")
        sizes: dict[str, Dim] = {}
        covered, ranked = 0, True
        for i, (subscript, value) in enumerate(zip(subscripts, inputs)):
            letters, dims = subscript.replace("…", ""), value.shape.dims
            if dims is None:
                dims, labels = [Dim.unknown()] * len(letters), list(letters)
                ranked = ranked and letters == subscript
            else:
                hidden = len(dims) - len(letters)
                fits = hidden >= 0 if letters != subscript else hidden == 0
                at.require(fits, "C2", f"subscript {subscript} does not fit the rank of input {i}, {value.shape}")
                labels = _labels(subscript, hidden)
                covered = max(covered, hidden)
            of_input: dict[str, Dim] = {}
            for label, dim in zip(labels, dims):
                both = of_input.get(label, dim).meet(dim)
                at.require(both is not None, "C3", f"label {label} has different dims in input {i}, {value.shape}")
                assert both is not None
                of_input[label] = both
            for label, dim in of_input.items():
                both = sizes.get(label, dim).broadcast(dim)
                message = f"label {label} is {dim} in input {i}, but {sizes.get(label)} in the inputs before it"
                at.require(both is not None, "C4", message)
                assert both is not None
                sizes[label] = both
        if not ranked and "…" in output:
            return inputs[0].reshaped(UNKNOWN_RANK)
        return inputs[0].reshaped([sizes[label] for label in _labels(output, covered)])

    def _subscripts(self) -> tuple[list[str], str]:
        """Return the subscript of each input and that of the output, with … for an ellipsis."""
        left, arrow, output = self.equation.replace(" ", "").replace("...", "…").partition("->")
        if not arrow:
            # OpenVINO also keeps a label that occurs twice in a single input, and then fails
            once = sorted(label for label in set(left) if label.isalpha() and left.count(label) == 1)
            output = "…" * ("…" in left) + "".join(once)
        return left.split(","), output

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        sizes: dict[str, Dim] = {}
        for text, value in zip(self._subscripts()[0], inputs):
            if value is None or value.shape.dims is None:
                return Dim.unknown()
            labels = _labels(text, len(value.shape.dims) - len(text.replace("…", "")))
            for label, dim in zip(labels, value.shape.dims):
                if label not in sizes or sizes[label].fits(1):
                    sizes[label] = dim
        return product(sizes.values()) * len(inputs)  # a product of all inputs, and one addition, for each combination

    def run(self, *arrays: np.ndarray) -> np.ndarray:
        subscripts, output = self._subscripts()
        hidden = [a.ndim - len(text.replace("…", "")) for a, text in zip(arrays, subscripts)]
        final = _labels(output, max(hidden))
        terms = [
            _Term(a.astype(wide(a.dtype), copy=False), _labels(text, n)).diagonal()
            for a, text, n in zip(arrays, subscripts, hidden)
        ]
        repeated = {label for term in terms for label, n in zip(term.labels, term.array.shape) if n != 1}
        total, *others = [term.without_ones(repeated) for term in terms]
        while others:
            other = others.pop(0)
            total = total.times(other, {*final, *(label for term in others for label in term.labels)})
        return narrow(total.summed(final).arranged(final), arrays[0].dtype)


def _labels(subscript: str, hidden: int) -> Labels:
    """Return the label of each axis of a subscript whose ellipsis, if it has one, covers ``hidden`` axes."""
    before, ellipsis, after = subscript.partition("…")
    return [*before, *(str(n) for n in reversed(range(hidden)) if ellipsis), *after]


class _Term:
    """An array and the labels of its axes."""

    def __init__(self, array: np.ndarray, labels: Labels) -> None:
        self.array, self.labels = array, labels

    def size(self, labels: Labels) -> list[int]:
        """Return the lengths of the axes with these labels."""
        return [self.array.shape[self.labels.index(label)] for label in labels]

    def diagonal(self) -> _Term:
        """Return the term with each label once: axes with the same label are replaced by their diagonal."""
        once = list(dict.fromkeys(self.labels))
        if len(once) == len(self.labels):
            return self
        return _Term(np.einsum(self.array, [once.index(label) for label in self.labels], range(len(once))), once)

    def without_ones(self, repeated: Collection[str]) -> _Term:
        """Return the term without axes of length 1 whose label is in ``repeated``: other terms have the full axis."""
        kept = [label for label, n in zip(self.labels, self.array.shape) if n != 1 or label not in repeated]
        return _Term(self.array.reshape(self.size(kept)), kept)

    def summed(self, needed: Collection[str]) -> _Term:
        """Return the term summed over all labels that are not ``needed``."""
        axes = tuple(i for i, label in enumerate(self.labels) if label not in needed)
        if not axes:
            return self
        return _Term(np.asarray(self.array.sum(axes)), [label for label in self.labels if label in needed])

    def arranged(self, labels: Labels) -> np.ndarray:
        """Return the array with its axes in the order of ``labels``, and an axis of length 1 for each missing label."""
        present = [label for label in labels if label in self.labels]
        shape = [self.size([label])[0] if label in self.labels else 1 for label in labels]
        return self.array.transpose([self.labels.index(label) for label in present]).reshape(shape)

    def times(self, other: _Term, needed: Collection[str]) -> _Term:
        """Return the product with ``other``, summed over all labels that are not ``needed``."""
        a, b = self.summed({*needed, *other.labels}), other.summed({*needed, *self.labels})
        inner = [label for label in a.labels if label in b.labels and label not in needed]
        batch = [label for label in a.labels if label in b.labels and label in needed]
        left = [label for label in a.labels if label not in b.labels]
        right = [label for label in b.labels if label not in a.labels]
        labels = [*batch, *left, *right]
        if not inner:
            return _Term(np.asarray(a.arranged(labels) * b.arranged(labels)), labels)
        sizes, rows, columns = a.size(batch), a.size(left), b.size(right)
        product = matmul(
            a.arranged([*batch, *left, *inner]).reshape([*sizes, prod(rows), prod(a.size(inner))]),
            b.arranged([*batch, *inner, *right]).reshape([*sizes, prod(b.size(inner)), prod(columns)]),
        )
        return _Term(product.reshape([*sizes, *rows, *columns]), labels)

"""Behaviours of sequences: recurrent cells, decoders, attention and one-hot vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined

__all__ = ["BEHAVIOURS"]


def _more_than_the_page(op: Any, inputs: Inputs) -> Undefined:
    """Orders of gates, coupled gates and peepholes of LSTMCell-1, of which the page does not speak."""
    return op.weights_format != "fico" or op.input_forget or len(inputs) > 6


def _beyond_the_sequence(op: Any, inputs: Inputs) -> Undefined:
    """Outputs of elements beyond the length of a sequence, the last states of a sequence of length 0, and all outputs
    of a sequence whose length is negative or longer than the data."""
    x, lengths = inputs[0], inputs[[port.name for port in op.inputs].index("sequence_lengths")]
    states = (op.outputs or 2) - 1
    if x is None or lengths is None:
        return (True,) * (1 + states)
    of = np.asarray(lengths).astype(np.int64)[:, None]
    wrong = (of < 0) | (of > x.shape[1])
    beyond = (np.arange(x.shape[1]) >= of) | wrong
    return (beyond[:, None, :, None], *((wrong | (of == 0))[:, :, None],) * states)


def _equal_classes(op: Any, inputs: Inputs) -> Undefined:
    """A sequence in which the most probable class of an element is not the only one: no page says which one counts."""
    data = inputs[0]
    if data is None:
        return True
    if not data.shape[-1]:
        return True
    ties = ((data == data.max(-1, keepdims=True)).sum(-1) > 1) | (data != data).any(-1)
    if op.type == "CTCGreedyDecoder":
        return ties.any(0)[:, None, None, None]
    return ties.any(1)[:, None], ties.any(1)


def _gap_in_mask(op: Any, inputs: Inputs) -> Undefined:
    """A sequence whose mask is 1 again after a 0, or neither 0 nor 1."""
    mask = inputs[1]
    if mask is None:
        return True
    gaps = (mask[1:] > mask[:-1]).any(0) | ((mask != 0) & (mask != 1)).any(0)
    return gaps[:, None, None, None]


def _blank_label(op: Any, inputs: Inputs) -> Undefined:
    """A target of CTCLoss that has the blank as a label."""
    logits, _, labels, lengths, *rest = inputs
    if logits is None or labels is None or lengths is None or (rest and rest[0] is None):
        return True
    blank = int(rest[0].item()) if rest else logits.shape[2] - 1  # type: ignore[union-attr]
    return ((labels == blank) & (np.arange(labels.shape[1]) < lengths[:, None])).any(axis=1)


def _no_path(op: Any, inputs: Inputs) -> Undefined:
    """A target that no path gives: the logarithm of 0."""
    return True if any(array is None for array in inputs) else np.isinf(op.run(*inputs))


def _clipped_nan(op: Any, inputs: Inputs) -> Undefined:
    """What a cell or a sequence computes from numbers that are not finite, if it clips."""
    if not op.clip > 0:
        return False
    if any(array is None for array in inputs[:2]):
        return True
    count, of_rows = len(inputs[0]), 3 if op.type.startswith("LSTM") else 2  # type: ignore[arg-type]
    rows = np.zeros(count, bool)
    for number, array in enumerate(inputs):
        if array is None or array.dtype.kind not in "fV":
            continue
        wrong = ~np.isfinite(array.astype(np.float64))
        rows |= wrong.reshape(count, -1).any(axis=1) if number < of_rows else wrong.any()
    if "Sequence" not in op.type:
        return rows[:, None]
    return (rows[:, None, None, None], *(rows[:, None, None],) * (of_rows - 1))


def _negative_label(op: Any, inputs: Inputs) -> Undefined:
    """Negative indices."""
    indices = inputs[0]
    return True if indices is None else np.expand_dims(indices < 0, op.axis)


def _no_score(op: Any, inputs: Inputs) -> Undefined:
    """Attention with numbers that are not finite, or with a softmax of infinities alone; and the sink."""
    arrays = [array for n, array in enumerate(inputs) if n != 3 and array is not None]
    if any(array is None for array in inputs[:3]) or len(inputs) > 5:
        return True
    if not all(np.isfinite(array.astype(np.float64)).all() for array in arrays):
        return True
    with np.errstate(all="ignore"):
        return np.isnan(op.run(*inputs).astype(np.float64))


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "more-than-the-page": _more_than_the_page,
    "beyond-the-sequence": _beyond_the_sequence,
    "blank-label": _blank_label,
    "clipped-nan": _clipped_nan,
    "equal-classes": _equal_classes,
    "gap-in-mask": _gap_in_mask,
    "negative-label": _negative_label,
    "no-path": _no_path,
    "no-score": _no_score,
}

"""CTCLoss: the negative log-probability of a target, over all paths that give it.  Spec: sequence/ctc-loss-4."""

from itertools import groupby

import numpy as np

from irrun.base.deadline import in_time
from irrun.kernels.matmul import narrow, wide
from irrun.kernels.normalization import shifted
from irrun.opdef import Op, Refused, Site, Value, attr, op, opt, ports
from irrun.ops._ctc import same_dim


@op("CTCLoss", since=4, spec="sequence/ctc-loss-4")
class CTCLoss(Op):
    """Return the negative logarithm of the probability of each target, summed over all paths that produce it.

    C1  ``logits`` is 3D [N, T, C], ``labels`` is 2D [N, T], both lengths are 1D [N], ``blank_index`` is a scalar.
    C2  N and T are the same in all inputs.
    C3  0 <= label_length[i] <= logit_length[i] <= T.
    C4  Labels and ``blank_index`` are at least 0 and less than C, the number of classes.
    """

    preprocess_collapse_repeated = attr.bool(False)
    ctc_merge_repeated = attr.bool(True)
    unique = attr.bool(False)
    inputs = ports(logits="T_F", logit_length="T1", labels="T2", label_length="T1", blank_index=opt("T2"))
    types = {"T_F": "float", "T1": "i32 i64", "T2": "i32 i64"}

    def infer(
        self,
        at: Site,
        logits: Value,
        logit_length: Value,
        labels: Value,
        label_length: Value,
        blank_index: Value | None = None,
    ) -> Value:
        named = {"logits": (logits, 3), "logit_length": (logit_length, 1), "labels": (labels, 2)}
        for name, (value, rank) in (named | {"label_length": (label_length, 1)}).items():
            at.require(value.rank in (None, rank), "C1", f"{name} is {value.shape}, not {rank}D")
        batch = same_dim(
            at, "C2", logits=(logits, 0), logit_length=(logit_length, 0), labels=(labels, 0),
            label_length=(label_length, 0),
        )  # fmt: skip
        time = same_dim(at, "C2", logits=(logits, 1), labels=(labels, 1))
        longest = logit_length.ints()
        if longest is not None:
            at.require(
                max(longest, default=0) <= time.hi, "C3", f"logit_length {list(longest)} has an entry above T, {time}"
            )
            for steps, labels_used in zip(longest, label_length.ints() or ()):
                message = f"label_length has the entry {labels_used}, but logit_length has {steps}"
                at.require(0 <= labels_used <= steps, "C3", message)
        if blank_index is not None:
            at.require(blank_index.rank in (None, 0), "C1", f"blank_index is {blank_index.shape}, not a scalar")
            blank, count = blank_index.scalar(), logits.shape[2]
            at.require(
                blank is None or 0 <= blank < count.hi, "C4", f"blank_index {blank} is outside the {count} classes"
            )
        return logits.reshaped([batch])

    def run(
        self,
        logits: np.ndarray,
        logit_length: np.ndarray,
        labels: np.ndarray,
        label_length: np.ndarray,
        blank_index: np.ndarray | None = None,
    ) -> np.ndarray:
        batch, time, classes = logits.shape
        if (label_length < 0).any() or (label_length > logit_length).any() or (logit_length > time).any():
            lengths = f"0 <= label_length {label_length.tolist()} <= logit_length {logit_length.tolist()}"
            raise Refused(f"{lengths} <= T, {time}, does not hold for every sequence", "C3")
        targets = [self._target(row[:count]) for row, count in zip(labels.tolist(), label_length.tolist())]
        blank = classes - 1 if blank_index is None else int(blank_index.item())
        used = {blank, *(label for target in targets for label in target)}
        if batch and not 0 <= min(used) <= max(used) < classes:
            raise Refused(f"labels and blank_index {sorted(used)} go beyond the {classes} classes", "C4")
        counts = np.array([len(target) for target in targets], np.int64)
        # the states of a path: blank, label, blank, label, …, blank
        states = np.full((batch, 2 * max(counts, default=0) + 1), blank)
        for row, target in zip(states, targets):
            row[1 : 2 * len(target) : 2] = target
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            log = shifted(logits.astype(wide(logits.dtype)), 2)
            log -= np.log(np.exp(log).sum(axis=2, keepdims=True))
            emitted = np.take_along_axis(log, states[:, None, :], axis=2)
            reached = self._reached(emitted, states, logit_length)
        # a path ends in the last label or in the blank after it
        rows = np.arange(batch)
        return narrow(-np.logaddexp(reached[rows, 2 * counts], reached[rows, 2 * counts + 1]), logits.dtype)

    def _target(self, labels: list[int]) -> list[int]:
        """Return the labels of one target without the repetitions that the attributes remove."""
        if self.unique:
            return list(dict.fromkeys(labels))
        return [label for label, _ in groupby(labels)] if self.preprocess_collapse_repeated else labels

    def _reached(self, emitted: np.ndarray, states: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the log-probability of each state after the last step; column 0 is the start, before any state."""
        never = -np.inf
        is_label = np.arange(states.shape[1]) % 2 == 1
        # a path may skip the blank between two labels, unless the labels would be merged
        skips = np.broadcast_to(is_label, states.shape).copy()
        if self.ctc_merge_repeated:
            skips[:, 2:] &= states[:, 2:] != states[:, :-2]
        reached = np.full((len(states), states.shape[1] + 1), never, emitted.dtype)
        reached[:, 0] = 0
        for t in in_time(range(emitted.shape[1])):
            after = np.full_like(reached, never)
            # a blank may be repeated; a label only if repetitions are merged
            after[:, 1:] = np.where(is_label & (not self.ctc_merge_repeated), never, reached[:, 1:])
            after[:, 1:] = np.logaddexp(after[:, 1:], reached[:, :-1])
            after[:, 2:] = np.logaddexp(after[:, 2:], np.where(skips[:, 1:], reached[:, :-2], never))
            after[:, 1:] += emitted[:, t]
            reached = np.where((t < lengths)[:, None], after, reached)
        return reached

"""Multinomial: classes drawn by their probabilities.  Spec: generation/multinomial-13."""

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._random import seeded_by_sequence, seeds
from irrun.types import Dim


@op("Multinomial", since=13, spec="generation/multinomial-13")
class Multinomial(Op):
    """Draw ``num_samples`` classes for each row of ``probs``.

    A row holds the weights of the classes, or their logarithms with ``log_probs``. The seeds determine the samples. If
    both seeds are 0, the samples differ in every run.

    C1  ``probs`` is 2D.
    C2  ``num_samples`` has one element, as a scalar or 1D, and is not negative.
    C3  ``convert_type`` is i32 or i64.
    C4  Without replacement, there are at least as many classes as samples.
    """

    convert_type = attr.element_type()
    with_replacement = attr.bool()
    log_probs = attr.bool()
    global_seed = attr.int(default=0)
    op_seed = attr.int(default=0)
    inputs = ports(probs="T", num_samples="T_SAMPLES")
    types = {"T": "float", "T_SAMPLES": "i32 i64"}
    pure = False

    @property
    def unseeded(self) -> bool:
        return not (self.global_seed or self.op_seed)

    def infer(self, at: Site, probs: Value, num_samples: Value) -> Value:
        at.require(
            self.convert_type.name in ("i32", "i64"), "C3", f"convert_type is {self.convert_type}, not i32 or i64"
        )
        at.require(probs.rank in (None, 2), "C1", f"probs is {probs.shape}, not 2D")
        single = num_samples.rank in (None, 0, 1) and num_samples.shape.count().fits(1)
        at.require(single, "C2", f"num_samples is {num_samples.shape}, not a scalar or 1D of one element")
        samples = (num_samples.dims() or (Dim.unknown(),))[0]
        at.require(samples.hi >= 0, "C2", f"num_samples {samples} is negative")
        classes = probs.shape[1]
        enough = self.with_replacement or samples.lo <= classes.hi
        at.require(enough, "C4", f"num_samples is {samples}, but without replacement, there are {classes} classes")
        return Value(self.convert_type, probs.shape).reshaped([probs.shape[0], samples.max(0)])

    # the specification names no generator: this is the one of OpenVINO's CPU plugin
    def run(self, probs: np.ndarray, num_samples: np.ndarray) -> np.ndarray:
        shape = len(probs), int(num_samples.item())
        numbers = seeded_by_sequence(seeds(self.global_seed, self.op_seed), shape[0] * shape[1])
        fractions = (numbers.astype(np.float32) / np.float32(2**32)).reshape(shape)
        with np.errstate(all="ignore"):
            weights = np.exp(plain(probs)) if self.log_probs else plain(probs)
            cdf = np.cumsum(weights, axis=1, dtype=weights.dtype)
            cdf /= cdf[:, -1:]
            classes = self._with_replacement if self.with_replacement else self._without_replacement
            return classes(cdf, fractions).astype(self.convert_type.dtype)

    def _with_replacement(self, cdf: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the class into which each of ``numbers`` (0 to 1) falls. ``cdf`` holds cumulative probabilities."""
        classes = [np.searchsorted(row, of_row) for row, of_row in zip(cdf, numbers)]
        return np.reshape(classes, numbers.shape)

    def _without_replacement(self, cdf: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Do the same as ``_with_replacement``, but draw each class of a row at most once."""
        classes = np.empty(numbers.shape, np.int64)
        columns = np.arange(cdf.shape[1])
        for i, of_step in enumerate(numbers.T):
            chosen = (cdf < of_step[:, None]).sum(axis=1)[:, None]
            classes[:, i] = chosen[:, 0]
            # the chosen class loses its probability, the others share it
            lost = np.take_along_axis(np.diff(cdf, axis=1, prepend=0), chosen, axis=1)
            cdf = np.where(columns >= chosen, cdf - lost, cdf) / (1 - lost)
        return classes

"""RandomUniform: numbers of a uniform distribution.  Spec: generation/random-uniform-8."""

import math

import numpy as np

from irrun.opdef import Op, Refused, Site, Stream, Value, attr, op, ports
from irrun.ops._random import fractions, mersenne_twister, pairs, philox, seeds


@op("RandomUniform", since=8, spec="generation/random-uniform-8")
class RandomUniform(Op):
    """Return a tensor of ``shape`` with random numbers from ``minval`` up to, but not including, ``maxval``.

    The seeds determine the numbers, which are those of TensorFlow's or PyTorch's generator. If both seeds are 0, the
    numbers differ in every run. TensorFlow's generator continues in each run where the last run ended.

    C1  ``shape`` is 1D, and none of its entries is negative.
    C2  ``minval`` and ``maxval`` have one element each, as a scalar or 1D.
    C3  ``minval`` and ``maxval`` are of the type ``output_type``.
    C4  ``output_type`` is i32, i64, f16, bf16, f32 or f64.
    C5  ``minval`` is less than ``maxval``.
    """

    output_type = attr.element_type()
    global_seed = attr.int(default=0)
    op_seed = attr.int(default=0)
    alignment = attr.choice("tensorflow", "pytorch", default="tensorflow")
    inputs = ports(shape="T_SHAPE", minval="T_VALUE", maxval="T_VALUE")
    types = {"T_SHAPE": "i32 i64", "T_VALUE": "i32 i64 f16 bf16 f32 f64"}
    pure = False
    needs = ("stream",)

    @property
    def unseeded(self) -> bool:
        return not (self.global_seed or self.op_seed)

    def infer(self, at: Site, shape: Value, minval: Value, maxval: Value, *, stream: Stream | None = None) -> Value:
        names = ("i32", "i64", "f16", "bf16", "f32", "f64")
        at.require(
            self.output_type.name in names, "C4", f"output_type is {self.output_type}, not one of {', '.join(names)}"
        )
        at.require(shape.rank in (None, 1), "C1", f"shape is {shape.shape}, not 1D")
        target = shape.as_shape()
        at.require(target.dims is None or all(d.hi >= 0 for d in target), "C1", f"shape {target} has a negative entry")
        for name, value in ("minval", minval), ("maxval", maxval):
            single = value.rank in (None, 0, 1) and value.shape.count().fits(1)
            at.require(single, "C2", f"{name} is {value.shape}, not a scalar or 1D of one element")
            at.require(
                value.type is self.output_type or value.type.kind == "dynamic",
                "C3",
                f"{name} is {value.type}, but output_type is {self.output_type}",
            )
        least, most = minval.exact, maxval.exact
        if least is not None and most is not None:
            at.require(least.item() < most.item(), "C5", f"minval {least.item()} is not less than maxval {most.item()}")
        return Value(self.output_type, target)

    def run(
        self, shape: np.ndarray, minval: np.ndarray, maxval: np.ndarray, *, stream: Stream | None = None
    ) -> np.ndarray:
        numbers = self._draw(shape, minval, maxval, 0 if stream is None else stream.position)
        if stream is not None:
            stream.position += 256 * numbers.size  # as many as TensorFlow reserves
        return numbers

    def _draw(self, shape: np.ndarray, minval: np.ndarray, maxval: np.ndarray, position: int) -> np.ndarray:
        """Return an array of ``shape``. ``position`` is where to begin in the stream of TensorFlow's generator."""
        least, most = minval.reshape(()), maxval.reshape(())
        if not least < most:
            raise Refused(f"minval {least.item()} is not less than maxval {most.item()}", "C5")
        dims = tuple(shape.tolist())
        count = math.prod(dims)
        # PyTorch makes an i64 of a single 32-bit number if the range allows it
        double = self.output_type.bits == 64 and not (
            self.alignment == "pytorch" and self.output_type.is_integer and max(least, most) < 2**32
        )
        numbers = self._numbers(2 * count if double else count, position)
        with np.errstate(all="ignore"):
            make = self._integers if self.output_type.is_integer else self._floats
            return make(pairs(numbers) if double else numbers, least, most).reshape(dims)

    def _numbers(self, count: int, position: int) -> np.ndarray:
        """Return ``count`` random uint32 numbers."""
        key, counter = seeds(self.global_seed, self.op_seed)
        return mersenne_twister(key, count) if self.alignment == "pytorch" else philox(key, counter, position, count)

    def _floats(self, numbers: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
        """Return floats from ``least`` up to ``most``, made of random bits."""
        dtype = self.output_type.dtype
        digits = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}[self.output_type.name]
        if self.alignment == "pytorch":  # f16 and bf16 are rounded at the end only
            unit_numbers = fractions(numbers, digits + 1)
        else:
            unit_numbers = fractions(numbers, digits).astype(dtype)
        return (unit_numbers * (most - least) + least).astype(dtype, copy=False)

    def _integers(self, numbers: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
        """Return integers from ``least`` up to ``most``, made of random bits."""
        if numbers.dtype == np.uint64 and self.alignment == "tensorflow":
            numbers = numbers >> np.uint64(32) | numbers << np.uint64(32)
        span = numbers.dtype.type(int(most) - int(least))
        return (numbers % span).astype(self.output_type.dtype) + least

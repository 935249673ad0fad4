"""Range: numbers at equal distances.  Spec: generation/range-{1,4}."""

import math

import numpy as np

from irrun.kernels.cast import cast, plain
from irrun.opdef import Op, Refused, Site, Value, attr, op, ports
from irrun.types import INF, Dim, ElementType


class _Range(Op):
    def element_type(self, start: ElementType) -> ElementType:
        """Return the element type of the output for a ``start`` of this type."""
        raise NotImplementedError

    def infer(self, at: Site, start: Value, stop: Value, step: Value) -> Value:
        element_type = self.element_type(start.type)
        for name, value in ("start", start), ("stop", stop), ("step", step):
            at.require(value.rank in (None, 0), "C1", f"{name} is {value.shape}, not a scalar")
        if step.exact is not None:
            _step(step.exact, element_type)
        return Value(element_type, start.shape).reshaped([self._count(element_type, start, stop, step)])

    def _count(self, element_type: ElementType, start: Value, stop: Value, step: Value) -> Dim:
        """Return the number of elements: exact where all inputs are known, otherwise as far as it is known."""
        count = self._dim(start, stop, step)
        if start.exact is None or stop.exact is None or step.exact is None:
            return count
        exact = _numbers(start.exact, stop.exact, step.exact, element_type)[2]
        return Dim(exact, exact, count.term if count == exact else None)

    def _dim(self, start: Value, stop: Value, step: Value) -> Dim:
        """Return the number of elements, as far as integer inputs determine it; these may be known only in part."""
        distance = step.scalar() if step.type.is_integer else None
        if not distance or not (start.type.is_integer and stop.type.is_integer):
            return Dim.unknown()
        (first,), (last,) = start.dims() or (Dim(-INF, INF),), stop.dims() or (Dim(-INF, INF),)
        span = last - first if distance > 0 else first - last
        return span.ceil_div(abs(distance)).max(0)

    def run(self, start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> np.ndarray:
        start_type = ElementType.of(start.dtype)
        assert start_type is not None
        element_type = self.element_type(start_type)
        first, distance, count = _numbers(start, stop, step, element_type)
        if isinstance(first, float):
            return cast(first + distance * np.arange(count), element_type)
        whole = np.arange(count, dtype=np.uint64) * np.uint64(distance % 2**64) + np.uint64(first % 2**64)
        return cast(whole, element_type)


def _numbers(
    start: np.ndarray, stop: np.ndarray, step: np.ndarray, element_type: ElementType
) -> tuple[int, int, int] | tuple[float, float, int]:
    """Return the first number, the step and the count: ints for an integer ``element_type``, else floats and the count.

    Raises Refused where the step is 0 (C2) or a number is not finite (C3).
    """
    distance = _step(step, element_type)
    first, last = _finite(start, "start"), _finite(stop, "stop")
    if element_type.is_integer:
        whole = math.trunc(first), math.trunc(last), math.trunc(distance)
        return whole[0], whole[2], max(0, -((whole[0] - whole[1]) // whole[2]))
    count = (float(last) - float(first)) / float(distance)
    if math.isinf(count):
        message = f"from {first} to {last} in steps of {distance} are more numbers than any array can hold"
        raise Refused(message, help="correct start, stop or step", code="IR604")
    return float(first), float(distance), max(0, math.ceil(count))


def _step(step: np.ndarray, element_type: ElementType) -> float | int:
    """Return the step. Raises Refused (C2) where it is 0 as ``element_type``, and (C3) where it is not finite."""
    distance = _finite(step, "step")
    if (math.trunc(distance) if element_type.is_integer else distance) == 0:
        raise Refused(f"step {distance} is 0 as {element_type}", "C2")
    return distance


def _finite(value: np.ndarray, name: str) -> float | int:
    """Return the value as a Python number. Raises Refused (C3) where it is not finite."""
    number = plain(value).item()
    if not math.isfinite(number):
        raise Refused(f"{name} is {number}, which is not finite", "C3")
    return number


@op("Range", since=4, spec="generation/range-4")
class Range4(_Range):
    """Return numbers from ``start`` up to, but not including, ``stop``, in distances of ``step``.

    The numbers are computed in f64, and exactly for integers.

    For an integer ``output_type``, the inputs are first truncated to integers.

    C1  ``start``, ``stop`` and ``step`` are scalars.
    C2  ``step`` is not 0, even after it is converted to ``output_type``.
    C3  ``start``, ``stop`` and ``step`` are finite.
    C4  ``output_type`` is numeric.
    """

    output_type = attr.element_type()
    inputs = ports(start="T1", stop="T2", step="T3")
    types = {"T1": "numeric", "T2": "numeric", "T3": "numeric"}

    def element_type(self, start: ElementType) -> ElementType:
        return self.output_type

    def infer(self, at: Site, start: Value, stop: Value, step: Value) -> Value:
        numeric = self.output_type.kind in ("float", "int", "uint")
        at.require(numeric, "C4", f"output_type is {self.output_type}, which is not numeric")
        return super().infer(at, start, stop, step)


@op("Range", since=1, spec="generation/range-1")
class Range1(_Range):
    """Return numbers from ``start`` up to, but not including, ``stop``, in distances of ``step``.

    The numbers are computed in f64, and exactly for integers.

    C1  ``start``, ``stop`` and ``step`` are scalars.
    C2  ``step`` is not 0.
    C3  ``start``, ``stop`` and ``step`` are finite.
    """

    inputs = ports(start="T", stop="T", step="T")
    types = {"T": "numeric"}

    def element_type(self, start: ElementType) -> ElementType:
        return start

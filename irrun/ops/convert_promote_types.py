"""ConvertPromoteTypes: two tensors as one type that holds both.  Spec: type/convert-promote-types-14."""

import numpy as np

from irrun.kernels.cast import cast
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import ELEMENT_TYPES, ElementType

_DYNAMIC = ELEMENT_TYPES["dynamic"]
_UNSAFE = "convert one input first, or set promote_unsafe to accept a loss"


@op("ConvertPromoteTypes", since=14, spec="type/convert-promote-types-14")
class ConvertPromoteTypes(Op):
    """Convert both inputs to a common type: a float takes precedence over an integer, an integer over boolean.

    The constraints hold unless ``promote_unsafe`` is true.

    C1  A float type to which an integer is promoted has at least twice the bits of the integer.
    C2  With ``pytorch_scalar_promotion``, the type of the tensor can hold that of the scalar.
    C3  A signed type to which an unsigned integer is promoted has at least twice the bits of that integer.
    C4  Two float types with the same number of bits are the same type.
    """

    promote_unsafe = attr.bool(default=False)
    pytorch_scalar_promotion = attr.bool(default=False)
    u64_integer_promotion_target: ElementType = attr.element_type("f32")
    outputs = 2
    inputs = ports(input_0="T0", input_1="T1")
    types = dict.fromkeys(("T0", "T1"), "boolean f16 bf16 f32 f64 f8e4m3 f8e5m2 i4 i8 i16 i32 i64 u4 u8 u16 u32 u64")

    def infer(self, at: Site, input_0: Value, input_1: Value) -> tuple[Value, Value]:
        common = self._common(at, input_0, input_1)
        return input_0.typed(common), input_1.typed(common)

    def run(self, input_0: np.ndarray, input_1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        common = self._common(Site(), Value.of(input_0), Value.of(input_1))
        return cast(input_0, common), cast(input_1, common)

    def _common(self, at: Site, first: Value, second: Value) -> ElementType:
        """Return the common type; dynamic where a type, or a rank that matters, is not known."""
        a, b = first.type, second.type
        if "dynamic" in (a.kind, b.kind):
            return _DYNAMIC
        if a is b or b.kind == "boolean":
            return a
        if a.kind == "boolean":
            return b
        if (a.kind == "float") != (b.kind == "float"):
            real, integer = (a, b) if a.kind == "float" else (b, a)
            fits = real.bits >= 2 * integer.bits
            at.require(fits or self.promote_unsafe, "C1", f"{real} has less than twice the bits of {integer}", _UNSAFE)
            return real
        if self.pytorch_scalar_promotion:
            if None in (first.rank, second.rank):
                return _DYNAMIC
            if first.rank == 0 != second.rank:
                return self._of_tensor(at, a, b)
            if second.rank == 0 != first.rank:
                return self._of_tensor(at, b, a)
        if a.kind == b.kind:
            at.require(
                a.bits != b.bits or self.promote_unsafe,
                "C4",
                f"{a} and {b} are different types of {a.bits} bits",
                _UNSAFE,
            )
            if a.bits == b.bits:
                return ELEMENT_TYPES["f16" if a.bits == 8 else "f32"]
            return a if a.bits > b.bits else b
        signed, unsigned = (a, b) if a.kind == "int" else (b, a)
        if signed.bits >= 2 * unsigned.bits:
            return signed
        at.require(self.promote_unsafe, "C3", f"{signed} has less than twice the bits of {unsigned}", _UNSAFE)
        return self.u64_integer_promotion_target if unsigned.bits == 64 else ELEMENT_TYPES[f"i{2 * unsigned.bits}"]

    def _of_tensor(self, at: Site, scalar: ElementType, tensor: ElementType) -> ElementType:
        """Return the type of the tensor, to which the scalar is converted. Refuses a scalar that may not fit (C2)."""
        bits = tensor.bits if tensor.kind == scalar.kind else tensor.bits // 2 if tensor.kind == "int" else 0
        fits = bits >= scalar.bits
        at.require(
            fits or self.promote_unsafe,
            "C2",
            f"the tensor's type {tensor} cannot hold the scalar's type {scalar}",
            _UNSAFE,
        )
        return tensor

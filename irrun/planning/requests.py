"""Request kernels from operations, in either layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import numpy as np

from irrun.fast import kernel as compiled_kernel
from irrun.inference.layer import input_at
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.matmul import ConstantForm
from irrun.opdef import (
    CHANNELS_LAST,
    LEAST_ROUNDED,
    ORDER,
    AxisRole,
    Joins,
    Kernel,
    Op,
    Operands,
    Request,
    Stored,
    Value,
)  # fmt: skip
from irrun.planning.groups import in_groups

__all__ = ["adding_rounded", "channels_last_kernel", "defining_kernel", "kernel"]


def kernel(
    op: Op, inputs: Sequence[Value | None], outputs: int = 1, *, compiled: bool = False, unpacks: bool = True,
    precision: Operands = "f32",
) -> Kernel:  # fmt: skip
    """Return the fastest kernel of an operation for what is known of its inputs.

    ``outputs`` is how many outputs, counted from the first, have a consumer. ``compiled`` allows compiled kernels,
    ``unpacks`` those that hold a constant of the file as f32. ``precision`` is that of the operands of products.
    """
    request = Request(tuple(inputs), outputs, unpacks=unpacks, precision=precision)
    with np.errstate(all="ignore"):  # an attribute may be beyond the range of the element type, as in a run
        return _fastest(op, request, compiled=compiled) or defining_kernel(op, inputs, precision)


def defining_kernel(op: Op, inputs: Sequence[Value | None], precision: Operands) -> Kernel:
    """Return the kernel that defines an operation, with the operands of products rounded to a precision."""
    if op.rounds_values and precision == "bf16":
        return Kernel(partial(op.run_rounding, rounded_to_bf16))
    numbers = _rounded(op, inputs, precision)
    if numbers and precision == "codes":
        return _by_rows(op, Kernel(op.run), _rounding(Kernel(op.run), numbers, "bf16", {}))
    return _rounding(_inside(op), numbers, precision, {}) if numbers else Kernel(op.run)


def _inside(op: Op) -> Kernel:
    """Return the defining kernel for operands that are rounded, also those inside of the operation."""
    return Kernel(partial(op.run_rounding, rounded_to_bf16) if op.rounds_inside else op.run)


def _fastest(op: Op, request: Request, *, compiled: bool) -> Kernel | None:
    """Return a compiled kernel if it is allowed and there is one, else that of the operation, if it has one."""
    numbers = _rounded(op, request.inputs, request.precision)
    in_f32 = request if op.rounds_values else replace(request, precision="f32")
    asked = request if numbers or request.precision == "split" else in_f32
    kernel = compiled_kernel(op, asked) if compiled else None
    if kernel is not None or not numbers:
        return op.prepare(in_f32) if kernel is None else kernel
    if request.precision == "codes":
        return _beside_codes(op, request)
    if request.precision == "i8":
        kernel = (compiled_kernel(op, in_f32) if compiled else None) or op.prepare(in_f32)
        return None if kernel is None else _rounding(kernel, numbers, "i8", {})
    if op.rounds_inside:
        sources = {number: source for number in numbers if (source := _source(request.inputs[number])) is not None}
        held = {number: _RoundedConstant.of(source).array for number, source in sources.items()}
        return _rounding(_inside(op), numbers, "bf16", held)
    *_, last = numbers
    value = request.inputs[last]
    if value is not None and value.stored is not None and value.stored.type.is_integer:
        rounded = [*request.inputs[:last], replace(value, stored=_RoundedCodes.of(value.stored))]
        kernel = op.prepare(replace(in_f32, inputs=tuple(rounded)))
        return None if kernel is None else _rounding(kernel, numbers[:-1], "bf16", {})
    source = _source(value)
    if source is None:  # layers compute it in each run
        kernel = op.prepare(in_f32)
        return None if kernel is None else _rounding(kernel, numbers, "bf16", {})

    def made() -> Kernel | None:
        constant = _RoundedConstant.of(source).array
        inputs = [Value.of(constant) if number == last else value for number, value in enumerate(request.inputs)]
        kernel = op.prepare(replace(in_f32, inputs=tuple(inputs)))
        return None if kernel is None else _rounding(kernel, numbers, "bf16", {last: constant})

    if op.channels_last is True and not request.channels_last and isinstance(source, np.ndarray):
        stored = request.inputs[last]
        if stored is not None and stored.stored is not None:  # another layout may replace this kernel before a run
            return _late(op.prepare(in_f32), made)
    return made()


def _beside_codes(op: Op, request: Request) -> Kernel | None:
    """Return a kernel of numpy that rounds to bf16 unless the rows are few, or None if there is none."""
    few, many = replace(request, precision="f32"), replace(request, precision="bf16")
    shape = None if request.inputs[0] is None else request.inputs[0].shape.static
    if shape is not None:
        return _fastest(op, few if op.multiplied_rows(shape) < LEAST_ROUNDED else many, compiled=False)
    kernels = op.prepare(replace(few, unpacks=False)), _fastest(op, many, compiled=False)
    return None if kernels[0] is None or kernels[1] is None else _by_rows(op, kernels[0], kernels[1])


def _by_rows(op: Op, few: Kernel, many: Kernel) -> Kernel:
    """Return a kernel that calls one of two: ``few`` for fewer rows than ``LEAST_ROUNDED``."""

    def call(*arrays: Any, **keywords: Any) -> Any:
        return (few if op.multiplied_rows(arrays[0].shape) < LEAST_ROUNDED else many).call(*arrays, **keywords)

    return replace(many, call=call, out="new" if few.out == "new" else "whole", joins=Joins())


def _late(kernel: Kernel | None, make: Callable[[], Kernel | None]) -> Kernel | None:
    """Return a kernel that is made before the first call, with what ``kernel`` says of it."""
    if kernel is None or kernel.packing.create is None:
        return make()
    made = cache(make)

    def call(*arrays: Any, **keywords: Any) -> Any:
        own = made()
        assert own is not None
        return own.call(*arrays, **keywords)

    packing, name = replace(kernel.packing, create=made), f"{kernel.algorithm}, bf16" if kernel.algorithm else "bf16"
    return replace(kernel, call=call, algorithm=name, packing=packing, joins=Joins())


def adding_rounded(kernel: Kernel, number: int) -> Kernel:
    """Return the kernel of an Add that rounds the input ``number`` to bf16."""
    formula = ("add rounded", number) if kernel.joins.formula == ("add",) else None
    return replace(_rounding(kernel, (number,), "bf16", {}), algorithm=kernel.algorithm, joins=Joins(formula))


# ---------------------------------------------------------------------------------------------
# rounded operands


class _RoundedConstant(ConstantForm):
    """A constant of f32, f16 or bf16 rounded to bf16, as f32."""

    def __init__(self, source: np.ndarray) -> None:
        super().__init__(source)
        self.array = rounded_to_bf16(source)


class _RoundedCodes(Stored):
    """A matrix of integers as the file has it, whose numbers are rounded to bf16 where they are unpacked."""

    __slots__ = ()

    @classmethod
    def of(cls, source: Stored) -> _RoundedCodes:
        own = source.raw, source.type, source.shape, source.zeros, source.scales
        return cls(*own, origin=(*source.origin, "bf16"))

    def unpack_rows(self, which: np.ndarray | slice) -> np.ndarray:
        return rounded_to_bf16(super().unpack_rows(which))


def _source(value: Value | None) -> Any:
    """Return the constant in a Value, of f32 or of a narrower float as the file has it, or None if it has none."""
    if value is None or value.stored is None:
        return None if value is None else value.data
    return value.stored.codes.reshape(value.shape.static or ())


def _rounded(op: Op, inputs: Sequence[Value | None], precision: Operands) -> tuple[int, ...]:
    """Return the numbers of the inputs that are rounded to a precision: see ``Op.rounded``."""
    numbers = () if precision in ("f32", "split") else op.rounded(inputs, precision)
    values = (inputs[number] for number in numbers)
    if not all(value is not None and value.type.name == "f32" for value in values):
        return ()
    return numbers[:-1] if precision == "i8" else numbers


def _rounding(
    kernel: Kernel, numbers: Sequence[int], precision: Operands, constants: Mapping[int, np.ndarray]
) -> Kernel:
    """Return a kernel that rounds the inputs ``numbers`` first, but reads ``constants``, which are rounded."""
    varying = set(numbers) - set(constants)
    rounded = in_groups if precision == "i8" else rounded_to_bf16

    def call(*arrays: Any, **keywords: Any) -> Any:
        given = [rounded(array) if number in varying else array for number, array in enumerate(arrays)]
        return kernel.call(*given, **keywords)

    more = sum(array.nbytes for number, array in constants.items() if number not in kernel.packing.inputs)
    held = _with_constants(replace(kernel, call=call, joins=Joins()), constants, precision)
    return replace(held, packing=replace(held.packing, bytes=held.packing.bytes + more))


def channels_last_kernel(
    op: Op, inputs: Sequence[Value | None], outputs: int = 1, *, compiled: bool = False, precision: Operands = "f32"
) -> Kernel | None:
    """Return the fastest kernel for channels-last data, or None if the operation has none.

    ``inputs`` have the shapes of the specification. ``compiled`` allows compiled kernels. ``precision`` is that of the
    operands of products.
    """
    if isinstance(op.channels_last, bool):
        request = Request(tuple(inputs), outputs, channels_last=True, precision=precision)
        return _fastest(op, request, compiled=compiled) if op.channels_last else None
    if inputs[0] is None or inputs[0].rank != 4:
        return None
    adapted = copy(op)
    for name in op.channels_last.keys() & op.attributes.keys():
        axes = _ADAPTED[op.channels_last[name]](np.array(getattr(op, name)))
        if axes is None:
            return None
        setattr(adapted, name, axes.tolist())
    values: list[Value | None] = []
    constants: dict[int, np.ndarray] = {}
    for number, value in enumerate(inputs):
        port = input_at(op.inputs, number)
        role = None if port is None else op.channels_last.get(port.name)
        if value is not None and role is not None:
            axes = None if value.exact is None else _ADAPTED[role](value.exact)
            if axes is None:
                return None
            constants[number], value = axes, Value.of(axes, value.type)
        values.append(value.channels_last() if value is not None and value.rank == 4 else value)
    return _with_constants(kernel(adapted, values, outputs, compiled=compiled), constants, "channels last")


def _with_constants(kernel: Kernel, constants: Mapping[int, np.ndarray], name: str) -> Kernel:
    """Return a kernel that reads these arrays, by input number, in place of the inputs of the layer.

    ``name`` is added to that of the algorithm.
    """

    def call(*arrays: np.ndarray | None, **keywords: Any) -> Any:
        return kernel.call(*[constants.get(number, array) for number, array in enumerate(arrays)], **keywords)

    return replace(
        kernel,
        call=call if constants else kernel.call,
        algorithm=f"{kernel.algorithm}, {name}" if kernel.algorithm else name,
        packing=replace(kernel.packing, inputs=tuple({*kernel.packing.inputs, *constants})),
    )


def _axes(axes: np.ndarray) -> np.ndarray:
    """Return axes of the specification's layout as axes of the channels-last layout."""
    return np.array([CHANNELS_LAST[axis] for axis in axes.ravel().tolist()], axes.dtype).reshape(axes.shape)


def _entries(entries: np.ndarray) -> np.ndarray:
    """Return the entries for all axes in the order of the channels-last layout."""
    return entries[list(ORDER)]


def _leading(count: np.ndarray) -> np.ndarray | None:
    """Return a number of leading axes if these axes lead in both layouts, else None."""
    return count if count in (0, 1) else None


_ADAPTED: Final[dict[AxisRole, Callable[[np.ndarray], np.ndarray | None]]] = {
    "axes": _axes, "entries": _entries, "leading": _leading,
}  # fmt: skip
"""How to adapt an attribute or a constant input of each role. None means that the kernel cannot be channels-last."""

"""Request kernels from operations, in either layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

import numpy as np

from irrun.fast import kernel as compiled_kernel
from irrun.inference.layer import input_at
from irrun.opdef import CHANNELS_LAST, ORDER, AxisRole, Kernel, Op, Request, Value

__all__ = ["channels_last_kernel", "kernel"]


def kernel(
    op: Op, inputs: Sequence[Value | None], outputs: int = 1, *, compiled: bool = False, unpacks: bool = True
) -> Kernel:  # fmt: skip
    """Return the fastest kernel of an operation for what is known of its inputs.

    ``outputs`` is how many outputs, counted from the first, have a consumer. ``compiled`` allows compiled kernels,
    ``unpacks`` those that hold a constant of the file as f32.
    """
    with np.errstate(all="ignore"):  # an attribute may be beyond the range of the element type, as in a run
        return _fastest(op, Request(tuple(inputs), outputs, unpacks=unpacks), compiled=compiled) or Kernel(op.run)


def _fastest(op: Op, request: Request, *, compiled: bool) -> Kernel | None:
    """Return a compiled kernel if it is allowed and there is one, else that of the operation, if it has one."""
    kernel = compiled_kernel(op, request) if compiled else None
    return op.prepare(request) if kernel is None else kernel


def channels_last_kernel(
    op: Op, inputs: Sequence[Value | None], outputs: int = 1, *, compiled: bool = False
) -> Kernel | None:
    """Return the fastest kernel for channels-last data, or None if the operation has none.

    ``inputs`` have the shapes of the specification. ``compiled`` allows compiled kernels.
    """
    if isinstance(op.channels_last, bool):
        request = Request(tuple(inputs), outputs, channels_last=True)
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
    return _with_constants(kernel(adapted, values, outputs, compiled=compiled), constants)


def _with_constants(kernel: Kernel, constants: dict[int, np.ndarray]) -> Kernel:
    """Return a channels-last kernel that reads these arrays, by input number, in place of the inputs of the layer."""

    def call(*arrays: np.ndarray | None, **keywords: Any) -> Any:
        return kernel.call(*[constants.get(number, array) for number, array in enumerate(arrays)], **keywords)

    return replace(
        kernel,
        call=call if constants else kernel.call,
        algorithm=f"{kernel.algorithm}, channels last" if kernel.algorithm else "channels last",
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

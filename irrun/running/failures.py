"""The diagnostics of planning and of a run."""

from __future__ import annotations

from irrun.diagnostics import Diagnostic, ExecutionError, diagnostic
from irrun.inference.propagate import to_blame
from irrun.model import Layer, Model
from irrun.opdef import Op, Value

__all__ = ["human", "kernel_failed", "refuse_too_large"]


def kernel_failed(model: Model, layer: Layer, op: Op | None, error: Exception, inputs: str) -> Diagnostic:
    """Return the diagnostic (IR603) for an exception in a kernel or shape rule. ``inputs`` ends its message."""
    message = f'{layer.type} "{layer.name}" failed: {error!r}{inputs}'
    return diagnostic(
        "IR603", message, source=model.source, node=layer.node, layer=layer.name,
        help=to_blame(op),
    )  # fmt: skip


def refuse_too_large(model: Model, layer: Layer, value: Value, max_memory: int) -> None:
    """Raise ExecutionError (IR604) if a tensor takes more than ``max_memory`` bytes, before it is allocated.

    Unknown dims count with their lower bounds.
    """
    count = value.shape.count()
    size = count.lo * max(value.type.dtype.itemsize, 1)
    if size > max_memory:
        message = f'{layer.type} "{layer.name}": {value.shape} of {value.type} takes {human(size)}, '
        raise ExecutionError(
            diagnostic(
                "IR604", f"{message}more than the {human(max_memory)} allowed", source=model.source,
                node=layer.node, layer=layer.name, help="correct the target shape, or raise --max-memory (max_memory=)",
            )
        )  # fmt: skip


def human(size: float) -> str:
    """Return a number of bytes in a readable unit: ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return ""

"""Watching a run: a hook sees every layer before and after it is computed. The loop itself has no options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from irrun.diagnostics import ExecutionError, diagnostic
from irrun.model import Model
from irrun.types import ElementType

if TYPE_CHECKING:
    from irrun.plan import Step

__all__ = ["Hook", "Strict"]


class Hook(Protocol):
    """Called around every step of a run; arrays are the true intermediate values and must not be changed."""

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None: ...

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None: ...


class Strict:
    """Stops a run at the first output that is not what its port declares. Raises ExecutionError (IR602)."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        pass

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        for port, array in zip(step.layer.outputs, outputs):
            wrong = None
            if port.shape is not None and not port.shape.fits(array.shape):
                wrong = f"declares {port.shape}, but is [{','.join(map(str, array.shape))}]"
            elif port.type is not None and not _is(port.type, array.dtype):
                wrong = f"declares {port.type}, but is {ElementType.of(array.dtype) or array.dtype}"
            if wrong:
                layer = step.layer
                message = f'{layer.type} "{layer.name}" output {port.id} {wrong}'
                raise ExecutionError(
                    diagnostic(
                        "IR602", message, source=self.model.source, node=port.node, layer=layer.name, port=port.id,
                        help="`irrun check` tells which is wrong; --no-strict (strict=False) runs on regardless",
                    )
                )  # fmt: skip


def _is(element_type: ElementType, dtype: np.dtype) -> bool:
    return (
        element_type.dtype == dtype
        or element_type.kind == dtype.kind == "dynamic"
        or (element_type.kind == "string" and dtype.kind == "U")
        or element_type.kind == "dynamic"
    )

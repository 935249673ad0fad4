"""The kernel of a convolution of f32, channels last, whatever its method is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from irrun.fast.convolution.bands import chained
from irrun.fast.convolution.stage import Stage
from irrun.fast.convolution.window_block import ADDED, ADDED_ROUNDED
from irrun.kernels.blocks import changing
from irrun.kernels.convolution.planes import Filters, limit_of
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.threads import shared
from irrun.opdef import Calls, Epilogue, Joins, Kernel, OnTileReady, Packing, ignore_tile

__all__ = ["After", "Arrays", "Method"]

_NO_NUMBERS: Final = np.empty(0, np.float32)


class After(NamedTuple):
    """What a kernel computes of its results: ``clamp(result + bias + residual)``."""

    bias: np.ndarray
    """A number for each channel, or none at all."""
    limits: np.ndarray
    """The least and the greatest result, or none at all."""
    adds: int
    """How the residual is added: see ``window_block``."""

    @staticmethod
    def of(epilogue: Epilogue | None) -> After:
        """Return what an epilogue says."""
        epilogue = Epilogue() if epilogue is None else epilogue
        bias = _NO_NUMBERS if epilogue.bias is None else epilogue.bias
        limits = _NO_NUMBERS if epilogue.limits is None else np.array(epilogue.limits, np.float32)
        return After(bias, limits, (ADDED_ROUNDED if epilogue.rounds else ADDED) if epilogue.residual else 0)


class Arrays(NamedTuple):
    """The arrays of a call, all of them contiguous."""

    data: Sequence[np.ndarray]
    """The data, in as many ``parts`` as its method reads."""
    residual: np.ndarray | None
    out: np.ndarray


class Method:
    """A convolution of data of a known geometry."""

    name: str
    packed: int
    """The bytes of the filters, as the method holds them."""
    parts: int = 1
    """How many inputs hold the data, each of them some of its channels."""
    spare_bytes: int = 0
    checked: bool = False
    """See ``Joins``, also for ``spare_bytes``."""

    def __init__(self, filters: Filters, axes: tuple[Axis, ...], batch: int) -> None:
        self.axes, self.shape = axes, (batch, axes[0].out, axes[1].out, filters.groups * filters.outs)
        self.flops = 2 * filters.size * math.prod(self.shape[:3])
        self.limit = limit_of(filters.source)

    def fill(self, arrays: Arrays, after: After, on_tile_ready: OnTileReady) -> None:
        """Fill ``arrays.out`` with the convolution and what comes ``after`` it, and report its tiles."""
        raise NotImplementedError

    def kernel(self, epilogue: Epilogue | None = None) -> Kernel:
        """Return the kernel, which also computes ``epilogue``."""
        after = After.of(epilogue)
        change, row = (None, False) if epilogue is None else (epilogue.change, epilogue.row)

        def known(inputs: Sequence[np.ndarray], out: np.ndarray) -> Arrays:
            data = [np.ascontiguousarray(array) for array in inputs[: self.parts]]
            return Arrays(data, np.ascontiguousarray(inputs[self.parts + 1]) if after.adds else None, out)

        def call(
            *inputs: np.ndarray, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
        ) -> np.ndarray:  # fmt: skip
            whole = np.empty(self.shape, np.float32) if out is None else out
            if not whole.size:
                return whole
            # without Python between them, threads compute the convolution, and then what follows
            apart = on_tile_ready is ignore_tile and shared(self.flops, natively=True)
            report = on_tile_ready if apart else changing(change, whole, on_tile_ready)
            self.fill(known(inputs, whole), after, report)
            if apart and change is not None:
                change(whole)
            return whole

        def in_turn(*inputs: np.ndarray, out: np.ndarray, spare: np.ndarray) -> Calls:
            calls = self.calls(known(inputs, out), after, spare)
            # a row of pixels at a time, because a pixel may have one channel
            return calls if change is None else [*calls, *change.calls(out.reshape(-1, math.prod(out.shape[2:])))]

        return Kernel(
            call,
            f"{self.name}, channels last",
            out="tiles",
            flops=self.flops,
            packing=Packing((self.parts,), self.packed),
            joins=Joins(
                with_epilogue=self.kernel if epilogue is None else None,
                adds_rows=True,
                chain=chained,
                in_parts=self.in_parts,
                stages=() if row else tuple(replace(stage, change=change) for stage in self.stages(after)),
                calls=in_turn,
                spare_bytes=self.spare_bytes,
                checked=self.checked,
            ),
        )

    def calls(self, arrays: Arrays, after: After, spare: np.ndarray) -> Calls:
        """Return the calls that do what ``fill`` does: see ``Joins.calls``."""
        raise NotImplementedError

    def stages(self, after: After) -> tuple[Stage, ...]:
        """Return the convolution as a stage of a chain of convolutions, if it can be one."""
        return ()

    def in_parts(self, sizes: Sequence[int]) -> Kernel | None:
        """Return the kernel for data in two parts, which have so many channels, or None: see ``Joins.in_parts``."""
        return None

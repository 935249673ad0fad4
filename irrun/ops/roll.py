"""Roll: elements shifted along axes, from the end around to the beginning.  Spec: movement/roll-7."""

from collections.abc import Sequence

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports


@op("Roll", since=7, spec="movement/roll-7")
class Roll(Op):
    """Shift ``data`` along each of ``axes`` by its entry of ``shift``, or by a scalar ``shift``.

    C1  ``shift`` and ``axes`` are scalars or 1D.
    C2  ``shift`` is a scalar, or it has the shape of ``axes``. One entry may also stand for a scalar if ``axes`` is 1D.
    C3  Each entry of ``axes`` is at least -rank and less than the rank of ``data``.
    """

    inputs = ports(data="T", shift="T_SHIFT", axes="T_AXIS")
    types = {"T": "any", "T_SHIFT": "i32 i64", "T_AXIS": "i32 i64"}
    carries = True

    def infer(self, at: Site, data: Value, shift: Value, axes: Value) -> Value:
        for name, value in (("shift", shift), ("axes", axes)):
            at.require(value.rank in (None, 0, 1), "C1", f"{name} is {value.shape}, not a scalar or 1D")
        at.require(
            shift.rank in (None, 0)
            or shift.shape.meet(axes.shape) is not None
            or (axes.rank in (None, 1) and shift.shape.count().fits(1)),
            "C2",
            f"shift is {shift.shape}, but axes is {axes.shape}",
        )
        for axis in axes.ints() or ():
            at.axis(axis, data.rank, "C3")
        return data.reshaped(data.shape)

    def moves(self, inputs: Sequence[Value | None], /) -> bool:
        return True

    def run(self, data: np.ndarray, shift: np.ndarray, axes: np.ndarray) -> np.ndarray:
        along = [Site().axis(int(a), data.ndim, "C3") for a in axes.ravel()]
        shifts = [int(n) for n in np.broadcast_to(shift, len(along))]
        return np.roll(data, shifts, along) if along else data

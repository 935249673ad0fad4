"""GatedResidual: merge the branches of a residual stream, and add to them.  Page: internal/gated-residual."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.internal._layouts import Layouts, widened
from irrun.opdef import Op, Revision, Site, Value, attr, op, ports, variadic
from irrun.types import Dim, ElementType

_READ, _WRITE, _FINAL_MIX = range(3)


@op("GatedResidual", spec="internal/gated-residual")
class GatedResidual(Op):
    """Merge the ``hc_count`` branches of a residual, or add the output of a layer to each branch.

    ``mode`` 0 (READ) and 2 (FINAL_MIX) normalize each branch, and average the branches weighted by a gate of rank
    ``lowrank``; their inputs are ``residual``, ``norm_weight``, ``w_down``, ``w_up`` and, with ``produce_write_gate``,
    ``w_inject``. READ then also returns the gate of each branch for WRITE, from 0 to 2. ``mode`` 1 (WRITE) adds
    ``sublayer_y`` times ``write_gate`` to each branch.

    C1  ``mode`` is 0, 1 or 2; ``hc_count`` and ``hidden_size`` are positive, and ``lowrank`` is unless ``mode`` is 1.
    C2  FINAL_MIX produces no write gate.
    C3  READ and FINAL_MIX have 4 inputs, with a write gate 5; WRITE has 3.
    C4  ``residual`` has at least rank 2, and its last dim is ``hc_count * hidden_size``.
    C5  ``norm_weight``, ``w_down``, ``w_up`` and ``w_inject`` are (all), (lowrank, all), (all, lowrank) and (hc_count,
        all), where all is ``hc_count * hidden_size``.
    C6  ``sublayer_y`` and ``write_gate`` have the leading dims of ``residual``, and the last dims ``hidden_size`` and
        ``hc_count``.
    """

    mode = attr.int()
    hc_count = attr.int()
    hidden_size = attr.int()
    lowrank = attr.int()
    epsilon = attr.float(1e-6)
    norm_gain_plus_one = attr.bool(default=True)
    produce_write_gate = attr.bool(default=False)
    output_type: ElementType = attr.element_type("dynamic")
    revisions = (Revision("", "19d6f7c31562ddfae488c7b7ca88d3b124377117", "the only page that is stored"),)
    inputs = ports(residual="T", others=variadic("T"))
    types = {"T": "float"}
    outputs = None

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        count = Dim(0) if inputs[0] is None else inputs[0].shape.count()
        return count * (2 if self.mode == _WRITE else 4 * self.lowrank + 8)

    def infer(self, at: Site, residual: Value, *others: Value) -> tuple[Value, ...]:
        at.require(self.mode in (_READ, _WRITE, _FINAL_MIX), "C1", f"mode is {self.mode}, not 0, 1 or 2")
        least = {"hc_count": self.hc_count, "hidden_size": self.hidden_size}
        for name, number in (least if self.mode == _WRITE else {**least, "lowrank": self.lowrank}).items():
            at.require(number > 0, "C1", f"{name} is {number}")
        gated = self.produce_write_gate and self.mode != _WRITE
        at.require(not gated or self.mode == _READ, "C2", "FINAL_MIX has produce_write_gate")
        wanted = 2 if self.mode == _WRITE else 4 if gated else 3
        at.require(len(others) == wanted, "C3", f"the layer has {len(others) + 1} inputs, not {wanted + 1}")
        whole = self.hc_count * self.hidden_size
        at.require(residual.rank is None or residual.rank >= 2, "C4", f"residual is {residual.shape}")
        message = f"residual {residual.shape} does not have {self.hc_count} * {self.hidden_size} as its last dim"
        at.require(residual.rank is None or residual.shape[-1].fits(whole), "C4", message)
        leading = None if residual.shape.dims is None else residual.shape.dims[:-1]
        if self.mode == _WRITE:
            for name, value, last in zip(("sublayer_y", "write_gate"), others, (self.hidden_size, self.hc_count)):
                expected = _joined(residual, last)
                met = expected.shape.meet(value.shape) if value.rank is not None else value.shape
                at.require(
                    met is not None and (value.rank is None or value.shape[-1].fits(last)),
                    "C6",
                    f"{name} is {value.shape}, not {expected.shape}",
                )
            return (self._typed(residual if leading is None else _joined(residual, whole)),)
        dims = Layouts(at, "C5", "C5")
        for name, value, layout in zip(
            ("norm_weight", "w_down", "w_up", "w_inject"),
            others,
            (f"{whole}", f"{self.lowrank} {whole}", f"{whole} {self.lowrank}", f"{self.hc_count} {whole}"),
        ):
            dims.read(name, value, layout)
        mixed = self._typed(_joined(residual, self.hidden_size))
        return (mixed, self._typed(_joined(residual, self.hc_count))) if gated else (mixed,)

    def _typed(self, value: Value) -> Value:
        return value if self.output_type.kind == "dynamic" else value.typed(self.output_type)

    def run(self, residual: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
        dtype = residual.dtype if self.output_type.kind == "dynamic" else self.output_type.dtype
        stream = widened(residual)
        branches = stream.reshape(*stream.shape[:-1], self.hc_count, self.hidden_size)
        given = [widened(array) for array in others]
        with np.errstate(all="ignore"):
            if self.mode == _WRITE:
                layer, gate = given
                return ((branches + gate[..., None] * layer[..., None, :]).reshape(stream.shape).astype(dtype),)
            gain = given[0].reshape(self.hc_count, self.hidden_size) + int(self.norm_gain_plus_one)
            square = (branches * branches).mean(-1, keepdims=True)
            normal = branches / np.sqrt(square + stream.dtype.type(self.epsilon)) * gain
            flat = normal.reshape(stream.shape)
            low = flat @ given[1].T / self.hc_count
            gates = _sigmoid(low * _sigmoid(low) @ given[2].T).reshape(normal.shape)
            mixed = (gates * normal).mean(-2).astype(dtype)
            if len(given) == 3:
                return (mixed,)
            return mixed, (2 * _sigmoid(flat @ given[3].T / self.hc_count)).astype(dtype)


def _joined(residual: Value, last: int) -> Value:
    """Return the value with the leading dims of ``residual`` and another last dim."""
    if residual.shape.dims is None:
        return residual
    return residual.reshaped([*residual.shape.dims[:-1], last])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))

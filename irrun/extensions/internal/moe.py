"""MOE: the experts that a router chose for each token.  Page: internal/moe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from irrun.extensions.internal._layouts import Layouts, widened
from irrun.opdef import Op, Refused, Revision, Site, Value, attr, op, ports, variadic
from irrun.types import Dim, product

_GEMM2, _GEMM3 = "GEMM2_BIAS_SWIGLU_CLAMP", "GEMM3_SWIGLU"

_NAMES = {_GEMM2: ("weight_0", "bias_0", "weight_1", "bias_1"), _GEMM3: ("weight_0", "weight_1", "weight_2")}
_LAYOUTS = {
    _GEMM2: (
        "experts hidden_size doubled",
        "experts 1 doubled",
        "experts inter_size hidden_size",
        "experts 1 hidden_size",
    ),
    _GEMM3: ("experts inter_size hidden_size", "experts inter_size hidden_size", "experts hidden_size inter_size"),
}


@op("MOE", spec="internal/moe")
class MOE(Op):
    """Apply to each token the experts that ``router_topk_output_indices`` names, and add their weighted results.

    GEMM3_SWIGLU, with the inputs ``weight_0`` (experts, inter size, hidden size), ``weight_1`` of this shape and
    ``weight_2`` (experts, hidden size, inter size): ``weight_2 @ (swish(weight_0 @ x) * (weight_1 @ x))``, where
    swish(a) is ``a * sigmoid(expert_beta * a)``.

    GEMM2_BIAS_SWIGLU_CLAMP, with ``weight_0`` (experts, hidden size, 2 * inter size), ``bias_0``, ``weight_1``
    (experts, inter size, hidden size) and ``bias_1``: every second column of ``x @ weight_0 + bias_0`` from the first
    one on is clamped to -``expert_alpha`` … ``expert_alpha``, plus 1, and multiplied by swish of the other columns,
    which are at most ``expert_alpha``.

    Each ``routing_weights`` belongs to the index at its place. Weights for all experts, (experts, batch, tokens, 1),
    stand for themselves: then each expert sees each token, whatever the indices are.

    C1  ``hidden_states`` has at least rank 2. ``router_topk_output_indices`` has a row for each of its tokens.
    C2  ``routing_weights`` has the shape of the indices, or a last dim 1 behind it; or (experts, batch, tokens, 1).
    C3  GEMM3_SWIGLU has three weights, GEMM2_BIAS_SWIGLU_CLAMP two weights with ``bias_0`` and perhaps ``bias_1``.
    C4  The weights have these layouts, in which dims of the same name are equal; a bias (experts, 1, columns) may be
        empty.
    C5  Each index is an expert.
    C6  ``gate_idx`` is 0, and ``activation_type`` is SWIGLU: OpenVINO writes these attributes, which no page defines.
    """

    expert_type = attr.choice(_GEMM2, _GEMM3)
    expert_alpha = attr.float(0.0)
    expert_beta = attr.float(1.0)
    gate_idx = attr.int(0)
    activation_type = attr.choice("SWIGLU", "GEGLU_TANH", "GEGLU_ERF", default="SWIGLU")
    inputs = ports(hidden_states="T", routing_weights="T", router_topk_output_indices="T_IND", weights=variadic("T"))
    types = {"T": "float", "T_IND": "i32 i64"}
    revisions = (
        Revision(
            "",
            "95359d3422ee4a9cbcdefb04e5cf002c76d26d02",
            "the first page that is stored: expert_alpha is the factor of swish, expert_beta the bound of the clamp",
            without=("gate_idx", "activation_type"),
            defaults={"expert_alpha": 1.0, "expert_beta": 0.0},
        ),
        Revision(
            "",
            "1bb24d8c8d47f178071243c017c739faa45e40a1",
            "exchanges expert_alpha and expert_beta, and their defaults",
        ),
    )

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        indices, *weights = inputs[2:]
        each = [product(w.shape.dims[1:]) * 2 for w in weights if w is not None and w.shape.dims and len(w.shape) == 3]
        return Dim.unknown() if indices is None else indices.shape.count() * sum(each, Dim(0))

    def doubts(self, at: Site, *inputs: Value) -> Iterator[Refused]:
        if self.expert_type == _GEMM2 and self.expert_alpha < self.expert_beta:
            message = (
                f"expert_alpha {self.expert_alpha:g} is the bound of the clamp, and less than the factor of swish, "
                f"expert_beta {self.expert_beta:g}; in revision {self.revisions[0]}, they are exchanged"
            )
            yield Refused(message, None, "exchange the two if the file is of this revision", "IR406")

    def infer(
        self, at: Site, hidden_states: Value, routing_weights: Value, router_topk_output_indices: Value, *weights: Value
    ) -> Value:
        states, indices = hidden_states.shape, router_topk_output_indices.shape
        at.require(states.rank is None or states.rank >= 2, "C1", f"hidden_states is {states}")
        at.require(indices.rank is None or indices.rank >= 1, "C1", "router_topk_output_indices is a scalar")
        message = f"gate_idx is {self.gate_idx}, activation_type {self.activation_type}"
        at.require(self.gate_idx in (None, 0) and self.activation_type in (None, "SWIGLU"), "C6", message)
        names = _NAMES[self.expert_type]
        counts = (3,) if self.expert_type == _GEMM3 else (3, 4)
        message = f"{self.expert_type} has {len(weights)} inputs behind the indices, not {', '.join(names)}"
        at.require(len(weights) in counts, "C3", message)
        dims = Layouts(at, "C4", "C4")
        if states.dims is not None:
            dims.meet("hidden_size", states.dims[-1], f"hidden_states {states}")
        for name, layout, value in zip(names, _LAYOUTS[self.expert_type], weights):
            count = value.shape.count()
            empty = name.startswith("bias") and (count == 0 or (value.rank == 1 and count.fits(0)))
            if not empty:
                dims.read(name, value, layout)
        at.require(
            dims["doubled"].value is None or dims["doubled"].lo % 2 == 0, "C4", "weight_0 has an odd number of columns"
        )
        if "doubled" in dims.named:
            dims.meet("inter_size", dims["doubled"] // 2, f"half of the columns of weight_0 {weights[0].shape}")
        if states.dims is not None and indices.dims is not None:
            tokens, rows = product(states.dims[:-1]), product(indices.dims[:-1])
            message = f"router_topk_output_indices {indices} has {rows} rows for the {tokens} tokens of hidden_states"
            at.require(tokens.meet(rows) is not None, "C1", message)
        self._check_routing(at, routing_weights, hidden_states, router_topk_output_indices, dims["experts"])
        for index in router_topk_output_indices.ints() or ():
            message = f"router_topk_output_indices has {index}, and there are {dims['experts']} experts"
            at.require(0 <= index < dims["experts"].hi, "C5", message)
        return hidden_states.reshaped(states)

    def _check_routing(self, at: Site, routing: Value, states: Value, indices: Value, experts: Dim) -> None:
        """Refuse routing weights that belong neither to the indices nor to all experts (C2)."""
        if routing.shape.dims is None or indices.shape.dims is None or states.shape.dims is None:
            return
        own = [indices.reshaped(indices.shape), indices.reshaped([*indices.shape.dims, 1])]
        fits = any(value.shape.meet(routing.shape) is not None for value in own)
        tokens = product(states.shape.dims[:-1])
        dims = routing.shape.dims
        dense = len(dims) == 4 and dims[0].meet(experts) is not None and dims[3].fits(1)
        dense = dense and product(dims[1:3]).meet(tokens) is not None
        wanted = f"neither the indices {indices.shape} nor ({experts}, batch, tokens, 1)"
        at.require(fits or dense, "C2", f"routing_weights {routing.shape} fits {wanted}")

    def run(
        self,
        hidden_states: np.ndarray,
        routing_weights: np.ndarray,
        router_topk_output_indices: np.ndarray,
        *weights: np.ndarray,
    ) -> np.ndarray:
        tokens = widened(hidden_states).reshape(math.prod(hidden_states.shape[:-1]), hidden_states.shape[-1])
        given = [
            None if name.startswith("bias") and not weight.size else widened(weight)
            for name, weight in zip(_NAMES[self.expert_type], weights)
        ]
        indices = router_topk_output_indices.reshape(len(tokens), router_topk_output_indices.shape[-1])
        routing = widened(routing_weights)
        dense = routing.size != indices.size or (
            routing.ndim == 4 and indices.shape != router_topk_output_indices.shape
        )
        output = np.zeros(tokens.shape, tokens.dtype)
        with np.errstate(all="ignore"):
            for expert in range(len(weights[0])):
                own = [tokens.dtype.type(0) if weight is None else weight[expert] for weight in given]
                if dense:
                    output += self._expert(tokens, *own) * routing[expert].reshape(len(tokens), 1)
                    continue
                rows, slots = np.nonzero(indices == expert)
                share = routing.reshape(indices.shape)[rows, slots, None]
                np.add.at(output, rows, self._expert(tokens[rows], *own) * share)
        return output.reshape(hidden_states.shape).astype(hidden_states.dtype)

    def _expert(self, x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
        """Return what one expert makes of rows (tokens, hidden size)."""
        if self.expert_type == _GEMM3:
            gate, up, down = weights
            return (_swish(x @ gate.T, self.expert_beta) * (x @ up.T)) @ down.T
        gate_up, bias, down, *last = weights
        both = x @ gate_up + bias
        limit = x.dtype.type(self.expert_alpha)
        linear, gate = np.clip(both[:, ::2], -limit, limit), np.minimum(both[:, 1::2], limit)
        return ((linear + 1) * _swish(gate, self.expert_beta)) @ down + (last[0] if last else 0)


def _swish(x: np.ndarray, beta: float) -> np.ndarray:
    return x / (1 + np.exp(-x * x.dtype.type(beta)))

"""ScaledDotProductAttention: attention of queries to keys.  Spec: sequence/scaled-dot-product-attention."""

from collections.abc import Callable, Sequence

import numpy as np

from irrun.kernels.attention import FEW_QUERIES, Attend, Attention, attention, grouped_attention
from irrun.kernels.elementwise import native
from irrun.kernels.matmul import matmul, narrow, wide
from irrun.opdef import Kernel, OnTileReady, Op, Request, Site, Value, attr, ignore_tile, op, opt, ports
from irrun.types import Dim, PartialShape, product


@op("ScaledDotProductAttention", since=13, spec="sequence/scaled-dot-product-attention")
class ScaledDotProductAttention(Op):
    """Average ``value`` for each query, weighted by softmax(query · key * ``scale`` + ``attention_mask``).

    A boolean mask is true where a query may attend to a key. With ``causal``, a query attends to no key after its own
    position, and the mask is ignored.

    C1  ``query``, ``key`` and ``value`` have at least rank 3.
    C2  ``query`` and ``key`` have the same last dim, ``key`` and ``value`` the same second-to-last dim.
    C3  The dims before the last two can be broadcast.
    C4  ``attention_mask`` is a scalar, or can be broadcast to (…, queries, keys). Its type is boolean or that of
        ``query``.
    C5  ``scale`` is a scalar, or 1D with one element.
    C6  ``sink`` has the rank of ``query`` and can be broadcast to (…, queries, 1). ``key``, ``value`` and
        ``attention_mask`` have no higher rank.
    """

    causal = attr.bool()
    # OpenVINO has a sixth input, which is not in the specification: for each query, the logit of a weight without a key
    inputs = ports(
        query="T", key="T", value="T", attention_mask=opt("float boolean"), scale=opt("T"), sink=opt("T")
    )  # fmt: skip
    types = {"T": "float"}
    rounds_values = True

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        query, key = inputs[0], inputs[1]
        if query is None or key is None or not query.shape.dims or not key.shape.dims or not outputs[0].shape.dims:
            return Dim.unknown()
        *batch, queries, width = outputs[0].shape.dims
        scores = product(batch) * queries * key.shape.dims[-2]
        return scores * (query.shape.dims[-1] * 2 + width * 2 + 4)  # two products, and a softmax as in SoftMax

    def infer(
        self,
        at: Site,
        query: Value,
        key: Value,
        value: Value,
        attention_mask: Value | None = None,
        scale: Value | None = None,
        sink: Value | None = None,
    ) -> Value:
        mask = None if self.causal else attention_mask
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            message = f"{name} {tensor.shape} has rank {tensor.rank}, less than 3"
            at.require(tensor.rank is None or tensor.rank >= 3, "C1", message)
        if scale is not None:
            one = scale.rank in (None, 0, 1) and scale.shape.count().fits(1)
            at.require(one, "C5", f"scale is {scale.shape}, not a scalar, or 1D with one element")
        if mask is not None:
            known = {mask.type.name, query.type.name}
            fits = "boolean" in known or "dynamic" in known or len(known) == 1
            at.require(fits, "C4", f"attention_mask is {mask.type}, not boolean or {query.type}")
        if None in (query.rank, key.rank, value.rank) or (mask is not None and mask.rank is None):
            return query.reshaped(PartialShape(None))
        *batch_q, queries, inner = query.shape
        *batch_k, keys, inner_k = key.shape
        *batch_v, keys_v, width = value.shape
        at.require(
            inner.meet(inner_k) is not None, "C2", f"query {query.shape} and key {key.shape} differ in the last dim"
        )
        at.require(
            keys.meet(keys_v) is not None,
            "C2",
            f"key {key.shape} and value {value.shape} differ in the second-to-last dim",
        )
        batch = PartialShape.of(batch_q).broadcast(PartialShape.of(batch_k))
        batch = batch and batch.broadcast(PartialShape.of(batch_v))
        shapes = f"query {query.shape}, key {key.shape} and value {value.shape}"
        at.require(batch is not None, "C3", f"the batch dims of {shapes} cannot be broadcast")
        assert batch is not None
        if mask is not None and mask.rank:
            dims = _broadcast([*batch, queries, keys], mask.shape, kept=2) if mask.rank > 1 else None
            message = (
                f"attention_mask {mask.shape} cannot be broadcast to [...,{queries},{keys}] with the batch dims {batch}"
            )
            at.require(dims is not None, "C4", message)
            assert dims is not None
            batch = PartialShape.of(dims[:-2])
        if sink is not None and sink.rank is not None:
            dims = _broadcast([*batch, queries, Dim(1)], sink.shape, kept=len(batch) + 2)
            message = f"sink {sink.shape} cannot be broadcast to [...,{queries},1] with the batch dims {batch}"
            at.require(dims is not None and sink.rank == query.rank == len(batch) + 2, "C6", message)
        return query.reshaped([*batch, queries, width])

    def prepare(self, request: Request) -> Kernel | None:
        return self.prepared(request, attention)

    def prepared(self, request: Request, attend: Attend) -> Kernel | None:
        """Return the kernel that computes with ``attend``, or None if its inputs are not native or it has a sink.

        The kernel also takes keys and values with fewer heads (see ``grouped_attention``).
        """
        query, key, value, mask, _, sink = request.first(6)
        if not native(query, key, value) or query is None or sink is not None:
            return None
        if mask is not None and not self.causal and mask.type.kind != "boolean" and not native(query, mask):
            return None

        def call(
            query: np.ndarray,
            key: np.ndarray,
            value: np.ndarray,
            attention_mask: np.ndarray | None = None,
            scale: np.ndarray | None = None,
            sink: np.ndarray | None = None,
            *,
            out: np.ndarray | None = None,
            on_tile_ready: OnTileReady = ignore_tile,
        ) -> np.ndarray:
            if not query.shape[-1]:  # the scale is infinite, and the scores are NaN
                averages = self.run(query, key, value, attention_mask, scale, sink)
                if out is None:
                    return averages
                out[...] = averages
                on_tile_ready((slice(None),) * out.ndim)
                return out
            factor = float(query.shape[-1]) ** -0.5 if scale is None else scale.item()
            masks = () if attention_mask is None or self.causal else (attention_mask,)
            precision = request.precision if query.shape[-2] > FEW_QUERIES else "f32"
            asked = Attention(query, key.swapaxes(-1, -2), value, factor, masks, self.causal, precision)
            return grouped_attention(attend, asked, out=out, on_tile_ready=on_tile_ready)

        return Kernel(call, "in blocks", out="tiles")

    def run(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        attention_mask: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        sink: np.ndarray | None = None,
    ) -> np.ndarray:
        return self.run_rounding(None, query, key, value, attention_mask, scale, sink)

    def run_rounding(
        self,
        round: Callable[[np.ndarray], np.ndarray] | None,
        /,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        attention_mask: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        sink: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return what ``run`` does, where ``round`` rounds what is multiplied, except for few queries.

        That is queries, keys and values, and the exponentials of what scores are less than the largest, before they are
        summed up.
        """
        if round is None or query.dtype != np.float32 or query.shape[-2] <= FEW_QUERIES:
            round = _as_it_is
        query, key, value = map(round, (query, key, value))
        work = wide(query.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):  # a width of 0 makes an infinite scale of scores of 0
            factor = 1 / np.sqrt(work.type(query.shape[-1])) if scale is None else work.type(scale.item())
            weights = matmul(query.astype(work), key.astype(work).swapaxes(-1, -2)) * factor
        mask = np.tri(*weights.shape[-2:], dtype=bool) if self.causal else attention_mask
        if (
            mask is not None
        ):  # added, so that an infinite score becomes NaN where it is hidden, as the specification says
            bias = np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask
            with np.errstate(invalid="ignore"):
                weights = weights + bias.astype(work)
        largest = weights.max(-1, keepdims=True, initial=-np.inf)
        if sink is not None:
            largest = np.maximum(largest, sink.astype(work))
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = round(np.exp(weights - largest))
            total = weights.sum(-1, keepdims=True)
            if sink is not None:
                total = total + np.exp(sink.astype(work) - largest)
            return narrow(matmul(weights / total, value.astype(work)), query.dtype)


def _as_it_is(array: np.ndarray) -> np.ndarray:
    return array


def _broadcast(weights: Sequence[Dim], shape: PartialShape, kept: int) -> list[Dim] | None:
    """Return the dims ``weights`` broadcast with ``shape``, or None if one of the last ``kept`` dims would change."""
    both = PartialShape.of(weights).broadcast(shape)
    if both is None or any(a.meet(b) is None for a, b in zip(list(both)[-kept:], weights[-kept:])):
        return None
    return list(both)

"""GatedDeltaNet and PagedGatedDeltaNet: linear attention whose state forgets, and learns by the delta rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from irrun.extensions.internal._layouts import Layouts, widened
from irrun.extensions.internal._paging import Updating, read_tables, stepped
from irrun.opdef import Op, Revision, Site, Value, attr, op, opt, ports
from irrun.types import Dim

_T = TypeVar("_T", Value, np.ndarray)


class _DeltaRule(Op):
    """What the two operations share: attributes, and the step of the recurrence."""

    use_qk_l2norm = attr.bool(default=False)
    q_l2_norm_eps = attr.float(1e-6)
    k_l2_norm_eps = attr.float(1e-6)

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        key = inputs[1]
        size = key.shape.dims[-1] if key is not None and key.shape.dims else Dim.unknown()
        return outputs[0].shape.count() * size * 7  # decay, read, write and query each element of the state

    def check_eps(self, at: Site, label: str) -> None:
        """Refuse an epsilon that is used and not positive."""
        for name in ("q_l2_norm_eps", "k_l2_norm_eps") if self.use_qk_l2norm else ():
            at.require(getattr(self, name) > 0, label, f"{name} is {getattr(self, name):g}")

    def heads(self, query: np.ndarray, key: np.ndarray, heads: int) -> tuple[np.ndarray, np.ndarray]:
        """Return queries and keys as they enter the recurrence, repeated to so many value heads."""
        query, key = widened(query), widened(key)
        if self.use_qk_l2norm:
            query = _normalized(query, self.q_l2_norm_eps)
            key = _normalized(key, self.k_l2_norm_eps)
        scale = query.dtype.type(query.shape[-1] ** -0.5 if query.shape[-1] else 1)
        groups = heads // query.shape[-2]
        return np.repeat(query * scale, groups, -2), np.repeat(key, groups, -2)


def _normalized(x: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + x.dtype.type(eps))


def _advanced(
    state: np.ndarray, query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state (…, keys, values) after one token, and what its query reads from the state (…, values)."""
    state = state * np.exp(gate)[..., None, None]
    known = (key[..., None, :] @ state)[..., 0, :]
    state = state + key[..., :, None] * ((value - known) * beta[..., None])[..., None, :]
    return state, (query[..., None, :] @ state)[..., 0, :]


@op("GatedDeltaNet", spec="internal/gated-delta-net")
class GatedDeltaNet(_DeltaRule):
    """Read from a state that each token decays by exp(``gate``) and corrects by ``beta`` times the error of its key.

    The state is a matrix (key size, value size) for each value head. A query is divided by the root of its size. Each
    head of ``query`` and ``key`` serves a number of consecutive heads of ``value``.

    C1  ``query``, ``key`` and ``value`` are (batch, tokens, heads, size), ``recurrent_state`` is (batch, value heads,
        key size, value size), ``gate`` and ``beta`` are (batch, tokens, value heads).
    C2  Dims of the same name are equal.
    C3  The number of value heads is a multiple of the number of heads.
    C4  With ``use_qk_l2norm``, ``q_l2_norm_eps`` and ``k_l2_norm_eps`` are positive.
    """

    use_qk_l2norm = attr.bool(default=False, aliases=("fuse_qk_l2norm",))  # the alias is what OpenVINO reads
    inputs = ports(query="T", key="T", value="T", recurrent_state="T_STATE", gate="T", beta="T_BETA")
    types = {"T": "float", "T_STATE": "float", "T_BETA": "float"}
    outputs = 2
    revisions = (
        Revision(
            "",
            "0ebc99dadb8dffc6bb7fe974f33e8add385fe23e",
            "the first page that is stored: initial_state is optional, and the last input",
            inputs=ports(query="T", key="T", value="T", gate="T_STATE", beta="T", initial_state=opt("T_BETA")),
            without=("use_qk_l2norm", "q_l2_norm_eps", "k_l2_norm_eps"),
        ),
        Revision(
            "",
            "c5ae02e38082a04883ea43a9ebb1c5c316ff85f5",
            "recurrent_state is input 4 and required; adds three attributes, and value heads that share a key head",
        ),
    )

    def infer(self, at: Site, query: Value, key: Value, value: Value, *others: Value) -> tuple[Value, ...]:
        gate, beta, state = _ordered(*others)
        dims = Layouts(at)
        dims.read("query", query, "batch tokens heads key_size")
        dims.read("key", key, "batch tokens heads key_size")
        dims.read("value", value, "batch tokens value_heads value_size")
        dims.read("recurrent_state", state, "batch value_heads key_size value_size")
        dims.read("gate", gate, "batch tokens value_heads")
        dims.read("beta", beta, "batch tokens value_heads")
        dims.multiple("value_heads", "heads", "C3")
        self.check_eps(at, "C4")
        return (
            query.reshaped(dims.all("batch tokens value_heads value_size")),
            (state or query).reshaped(dims.all("batch value_heads key_size value_size")),
        )

    def run(self, query: np.ndarray, key: np.ndarray, value: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
        gate, beta, last = _ordered(*others)
        heads = value.shape[2]
        if last is None:
            last = np.zeros((len(query), heads, query.shape[-1], value.shape[-1]), query.dtype)
        queries, keys = self.heads(query, key, heads)
        rows = (queries, keys, *map(widened, (value, gate, beta)))
        state = widened(last)
        output = np.empty(value.shape, queries.dtype)
        with np.errstate(all="ignore"):
            for token in range(value.shape[1]):
                state, output[:, token] = _advanced(state, *(row[:, token] for row in rows))
        return output.astype(query.dtype), state.astype(last.dtype)


def _ordered(fourth: _T, fifth: _T, sixth: _T | None = None) -> tuple[_T, _T, _T | None]:
    """Return gate, beta and state of the inputs behind ``value``.

    The state is the first of them in a layer of the second revision, and the last in one of the first revision, whose
    first one has a dim less.
    """
    rank = fourth.rank if isinstance(fourth, Value) else fourth.ndim
    return (fourth, fifth, sixth) if sixth is None or rank == 3 else (fifth, sixth, fourth)


@op("PagedGatedDeltaNet", spec="internal/paged-gated-delta-net")
class PagedGatedDeltaNet(_DeltaRule, Updating):
    """Apply GatedDeltaNet to several sequences, whose states are blocks of ``recurrent_state_table``.

    The state of a block is (value size, key size) for each value head. A sequence reads its block 0. It writes blocks
    1, 2, …: the state after each ``cache_interval`` tokens of the sequence, counted with the tokens before this call,
    and the state after its last token. Without an interval (0 or less), it writes the last state only, to block 1 if
    there is one. The second output is the table with these blocks.

    C1  ``query``, ``key`` and ``value`` are (tokens, heads, size), ``recurrent_state_table`` is (blocks, value heads,
        value size, key size), ``gate`` and ``beta`` are (tokens, value heads), the other inputs are 1D.
    C2  Dims of the same name are equal; the begins have one entry more than there are sequences.
    C3  The number of value heads is a multiple of the number of heads.
    C4  ``subsequence_begins`` ascends from 0 to the number of tokens, ``la_block_indices_begins`` from 0 to the number
        of ``la_block_indices``.
    C5  ``la_block_indices`` are blocks of the table, and ``num_processed_tokens`` are not negative.
    C6  A sequence with an interval has a block to read, and a block for each state that it writes.
    C7  With ``use_qk_l2norm``, ``q_l2_norm_eps`` and ``k_l2_norm_eps`` are positive.
    """

    inputs = ports(
        query="T",
        key="T",
        value="T",
        recurrent_state_table="T_STATE",
        gate="T",
        beta="T",
        subsequence_begins="T_IND",
        la_block_indices="T_IND",
        la_block_indices_begins="T_IND",
        num_processed_tokens="T_IND",
        cache_interval="T_IND",
    )
    types = {"T": "float", "T_STATE": "float", "T_IND": "i32 i64"}
    updates = ("recurrent_state_table",)
    revisions = (
        Revision("", "671bfd500b90b93d295a2dfb9d0dce6616d5b162", "the first page that is stored"),
        Revision(
            "",
            "170523b31b3dd226f0544f12ca53431a14200c5f",
            "says that block 0 is read, and that blocks 1 to N are written",
        ),
    )

    def infer(
        self,
        at: Site,
        query: Value,
        key: Value,
        value: Value,
        recurrent_state_table: Value,
        gate: Value,
        beta: Value,
        *tables: Value,
    ) -> Value:
        dims = Layouts(at)
        dims.read("query", query, "tokens heads key_size")
        dims.read("key", key, "tokens heads key_size")
        dims.read("value", value, "tokens value_heads value_size")
        dims.read("recurrent_state_table", recurrent_state_table, "blocks value_heads value_size key_size")
        dims.read("gate", gate, "tokens value_heads")
        dims.read("beta", beta, "tokens value_heads")
        dims.multiple("value_heads", "heads", "C3")
        self.check_eps(at, "C7")
        read_tables(at, dims, tables, recurrent_state_table)
        return query.reshaped(dims.all("tokens value_heads value_size"))

    def run(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        recurrent_state_table: np.ndarray,
        gate: np.ndarray,
        beta: np.ndarray,
        *tables: np.ndarray,
        in_place: bool = False,
    ) -> tuple[np.ndarray, ...]:
        queries, keys = self.heads(query, key, value.shape[1])
        rows = (queries, keys, *map(widened, (value, gate, beta)))
        output = np.zeros(value.shape, queries.dtype)

        def step(state: np.ndarray, token: int) -> tuple[np.ndarray, np.ndarray]:
            state, read = _advanced(state.swapaxes(-1, -2), *(row[token] for row in rows))
            return state.swapaxes(-1, -2), read

        table = stepped(recurrent_state_table, output, tables, step, in_place=in_place)
        return output.astype(query.dtype), table

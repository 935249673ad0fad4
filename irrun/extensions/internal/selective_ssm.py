"""SelectiveSSM, SSM, Mamba2 and PagedSelectiveSSM: the state-space recurrence of Mamba-2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.internal._layouts import Layouts, widened
from irrun.extensions.internal._paging import Updating, read_tables, stepped
from irrun.opdef import Op, Revision, Site, Value, op, ports
from irrun.types import Dim


def _flops(inputs: Sequence[Value | None], outputs: Sequence[Value]) -> Dim:
    """Return the operations of a recurrence whose first output is a row of its state for each token."""
    state = inputs[5]
    size = state.shape.dims[-1] if state is not None and state.shape.dims else Dim.unknown()
    return outputs[0].shape.count() * size * 5  # decay, the outer product, and a product with c


class _SelectiveSSM(Op):
    """Base of SelectiveSSM and SSM, whose pages define the same numbers."""

    inputs = ports(A="T", dt="T", B="T", x="T", C="T", recurrent_state="T_STATE")
    types = {"T": "float", "T_STATE": "float"}
    outputs = 2

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        return _flops(inputs, outputs)

    def infer(
        self, at: Site, a: Value, dt: Value, b: Value, x: Value, c: Value, recurrent_state: Value
    ) -> tuple[Value, ...]:
        dims = Layouts(at)
        dims.read("A", a, "heads")
        dims.read("dt", dt, "batch tokens heads")
        dims.read("B", b, "batch tokens groups state_size")
        dims.read("x", x, "batch tokens heads head_size")
        dims.read("C", c, "batch tokens groups state_size")
        dims.read("recurrent_state", recurrent_state, "batch heads head_size state_size")
        dims.multiple("heads", "groups", "C3")
        return (
            x.reshaped(dims.all("batch tokens heads head_size")),
            recurrent_state.reshaped(dims.all("batch heads head_size state_size")),
        )

    def run(
        self,
        a: np.ndarray,
        dt: np.ndarray,
        b: np.ndarray,
        x: np.ndarray,
        c: np.ndarray,
        recurrent_state: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        rows = _rows(a, dt, b, x, c)
        state = widened(recurrent_state)
        output = np.empty(x.shape, rows[2].dtype)
        with np.errstate(all="ignore"):
            for token in range(x.shape[1]):
                state, output[:, token] = _advanced(state, *(row[:, token] for row in rows))
        return output.astype(x.dtype), state.astype(recurrent_state.dtype)


def _rows(a: np.ndarray, dt: np.ndarray, b: np.ndarray, x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the decays (…, heads), ``dt * B`` (…, heads, state size), ``x`` and ``C``, each for all heads."""
    a, dt, b, x, c = map(widened, (a, dt, b, x, c))
    each = x.shape[-2] // b.shape[-2]
    with np.errstate(all="ignore"):
        return np.exp(a * dt), dt[..., None] * np.repeat(b, each, -2), x, np.repeat(c, each, -2)


def _advanced(
    state: np.ndarray, decay: np.ndarray, entry: np.ndarray, x: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state (…, head size, state size) after one token, and what the token reads from it (…, head size)."""
    state = state * decay[..., None, None] + x[..., :, None] * entry[..., None, :]
    return state, (state @ c[..., None])[..., 0]


@op("SelectiveSSM", spec="internal/selective-ssm")
class SelectiveSSM(_SelectiveSSM):
    """Read ``C`` from a state that each token decays by exp(``A * dt``), and to which it adds ``x`` times ``dt * B``.

    The state is a matrix (head size, state size) for each head. Each group of ``B`` and ``C`` serves a number of
    consecutive heads.

    C1  ``A`` is (heads), ``dt`` (batch, tokens, heads), ``B`` and ``C`` (batch, tokens, groups, state size), ``x``
        (batch, tokens, heads, head size), ``recurrent_state`` (batch, heads, head size, state size).
    C2  Dims of the same name are equal.
    C3  The number of heads is a multiple of the number of groups.
    """

    revisions = (
        Revision("", "0d21d5ecbcda5ee595ae1aecb75cd36ba540010f", "the first page that is stored"),
        Revision("", "181e979edddf5b00c358aa14898429a190ac3320", "changes no meaning"),
    )


@op("SSM", spec="internal/ssm")
class SSM(_SelectiveSSM):
    """Compute the same as SelectiveSSM, as its page was named at first.

    C1  ``A`` is (heads), ``dt`` (batch, tokens, heads), ``B`` and ``C`` (batch, tokens, groups, state size), ``x``
        (batch, tokens, heads, head size), ``recurrent_state`` (batch, heads, head size, state size).
    C2  Dims of the same name are equal.
    C3  The number of heads is a multiple of the number of groups.
    """

    revisions = (Revision("", "2b151dc2ca9810414a07976ed8aaa48b83531454", "the only page that is stored"),)


@op("Mamba2", spec="internal/mamba2")
class Mamba2(Op):
    """Read ``C`` from a state that each token multiplies by ``dA``, and to which it adds ``dBx``.

    C1  ``dA`` is (batch, heads, tokens, 1, 1), ``dBx`` (batch, heads, tokens, head size, state size), ``C`` (batch,
        heads, tokens, state size), ``recurrent_state`` (batch, heads, head size, state size).
    C2  Dims of the same name are equal.
    """

    revisions = (Revision("", "c342962faacf5605a7b6b070309d642994a0e9e3", "the only page that is stored"),)
    inputs = ports(dA="T", dBx="T", C="T", recurrent_state="T_STATE")
    types = {"T": "float", "T_STATE": "float"}
    outputs = 2

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        entries = inputs[1]
        return Dim.unknown() if entries is None else entries.shape.count() * 4

    def infer(self, at: Site, da: Value, dbx: Value, c: Value, recurrent_state: Value) -> tuple[Value, ...]:
        dims = Layouts(at)
        dims.read("dA", da, "batch heads tokens 1 1")
        dims.read("dBx", dbx, "batch heads tokens head_size state_size")
        dims.read("C", c, "batch heads tokens state_size")
        dims.read("recurrent_state", recurrent_state, "batch heads head_size state_size")
        return (
            dbx.reshaped(dims.all("batch heads tokens head_size")),
            recurrent_state.reshaped(dims.all("batch heads head_size state_size")),
        )

    def run(
        self, da: np.ndarray, dbx: np.ndarray, c: np.ndarray, recurrent_state: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        decays, entries, readers, state = map(widened, (da, dbx, c, recurrent_state))
        output = np.empty(dbx.shape[:-1], entries.dtype)
        with np.errstate(all="ignore"):
            for token in range(dbx.shape[2]):
                state = state * decays[:, :, token] + entries[:, :, token]
                output[:, :, token] = (state @ readers[:, :, token, :, None])[..., 0]
        return output.astype(dbx.dtype), state.astype(recurrent_state.dtype)


@op("PagedSelectiveSSM", spec="internal/paged-selective-ssm")
class PagedSelectiveSSM(Updating):
    """Apply SelectiveSSM to several sequences, whose states are blocks of ``recurrent_state_table``.

    A sequence reads its block 0. It writes blocks 1, 2, …: the state after each ``cache_interval`` tokens of the
    sequence, counted with the tokens before this call, and the state after its last token. Without an interval (0 or
    less), it writes nothing.

    C1  ``A`` is (heads), ``dt`` (tokens, heads), ``B`` and ``C`` (tokens, groups, state size), ``x`` (tokens, heads,
        head size), ``recurrent_state_table`` (blocks, heads, head size, state size); the other inputs are 1D.
    C2  Dims of the same name are equal; the begins have one entry more than there are sequences.
    C3  The number of heads is a multiple of the number of groups.
    C4  ``subsequence_begins`` ascends from 0 to the number of tokens, ``la_block_indices_begins`` from 0 to the number
        of ``la_block_indices``.
    C5  ``la_block_indices`` are blocks of the table, and ``num_processed_tokens`` are not negative.
    C6  A sequence with an interval has a block to read, and a block for each state that it writes.
    """

    inputs = ports(
        A="T",
        dt="T",
        B="T",
        x="T",
        C="T",
        recurrent_state_table="T_STATE",
        subsequence_begins="T_IND",
        la_block_indices="T_IND",
        la_block_indices_begins="T_IND",
        num_processed_tokens="T_IND",
        cache_interval="T_IND",
    )
    types = {"T": "float", "T_STATE": "float", "T_IND": "i32 i64"}
    updates = ("recurrent_state_table",)
    revisions = (
        Revision("", "03f51f5085a7a7dc7b879c8b95de5f7d2109bca8", "the first page that is stored"),
        Revision(
            "",
            "a027dd23244ddaace0db15d794b2e6653731f80c",
            "the table may have a type of its own; the other tables are i32",
        ),
    )

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        return _flops(inputs, outputs)

    def infer(
        self, at: Site, a: Value, dt: Value, b: Value, x: Value, c: Value, recurrent_state_table: Value, *tables: Value
    ) -> Value:
        dims = Layouts(at)
        dims.read("A", a, "heads")
        dims.read("dt", dt, "tokens heads")
        dims.read("B", b, "tokens groups state_size")
        dims.read("x", x, "tokens heads head_size")
        dims.read("C", c, "tokens groups state_size")
        dims.read("recurrent_state_table", recurrent_state_table, "blocks heads head_size state_size")
        dims.multiple("heads", "groups", "C3")
        read_tables(at, dims, tables, recurrent_state_table)
        return x.reshaped(dims.all("tokens heads head_size"))

    def run(
        self,
        a: np.ndarray,
        dt: np.ndarray,
        b: np.ndarray,
        x: np.ndarray,
        c: np.ndarray,
        recurrent_state_table: np.ndarray,
        *tables: np.ndarray,
        in_place: bool = False,
    ) -> tuple[np.ndarray, ...]:
        rows = _rows(a, dt, b, x, c)
        output = np.zeros(x.shape, rows[2].dtype)

        def step(state: np.ndarray, token: int) -> tuple[np.ndarray, np.ndarray]:
            return _advanced(state, *(row[token] for row in rows))

        table = stepped(recurrent_state_table, output, tables, step, in_place=in_place, keeps_last=False)
        return output.astype(x.dtype), table

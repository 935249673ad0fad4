"""PagedCausalConv1D: a convolution along the tokens of several sequences.  Page: internal/paged-causal-conv1d."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.internal._layouts import Layouts, widened
from irrun.extensions.internal._paging import Updating, read_tables, stepped
from irrun.opdef import Revision, Site, Value, op, ports
from irrun.types import Dim


@op("PagedCausalConv1D", spec="internal/paged-causal-conv1d")
class PagedCausalConv1D(Updating):
    """Convolve each sequence along its tokens; the window of a token ends with the token itself.

    The state of a sequence is the window (hidden size, kernel size), the newest token last. Each token moves it on by
    one. A sequence reads its block 0 of ``conv_state_table``. It writes blocks 1, 2, …: the state after each
    ``cache_interval`` tokens of the sequence, counted with the tokens before this call, and the state after its last
    token. Without an interval (0 or less), it writes the last state only, to block 1 if there is one.

    ``conv_weight`` has a filter for each channel. Its second dim is the number of channels of a group.

    C1  ``input_embeds`` is (tokens, hidden size), ``conv_state_table`` (blocks, hidden size, kernel size),
        ``conv_weight`` (hidden size, group size, kernel size), ``conv_bias`` (hidden size) or empty; the other inputs
        are 1D.
    C2  Dims of the same name are equal; the begins have one entry more than there are sequences.
    C3  The hidden size is a multiple of the group size.
    C4  ``subsequence_begins`` ascends from 0 to the number of tokens, ``la_block_indices_begins`` from 0 to the number
        of ``la_block_indices``.
    C5  ``la_block_indices`` are blocks of the table, and ``num_processed_tokens`` are not negative.
    C6  A sequence with an interval has a block to read, and a block for each state that it writes.
    """

    inputs = ports(
        input_embeds="T",
        conv_state_table="T_STATE",
        conv_weight="T",
        conv_bias="T",
        subsequence_begins="T_IND",
        la_block_indices="T_IND",
        la_block_indices_begins="T_IND",
        num_processed_tokens="T_IND",
        cache_interval="T_IND",
    )
    types = {"T": "float", "T_STATE": "float", "T_IND": "i32 i64"}
    updates = ("conv_state_table",)
    revisions = (
        Revision(
            "",
            "27d7edc8848fa705e18cabb5f10646cb26375873",
            "the first page that is stored: reads and writes the last block",
        ),
        Revision(
            "",
            "3c111d708a338078f0aae0f3bcbdc48463060fc6",
            "says that block 0 is read, and that blocks 1 to N are written; renames inputs 6 to 8",
        ),
    )

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        weight = inputs[2]
        if weight is None or weight.shape.dims is None:
            return Dim.unknown()
        return outputs[0].shape.count() * weight.shape[1] * weight.shape[2] * 2

    def infer(
        self,
        at: Site,
        input_embeds: Value,
        conv_state_table: Value,
        conv_weight: Value,
        conv_bias: Value,
        *tables: Value,
    ) -> Value:
        dims = Layouts(at)
        dims.read("input_embeds", input_embeds, "tokens hidden_size")
        dims.read("conv_state_table", conv_state_table, "blocks hidden_size kernel_size")
        dims.read("conv_weight", conv_weight, "hidden_size group_size kernel_size")
        dims.read("conv_bias", conv_bias, "bias_size")
        if dims["bias_size"].lo:
            dims.meet("hidden_size", dims["bias_size"], f"conv_bias {conv_bias.shape}")
        dims.multiple("hidden_size", "group_size", "C3")
        read_tables(at, dims, tables, conv_state_table)
        return input_embeds.reshaped(dims.all("tokens hidden_size"))

    def run(
        self,
        input_embeds: np.ndarray,
        conv_state_table: np.ndarray,
        conv_weight: np.ndarray,
        conv_bias: np.ndarray,
        *tables: np.ndarray,
        in_place: bool = False,
    ) -> tuple[np.ndarray, ...]:
        tokens, filters = widened(input_embeds), widened(conv_weight)
        group, width = filters.shape[1:]
        bias = widened(conv_bias) if conv_bias.size else filters.dtype.type(0)
        output = np.zeros(tokens.shape, tokens.dtype)

        def step(state: np.ndarray, token: int) -> tuple[np.ndarray, np.ndarray]:
            state = np.concatenate((state[:, 1:], tokens[token][:, None]), 1) if width else state
            window = np.repeat(state.reshape(len(filters) // group, group, width), group, 0)
            return state, (window * filters).sum((1, 2)) + bias

        table = stepped(conv_state_table, output, tables, step, in_place=in_place)
        return output.astype(input_embeds.dtype), table

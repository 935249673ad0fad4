"""The passes of a plan that only compiled kernels need: each lets one step compute what several computed before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from irrun.fast.passes.chains import chain_kernels, join_sequences
from irrun.fast.passes.epilogues import absorb_followers
from irrun.fast.passes.heads import join_heads
from irrun.fast.passes.parts import absorb_concats
from irrun.fast.passes.row_groups import join_rows
from irrun.fast.passes.tokens import join_tokens
from irrun.fast.passes.turns import gather_calls, join_turns
from irrun.fast.passes.views import append_views
from irrun.planning.flow import Context, Flow

__all__ = ["PASSES", "join", "join_turns"]

PASSES: Final[tuple[Callable[[Flow, Context], Flow], ...]] = (
    absorb_concats,
    join_tokens,
    join_heads,
    absorb_followers,
    chain_kernels,
    join_sequences,
    append_views,
    gather_calls,
    join_rows,
)
"""The passes in their order. ``docs/compiled-kernels.md`` quotes this table."""


def join(flow: Flow, context: Context) -> Flow:
    """Join steps of compiled kernels with the steps around them."""
    for rewrite in PASSES:
        flow = rewrite(flow, context)
    return flow

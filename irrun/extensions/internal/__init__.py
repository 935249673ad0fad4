"""OpenVINO's internal operations, which its transformations write: the graph that serves language models.

Their pages (``operation-specs/internal``) have no versions. The revisions of an operation say which release and which
commit of its page have which inputs, attributes and defaults.
"""

from irrun.extensions.internal import (
    block_sparse_attention,
    convolution_biased,
    gated_delta_net,
    gated_residual,
    gather_matmul,
    moe,
    pa_kv_reorder,
    paged_attention_extension,
    paged_causal_conv1d,
    qsa_indexers,
    selective_ssm,
    sparse_plans,
)

__all__ = [
    "block_sparse_attention",
    "convolution_biased",
    "gated_delta_net",
    "gated_residual",
    "gather_matmul",
    "moe",
    "pa_kv_reorder",
    "paged_attention_extension",
    "paged_causal_conv1d",
    "qsa_indexers",
    "selective_ssm",
    "sparse_plans",
]

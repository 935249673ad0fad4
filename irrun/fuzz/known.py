"""The disagreements with OpenVINO that are explained: by a departure, or by a reason.

A layer is described in one line (``described``): the kind of the disagreement, the operation with its inputs and
attributes, and what the engine gave or said. Each ``Known`` has a pattern of such lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.fuzz.graphs import Graph
from irrun.fuzz.judging import Disagreement

__all__ = ["KNOWN", "NOT_REPEATED", "Known", "described", "explained"]

NOT_REPEATED: Final = "a crash that a new process does not repeat"
"""The explanation of a crash after memory was written by an earlier model."""
_SHOWN: Final = 12
"""The most elements of a constant that a description shows."""


@dataclass(frozen=True)
class Known:
    """An explanation, and the pattern of the descriptions that it explains. ``name`` is the name of a departure
    (``docs/departures/<name>.xml``), or a reason if it has spaces."""

    name: str
    pattern: str


def described(graph: Graph, disagreement: Disagreement) -> str:
    """Return a line about a graph: ``values Add-1 (p:u8[2], c:u8[]=[7]) {} static | output 0 has 255 at [0], not 1``.

    ``p`` is a parameter, ``c`` a constant. ``nonfinite`` follows if inputs hold NaN or infinities, and ``empty`` if
    one has no elements.
    """
    parts = [*_layers(graph), "dynamic" if graph.is_dynamic() else "static"]
    arrays = [*graph.feeds(), *(node.data for node in graph.nodes if node.data is not None)]
    if any(array.dtype.kind not in "OUSTiub" and not np.isfinite(array.astype(np.float64)).all() for array in arrays):
        parts.append("nonfinite")
    if any(not array.size for array in arrays):
        parts.append("empty")
    return f"{disagreement.kind} {' '.join(parts)} | {disagreement.detail}"


def _layers(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        if node.kind in ("parameter", "constant"):
            continue
        inputs = []
        for ref in node.inputs:
            source = graph.nodes[ref.node]
            if source.kind not in ("parameter", "constant"):
                inputs.append(source.label)
                continue
            text = f"{source.kind[0]}:{source.type}[{','.join(map(str, source.shape))}]"
            if source.stored is not None:
                text += f" as {source.stored.type}"
            elif source.data is not None and source.data.size <= _SHOWN and source.data.dtype.kind in "iub":
                text += f"={source.data.ravel().tolist()}"
            inputs.append(text)
        attributes = ", ".join(f"{name}={text}" for name, text in node.attributes.items())
        yield f"{node.label} ({', '.join(inputs)}) {{{attributes}}} -> {node.outputs}"


def explained(line: str) -> str:
    """Return the name of the first explanation of a description, or an empty text."""
    return next((known.name for known in KNOWN if re.search(known.pattern, line)), "")


KNOWN: Final = (
    # what the engine's plugin does not have
    Known("an operation that the engine does not have", r"doesn't contain the operation"),
    Known(
        "an input that must be constant",
        r"evaluate\(\) is not implemented for op|[Tt]ensor is not constant|support .* with dynamic rank|"
        r"Cannot get dims for non static shape|Destination memory is undefined",
    ),
    Known("a Parameter of unknown rank", r"doesn't support Parameter operation with dynamic"),
    Known(
        "an element type",
        r"unsupported (src|dst)_prc|Element not supported|supportedPrecisions|m_output_type ==|"
        r"can't convert from|[Uu]nsupported .*(type|precision)|not support(ed)? .*(type|precision)|supported .*'data|"
        r"doesn't support .*precision|does not support \w+ for|lement type (must be|for the)|"
        r"GatherTree node .* incorrect input/output data precision",
    ),
    # refusals, by the message alone
    Known("max_pool_auto_pad", r"Expected pads_(begin|end) size to be equal to input size"),
    Known("convolution_auto_pad", r"Pads begin and end should be defined for all"),
    Known("max_pool_dilations", r"One of the MaxPool params does not match"),
    Known("max_pool_empty", r"Batch size is zero|Channel count is zero|annel_count.get_length\(\) > 0"),
    Known("avg_pool_exclude_pad", r"Kernel after dilation is sometimes entirely in the padding"),
    Known("deformable_convolution_group", r"Attribute '(deformable )?group' must be any value"),
    Known("space_to_depth_block_size", r"The block size must be greater than 0 0|The divisor must not be 0"),
    Known(
        "space_to_depth_empty", r"Dimension value: \[ ?0, ?0\] must be a multiple|H and W should be divisible by stride"
    ),
    Known(
        "psroi_pooling_defaults", r"Expected 'average' or 'bilinear' mode. Got *$|group_size has to be greater than 0"
    ),
    Known("prior_box_clustered_width", r"Size of heights vector: \d+ doesn't match size of widths vector"),
    Known("prior_box_order", r"Unexpected op type in PriorBox shape inference"),
    Known("rnn_sequence_activations", r"SequenceToTensorIterator\].*_M_range_check"),
    Known("cum_sum_axis", r"doesn't support 'axis' input tensor with non scalar rank"),
    Known("broadcast_i8", r"Buffer over-read"),
    Known("one_hot_i8", r"OneHot node .* has incorrect input precision"),
    Known("one_hot_ignore", r'"ignore-negative" is not a member'),
    Known("matrix_nms_names", r'"(class|score|none)" is not a member of enum .*(Nms|NMS)|SortResultType'),
    Known("scatter_update_scalar", r"ScatterUpdate node .* do not support scalar input"),
    Known("scatter_nd_update_single", r"ScatterNDUpdate node .* matched tensor rank relationship"),
    Known("gather_axis", r"axis value is not set|Gather node .* incorrect input parameter axis value"),
    Known("gather_nd_batch", r"Batch dimensions of data and indices must be the same"),
    Known("select_pdpd", r"Unsupported auto broadcast specification"),
    Known("lrn_1d", r"LRN node .* doesn't support 'data' input with rank: 1|Reduction axis \(1\) is out of bounds"),
    Known("matrix_nms_none", r"Total number of boxes is less or equal than 0"),
    Known("non_max_suppression_dynamic", r"'boxes' input 3rd dimension size: 18446744073709551615"),
    Known("embedding_bag_empty", r"Offset value exceeds indices size"),
    Known("strided_slice_masks", r"All masks of StridedSlice must have the same size"),
    Known("generate_proposals_min_size", r"Attribute min_size must be 1\.0"),
    Known("an image without pixels", r"image info input must have"),
    # refusals of one operation
    Known("pdpd_trailing", r"^refusal .*auto_broadcast=pdpd.*Argument shapes are inconsistent"),
    Known("rnn_cell_bias", r"^refusal (RNN|GRU|LSTM)Cell-\d .*index '[45]' out of range"),
    Known("rnn_sequence_activations", r"^refusal (RNN|GRU|LSTM)Sequence-\d .*_M_range_check"),
    Known("cum_sum_no_axis", r"^refusal CumSum-3 .*index '1' out of range"),
    Known("col2im_attributes", r"^refusal Col2Im-15 .*index '[12]' out of range"),
    Known("broadcast_mode", r"^(refusal|values) Broadcast-1 (?!.*mode=).* -> "),
    # crashes
    Known("broadcast_empty", r"^crash Broadcast-\d .* empty"),
    Known("col2im_defaults", r"^crash Col2Im-15 (?!.*strides=.*dilations=.*pads_begin=.*pads_end=)"),
    Known("space_to_depth_empty", r"^crash SpaceToDepth-1 .* empty"),
    Known("gather_no_rows", r"^(crash|refusal) Gather-\d \([pc]:\w+\[[\d,]*\b0\b"),
    Known("gather_empty", r"^crash Gather-\d .* empty"),
    Known("gather_axis", r"^(crash|values) Gather-\d \([^ ]* [^ ]*(=\[.*?\])?, p:"),
    Known("slice_axes", r"^crash Slice-8 \(.*, p:\w+\[\d+\](=\[[^]]*\])?\) "),
    Known("segment_max_empty", r"^(crash|refusal) SegmentMax-16 .* empty"),
    Known(
        "generate_proposals_single_image_none",
        r"^crash ExperimentalDetectronGenerateProposalsSingleImage-6 .*post_nms_count=0",
    ),
    # values
    Known("soft_max_axis", r"^values SoftMax-1 \([^{]*\{\}"),
    Known("broadcast_bidirectional", r"^values Broadcast-3 .*mode=bidirectional"),
    Known("prior_box_clustered_width", r"^values PriorBoxClustered-1 "),
    Known("prior_box_count", r"^values PriorBox-\d .*output 0 is \["),
    Known("region_yolo_do_softmax", r"^values RegionYolo-1 (?!.*do_softmax=)"),
    Known("max_pool_dilations", r"^values MaxPool-(8|14) (?!.*dilations=)"),
    Known("non_max_suppression_rows", r"^values NonMaxSuppression-[134] .*output 0 is \["),
    Known("range_empty", r"^values Range-\d .*output 0 is \[\d+\], not \[0\]"),
    Known("divide_by_zero", r"^values (Divide|FloorMod|Mod)-1 \([pc]:[iu]\d+.*-2147483648"),
    Known("erf_inv", r"^values ErfInv-17 "),
)
"""All explanations, in the order in which they are tried."""

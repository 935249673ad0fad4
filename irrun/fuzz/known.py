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


_FEW_PADS: Final = "|".join(
    rf"\([pc]:\w+\[\d+(,\d+){{{rank - 1}}}\][^{{]*\{{[^}}]*pads_(begin|end)=\d+(,\d+){{0,{rank - 2}}}(, |\}})"
    for rank in range(2, 6)
)
"""Data of 2 to 5 axes with pads for fewer."""
_LONG_MASKS: Final = "|".join(
    rf"\([pc]:[^{{]*, [pc]:[iu]\d+\[{entries}\][^{{]*\{{[^}}]*_mask=[01](,[01]){{{entries}}}" for entries in range(1, 5)
)
"""``begin`` of 1 to 4 entries with a mask of more."""

KNOWN: Final = (
    # what the plugin of the engine does not have
    Known("an operation that the engine does not have", r"doesn't contain the operation"),
    Known("lrn_axes", r"lrn\.cpp:.*Supports only across channels or across spatial reduction"),
    Known("group_normalization_2d", r"op: opset12::GroupNormalization \S+ \(\S+ [^:]+:f(16|32)\[[^],]*,[^],]*\]"),
    Known(
        "mvn_scalar",
        r"mvn\.cpp:.*accepts ranks from 1 to 5\. Actual: 0|^values MVN-6 \([pc]:\w+\[\].*output 0 is \[1\]",
    ),
    Known(
        "an element type",
        r"op: opset12::GroupNormalization \S+ \(\S+ [^:]+:(bf16|[iu]\d+)\[|"
        r"pooling\.cpp:.*supported only with one output.*op: opset\d+::MaxPool \S+ \(\S+ [^:]+:bf16\[",
    ),
    Known("an operation that the engine does not have", r"not implemented for op: opset17::GroupedMatMul"),
    Known(
        "a shape that must be static",
        r"Doesn't support (op with dynamic shapes|dynamic shapes for 'weights'|dynamic weights shape)",
    ),
    Known("lrn_1d", r"lrn\.cpp:.*Doesn't support 'data' input with rank: 1"),
    Known(
        "an input that must be constant",
        r"evaluate\(\) is not implemented for op|[Tt]ensor is not constant|must be connected to a Constant|"
        r"support .* with dynamic rank|"
        r"Cannot get dims for non static shape|Destination memory is undefined|to_shape was called on a dynamic shape",
    ),
    Known("a Parameter of unknown rank", r"doesn't support Parameter operation with dynamic"),
    Known(
        "an element type",
        r"unsupported (src|dst)_prc|Element not supported|supportedPrecisions|m_output_type ==|"
        r"can't convert from|[Uu]nsupported .*(type|precision)|not support(ed)? .*(type|precision)|supported .*'data|"
        r"doesn't support .*precision|does not support \w+ for|lement type (must be|for the)|"
        r"expected to be a same floating point type|"
        r"GatherTree node .* incorrect input/output data precision|evaluation failed for core operation: MaxPool|"
        r"Element type of data input must be numeric",
    ),
    Known(
        "a dim of 0",
        r"out-of-range dimension=0|Dimension value: \[ ?0, ?0\] must be a multiple|"
        r"H and W should be divisible by stride|"
        r"Window input dimension must be in range|^refusal \w+-\d+ .* empty \| .*(reorder primitive|"
        r"primitive descriptor|incompatible with input shape)",
    ),
    # refusals, by their message
    Known("max_pool_auto_pad", r"Expected pads_(begin|end) size to be equal to input size"),
    Known("convolution_auto_pad", r"Pads begin and end should be defined for all"),
    Known("max_pool_dilations", r"One of the MaxPool params does not match"),
    Known("max_pool_empty", r"Batch size is zero|Channel count is zero|annel_count.get_length\(\) > 0"),
    Known("avg_pool_exclude_pad", r"Kernel after dilation is sometimes entirely in the padding"),
    Known("deformable_convolution_group", r"'(deformable )?group' (must be any value|attribute value: 0)"),
    Known("space_to_depth_block_size", r"The block size must be greater than 0 0|The divisor must not be 0"),
    Known(
        "psroi_pooling_defaults",
        r"spatial_bins_[xy] has to be greater than 0|Expected 'average' or 'bilinear' mode. Got *$|"
        r"group_size has to be greater than 0",
    ),
    Known("prior_box_clustered_width", r"Size of heights vector: \d+ doesn't match size of widths vector"),
    Known("prior_box_order", r"Unexpected op type in PriorBox shape inference"),
    Known("rnn_sequence_activations", r"SequenceToTensorIterator\].*_M_range_check"),
    Known("cum_sum_axis", r"doesn't support 'axis' input tensor with non scalar rank"),
    Known("broadcast_i8", r"Buffer over-read"),
    Known("one_hot_i8", r"OneHot node .* has incorrect input precision"),
    Known("one_hot_ignore", r'"ignore-negative" is not a member'),
    Known("matrix_nms_names", r"is not a member of enum .*SortResultType"),
    Known("scatter_update_scalar", r"ScatterUpdate node .* do not support scalar input"),
    Known("scatter_nd_update_single", r"ScatterNDUpdate node .* matched tensor rank relationship"),
    Known("gather_axis", r"axis value is not set|Gather node .* incorrect input parameter axis value"),
    Known("gather_nd_batch", r"Batch dimensions of data and indices must be the same"),
    Known("select_pdpd", r"Unsupported auto broadcast specification"),
    Known("compare_scalar", r"SnippetsOpset::Scalar .*rgument shapes are inconsistent"),
    Known("lrn_1d", r"LRN node .* doesn't support 'data' input with rank: 1|Reduction axis \(1\) is out of bounds"),
    Known("matrix_nms_none", r"Total number of boxes is less or equal than 0"),
    Known(
        "non_max_suppression_dynamic",
        r"dimension size: 18446744073709551615|has invalid shape on 1st input: \[.*18446744073709551615\]",
    ),
    Known("embedding_segments_default", r"has invalid embedding bag index: -1"),
    Known("lstm_cell_dynamic", r"Check 'data.size\(\) == OC'"),
    Known("embedding_bag_empty", r"Offset value exceeds indices size"),
    Known("strided_slice_masks", r"All masks of StridedSlice must have the same size|At most one ellipsis is allowed"),
    Known("strided_slice_scalar", r"StridedSlice node .* doesn't have compiled executor"),
    Known("generate_proposals_nms_eta", r"Attribute min_size must be 1\.0"),
    Known("top_k_zero", r"K \(0\) must be greater or equal to 1"),
    Known("deconvolution_shape", r"primitive descriptor for the deconvolution"),
    Known("roll_one_shift", r"'shift' and 'axes' dimensions mismatch"),
    Known("detection_output_labels", r"cannot use decrease_label_id and background_label_id"),
    Known("interpolate_channels", r"only supports resize on spatial dimensions"),
    Known("interpolate_pillow_axes", r"For Pillow based modes exactly two"),
    Known("attention_ranks", r"Layout rank can't be larger than tensor rank"),
    Known("reduce_scalar", r"^refusal Reduce\w+-\d .*keep_dims=true.*out-of-range dimension"),
    Known("reduce_no_axes", r"Reduce\w+ node .* incorrect number of input/output dimensions"),
    Known("grouped_mat_mul_i4", r"Input B rank must be 3D or 4D\. Got: 2D"),
    Known("top_k_stable", r"Stable sort can only be used when"),
    Known("rdft_minus_one", r"cannot create std::vector larger than max_size"),
    Known("rdft_size", r"Signal size greater than input size is not supported"),
    Known("matmul_compressed", r"final_weights_rank \+ 1"),
    Known("matmul_empty", r"object is not initialized"),
    Known("divide_by_zero", r"integer division by zero"),
    Known("pdpd_trailing", r"Eltwise executor got invalid input/output dims"),
    Known("negative_u8", r"^refusal Negative-1 .*assigned value out of range"),
    Known("an image without a whole pixel", r"image info input must have|sampling_ratio_x >= 0"),
    # refusals of one operation
    Known("reduce_scalar", r"^refusal Reduce\w+-\d .* Reduce\w+-\d .*\[ReduceMerge\].*out of the tensor rank range"),
    Known("fake_quantize_ranks", r"^refusal FakeQuantize-1 .* dynamic .*Can not clone with new dims"),
    Known("rdft_empty", r"^refusal RDFT-9 [^>]*=\[[\d, ]*\b0\b[^>]*> 1 .*RDFT-9_\d+\[0\]:\w+\[[\d,]*\b0\b"),
    Known("rnn_sequence_beyond", r"^refusal (RNN|GRU|LSTM|AUGRU)Sequence-\d .*Incorrect input 'seq_lengths' values"),
    Known("sparse_fill_empty_rows_boolean", r"^refusal SparseFillEmptyRows-16 .*\[2\]:boolean.* element type"),
    Known("transpose_u8", r"^refusal Transpose-1 \([pc]:\w+\[\d+\](=\[[^]]*\])?, c:[iu]8\[1\].*less child edges"),
    Known(
        "interpolate_axes",
        r"^(refusal|values) Interpolate-1 .*axes=(1,0|2,[01]|3,[0-2]|4,[0-3])"
        r".*(shapes are inconsistent|output 0 is \[)",
    ),
    Known("interpolate_linear_onnx", r"^refusal Interpolate-\d+ .*mode=linear_onnx.*Axes are not correct"),
    Known("pad_crop", r"^refusal Pad-12 .*(undefined source memory|new dims are undefined)"),
    Known(
        "a dim of 0", r"^refusal \w*ConvolutionBackpropData-1 .*=\[[\d, ]*\b0\b[\d, ]*\]\).*has_runtime_dims_or_strides"
    ),
    Known(
        "einsum_identity",
        r"\[EinsumDecomposition\].*Check 'target->get_output_size\(\) == replacement->get_output_size\(\)'",
    ),
    Known("string_tensor_pack_order", r"Check 'are_indices_ascending' failed"),
    Known("prelu_dynamic", r"^refusal PReLU-1 .*, [pc]:\w+\[\d+\].* dynamic .*Eltwise shape infer"),
    Known("pdpd_no_axis", r"^refusal (?!.*broadcast_axis=\d).*auto_broadcast=pdpd.*Argument shapes are inconsistent"),
    Known("pdpd_trailing", r"^refusal .*auto_broadcast=pdpd.*Argument shapes are inconsistent"),
    Known("rnn_cell_bias", r"^refusal (RNN|GRU|LSTM)Cell-\d .*index '[45]' out of range"),
    Known("rnn_sequence_activations", r"^refusal (RNN|GRU|LSTM)Sequence-\d .*_M_range_check"),
    Known("cum_sum_no_axis", r"^refusal CumSum-3 .*index '1' out of range"),
    Known("col2im_attributes", r"^refusal Col2Im-15 .*index '[12]' out of range"),
    Known("broadcast_mode", r"^(refusal|values) Broadcast-1 (?!.*mode=).* -> "),
    Known("squeeze_unknown", r"^refusal Squeeze-\d+ .*ParameterMismatch"),
    # crashes, and unrelated memory as values
    Known("broadcast_empty", r"^crash Broadcast-\d .* empty"),
    Known("avg_pool_dilations", r"^(crash|values) AvgPool-16 (?!.*dilations=\d)"),
    Known("col2im_defaults", r"^(crash|values) Col2Im-15 (?!.*strides=.*dilations=.*pads_begin=.*pads_end=)"),
    Known("gather_batch_dims", r"^(crash|values) Gather-\d .*batch_dims=[^0]"),
    Known("gather_negative", r"^values Gather-[17] \([^{]*, [pc]:i\d+\[[\d,]*\](=\[[^]]*-\d|, [pc]:)"),
    Known("gather_tree_zero", r"^values GatherTree-1 .*\]=\[[^]]*\b0\b"),
    Known("gather_no_rows", r"^(crash|values|refusal) Gather-\d \([pc]:\w+\[[\d,]*\b0\b"),
    Known("gather_empty", r"^crash Gather-\d .* empty"),
    Known("gather_axis", r"^(crash|values) Gather-\d \([^{]*, p:[iu]\d+\[1?\](=\[-?\d+\])?\) \{"),
    Known("gather_beyond", r"^(values|crash) Gather-\d \([pc]:([iu](32|64)\[\d+\]|string\[)"),
    Known(
        "gather_unary", r"^values Gather-\d [^>]*> 1 (ConvertLike-1 [^>]*> 1 )?\w+-\d+ \((Gather-\d|ConvertLike-1)\) \{"
    ),
    Known(
        "numbers written into a tensor of another type (slice_scatter_types)",
        r"^values SliceScatter-15 \([pc]:(boolean|[iu]\d+)\[[\d,]*\](=\[[^]]*\])?, [pc]:b?f\d+\[",
    ),
    Known("slice_scatter_parameters", r"^(crash|values) SliceScatter-15 \([pc]:[^{]*, [pc]:[^{]*, p:[iu]\d+\[\d+\]"),
    Known("slice_axes", r"^crash Slice-8 \(.*, p:\w+\[\d+\](=\[[^]]*\])?\) "),
    Known("segment_max_empty", r"^(crash|refusal|values) SegmentMax-16 .* empty"),
    Known(
        "generate_proposals_none",
        r"^(crash|values) ExperimentalDetectronGenerateProposalsSingleImage-6 .*(post|pre)_nms_count=0",
    ),
    Known("proposal_rows", r"^crash Proposal-\d .*post_nms_topn=(?!1\b)"),
    Known("top_k_rois_rest", r"^values ExperimentalDetectronTopKROIs-6 "),
    Known(
        "matrix_nms_zero",
        r"^(crash|values) (MatrixNms|MulticlassNms)-\d .*nms_top_k=0|^values (NonMaxSuppression|"
        r"NMSRotated)-\d+ .*(output 2 has|has -?\d{6,} )",
    ),
    Known("matrix_nms_zero", r"^values (NonMaxSuppression-\d|NMSRotated-13) \([^{]*, [pc]:[iu]\d+\[1?\]=\[0\]"),
    Known("matrix_nms_none", r"^(crash|values) MatrixNms-8 .*output 2 has"),
    Known(
        "an image without a whole pixel",
        r"^(crash|values) (Proposal-\d|GenerateProposals-9|"
        r"ExperimentalDetectronGenerateProposalsSingleImage-6) (?!.* empty)",
    ),
    Known("proposal_no_anchors", r"^(crash|values) Proposal-\d .* empty"),
    Known("ctc_loss_empty", r"^(crash|values) CTCLoss-4 .*i\d+\[\d+\]=\[[^]]*\b0\b[^]]*\](, c:i\d+\[\])?"),
    Known("prior_grid_rest", r"^values ExperimentalDetectronPriorGridGenerator-6 .*\b[hw]=[1-9].*output 0 has"),
    Known(
        "prior_box_count",
        r"^(crash|values) ([^|]* )?PriorBox-\d [^|]*"
        r"(fixed_(size|ratio)=\d|max_size=\d|min_size=[,}]|scale_all_sizes=false)",
    ),
    Known("prior_box_count", r"^refusal PriorBox-\d [^>]*max_size=\d.*Eltwise shape infer input shapes"),
    Known("a dim of 0", r"^crash ([^|]* )?PriorBox-\d "),
    Known("rdft_size", r"^(crash|values) I?RDFT-9 \([^=]*\[\d+\]=\[[^]]*\], [pc]:"),
    Known("irdft_one", r"^crash IRDFT-9 \([^=]*=\[[^]]*\]\) "),
    Known("rdft_empty", r"^values RDFT-9 .* empty .*output 0 is \["),
    Known("dft_empty", r"^(crash|values) \w*DFT-\d .*( empty|, [pc]:i\d+\[\d+\]=\[[^]]*\b0\b)"),
    Known("group_normalization_fused", r"^crash GroupNormalization-12 [^>]*> 1 (Subtract-1|Divide-1|state) \(GroupN"),
    Known(
        "identity_strings",
        r"^(crash|values) (Identity-16|Reverse-1|Slice-8|StridedSlice-1) \([pc]:string\[|"
        r"^crash (Variadic)?Split-1 \([pc]:string\[|^(crash|values) OneHot-\d+ \([^{]*[pc]:string\[",
    ),
    Known("interpolate_linear_onnx", r"^crash Interpolate-\d+ \([pc]:\w+\[(\d+,){5}\d+\].*mode=linear_onnx"),
    Known("reduce_scalar", r"^crash Reduce\w+-\d \([pc]:\w+\[\](=\[[^]]*\])?, .*keep_dims=true"),
    Known("rdft_axes", r"^crash I?RDFT-9 \([^ ]+, p:i\d+\["),
    Known("divide_by_zero", r"^crash (Mod|FloorMod)-1 \([pc]:[iu]\d+\[.*SIGFPE"),
    # values
    Known("tile_negative", r"^crash Tile-1 "),
    Known("interpolate_pads", r"^(values|refusal) Interpolate-1 .*pads_(begin|end)=[^,}]*[1-9].*"),
    Known("non_max_suppression_soft", r"^values NonMaxSuppression-5 \(([^ ]+ [^ ]+, |[^ ]+, ){5}[^ ]+\) "),
    Known("strided_slice_masks", rf"^values StridedSlice-1 ({_LONG_MASKS})"),
    Known("space_to_batch", r"^values SpaceToBatch-2 \([^{]*, [pc]:[iu]\d+\[\d+\](=\[[^]]*[1-9][^]]*\])?\) \{"),
    Known("roi_align_empty", r"^values ROIAlign-9 .*has nan"),
    Known(
        "select_pdpd", r"^refusal Select-1 .*auto_broadcast=pdpd.*SnippetsOpset::.*tensor shape is not broadcastable"
    ),
    Known("select_pdpd", r"^refusal Select-1 .*auto_broadcast=pdpd.*'Cond' tensor shape is not broadcastable"),
    Known(
        "pdpd_trailing", r"^refusal Select-1 (?=.*broadcast_axis=\d).*auto_broadcast=pdpd.*'Else' tensor shape is not"
    ),
    Known("pdpd_no_axis", r"^refusal Select-1 .*auto_broadcast=pdpd.*'Else' tensor shape is not broadcastable"),
    Known("soft_max_axis", r"^values SoftMax-1 \([^{]*\{\}"),
    Known("broadcast_bidirectional", r"^values Broadcast-3 .*mode=bidirectional"),
    Known("prior_box_clustered_width", r"^values PriorBoxClustered-1 (?!(?=.*\bwidth=\d).*\bheight=\d)"),
    Known("region_yolo_do_softmax", r"^(values|refusal) RegionYolo-1 (?![^}]*do_softmax=)"),
    Known("region_yolo_coords", r"^values RegionYolo-1 .*coords=0"),
    Known("region_yolo_channels", r"^values RegionYolo-1 "),
    Known("max_pool_dilations", r"^values MaxPool-(8|14) (?!.*dilations=)"),
    Known("max_pool_pads", r"^values MaxPool-\d+ .*(has -3\.4\d+e\+38|has -3\.3895\d+e\+38|has -65504).*not -inf"),
    Known("non_max_suppression_rows", r"^values NonMaxSuppression-[134] .*output 0 is \["),
    # the threshold is 0 by default, and so is the IoU of boxes that do not overlap
    Known(
        "non_max_suppression_iou",
        r"^values NonMaxSuppression-[59] \([^{]*, [pc]:[iu]\d+\[1?\](=\[\d+\])?\) \{.*output 0 is \[",
    ),
    Known("range_empty", r"^values Range-\d .*output 0 is \[\d+\], not \[0\]"),
    Known("divide_by_zero", r"^values (Divide|FloorMod|Mod)-1 \([pc]:[iu]\d+.*(-2147483648|-128|has 255|-32768)"),
    Known("erf_inv", r"^values ErfInv-17 "),
    Known("split_strings", r"^values ((Variadic)?Split|DepthToSpace|SpaceToDepth)-1 \([pc]:string\["),
    Known("fake_quantize_pdpd", r"^values FakeQuantize-1 .*auto_broadcast=pdpd"),
    Known("subtract_pdpd", r"^values (Subtract|Divide|Bitwise\w+)-\d+ (?=.*broadcast_axis=\d).*auto_broadcast=pdpd"),
    Known("pdpd_no_axis", r"^values \w+-\d+ (?!.*broadcast_axis=\d).*auto_broadcast=pdpd"),
    Known("mvn_axes", r"^values MVN-2 .*reduction_axes="),
    Known("pad_value", r"^values Pad-\d+ .*, p:\w+\[\](=\[[^]]*\])?\) "),
    Known("istft_odd", r"^values ISTFT-16 .*output 0 is \["),
    Known("scatter_nd_update_empty", r"^values ScatterNDUpdate-\d+ .* empty"),
    Known("grid_sample_i32", r"^values GridSample-9 \([pc]:(i|u|b)"),
    Known("rnn_sequence_beyond", r"^values (RNN|GRU|LSTM|AUGRU)Sequence-\d .*output [12] has 0\.0 "),
    Known("interpolate_u8", r"^values Interpolate-\d+ \([pc]:[iu]\d+"),
    Known("prior_grid_flatten", r"^(values|refusal) ExperimentalDetectronPriorGridGenerator-6 (?![^}]*flatten=)"),
    Known("binary_convolution_pad", r"^values BinaryConvolution-1 .*pad_value="),
    Known("lrn_bias", r"^values LRN-1 .*bias=\d*\.\d*[1-9]"),
    Known("log_i32", r"^values ShapeOf-\d "),
    Known("interpolate_pads", rf"^values Interpolate-(4|11) ({_FEW_PADS})"),
    Known("max_pool_ceil_torch", r"^values (Max|Avg)Pool-1[46] .*rounding_type=ceil_torch.*output 0 is \["),
    Known(
        "max_pool_same_ceil",
        r"^values (Max|Avg)Pool-\d+ (?=.*rounding_type=ceil[,}])(?=.*auto_pad=same_).*output 0 is \[",
    ),
    Known("lrn_axes", r"^values LRN-1 \([pc]:\w+\[\d+(,\d+)*\], [pc]:[iu]\d+\[[2-9]\]"),
    Known(
        "strided_slice_scalar",
        r"^(values|crash) StridedSlice-1 .*, p:[iu]\d+\[\d+\](=\[[^]]*\])?\) \{.*shrink_axis_mask=1",
    ),
    Known("segment_max_lowest", r"^values SegmentMax-16 \([pc]:f16\[.*has -inf .*not -65504\.0"),
    Known("max_pool_u8", r"^values MaxPool-(8|14) \([pc]:(u\d+|boolean)\[.*output 1 has"),
    Known("pad_crop", r"^(values|crash) Pad-12 \([^{]*=\[[^]]*-[2-9]"),
    Known("prelu_dynamic", r"^values PReLU-1 \([^{]*, [pc]:\w+\[\d+\].* dynamic .*output 0 is \["),
    Known("range_floats", r"^values Range-4 \([^{]*[pc]:b?f\d+\[\].*output_type=[iu]\d+"),
    Known("roi_align_rotated_bf16", r"^(values|crash) ROIAlignRotated-15 \([pc]:bf16\["),
    Known("unique_u8", r"^values Unique-10 \([pc]:([iu]8|boolean)\[[^{]*, .*output 1 has"),
    Known("unique_unsorted", r"^values Unique-10 .*sorted=false.* static "),
    # i64 as i32, and 8 bits that saturate
    Known(
        "add_i64",
        r"^values (NotEqual|Greater|GreaterEqual|Less|LessEqual|FloorMod|Mod)-1 \("
        r".*[iu]64\[[\d,]*\](,|\)|=\[[^]]*\d{10})",
    ),
    Known("add_i64", r"^values \w+-\d+ .*[pc]:[iu]64.*not -?(\d{11,}|92233720\d+)|^values SegmentMax-16 .*:i64"),
    Known(
        "add_u8",
        r"^values (Add|Subtract|Multiply|Divide|SquaredDifference|Negative|Power|Mod|FloorMod|Sqrt|Convert\w*|"
        r"ReduceSum|ReduceProd|MatMul|\w*Convolution\w*|Cosh?|Sinh?)-\d+ \([pc]:[iu](8|16)\[",
    ),
    # what the pages leave open
    Known(
        "integers in an operation of floats, which are cut off or rounded (elu_i32)",
        r"^values (GRN|MVN|LRN|NormalizeL2)-\d \([pc]:boolean\[|"
        r"^values (Sqrt|Sin|Log)-1 \([pc]:[iu]\d+\[[^>]*> 1 (Floor|Ceiling)-1 \((Sqrt|Sin|Log)-1\)",
    ),
    Known(
        "an index beyond the data, which Gather-1 and Gather-7 do not allow",
        r"^values (Reduce\w+|Squeeze)-\d+ [^>]*> 1 Gather-[17] \(\w+-\d+, c:[iu]\d+\[\d*\]=\[[^]]*[1-9]",
    ),
    Known(
        "a matrix without an inverse", r"^values Inverse-14 .*has (-?inf|nan) |^values Inverse-14 .*not (-?inf|nan) "
    ),
    Known("boxes whose corners are exchanged", r"^values MatrixNms-8 .*normalized=false.*output 0 has"),
    Known("rotated boxes of a negative width or height", r"^values NMSRotated-13 .*output 0 (is \[|has)"),
    Known("a sequence that is not sorted", r"^values SearchSorted-15 \([pc]:\w+\[(\d+,)*([2-9]|\d\d+)\]"),
    Known("NaN or an infinity, which kernels treat in different ways (relu_nan and others)", r"^values .* nonfinite"),
    Known(
        "NaN or an infinity as an integer (convert_f64_u8)",
        r"^values (Atanh|Acosh|NormalizeL2|MVN|Power|Log|Acos|Asin|Tan)-\d+ \([pc]:[iu]\d+\[|"
        r"^values Convert\w*-\d+ .*(-2147483648|2147483520|-9223372036854775808|2147483647|has 0 .*not 255)",
    ),
    Known(
        "integers in an operation of floats, which are cut off or rounded (elu_i32)",
        r"^values (MVN|LogSoftmax|SoftMax|LRN|GRN|NormalizeL2|Sinh|Cosh|"
        r"Tan|Exp|Gelu|Elu|Selu|Swish|Mish|Atanh|Interpolate|ReduceMean|ReduceL2|\w*Pool|"
        r"GroupNormalization|\w*ROIPooling|Erf|H?Sigmoid|Clamp)-\d+ \([pc]:[iu]\d+\[",
    ),
    Known(
        "equal elements, of which any may come first",
        r"^values TopK-(3|11) .*stable=false.*output 1|^values TopK-[13] .*output 1",
    ),
    Known("an inferred shape that assumes a dim of 1", r"^values .*Squeeze-\d+ .*does not fit the inferred"),
    Known("a product that rounding puts between two numbers of f8", r"^values FakeConvert-13 "),
    Known("a label that is the blank, or no label", r"^values CTCLoss-4 "),
    Known("f16 and bf16 that are computed as f32", r"^values .*(f16|bf16).*Convert(PromoteTypes|Like)?-\d+ "),
    Known(
        "an output that a later call does not change",
        r"^(values|crash) .*(Unique-10|StringTensorUnpack-15|ConvertPromoteTypes-14) .*dynamic \| (call [2-9]|it was)|"
        r"^values ISTFT-16 .*dynamic \| call [2-9]: output 0 has .*not 0\.0 ",
    ),
    Known(
        "no classes, so that the output is unrelated memory",
        r"^values ExperimentalDetectronDetectionOutput-6 .*num_classes=0|^values DetectionOutput-\d .* empty|"
        r"^values CTCGreedyDecoder-1 .* empty",
    ),
    Known("buckets that are not sorted", r"^values Bucketize-3 "),
    Known("more than 32 axes", r"bitset::test"),
    Known("a signal without elements", r"^crash ISTFT-16 .*=\[0\]\)"),
    Known("no regions", r"^crash RegionYolo-1 .*num=0"),
    Known("interpolate_antialias", r"^values Interpolate-\d+ .*antialias=true"),
    Known("a dim of 0", r"^(crash|refusal|values) \w+-\d+ .* empty"),
)
"""All explanations, in the order in which they are tried."""

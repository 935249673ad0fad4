"""The default of every attribute of every operation, as the operation's specification page gives it.

OpenVINO writes every attribute into a file, so that no comparison with OpenVINO shows a wrong default. The values of
this table come from the pages (``operation-specs/<spec of the operation>.rst``), not from irrun.
"""

from typing import Any

from grouped import each
from irrun.opdef import Attribute, all_ops, is_custom
from irrun.types import ElementType

REQUIRED = "required"

# The pages name auto_broadcast only; the axis of "pdpd" and its default are in operation-sets/broadcast-rules.
BROADCAST = {"auto_broadcast": "numpy", "auto_broadcast.auto_broadcast_axis": -1}
REDUCTION = {"keep_dims": False}
CONVOLUTION = {
    "strides": REQUIRED, "pads_begin": REQUIRED, "pads_end": REQUIRED, "dilations": REQUIRED, "auto_pad": "explicit",
}  # fmt: skip
POOLING = {
    "strides": REQUIRED, "pads_begin": REQUIRED, "pads_end": REQUIRED, "kernel": REQUIRED,
    "rounding_type": "floor", "auto_pad": "explicit",
}  # fmt: skip
# The pages give *infinity* as the default of clip and say that it means no clipping. OpenVINO's source has 0 with the
# same meaning and writes it to files; irrun reads both. "None" as the default of a list is an empty list.
RECURRENT = {"hidden_size": REQUIRED, "activations_alpha": (), "activations_beta": (), "clip": 0.0}
# The pages of the sequences require direction, but leave it out of their own examples, whose shapes have one direction.
# OpenVINO's source and the page of AUGRUSequence have "forward", which irrun follows.
SEQUENCE = {**RECURRENT, "direction": "forward"}
NMS = {"box_encoding": "corner", "sort_result_descending": True}
BOX_SELECTION = {  # OpenVINO writes sort_result_type, the pages call it sort_result
    "sort_result_type": "none", "sort_result_across_batch": False, "output_type": "i64", "score_threshold": 0.0,
    "nms_top_k": -1, "keep_top_k": -1, "background_class": -1, "normalized": True,
}  # fmt: skip
DETECTION_OUTPUT = {
    "background_label_id": 0, "top_k": -1, "variance_encoded_in_target": False, "keep_top_k": REQUIRED,
    "code_type": "caffe.PriorBoxParameter.CORNER", "share_location": True, "nms_threshold": REQUIRED,
    "confidence_threshold": 0.0, "clip_after_nms": False, "clip_before_nms": False, "decrease_label_id": False,
    "normalized": False, "input_height": 1, "input_width": 1, "objectness_score": 0.0,
}  # fmt: skip
PRIOR_BOX = {
    "min_size": (), "max_size": (), "aspect_ratio": (), "flip": False, "clip": False, "step": 0.0, "offset": REQUIRED,
    "variance": (), "scale_all_sizes": True, "fixed_ratio": (), "fixed_size": (), "density": (),
}  # fmt: skip
PROPOSAL = {
    "base_size": REQUIRED, "pre_nms_topn": REQUIRED, "post_nms_topn": REQUIRED, "nms_thresh": REQUIRED,
    "feat_stride": REQUIRED, "min_size": REQUIRED, "ratio": REQUIRED, "scale": REQUIRED, "clip_before_nms": True,
    "clip_after_nms": False, "normalize": False, "box_size_scale": 1.0, "box_coordinate_scale": 1.0, "framework": "",
}  # fmt: skip
INTERPOLATE = {
    "mode": REQUIRED, "shape_calculation_mode": REQUIRED, "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_floor", "antialias": False, "pads_begin": (0,), "pads_end": (0,), "cube_coeff": -0.75,
}  # fmt: skip
TOP_K = {"axis": REQUIRED, "mode": REQUIRED, "sort": REQUIRED, "index_element_type": "i32"}
ROI_ALIGN = {"pooled_h": REQUIRED, "pooled_w": REQUIRED, "sampling_ratio": REQUIRED, "spatial_scale": REQUIRED}

# fmt: off
SPECIFIED: dict[str, dict[str, Any]] = {
    "AUGRUCell-5": {**RECURRENT, "activations": "sigmoid,tanh", "linear_before_reset": False},
    "AUGRUSequence-5": {**SEQUENCE, "activations": "sigmoid,tanh", "linear_before_reset": False},
    "AdaptiveMaxPool-8": {"index_element_type": "i64"},
    "Add-1": BROADCAST,
    "Assign-3": {"variable_id": REQUIRED},
    "Assign-6": {"variable_id": REQUIRED},
    "Atan2-17": BROADCAST,
    "AvgPool-1": {**POOLING, "exclude-pad": REQUIRED},
    "AvgPool-14": {**POOLING, "exclude-pad": REQUIRED},
    "AvgPool-16": {**POOLING, "exclude-pad": REQUIRED, "dilations": ()},  # "[1, 1, ...]": as many as there are axes
    "BatchNormInference-1": {"epsilon": REQUIRED},
    "BatchNormInference-5": {"epsilon": REQUIRED},
    "BinaryConvolution-1": {**CONVOLUTION, "mode": REQUIRED, "pad_value": REQUIRED},
    "Bincount-17": {"minlength": 0},
    "BitwiseAnd-13": BROADCAST,
    "BitwiseLeftShift-15": BROADCAST,
    "BitwiseOr-13": BROADCAST,
    "BitwiseRightShift-15": BROADCAST,
    "BitwiseXor-13": BROADCAST,
    "Broadcast-1": {"mode": "numpy"},
    "Broadcast-3": {"mode": "numpy"},
    "Bucketize-3": {"output_type": "i64", "with_right_bound": True},
    "CTCGreedyDecoder-1": {"ctc_merge_repeated": True},
    "CTCGreedyDecoderSeqLen-6": {"merge_repeated": True, "classes_index_type": "i32", "sequence_length_type": "i32"},
    "CTCLoss-4": {"preprocess_collapse_repeated": False, "ctc_merge_repeated": True, "unique": False},
    "Clamp-1": {"min": REQUIRED, "max": REQUIRED},
    "Col2Im-15": {
        # The page requires the two sizes as attributes. OpenVINO has them as inputs, so that neither form is required.
        "output_size": None, "kernel_size": None,
        "strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0),
    },
    "Concat-1": {"axis": REQUIRED},
    # The page requires element_type. Files of IR v10 may lack it: there the precision of the output port gives the
    # type, and irrun reports a Const without element_type in later versions only.
    "Const-1": {"element_type": None, "shape": REQUIRED, "offset": REQUIRED, "size": REQUIRED},
    "Convert-1": {"destination_type": REQUIRED},
    "ConvertPromoteTypes-14": {
        "promote_unsafe": False, "pytorch_scalar_promotion": False, "u64_integer_promotion_target": "f32",
    },
    "Convolution-1": CONVOLUTION,
    # The page says "None" of auto_pad, and that the operation has the attributes of Convolution; OpenVINO's source has
    # "explicit" for both. output_padding is "all zeros".
    "ConvolutionBackpropData-1": {**CONVOLUTION, "output_padding": ()},
    "CumSum-3": {"exclusive": False, "reverse": False},
    "DeformableConvolution-1": {**CONVOLUTION, "group": 1, "deformable_group": 1},
    "DeformableConvolution-8": {**CONVOLUTION, "group": 1, "deformable_group": 1, "bilinear_interpolation_pad": False},
    "DeformablePSROIPooling-1": {
        "output_dim": REQUIRED, "spatial_scale": REQUIRED, "group_size": 1, "mode": "bilinear_deformable",
        "spatial_bins_x": 1, "spatial_bins_y": 1, "trans_std": 1.0, "part_size": 1,
    },
    "DepthToSpace-1": {"block_size": 1, "mode": REQUIRED},
    "DetectionOutput-1": {**DETECTION_OUTPUT, "num_classes": REQUIRED},
    "DetectionOutput-8": DETECTION_OUTPUT,
    "Divide-1": {**BROADCAST, "m_pythondiv": True},
    "Einsum-7": {"equation": REQUIRED},
    "Elu-1": {"alpha": REQUIRED},
    "EmbeddingBagOffsets-15": {"reduction": "sum"},
    "EmbeddingBagPacked-15": {"reduction": "sum"},
    "Equal-1": BROADCAST,
    "ExperimentalDetectronDetectionOutput-6": {
        "score_threshold": REQUIRED, "nms_threshold": REQUIRED, "num_classes": REQUIRED, "post_nms_count": REQUIRED,
        "max_detections_per_image": REQUIRED, "class_agnostic_box_regression": False, "max_delta_log_wh": REQUIRED,
        "deltas_weights": REQUIRED,
    },
    "ExperimentalDetectronGenerateProposalsSingleImage-6": {
        "min_size": REQUIRED, "nms_threshold": REQUIRED, "pre_nms_count": REQUIRED, "post_nms_count": REQUIRED,
    },
    "ExperimentalDetectronPriorGridGenerator-6": {"flatten": True, "h": 0, "w": 0, "stride_x": 0.0, "stride_y": 0.0},
    "ExperimentalDetectronROIFeatureExtractor-6": {
        "output_size": REQUIRED, "sampling_ratio": REQUIRED, "pyramid_scales": REQUIRED, "aligned": False,
    },
    "ExperimentalDetectronTopKROIs-6": {"max_rois": 0},
    "ExtractImagePatches-3": {"sizes": REQUIRED, "strides": REQUIRED, "rates": REQUIRED, "auto_pad": REQUIRED},
    "Eye-9": {"output_type": REQUIRED},
    "FakeConvert-13": {"destination_type": REQUIRED},
    "FakeQuantize-1": {**BROADCAST, "levels": REQUIRED},
    "FloorMod-1": BROADCAST,
    "GRN-1": {"bias": REQUIRED},
    "GRUCell-3": {**RECURRENT, "activations": "sigmoid,tanh", "linear_before_reset": False},
    "GRUSequence-5": {**SEQUENCE, "activations": "sigmoid,tanh", "linear_before_reset": False},
    "Gather-7": {"batch_dims": 0},
    "Gather-8": {"batch_dims": 0},
    "GatherElements-6": {"axis": REQUIRED},
    "GatherND-5": {"batch_dims": 0},
    "GatherND-8": {"batch_dims": 0},
    "Gelu-7": {"approximation_mode": "erf"},
    "GenerateProposals-9": {
        "min_size": REQUIRED, "nms_threshold": REQUIRED, "pre_nms_count": REQUIRED, "post_nms_count": REQUIRED,
        "normalized": True, "nms_eta": 1.0, "roi_num_type": "i64",
    },
    "Greater-1": BROADCAST,
    "GreaterEqual-1": BROADCAST,
    "GridSample-9": {"align_corners": False, "mode": "bilinear", "padding_mode": "zeros"},
    "GroupConvolution-1": CONVOLUTION,
    "GroupConvolutionBackpropData-1": {**CONVOLUTION, "output_padding": ()},  # "all zeros"
    "GroupNormalization-12": {"num_groups": REQUIRED, "epsilon": REQUIRED},
    "ISTFT-16": {"center": REQUIRED, "normalized": REQUIRED},
    "Interpolate-1": {
        "axes": REQUIRED, "mode": REQUIRED, "align_corners": True, "antialias": False, "pads_begin": (0,), "pads_end": (0,),
    },
    "Interpolate-4": INTERPOLATE,
    "Interpolate-11": INTERPOLATE,
    "Inverse-14": {"adjoint": False},
    "IsInf-10": {"detect_negative": True, "detect_positive": True},
    "LRN-1": {"alpha": REQUIRED, "beta": REQUIRED, "bias": REQUIRED, "size": REQUIRED},
    # The page has neither of the last two, and one order of gates: fico. OpenVINO's source has "ifco" and false; both
    # OpenVINO and irrun ignore the two attributes.
    "LSTMCell-1": {**RECURRENT, "activations": "sigmoid,tanh,tanh", "weights_format": "fico", "input_forget": False},
    "LSTMCell-4": {**RECURRENT, "activations": "sigmoid,tanh,tanh"},
    "LSTMSequence-5": {**SEQUENCE, "activations": "sigmoid,tanh,tanh"},
    "Less-1": BROADCAST,
    "LessEqual-1": BROADCAST,
    "LogSoftmax-5": {"axis": 1},
    "LogicalAnd-1": BROADCAST,
    "LogicalOr-1": BROADCAST,
    "LogicalXor-1": BROADCAST,
    "LogicalXor-2": BROADCAST,
    # The page requires both across_channels and reduction_axes, and forbids to define both. irrun takes either; with
    # neither, it computes the mean of each channel, as across_channels "false" does.
    "MVN-2": {"across_channels": False, "reduction_axes": (), "normalize_variance": REQUIRED, "eps": REQUIRED},
    "MVN-6": {"normalize_variance": REQUIRED, "eps": REQUIRED, "eps_mode": REQUIRED},
    "MatMul-1": {"transpose_a": False, "transpose_b": False},
    "MatrixNms-8": {**BOX_SELECTION, "decay_function": "linear", "gaussian_sigma": 2.0, "post_threshold": 0.0},
    "MaxPool-1": POOLING,
    "MaxPool-8": {**POOLING, "dilations": (), "index_element_type": "i64", "axis": 0},  # dilations: "[1, 1, ...]"
    "MaxPool-14": {**POOLING, "dilations": (), "index_element_type": "i64", "axis": 0},
    "Maximum-1": BROADCAST,
    "Minimum-1": BROADCAST,
    "Mod-1": BROADCAST,
    "MulticlassNms-8": {**BOX_SELECTION, "iou_threshold": 0.0, "nms_eta": 1.0},
    "MulticlassNms-9": {**BOX_SELECTION, "iou_threshold": 0.0, "nms_eta": 1.0},
    "Multinomial-13": {
        "convert_type": REQUIRED, "with_replacement": REQUIRED, "log_probs": REQUIRED, "global_seed": 0, "op_seed": 0,
    },
    "Multiply-1": BROADCAST,
    "NMSRotated-13": {"sort_result_descending": True, "output_type": "i64", "clockwise": True},
    "NonMaxSuppression-1": NMS,
    "NonMaxSuppression-3": {**NMS, "output_type": "i64"},
    "NonMaxSuppression-4": {**NMS, "output_type": "i64"},
    "NonMaxSuppression-5": {**NMS, "output_type": "i64"},
    "NonMaxSuppression-9": {**NMS, "output_type": "i64"},
    "NonZero-3": {"output_type": "i64"},
    "NormalizeL2-1": {"eps": REQUIRED, "eps_mode": REQUIRED},
    "NotEqual-1": BROADCAST,
    "OneHot-1": {"axis": REQUIRED},
    "OneHot-16": {"axis": REQUIRED, "negative_indices_mode": "ignore-negative"},
    "PSROIPooling-1": {
        "output_dim": REQUIRED, "group_size": 1, "spatial_scale": REQUIRED, "mode": "average",
        "spatial_bins_x": 1, "spatial_bins_y": 1,
    },
    "Pad-1": {"pad_mode": REQUIRED},
    "Pad-12": {"pad_mode": REQUIRED},
    "Parameter-1": {"element_type": REQUIRED, "shape": REQUIRED},
    "Power-1": BROADCAST,
    "PriorBox-1": PRIOR_BOX,
    "PriorBox-8": {**PRIOR_BOX, "min_max_aspect_ratios_order": True},
    "PriorBoxClustered-1": {
        "width": (1.0,), "height": (1.0,), "clip": True, "step": 0.0, "step_w": 0.0, "step_h": 0.0,
        "offset": REQUIRED, "variance": (),
    },
    "Proposal-1": PROPOSAL,
    "Proposal-4": PROPOSAL,
    # The page has epsilon and compute_type. OpenVINO's source (ov_ops/rms.hpp) has the last two instead of compute_type.
    "RMS-14": {"epsilon": REQUIRED, "output_type": "dynamic", "elementwise_affine": True},
    "RNNCell-1": {**RECURRENT, "activations": "tanh"},
    "RNNSequence-5": {**SEQUENCE, "activations": "tanh"},
    "ROIAlign-3": {**ROI_ALIGN, "mode": REQUIRED},
    "ROIAlign-9": {**ROI_ALIGN, "mode": REQUIRED, "aligned_mode": "asymmetric"},
    "ROIAlignRotated-15": {**ROI_ALIGN, "clockwise_mode": False},
    "ROIPooling-2": {
        "pooled_h": REQUIRED, "pooled_w": REQUIRED, "spatial_scale": REQUIRED, "method": "max",
        "output_size": (), "output_roi": (),  # not on the page: OpenVINO writes the number of bins twice more
    },
    # The page gives both seeds the default 0 and requires them, too. OpenVINO's source has the default. The page has
    # TENSORFLOW in capitals; the choice is the same in any case of letters.
    "RandomUniform-8": {"output_type": REQUIRED, "global_seed": 0, "op_seed": 0, "alignment": "tensorflow"},
    "Range-4": {"output_type": REQUIRED},
    "ReadValue-3": {"variable_id": REQUIRED},
    "ReadValue-6": {"variable_id": REQUIRED, "variable_type": None, "variable_shape": None},
    "ReduceL1-4": REDUCTION,
    "ReduceL2-4": REDUCTION,
    "ReduceLogicalAnd-1": REDUCTION,
    "ReduceLogicalOr-1": REDUCTION,
    "ReduceMax-1": REDUCTION,
    "ReduceMean-1": REDUCTION,
    "ReduceMin-1": REDUCTION,
    "ReduceProd-1": REDUCTION,
    "ReduceSum-1": REDUCTION,
    "RegionYolo-1": {
        "anchors": (),  # "None"
        "axis": REQUIRED, "coords": REQUIRED, "classes": REQUIRED, "end_axis": REQUIRED, "num": REQUIRED,
        "do_softmax": True, "mask": (),
    },
    "ReorgYolo-2": {"stride": REQUIRED},
    "Reshape-1": {"special_zero": REQUIRED},
    "Reverse-1": {"mode": REQUIRED},
    "ReverseSequence-1": {"batch_axis": 0, "seq_axis": 1},
    "Round-5": {"mode": "half_to_even"},
    "STFT-15": {"transpose_frames": REQUIRED},
    "ScaledDotProductAttention-13": {"causal": REQUIRED},
    "ScatterElementsUpdate-12": {"reduction": "none", "use_init_val": True},
    "ScatterNDUpdate-15": {"reduction": "none"},
    # The page calls the first one right. The second is not on the page: of OpenVINO's search_sorted.hpp.
    "SearchSorted-15": {"right_mode": False, "output_type": "i64"},
    "SegmentMax-16": {"fill_mode": REQUIRED},  # the page also calls it empty_segment_value
    "Select-1": BROADCAST,
    "ShapeOf-3": {"output_type": "i64"},
    "ShuffleChannels-1": {"axis": 1, "group": 1},
    "SoftMax-1": {"axis": 1},
    "SoftMax-8": {"axis": 1},
    "SpaceToDepth-1": {"block_size": 1, "mode": REQUIRED},
    "Split-1": {"num_splits": REQUIRED},
    "SquaredDifference-1": BROADCAST,
    "Squeeze-15": {"allow_axis_skip": False},  # optional, without a default on the page: of OpenVINO's source
    # The page requires begin_mask and end_mask, with the default None, and leaves them out of its first examples. The
    # others are [0]. The page pads every mask with zeros, so that an empty one is the same.
    "StridedSlice-1": {
        "begin_mask": (), "end_mask": (), "new_axis_mask": (), "shrink_axis_mask": (), "ellipsis_mask": (),
    },
    "Subtract-1": BROADCAST,
    "TopK-1": TOP_K,
    "TopK-3": TOP_K,
    "TopK-11": {**TOP_K, "stable": False},
    "Unique-10": {"sorted": True, "index_element_type": "i64", "count_element_type": "i64"},
    "Xor-1": BROADCAST,
}
# fmt: on

OPS = {f"{cls.type}-{cls.since}": cls.attributes for cls in all_ops() if not is_custom(cls)}


def default(attribute: Attribute) -> object:
    """What an attribute declares, in the form of the table."""
    if attribute.required:
        return REQUIRED
    return attribute.default.name if isinstance(attribute.default, ElementType) else attribute.default


def test_every_attribute_has_a_row() -> None:
    declared = {(op, attribute.name) for op, attributes in OPS.items() for attribute in attributes.values()}
    assert declared == {(op, name) for op, row in SPECIFIED.items() for name in row}


@each("op, name", [(op, name) for op, row in SPECIFIED.items() for name in row])
def test_the_default_is_that_of_the_page(op: str, name: str) -> None:
    (attribute,) = [a for a in OPS[op].values() if a.name == name]
    specified = SPECIFIED[op][name]
    assert default(attribute) == specified
    assert isinstance(default(attribute), bool) == isinstance(specified, bool)  # 0 equals False

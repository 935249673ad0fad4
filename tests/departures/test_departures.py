"""docs/departures.md, row by row: what irrun gives, and what OpenVINO gives instead.

Where OpenVINO gives what irrun gives, or the right answer, it has been repaired: the row has served its time, here
and on the page.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from oracle import Oracle, OracleError
from places import ROOT

PAGE = ROOT / "docs" / "departures.md"
MODELS = PAGE.with_suffix("")

INF, NAN = float("inf"), float("nan")
MAX = float(np.finfo(np.float32).max)


class Outcome(Enum):
    SAME = "what irrun gives, though the specification says otherwise"
    REFUSES = "an error"
    CRASHES = "the process dies"
    UNDEFINED = "reads or writes where it should not: not asked"


SAME, REFUSES, CRASHES, UNDEFINED = Outcome


@dataclass(frozen=True)
class ByProcessor:
    """Outputs of which OpenVINO gives one or another, depending on the processor, and why."""

    outputs: tuple[Any, ...]
    why: str


@dataclass(frozen=True)
class Row:
    """The model ``docs/departures/<model>.xml``, its feeds, the outputs of irrun and those of OpenVINO.

    ``how`` asks OpenVINO's CPU plugin or the ``core`` reference kernels. ``before`` holds the feeds of an inference
    before this one, and its output, on which both agree.
    """

    model: str
    feeds: list[Any]
    irrun: Any
    openvino: Any = SAME
    how: str = "cpu"
    before: tuple[list[Any], Any] | None = None

    @property
    def path(self) -> Path:
        return MODELS / f"{self.model}.xml"

    def inferences(self) -> list[list[np.ndarray]]:
        """The feeds of each inference."""
        return [*([] if self.before is None else [self.arrays(self.before[0])]), self.arrays(self.feeds)]

    def arrays(self, feeds: list[Any]) -> list[np.ndarray]:
        """Feeds of the types and, where they have no elements, the shapes that the model declares."""
        ports = [layer.outputs[0] for layer in irrun.read_model(self.path).parameters]
        types = [None if port.type is None or port.type.kind == "string" else port.type.dtype for port in ports]
        arrays = [np.asarray(feed, type) for feed, type in zip(feeds, types, strict=True)]
        return [a if a.size or port.shape is None else a.reshape(port.shape.static) for a, port in zip(arrays, ports)]


# fmt: off
ROWS = [
    Row("add_i64", [[2147483648], [1]], [2147483649], [-2147483647]),
    Row("abs_i64", [[-1099511627776]], [1099511627776], [0]),
    Row("cum_sum_i64", [[8589934592, 1]], [8589934592, 8589934593], [0, 1]),
    Row("cum_sum_no_axis", [[1, 2]], [1, 3], REFUSES),
    Row("cum_sum_axis", [[1, 2]], [1, 3], REFUSES),
    Row("matmul_i32", [[[16777217]], [[1]]], [[16777217]], [[16777216]]),
    Row("matmul_empty", [[], []], np.ones((0, 1, 1)), REFUSES),
    Row("matmul_compressed", [[[[[1]]]]], [[[[2]]]], REFUSES),
    Row("attention_ranks", [[[[[1]]]]], [[[[1]]]], REFUSES),
    Row("grouped_mat_mul_i4", [[[1]]], [[2]], REFUSES),
    Row("matmul_bias", [[[1]]], [[[5]]], [[5]]),
    Row("power_i64", [[3], [39]], [4052555153018976267], [-2147483648]),
    Row("mod_i32", [[1234567890], [13]], [10], [0]),
    Row("divide_i32", [[777777777], [11]], [70707070], [70707072]),
    Row("divide_u8", [[8], 3], [2], [3]),
    Row("divide_floors", [[-7], [2]], [-4], [-3]),
    Row("divide_by_zero", [[7], [0]], [0], [-2147483648]),
    Row("divide_lowest", [[-9223372036854775808], [-1]], [-9223372036854775808], CRASHES, how="core"),
    Row("add_u8", [[200], [100]], [44], [255]),
    Row("add_i8", [[100], [100]], [-56], [127]),
    Row("multiply_u8", [[50], [6]], [44], [255]),
    Row("reduce_sum_u8", [[200, 100]], 44, 255),
    Row("matmul_u8", [[[20, 20]], [[10], [10]]], [[144]], [[255]]),
    Row("convolution_u8", [[[[20, 20]]], [[[10, 10]]]], [[[144]]], [[[255]]]),
    Row("cosh_i8", [[6]], [-54], [127]),
    Row("squared_difference_u8", [[1], [3]], [4], [0]),
    Row("negative_u8", [[1]], [255], REFUSES),
    Row("log_i32", [[2]], [1], [0], how="core"),
    Row("relu_nan", [[NAN]], [NAN], [0]),
    Row("hsigmoid_nan", [[NAN]], [NAN], [0]),
    Row("hard_sigmoid_nan", [[NAN]], [NAN], [1]),
    Row("clamp_nan", [[NAN]], [NAN], [-1]),
    Row("rnn_cell_clip_nan", [[[NAN]], [[0]], [[0]], [[0]], [0]], [[NAN]], [[-0.99505478]]),
    Row("i420_nan", [np.full((1, 3, 2, 1), NAN)], np.full((1, 2, 2, 3), NAN, np.float32), np.zeros((1, 2, 2, 3), np.float32)),
    Row("exp_nan", [[NAN]], [NAN], [INF]),
    Row("erf_inv", [[0.999]], [2.3267562], [2.3218474]),
    Row("minimum_nan", [[NAN, 1], [1, NAN]], [NAN, NAN], [1, NAN]),
    Row("maximum_nan", [[NAN, 1], [1, NAN]], [NAN, NAN], [1, NAN]),
    Row("reduce_min_nan", [[2, NAN, 5]], NAN, 5),
    Row("scatter_elements_update_nan", [[1], [0], [NAN]], [NAN], [1]),
    Row("max_pool_nan", [[[[NAN, NAN]]]], [[[NAN]]], [[[-MAX]]]),
    Row("convert_nan_boolean", [[NAN]], [True], [False]),
    Row("convert_boolean", [[0, 2]], [True], [False]),
    Row("top_k_nan", [[1, NAN, 2]], [2, 1, NAN], [1, NAN, 2]),
    Row("top_k_zero", [[5]], [], REFUSES),
    Row("top_k_stable", [[5]], [5], REFUSES),
    Row("unique_nan", [[1, NAN, 0]], [2, 0, 1], [2, 0, 0]),
    Row("unique_unsorted", [[1, 2]], [1, 2], [1, 0]),
    Row("unique_u8", [[[1, 0], [0, 1]]], [1, 0], [1, 1]),
    Row("segment_max_nan", [[NAN, 1], [0, 0]], [NAN], [1]),
    Row("segment_max_inf", [[-INF], [0]], [-INF], [-MAX]),
    Row("segment_max_empty", [[]], [], UNDEFINED),
    Row("bucketize_nan", [[NAN], [1, 2]], [2], [0]),
    Row("fake_convert_nan", [[NAN], [1], [0]], [NAN], [-448]),
    Row("divide_f64", [[1], [0]], [INF], [MAX]),
    Row("abs_f64", [[1e+300]], [1e+300], [MAX]),
    Row("convert_f32_i64", [[999999986991104]], [999999986991104], [-2147483648]),
    Row("convert_f64_u8", [[300]], [44], [255]),
    Row("convert_i64_bf16", [[70000]], [70144], [69632]),
    Row("convert_f32_bf16", [[0.1]], [0.10009765625], ByProcessor(([0.099609375], [0.10009765625]), "cut, but rounded where the processor has AVX-512")),
    Row("convert_i32_f16", [[65536]], [INF], [65504], how="core"),
    Row("convert_nf4", [[1, 0]], [1, 0], UNDEFINED),
    Row("convert_f32_u4", [[-1]], [15], [0]),
    Row("broadcast_u2", [[1]], [1, 1], [1, 0]),
    Row("segment_max_i4", [[1]], [-8, 1], [0, 1]),
    Row("segment_max_f8", [[1]], [1], UNDEFINED),
    Row("soft_max_nan", [[NAN, 0]], [NAN, NAN], [NAN, 0]),
    Row("normalize_l2_i8", [[3, 4]], [1, 1], [0, 0]),
    Row("read_value_input", [[7]], [5], [7], before=([[5]], [0])),
    Row("identity_strings", [["a"]], ["a"], UNDEFINED),
    Row("convert_promote_types", [7, [1]], 7),
    Row("v10_f16_input", [[2]], [1.4140625], REFUSES),
    Row("v10_f64_output", [[4]], np.array([2], np.float64), np.array([2], np.float32)),
    Row("v10_i64_output", [[4]], np.array([2], np.int64), np.array([2], np.int32)),
    Row("logical_not_i32", [[0, 7]], [1, 0]),
    Row("elu_i32", [[-9, 9]], [-2, 9]),
    Row("prelu_dynamic", [[[[-1, -1]]], [2, 3]], [[[-2, -3]]], [[[-2, -2], [-3, -3]]]),
    Row("pdpd_no_axis", [[[0, 0], [0, 0]], [1, 2]], [[1, 2], [1, 2]], [[1, 1], [2, 2]]),
    Row("pdpd_axis", [[[0, 0], [0, 0]], [1, 2]], [[1, 2], [1, 2]], [[1, 1], [2, 2]]),
    Row("pdpd_trailing", [[[0, 0, 0], [0, 0, 0]], [[1], [2], [3]]], [[1, 2, 3], [1, 2, 3]], REFUSES),
    Row("subtract_pdpd", [[[5, 5], [5, 5]], [1, 2]], [[4, 4], [3, 3]], [[4, 3], [4, 3]]),
    Row("greater_pdpd", [[[5, 5], [5, 5]], [1, 9]], [[True, True], [False, False]], UNDEFINED, how="core"),
    Row("compare_scalar", [5], True, REFUSES),
    Row("select_pdpd", [[True], [1], [0]], [1], REFUSES),
    Row("range_step", [0, 10, 2.5], [0, 2, 4, 6, 8], [0, 2, 5, 8]),
    Row("range_empty", [3, 0, 1], [], [3, 4, 5]),
    Row("range_floats", [0.9, 2.7], [0, 1], [1, 2]),
    Row("random_uniform_f64", [[2], 0, 1], [0.2511744980841868, 0.44316677020093853], [0.406396746635437, 0.8575996160507202]),
    Row("random_uniform_i64", [[2], 0, 1000000], [53839, 414966], [945999, 392915]),
    Row("mvn_axes", [[[1, 2], [3, 8]]], [[-2.5, -1.5], [-0.5, 4.5]], [[-0.5, 0.5], [-2.5, 2.5]]),
    Row("mvn_scalar", [2], 0, [0]),
    Row("group_normalization_fused", [[[5]], [2]], [[-2]], CRASHES),
    Row("group_normalization_2d", [[[5]]], [[0]], REFUSES),
    Row("lrn_bias", [[[[[1]]]]], [[[[0.4]]]], [[[[0.5]]]]),
    Row("lrn_even", [[[[[1]], [[1]], [[1]]]]], [[[[0.5]], [[0.5]], [[0.5]]]]),
    Row("lrn_1d", [[1]], [0.5], REFUSES),
    Row("lrn_axes", [[[[1], [1]]]], [[[1 / 3], [1 / 3]]], [[[0.25], [0.25]]]),
    Row("normalize_l2_no_axes", [[-1], []], [1], [-0.5]),
    Row("soft_max_axis", [[[0, 0]]], [[0.5, 0.5]], [[1, 1]]),
    Row("fake_convert_range", [[1000], [1], [0]], [448]),
    Row("fake_quantize_i32", [[0, 1, 2, 3], 0, 3, 0, 30], [0, 0, 0, 30]),
    Row("fake_quantize_pdpd", [[[1, 1], [1, 1]], [1, 2]], [[1, 1], [2, 2]], [[1, 2], [1, 2]]),
    Row("fake_quantize_ranks", [[0.75], [[0]]], [4], UNDEFINED),
    Row("broadcast_empty", [], [[], []], CRASHES),
    Row("broadcast_none", [[1, 2]], [[1, 1, 1], [2, 2, 2]]),
    Row("broadcast_i8", [[5]], [5, 5], REFUSES),
    Row("broadcast_mode", [[1, 2]], [[1, 2], [1, 2]], [[1, 1], [2, 2]]),
    Row("broadcast_bidirectional", [[5]], [], [5]),
    Row("broadcast_add", [[1], 1], [], [2]),
    Row("tile_negative", [[1, 2]], []),
    Row("reshape_zero", [[]], np.ones((0, 4))),
    Row("reshape_beyond", [[[1, 2, 3], [4, 5, 6]], [0, 4]], REFUSES, UNDEFINED),
    Row("unsqueeze_twice", [[1, 2]], [[1, 2]]),
    Row("transpose_empty", [[[1, 2, 3], [4, 5, 6]], []], [[1, 4], [2, 5], [3, 6]], UNDEFINED),
    Row("transpose_u8", [[1, 2]], [1, 2], REFUSES),
    Row("squeeze_unknown", [[[1, 2]], [0]], [1, 2], UNDEFINED),
    Row("variadic_split_beyond", [[1, 2, 3], [4, -1]], REFUSES, UNDEFINED),
    Row("split_strings", [["a", "b"]], ["b"], ["a"]),
    Row("string_tensor_pack_order", [[97, 98]], ["ab", "a"], REFUSES),
    Row("gather_negative", [[1, 2, 3], [-1]], [3], [0]),
    Row("gather_empty", [[1, 2, 3], []], [], CRASHES),
    Row("gather_batch_dims", [[[5]], [0]], [5], UNDEFINED),
    Row("gather_axis", [[1, 2], 0], [2], UNDEFINED),
    Row("gather_no_rows", [[]], np.ones((0, 1)), CRASHES),
    Row("gather_beyond", [[5, 6], [2]], [0], UNDEFINED),
    Row("gather_unary", [[1, 2], [2]], [1], [0]),
    Row("gather_one", [[5]], [0], [5]),
    Row("gather_nd_empty", [[1, 2], [[]]], [[1, 2]], UNDEFINED),
    Row("gather_nd_batch", [[[1, 2]], [[0], [1]]], [1, 2], REFUSES),
    Row("gather_elements_negative", [[1, 2, 3], [-1]], [3]),
    Row("gather_tree_zero", [[[[5]]], [[[0]]], [0], 7], [[[7]]], UNDEFINED),
    Row("strided_slice_empty", [[1, 2, 3]], []),
    Row("strided_slice_backwards", [[1, 2, 3]], [3, 2, 1]),
    Row("strided_slice_shrink", [[1, 2]], 1, 2, how="core"),
    Row("slice_axes", [[1, 2], [0]], [1], CRASHES),
    Row("strided_slice_masks", [[[5]]], [5], REFUSES),
    Row("strided_slice_scalar", [[1, 2], [1]], 2, UNDEFINED),
    Row("pad_value", [[1, 2], 9], [9, 1, 2], [0, 1, 2]),
    Row("pad_negative", [[1, 2, 3]], REFUSES, [2, 3]),
    Row("pad_crop", [[5]], [0, 0], UNDEFINED),
    Row("scatter_elements_update_negative", [[1, 2, 3], [-1], [9]], [1, 2, 9]),
    Row("scatter_elements_update_mean", [[-2], [0], [-1]], [-2], [-1]),
    Row("scatter_update_scalar", [[0, 1], 1, 9], [0, 9], REFUSES),
    Row("scatter_nd_update_boolean", [[False], [[0], [0]], [True, True]], [False], [True]),
    Row("scatter_nd_update_empty", [[1, 2], [[]], [[8, 9]]], [8, 9], [1, 2]),
    Row("scatter_nd_update_single", [[0], [5]], [5], REFUSES),
    Row("slice_scatter_types", [[1, 2, 3], [9]], [1, 9, 3]),
    Row("slice_scatter_parameters", [[0, 1], [9], [1]], [9, 1], UNDEFINED),
    Row("reverse_sequence_zero", [[[1, 2, 3]], [0]], [[1, 2, 3]]),
    Row("reverse_sequence_beyond", [[[1, 2, 3]], [4]], REFUSES, UNDEFINED),
    Row("roll_one_shift", [[[1, 2], [3, 4]], 1, [0, 1]], [[4, 3], [2, 1]], REFUSES),
    Row("space_to_batch", [[[[[1]], [[2]]]]], [[[[1]], [[2]]], [[[0]], [[0]]]], [[[[1]], [[2]]], [[[2]], [[0]]]]),
    Row("batch_to_space_output", [[[5, 6]]], [[6]], [[5]]),
    Row("space_to_depth_block_size", [[[[5]]]], [[[5]]], REFUSES),
    Row("extract_image_patches_none", [[[[[1]]]]], np.ones((1, 3, 0, 1)), UNDEFINED),
    Row("col2im_defaults", [[[1], [2], [3], [4]]], [[[1, 2], [3, 4]]], CRASHES),
    Row("col2im_attributes", [[[[5]]]], [[[[5]]]], REFUSES),
    Row("embedding_bag_empty", [[[1], [2]], [1], [0, 1]], [[2], [0]], UNDEFINED),
    Row("embedding_bag_1d", [[1, 2], [1], [0]], [2], UNDEFINED),
    Row("embedding_segments_default", [[[5]]], [[0], [5]], UNDEFINED),
    Row("einsum_implicit", [[[[1, 2], [3, 4]]]], [5], REFUSES),
    Row("einsum_spaces", [[[1, 2]]], [[1], [2]], REFUSES),
    Row("einsum_identity", [[1, 2]], [1], REFUSES),
    Row("inverse_adjoint", [[[2, 1], [0, 4]]], [[0.5, 0], [-0.125, 0.25]]),
    Row("rdft_size", [[1, 2]], [[3, 0], [1, -2], [-1, 0]], UNDEFINED),
    Row("rdft_minus_one", [[1, 2]], [[3, 0], [-1, 0]], REFUSES),
    Row("rdft_axes", [[1, 2], [0]], [[3, 0], [-1, 0]], UNDEFINED),
    Row("irdft_one", [[[1, 2]]], [], UNDEFINED),
    Row("rdft_empty", [[]], [[0, 0]], np.ones((0, 2))),
    Row("dft_empty", [[[]]], [[0, 0]], UNDEFINED),
    Row("istft_odd", [[[[3, 0], [3, 0]], [[0, 0], [0, 0]]], [1, 1, 1], 3, 1], [1], [1, 1]),
    Row("non_zero_scalar", [0], np.ones((1, 0)), np.ones((0, 0)), how="core"),
    Row("reduce_l1_no_axes", [[-1], []], [-1], [1], how="core"),
    Row("reduce_max_empty", [[]], -INF, -MAX),
    Row("reduce_mean_empty", [[]], 0),
    Row("reduce_scalar", [5], 5, REFUSES),
    Row("reduce_no_axes", [[[[5]]]], [[[5]]], REFUSES),
    Row("binary_convolution_bits", [[[[[1]], [[0]], [[0]], [[0]], [[0]], [[0]], [[0]], [[0]]]]], [[[[8]]]]),
    Row("binary_convolution_pad", [[[[[1]]]]], [[[[-2, -1]]]], [[[[1, -1]]]]),
    Row("binary_convolution_pads", [[[[[1]]]]], [[[[-1]]]], REFUSES),
    Row("binary_convolution_channels", [[[[[1, 1]]]]], [[[[-1, -1]]]], UNDEFINED),
    Row("binary_convolution_i32", [[[[[1]]]]], [[[[-1]]]], UNDEFINED),
    Row("convolution_backprop_data_pads", [[[[1, 1]]], [[[1, 2, 4]]]], [[[2, 5, 2]]]),
    Row("convolution_backprop_data_valid", [[[[1, 1]]], [[[1, 2, 4]]]], [[[1, 2, 5]]]),
    Row("convolution_backprop_data_1x1", [[[[5, 6]]]], [[[6, 0]]], [[[5, 6]]]),
    Row("deconvolution_shape", [[[[1], [2], [3]]], [[[[2]], [[3]], [[4]]]]], [[[20]]], REFUSES),
    Row("deconvolution_dynamic", [[[[1, 1]]]], [[[2]]], REFUSES),
    Row("convolution_auto_pad", [[[[1, 2]]], [[[2]]]], [[[2, 4]]], REFUSES),
    Row("deformable_convolution_group", [[[[[2]]]], [[[[0]], [[0]]]], [[[[3]]]]], [[[[6]]]], REFUSES),
    Row("max_pool_pads", [[[[5]]]], [[[-INF, 5]]], [[[-MAX, 5]]]),
    Row("max_pool_u8", [[[[0, 0]]]], [[[0, 1]]], [[[0, 0]]]),
    Row("max_pool_auto_pad", [[[[1, 2]]]], [[[1, 2]]], REFUSES),
    Row("max_pool_same_ceil", [[[[5, 6]]]], [[[5]]], [[[5, -MAX]]]),
    Row("max_pool_dilations", [[[[[0, 1]]]]], [[[[1]]]], UNDEFINED),
    Row("max_pool_empty", [[[[]]]], np.ones((0, 1, 1)), REFUSES),
    Row("max_pool_ceil_torch", [[[[5]]]], [[[5]]], [[[5, -MAX]]]),
    Row("avg_pool_pads", [[[[1, 2, 3]]]], [[[1, 2.5, 0]]], [[[1, 2.5, NAN]]]),
    Row("avg_pool_exclude_pad", [[[[5]]]], [[[5, 0]]], REFUSES),
    Row("avg_pool_dilations", [[[[5]]]], [[[5]]], UNDEFINED),
    Row("interpolate_same_size", [[[[[1, 2, 3, 4]]]]], [[[[1, 2, 3, 4]]]]),
    Row("interpolate_axes", [[[[[1]]]]], [[[[1, 1]]]], [[[[1], [1]]]]),
    Row("interpolate_pads", [[[[5]]]], [[[0]]], [[[0], [5]]]),
    Row("interpolate_antialias", [[[[[0, 0, 0, 7]]]]], [[[[0, 3]]]], [[[[0, 3.5]]]]),
    Row("interpolate_cube_coeff", [[[[[0, 0, 0, 8]]]]], [[[[0, 3.6610169]]]], [[[[-0.29752066, 3.6694214]]]]),
    Row("interpolate_u8", [[0, 0, 255, 255]], [0, 0, 0, 58, 197, 255, 255, 255], [0, 248, 230, 57, 197, 25, 7, 255], how="core"),
    Row("interpolate_channels", [[[[[5]]]]], np.full((2, 2, 2, 2), 5, np.float32), REFUSES),
    Row("interpolate_pillow_axes", [[[[[5]]]]], [[[[5]], [[5]]]], REFUSES, how="core"),
    Row("interpolate_linear_onnx", [[[[0, 3]]]], [[[0, 1.5, 3]]], REFUSES, how="core"),
    Row("grid_sample_i32", [[[[[0, 3]]]], [[[[0, 0]]]]], [[[[2]]]], [[[[1]]]]),
    Row("non_max_suppression_iou", [[[[0, 0, 1, 2], [0, 0, 1, 1]]], [[[0.75, 0.5]]]], [[0, 0, 0], [0, 0, 1]], [[0, 0, 0]]),
    Row("non_max_suppression_score", [[[[0, 0, 1, 1]]], [[[0.5]]]], np.ones((0, 3))),
    Row("non_max_suppression_soft", [[[[0, 0, 1, 2], [0, 0, 1, 1]]], [[[0.75, 0.5]]]], [[0, 0, 0]], [[0, 0, 0], [0, 0, 1]]),
    Row("non_max_suppression_rows", [[[[0, 0, 1, 2], [0, 0, 1, 1]]], [[[0.75, 0.5]]]], [[0, 0, 0], [-1, -1, -1]], [[0, 0, 0]]),
    Row("non_max_suppression_dynamic", [[[[0, 0, 1, 1]]], [[[0.5]]]], [[0, 0, 0]], REFUSES),
    Row("matrix_nms_classid", [[[[0, 0, 1, 1]]], [[[0.5], [0.75]]]], [[1, 0.75, 0, 0, 1, 1], [0, 0.5, 0, 0, 1, 1]]),
    Row("matrix_nms_none", [[[[0, 0, 1, 1]]], [[[0.5]]]], np.ones((0, 6)), UNDEFINED),
    Row("matrix_nms_zero", [[[[0, 0, 1, 1]]], [[[0.5]]]], [0], UNDEFINED),
    Row("multiclass_nms_iou", [[[[0, 0, 1, 2], [0, 0, 1, 1]]], [[[0.75, 0.5]]]], [[0, 0.75, 0, 0, 1, 2]]),
    Row("detection_output_labels", [[[0, 0, 0, 0]], [[0.5, 0.25]], [[[0, 0, 1, 1], [0.1, 0.1, 0.1, 0.1]]]], [[[[-1, 0, 0, 0, 0, 0, 0]]]], REFUSES),
    Row("detection_output_top_k", [[[0, 0, 0, 0]], [[0.25, 0.5]]], [[[[-1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]]]], UNDEFINED),
    Row("detection_output_dynamic", [[[0, 0, 0, 0]], [[0.5]], [[[0, 0, 1, 1], [1, 1, 1, 1]]]], [[[[0, 0, 0.5, 0, 0, 1, 1]]]], REFUSES),
    Row("roi_pooling_end", [[[[[7]]]], [[-1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]], [[[[0]]], [[[0]]]]),
    Row("psroi_pooling_defaults", [[[[[5]]]], [[0, 0, 0, 0, 0]]], [[[[5]]]], REFUSES),
    Row("roi_align_max", [[[[[-1, -1], [-1, -1]]]], [[0, 0, 1, 1]], [0]], [[[[0]]]]),
    Row("roi_align_empty", [[[[[1, 1], [1, 1]]]], [[1, 1, 1, 1]], [0]], [[[[0]]]], [[[[NAN]]]]),
    Row("roi_align_rotated_bf16", [[[[[0, 1, 2, 3]]]], [[2.5, 0.5, 2, 1, 0]]], [[[[2]]]], UNDEFINED),
    Row("roi_feature_extractor_order", [[[0, 0, 150, 150], [0, 0, 50, 50]], [[[[1, 1], [1, 1]]]], [[[[2, 2], [2, 2]]]]], [[[[2]]], [[[1]]]]),
    Row("prior_box_odd", [[1, 1], [100, 100]], [[0.46, 0.46, 0.55, 0.55], [0.1, 0.1, 0.1, 0.1]], [[0.455, 0.455, 0.545, 0.545], [0.1, 0.1, 0.1, 0.1]]),
    Row("prior_box_order", [[1, 1], [100, 100]], [[0.42, 0.42, 0.58, 0.58], [0.1, 0.1, 0.1, 0.1]], REFUSES),
    Row("prior_box_count", [[1, 1], [100, 100]], [[0.46, 0.46, 0.54, 0.54, 0.42, 0.42, 0.58, 0.58], [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]], UNDEFINED),
    Row("proposal_rows", [[[[[0.25]], [[0.75]]]], np.zeros((1, 4, 1, 1)), [8, 8, 1]], [[0, 0, 0, 4, 4], [-1, 0, 0, 0, 0]], UNDEFINED),
    Row("prior_box_clustered_width", [[1, 1], [10, 10]], [[0.45, 0.45, 0.55, 0.55], [0.1, 0.1, 0.1, 0.1]], np.ones((2, 0))),
    Row("prior_grid_flatten", [[[0, 1, 2, 3]], [[[[0]]]], [[[[0]]]]], [[0.5, 1.5, 2.5, 3.5]], [[[[0.5, 1.5, 2.5, 3.5]]]]),
    Row("prior_grid_rest", [[[0, 1, 2, 3]], [[[[0, 1]]]], [[[[0]]]]], [[0.5, 1.5, 2.5, 3.5], [0, 0, 0, 0]], UNDEFINED),
    Row("top_k_rois_rest", [[[1, 2, 3, 4]], [1]], [[1, 2, 3, 4], [0, 0, 0, 0]], UNDEFINED),
    Row("generate_proposals_nms_eta", [[[10, 10, 1]], [[[[0, 0, 4, 4]]]], [[[[0]], [[0]], [[0]], [[0]]]], [[[[1]]]]], [[0, 0, 4, 4]], REFUSES),
    Row("generate_proposals_none", [[10, 10, 1], [[0, 0, 4, 4]], [[[0]], [[0]], [[0]], [[0]]], [[[1]]]], np.ones((0, 4)), CRASHES),
    Row("proposal_no_anchors", [np.ones((1, 0, 1, 1)), np.ones((1, 0, 1, 1)), [9, 9, 9]], [[-1, 0, 0, 0, 0]], UNDEFINED),
    Row("region_yolo_coords", [[[[[0]], [[0]]]]], [[[[0.6224593]], [[1]]]]),
    Row("region_yolo_channels", [np.array([1, 1, 1, 1, 2, 2, 2, 2]).reshape(2, 4, 1, 1)], [[0.73105858, 0.73105858, 0.73105858, 1], [0.88079703, 0.88079703, 0.88079703, 2]], [[0.73105858, 0.73105858, 0.73105858, 0.73105858], [0.88079703, 0.88079703, 2, 2]]),
    Row("region_yolo_do_softmax", [np.zeros((1, 6, 1, 1))], [[0.5, 0.5, 0, 0, 0.5, 1]], np.ones((1, 0, 1, 1))),
    Row("ctc_loss_empty", [[[[0, 0]]], [0]], [0.6931472], UNDEFINED),
    Row("ctc_loss_merge", [[[[0, 0], [0, 0]]]], [0.28768207], [0.6931472]),
    Row("rnn_sequence_zero", [[[[1]]], [[[10]]], [0]], [[[0]]]),
    Row("rnn_cell_bias", [[[0]], [[0]], [[0]], [[0]]], [[0]], REFUSES),
    Row("lstm_cell_dynamic", [[[0]], [[0]], [[0]], np.zeros((4, 1)), np.zeros((4, 1))], [[0]], REFUSES),
    Row("rnn_sequence_activations", [[[[0]]], [[[0]]], [1], [[[0]]], [[[0]]], [[0]]], [[[0]]], REFUSES),
    Row("rnn_sequence_beyond", [[[[1]]], [[[0]]]], [[[1]]], [[[0]]]),
    Row("random_uniform_torch", [[3], 0, 1], [0.5974867343902588, 0.5445820093154907, 0.04074066877365112]),
    Row("search_sorted_right", [[1, 3, 5], [3]], [2]),
    Row("segment_max_fill", [[7]], [-2147483648, 7]),
    Row("segment_max_lowest", [[7]], [-65504, 7], [-INF, 7]),
    Row("sparse_fill_empty_rows_boolean", [[5]], [True, False], REFUSES),
    Row("one_hot_ignore", [[-1]], [[0, 0]]),
    Row("one_hot_i8", [[1]], [[0], [1]], REFUSES),
    Row("matrix_nms_names", [[[[0, 0, 1, 1]]], [[[0.5]]]], [[0, 0.5, 0, 0, 1, 1]]),
]
# fmt: on


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.model)
def test_irrun(row: Row) -> None:
    if row.irrun is REFUSES:
        with pytest.raises(irrun.IrrunError):
            irrun.run(row.path, row.arrays(row.feeds))
        return
    assert not irrun.check(row.path).diagnostics
    executable = irrun.compile(row.path, strict=True)
    expected = [*([] if row.before is None else [row.before[1]]), row.irrun]
    for arrays, want in zip(row.inferences(), expected, strict=True):
        _assert_is(executable(arrays)[0], want)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these are the numbers of the x86-64 kernels")
@pytest.mark.parametrize("row", [row for row in ROWS if row.openvino is not UNDEFINED], ids=lambda row: row.model)
def test_openvino(row: Row, oracle: Oracle) -> None:
    if isinstance(row.openvino, Outcome) and row.openvino is not SAME:
        with pytest.raises(OracleError) as caught:
            oracle(row.path, row.arrays(row.feeds), row.how)
        assert (str(caught.value) == "OpenVINO crashed") is (row.openvino is CRASHES), caught.value
        return
    (got,) = oracle(
        row.path, *([row.arrays(row.feeds), row.how] if row.before is None else [row.inferences(), "state"])
    )
    if isinstance(row.openvino, ByProcessor):
        assert any(np.array_equal(got, expected) for expected in row.openvino.outputs), got
        return
    _assert_is(got, row.irrun if row.openvino is SAME else row.openvino)


def test_the_page_has_these_rows() -> None:
    linked = re.findall(r"\(departures/(\w+)\.xml\)", PAGE.read_text(encoding="utf-8"))
    assert linked == [row.model for row in ROWS]
    assert sorted(linked) == sorted(path.stem for path in MODELS.glob("*.xml"))


def _assert_is(got: np.ndarray, expected: Any) -> None:
    want = np.asarray(expected)
    assert got.shape == want.shape
    if isinstance(expected, np.ndarray) and want.size:  # the type is what this row is about
        assert got.dtype == want.dtype
    if got.dtype.kind in "iuOUT":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-6)

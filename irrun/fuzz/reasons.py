"""The disagreements with OpenVINO that no departure explains, and that are no fault of irrun: the reasons.

A reason stands for many cases: what a plugin does not have, and what the pages of the specification leave open.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CHECKS", "FIRST", "LAST", "Reason"]


class Reason(NamedTuple):
    """A reason in words, a pattern of the descriptions that it explains, and the condition on the pattern's groups."""

    name: str
    pattern: str
    where: str = ""


FIRST: Final = (
    Reason("an operation that the engine does not have", r"doesn't contain the operation"),
    Reason(
        "an element type",
        r"op: opset12::GroupNormalization \S+ \(\S+ [^:]+:(bf16|[iu]\d+)\[|"
        r"pooling\.cpp:.*supported only with one output.*op: opset\d+::MaxPool \S+ \(\S+ [^:]+:bf16\[",
    ),
    Reason("an operation that the engine does not have", r"not implemented for op: opset17::GroupedMatMul"),
    Reason(
        "a shape that must be static",
        r"Doesn't support (op with dynamic shapes|dynamic shapes for 'weights'|dynamic weights shape)",
    ),
    Reason(
        "an input that must be constant",
        r"evaluate\(\) is not implemented for op|[Tt]ensor is not constant|must be connected to a Constant|"
        r"support .* with dynamic rank|"
        r"Cannot get dims for non static shape|Destination memory is undefined|to_shape was called on a dynamic shape",
    ),
    Reason("a Parameter of unknown rank", r"doesn't support Parameter operation with dynamic"),
    Reason(
        "an element type",
        r"unsupported (src|dst)_prc|Element not supported|supportedPrecisions|m_output_type ==|"
        r"can't convert from|[Uu]nsupported .*(type|precision)|not support(ed)? .*(type|precision)|supported .*'data|"
        r"doesn't support .*precision|does not support \w+ for|lement type (must be|for the)|"
        r"expected to be a same floating point type|"
        r"GatherTree node .* incorrect input/output data precision|evaluation failed for core operation: MaxPool|"
        r"Element type of data input must be numeric|[iu]\d+_u1_\S+ could not create reorder primitive",
    ),
    Reason(
        "a dim of 0",
        r"out-of-range dimension=0|Dimension value: \[ ?0, ?0\] must be a multiple|"
        r"H and W should be divisible by stride|"
        r"Window input dimension must be in range|^refusal \w+-\d+ .* empty \| .*(reorder primitive|"
        r"primitive descriptor|incompatible with input shape)",
    ),
)
"""What the plugin says that it does not have. These are tried before the departures."""

LAST: Final = (
    Reason("an image without a whole pixel", r"image info input must have|sampling_ratio_x >= 0"),
    Reason(
        "a dim of 0", r"^refusal \w*ConvolutionBackpropData-1 .*=\[[\d, ]*\b0\b[\d, ]*\]\).*has_runtime_dims_or_strides"
    ),
    Reason(
        "an image without a whole pixel",
        r"^crash (Proposal-\d|GenerateProposals-9) (?!.* empty)",
    ),
    Reason(
        "an image without a whole pixel",
        r"^(?:crash|values) ExperimentalDetectronGenerateProposalsSingleImage-6 \([pc]:\w+\[3\](?:=\[([^]]*)\])?, "
        r"(?!.* empty)",
        "below_one_pixel",
    ),
    Reason("a dim of 0", r"^crash ([^|]* )?PriorBox-\d "),
    Reason(
        "integers in an operation of floats, which are cut off or rounded (log_i32)",
        r"^values (GRN|MVN|LRN|NormalizeL2)-\d \([pc]:boolean\[|"
        r"^values (Sqrt|Sin|Log)-1 \([pc]:[iu]\d+\[[^>]*> 1 (Floor|Ceiling)-1 \((Sqrt|Sin|Log)-1\)",
    ),
    Reason(
        "an index beyond the data, which Gather-1 and Gather-7 do not allow",
        r"^values (Reduce\w+|Squeeze)-\d+ [^>]*> 1 Gather-[17] \(\w+-\d+, c:[iu]\d+\[\d*\]=\[[^]]*[1-9]",
    ),
    Reason(
        "a matrix without an inverse", r"^values Inverse-14 .*has (-?inf|nan) |^values Inverse-14 .*not (-?inf|nan) "
    ),
    Reason("boxes whose corners are exchanged", r"^values MatrixNms-8 .*normalized=false.*output 0 has"),
    Reason(
        "NaN or an infinity, which kernels treat in different ways (relu_nan and others)",
        r"^values .* nonfinite|^crash (ExperimentalDetectronROIFeatureExtractor|DeformableConvolution)-\d .* nonfinite",
    ),
    Reason(
        "NaN or an infinity as an integer (convert_f64_u8)",
        r"^values (Acosh|NormalizeL2|MVN|Power|Log|Acos|Asin|Tan)-\d+ \([pc]:[iu]\d+\[|"
        r"^values Convert\w*-\d+ .*((has|not) (-2147483648|2147483520|-9223372036854775808|2147483647) |"
        r"has 0 .*not 255)",
    ),
    Reason(
        "integers in an operation of floats, which are cut off or rounded (log_i32)",
        r"^values (MVN|SoftMax|LRN|GRN|NormalizeL2|Sinh|Cosh|"
        r"Tan|Interpolate|ReduceMean|ReduceL2|\w*Pool|"
        r"GroupNormalization|\w*ROIPooling|Erf|Clamp)-\d+ \([pc]:[iu]\d+\[|"
        r"^values AdaptiveAvgPool-8 \([pc]:boolean\[",
    ),
    Reason("a product that rounding puts between two numbers of f8", r"^values FakeConvert-13 "),
    Reason(
        "a label that is the blank",
        r"^values CTCLoss-4 \([pc]:\w+\[\d+,\d+,(?P<classes>\d+)\], [pc]:i\d+\[\d+\](=\[[^]]*\])?, "
        r"[pc]:i\d+\[[\d,]+\](=\[(?P<labels>[^]]*)\])?, [pc]:i\d+\[\d+\](=\[[^]]*\])?"
        r"(, [pc]:i\d+\[\]=\[(?P<blank>\d+)\])?\)",
        "blank_label",
    ),
    Reason(
        "f16 and bf16 that are computed as f32",
        r"^values .*f16\[.* -> \d (Convert(PromoteTypes|Like)?|Unique)-\d+ \([A-Z]",
    ),
    Reason(
        "an output that a later call does not change",
        r"^crash .*(Unique-10|StringTensorUnpack-15|ConvertPromoteTypes-14) .*dynamic \| it was",
    ),
    Reason(
        "no classes, so that the output is unrelated memory",
        r"^values ExperimentalDetectronDetectionOutput-6 .*num_classes=0|"
        r"^values DetectionOutput-\d \(\S+ (as \w+, )?[pc]:\w+\[\d+,0\]|"
        r"^values CTCGreedyDecoder-1 \([pc]:\w+\[\d+,\d+,0\]",
    ),
    Reason("buckets that are not sorted", r"^values Bucketize-3 \(.*[pc]:\w+\[\d+\](?:=\[([^]]*)\])?\) ", "unsorted"),
    Reason(
        "segments that are not sorted",
        r"^values EmbeddingSegmentsSum-3 \(\S+ (?:as \w+, )?[pc]:i\d+\[\d+\](?:=\[[^]]*\])?, "
        r"[pc]:i\d+\[\d+\](?:=\[([^]]*)\])?",
        "unsorted",
    ),
    Reason("more than 32 axes", r"bitset::test"),
    Reason("a signal without elements", r"^crash ISTFT-16 .*=\[0\]\)"),
    Reason("no regions", r"^crash RegionYolo-1 .*num=0"),
    Reason("a dim of 0", r"^(crash|refusal|values) \w+-\d+ .* empty"),
)
"""What the pages leave open. These are tried after the departures."""

CHECKS: Final = (
    Reason("an inferred shape that assumes a dim of 1", r"^values .*Squeeze-\d+ .*does not fit the inferred"),
)
"""What explains a disagreement of irrun with its own check. No engine takes part in it, so that nothing else does."""

"""The disagreements with OpenVINO that no departure explains, and that are no fault of irrun: the reasons.

A reason stands for many cases: what a plugin does not have, and what the pages of the specification leave open.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["FIRST", "LAST", "Reason"]


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
        r"^crash ExperimentalDetectronGenerateProposalsSingleImage-6 \([pc]:\w+\[3\](?:=\[([^]]*)\])?, (?!.* empty)",
        "below_one_pixel",
    ),
    Reason("a dim of 0", r"^crash ([^|]* )?PriorBox-\d "),
    Reason(
        "a place that is not finite",
        r"^crash (ExperimentalDetectronROIFeatureExtractor|DeformableConvolution)-\d .* nonfinite",
    ),
    Reason("an inferred shape that assumes a dim of 1", r"^shape .*Squeeze-\d+ .* dynamic \| .*does not fit"),
    Reason(
        "an output that a later call does not change",
        r"^crash .*(Unique-10|StringTensorUnpack-15|ConvertPromoteTypes-14) .*dynamic \| it was",
    ),
    Reason("more than 32 axes", r"bitset::test"),
    Reason("a signal without elements", r"^crash ISTFT-16 .*=\[0\]\)"),
    Reason("no regions", r"^crash RegionYolo-1 .*num=0"),
)
"""What the pages leave open. These are tried after the departures."""

"""Col2Im-15."""

import itertools
from functools import partial

import numpy as np

from kit import *

SMALL = {"output_size": "3,3", "kernel_size": "2,2"}
# OpenVINO crashes where one of these is left to its default
ALL = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}


def summed(data: np.ndarray, size: tuple[int, int], kernel: tuple[int, int], **given: tuple[int, int]) -> np.ndarray:
    """Pixel by pixel, each block put where it lay."""
    attributes = {name: given.get(name, (pair[0], pair[1])) for name, pair in ALL.items()}
    stride, dilation, begin, end = attributes.values()
    counts = [
        (size[a] + begin[a] + end[a] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1 for a in (0, 1)
    ]  # fmt: skip
    batch, depth, _ = data.shape
    image = np.zeros((batch, depth // (kernel[0] * kernel[1]), *size), data.dtype)
    for n, channel in itertools.product(range(batch), range(image.shape[1])):
        for tap in itertools.product(range(kernel[0]), range(kernel[1])):
            for block in itertools.product(range(counts[0]), range(counts[1])):
                y, x = (block[a] * stride[a] + tap[a] * dilation[a] - begin[a] for a in (0, 1))
                if 0 <= y < size[0] and 0 <= x < size[1]:
                    row = (channel * kernel[0] + tap[0]) * kernel[1] + tap[1]
                    image[n, channel, y, x] += data[n, row, block[0] * counts[1] + block[1]]
    return image


_from_1 = partial(arange, start=1)

VALUES = [
    Values("overlap", "Col2Im-15", [arange(1, 4, 4), i64(3, 3), i64(2, 2)], [[[[0, 5, 5], [10, 30, 20], [10, 25, 15]]]]),
    Values("attributes", "Col2Im-15", [arange(1, 4, 4)], [[[[0, 5, 5], [10, 30, 20], [10, 25, 15]]]], SMALL),
    Values("no-batch", "Col2Im-15", [arange(4, 1), i64(2, 2), i64(2, 2)], [[[0, 1], [2, 3]]], {"stride": "2,2"}),
    Values("padded", "Col2Im-15", [arange(1, 1, 8), i64(1, 2), i64(1, 1)], [[[[5, 6]]]], {"pads_begin": "1,1", "pads_end": "0,1"}),
    # OpenVINO's reference tests
    Values("reference-1x1", "Col2Im-15", [_from_1(3, 4), i64(2, 2), i64(1, 1)], _from_1(3, 2, 2)),
    Values(
        "reference", "Col2Im-15", [_from_1(12, 9), i64(4, 4), i64(2, 2)],
        [
            [[1, 12, 14, 12], [23, 66, 70, 45], [29, 78, 82, 51], [25, 60, 62, 36]],
            [[37, 84, 86, 48], [95, 210, 214, 117], [101, 222, 226, 123], [61, 132, 134, 72]],
            [[73, 156, 158, 84], [167, 354, 358, 189], [173, 366, 370, 195], [97, 204, 206, 108]],
        ],
    ),
    Values(
        "reference-strides-pads", "Col2Im-15", [_from_1(12, 25), i64(4, 4), i64(2, 2)],
        [
            [[82, 58, 83, 59], [37, 13, 38, 14], [87, 63, 88, 64], [42, 18, 43, 19]],
            [[182, 158, 183, 159], [137, 113, 138, 114], [187, 163, 188, 164], [142, 118, 143, 119]],
            [[282, 258, 283, 259], [237, 213, 238, 214], [287, 263, 288, 264], [242, 218, 243, 219]],
        ],
        {"strides": "2,2", "pads_begin": "3,3", "pads_end": "3,3"},
    ),
    Values(
        "reference-dilations-pads", "Col2Im-15", [_from_1(1, 12, 25), i64(5, 5), i64(2, 2)],
        [[
            [[7, 39, 41, 43, 34], [64, 178, 182, 186, 118], [74, 198, 202, 206, 128], [84, 218, 222, 226, 138], [67, 159, 161, 163, 94]],
            [[107, 239, 241, 243, 134], [264, 578, 582, 586, 318], [274, 598, 602, 606, 328], [284, 618, 622, 626, 338], [167, 359, 361, 363, 194]],
            [[207, 439, 441, 443, 234], [464, 978, 982, 986, 518], [474, 998, 1002, 1006, 528], [484, 1018, 1022, 1026, 538], [267, 559, 561, 563, 294]],
        ]],
        {"dilations": "2,2", "pads_begin": "1,1", "pads_end": "1,1"},
    ),
    Values(
        "reference-strides-dilations-pads", "Col2Im-15", [_from_1(1, 4, 3), i64(4, 4), i64(2, 2)],
        [[[[9, 0, 15, 0], [0, 0, 0, 0], [11, 0, 17, 0], [0, 0, 0, 0]]]],
        {"strides": "2,2", "dilations": "2,2", "pads_begin": "2,0", "pads_end": "2,0"},
    ),
    # both pixels of a block lie at one place
    Values("no-distance", "Col2Im-15", [arange(1, 2, 3, start=1), i64(1, 3), i64(1, 2)], [[[[5, 7, 9]]]], {"dilations": "1,0"}),
    Values("i8-wraps", "Col2Im-15", [np.full((1, 2, 2), 100, np.int8), i64(3, 1), i64(2, 1)], [[[[100], [-56], [100]]]]),
    Values("f16-rounded-once", "Col2Im-15", [np.array([[[2048], [1], [1]]], np.float16), i64(3, 1), i64(3, 1)], np.array([[[[2048], [1], [1]]]], np.float16)),
    Values("no-blocks", "Col2Im-15", [np.empty((1, 4, 0)), i64(1, 3), i64(2, 2)], [[[[0, 0, 0]]]]),
    Values("no-channels", "Col2Im-15", [np.empty((1, 0, 4)), i64(3, 3), i64(2, 2)], np.empty((1, 0, 3, 3))),
] + [
    Values(f"by-pixel-{n}", "Col2Im-15", [random(*shape), i64(*size), i64(*kernel)], summed(random(*shape), size, kernel, **given), given, rtol=1e-5)
    for n, (shape, size, kernel, given) in enumerate([
        ((2, 12, 12), (4, 5), (2, 2), {}),
        ((1, 18, 2), (6, 7), (3, 3), {"strides": (2, 3), "dilations": (2, 1)}),
        ((2, 6, 20), (5, 4), (1, 3), {"pads_begin": (0, 1), "pads_end": (0, 1)}),
        ((1, 4, 12), (4, 8), (2, 2), {"strides": (1, 2), "dilations": (3, 3), "pads_begin": (2, 1), "pads_end": (0, 2)}),
    ])
]  # fmt: skip

SHAPES = [
    # the specification has output_size and kernel_size as attributes
    Shapes("spec-1", "Col2Im-15", ["i32[3,12,225]"], "i32[3,3,16,16]", {"output_size": "16,16", "kernel_size": "2,2"}),
    Shapes(
        "spec-2",
        "Col2Im-15",
        ["i32[1,27,49]"],
        "i32[1,3,16,16]",
        {
            "output_size": "16,16",
            "kernel_size": "3,3",
            "dilation": "2,2",
            "pads_begin": "1,1",
            "pads_end": "1,1",
            "stride": "2,2",
        },
    ),
    Shapes(
        "spec-3",
        "Col2Im-15",
        ["i32[12,12,1296]"],
        "i32[12,3,32,32]",
        {"output_size": "32,32", "kernel_size": "2,2", "dilations": "2,2", "pads_begin": "3,3", "pads_end": "3,3"},
    ),
    Shapes("no-batch", "Col2Im-15", ["f32[12,225]", "i64{16,16}", "i64{2,2}"], "f32[3,16,16]"),
    Shapes("dims", "Col2Im-15", ["f32[?,8..13,?]", "i64{16,?}", "i64{2,2}"], "f32[?,2..3,16,?]"),
    Shapes("unknown-contents", "Col2Im-15", ["f32[2,12,225]", "i64[?]", "i64[2]"], "f32[2,..12,?,?]"),
    Shapes("unknown-rank", "Col2Im-15", ["f32[...]", "i64{16,16}", "i64{2,2}"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-rank", "Col2Im-15", ["f32[1,2,12,225]", "i64{16,16}", "i64{2,2}"]),
    Refusal("c2-missing", "Col2Im-15", ["f32[3,12,225]", "i64{16,16}"]),
    Refusal("c2-twice", "Col2Im-15", ["f32[3,12,225]", "i64{16,16}", "i64{2,2}"], {"kernel_size": "2,2"}),
    Refusal("c2-three", "Col2Im-15", ["f32[3,12,225]", "i64{16,16,1}", "i64{2,2}"]),
    Refusal("c2-three-attributes", "Col2Im-15", ["f32[3,12,225]"], {"output_size": "16,16,1", "kernel_size": "2,2"}),
    Refusal("c2-negative", "Col2Im-15", ["f32[3,12,225]", "i64{16,-1}", "i64{2,2}"]),
    Refusal("c2-no-kernel", "Col2Im-15", ["f32[3,12,225]", "i64{16,16}", "i64{2,0}"]),
    Refusal("c3-stride", "Col2Im-15", ["f32[3,12,225]", "i64{16,16}", "i64{2,2}"], {"strides": "0,1"}),
    Refusal("c3-dilation", "Col2Im-15", ["f32[3,12,225]", "i64{16,16}", "i64{2,2}"], {"dilations": "-1,1"}),
    Refusal("c3-pads", "Col2Im-15", ["f32[3,12,225]", "i64{16,16}", "i64{2,2}"], {"pads_end": "1"}),
    Refusal("c4-uneven", "Col2Im-15", ["f32[3,13,225]", "i64{16,16}", "i64{2,2}"]),
    Refusal("c5-blocks", "Col2Im-15", ["f32[3,12,224]", "i64{16,16}", "i64{2,2}"]),
    Refusal("ir302-types", "Col2Im-15", ["f32[3,12,225]", "i64{16,16}", "i32{2,2}"]),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}",
        "Col2Im-15",
        [random(*shape, dtype=t), i64(*size), i64(*kernel)],
        ALL | given,
        shapes=[1, 2],
    )
    for shape, size, kernel, given in [
        ((2, 12, 12), (4, 5), (2, 2), {}),
        ((4, 9), (4, 4), (2, 2), {}),
        ((1, 18, 2), (6, 7), (3, 3), {"strides": [2, 3], "dilations": [2, 1]}),
        ((1, 4, 12), (4, 8), (2, 2), {"strides": [1, 2], "dilations": [3, 3], "pads_begin": [2, 1], "pads_end": [0, 2]}),
    ]
    for t in (np.float32, np.int32, np.int64, np.uint8)
] + [
    Case("i32-sizes", "Col2Im-15", [random(1, 4, 4), *(np.array(n, np.int32) for n in ([3, 3], [2, 2]))], ALL, shapes=[1, 2]),
    Case("f16", "Col2Im-15", [random(1, 4, 4, dtype=np.float16), i64(3, 3), i64(2, 2)], ALL, shapes=[1, 2]),
]  # fmt: skip

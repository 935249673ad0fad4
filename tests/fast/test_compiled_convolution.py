"""Compiled convolutions and poolings of channels-last data: the same as a plain sum over the taps, and where they are
used."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import fast
from irrun.opdef import Epilogue, Kernel, Request, Value
from irrun.planning.steps import Part
from kit import filled, operation
from watched import kernel_parts

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.convolution import bands, methods
from irrun.fast.convolution.winograd import TransformedFilters
from irrun.fast.machine.processor import VECTOR

pytestmark = pytest.mark.usefixtures("every_model_is_large")

RANDOM = np.random.default_rng(0)
INF, NAN = np.inf, np.nan


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def rounded(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16).astype(np.float32)


def windows(
    data: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], begin: Sequence[int],
    end: Sequence[int], pad: float = 0,
) -> Iterator[tuple[int, int, np.ndarray]]:  # fmt: skip
    """Each tap and the elements (batch, channels, rows, columns) that all windows see through it, in f64."""
    wide = np.pad(data.astype(np.float64), [(0, 0), (0, 0), *zip(begin, end)], constant_values=pad)
    outs = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(wide.shape[2:], kernel, dilations, strides)]
    for i, j in itertools.product(*map(range, kernel)):
        y, x = i * dilations[0], j * dilations[1]
        yield i, j, wide[:, :, y:, x:][:, :, :: strides[0], :: strides[1]][:, :, : outs[0], : outs[1]]


def convolved(data: np.ndarray, filters: np.ndarray, strides: Any, dilations: Any, begin: Any, end: Any) -> np.ndarray:
    """The convolution with filters (groups, out, in, rows, columns), in f64."""
    groups, outs = filters.shape[:2]
    total: Any = 0
    for i, j, seen in windows(data, filters.shape[3:], strides, dilations, begin, end):
        split = seen.reshape(len(seen), groups, -1, *seen.shape[2:])
        total = total + np.einsum("ngihw,goi->ngohw", split, filters[..., i, j].astype(np.float64))
    return total.reshape(len(data), groups * outs, *total.shape[3:])


def last(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def prepared(name: str, attributes: dict[str, Any], data: np.ndarray, *constants: np.ndarray) -> Kernel:
    value = Value(Value.of(data).type, Value.of(data).shape)
    request = Request((value, *map(Value.of, constants)), channels_last=True)
    kernel = fast.kernel(operation(name, attributes), request)
    assert kernel is not None
    assert kernel.algorithm.startswith("compiled")
    return kernel


def attributes_of(strides: Any, dilations: Any, begin: Any, end: Any) -> dict[str, Any]:
    return {"strides": strides, "dilations": dilations, "pads_begin": begin, "pads_end": end}


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    """Found has its channels last."""
    scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
    np.testing.assert_allclose(np.moveaxis(found, -1, 1), wanted, rtol=0, atol=2e-5 * scale)


PLAIN = ((1, 1), (1, 1), (0, 0), (0, 0))
EVEN = ((1, 1), (1, 1), (1, 1), (1, 1))
GEOMETRIES = [
    # sizes, kernel, (strides, dilations, pads at the beginning, at the end)
    ((9, 14), (1, 1), PLAIN),
    ((9, 14), (1, 1), ((2, 3), (1, 1), (1, 0), (0, 2))),
    ((9, 14), (3, 3), EVEN),
    ((9, 14), (3, 2), ((2, 1), (2, 3), (0, 4), (3, 1))),
    ((4, 5), (2, 3), ((5, 4), (1, 1), (0, 0), (0, 0))),  # strides larger than the kernel
    ((1, 2), (3, 3), ((1, 2), (1, 1), (4, 5), (6, 3))),  # windows that see pads alone
    ((1, 40), (1, 7), ((1, 2), (1, 1), (0, 3), (0, 3))),
]
CHANNELS = [
    # groups, in, out, all of a group
    (1, 3, 64), (1, 1, 1), (1, 20, VECTOR + 1), (1, 40, 5 * VECTOR), (3, 4, 5), (2, 8, 2 * VECTOR),
    (1, 1, 70),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "kernel", "geometry"), GEOMETRIES)
@pytest.mark.parametrize(("groups", "ins", "outs"), CHANNELS)
@pytest.mark.parametrize("halves", [False, True])
def test_convolution(sizes: Any, kernel: Any, geometry: Any, groups: int, ins: int, outs: int, halves: bool) -> None:
    data, filters = normal(2, groups * ins, *sizes), normal(groups, outs, ins, *kernel)
    filters = rounded(filters) if halves else filters
    made = prepared("GroupConvolution-1", attributes_of(*geometry), data, filters)
    wanted = convolved(data, filters, *geometry)
    shape = last(wanted).shape
    assert_close(filled(made, shape, np.float32, last(data), filters), wanted)


@pytest.mark.parametrize(("sizes", "kernel", "geometry"), GEOMETRIES)
@pytest.mark.parametrize("channels", [1, 3, VECTOR, 2 * VECTOR + 5, 5 * VECTOR])
def test_depthwise(sizes: Any, kernel: Any, geometry: Any, channels: int) -> None:
    data, filters = normal(2, channels, *sizes), normal(channels, 1, 1, *kernel)
    made = prepared("GroupConvolution-1", attributes_of(*geometry), data, filters)
    wanted = convolved(data, filters, *geometry)
    assert_close(filled(made, last(wanted).shape, np.float32, last(data), filters), wanted)


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("sizes", [(1, 1), (4, 8), (7, 9), (33, 18)])
@pytest.mark.parametrize("pads", [((1, 1), (1, 1)), ((0, 2), (3, 0)), ((2, 2), (2, 2))])
def test_winograd(tile: int, sizes: Any, pads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tiles that are cut off at the edges, and with the same error as the plain sum."""
    if min(n + sum(p) for n, p in zip(sizes, zip(*pads))) < 3:
        pytest.skip("the kernel is larger than the data")
    monkeypatch.setattr(methods, "tile_of", lambda *_: tile)
    data, filters = normal(2, 2 * VECTOR, *sizes), normal(1, 5 * VECTOR, 2 * VECTOR, 3, 3)
    geometry = ((1, 1), (1, 1), *pads)
    made = prepared("Convolution-1", attributes_of(*geometry), data, filters[0])
    assert "Winograd" in made.algorithm
    wanted = convolved(data, filters, *geometry)
    assert_close(filled(made, last(wanted).shape, np.float32, last(data), filters), wanted)


@pytest.mark.parametrize("tile", [2, 4])
def test_filters_follow_from_their_transforms(tile: int) -> None:
    filters = normal(1, VECTOR + 3, 5, 3, 3)
    np.testing.assert_allclose(TransformedFilters(filters, tile).filters(), filters, atol=1e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("limits", [None, (-0.5, 1.25), (0.0, INF)])
@pytest.mark.parametrize("method", ["direct", "depthwise", "Winograd", "Winograd in parts"])
def test_epilogue(bias: bool, residual: bool, limits: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one pass. A NaN stays NaN, an infinity becomes a limit, and only the windows that see one are changed."""
    channels = 2 * VECTOR
    monkeypatch.setattr(methods, "tile_of", lambda *_: 4 if method.startswith("Winograd") else None)
    groups, each = (channels, 1) if method == "depthwise" else (1, channels)
    data, filters = normal(2, channels, 13, 11), normal(groups, each, each, 3, 3)
    data[0, 3, 2, 2], data[1, 1, 9, 5] = NAN, -INF
    made, seen = prepared("GroupConvolution-1", attributes_of(*EVEN), data, filters), [last(data)]
    if method == "Winograd in parts":
        assert made.joins.in_parts is not None
        assert made.joins.in_parts([VECTOR - 1, VECTOR + 1]) is None
        made = cast(Kernel, made.joins.in_parts([VECTOR, VECTOR]))
        seen = [last(data[:, :VECTOR]), last(data[:, VECTOR:])]
    offsets, more = normal(channels), normal(2, channels, 13, 11)
    assert made.joins.with_epilogue is not None
    kernel = made.joins.with_epilogue(Epilogue(offsets if bias else None, residual, limits))
    with np.errstate(invalid="ignore"):
        wanted = convolved(data, filters, *EVEN)
        wanted = wanted + offsets[:, None, None] if bias else wanted
        wanted = wanted + more if residual else wanted
        wanted = np.clip(wanted, *limits) if limits else wanted
    arrays = [*seen, filters, *([last(more)] if residual else [])]
    with np.errstate(invalid="ignore"):  # as in a run
        found = filled(kernel, (2, 13, 11, channels), np.float32, *arrays)
    np.testing.assert_allclose(np.moveaxis(found, -1, 1), wanted, rtol=1e-5, atol=2e-4)


@pytest.mark.parametrize("tile", [2, 4])
def test_signs_of_filters_decide_about_infinities(tile: int) -> None:
    """A weight of 0 makes NaN of an infinity, and a tiny one an infinity with its sign, beside much larger ones."""
    filters = normal(1, 7, 5, 3, 3)
    filters[RANDOM.random(filters.shape) < 0.3] = 0
    filters[RANDOM.random(filters.shape) < 0.3] *= 1e-20
    found = TransformedFilters(filters, tile).filters()
    np.testing.assert_array_equal(np.sign(found), np.sign(filters))
    np.testing.assert_allclose(found, filters, atol=1e-6)


def test_filters_that_are_not_finite() -> None:
    """They meet no pads, or numpy computes them: 0 times infinity would be NaN."""
    data, filters = np.abs(normal(1, 3, 5, 5)) + 1, normal(1, 4, 3, 3, 3)
    filters[0, 1, 2, 0, 1] = INF
    made = prepared("Convolution-1", attributes_of(*PLAIN), data, filters[0])
    np.testing.assert_allclose(
        np.moveaxis(made.call(last(data), None), -1, 1), convolved(data, filters, *PLAIN), rtol=1e-5, atol=1e-5
    )
    request = Request((Value.of(data), Value.of(filters[0])), channels_last=True)
    op = operation("Convolution-1", attributes_of(*EVEN))
    assert fast.kernel(op, request) is None
    assert op.prepare(request) is None


@pytest.mark.parametrize(("strides", "dilations", "begin", "end", "more"), [
    ((2, 2), (1, 1), (0, 0), (0, 0), (0, 0)), ((2, 3), (1, 1), (1, 0), (1, 2), (0, 0)),
    ((1, 1), (2, 1), (1, 1), (1, 0), (0, 0)), ((2, 1), (1, 1), (0, 1), (1, 1), (1, 0)),
])  # fmt: skip
@pytest.mark.parametrize(("groups", "ins", "outs"), [(1, 5, VECTOR + 3), (3, 4, 2), (20, 1, 1)])
@pytest.mark.parametrize("kernel", [(2, 3), (4, 3)])
def test_transposed(
    strides: Any, dilations: Any, begin: Any, end: Any, more: Any, groups: int, ins: int, outs: int, kernel: Any
) -> None:
    """Each element of the data adds its products with the filters to the elements around its place."""
    data, filters = normal(2, groups * ins, 5, 4), normal(groups, ins, outs, *kernel)
    whole = [(n - 1) * s + (k - 1) * d + 1 + m for n, s, k, d, m in zip((5, 4), strides, kernel, dilations, more)]
    total = np.zeros((2, groups, outs, *whole))
    split = data.reshape(2, groups, ins, 5, 4).astype(np.float64)
    for i, j, y, x in itertools.product(range(kernel[0]), range(kernel[1]), range(5), range(4)):
        place = y * strides[0] + i * dilations[0], x * strides[1] + j * dilations[1]
        total[(..., *place)] += np.einsum("ngi,gio->ngo", split[..., y, x], filters[..., i, j])
    kept = [slice(a, n - z) for a, z, n in zip(begin, end, whole)]
    wanted = total[(..., *kept)].reshape(2, groups * outs, *(s.stop - s.start for s in kept))
    attributes = {**attributes_of(strides, dilations, begin, end), "output_padding": more}
    made = prepared("GroupConvolutionBackpropData-1", attributes, data, filters)
    assert_close(filled(made, last(wanted).shape, np.float32, last(data), filters), wanted)


@pytest.mark.parametrize(("sizes", "kernel", "geometry"), GEOMETRIES)
@pytest.mark.parametrize("channels", [1, VECTOR, 2 * VECTOR + 5])
def test_max_pool(sizes: Any, kernel: Any, geometry: Any, channels: int) -> None:
    """NaN is larger than any number, and a window that sees only pads is -Inf."""
    data = normal(2, channels, *sizes)
    data[0, 0, 0, 0], data[1, -1, -1, -1], data[1, 0, 0, 0] = NAN, NAN, -INF
    made = prepared("MaxPool-8", {**attributes_of(*geometry), "kernel": kernel}, data)
    wanted = np.maximum.reduce([seen for *_, seen in windows(data, kernel, *geometry, pad=-INF)])
    np.testing.assert_array_equal(
        filled(made, last(wanted).shape, np.float32, last(data)), last(wanted).astype(np.float32)
    )


@pytest.mark.parametrize(("sizes", "kernel", "geometry"), GEOMETRIES)
@pytest.mark.parametrize("channels", [1, VECTOR, 2 * VECTOR + 5])
def test_avg_pool(sizes: Any, kernel: Any, geometry: Any, channels: int) -> None:
    """The mean of the elements that are no pads."""
    data = normal(2, channels, *sizes)
    made = prepared("AvgPool-16", {**attributes_of(*geometry), "kernel": kernel, "exclude-pad": "true"}, data)
    sums = sum(seen for *_, seen in windows(data, kernel, *geometry))
    counts = sum(seen for *_, seen in windows(np.ones_like(data), kernel, *geometry))
    assert_close(filled(made, last(np.asarray(sums)).shape, np.float32, last(data)), sums / np.maximum(counts, 1))


def image(*shape: int) -> Any:
    return b.parameter(shape, "f32", name="x")


def stored(array: np.ndarray) -> Any:
    """A constant in f16, as ``save_model`` writes it."""
    return b.Convert(b.constant(array.astype(np.float16)), destination_type="f32")


def conv(x: Any, filters: np.ndarray, stride: int = 1, group: bool = False, type: str = "") -> Any:
    pads = [n // 2 for n in filters.shape[-2:]]
    how = {"strides": [stride] * 2, "pads_begin": pads, "pads_end": pads, "dilations": [1, 1]}
    constant = b.Convert(b.constant(filters, type), destination_type="f32") if type else stored(filters)
    return (b.GroupConvolution if group else b.Convolution)(x, constant, **how)


def bottleneck(x: Any, ins: int, wide: int, stride: int) -> Any:
    """Widen, convolve each channel, narrow; with bias, clamp and residual."""
    y = b.Clamp(b.Add(conv(x, normal(wide, ins, 1, 1)), normal(1, wide, 1, 1)), min=0.0, max=6.0)
    y = conv(y, normal(wide, 1, 1, 3, 3), stride, group=True)
    y = b.Clamp(b.Add(y, normal(1, wide, 1, 1)), min=0.0, max=6.0)
    y = b.Add(conv(y, normal(ins, wide, 1, 1) / 8), normal(1, ins, 1, 1))
    return b.Add(x, y) if stride == 1 else y


def algorithms(executable: irrun.Executable) -> list[str]:
    return [part.kernel.algorithm for part in kernel_parts(executable)]


def joined(executable: irrun.Executable) -> list[Part]:
    """The compiled kernels that convolve, with their layers."""
    return [
        part for part in kernel_parts(executable) if part.kernel.flops and part.kernel.algorithm.startswith("compiled")
    ]


def assert_same(model: irrun.Model, *feeds: np.ndarray) -> irrun.Executable:
    executable = irrun.compile(model, exact=False)
    for _ in range(2):  # the second time, with memory that was used before
        for found, wanted in zip(executable(feeds).arrays, irrun.compile(model, exact=True)(feeds).arrays, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max(initial=1))
    return executable


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 3])
def test_bands(stride: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three convolutions are one step, which computes them a few rows at a time, and keeps rows that two bands see."""
    monkeypatch.setattr(bands, "_MIN_BETWEEN_BYTES", 0)
    monkeypatch.setattr(bands, "_MAX_BAND_BYTES", 1)  # two rows each
    model = b.model(bottleneck(b.Tanh(image(batch, 5, 19, 14)), 5, 24, stride))
    executable = assert_same(model, normal(batch, 5, 19, 14))
    steps = [part for part in kernel_parts(executable) if "in bands" in part.kernel.algorithm]
    assert [[layer.type for layer in step.layers].count("GroupConvolution") for step in steps] == [1]
    assert len(joined(executable)) == 1


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("batch", [1, 3])
def test_sequences(batch: int) -> None:
    """Whole blocks are one step: of every kind of convolution, with residuals from within and from outside."""
    x = b.Tanh(image(batch, 5, 33, 30))
    y = x
    for stride in (1, 2, 1, 3, 1, 1):
        y = bottleneck(y, 5, 24, stride)
    y = conv(conv(y, normal(40, 5, 1, 1) / 4), normal(4, 3, 10, 3, 3) / 8, group=True)
    executable = assert_same(b.model(y), normal(batch, 5, 33, 30))
    (step,) = joined(executable)
    assert "in sequence" in step.kernel.algorithm
    assert [layer.type for layer in step.layers].count("GroupConvolution") == 7


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("least", [0, 1 << 23], ids=["bands", "sequence"])
@pytest.mark.parametrize("type", ["f32", "f16", "bf16"])
def test_filters_of_any_type(type: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay as the file has them. Small constants would be folded to f32."""
    monkeypatch.setattr(bands, "_MIN_BETWEEN_BYTES", least)
    y = b.Tanh(image(1, 40, 17, 18))
    for shape in ((40, 40, 5, 5), (4, 10, 10, 5, 5), (40, 40, 5, 5)):
        y = conv(y, normal(*shape) / 16, group=len(shape) == 5, type=type)
    for _ in range(20):  # so that the layout is changed
        y = b.Negative(y)
    executable = assert_same(b.model(y), normal(1, 40, 17, 18))
    (step,) = joined(executable)
    assert ("in sequence" if least else "in bands") in step.kernel.algorithm


@pytest.mark.usefixtures("workers")
def test_sequences_that_others_read_are_one_step() -> None:
    first = bottleneck(image(1, 5, 19, 14), 5, 24, 1)
    model = b.model({"first": first, "second": bottleneck(first, 5, 24, 1)})
    executable = assert_same(model, normal(1, 5, 19, 14))
    (step,) = executable.plan.steps
    assert len(step.writes) == 2
    assert [layer.type for layer in step.layers].count("Convolution") == 4


@pytest.mark.usefixtures("workers")
def test_sequences_that_are_not_finite() -> None:
    """NaN and infinities reach the results that see them, and no others."""
    data = normal(1, 5, 19, 14)
    data[0, 2, 3, 4], data[0, 1, 12, 9] = NAN, INF
    model = b.model(bottleneck(bottleneck(image(1, 5, 19, 14), 5, 24, 1), 5, 24, 1))
    found, wanted = (irrun.compile(model, exact=exact)([data])[0] for exact in (False, True))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


def test_several_runs_of_a_sequence_at_the_same_time() -> None:
    model = b.model(bottleneck(bottleneck(image(1, 5, 49, 44), 5, 24, 1), 5, 24, 1))
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    feeds = [normal(1, 5, 49, 44) for _ in range(12)]
    with ThreadPoolExecutor(4) as pool:
        found = [outputs[0] for outputs in pool.map(executable, [[feed] for feed in feeds])]
    for got, feed in zip(found, feeds):
        np.testing.assert_allclose(got, exact([feed])[0], rtol=1e-4, atol=1e-3)


def test_small_values_are_not_computed_in_bands() -> None:
    model = b.model(bottleneck(b.Tanh(image(1, 5, 19, 14)), 5, 24, 1))
    assert not any("in bands" in name for name in algorithms(assert_same(model, normal(1, 5, 19, 14))))


def test_a_residual_that_is_computed_later() -> None:
    """Of two convolutions that are added, the later one adds the result of the earlier one."""
    x = image(1, 6, 9, 8)
    left = b.Add(conv(x, normal(16, 6, 3, 3)), normal(1, 16, 1, 1))
    right = b.Add(conv(x, normal(16, 6, 1, 1)), normal(1, 16, 1, 1))
    executable = assert_same(b.model(b.ReLU(b.Add(left, right))), normal(1, 6, 9, 8))
    assert sorted(len(step.layers) for step in joined(executable)) == [6]


def test_what_is_read_twice_is_stored() -> None:
    x = image(1, 6, 9, 8)
    y = b.Add(conv(x, normal(16, 6, 3, 3)), normal(1, 16, 1, 1))
    model = b.model({"a": b.ReLU(y), "b": conv(b.Clamp(y, min=-1.0, max=1.0), normal(4, 16, 1, 1))})
    assert_same(model, normal(1, 6, 9, 8))


def test_an_offset_for_each_column_is_no_bias() -> None:
    x = image(1, 6, 9, 8)
    y = conv(conv(x, normal(16, 6, 3, 3)), normal(8, 16, 1, 1))
    for shape in [(1, 1, 1, 8), (1, 8, 9, 1), (8, 1, 1), ()]:
        y = b.Add(y, b.constant(np.asarray(normal(*shape), np.float32)))
    assert_same(b.model(conv(y, normal(8, 8, 1, 1))), normal(1, 6, 9, 8))


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_filters_in_f16_outside_of_regions(rank: int) -> None:
    """Filters that no compiled kernel reads are widened, for known and for unknown dims."""
    filters, data = normal(4, 3, *[3] * (rank - 2)), normal(2, 3, *[7] * (rank - 2))
    ones, none = [1] * (rank - 2), [0] * (rank - 2)
    for shape in (list(data.shape), [-1] * rank):
        y = b.Convolution(
            b.parameter(shape, "f32", name="x"), stored(filters), strides=ones, pads_begin=ones, pads_end=none,
            dilations=ones,
        )  # fmt: skip
        assert_same(b.model(b.ReLU(y)), data)


def test_dims_that_may_vary() -> None:
    """Once the same shape has come three times, the plan is made for it."""
    x = image(-1, 3, -1, -1)
    y = b.ReLU(b.Add(conv(x, normal(32, 3, 3, 3), 2), normal(1, 32, 1, 1)))
    model = b.model(conv(y, normal(32, 32, 3, 3)))
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    for size in (20, 21, 21, 21, 21, 30, 20):
        data = normal(1, 3, size, size + 1)
        np.testing.assert_allclose(executable(data)[0], exact(data)[0], rtol=1e-4, atol=1e-3)


def test_a_factor_for_each_channel_scales_filters_in_f16() -> None:
    x = image(1, 3, 9, 8)
    y = b.Multiply(conv(x, normal(32, 3, 3, 3)), normal(1, 32, 1, 1))
    y = conv(b.Add(y, normal(1, 32, 1, 1)), normal(2, 32, 1, 1))
    (step,) = joined(assert_same(b.model(y), normal(1, 3, 9, 8)))
    assert [layer.type for layer in step.layers] == ["Convolution", "Multiply", "Add", "Convolution"]


def test_no_windows() -> None:
    x = image(0, 3, 9, 8)
    assert_same(b.model(b.ReLU(conv(conv(x, normal(16, 3, 3, 3)), normal(8, 16, 1, 1)))), normal(0, 3, 9, 8))


@pytest.mark.parametrize(("axis", "copies"), [(1, 0), (2, 1)])
def test_what_a_concat_joins_is_read_where_it_is(axis: int, copies: int) -> None:
    x = b.parameter([2, 16, 24, 20], "f32", name="x")
    parts = [b.Relu(conv(x, normal(count, 16, 1, 1))) for count in ((16, 48) if axis == 1 else (64, 64))]
    y = b.Relu(b.Add(conv(b.Concat(*parts, axis=axis), normal(32, 64, 3, 3) / 8), normal(1, 32, 1, 1)))
    executable = assert_same(b.model(y), normal(2, 16, 24, 20))
    assert sum(part.layers[-1].type == "Concat" for part in kernel_parts(executable)) == copies

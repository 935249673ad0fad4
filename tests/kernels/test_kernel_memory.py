"""The memory that kernels and readers take beside their results is bounded, whatever an attribute or header says."""

from __future__ import annotations

import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli

pytestmark = pytest.mark.processes

MOST = 200 << 20
"""The most bytes that a run in these tests may take. Each takes more than twice as much with all samples at once."""


def _regions(columns: int) -> tuple[b.Node, b.Node, b.Node]:
    data = b.parameter([1, 9, 8, 8], name="data")
    return data, b.parameter([1, columns], name="rois"), b.constant(np.zeros(1, np.int32))


def _align(ratio: int) -> irrun.Model:
    return b.model(
        b.ROIAlign(*_regions(4), pooled_h=1, pooled_w=1, sampling_ratio=ratio, spatial_scale=1.0, mode="avg")
    )


def _rotated(ratio: int) -> irrun.Model:
    return b.model(b.ROIAlignRotated(*_regions(5), pooled_h=1, pooled_w=1, sampling_ratio=ratio, spatial_scale=1.0))


def _deformable(bins: int) -> irrun.Model:
    data, rois, _ = _regions(5)
    return b.model(
        b.DeformablePSROIPooling(
            data, rois, output_dim=9, spatial_scale=1.0, group_size=1, spatial_bins_x=1000, spatial_bins_y=bins
        )
    )


@pytest.mark.parametrize(
    ("model", "roi"),
    [(_align, [1, 1, 5, 6]), (_rotated, [3, 4, 4, 5, 0.3]), (_deformable, [0, 1, 1, 5, 6])],
    ids=["ROIAlign", "ROIAlignRotated", "DeformablePSROIPooling"],
)
def test_many_samples(model: Callable[[int], irrun.Model], roi: list[float]) -> None:
    feeds = [np.arange(9 * 64, dtype=np.float32).reshape(1, 9, 8, 8), np.array([roi], np.float32)]
    executable = irrun.compile(model(1000), max_memory=MOST)
    tracemalloc.start()
    try:
        (many,) = executable(feeds).values()
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    (few,) = irrun.compile(model(100))(feeds).values()
    np.testing.assert_allclose(many, few, rtol=1e-2)
    with pytest.raises(irrun.ExecutionError, match=r"IR604.*(sampling_ratio|spatial_bins_y)"):
        irrun.compile(model(1 << 30))(feeds)


def test_too_many_samples_are_refused_before_any_is_computed() -> None:
    """The last region is too large; a million samples of each of the others would take minutes."""
    data = b.parameter([1, 64, 8, 8], name="data")
    rois, batches = b.parameter([100, 4], name="rois"), b.constant(np.zeros(100, np.int32))
    how = {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1.0}
    boxes = np.array([[0, 0, 900, 900]] * 99 + [[0, 0, 1025, 1025]], np.float32)
    extractor = {"output_size": 1, "pyramid_scales": [1, 1]}
    small, large = [0, 0, 200, 200], [0, 0, 1025, 1025]
    cases = [
        (b.ROIAlign(data, rois, batches, sampling_ratio=0, mode="avg", **how), boxes),
        (b.ROIAlign(data, rois, batches, sampling_ratio=5000, mode="avg", **how), boxes),
        (
            b.ExperimentalDetectronROIFeatureExtractor(rois, data, data, sampling_ratio=0, **extractor)[0],
            np.array([large] + [small] * 99, np.float32),
        ),
    ]
    for node, regions in cases:
        feeds = {"data": np.ones((1, 64, 8, 8), np.float32), "rois": regions}
        executable = irrun.compile(b.model(node))
        since = time.process_time()
        with pytest.raises(irrun.ExecutionError, match=r"IR604.*samples in a bin"):
            executable(feeds)
        assert time.process_time() - since < 1


def test_frames_far_apart() -> None:
    size, count = 16, 200
    data = b.parameter([9, count, 2], name="data")
    step, length = 1_000_000, 2 * 1_000_000
    window = np.ones(size, np.float32)
    node = b.ISTFT(data, window, np.int64(size), np.int64(step), np.int64(length), center=False, normalized=False)
    executable = irrun.compile(b.model(node), max_memory=MOST)
    spectrum = np.fft.rfft(np.arange(count * size).reshape(count, size))
    tracemalloc.start()
    try:
        feed = np.stack([spectrum.real.T, spectrum.imag.T], -1).astype(np.float32)
        (signal,) = executable(feed).values()
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    expected = np.zeros(length, np.float32)
    expected[:size], expected[step : step + size] = np.arange(size), np.arange(size, 2 * size)
    np.testing.assert_allclose(signal, expected, atol=1e-3)


@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize(("declared", "message"), [(1 << 31, "its header declares"), (1 << 26, "takes 256.0 MiB")])
def test_a_header_that_declares_much(ending: str, declared: int, message: str, tmp_path: Path) -> None:
    path, out = tmp_path / "net.xml", tmp_path / f"x.{ending}"
    irrun.save_model(b.model(b.ReLU(b.parameter([None], name="x"))), path)
    array = np.zeros(1 << 26 if declared == 1 << 26 else 4, np.float32)
    array_file = tmp_path / "x.npy"
    with array_file.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (declared,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(array.tobytes())
    del array
    if ending == "npz":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(array_file, "x.npy")
    tracemalloc.start()
    try:
        arguments = ["run", str(path), "-i", f"x={out}", "--max-memory", "200M"]
        result = CliRunner().invoke(cli, arguments)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert result.exit_code == 2
    assert "IR601" in result.output
    assert message in result.output.replace("\n", " ")


_ONE = np.ones((1, 1, 3, 3), np.float32)


def _far(type: str, far: int) -> tuple[b.Node, Any]:
    """Return a layer on the data [1, 2], [3, 4] whose windows cover (2 * far + 1)² places, and what it gives."""
    x = b.parameter([1, 1, 2, 2], name="x")
    pads: dict[str, Any] = {"strides": [far] * 2, "pads_begin": [far] * 2, "pads_end": [far] * 2}
    kernel = {"kernel": [2 * far + 1] * 2, "rounding_type": "floor"}
    apart, whole = {"dilations": [far] * 2}, {"strides": [2 * far] * 2}
    if type == "Convolution":  # the middle of the only window is at the first element, its other taps are pads
        return b.Convolution(x, _ONE, **pads, **apart), 1
    if type == "GroupConvolution":
        return b.GroupConvolution(x, _ONE[None], **pads, **apart), 1
    if type == "dilations of ConvolutionBackpropData":  # each output sees the element at its place alone
        return b.ConvolutionBackpropData(x, _ONE, **pads | {"strides": [1, 1]}, **apart), [[1, 2], [3, 4]]
    if type == "strides of ConvolutionBackpropData":  # the output is the middle between the four elements
        return b.ConvolutionBackpropData(x, _ONE[..., :1, :1], **pads | whole, dilations=[1, 1]), 0
    if type == "ExtractImagePatches":  # of 3 by 3 taps, the middle one is at the first element
        patches = {"sizes": [3, 3], "strides": [2 * far] * 2, "rates": [far] * 2, "auto_pad": "same_lower"}
        return b.ExtractImagePatches(x, **patches), [0, 0, 0, 0, 1, 0, 0, 0, 0]
    if type == "AvgPool":
        return b.AvgPool(x, exclude_pad=True, **pads | whole, **kernel), 2.5
    if type == "AvgPool with pads":
        return b.AvgPool(x, exclude_pad=False, **pads | whole, **kernel), 10 / (2 * far + 1) ** 2
    largest = b.MaxPool(x, dilations=[1, 1], **pads | whole, **kernel)
    return (largest[1], 3) if type == "place of MaxPool" else (largest[0], 4)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("far", [1 << 13, 1 << 30])
@pytest.mark.parametrize(
    "type",
    [
        "Convolution", "GroupConvolution", "dilations of ConvolutionBackpropData", "strides of ConvolutionBackpropData",
        "ExtractImagePatches", "AvgPool", "AvgPool with pads", "MaxPool", "place of MaxPool",
    ],
)  # fmt: skip
def test_windows_over_many_pads(type: str, far: int, exact: bool) -> None:
    """Only the data counts: a padded copy of it would take a gigabyte, or more than there is."""
    node, expected = _far(type, far)
    tracemalloc.start()
    try:
        executable = irrun.compile(b.model(node), exact=exact, max_memory=MOST)
        (result,) = executable(np.array([[[[1, 2], [3, 4]]]], np.float32)).values()
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(result, np.reshape(expected, result.shape), rtol=1e-6)

"""Make the pictures of the report for the README: ``python docs/screenshots.py``. Needs Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

DOCS: Final = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent / "tests" / "help"), str(DOCS.parent)]

import irrun.build as b
from browser import Browser
from irrun.ir.write import save_model
from irrun.report import collect

COLOURS: Final = 256
"""The colours of a picture: enough for flat areas and letters, and a third of the size."""


def network() -> Any:
    """Return a small network for pictures: a stem, a block with three branches and a shortcut, and a head."""
    rng = np.random.default_rng(0)

    def convolution(name: str, x: Any, channels: tuple[int, int], kernel: int) -> Any:
        weights = rng.normal(0, 0.3, (channels[1], channels[0], kernel, kernel)).astype(np.float32)
        pads = [kernel // 2] * 2
        y = b.Convolution(
            x, b.constant(weights, name=f"{name}/weights"), strides=[1, 1], dilations=[1, 1], pads_begin=pads,
            pads_end=pads, name=f"{name}/conv",
        )  # fmt: skip
        return b.ReLU(y, name=f"{name}/relu")

    image = b.parameter([1, 3, 32, 32], "f32", name="image")
    x = convolution("stem", image, (3, 16), 3)
    x = b.MaxPool(x, kernel=[2, 2], strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], name="stem/pool")[0]
    narrow = convolution("mixed/narrow", x, (16, 16), 1)
    wide = convolution("mixed/wide/first", x, (16, 16), 1)
    wide = convolution("mixed/wide/second", wide, (16, 32), 3)
    joined = b.Concat(narrow, wide, axis=1, name="mixed/concat")
    shortcut = convolution("mixed/shortcut", x, (16, 48), 1)
    x = b.Add(joined, shortcut, name="mixed/add")
    x = b.ReduceMean(x, [2, 3], name="head/mean")
    x = b.MatMul(x, rng.normal(0, 1, (48, 10)).astype(np.float32), name="head/logits")
    return b.model(b.SoftMax(x, axis=1, name="head/probabilities"), name="mixed-net")


def main() -> None:
    """Write docs/_static/report-light.png and report-dark.png."""
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        model, page = Path(folder) / "mixed-net.xml", Path(folder) / "report.html"
        save_model(network(), model)
        collect(model, {"image": np.random.default_rng(1).random((1, 3, 32, 32), np.float32)}, runs=9).write(page)
        for name, mode, layer in (("light", "type", "stem/pool"), ("dark", "time", "mixed/wide/second/conv")):
            tab = browser.open(f"{page.as_uri()}#layer={layer}", width=1200, height=800, dark=name == "dark")
            choose = "document.getElementById('colour')"
            tab.run(f"{choose}.value = '{mode}', {choose}.dispatchEvent(new Event('change'))")
            tab.run("document.querySelector('#panel .ends').scrollIntoView({block: 'end'})")
            picture = DOCS / "_static" / f"report-{name}.png"
            tab.screenshot(picture)
            Image.open(picture).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
                picture, optimize=True
            )
            print(f"{picture}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

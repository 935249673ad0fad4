"""Make the pictures of the report for the README: ``python docs/screenshots.py``. Needs Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent / "tests"), str(DOCS.parent)]

from report.browser import Browser

from irrun.report import collect

COLOURS = 128
"""The colours of a picture: enough for flat areas and letters, and a third of the size."""


def main() -> None:
    """Write docs/_static/report-light.png and report-dark.png."""
    samples = DOCS.parent / "samples"
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        page = Path(folder) / "report.html"
        collect(samples / "convnet.xml", {"image": np.load(samples / "image.npy")}, runs=9).write(page)
        for name, mode, layer in (("light", "type", "block1/relu"), ("dark", "time", "block2/conv")):
            tab = browser.open(f"{page.as_uri()}#layer={layer}", width=1200, height=760, dark=name == "dark")
            choose = "document.getElementById('colour')"
            tab.run(f"{choose}.value = '{mode}', {choose}.dispatchEvent(new Event('change'))")
            picture = DOCS / "_static" / f"report-{name}.png"
            tab.screenshot(picture)
            Image.open(picture).convert("RGB").quantize(COLOURS).save(picture, optimize=True)
            print(f"{picture}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

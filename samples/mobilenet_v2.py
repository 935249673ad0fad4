"""Write MobileNetV2, with random weights, for "Your first ten minutes": `python samples/mobilenet_v2.py FOLDER`.

The folder receives `mobilenet_v2.xml`, and `changed.xml`, a copy with two faults: one Clamp ends at 5.5, where all
others end at 6, and the output port of the classifier declares 1001 scores, where its weights give 1000.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import numpy as np

from irrun import build as b
from irrun import save_model
from irrun.build import Node

BLOCKS: Final = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Table 2 of the paper "MobileNetV2: Inverted Residuals and Linear Bottlenecks": expansion t, channels c, number of
blocks n, and the stride s of the first of them."""
CLASSES: Final = 1000
CHANGED: Final = "block9/depthwise/clamp"
"""The Clamp that ends at 5.5 in the changed copy."""


class Network:
    """The layers of MobileNetV2, with weights from a generator of its own. ``maxima`` are the ends of some Clamps."""

    def __init__(self, maxima: dict[str, float]) -> None:
        self.rng = np.random.default_rng(0)
        self.maxima = maxima

    def weights(self, *shape: int, terms: int) -> np.ndarray:
        """Return random f32 weights that keep the size of values in a sum of ``terms`` products."""
        return self.rng.normal(0, np.sqrt(2 / terms), shape).astype(np.float32)

    def convolution(self, name: str, x: Node, channels: tuple[int, int], *, kernel: int = 1, stride: int = 1) -> Node:
        """Return a convolution with bias, padded by half of its kernel; ``channels`` are those of input and output."""
        before, after = channels
        pads = [kernel // 2] * 2
        window = {"strides": [stride] * 2, "dilations": [1, 1], "pads_begin": pads, "pads_end": pads}
        if name.endswith("/depthwise"):
            filters = self.weights(after, 1, 1, kernel, kernel, terms=kernel**2)
            y = b.GroupConvolution(x, filters, name=name, **window)
        else:
            filters = self.weights(after, before, kernel, kernel, terms=before * kernel**2)
            y = b.Convolution(x, filters, name=name, **window)
        return b.Add(y, self.weights(1, after, 1, 1, terms=200), name=f"{name}/bias")

    def clamped(self, name: str, x: Node) -> Node:
        return b.Clamp(x, min=0.0, max=self.maxima.get(f"{name}/clamp", 6.0), name=f"{name}/clamp")

    def block(self, name: str, x: Node, channels: tuple[int, int], expansion: int, stride: int) -> Node:
        """Return an inverted residual: expand, filter each channel, project, and add the input where shapes allow."""
        inner = channels[0] * expansion
        y = x
        if expansion != 1:
            y = self.clamped(f"{name}/expand", self.convolution(f"{name}/expand", y, (channels[0], inner)))
        y = self.convolution(f"{name}/depthwise", y, (inner, inner), kernel=3, stride=stride)
        y = self.convolution(f"{name}/project", self.clamped(f"{name}/depthwise", y), (inner, channels[1]))
        return b.Add(x, y, name=f"{name}/add") if stride == 1 and channels[0] == channels[1] else y

    def scores(self, image: Node) -> Node:
        """Return the scores of the classes, ``[1,1000]``."""
        x = self.clamped("stem", self.convolution("stem", image, (3, 32), kernel=3, stride=2))
        channels, number = 32, 0
        for expansion, after, count, stride in BLOCKS:
            for i in range(count):
                number += 1
                x = self.block(f"block{number}", x, (channels, after), expansion, stride if i == 0 else 1)
                channels = after
        x = self.clamped("last", self.convolution("last", x, (channels, 1280)))
        x = b.ReduceMean(x, [2, 3], name="mean")
        return b.MatMul(x, self.weights(CLASSES, 1280, terms=1280), transpose_b=True, name="classifier")


def write(path: Path, maxima: dict[str, float]) -> None:
    image = b.parameter([1, 3, 224, 224], "f32", name="image")
    save_model(b.model({"scores": Network(maxima).scores(image)}, name=path.stem), path)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "mobilenet_v2.xml", {})
    changed = folder / "changed.xml"
    write(changed, {CHANGED: 5.5})
    before, port, after = changed.read_text("utf-8").partition('names="scores')
    after = after.replace(f"<dim>{CLASSES}</dim>", f"<dim>{CLASSES + 1}</dim>", 1)
    changed.write_text(before + port + after, "utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""PriorBox: boxes of some sizes and aspect ratios around the points of a grid.  Spec: detection/prior-box-{1,8}."""

import bisect
import math
from collections.abc import Iterator

import numpy as np

from irrun.opdef import Site, Value, attr, op
from irrun.ops._priors import Priors, around


@op("PriorBox", since=8, spec="detection/prior-box-8")
class PriorBox8(Priors):
    """Return boxes [xmin, ymin, xmax, ymax], relative to the image, in row 0, and their variances in row 1.

    C1  ``output_size`` and ``image_size`` are 1D and have two elements each.
    C2  ``variance`` has 0, 1 or 4 elements.
    C3  ``density`` has one entry for each of ``fixed_size``.
    C4  Sizes and ratios are positive, the entries of ``density`` are at least 1.
    """

    min_size = attr.floats(())
    max_size = attr.floats(())
    aspect_ratio = attr.floats(())
    flip = attr.bool(False)
    clip = attr.bool(False)
    step = attr.float(0.0)
    offset = attr.float()
    variance = attr.floats(())
    scale_all_sizes = attr.bool(True)
    fixed_ratio = attr.floats(())
    fixed_size = attr.floats(())
    density = attr.floats(())
    min_max_aspect_ratios_order = attr.bool(True)

    def infer(self, at: Site, output_size: Value, image_size: Value) -> Value:
        at.require(
            len(self.density) == len(self.fixed_size),
            "C3",
            f"density has length {len(self.density)}, but fixed_size has {len(self.fixed_size)}",
        )
        for name in ("min_size", "max_size", "aspect_ratio", "fixed_size", "fixed_ratio", "density"):
            values = getattr(self, name)
            is_size = all(0 < n < math.inf for n in values)
            at.require(is_size, "C4", f"{name} {list(values)} has an entry that is not a positive number")
        at.require(all(n >= 1 for n in self.density), "C4", f"density {list(self.density)} has an entry below 1")
        return self.priors(at, output_size, image_size, self._count())

    def run(self, output_size: np.ndarray, image_size: np.ndarray) -> np.ndarray:
        height, width = (int(n) for n in output_size.tolist())
        image_height, image_width = (int(n) for n in image_size.tolist())
        step, scale = self.step, 1
        if not self.scale_all_sizes:  # OpenVINO takes sizes and step relative to the height of the image in this case
            step, scale = image_height / max(height, 1) if step == -1 else step * image_height, image_height
        if step == 0:
            steps, offset = (image_width / max(width, 1), image_height / max(height, 1)), 0.5
        else:
            steps, offset = (step, step), self.offset
        fixed, free = list(self._fixed()), list(self._free(scale))
        described = np.array([*fixed, *free], np.float32).reshape(-1, 4)
        boxes = around(height, width, offset, steps, described[:, :2], described[:, 2:])
        boxes *= np.float32(1) / np.array([image_width, image_height] * 2, np.float32)
        # OpenVINO clips boxes of a fixed size to the image
        ends = boxes[:, :, : len(fixed)]
        np.maximum(ends[..., :2], 0, out=ends[..., :2])
        np.minimum(ends[..., 2:], 1, out=ends[..., 2:])
        return self.output(boxes.clip(0, 1) if self.clip else boxes)

    def _count(self) -> int:
        """Return the number of boxes of a point. They are not listed, because a file may ask for any number of them."""
        ratios = len(self._ratios())
        fixed = sum(int(density) ** 2 for density in self.density) * (len(self.fixed_ratio) or ratios)
        if self.scale_all_sizes:
            return fixed + len(self.min_size) * ratios + min(len(self.min_size), len(self.max_size))
        return fixed + (len(self.min_size) + ratios - 1 if self.min_size else 0)

    def _fixed(self) -> Iterator[tuple[float, float, float, float]]:
        """Yield the boxes of a fixed size, a grid of ``density`` by ``density`` for each size and ratio.

        A box is (x, y, half the width, half the height), its centre relative to the point.
        """
        for size, density in zip(self.fixed_size, self.density):
            count = int(density)
            shift = int(size / count)
            # OpenVINO rounds half of an odd size down (its CPU plugin does not)
            places = [shift / 2 + n * shift - int(size) // 2 for n in range(count)]
            for ratio in self.fixed_ratio or self._ratios():
                side = size if self.fixed_ratio or ratio != 1 else int(size)  # OpenVINO truncates the sides of squares
                half = side / 2 * math.sqrt(ratio), side / 2 / math.sqrt(ratio)
                yield from ((x, y, *half) for y in places for x in places)

    def _free(self, scale: float) -> Iterator[tuple[float, float, float, float]]:
        """Yield the boxes of ``min_size`` (times ``scale``), ``max_size`` and the ratios, in the form of ``_fixed``."""
        sizes, others = [size * scale for size in self.min_size], self._ratios()[1:]
        for n, size in enumerate(sizes):
            yield 0, 0, size / 2, size / 2
            greatest = []
            if self.scale_all_sizes and n < len(self.max_size):
                between = math.sqrt(size * self.max_size[n]) / 2
                greatest = [(0, 0, between, between)]
            ratios = []
            if self.scale_all_sizes or n == len(sizes) - 1:
                half = (size if self.scale_all_sizes else sizes[0]) / 2
                ratios = [(0, 0, half * math.sqrt(r), half / math.sqrt(r)) for r in others]
            yield from greatest + ratios if self.min_max_aspect_ratios_order else ratios + greatest

    def _ratios(self) -> list[float]:
        """Return 1 and the aspect ratios without duplicates, with ``flip`` each followed by its inverse."""
        ratios = [1.0]
        in_order = [1.0]  # the same, ascending, so that only the nearest ratios are compared
        for ratio in self.aspect_ratio:
            at = bisect.bisect(in_order, ratio)
            if all(abs(ratio - other) >= 1e-6 for other in in_order[max(0, at - 1) : at + 1]):
                new = [ratio, 1 / ratio] if self.flip else [ratio]
                ratios += new
                for each in new:
                    bisect.insort(in_order, each)
        return ratios


@op("PriorBox", since=1, spec="detection/prior-box-1")
class PriorBox1(PriorBox8):
    """Compute the same as PriorBox-8, but order the boxes of a point by ``min_size``, ``max_size``, ``aspect_ratio``.

    C1  ``output_size`` and ``image_size`` are 1D and have two elements each.
    C2  ``variance`` has 0, 1 or 4 elements.
    C3  ``density`` has one entry for each of ``fixed_size``.
    C4  Sizes and ratios are positive, the entries of ``density`` are at least 1.
    """

    attributes = {k: v for k, v in PriorBox8.attributes.items() if k != "min_max_aspect_ratios_order"}
    min_max_aspect_ratios_order = True

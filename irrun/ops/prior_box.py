"""PriorBox: boxes of given sizes around each cell of a grid.  Spec: detection/prior-box-{1,8}."""

import math

import numpy as np

from irrun.opdef import Site, Value, attr, op
from irrun.ops._prior_boxes import PriorBoxes, centres, covering


@op("PriorBox", since=8, spec="detection/prior-box-8")
class PriorBox8(PriorBoxes):
    """Boxes of some sizes and aspect ratios around each cell of a grid over an image.

    C1  ``output_size`` and ``image_size`` are 1D and hold height and width, which are not negative.
    C2  ``variance`` has 0, 1 or 4 entries.
    C3  The entries of ``aspect_ratio`` and ``fixed_ratio`` are positive.
    C4  ``density`` has one entry, of at least 1, for each of ``fixed_size``.
    C5  ``fixed_ratio`` has one entry for each aspect ratio, 1 being one of these.
    C6  ``min_size`` is empty beside ``fixed_size``; without it and ``scale_all_sizes``, it is not.
    C7  ``max_size`` has no more entries than ``min_size``.
    """

    min_size = attr.floats(())
    max_size = attr.floats(())
    aspect_ratio = attr.floats(())
    flip = attr.bool(False)
    clip = attr.bool(False)
    scale_all_sizes = attr.bool(True)
    fixed_ratio = attr.floats(())
    fixed_size = attr.floats(())
    density = attr.floats(())
    min_max_aspect_ratios_order = attr.bool(True)

    def infer(self, at: Site, output_size: Value, image_size: Value) -> Value:
        ratios, fixed = len(self._ratios()), len(self.fixed_ratio)
        at.require(
            all(ratio > 0 for ratio in self.aspect_ratio + self.fixed_ratio), "C3",
            f"aspect_ratio is {list(self.aspect_ratio)}, fixed_ratio {list(self.fixed_ratio)}",
        )  # fmt: skip
        at.require(
            len(self.density) == len(self.fixed_size) and all(n >= 1 for n in self.density), "C4",
            f"density is {list(self.density)}, fixed_size {list(self.fixed_size)}",
        )  # fmt: skip
        if self.fixed_size:
            at.require(fixed in (0, ratios), "C5", f"fixed_ratio has {fixed} entries, aspect_ratio makes {ratios}")
            at.require(not self.min_size, "C6", f"fixed_size is given, and min_size {list(self.min_size)}")
        elif self.scale_all_sizes:
            least, largest = len(self.min_size), len(self.max_size)
            at.require(largest <= least, "C7", f"max_size has {largest} entries, min_size {least}")
        else:
            at.require(len(self.min_size) > 0, "C6", "scale_all_sizes is false, and min_size empty")
        return self.table(at, output_size, image_size, len(self._priors()))

    def run(self, output_size: np.ndarray, image_size: np.ndarray) -> np.ndarray:
        cell, height = covering(output_size, image_size), int(image_size[0])
        # OpenVINO: without scale_all_sizes, step and min_size are parts of the height, and a step of -1 covers it
        unit = 1 if self.scale_all_sizes else height
        step = cell[1] if self.step == -1 and not self.scale_all_sizes else self.step * unit
        # OpenVINO: a step of 0 has the cells cover the image; the formula of the specification, them be 1 wide
        places = centres(output_size, self.offset, [step, step]) if step else centres(output_size, 0.5, cell)
        return self.filled(places, self._priors(unit), image_size)

    def clipped(self, boxes: np.ndarray) -> np.ndarray:
        if self.clip:
            return np.clip(boxes, 0, 1)
        if self.fixed_size:  # OpenVINO: clips these always, though not where they begin after 1 or end before 0
            return np.concatenate([np.maximum(boxes[..., :2], 0), np.minimum(boxes[..., 2:], 1)], -1)
        return boxes

    def _priors(self, unit: int = 1) -> list[tuple[float, float, float, float]]:
        """The boxes of a cell in order: how far their centres are off its own, and their sides."""
        others = self._ratios()[1:]
        priors = []
        for size, density in zip(self.fixed_size, map(int, self.density)):
            shift, half = int(size / density), int(size) // 2  # OpenVINO: whole pixels, and the square box, too
            places = [shift / 2 - half + n * shift for n in range(density)]
            shapes = [_sides(size, ratio) for ratio in self.fixed_ratio]
            shapes = shapes or [_sides(int(size)), *(_sides(size, ratio) for ratio in others)]
            priors += [(x, y, *sides) for sides in shapes for y in places for x in places]
        sizes = [size * unit for size in self.min_size]
        for n, size in enumerate(sizes):
            largest, shapes = [], []
            if self.scale_all_sizes:
                largest = [_sides(math.sqrt(size * most)) for most in self.max_size[n : n + 1]]
                shapes = [_sides(size, ratio) for ratio in others]
            elif n == len(sizes) - 1:  # OpenVINO: only the first size has boxes of other ratios, after all sizes
                shapes = [_sides(sizes[0], ratio) for ratio in others]
            rest = largest + shapes if self.min_max_aspect_ratios_order else shapes + largest
            priors += [(0, 0, *sides) for sides in [_sides(size), *rest]]
        return priors

    def _ratios(self) -> list[float]:
        """1 and each of ``aspect_ratio``, with ``flip`` also upside down, without duplicates."""
        ratios = [1.0]
        for ratio in self.aspect_ratio:
            if all(abs(ratio - other) >= 1e-6 for other in ratios):
                ratios += [ratio, 1 / ratio] if self.flip and ratio else [ratio]
        return ratios


@op("PriorBox", since=1, spec="detection/prior-box-1")
class PriorBox1(PriorBox8):
    """As PriorBox-8, always in the order minimum, maximum, aspect ratios.

    C1  ``output_size`` and ``image_size`` are 1D and hold height and width, which are not negative.
    C2  ``variance`` has 0, 1 or 4 entries.
    C3  The entries of ``aspect_ratio`` and ``fixed_ratio`` are positive.
    C4  ``density`` has one entry, of at least 1, for each of ``fixed_size``.
    C5  ``fixed_ratio`` has one entry for each aspect ratio, 1 being one of these.
    C6  ``min_size`` is empty beside ``fixed_size``; without it and ``scale_all_sizes``, it is not.
    C7  ``max_size`` has no more entries than ``min_size``.
    """

    attributes = {n: a for n, a in PriorBox8.attributes.items() if n != "min_max_aspect_ratios_order"}
    min_max_aspect_ratios_order = True


def _sides(size: float, ratio: float = 1) -> tuple[float, float]:
    """The sides of a box of the area of a square."""
    return size * math.sqrt(ratio), size / math.sqrt(ratio)

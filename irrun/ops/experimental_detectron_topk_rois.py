"""ExperimentalDetectronTopKROIs: the most probable regions.  Spec: sort/experimental-detectron-top-krois-6."""

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._boxes import common_dim


@op("ExperimentalDetectronTopKROIs", since=6, spec="sort/experimental-detectron-top-krois-6")
class ExperimentalDetectronTopKROIs(Op):
    """Return the ``max_rois`` regions of the highest probabilities, the highest first. Zeros follow the last region.

    C1  ``rois`` is [n, 4], ``rois_probs`` is 1D.
    C2  ``rois_probs`` has one entry for each region.
    C3  ``max_rois`` is not negative.
    """

    max_rois = attr.int(0)
    inputs = ports(rois="T", rois_probs="T")
    types = {"T": "float"}

    def infer(self, at: Site, rois: Value, rois_probs: Value) -> Value:
        at.require(rois.rank in (None, 2) and rois.shape[1].fits(4), "C1", f"rois is {rois.shape}, not [n, 4]")
        at.require(rois_probs.rank in (None, 1), "C1", f"rois_probs is {rois_probs.shape}, not 1D")
        count = common_dim(rois.shape[0], rois_probs.shape[0])
        at.require(
            count is not None, "C2", f"rois {rois.shape} and rois_probs {rois_probs.shape} have different lengths"
        )
        at.require(self.max_rois >= 0, "C3", f"max_rois {self.max_rois} is negative")
        return rois.reshaped([self.max_rois, 4])

    def run(self, rois: np.ndarray, rois_probs: np.ndarray) -> np.ndarray:
        places = np.argsort(-plain(rois_probs), kind="stable")[: self.max_rois]
        result = np.zeros((self.max_rois, 4), rois.dtype)
        result[: len(places)] = rois[places]
        return result

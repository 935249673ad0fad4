"""The cases of the graph fuzzer."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import irrun
from file_fuzz.differences import differences
from file_fuzz.targets import graph

__all__ = ["Comparisons"]


@dataclass(frozen=True)
class Comparisons:
    """Random graphs, run in the default mode and in the exact one."""

    seed: str
    bounded: bool = False

    @classmethod
    def of(cls, seed: str, folder: Path, stored: Path) -> Comparisons:
        return cls(seed)

    def warm_up(self) -> None:
        pass

    def run(self, number: int) -> Counter[str]:
        return Counter(["equal"]) + differences(graph(self.seed, number))

    def seconds(self, number: int) -> float:
        return math.inf

    def keep(self, number: int, folder: Path, failed: BaseException | None) -> None:
        """Store the model and the inputs of each call, with as few layers as still fail."""
        chosen = graph(self.seed, number)
        for layers in range(1, 12) if failed is not None and number % 2 == 0 else ():
            fewer = graph(self.seed, number, layers)
            try:
                differences(fewer)
            except Exception as error:
                if type(error) is type(failed):
                    chosen = fewer
                    break
        irrun.save_model(chosen.model, folder / "graph.xml")
        for call, feeds in enumerate(chosen.feeds):
            arrays = {f"in{n}": array for n, array in enumerate(feeds)}
            np.savez(folder / f"call{call + 1}.npz", allow_pickle=False, **arrays)

"""The harness of pyopenvino, https://github.com/yas-sim/pyopenvino. It needs a clone, networkx,
opencv-python-headless and numpy, and no irrun.

pyopenvino is in no package registry, and finds its operations from the folder in which it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

__all__ = ["Harness"]


class Harness:
    """pyopenvino, from the clone that the option ``source`` names."""

    takes_arrays = True

    def __init__(self, options: dict[str, str]) -> None:
        if "source" not in options:
            raise ValueError("it is in no package registry; pass source=FOLDER, the folder of a clone")
        os.chdir(options["source"])
        sys.path.insert(0, os.getcwd())
        import pyopenvino.inference_engine as inference_engine  # pyright: ignore[reportMissingImports]

        self.types = inference_engine.common_def.type_convert_tbl
        self.core = inference_engine.IECore()
        self.name = "pyopenvino"

    def load(self, path: str, inner: bool) -> dict[str, Any]:
        """Read the model, and return its inputs and outputs. Raises NotImplementedError for what pyopenvino lacks."""
        for layer in ElementTree.parse(path).getroot().iterfind("./layers/layer"):
            if layer.get("type") not in self.core.plugins.plugins:
                raise NotImplementedError(f"pyopenvino has no operation {layer.get('type')}")
            data = layer.find("data")
            element_type = "f32" if data is None else data.get("element_type", "f32")
            if element_type not in self.types:
                raise NotImplementedError(f"pyopenvino has no element type {element_type}")
        network = self.core.read_network(path, "")
        self.executable = self.core.load_network(network)
        self.executable.kernel_type = "special"  # of its kernels, those that are right most often
        self.inputs = [node["name"] for node in network.inputs]
        self.outputs = [node["name"] for node in network.outputs]
        return {
            "inputs": [
                {
                    "names": [node["name"]],
                    "type": node["data"]["element_type"],
                    "shape": f"[{','.join(map(str, node['data']['shape']))}]",
                }
                for node in network.inputs
            ],
            "outputs": [{"names": [name]} for name in self.outputs],
        }

    def infer(
        self, feeds: Sequence[Any], taps: Sequence[tuple[str, int]], show: Callable[[str, int, Any], None]
    ) -> list[Any]:
        """Return the outputs. pyopenvino shows no inner values."""
        results = self.executable.infer(dict(zip(self.inputs, feeds)))
        return [results[name] for name in self.outputs]

    def reset(self) -> None:
        """Do nothing: pyopenvino has no operations with state."""

"""Run model.xml and compare its outputs with the expected ones. Needs numpy, and the engine that settings.json names.

`irrun bisect` copies this script beside a model. It ends with status 1 if an output is wrong.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Infer = Callable[[Mapping[str, Any]], "Sequence[np.ndarray]"]


def openvino(settings: Mapping[str, Any]) -> Infer:
    """Return a function that runs the model with OpenVINO, and keeps its state from run to run."""
    import openvino as ov

    print("OpenVINO", ov.__version__)
    core = ov.Core()
    model = core.compile_model(core.read_model("model.xml"), settings.get("device", "CPU"), settings["properties"])
    request = model.create_infer_request()

    def tensor(array: np.ndarray, port: Any) -> Any:
        if port.get_element_type() == ov.Type.bf16:
            bits = (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
            return ov.Tensor(bits.view(np.uint8).reshape(-1), ov.Shape(array.shape), ov.Type.bf16)
        return ov.Tensor(np.ascontiguousarray(array) if array.ndim else array)

    def values(tensor: Any) -> np.ndarray:
        if tensor.get_element_type() == ov.Type.bf16:
            bits = np.array(tensor.data).view(np.uint16).astype(np.uint32) << 16
            return bits.view(np.float32).reshape(tuple(tensor.get_shape()))
        return np.array(tensor.str_data if tensor.get_element_type() == ov.Type.string else tensor.data)

    def infer(inputs: Mapping[str, Any]) -> Sequence[np.ndarray]:
        for position, port in enumerate(model.inputs):
            names = [port.get_node().get_friendly_name(), *port.get_names()]
            request.set_input_tensor(position, tensor(next(inputs[name] for name in names if name in inputs), port))
        request.infer()
        return [values(request.get_output_tensor(position)) for position in range(len(model.outputs))]

    return infer


def irrun(settings: Mapping[str, Any]) -> Infer:
    """Return a function that runs the model with irrun, and keeps its state from run to run."""
    import irrun

    print("irrun", irrun.__version__)
    if "threads" in settings:
        os.environ["IRRUN_THREADS"] = settings["threads"]
    model = irrun.compile("model.xml", exact="exact" in settings, precision=settings.get("precision", "f32"))
    return lambda inputs: [np.asarray(array) for array in model(dict(inputs)).arrays]


ENGINES: Mapping[str, Callable[[Mapping[str, Any]], Infer]] = {"openvino": openvino, "irrun": irrun}
"""What starts an engine, by the name that settings.json gives it."""


def difference(output: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> tuple[bool, str]:
    """Return whether an output is wrong, and its error in words."""
    if output.shape != expected.shape:
        return True, f"has shape {list(output.shape)}, not {list(expected.shape)}"
    if expected.dtype.kind in "OUS":
        wrong = np.asarray(output.astype(str) != expected.astype(str))
        return bool(wrong.any()), f"{wrong.sum()} of {wrong.size} strings are wrong"
    actual, target = output.astype(np.float64), expected.astype(np.float64)
    same = (actual == target) | (np.isnan(actual) & np.isnan(target))
    with np.errstate(all="ignore"):
        error = np.where(same, 0, np.abs(actual - target))
        finite = target[np.isfinite(target)]
        rms = np.sqrt(np.mean(np.square(finite))) if finite.size else 0
        wrong = ~same & ~(error <= atol + rtol * np.maximum(np.abs(target), rms))
    largest = error.max() if error.size else 0
    return bool(wrong.any()), f"{wrong.sum()} of {wrong.size} elements are wrong, the largest error is {largest:.3g}"


def main() -> int:
    """Run the model on each inputs file, and return 1 if an output is wrong, else 0."""
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    with open("settings.json", encoding="utf-8") as file:
        settings = json.load(file)
    infer = ENGINES[settings["engine"]](settings)
    status = 0
    for run in range(settings["runs"]):
        number = run if settings["runs"] > 1 else ""
        outputs = infer(np.load(f"inputs{number}.npz"))
        for (name, expected), output in zip(np.load(f"expected{number}.npz").items(), outputs):
            is_wrong, words = difference(output, expected, settings["rtol"], settings["atol"])
            print(f"run {run}, {name}: {words}")
            status |= is_wrong
    return status


if __name__ == "__main__":
    sys.exit(main())

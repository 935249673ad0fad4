"""`irrun export` next to PyTorch's own exporter: `python -m benchmarks.exports [NAME …] [--save FILE]`.

PyTorch exports each network to ONNX, and OpenVINO converts the same network to an IR, which `irrun export` turns into
ONNX. onnxruntime runs both files with one thread, in turn, call by call. The ratio is the least processor time of the
call of PyTorch's file, divided by that of irrun's: below 1, irrun's file is slower. Both get the same inputs; the error
is the largest difference of an output, relative to its largest value.

This takes the extras `bench` and `onnx`, and onnxscript.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import onnxruntime
import torch

from benchmarks.architectures import NETWORKS
from benchmarks.report import processor, store
from irrun.export import to_onnx

SECONDS: Final = 4.0
"""How long both files of a network run in turn."""


def files(name: str, folder: Path) -> tuple[Path, Path, list[np.ndarray]]:
    """Return the file of PyTorch, that of irrun, and the inputs of a network with random weights."""
    import openvino as ov

    torch.manual_seed(0)
    module, *inputs = NETWORKS[name]()
    module.eval()
    own, ours = folder / "own.onnx", folder / "irrun.onnx"
    torch.onnx.export(module, tuple(inputs), own, dynamo=True, verbose=False)
    model = ov.convert_model(module, example_input=tuple(inputs))
    model.reshape({port: list(tensor.shape) for port, tensor in enumerate(inputs)})
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    to_onnx(folder / "model.xml", ours, verify=False)
    return own, ours, [tensor.numpy() for tensor in inputs]


def session(path: Path, inputs: Sequence[np.ndarray]) -> Callable[[], Sequence[Any]]:
    """Return a function that runs a file with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    runner = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {port.name: array for port, array in zip(runner.get_inputs(), inputs, strict=True)}
    return lambda: runner.run(None, feeds)


def compared(name: str) -> Mapping[str, Any]:
    """Return the least times of a call of both files in ms, their ratio, and the error of irrun's file."""
    with tempfile.TemporaryDirectory() as folder:
        own, ours, inputs = files(name, Path(folder))
        runs = {"own": session(own, inputs), "irrun": session(ours, inputs)}
        first, second = (run() for run in runs.values())
        errors = [np.abs(a - b).max() / np.abs(a).max() for a, b in zip(first, second, strict=True)]
        least = dict.fromkeys(runs, float("inf"))
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for key, run in runs.items():
                begin = time.process_time()
                run()
                least[key] = min(least[key], time.process_time() - begin)
    times = {key: round(seconds * 1e3, 2) for key, seconds in least.items()}
    return {"network": name, **times, "ratio": round(least["own"] / least["irrun"], 3), "error": float(max(errors))}


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
def main(names: Sequence[str], save: Path | None) -> None:
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(False)
    rows: list[Mapping[str, Any]] = []
    for name in names or NETWORKS:
        rows.append(compared(name))
        print(rows[-1], flush=True)
    if save is not None:
        facts = {**processor(), "torch": torch.__version__, "onnxruntime": onnxruntime.__version__}
        store(save, "benchmarks.exports", facts, rows)


if __name__ == "__main__":
    main()

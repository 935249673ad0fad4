"""OpenVINO as a witness, in a child process, so that a crash of it does not end the tests.

The process uses whatever instructions the processor has: no test may depend on them.
"""

from __future__ import annotations

import atexit
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_WORKER = """
import pickle, sys
sys.modules["openvino_telemetry"] = None
import ml_dtypes
import numpy as np
import openvino as ov
from irrun.types import ELEMENT_TYPES, ElementType
from irrun.model.weights import Weights, pack

core = ov.Core()
HINTS = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": False, "INFERENCE_NUM_THREADS": 1}

def cpu(path, inputs):
    request = core.compile_model(core.read_model(path), "CPU", HINTS).create_infer_request()
    results = request.infer([tensor(a) for a in inputs])
    return [array(request.get_output_tensor(i)) for i in range(len(results))]

def state(path, inferences):
    request = core.compile_model(core.read_model(path), "CPU", HINTS).create_infer_request()
    for inputs in inferences:
        request.infer([tensor(a) for a in inputs])
    return [array(request.get_output_tensor(i)) for i in range(len(request.output_tensors))]

def evaluate(path, inputs):
    model = core.read_model(path)
    outputs = [ov.Tensor(o.element_type, ov.Shape([0])) for o in model.outputs]
    if not model.evaluate(outputs, [tensor(a) for a in inputs]):
        raise RuntimeError("no reference kernel")
    return [array(t) for t in outputs]

def ports(path, inputs):
    found = []
    for node in core.read_model(path).get_ordered_ops():
        ports = [*node.inputs(), *node.outputs()]
        found.append((node.friendly_name, [(str(p.element_type), str(p.partial_shape)) for p in ports]))
    return sorted(found)

def reshape(path, shapes):
    core.read_model(path).reshape({i: ov.PartialShape(str(shape)) for i, shape in enumerate(shapes)})
    return []

def tensor(a):
    element_type = ElementType.of(a.dtype)
    type = getattr(ov.Type, element_type.name)
    if not a.size:  # a numpy array of no elements has a null pointer, which OpenVINO refuses
        return ov.Tensor(type, ov.Shape(a.shape))
    if 0 < element_type.bits < 8:
        return ov.Tensor(np.frombuffer(pack(a, element_type), np.uint8).copy(), ov.Shape(a.shape), type)
    if a.dtype.isbuiltin == 2:  # bf16 and f8, which numpy has from ml_dtypes
        return ov.Tensor(np.array(a, order="C").view(f"u{a.itemsize}"), ov.Shape(a.shape), type)
    return ov.Tensor(np.array(a, order="C"))

def array(t):
    type = ELEMENT_TYPES[t.element_type.type_name]
    if not t.size:
        return np.empty(tuple(t.shape), type.dtype)
    if type.dtype.isbuiltin == 2 or 0 < type.bits < 8:  # bf16, f8 and what is packed
        raw = np.array(t.data).tobytes()
        return Weights(data=raw).tensor(0, len(raw), type, tuple(t.shape))
    return np.array(t.str_data if t.element_type == ov.Type.string else t.data).reshape(tuple(t.shape))

stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
while True:
    try:
        how, path, inputs = pickle.load(stdin)
    except EOFError:
        break
    try:
        answer = {"cpu": cpu, "state": state, "core": evaluate, "ports": ports, "reshape": reshape}[how](path, inputs)
    except Exception as error:
        answer = str(error)
    pickle.dump(answer, stdout)
    stdout.flush()
"""

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
"""Without this package, OpenVINO neither opens a connection, writes into the home directory, nor forks."""


class OracleError(Exception):
    """OpenVINO refused the model or crashed on it."""


class Oracle:
    """One OpenVINO process, started when first asked and again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(
        self, path: Path, inputs: Sequence[np.ndarray] | Sequence[Sequence[np.ndarray]], how: str = "cpu"
    ) -> list[Any]:
        """The outputs of the CPU plugin in f32 (``cpu``) or of the core reference kernels (``core``).

        ``state``, with the inputs of several inferences: the outputs of the last one.
        ``ports``, without inputs: the type and shape of each port of each node, as OpenVINO infers them.
        ``reshape``: nothing, or an error where the model does not take its inputs in these shapes, arrays of text.
        """
        if self._process is None or self._process.poll() is not None:
            atexit.register(self.close)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump((how, str(Path(path).resolve()), list(inputs)), self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.close()
            raise OracleError("OpenVINO crashed") from None
        if isinstance(answer, str):
            raise OracleError(answer)
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

"""The ONNX project's node tests, converted to IR by OpenVINO, run by irrun.

`python -m tools onnx_nodes [WORD]` runs those whose name contains WORD (all without one) and prints a table.
ONNX computes the expected outputs. A case counts where OpenVINO converts it and answers it correctly.
"""

from __future__ import annotations

import collections
import functools
import json
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import irrun
from places import IMPORTED

# Converts one case after the other and answers for each: OpenVINO can crash on one, and is then started again.
_WORKER = """
import json, pickle, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[1])
sys.modules["openvino_telemetry"] = None
import openvino as ov
from onnx_nodes import Node, same

folder, done = Path(sys.argv[2]), set(sys.argv[3:])
core = ov.Core()
hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
for node in pickle.loads((folder / "nodes.pickle").read_bytes()):
    if node.name in done:
        continue
    print("begin", node.name, flush=True)
    verdict = "OpenVINO differs"
    try:
        source = folder / "case.onnx"
        source.write_bytes(node.model)
        model = ov.convert_model(source)
        ov.serialize(model, folder / f"{node.name}.xml")
    except Exception:
        verdict = "not converted"
    else:
        try:
            request = core.compile_model(model, "CPU", hints).create_infer_request()
            verdict = "right"
            for inputs, expected in node.data_sets:
                results = request.infer([ov.Tensor(a) if a.size else ov.Tensor(ov.Type(a.dtype), ov.Shape(a.shape)) for a in inputs])
                got = []
                for i in range(len(results)):
                    t = request.get_output_tensor(i)
                    got.append(t.str_data if t.element_type == ov.Type.string else t.data)
                if not same(got, expected, node):
                    verdict = "OpenVINO differs"
        except Exception:
            verdict = "OpenVINO refuses"
    print("end", node.name, verdict, flush=True)
"""


@dataclass(frozen=True)
class Node:
    """A node test: an ONNX model, pairs of inputs and expected outputs, and the tolerances."""

    name: str
    model: bytes
    data_sets: Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Outcome:
    name: str
    verdict: str
    """``passed``, ``failed``, or why the case does not count."""
    why: str = ""


@functools.cache
def cases() -> list[Node]:
    """The node tests whose inputs and outputs are all tensors."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = collect_testcases(None)  # type: ignore[arg-type]  (None: of every operation)
    return [
        Node(c.name, c.model.SerializeToString(), c.data_sets, c.rtol, c.atol)
        for c in found
        if c.data_sets and all(_tensors(arrays) for pair in c.data_sets for arrays in pair)
    ]


def _tensors(arrays: Sequence[Any]) -> bool:
    return all(isinstance(a, (np.ndarray, np.generic)) for a in arrays)


def same(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], case: Node) -> bool:
    """Whether outputs are those that ONNX expects, within the case's tolerance."""
    if len(got) != len(expected):
        return False
    for a, b in zip(got, expected):
        b = np.asarray(b)
        if a.shape != b.shape:
            return False
        if b.dtype.kind in "USO":
            if a.astype(str).tolist() != b.astype(str).tolist():
                return False
        else:
            # narrow floats are rounded once for each operation here, and fewer times where ONNX computes in f32
            atol = 1e-3 if b.dtype.itemsize == 2 else max(case.atol, 1e-5)
            if not np.allclose(a.astype(np.float64), b.astype(np.float64), case.rtol, atol, equal_nan=True):
                return False
    return True


def run(names: Sequence[str] | None = None) -> Iterator[Outcome]:
    """The outcome of each case, or of those named. OpenVINO is started again where it crashes on one."""
    wanted = {c.name: c for c in cases() if names is None or c.name in names}
    done: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nodes.pickle").write_bytes(pickle.dumps(list(wanted.values())))
        while done < wanted.keys():
            command = [sys.executable, "-W", "ignore", "-c", _WORKER, json.dumps([*map(str, IMPORTED)]), folder, *done]
            current = None
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
                assert worker.stdout is not None
                for line in worker.stdout:
                    what, name, *verdict = line.split(maxsplit=2)
                    if what == "begin":
                        current = name
                    elif what == "end":
                        done.add(name)
                        current = None
                        yield _outcome(wanted[name], verdict[0].strip(), Path(folder, f"{name}.xml"))
            if current is None:
                break
            done.add(current)
            yield Outcome(current, "OpenVINO crashes")


def _outcome(case: Node, verdict: str, path: Path) -> Outcome:
    if verdict != "right":
        return Outcome(case.name, verdict)
    try:
        report = irrun.check(path)
        executable = irrun.compile(path, strict=True)
        for inputs, expected in case.data_sets:
            if not same(executable([np.asarray(a) for a in inputs]).arrays, expected, case):
                return Outcome(case.name, "failed", "other values than ONNX expects")
        if report.errors:
            return Outcome(case.name, "failed", f"runs, but does not check clean: {report.errors[0]}")
    except irrun.IrrunError as error:
        return Outcome(case.name, "failed", str(error).splitlines()[0])
    return Outcome(case.name, "passed")


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    counts: collections.Counter[str] = collections.Counter()
    for outcome in run([c.name for c in cases() if word in c.name]):
        counts[outcome.verdict] += 1
        if outcome.verdict == "failed":
            print(f"{outcome.name}: {outcome.why}", flush=True)
    print(*(f"{count:>6}  {verdict}" for verdict, count in counts.most_common()), sep="\n")
    judged = counts["passed"] + counts["failed"]
    print(f"{counts['passed'] / max(judged, 1):.1%} of the {judged} that OpenVINO converts and answers correctly")


if __name__ == "__main__":
    main()

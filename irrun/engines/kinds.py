"""The kinds of engines: one row for each, which every other module asks.

A new engine is a harness in ``irrun/engines/harnesses`` and a row at the end of ``_TABLE``. Then ``python -m tools
engine_tables`` writes the row into the tables of the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "ARRAYS", "DUMP", "INNER_VALUES", "IR", "KINDS", "ONNX", "OPTIONS", "OUTPUTS", "PRECISIONS", "PROPERTY",
    "RUNTIME_GRAPH", "Kind", "Option", "properties",
]  # fmt: skip

IR: Final = "OpenVINO IR"
ONNX: Final = "ONNX"
DUMP: Final = "a folder of `irrun run --dump`"
ARRAYS: Final = "a .npz of `irrun run -o`"
"""What engines read."""

OUTPUTS: Final = "outputs"
INNER_VALUES: Final = "inner values"
RUNTIME_GRAPH: Final = "the runtime graph"
"""What engines show."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of engines: the pattern that its value matches, and in words what to pass."""

    pattern: re.Pattern[str]
    words: str


OPTIONS: Final[Mapping[str, Option]] = {
    "device": Option(re.compile(r".+"), "the name of a device, such as CPU or GPU"),
    "precision": Option(re.compile(r"f32|f16|bf16"), "f32, f16 or bf16"),
    "threads": Option(re.compile(r"[1-9]\d{0,3}"), "a number from 1 to 9999"),
    "weights": Option(re.compile(r".+"), "the path of a .bin file"),
    "transform": Option(re.compile(r"paged|stateless|low-latency|moc"), "paged, stateless, low-latency or moc"),
    "source": Option(re.compile(r".+"), "the folder of a clone of the engine"),
    "python": Option(re.compile(r".+"), "the path of a Python interpreter"),
}
"""Every option that a user may write in the brackets of a side, by name."""

PROPERTY: Final = re.compile(r"[A-Z][A-Z0-9_]*")
"""The name of a property of OpenVINO, which is an option as well."""

PRECISIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "f32": {
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        "LP_TRANSFORMS_MODE": "NO",
    },
    "f16": {"INFERENCE_PRECISION_HINT": "f16"},
    "bf16": {"INFERENCE_PRECISION_HINT": "bf16"},
}
"""The properties of OpenVINO that make it compute in a precision. With f32, nothing is computed in less: OpenVINO's
hint alone leaves the caches of attention in u8, and quantizes activations beside compressed weights."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of engines, as in ``KIND[OPTIONS]:PATH``.

    ``example`` is a side of this kind, and ``summary`` says in at most 50 characters what runs there. ``reads`` lists
    the kinds of files that the engine reads, ``shows`` the values that it can show, and ``options`` what a user may
    pass (see ``OPTIONS``).
    """

    name: str
    example: str
    summary: str
    reads: tuple[str, ...]
    shows: tuple[str, ...]
    options: tuple[str, ...] = ()
    harness: str = ""
    """The name of the file in ``irrun/engines/harnesses``, without its ending. A recording has none: nothing runs."""
    takes: Mapping[str, Option] = field(default_factory=dict)
    """Options that have other values here than for other engines, by name."""
    own_options: Mapping[str, str] = field(default_factory=dict)
    """Options that the harness gets because the side is of this kind."""
    packages: str = ""
    """What to install with pip."""
    lacks: str = ""
    """What the engine does not have, for the documentation; empty for the engines that irrun is compared with daily."""
    loads_plugins: bool = False
    """Whether the harness loads the user's operations (``--plugin``)."""
    takes_properties: bool = False
    """Whether properties of OpenVINO (``KV_CACHE_PRECISION=u8``) are options."""
    is_bisected: bool = False
    """Whether ``bisect`` cuts parts out of its models: the script ``reproduce.py`` must be able to run the engine."""

    @property
    def is_recording(self) -> bool:
        """Whether the values were recorded, so that nothing runs."""
        return not self.harness

    @property
    def reads_more_than_ir(self) -> bool:
        """Whether a file may be an IR, but need not."""
        return IR in self.reads and len(self.reads) > 1


_OPERANDS: Final = {
    "precision": Option(re.compile(r"f32|bf16|int8-activations|auto"), "f32, bf16, int8-activations or auto")
}
"""The precisions of ``irrun.compile``."""

_TABLE: Final = (
    Kind(
        "irrun",
        "model.xml",
        "irrun, with its default plan",
        reads=(IR,),
        shows=(OUTPUTS, INNER_VALUES),
        options=("precision", "threads", "weights", "python"),
        harness="irrun",
        takes=_OPERANDS,
        packages="irrun",
        loads_plugins=True,
        is_bisected=True,
    ),
    Kind(
        "exact",
        "exact:model.xml",
        "irrun, each layer with the kernel that defines it",
        reads=(IR,),
        shows=(OUTPUTS, INNER_VALUES),
        options=("precision", "weights", "python"),
        harness="irrun",
        takes=_OPERANDS,
        own_options={"exact": "1"},
        packages="irrun",
        loads_plugins=True,
        is_bisected=True,
    ),
    Kind(
        "openvino",
        "openvino:model.xml",
        "the installed OpenVINO, by default on the CPU",
        reads=(IR, ONNX, "TensorFlow", "TensorFlow Lite", "PaddlePaddle"),
        shows=(OUTPUTS, INNER_VALUES, RUNTIME_GRAPH),
        options=("device", "precision", "threads", "weights", "transform", "python"),
        harness="openvino",
        packages="openvino",
        takes_properties=True,
        is_bisected=True,
    ),
    Kind(
        "evaluate",
        "evaluate:model.xml",
        "the reference kernels of OpenVINO's core",
        reads=(IR, ONNX, "TensorFlow", "TensorFlow Lite", "PaddlePaddle"),
        shows=(OUTPUTS, INNER_VALUES),
        options=("weights", "python"),
        harness="openvino",
        own_options={"evaluate": "1"},
        packages="openvino",
        lacks="state; operations and element types without `evaluate` in OpenVINO's core",
    ),
    Kind(
        "onnx",
        "onnx:model.onnx",
        "the reference evaluator of ONNX",
        reads=(ONNX,),
        shows=(OUTPUTS, INNER_VALUES),
        options=("python",),
        harness="onnx",
        packages="onnx",
    ),
    Kind(
        "ort",
        "ort:model.onnx",
        "onnxruntime",
        reads=(ONNX,),
        shows=(OUTPUTS, INNER_VALUES),
        options=("device", "threads", "python"),
        harness="ort",
        packages="onnxruntime",
    ),
    Kind(
        "onnxifier",
        "onnxifier:model.xml",
        "onnxruntime, behind the converter ONNXifier",
        reads=(IR,),
        shows=(OUTPUTS, INNER_VALUES),
        options=("device", "threads", "python"),
        harness="ort",
        own_options={"convert": "1"},
        packages="onnxifier onnxruntime",
        lacks="layers that become a node which ONNX does not have, element types without conversion, kernels that "
        "onnxruntime lacks",
    ),
    Kind(
        "pyopenvino",
        "pyopenvino:model.xml",
        "pyopenvino, from the clone that source= names",
        reads=(IR,),
        shows=(OUTPUTS,),
        options=("source", "python"),
        harness="pyopenvino",
        packages="networkx opencv-python-headless",
        lacks="types of layers and element types that it does not list",
    ),
    Kind("dump", "FOLDER", "nothing: the values that `irrun run --dump` wrote", reads=(DUMP,), shows=(INNER_VALUES,)),
    Kind("npz", "FILE.npz", "nothing: the outputs that `irrun run -o` wrote", reads=(ARRAYS,), shows=(OUTPUTS,)),
)

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _TABLE}
"""Every kind by name, in the order of the help. A path without a kind gets the first that reads its format alone."""


def properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of OpenVINO that the options of a side stand for. A property that is named wins."""
    found = dict(PRECISIONS[options["precision"]]) if "precision" in options else {}
    if "threads" in options:
        found["INFERENCE_NUM_THREADS"] = options["threads"]
    return found | {name: text for name, text in options.items() if PROPERTY.fullmatch(name)}

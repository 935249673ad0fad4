"""Export models to other formats: ``to_onnx`` writes ONNX.

The package ``onnx`` is needed (the extra ``onnx``), and ``onnxruntime`` to verify what is written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx

from irrun.api import PathLike, as_model
from irrun.diagnostics import ModelError, WriteError, diagnostic
from irrun.export.convert import convert
from irrun.export.ends import plain_ends, without_functions
from irrun.export.functions import domain_of
from irrun.export.verify import require_equal
from irrun.export.write import write
from irrun.inference.propagate import weights_missing
from irrun.model import Model

__all__ = ["NEWEST", "OLDEST", "OPSET", "Written", "convert", "plain_ends", "to_onnx"]

OLDEST: Final = 17
"""The oldest operation set of ONNX that is written."""
OPSET: Final = 21
"""The operation set that is written by default: the first with integers of 4 bits and scales of blocks."""
NEWEST: Final = onnx.defs.onnx_opset_version()
"""The newest operation set that the package ``onnx`` knows."""


@dataclass(frozen=True, slots=True)
class Written:
    """What ``to_onnx`` has written. ``files`` are the model and, if its constants lie beside it, their file.

    ``inputs`` and ``outputs`` are the names of the graph's tensors, those of ``states`` behind the others. ``states``
    maps the input of each variable to the output that holds its new value. ``nodes`` is the number of nodes.
    """

    files: tuple[Path, ...]
    opset: int
    nodes: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: Mapping[str, str]
    verified: bool
    functions: tuple[str, ...] = ()
    """The functions that the runtime has to bring, such as ``org.openvino.opset4:Proposal``."""


def to_onnx(
    model: Model | PathLike,
    path: PathLike,
    *,
    opset: int = OPSET,
    external: bool | None = None,
    functions: bool = False,
    verify: bool = True,
    feeds: Iterable[Mapping[int, np.ndarray]] | None = None,
) -> Written:
    """Write a model as ONNX to ``path``, and return what was written.

    - ``opset`` is the operation set of ONNX, from ``OLDEST`` to ``NEWEST``.
    - ``external`` says whether constants lie in a file beside the model, by default if they take about 2 GiB or more.
    - ``functions`` writes a layer that ONNX cannot say as a node of a domain of its own, such as
      ``org.openvino.opset8``, with the attributes of the layer. The caller's runtime has to bring this function.
    - ``verify`` runs the exported model in onnxruntime, and compares its outputs with those of irrun.
    - ``feeds`` are the inputs of these runs, arrays by position; inputs that are missing are random. By default, there
      are two runs.

    Around a function, both sides are verified: onnxruntime gets the outputs of the function from irrun, and must
    compute its inputs. ReadValue and Assign become inputs and outputs of the graph. ``onnx.checker`` checks each model.
    Nothing is written if an error is raised: ModelError (IR610) at a layer that ONNX cannot say or that computes
    something else there, EngineError (IR702) if onnxruntime is not installed, WriteError (IR011) if a file cannot be
    written, and the errors of ``irrun.read_model``.
    """
    model, path = as_model(model), Path(path)
    if model.weights is None and model.constants:
        raise ModelError(weights_missing(model))
    if not OLDEST <= opset <= NEWEST:
        message = f"irrun does not write operation set {opset} of ONNX"
        help = f"choose one from {OLDEST} to {NEWEST}, which the installed package onnx knows"
        raise ModelError(diagnostic("IR610", message, file=model.source.path, help=help))
    exported = convert(model, opset, functions=functions)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.resolve().parent) as folder:
            files = write(exported, Path(folder) / path.name, external=external)
            _check(model, files[0])
            if verify:
                ends = plain_ends(without_functions(exported))
                same = ends.exported is exported
                checked = files if same else write(ends.exported, Path(folder) / "f32" / path.name, external=external)
                require_equal(model, ends, checked[0], feeds)
            for file in reversed(files):
                os.replace(file, path.resolve().parent / file.name)
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        raise WriteError.of(path, error) from None
    graph = exported.proto.graph
    return Written(
        tuple(path.with_name(file.name) for file in files), opset, len(graph.node), tuple(i.name for i in graph.input),
        tuple(o.name for o in graph.output),
        {state.input: state.output for state in exported.states.values()}, verify,
        tuple(dict.fromkeys(f"{domain_of(f.layer)}:{f.layer.type}" for f in exported.functions)),
    )  # fmt: skip


def _check(model: Model, path: Path) -> None:
    """Raise ModelError (IR610) if ``onnx.checker`` refuses a file."""
    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        message = f"onnx.checker refuses the exported model: {error}"
        help = "report this bug in irrun together with the model"
        raise ModelError(diagnostic("IR610", message, file=model.source.path, help=help)) from None

"""Engines: irrun, OpenVINO, ONNX's evaluators and recorded values, each behind the same protocol.

``with irrun.engines.open("openvino:model.xml") as engine`` starts one in a process of its own. docs/engines.md
describes the protocol for those who write a harness for another engine.
"""

from irrun.engines.engine import ChildEngine, Engine
from irrun.engines.execution import RunNode, RunOutput, RuntimeGraph
from irrun.engines.folder import private_folder
from irrun.engines.kinds import KINDS, Kind
from irrun.engines.opening import at_once, open, open_all
from irrun.engines.outcomes import (
    Crash,
    Failure,
    Input,
    Loaded,
    Origin,
    Output,
    Outputs,
    Place,
    Refusal,
    Timeout,
    from_record,
    to_record,
)
from irrun.engines.places import computing_layers
from irrun.engines.process import Limits
from irrun.engines.recordings import Recording
from irrun.engines.sides import Side, names_engine, parse_side, parse_sides
from irrun.engines.values import Value

__all__ = [
    "KINDS",
    "ChildEngine",
    "Crash",
    "Engine",
    "Failure",
    "Input",
    "Kind",
    "Limits",
    "Loaded",
    "Origin",
    "Output",
    "Outputs",
    "Place",
    "Recording",
    "Refusal",
    "RunNode",
    "RunOutput",
    "RuntimeGraph",
    "Side",
    "Timeout",
    "Value",
    "at_once",
    "computing_layers",
    "from_record",
    "names_engine",
    "open",
    "open_all",
    "parse_side",
    "parse_sides",
    "private_folder",
    "to_record",
]

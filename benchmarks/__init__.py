"""How fast irrun is, next to OpenVINO's CPU plugin: `python -m benchmarks --help`."""

import sys

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # its thread would run beside what is timed

"""Read and compile models with the installed OpenVINO: one line of JSON for each path on standard input.

This file runs in the environment of a release. It needs Python 3.8 and the wheel of OpenVINO, and no irrun. ``releases``
starts it, and starts it again after a model that ends the process.
"""

import json
import os
import sys

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # it would open connections

try:
    from openvino import Core
except ImportError:  # before 2023.1
    from openvino.runtime import Core  # type: ignore[import-not-found, no-redef]


def main() -> None:
    """Answer each path with what failed: nothing, ``read`` or ``compile``, and the message of the error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # OpenVINO prints to standard output
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin, without which no internal operation is read
    for line in sys.stdin:
        stage = "read"
        try:
            model = core.read_model(line.rstrip("\n"))
            stage = "compile"
            core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": "1"})
            stage, message = "", ""
        except Exception as error:
            message = " ".join(str(error).split())[-400:]
        print(json.dumps([stage, message]), file=answers, flush=True)


main()

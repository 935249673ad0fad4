"""Store the case of a worker that crashed: ``python -m file_fuzz.store JSON``, in a process that does not run it."""

import json
import sys
import tempfile
from pathlib import Path

from file_fuzz.cases import cases_of

if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        cases = cases_of(arguments["kind"], arguments["seed"], Path(name), Path(arguments["corpus"]))
        cases.keep(arguments["number"], Path(arguments["folder"]), None)

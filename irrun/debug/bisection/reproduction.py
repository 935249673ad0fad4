"""Write what ``bisect`` has found as a folder that shows the fault with nothing but the candidate's engine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from irrun.debug.bisection.search import Bisection
from irrun.engines import KINDS, Side, harnesses
from irrun.engines.kinds import properties
from irrun.files import NewFile, write_file
from irrun.ir.write import save_model, to_xml

__all__ = ["write_reproduction"]

_SCRIPT: Final = Path(harnesses.__file__).parent / "reproduce.py"
"""The script that is copied. It lies beside the harnesses, because it, too, runs where irrun may not be installed."""
_PLAIN: Final = "biufcUS"
"""The kinds of dtypes that a .npy holds."""


def write_reproduction(
    bisection: Bisection, side: Side, folder: str | os.PathLike[str], rtol: float, atol: float
) -> None:
    """Write the smallest part, its inputs, its expected outputs, a script and the text of an issue to a folder.

    If outputs differ, and the part differs between the files of both sides, there is no issue: the file may be wrong.

    The script needs numpy and the engine of ``side``. It prints the error of each output, and ends with status 1 if one
    exceeds ``atol + rtol * max(abs(expected), rms)``, where rms is the root mean square of the expected output.
    Raises ValueError if the bisection has no part, and OSError if a file cannot be written.
    """
    if bisection.part is None:
        raise ValueError("the sides agree, or no part of the model can be run on its own")
    target, runs = Path(folder), len(bisection.inputs)
    target.mkdir(parents=True, exist_ok=True)
    save_model(bisection.part, target / "model.xml", compact=True)
    for run, (inputs, expected) in enumerate(zip(bisection.inputs, bisection.expected)):
        number = run if runs > 1 else ""
        _save_arrays(target / f"inputs{number}.npz", inputs)
        _save_arrays(target / f"expected{number}.npz", expected)
    options = {name: text for name, text in side.options.items() if name not in ("python", "weights")}
    kind = KINDS[side.kind]
    if kind.takes_properties:
        options = {**{n: text for n, text in options.items() if n == "device"}, "properties": properties(options)}
    settings = {"engine": kind.harness, **kind.own_options, **options, "runs": runs, "rtol": rtol, "atol": atol}
    _write(target / "settings.json", json.dumps(settings, indent=2) + "\n")
    _write(target / "reproduce.py", _SCRIPT.read_text("utf-8"))
    if not bisection.blames_file:
        _write(target / "issue.md", _issue(bisection))


def _save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    plain = {name: _plain(array) for name, array in arrays.items()}
    with NewFile(path) as new:
        np.savez(new.file, allow_pickle=False, **plain)
        new.finish()


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array that a .npy holds: strings of fixed width, and f32 in place of bf16, f8 and 4 bits."""
    if array.dtype.kind in "OT":
        return array.astype(np.str_)
    return array if array.dtype.kind in _PLAIN else array.astype(np.float32)


def _write(path: Path, text: str) -> None:
    write_file(path, text.encode())


def _issue(bisection: Bisection) -> str:
    """Return the text of an issue, in Markdown."""
    assert bisection.part is not None
    layers = "\n".join(f"- {layer.type} `{layer.name}`" for layer in bisection.layers)
    wrong = bisection.wrong
    assert wrong is not None
    seen = {
        "differ": "Its outputs differ from the expected ones: run `python reproduce.py`.",
        "crashed": f"The process crashes: {wrong.message}",
        "refused": f"The model is refused: {wrong.message}",
        "timeout": f"The run does not end: {wrong.message}",
    }[wrong.verdict]
    return _ISSUE.format(
        types=" + ".join(layer.type for layer in bisection.layers[:3]),
        verdict=wrong.verdict,
        engine=bisection.candidate,
        layers=layers,
        seen=seen,
        system=platform.platform(),
        processor=platform.machine(),
        xml=to_xml(bisection.part).decode("utf-8")[:_MAX_XML_CHARS],
    )


_MAX_XML_CHARS: Final = 20_000
"""The most characters of the model that the text of the issue shows."""

_ISSUE: Final = """# {types}: {verdict} in {engine}

{engine} on {system} ({processor}).

The attached model has these layers, constants aside:

{layers}

{seen}

To reproduce, unpack the attached files and run `python reproduce.py`. The expected outputs were computed from the
inputs by another engine.

<details><summary>model.xml</summary>

```xml
{xml}
```

</details>
"""

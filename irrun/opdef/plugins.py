"""Files that register operations, which a user passes by path."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Final

__all__ = ["load_plugin", "plugins"]

_PLUGIN: Final = "irrun_plugin_"
"""The prefix of the names of plugin modules in ``sys.modules``."""


def load_plugin(file: str) -> None:
    """Import a file that registers operations (``@irrun.op``).

    Raises OSError or ValueError if it cannot be imported, and whatever the file itself raises.
    """
    name = _PLUGIN + re.sub(r"[^a-zA-Z0-9_]", "_", Path(file).stem)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError("it is not a Python file; its name must end in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # engines load every plugin that is there
        raise


def plugins() -> list[str]:
    """Return the paths of the files that ``load_plugin`` has imported."""
    modules = [module for name, module in sys.modules.items() if name.startswith(_PLUGIN)]
    return [module.__file__ for module in modules if module.__file__]

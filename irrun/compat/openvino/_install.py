"""Install the stand-in in place of openvino."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Final

from irrun.compat.openvino._building.opsets import OPSETS
from irrun.compat.openvino._errors import NotCoveredModule
from irrun.compat.openvino._properties import MODULES

__all__ = ["install"]

_PACKAGE: Final = "irrun.compat.openvino"


class _Finder(importlib.abc.MetaPathFinder):
    """An import hook that raises NotCoveredModule for the modules of openvino."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        for prefix in ("openvino.", f"{_PACKAGE}."):  # the second comes from `from openvino import x`
            if fullname.startswith(prefix):
                part = fullname.removeprefix(prefix)
                is_own = prefix != "openvino." and importlib.machinery.PathFinder.find_spec(fullname, path) is not None
                if not is_own:
                    raise NotCoveredModule(f"openvino.{part}", sys.modules[_PACKAGE].nearest(part.partition(".")[0]))


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """Return the modules of the stand-in by the names under which openvino has them."""
    found = {"openvino": package, "openvino.runtime": package}
    for name in ("layout_helpers", "op", "preprocess"):
        found[f"openvino.{name}"] = getattr(package, name)
    found |= {f"openvino.opset{number}": opset for number, opset in OPSETS.items()}
    found |= {f"openvino.properties.{part}".rstrip("."): module for part, module in MODULES.items()}
    return found | {name.replace("openvino.", "openvino.runtime.", 1): m for name, m in found.items() if "." in name}


def install() -> None:
    """Make ``import openvino``, ``import openvino.runtime`` and their modules return the stand-in, in this process.

    Raises RuntimeError if openvino itself has been imported already.
    """
    package = sys.modules[_PACKAGE]
    if sys.modules.get("openvino", package) is not package:
        raise RuntimeError("openvino has been imported already; call install() before anything imports it")
    if "openvino" not in sys.modules:
        sys.modules |= modules(package)
        sys.meta_path.insert(0, _Finder())

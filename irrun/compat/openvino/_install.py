"""Install the stand-in in place of openvino."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any, Final

from irrun.compat.openvino._errors import NotCoveredModule

__all__ = ["install"]

_PACKAGE: Final = "irrun.compat.openvino"


class _Finder(importlib.abc.MetaPathFinder):
    """An import hook that raises NotCoveredModule for the modules of openvino."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        for prefix in ("openvino.", f"{_PACKAGE}."):  # the second comes from `from openvino import x`
            if fullname.startswith(prefix):
                raise NotCoveredModule(f"openvino.{fullname.removeprefix(prefix)}")


def install() -> None:
    """Make ``import openvino`` and ``import openvino.runtime`` return the stand-in, from now on in this process.

    Raises RuntimeError if openvino itself has been imported already.
    """
    package = sys.modules[_PACKAGE]
    if sys.modules.get("openvino", package) is not package:
        raise RuntimeError("openvino has been imported already; call install() before anything imports it")
    if "openvino" not in sys.modules:
        sys.modules["openvino"] = sys.modules["openvino.runtime"] = package
        sys.meta_path.insert(0, _Finder())

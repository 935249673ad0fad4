"""The registry of operations: register a version, and find the version that an operation set holds.

The file of an operation is imported when a model first names its type.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from irrun.opdef.operation import Op
from irrun.opdef.revisions import RELEASES

__all__ = ["all_ops", "find", "is_custom", "labels", "named", "op", "released", "resolve"]


_registry: dict[str, dict[int, type[Op]]] = {}
_named: dict[tuple[str, str], type[Op]] = {}
"""Operations of another operation set that share their type with one of OpenVINO's: by type and ``version``."""


_O = TypeVar("_O", bound=type[Op])


def op(type: str, *, since: int = 1, spec: str = "", version: str = "") -> Callable[[_O], _O]:
    """Register a class as an operation.

    ``type`` is the layer type, ``since`` the first opset that contains this version, and ``spec`` the page of the
    specification. A layer finds a custom operation under any ``version`` without a number, and under numbered opsets
    from ``since`` on. If OpenVINO has an operation of the same type, pass ``version``: then only layers with this
    ``version`` find the custom operation. Raises TypeError if another class is registered as the same version.
    """

    def register(cls: _O) -> _O:
        cls.type, cls.since, cls.spec = type, since, spec
        if version:
            if _home(_named.setdefault((type.lower(), version.lower()), cls)) != _home(cls):
                raise TypeError(f'{type} of the operation set "{version}" is registered twice')
            _named[type.lower(), version.lower()] = cls
            return cls
        if is_custom(cls) and not cls.__module__.startswith("irrun."):
            _load(None)  # irrun's own operations come first
        versions = _registry.setdefault(type.lower(), {})
        if since in versions and _home(versions[since]) != _home(cls):
            raise TypeError(f"{type}-{since} is registered twice")
        versions[since] = cls
        return cls

    return register


def _home(cls: type[Op]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


@cache
def _modules() -> dict[str, str]:
    """Return the source of each file of operations in lower case, by module name; empty if there is no source."""
    package = importlib.import_module("irrun.ops")
    sources: dict[str, str] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            spec = importlib.util.find_spec(f"irrun.ops.{module.name}")
            source = getattr(spec.loader, "get_source", None) if spec else None
            sources[module.name] = ((source and source(f"irrun.ops.{module.name}")) or "").lower()
    return sources


@cache
def _load(type: str | None) -> None:
    """Import the files that may declare a type: the file named after it, and files whose text contains its name.

    Import all files for None.
    """
    for name, source in _modules().items():
        if type is None or name.replace("_", "") == type or not source or f'"{type}"' in source:
            importlib.import_module(f"irrun.ops.{name}")


@cache
def _load_plugins() -> None:
    """Import the operation sets beside OpenVINO's numbered ones.

    They are the packages in ``irrun.extensions``, and those that other packages declare in the entry point group
    ``irrun.ops``.
    """
    from importlib import metadata  # imported here because the import is slow and seldom needed

    for extension in pkgutil.iter_modules(importlib.import_module("irrun.extensions").__path__):
        importlib.import_module(f"irrun.extensions.{extension.name}")
    for entry_point in metadata.entry_points(group="irrun.ops"):
        try:
            entry_point.load()
        except Exception as error:  # a bug in the other package; the model may not need its operations
            message = f"irrun cannot import the operations of {entry_point.value}: {error!r}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def find(type: str) -> dict[int, type[Op]]:
    """Return all versions of an operation, by ``since``. The result is empty if the type is unknown."""
    key = type.lower()
    if key not in _registry:
        _load(key)
    if key not in _registry:
        _load_plugins()
    if key not in _registry:
        _load(None)  # a file may compute the name of a type
    return _registry.get(key, {})


def resolve(type: str, opset: int | None, version: str = "") -> type[Op] | None:
    """Return the newest version of an operation that opset ``opset`` contains, or None if it contains none.

    For ``opset=None``, return the newest version of all. An operation that is registered for the operation set
    ``version`` comes before these.
    """
    if version and opset is None:
        _load_plugins()
        if named := _named.get((type.lower(), version.lower())):
            return named
    versions = [since for since in find(type) if opset is None or since <= opset]
    return find(type)[max(versions)] if versions else None


def named(type: str) -> list[type[Op]]:
    """Return the operations of other operation sets that share ``type`` with one of OpenVINO's."""
    _load_plugins()
    return [cls for (key, _), cls in _named.items() if key == type.lower()]


def is_custom(cls: type[Op]) -> bool:
    """Return whether an operation is not one of irrun's own."""
    return not cls.__module__.startswith("irrun.ops.")


def released(cls: type[Op]) -> str:
    """Return the first OpenVINO release with an operation, such as ``2024.5``, or an empty text if none is known.

    An internal operation takes it from its oldest revision, any other operation of OpenVINO from its opset.
    """
    if cls.revisions:
        return cls.revisions[0].release
    return "" if is_custom(cls) else RELEASES.get(cls.since, "")


def all_ops() -> list[type[Op]]:
    """Return all versions of all operations, sorted by type and version."""
    _load(None)
    _load_plugins()
    every = [*_named.values(), *(cls for versions in _registry.values() for cls in versions.values())]
    return sorted(every, key=lambda cls: (cls.type.lower(), cls.since))


def labels(cls: type[Op]) -> dict[str, str]:
    """Return the labelled clauses in the docstring of an operation: ``{"C1": "…"}``."""
    clauses: dict[str, str] = {}
    for match in re.finditer(
        r"^(C\d(?=  )|C\d\d) +(.+(?:\n    +.+)*)", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE
    ):
        clauses[match[1]] = re.sub(r"\s+", " ", match[2])
    return clauses

"""Remember what is known of a model, by the contents of all that it depends on.

An entry is a small JSON file, written aside and renamed, so that processes can share the folder, and anything in it can
be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import irrun
from irrun.base.edits import Edit, Fix
from irrun.base.identity import identity, status
from irrun.base.source import Source, Span
from irrun.diagnostics import Diagnostic
from irrun.files import write_file
from irrun.opdef.plugins import plugins

__all__ = ["Cache", "from_record", "to_record"]


class Cache:
    """Results in a folder, by hashes of what they depend on. A folder that cannot be written is no error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._program = _hash(_program(), sorted(map(identity, plugins())))

    def key(self, file: str, weights: str, options: Any) -> str:
        """Return the hash of what the result for a model depends on.

        It covers irrun and the packages that it uses, plugins, the options, and the path and contents of the .xml and
        of the .bin (see ``identity``). ``options`` must have a ``repr`` that tells them apart.

        An entry under a hash of the times of the files holds their key, so that unchanged files are not read.
        """
        times = (status(file), status(weights))
        known = None if None in times else _hash(self._program, "times", options, file, weights, times)
        if known is not None and isinstance(key := (self.get(known) or {}).get("key"), str):
            return key
        key = _hash(self._program, options, file, identity(file), weights, identity(weights))
        if known is not None and (status(file), status(weights)) == times:
            self.put(known, {"key": key})
        return key

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the entry with a key, or None if there is none that can be read."""
        try:
            entry = json.loads(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None
        return entry if isinstance(entry, dict) else None

    def put(self, key: str, entry: dict[str, Any]) -> None:
        """Store an entry. Nothing happens if it cannot be written."""
        path = self._path(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(entry, separators=(",", ":")).encode("ascii"), swept=True)


_PACKAGES: Final = ("numpy", "ml_dtypes", "lxml", "numba", "mkl", "regex", "sentencepiece")
"""The packages on which a result may depend."""


_PROCESS: Final = ("IRRUN_CACHE_DIR", "IRRUN_THREADS")
"""Settings that change no result."""


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()


@cache
def _program() -> str:
    """Return a hash that changes with Python, irrun, the packages that it uses, and its settings."""
    root = Path(irrun.__file__).parent
    sources = []
    for place, folders, files in os.walk(root):
        folders.sort()
        for file in sorted(files):
            if file.endswith(".py"):
                status = os.stat(os.path.join(place, file))
                sources.append((os.path.relpath(os.path.join(place, file), root), status.st_size, status.st_mtime_ns))
    versions = []
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions.append((package, metadata.version(package)))
    added = [(e.name, e.value, e.dist and e.dist.version) for e in metadata.entry_points(group="irrun.ops")]
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("IRRUN_") and k not in _PROCESS)
    return _hash(sys.version, irrun.__version__, sources, versions, added, settings)


def to_record(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as a dict for JSON, without its source."""
    span, fix = diagnostic.span, diagnostic.fix
    edits = [[getattr(edit, name) for name in Edit.__slots__] for edit in fix.edits] if fix else []
    return {
        **{name: getattr(diagnostic, name) for name in _PLAIN},
        "notes": list(diagnostic.notes),
        "span": span and [span.line, span.column, span.end],
        "fix": fix and [fix.title, edits, fix.safe],
    }


_PLAIN: Final = ("code", "severity", "message", "layer", "port", "file", "help", "label")
"""The fields of a diagnostic that JSON can hold as they are."""


def from_record(record: dict[str, Any], source: Source | None) -> Diagnostic:
    """Return the diagnostic of a dict that ``to_record`` has made. Raises KeyError, TypeError or ValueError."""
    span, fix = record["span"], record["fix"]
    return Diagnostic(
        **{name: record[name] for name in _PLAIN},
        notes=tuple(record["notes"]),
        span=span and Span(*span),
        fix=fix and Fix(fix[0], tuple(Edit(*edit) for edit in fix[1]), fix[2]),
        source=source,
    )

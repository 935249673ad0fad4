"""Put the document of a report and the front end of the page into one HTML file that needs no other file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from irrun.base.text import printable

__all__ = ["page"]

_FOLDER: Final = Path(__file__).parent / "page"

_MODULES: Final = (
    "document",
    "text",
    "colours",
    "visible",
    "layout",
    "drawing",
    "camera",
    "histogram",
    "details",
    "runtime",
    "overview",
    "search",
    "keyboard",
    "main",
)
"""The modules of the front end, each behind those that it imports."""

_IMPORT: Final = re.compile(r"^import\s[^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(async |)function|const|let|class)", re.MULTILINE)


def page(document: dict[str, Any]) -> str:
    """Return the page that shows a document.

    The policy of the page allows its own style and script by their hashes, and nothing else: no request, and no script
    that the name of a layer brings in.
    """
    style, script = _style(), _script()
    title = printable(document["model"]["name"] or Path(document["file"]).name)
    return _template().format(
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        title=html.escape(f"{title} · irrun"),
        style=style,
        document=embedded(document),
        script=script,
    )


def embedded(document: dict[str, Any]) -> str:
    """Return JSON that may stand in a ``<script>`` element, whatever texts it holds: it has no ``<`` and no ``&``.

    It is plain ASCII, so that line separators and surrogates of names are escapes, too.
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


@cache
def _template() -> str:
    return _read("page.html")


@cache
def _style() -> str:
    return _read("page.css")


@cache
def _script() -> str:
    """Return the library and the modules of the front end as one script, without ``import`` and ``export``.

    The modules share one scope, so that no two of them may define the same name at their top.
    """
    modules = "\n".join(_EXPORT.sub("", _IMPORT.sub("", _read(f"{name}.js"))) for name in _MODULES)
    library = re.sub(r"^//# sourceMappingURL=.*\n?", "", _read("vendor/dagre.min.js"), flags=re.MULTILINE)
    licence = _read("vendor/dagre.min.js.LEGAL.txt")
    return f"{licence}{library}\n(() => {{\n'use strict';\n{modules}\n}})();\n"

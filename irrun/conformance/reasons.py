"""Why an engine refuses a model: the words of its message that all models of one root cause share."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["reason"]

_MAX_CHARS: Final = 160
"""The most characters of a message that tell causes apart."""
_SITE: Final = r"(?:Exception from|failed at) ([\w/.-]+\.\w+):\d+:?\s*"
"""Where OpenVINO's message says which line of its source refuses."""
_OF_OPERATIONS: Final = re.compile(r"/nodes/(?!reference)|/ops?/|/ov_ops/|shape_inference|transformations|/reference/")
"""The sources of OpenVINO that belong to operations. A message from elsewhere has a cause for each operation."""
_FALLBACK: Final = r"(Not Implemented: .+?) Exception from \S+ Not Implemented: Cannot fallback.*"
"""The reason why the CPU plugin has no kernel, and the complaint that nothing else has one."""
_NODE: Final = r"While validating node (?:'(.*?)' with friendly_name '[^']*':|.*…$)"
"""The node that OpenVINO validates: its operation, inputs and outputs. A long message ends in it."""
_NOISE: Final = (
    (r"Not Implemented: |Unexpected: |Exception from [^:]+:\d+:? ?", ""),
    (r"Unsupported operation of type: \w+ name: .*?Details: |.*CALLBACK HAS THROWN: ", ""),
    (r"Operation name: .*| for op: .*|[. ]*Got:? ?\S*$|Node \S+ of type \w+ ", ""),
    (r"(?:\[CPU\] )?\b\w+ node with name '[^']*' ?(?=[A-Z])", ""),
    (r"(?:\[CPU\] )?\b\w+ node with name '[^']*'", "the node"),
    (r"\. (?:\w+=|Run workload with ).*", ""),
    (r"\b(support|from:|src_prc:) (bf16|boolean|[fiu]\d+)\b", r"\1 …"),
    (r"\[[^\]]*\]|\{[^}]*\}|\([^)]*\d[^)]*\)|'-?\d+'", "…"),
    (r"\b\w+_\d+\b|(?<=[:=] )-?\d+|(?<=[:=])-?\d+|\b\d{2,}\b", "…"),
    (r"\b(Axis|axis|index|Node) (-?\d+|data)\b", r"\1 …"),
    (r"(…[\s,:;]*)+", "… "),
)
"""What differs between messages of one cause, and what replaces it."""


def reason(operation: str, message: str) -> str:
    """Return the words that refusals of one root cause share.

    ``operation`` is the type of the operation that the case is about. The words begin with it, unless the message comes
    from the source of an operation and so tells causes apart, or with the transformation that fails.
    """
    text = re.sub(_FALLBACK, r"\1", message)
    sites = list(re.finditer(_SITE, text))
    condition = re.findall(r"Check '(.*?)' failed at", text)
    said = text[sites[-1].end() :] if sites else text
    internal = sorted({found for node in re.findall(_NODE, said) for found in re.findall(r"\b(?!opset)\w+::\w+", node)})
    words = _plain(re.sub(_NODE, "", said)) or (f"Check '{condition[-1]}' failed" if condition else "")
    if internal and "::" not in words:
        words += f" ({', '.join(internal)})"
    passes = re.findall(r"\[(\w+)\] END:", text)
    if passes:
        words = f"{passes[0]}: {words}"
    elif not sites or not _OF_OPERATIONS.search(sites[-1][1]):
        words = f"{operation}: {words or 'no message'}"
    return words if len(words) <= _MAX_CHARS else words[: _MAX_CHARS - 1] + "…"


def _plain(text: str) -> str:
    for pattern, new in _NOISE:
        text = re.sub(pattern, new, text)
    return " ".join(text.split()).strip(" .:…")

"""The codes of findings: the id, name and kind of each. ``irrun/explanations`` holds a page of prose for each code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

__all__ = ["CODES", "Code", "Kind", "Severity"]

Severity = Literal["error", "warning"]


class Kind(Enum):
    """The kinds of findings, and what irrun does with each.

    The columns: its severity; whether it blocks a run; the exit status of a command that ends with it; and what it is.
    """

    UNREADABLE = "error", True, 2, "a file holds no model that irrun can read"
    UNUSABLE = "error", True, 2, "a command, a call or its input cannot be used: the fault is not in a model"
    UNSUPPORTED = "error", True, 3, "a model needs what this irrun does not have"
    ERROR = "error", True, 1, "a model is wrong, or its run fails"
    TARGET = "error", False, 1, "a release of OpenVINO or a device that the user names does not take the model"
    LIMIT = "error", True, 1, "a run exceeds a limit of memory or time; it may succeed on another machine"
    HARMLESS = "error", False, 1, "a model states something wrong that a run does not need, such as a declared shape"
    WARNING = "warning", False, 0, "a model is valid and probably not what its author intended"

    def __init__(self, severity: Severity, blocks: bool, exit_status: int, meaning: str) -> None:
        self.severity: Severity = severity
        self.blocks = blocks
        self.exit_status = exit_status
        self.meaning = meaning


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a finding, such as IR401 dims-mismatch."""

    id: str
    name: str
    kind: Kind

    @property
    def doc(self) -> str:
        """What the finding means and how to correct its cause: the first paragraph of the page, on one line."""
        return " ".join(self._text().partition("\n\n")[0].split())

    @property
    def page(self) -> str:
        """The rest of the page in Markdown: why the finding matters, a wrong example and a right one."""
        return self._text().partition("\n\n")[2]

    def _text(self) -> str:
        from importlib import resources  # imported late: only commands that explain a code need it

        return (resources.files("irrun") / "explanations" / f"{self.id}.md").read_text("utf-8")


CODES: Final[dict[str, Code]] = {
    code.id: code
    for code in (
        # 0xx XML
        Code("IR000", "unreadable", Kind.UNREADABLE),
        Code("IR001", "not-xml", Kind.UNREADABLE),
        Code("IR002", "doctype", Kind.UNREADABLE),
        Code("IR003", "not-ir", Kind.UNREADABLE),
        Code("IR004", "ir-version", Kind.UNREADABLE),
        Code("IR005", "too-large", Kind.UNREADABLE),
        Code("IR006", "encoding", Kind.UNREADABLE),
        Code("IR007", "malformed-element", Kind.ERROR),
        Code("IR008", "irregular-fragment", Kind.WARNING),
        Code("IR009", "duplicate-element", Kind.ERROR),
        Code("IR010", "incomplete-layer", Kind.HARMLESS),
        Code("IR011", "unwritable", Kind.UNUSABLE),
        # 1xx graph
        Code("IR101", "duplicate-layer", Kind.ERROR),
        Code("IR102", "duplicate-port", Kind.ERROR),
        Code("IR103", "dangling-edge", Kind.ERROR),
        Code("IR104", "unconnected-input", Kind.ERROR),
        Code("IR105", "input-fed-twice", Kind.ERROR),
        Code("IR106", "cycle", Kind.ERROR),
        Code("IR107", "no-results", Kind.WARNING),
        Code("IR108", "unused-layer", Kind.WARNING),
        Code("IR110", "stray-edge", Kind.HARMLESS),
        Code("IR111", "unpaired-variable", Kind.HARMLESS),
        Code("IR112", "no-loop-condition", Kind.HARMLESS),
        Code("IR113", "runtime-option", Kind.WARNING),
        # 2xx operation and attributes
        Code("IR201", "unsupported-operation", Kind.UNSUPPORTED),
        Code("IR202", "missing-attribute", Kind.ERROR),
        Code("IR203", "bad-attribute", Kind.ERROR),
        Code("IR204", "unknown-attribute", Kind.WARNING),
        Code("IR205", "wrong-input-count", Kind.ERROR),
        Code("IR206", "wrong-output-count", Kind.ERROR),
        Code("IR207", "unknown-opset", Kind.UNSUPPORTED),
        Code("IR208", "assumed-attribute", Kind.WARNING),
        # 3xx element types
        Code("IR301", "type-not-allowed", Kind.ERROR),
        Code("IR302", "types-differ", Kind.ERROR),
        Code("IR303", "precision-mismatch", Kind.HARMLESS),
        Code("IR304", "edge-precision-mismatch", Kind.HARMLESS),
        Code("IR305", "unknown-precision", Kind.ERROR),
        # 4xx shapes
        Code("IR401", "dims-mismatch", Kind.HARMLESS),
        Code("IR402", "edge-dims-mismatch", Kind.HARMLESS),
        Code("IR403", "constraint", Kind.ERROR),
        Code("IR404", "bad-dim", Kind.ERROR),
        Code("IR405", "loose-dims", Kind.WARNING),
        Code("IR406", "doubtful-layer", Kind.WARNING),
        Code("IR407", "unknown-dim-spelling", Kind.HARMLESS),
        # 5xx weights
        Code("IR501", "weights-missing", Kind.ERROR),
        Code("IR502", "weights-range", Kind.ERROR),
        Code("IR503", "weights-size", Kind.ERROR),
        Code("IR504", "weights-content", Kind.ERROR),
        Code("IR505", "weights-overlap", Kind.WARNING),
        Code("IR506", "weights-unused", Kind.WARNING),
        Code("IR507", "not-finite", Kind.WARNING),
        Code("IR508", "weights-excess", Kind.WARNING),
        # 6xx execution
        Code("IR601", "bad-feed", Kind.UNUSABLE),
        Code("IR602", "not-as-declared", Kind.ERROR),
        Code("IR603", "kernel-failed", Kind.ERROR),
        Code("IR604", "out-of-memory", Kind.LIMIT),
        Code("IR605", "invalid-value", Kind.ERROR),
        Code("IR606", "bad-selection", Kind.UNUSABLE),
        Code("IR607", "timeout", Kind.LIMIT),
        Code("IR608", "edit-refused", Kind.ERROR),
        Code("IR609", "bad-call", Kind.UNUSABLE),
        Code("IR610", "export-refused", Kind.ERROR),
        # 7xx engines and comparisons
        Code("IR701", "bad-side", Kind.UNUSABLE),
        Code("IR702", "engine-unavailable", Kind.UNUSABLE),
        Code("IR703", "bad-tolerance", Kind.UNUSABLE),
        Code("IR704", "nothing-in-common", Kind.UNUSABLE),
        Code("IR705", "bad-comparator", Kind.UNUSABLE),
        Code("IR706", "bad-measurements", Kind.UNUSABLE),
        Code("IR707", "unpaired-inputs", Kind.UNUSABLE),
        # 8xx folders of language models
        Code("IR801", "bad-folder", Kind.UNUSABLE),
        Code("IR802", "bad-setting", Kind.UNUSABLE),
        Code("IR803", "vocabulary-mismatch", Kind.ERROR),
        Code("IR804", "unknown-special-token", Kind.ERROR),
        Code("IR805", "unfed-input", Kind.ERROR),
        Code("IR806", "bad-template", Kind.ERROR),
        Code("IR807", "no-text", Kind.WARNING),
        # 9xx releases and devices that a model is to run on
        Code("IR901", "operation-missing", Kind.TARGET),
        Code("IR902", "type-refused", Kind.TARGET),
        Code("IR903", "attribute-refused", Kind.TARGET),
        Code("IR904", "layer-refused", Kind.TARGET),
        Code("IR905", "file-refused", Kind.TARGET),
        Code("IR906", "device-limit", Kind.TARGET),
    )
}
"""Every code by its id. The first digit of an id is its group.

No id is used again for another fault, because users suppress findings by id.
"""

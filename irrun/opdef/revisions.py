"""Which release of OpenVINO has an operation: the releases of the opsets, and revisions of pages without a version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from irrun.opdef.inputs import Input, arity

__all__ = ["RELEASES", "Revision"]

RELEASES: Final = {
    1: "2020.1",
    2: "2020.2",
    3: "2020.4",
    4: "2021.1",
    5: "2021.2",
    6: "2021.3",
    7: "2021.4",
    8: "2022.1",
    9: "2022.2",
    10: "2022.3",
    11: "2023.0",
    12: "2023.1",
    13: "2023.2",
    14: "2024.0",
    15: "2024.5",
    16: "2026.0",
    17: "2026.2",
}
"""The first OpenVINO release with each opset, by the page of the available operation sets.

The page ends with opset15. Pull request 33630 of OpenVINO completed opset16 for release 2026.0; the wheel 2025.4.1 has
its operations, too. Pull request 34899 began opset17 for release 2026.2; the wheel 2026.4.1 has two of its operations.
"""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of an operation whose page changes without a version number: what a layer of this revision has."""

    release: str
    """The first OpenVINO release that is known to have this revision, such as ``2026.1``. Empty if there is none."""
    commit: str
    """The commit of openvinotoolkit/openvino that holds the page, in full. Empty if a wheel has it, but no page."""
    change: str
    """The difference from the revision before it, such as ``adds token_type_ids``."""
    inputs: tuple[Input, ...] | None = None
    """The inputs of this revision, or None for those that the operation declares."""
    without: tuple[str, ...] = ()
    """The attributes of the operation that this revision does not have yet. Each has a default in the class."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The defaults of attributes that differ from the defaults that the operation declares."""

    def __str__(self) -> str:
        page = f"page {self.commit[:7]}" if self.commit else "no page"
        return f"{self.release or 'no release'} ({page})"

    def default(self, attribute: str, declared: Any) -> Any:
        """Return the default of an attribute in this revision, None for one that it does not have.

        ``declared`` is the default that the operation declares.
        """
        return None if attribute in self.without else self.defaults.get(attribute, declared)

    def fits(self, declared: tuple[Input, ...], inputs: int, attributes: Collection[str]) -> bool:
        """Return whether a layer with this number of inputs and these attributes may be of this revision.

        ``declared`` are the inputs of the operation, ``attributes`` the attributes that the layer writes.
        """
        least, most = arity(self.inputs or declared)
        return least <= inputs <= (inputs if most is None else most) and not set(self.without) & set(attributes)

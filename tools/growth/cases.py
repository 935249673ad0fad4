"""All cases of the catalogue: this module imports those that fill it."""

from __future__ import annotations

from growth import bodies, elements, faults, graphs, pages
from growth.catalogue import CASES, Case

__all__ = ["CASES", "Case", "bodies", "elements", "faults", "graphs", "pages"]

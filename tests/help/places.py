"""Where the repository lies, and its folders that tests read."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""The root of the repository, or of the unpacked sdist."""
SAMPLES: Final = ROOT / "samples"
TESTS: Final = ROOT / "tests"
IMPORTED: Final = (ROOT, TESTS, TESTS / "help", ROOT / "tools")
"""The folders that tests and tools import from, as pytest does (``pythonpath`` in pyproject.toml)."""
INVALID: Final = TESTS / "checking" / "invalid"
"""Broken models, one fault each."""
DEPARTURES: Final = ROOT / "irrun" / "departures"
"""The smallest models of the departures of OpenVINO."""

"""irrun fuzz."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Irrun

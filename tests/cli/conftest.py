from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from irrun.cli import cli

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls irrun in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return lambda *args: CliRunner().invoke(cli, [str(a) for a in args])

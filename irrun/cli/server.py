"""``irrun server`` (serve): Serve an editor: findings while you type, hover, definitions."""

from __future__ import annotations

import click

from irrun import __version__
from irrun.cli import _servers

__all__ = ["command"]


@click.command("server")
def command() -> None:
    """Serve an editor: findings while you type, hover, definitions.

    The server speaks the Language Server Protocol on standard input and output; the editor starts it. docs/editors.md
    has the settings of VS Code, Neovim and Emacs. The server needs the extra `server`.
    """
    try:
        from irrun.server import language
    except ModuleNotFoundError as error:
        raise _servers.missing(error, "server") from None
    language.start(__version__)

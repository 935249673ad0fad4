"""``irrun completion`` (cache): Print the script that completes command lines in a shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

__all__ = ["command"]

_LINES: Final = {
    "bash": 'eval "$(irrun completion bash)"  # in ~/.bashrc; needs bash 4.4',
    "zsh": 'eval "$(irrun completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "irrun completion fish | source  # in ~/.config/fish/config.fish",
}
"""The line that each shell reads when it starts."""


@click.command("completion", epilog="\b\n" + "\n".join(_LINES.values()))
@click.argument("shell", type=click.Choice([*_LINES]))
def command(shell: str) -> None:
    """Print the script that completes command lines in a shell.

    The shell completes commands, options, codes, operations, files, and the layers and inputs of the model on the line.
    Add one of these lines to a file that the shell reads when it starts:
    """
    script = get_completion_class(shell)
    assert script is not None
    root = click.get_current_context().find_root()
    click.echo(script(root.command, {}, "irrun", "_IRRUN_COMPLETE").source())

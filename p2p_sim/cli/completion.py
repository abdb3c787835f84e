"""``p2p-sim completion``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.core.errors import InputError, near


@app.command("completion", cls=UniqueOptionsCommand, epilog="Example: p2p-sim completion bash > p2p-sim.bash")
@dataclass(frozen=True)
class CompletionCommand:
    """Print a script by which TAB completes verbs, options, protocols and data sets, for bash, zsh or fish.

    bash: p2p-sim completion bash > ~/.local/share/bash-completion/completions/p2p-sim

    zsh: p2p-sim completion zsh > FOLDER/_p2p-sim, where FOLDER is in fpath

    fish: p2p-sim completion fish > ~/.config/fish/completions/p2p-sim.fish
    """

    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Which shell the script is for.")]

    def execute(self, _command: Command) -> int:
        """Print the script."""
        from p2p_sim.cli import completion_scripts, known_words
        from p2p_sim.cli.known_words import SHELLS

        if self.shell not in SHELLS:
            raise InputError(
                f"shell {self.shell!r}: give one of {', '.join(SHELLS)}{near(self.shell, SHELLS)}"
            )
        written = {
            "bash": completion_scripts.bash,
            "zsh": completion_scripts.zsh,
            "fish": completion_scripts.fish,
        }
        sys.stdout.write(written[self.shell](known_words.places(), known_words.protocols()))
        return 0

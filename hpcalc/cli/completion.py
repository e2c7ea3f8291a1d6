"""Completion scripts for bash, zsh and fish, in the protocol of Click's own.

Click's scripts print an error when the program is absent, need bash 4.4, answer only every other TAB when zsh loads
them from its fpath, and lose the option when a value is typed as ``--option=value``; those in ``hpcalc/manual`` do not.
They are printed by ``_HPCALC_COMPLETE=bash_source hpcalc`` (zsh, fish alike) and stand, byte for byte the same, in
``completions/``. Only a TAB loads this module.
"""

from __future__ import annotations

from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete, add_completion_class

from hpcalc.files import shipped

__all__ = ["SCRIPTS", "register"]


class _Script(ShellComplete):
    """A shell whose script is a file."""

    def source(self) -> str:
        """The script, the name of the program and of its variable filled in."""
        return shipped(f"manual/hpcalc.{self.name}") % self.source_vars()


class Bash(_Script, BashComplete):
    """bash; Click's own class warns about the bash found on the PATH, which need not be the one that reads it."""


class Zsh(_Script, ZshComplete):
    """zsh."""


class Fish(_Script, FishComplete):
    """fish."""


# File name in completions/ -> who prints it. The names are those the shells look for.
SCRIPTS: dict[str, type[ShellComplete]] = {"hpcalc.bash": Bash, "_hpcalc": Zsh, "hpcalc.fish": Fish}


def register() -> None:
    """Let Click answer ``_HPCALC_COMPLETE`` with these scripts."""
    for shell in SCRIPTS.values():
        add_completion_class(shell)

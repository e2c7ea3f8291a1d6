"""A bar that moves while a long question is answered."""

from __future__ import annotations

import os
import sys
import time

import click

__all__ = ["Progress"]


class Progress:
    """A bar on stderr for what takes over a second, on a terminal only."""

    def __init__(self, delay: float = 1.0) -> None:
        self.start = time.monotonic() + delay
        self.shown = False
        self.active = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` steps are behind."""
        if self.active and total > 0 and time.monotonic() >= self.start:
            filled = round(20 * min(done, total) / total)
            click.echo(f"\r[{'#' * filled}{'.' * (20 - filled)}] {done}/{total}", nl=False, err=True)
            self.shown = True

    def __exit__(self, *exc: object) -> None:
        if self.shown:
            click.echo("\r" + " " * 40 + "\r", nl=False, err=True)

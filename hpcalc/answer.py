"""What every answer can do in a notebook: show itself in two lines, in HTML, in Markdown and as a picture.

An answer knows its numbers, not how they are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hpcalc.errors import ExitCode


class Answer:
    """Base of every result: it has a :meth:`document`, and is equal to an answer with the same one."""

    #: Shows an answer in one of the ways ``summary``, ``html``, ``markdown``, ``picture``: set by :mod:`hpcalc` itself.
    show: ClassVar[Callable[..., Any]]
    failure: Exception | None = None  # why there is no answer

    @property
    def exit_code(self) -> ExitCode:
        """Of the command line: 0, 1 over ``max_epsilon``, 3 without a finite answer."""
        return ExitCode.OK if self.failure is None else ExitCode.NO_FINITE_BOUND

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about this answer."""
        return ()

    def document(self) -> dict[str, Any]:
        """Plain data under the published keys: full precision, None for what is infinite."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(repr(self.document()))

    def __repr__(self) -> str:
        return str(Answer.show(self, "summary"))

    def _repr_html_(self) -> str:
        return str(Answer.show(self, "html"))

    def _repr_markdown_(self) -> str:
        return str(Answer.show(self, "markdown"))

    def plot(self, path: str | None = None) -> Any:
        """The picture, which a notebook shows; with a ``path`` (.svg, .png, .pdf) a file; both need matplotlib."""
        return Answer.show(self, "picture", path)

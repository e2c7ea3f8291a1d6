"""K from the operating system's entropy, and the search that runs K times and keeps the best alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

from hpcalc.laws.law import RunCount, checked_law

Result = TypeVar("Result")


def draw(law: RunCount) -> int:
    """Draw the number of runs of one search.

    Parameters
    ----------
    law : RunCount
        The law of K that the bound was computed for.

    Returns
    -------
    int
        K >= 0, from the operating system's entropy: there is no seed. Draw once for a search, and tell nobody.

    Raises
    ------
    TypeError, InvalidInput
        If ``law`` is not a law of K; for ``Threshold`` and ``AnyRuns``, whose runs are not counted beforehand.

    Examples
    --------
    >>> from hpcalc.laws import Fixed
    >>> draw(Fixed(3))
    3
    """
    return checked_law(law).sample(random.SystemRandom())


def best_of_k(run: Callable[[], Result], law: RunCount, *, key: Callable[[Result], Any] | None = None) -> Result | None:
    """Run K times, K drawn from a law, and return the best run alone: the search that ``hpcalc.bound`` prices.

    The price holds if every call of ``run`` draws its candidate afresh from one fixed distribution, keeps the stated
    guarantee, and leaves nothing behind (no log, no file, no dashboard) but what it returns.

    Parameters
    ----------
    run : callable
        One run of the base algorithm, without arguments; it returns what may be released. One that raises an
        ``Exception`` counts as a run and ranks last.
    law : RunCount
        The law of K.
    key : callable, optional
        The score of a result, more is better, in an order fixed in advance; the result itself by default. A score
        that is NaN, or raises, ranks last.

    Returns
    -------
    object or None
        The result with the largest score, of equals the earliest; None if K = 0 or no run came to a score.

    Raises
    ------
    TypeError, InvalidInput
        As in :func:`draw`, and if two scores cannot be compared.

    Examples
    --------
    >>> from hpcalc.laws import Fixed
    >>> scores = iter([0.25, 0.75, 0.5])
    >>> best_of_k(lambda: next(scores), Fixed(3))
    0.75
    """
    best: tuple[Any, Result] | None = None
    for _ in range(draw(law)):
        try:
            result = run()
            score: Any = result if key is None else key(result)
            usable = bool(score == score)  # not NaN
        except Exception:  # whatever stopped it, it was a run
            continue
        if usable and (best is None or score > best[0]):
            best = score, result
    return None if best is None else best[1]

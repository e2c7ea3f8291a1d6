"""Parameters that meet a target: always a value that passes, never one near the root.

Everything here asks one question, ``function(x) <= target``, of a function that is monotone in x (ε falls with γ and
σ, rises with μ, n, p, ρ and the base's ε). NaN and inf fail. The number that is printed has six significant digits, so
:func:`round_passing` rounds to the safe side, asks again, and makes sure that one unit the other way would fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal

from hpcalc.errors import InvalidInput, NoFiniteBound, TargetOutOfReach
from hpcalc.logmath import round_down, round_up

__all__ = ["passing_integer", "passing_value", "round_passing"]

_STEPS = 200


def passing_value(
    function: Callable[[float], float],
    target: float,
    start: float,
    *,
    rising: bool,
    lower: float = 1e-300,
    upper: float = 1e300,
    tolerance: float = 1e-10,
) -> float:
    """The x nearest to the root of ``function(x) = target`` that meets ``function(x) <= target``.

    Parameters
    ----------
    function : callable
        Monotone in ``x > 0``; NaN, inf and NoFiniteBound count as too large, other exceptions pass through.
    target : float
        Finite.
    start : float
        Where to begin, clipped to ``[lower, upper]``; any value brackets, a good one saves evaluations.
    rising : bool
        Whether the function rises with x. The answer is then the largest x that passes, else the smallest.
    lower, upper : float
        Ends of the search, > 0. Where everything up to an end passes, that end is the answer.
    tolerance : float
        Relative distance from the root at which to stop.

    Returns
    -------
    float
        A value that was evaluated and passes.

    Raises
    ------
    InvalidInput
        If the target is not finite.
    TargetOutOfReach
        If not even the safest end passes; the message tells what is reachable there.

    Notes
    -----
    Steps that double in ``log x`` bracket the root; then regula falsi on ``log function`` (Illinois variant) with a
    bisection every third step. At most 200 evaluations, usually about twelve.

    Examples
    --------
    >>> x = passing_value(lambda s: 1.0 / s, 4.0, 1.0, rising=False)
    >>> 1.0 / x <= 4.0, round(x, 6)
    (True, 0.25)
    """
    if not math.isfinite(target):
        raise InvalidInput("target_epsilon", target, "give a finite number")
    sign = 1.0 if rising else -1.0
    low_end, high_end = sorted((sign * math.log(lower), sign * math.log(upper)))

    def place(t: float) -> float:
        # the ends are hit exactly: exp(log(x)) may lie beside them
        if t in (low_end, high_end):
            return upper if (t == high_end) == rising else lower
        return min(max(math.exp(sign * t), lower), upper)

    def at(t: float) -> float:
        try:
            value = function(place(t))
        except NoFiniteBound:
            return math.inf
        return math.inf if math.isnan(value) else value

    def gap(value: float) -> float:
        if value > 0.0 and target > 0.0 and math.isfinite(value):
            return math.log(value / target) if value / target > 0.0 else -745.0
        return value - target

    # t = ±log x, oriented so that the function rises with t: small t passes
    t = min(max(sign * math.log(start), low_end), high_end)
    value = at(t)
    step = 1.0
    passing = failing = t
    good = bad = value
    if value <= target:
        while failing <= passing:
            if passing >= high_end:
                return place(passing)
            t = min(passing + step, high_end)
            value = at(t)
            if value <= target:
                passing, good, step = t, value, 2.0 * step
            else:
                failing, bad = t, value
    else:
        while passing >= failing:
            if failing <= low_end:
                edge = f"at {place(low_end):.6g}, the end of the range, it is still {bad:.6g}"
                raise TargetOutOfReach(f"no value reaches {target:.6g}: {edge}")
            t = max(failing - step, low_end)
            value = at(t)
            if value <= target:
                passing, good = t, value
            else:
                failing, bad, step = t, value, 2.0 * step

    g_good, g_bad = gap(good), gap(bad)
    side = 0
    for count in range(_STEPS):
        width = failing - passing
        if width <= tolerance or passing + 0.5 * width in (passing, failing):
            break
        if count % 3 == 2 or not (math.isfinite(g_bad) and g_bad > g_good):
            t = passing + 0.5 * width
        else:
            t = passing + width * min(max(-g_good / (g_bad - g_good), 0.0), 1.0)
            t = min(max(t, passing + 0.4 * tolerance), failing - 0.4 * tolerance)
        value = at(t)
        if value <= target:
            passing, g_good = t, gap(value)
            g_bad = 0.5 * g_bad if side < 0 else g_bad
            side = -1
        else:
            failing, g_bad = t, gap(value)
            g_good = 0.5 * g_good if side > 0 else g_good
            side = 1
    return place(passing)


def passing_integer(meets: Callable[[int], bool], low: int, high: int, *, scan: bool = False) -> int:
    """The largest n in ``[low, high]`` that meets a target.

    Parameters
    ----------
    meets : callable
        True for small n; true up to some n and false beyond, unless ``scan``.
    low, high : int
        Ends of the range.
    scan : bool
        Ask every n from ``low`` on and stop at the first that fails: for bounds that are not monotone, where an n
        counts only if every smaller one passes too.

    Raises
    ------
    TargetOutOfReach
        If ``low`` itself fails.

    Examples
    --------
    >>> passing_integer(lambda n: n * 0.3 <= 2.0, 1, 10**9)
    6
    """
    if not meets(low):
        raise TargetOutOfReach(f"not even {low} meets the target")
    if scan:
        n = low
        while n < high and meets(n + 1):
            n += 1
        return n
    step = 1
    while low < high and meets(min(low + step, high)):
        low = min(low + step, high)
        step *= 2
    high = min(low + step, high)
    while high - low > 1:
        middle = (low + high) // 2
        if meets(middle):
            low = middle
        else:
            high = middle
    return low


def round_passing(value: float, meets: Callable[[float], bool], *, up: bool, digits: int = 6) -> float:
    """``value`` with a few significant digits, still meeting the target, and the last such number.

    Parameters
    ----------
    value : float
        A value that passes, e.g. from :func:`passing_value`.
    meets : callable
        The same question through the public function; the rounded number is what is asked.
    up : bool
        Whether larger is safer (γ, σ) or smaller (μ, p, ρ).
    digits : int
        Significant decimal digits.

    Returns
    -------
    float
        It passes; one unit in its last digit to the unsafe side does not.

    Raises
    ------
    TargetOutOfReach
        If no number within 50 units passes (then ``value`` did not pass either).

    Examples
    --------
    >>> round_passing(0.24999999999, lambda x: 1.0 / x <= 4.0, up=True)
    0.25
    """
    context = Context(prec=digits)

    def neighbour(x: float, safer: bool) -> float:
        exact = Decimal(repr(x))
        return float(context.next_plus(exact) if safer == up else context.next_minus(exact))

    rounded = (round_up if up else round_down)(value, digits)
    for _ in range(50):
        if meets(rounded):
            break
        rounded = neighbour(rounded, True)
    else:
        raise TargetOutOfReach(f"no {digits}-digit number near {value!r} meets the target")
    for _ in range(50):
        bolder = neighbour(rounded, False)
        if not meets(bolder):
            break
        rounded = bolder
    return rounded

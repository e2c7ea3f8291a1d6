"""The best member of the truncated negative binomial family, its limits included.

The family runs from eta near -1 (mostly one run, now and then very many) over the logarithmic and the geometric law to
large eta, where it becomes Poisson given K >= 1; past infinity, at eta = -n, lie the binomial laws, and n = E[K] is a
fixed number of runs. What a law is worth at a target is smooth along this path but may have more than one peak, so the
path is sampled first and only then climbed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hpcalc.logspace import round_down
from hpcalc.questions.shapes import Shape, shape_of

__all__ = ["best_of_family"]

_SAMPLES = (-0.9, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0, 8.0, 20.0, 80.0)
_STRETCH = (1.02, 1.2, 1.5, 2.5, 5.0, 20.0)
_ROUNDS = 12


def best_of_family(worth: Callable[[Shape], float], poisson_mean: float | None) -> Shape:
    """The shape whose solved law is worth most.

    Parameters
    ----------
    worth : callable
        Worth of a shape once its scale is solved for; -inf if the target is out of its reach.
    poisson_mean : float or None
        Mean that a Poisson law has at the target: sizes of binomials are sought around it.

    Returns
    -------
    Shape
    """
    peak, value = _climb(worth)
    candidates = [(value, peak), *((worth(shape), shape) for shape in _limits())]
    if poisson_mean is not None:
        candidates.append(_best_binomial(worth, poisson_mean))
    return max(candidates, key=lambda pair: pair[0])[1]


def _limits() -> tuple[Shape, ...]:
    return shape_of("poisson"), shape_of("poisson:at-least-one")


def _tnb(x: float) -> Shape:
    """The law at ``x = log(1 + eta)``, eta with four significant digits."""
    return shape_of({"dist": "tnb", "eta": round_down(math.expm1(x), 4)})


def _climb(worth: Callable[[Shape], float]) -> tuple[Shape, float]:
    """Best eta: samples, then golden sections with parabolic steps around the best of them."""
    places = [math.log1p(eta) for eta in _SAMPLES]
    values = [worth(_tnb(x)) for x in places]
    top = max(range(len(places)), key=lambda i: values[i])
    best_x, best = places[top], values[top]
    if best == -math.inf:
        return _tnb(best_x), best
    left = (places[top - 1], values[top - 1]) if top > 0 else (math.log1p(-0.99), worth(_tnb(math.log1p(-0.99))))
    far = math.log1p(1000.0)
    right = (places[top + 1], values[top + 1]) if top + 1 < len(places) else (far, worth(_tnb(far)))
    for end in (left, right):
        if end[1] > best:
            best_x, best = end
    if best_x in (left[0], right[0]):
        return _tnb(best_x), best
    middle = (best_x, best)
    for count in range(_ROUNDS):
        if right[0] - left[0] < 4e-3:
            break
        x = _parabola(left, middle, right) if count % 3 < 2 else None
        wider = left if middle[0] - left[0] > right[0] - middle[0] else right
        if x is None or abs(x - middle[0]) < 2e-4:
            x = middle[0] + 0.382 * (wider[0] - middle[0])
        point = (x, worth(_tnb(x)))
        if point[1] > middle[1]:
            left, right = (middle, right) if x > middle[0] else (left, middle)
            middle = point
        elif x > middle[0]:
            right = point
        else:
            left = point
    return _tnb(middle[0]), middle[1]


def _parabola(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float | None:
    """Top of the parabola through three points; None if it has none between the outer two."""
    if not all(math.isfinite(value) for _, value in (a, b, c)):
        return None
    one = (b[0] - a[0]) * (b[1] - c[1])
    two = (b[0] - c[0]) * (b[1] - a[1])
    if one == two:
        return None
    x = b[0] - 0.5 * ((b[0] - a[0]) * one - (b[0] - c[0]) * two) / (one - two)
    return x if a[0] < x < c[0] else None


def _best_binomial(worth: Callable[[Shape], float], mean: float) -> tuple[float, Shape]:
    """Best number of candidates n of a binomial law."""

    def at(n: int) -> float:
        return worth(shape_of({"dist": "binomial", "n": n}))

    sizes = sorted({max(math.ceil(mean * stretch), 1) for stretch in _STRETCH})
    values = {n: at(n) for n in sizes}
    for _ in range(6):
        n = max(values, key=lambda size: values[size])
        below = max((size for size in values if size < n), default=None)
        above = min((size for size in values if size > n), default=None)
        neighbours = [n if below is None else (n + below) // 2, n if above is None else (n + above) // 2]
        fresh = set(neighbours) - set(values)
        if not fresh:
            break
        values.update((size, at(size)) for size in fresh)
    n = max(values, key=lambda size: values[size])
    return values[n], shape_of({"dist": "binomial", "n": n})

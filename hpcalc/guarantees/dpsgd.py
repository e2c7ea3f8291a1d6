"""DP-SGD: compositions of the Poisson-sampled Gaussian mechanism.

Neighbouring data sets differ by adding or removing one record (or a group's). The Rényi divergence is that of
``(1-q) N(0, sigma^2) + q N(1, sigma^2)`` from ``N(0, sigma^2)``; the other direction is never larger (I. Mironov,
K. Talwar, L. Zhang, "Rényi differential privacy of the sampled Gaussian mechanism", arXiv 1908.10530, Theorem 5), and
profile and region take the larger of both directions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hpcalc.errors import checked_number
from hpcalc.guarantees.composition import WithCore
from hpcalc.guarantees.convolved import Convolution
from hpcalc.guarantees.curves import CurveBase
from hpcalc.guarantees.guarantee import Guarantee, checked_count, checked_group, checked_orders
from hpcalc.guarantees.mechanisms import Gaussian, PureDP, exp_minus_line
from hpcalc.guarantees.region import times_expm1
from hpcalc.guarantees.tradeoff import Tails
from hpcalc.logspace import Array, distinct, log_ndtr, logaddexp, logsubexp, logsumexp, softplus

_INF = math.inf
_MAX_NODES = 4096  # of the integration grid: larger orders are answered by a closed form
_SCHEDULE = 70  # of more different noises at one rate so many are looked at


def _log_gain(h: Array, loss: Array) -> Array:
    """``log((w^(1+h) - 1 - (1+h)(w - 1)) / h)`` for the density ratio ``w = e^loss``, ``h = order - 1``.

    Subtracting the tangent at ``w = 1`` costs nothing in expectation (the mean of ``w`` is 1) and leaves a positive
    integrand, ``w`` times a sum of positive terms: no cancellation, however small the sampling rate.
    """
    near, grown = np.maximum(loss, -600.0), np.minimum(h * loss, 600.0)
    with np.errstate(divide="ignore"):
        return near + (h * loss - grown) + np.log(exp_minus_line(grown) / h + exp_minus_line(-near))


@lru_cache(maxsize=512)  # several bounds search the same grid of orders
def sampled_gaussian_rdp(rate: float, sigma: float, orders: tuple[float, ...], size: int = 1) -> Array:
    """Rényi divergence of one step in nats, the larger of both directions; ``size`` records are added or removed.

    With j of them in the batch with probability ``b_j`` the density ratio is
    ``w = sum_j b_j e^((j x - j^2/2) / sigma^2)``. The moment ``E[w^a]`` is integrated by the trapezoidal rule, at
    integer and fractional orders alike. The integrand is a Gaussian times an analytic function whose nearest
    singularity lies ``pi sigma^2`` off the real axis: the rule converges exponentially in units of that. For small
    sigma the singularity is deep in the tails of both peaks and the Gaussians alone decide. For orders too large for
    that, beyond about 1000 sigma, Minkowski's inequality gives
    ``rdp <= a/(a-1) log sum_j b_j e^((a-1) j^2 / (2 sigma^2))``, which is sharp there.
    """
    order, variance = np.array(orders), sigma * sigma
    h = order - 1.0
    j, log_b = _log_binomial(size, rate)
    out = np.asarray(order / h * np.maximum(_log_mixed(log_b, h[:, None] * j[1:] ** 2 / (2.0 * variance)), 0.0))
    spacing = min(sigma / 4.0, max(0.5 * variance, sigma / 40.0))
    near = order * size + 20.0 * sigma <= (_MAX_NODES if size == 1 else 4 * _MAX_NODES) * spacing
    batch = np.floor(np.log(order * size + 16.0 * sigma) / math.log(1.25))  # orders that share their nodes
    for one in distinct(batch[near]):
        chosen = near & (batch == one)
        x = np.arange(-10.0 * sigma - (size - 1.0), size * np.max(order[chosen]) + 10.0 * sigma + spacing, spacing)
        loss = _log_mixed(log_b, (j[1:] * x[:, None] - 0.5 * j[1:] ** 2) / variance)
        log_density = -0.5 * (x / sigma) ** 2 - math.log(sigma) - 0.5 * math.log(2.0 * math.pi)
        own = h[chosen]
        moment = logsumexp(_log_gain(own[:, None], loss) + log_density)
        if size > 1:  # with one record the other direction, w^-h - 1 + h (w - 1) in place of the gain, is never larger
            moment = np.maximum(moment, logsumexp(_log_gain(own[:, None], -loss) + loss + log_density))
        out[chosen] = np.minimum(softplus(moment + math.log(spacing) + np.log(own)) / own, out[chosen])
    return out


def _log_mixed(log_b: Array, growth: Array) -> Array:
    """``log(b_0 + sum_j b_j e^growth_j)`` over j >= 1, from what the sum exceeds 1 by where that is small."""
    with np.errstate(over="ignore"):
        excess = np.sum(times_expm1(log_b[1:], growth), axis=-1)
    plain = logaddexp(log_b[0], logsumexp(log_b[1:] + growth))
    return np.where(np.abs(excess) < 0.5, np.log1p(np.clip(excess, -0.5, 0.5)), plain)


@dataclass(frozen=True)
class SampledGaussian(CurveBase):
    """One step: rate in (0, 1), noise > 0, records that are added or removed at once."""

    rate: float
    sigma: float
    records: int = 1
    symmetric = False

    def describe(self) -> dict[str, Any]:
        return {"dpsgd": [self.rate, self.sigma, 1]}

    def rdp(self, orders: Array | float) -> Array:
        order = checked_orders(orders)
        out, finite = np.full(order.shape, _INF), np.isfinite(order)
        out[finite] = sampled_gaussian_rdp(self.rate, self.sigma, tuple(order[finite].tolist()), self.records)
        if not np.all(out >= 0.0):  # also refuses NaN
            raise FloatingPointError("the Rényi divergence of DP-SGD came out negative or undefined")
        return out

    @property
    def loss_kind(self) -> Hashable:
        return self.rate, self.records

    @classmethod
    def thinned(
        cls, uses: Sequence[tuple[Any, int]], upper: bool
    ) -> tuple[list[Guarantee], list[tuple[int, float, float]]]:
        """Of a long noise schedule some noises: each step is dominated by a mixture of its two neighbours.

        The profile of a step is ``E[(1 - q + q X - e^t)+] = q E[(X - k)+]``, X log-normal of variance
        ``s = 1/sigma^2`` and mean 1. It grows with s by ``exp(-(log k)^2 / (2 s))`` times what it grows by at k = 1, up
        to a factor that s has no part in: from s1 to s2 the share that is reached at s is largest at k = 1, where
        ``E[(X - 1)+]`` is the error function of ``(s/8)^(1/2)``. A mixture with that share of s2 dominates. For lower
        bounds each step has the largest noise of its cell.
        """
        rate, s = uses[0][0].rate, np.array([part.sigma**-2.0 for part, _ in uses])
        if len(uses) <= _SCHEDULE or uses[0][0].records > 1 or np.max(s) >= 50.0:  # there erf has few digits
            return super().thinned(uses, upper)
        if not upper:
            cell = np.floor((s - np.min(s)) / (np.ptp(s) + 1e-300) * 1.999 * _SCHEDULE)
            members = [np.flatnonzero(cell == one) for one in distinct(cell)]
            some = [(uses[one[np.argmin(s[one])]][0], sum(uses[at][1] for at in one.tolist())) for one in members]
            return super().thinned(some, upper)
        grid = np.linspace(np.min(s), np.max(s), _SCHEDULE)
        left = np.clip(np.searchsorted(grid, s, side="right") - 1, 0, _SCHEDULE - 2)
        reach, ends = (np.array([math.erf(math.sqrt(x / 8.0)) for x in part]) for part in (s, grid))
        share = np.clip((reach - ends[left]) / (ends[left + 1] - ends[left]), 0.0, 1.0)
        nodes: list[Guarantee] = [cls(rate, sigma * (1.0 - 1e-12)) for sigma in (grid**-0.5).tolist()]
        return nodes, list(zip(left.tolist(), share.tolist(), [float(count) for _, count in uses], strict=True))

    def loss_tails(self, loss: Array) -> Tails:
        """Tails of ``log sum_j b_j e^((j x - j^2/2) / sigma^2)``, b binomial.

        x is drawn from ``sum_j b_j N(j, sigma^2)`` (P) or from ``N(0, sigma^2)`` (Q).
        """
        sigma = self.sigma
        j, log_b = _log_binomial(self.records, self.rate)
        # Newton on the logarithm of the sum over j >= 1, which is convex in x, from a point to the right of the
        # solution, where one term alone is large enough: of one record's that is the solution.
        some = logsubexp(loss, log_b[0])
        goal = np.where(np.isneginf(some), 0.0, some)[:, None]
        x = np.min((sigma * sigma * (goal - log_b[1:]) + 0.5 * j[1:] ** 2) / j[1:], axis=1, keepdims=True)
        for _ in range(60):
            terms = log_b[1:] + (j[1:] * x - 0.5 * j[1:] ** 2) / (sigma * sigma)
            value = logsumexp(terms)[:, None]
            move = (value - goal) * sigma * sigma / np.sum(np.exp(terms - value) * j[1:], axis=1, keepdims=True)
            x = x - move
            if np.max(np.abs(move)) < 1e-13 * sigma * (1.0 + np.max(np.abs(x))):
                break
        z = (np.where(np.isneginf(some)[:, None], -_INF, x) - j) / sigma
        above, below = log_ndtr(-z), log_ndtr(z)
        p_above, p_below = (np.minimum(logsumexp(log_b + side), 0.0) for side in (above, below))
        return Tails(p_above, p_below, above[:, 0], below[:, 0])


@dataclass(frozen=True)
class DPSGD(WithCore):
    """DP-SGD with Poisson sampling, add/remove-one neighbours.

    Parameters
    ----------
    rate : float
        Probability in [0, 1] with which each record enters a step's batch.
    sigma : float
        Noise multiplier >= 0: standard deviation of the noise divided by the clipping norm (0 is no privacy).
    steps : int
        Number of steps >= 0.
    records : int
        Number of records that are added or removed at once, >= 1; each enters a batch independently.

    Raises
    ------
    InvalidInput
        If a value is outside its range or not a number.

    Examples
    --------
    >>> base = DPSGD(256 / 60000, 1.1, 14062)
    >>> round(float(base.rdp(2.0)), 5)
    0.32899
    """

    rate: float
    sigma: float
    steps: int
    records: int = 1

    def __post_init__(self) -> None:
        rate_help = "the sampling rate (RATE SIGMA STEPS) is batch size / data set size, a probability in [0, 1]"
        object.__setattr__(self, "rate", checked_number("dpsgd", self.rate, rate_help, lambda x: 0.0 <= x <= 1.0))
        sigma_help = "give a noise multiplier >= 0 (noise standard deviation / clipping norm)"
        object.__setattr__(self, "sigma", checked_number("dpsgd", self.sigma, sigma_help, lambda x: 0.0 <= x <= 1e150))
        object.__setattr__(
            self, "steps", checked_count("dpsgd", self.steps, 0.0, 1e15, "give a whole number of steps >= 0")
        )
        object.__setattr__(self, "records", checked_group(self.records))

    @property
    def own_warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        numbers = f"the noise multiplier {self.sigma:g} is below the sampling rate {self.rate:g}"
        swapped = f"{numbers}: are they swapped? dpsgd is RATE SIGMA STEPS"
        return (swapped,) if 0.0 < self.sigma < self.rate else ()

    def describe(self) -> dict[str, Any]:
        group = {} if self.records == 1 else {"group": self.records}
        return {"dpsgd": [self.rate, self.sigma, self.steps], **group}

    def group(self, size: int) -> DPSGD:
        """For a group of records, each of which enters a batch independently of the others (A. Ganesh, 2401.10294)."""
        return replace(self, records=self.records * checked_group(size))

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (
            "Every batch is a Poisson sample of the training records. Shuffled batches and batches of a fixed size are "
            "not covered: bring a curve from an accountant for them.",
            "Neighbouring data sets differ by adding or removing "
            + ("one record." if self.records == 1 else f"all of at most {self.records} records of one person."),
        )

    @cached_property
    def core(self) -> Guarantee:
        """All the steps; in closed form where nothing is revealed, nothing hidden or nothing sampled."""
        if self.rate == 0.0 or self.steps == 0:
            return PureDP(0.0)
        if self.sigma < 1e-150:
            return PureDP(_INF)
        if self.rate == 1.0:
            return Gaussian(self.sigma / self.records / math.sqrt(self.steps))
        return Convolution(((SampledGaussian(self.rate, self.sigma, self.records), self.steps),))


def _log_binomial(size: int, rate: float) -> tuple[Array, Array]:
    """Numbers of a group's records in a batch, and logarithms of their probabilities."""
    j = np.arange(size + 1.0)
    log_choose = np.cumsum(np.log(np.append(1.0, (size - j[:-1]) / (j[:-1] + 1.0))))
    return j, log_choose + j * math.log(rate) + (size - j) * math.log1p(-rate)

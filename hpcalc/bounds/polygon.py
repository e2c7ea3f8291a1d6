"""Polygons that enclose a trade-off curve: winners below W, losers above V, and where to cut them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hpcalc.guarantees.tradeoff import Tradeoff
from hpcalc.logspace import Array, Indices, distinct

# Covers the rounding of W and V: an error of this relative size moves ε by as much.
_MARGIN = 1e-12
# What is left out: points that doubles cannot tell apart, and lines so steep that they limit nothing that counts.
_LEAST_MASS, _STEEPEST, _FURTHEST = 1e-300, 650.0, 700.0


@dataclass(eq=False)
class Points:
    """Points (x, w) of a polygon, with the complements ``1 - x`` and ``1 - w``, which keep the digits near 1."""

    x: Array
    x_rest: Array
    w: Array
    w_rest: Array

    def take(self, index: Indices | slice) -> Points:
        """Select points."""
        return Points(*(getattr(self, part.name)[index] for part in fields(Points)))

    @property
    def logit(self) -> Array:
        """A coordinate along x that keeps its digits everywhere."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(np.log(self.x) - np.log(self.x_rest), -_FURTHEST, _FURTHEST))

    def moved(self, step: Array, slope: Array) -> Points:
        """The points moved by ``step`` in x along lines of the slopes given, as far as [0, 1] goes."""
        rise = slope * step
        moved = self.x + step, self.x_rest - step, self.w + rise, self.w_rest - rise
        return Points(*(np.clip(part, 0.0, 1.0) for part in moved))


def joined(*parts: Points) -> Points:
    """Points after points."""
    return Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Points)))


def between(values: Array, rest: Array) -> Array:
    """Differences of neighbours along the last axis, from whichever of a mass and its complement is smaller."""
    return np.asarray(np.where(values[..., :-1] < 0.5, np.diff(values), -np.diff(rest)))


@dataclass(eq=False)
class Polygon:
    """A polygon from x = 0 to x = 1: n+1 corners by increasing x, and the slopes of the n edges."""

    corner: Points
    slope: Array

    @classmethod
    def of_tangents(cls, point: Points, slope: Array) -> Polygon:
        """The polygon of lines through points, by increasing x, each to where it meets the next."""
        width, height = between(point.x, point.x_rest), between(point.w, point.w_rest)
        turn = np.diff(slope)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = (slope[1:] * width - height) / turn
        step = np.where(turn == 0.0, width, np.clip(np.nan_to_num(step), 0.0, width))
        meet = point.take(slice(None, -1)).moved(step, slope[:-1])
        last = point.take(slice(-1, None))
        last = last.moved(last.x_rest, slope[-1:])
        return cls(joined(point.take(slice(0, 1)), meet, last), slope)

    def at(self, place: Array) -> tuple[Points, Array, Array]:
        """Points at real-valued positions among the corners, and the slopes to their left and right."""
        left = np.minimum(place.astype(np.intp), self.slope.size - 1)
        share, a, b = place - left, self.corner.take(left), self.corner.take(left + 1)
        point = Points(
            *(getattr(a, f.name) + share * (getattr(b, f.name) - getattr(a, f.name)) for f in fields(Points))
        )
        return point, self.slope[np.maximum(np.ceil(place).astype(np.intp) - 1, 0)], self.slope[left]

    def over(self, x: Array, x_rest: Array) -> Points:
        """The polygon's points at masses x."""
        with np.errstate(divide="ignore"):
            edge = self._edge(np.clip(np.log(x) - np.log(x_rest), -_FURTHEST, _FURTHEST))
        start = self.corner.take(edge)
        moved = start.moved(np.where(start.x < 0.5, x - start.x, start.x_rest - x_rest), self.slope[edge])
        return Points(x, x_rest, moved.w, moved.w_rest)

    def filled(self, logits: Array) -> Polygon:
        """The same polygon with corners (of no angle) at further points."""
        own = self.corner.logit
        z = distinct(np.concatenate([own[1:-1], logits[(logits > own[0]) & (logits < own[-1])]]))
        point = self.over(1.0 / (1.0 + np.exp(-z)), 1.0 / (1.0 + np.exp(z)))
        corner = joined(self.corner.take(slice(0, 1)), point, self.corner.take(slice(-1, None)))
        every = np.concatenate([own[:1], z, own[-1:]])
        return Polygon(corner, self.slope[self._edge(0.5 * (every[:-1] + every[1:]))])

    def _edge(self, logit: Array) -> Indices:
        return np.clip(np.searchsorted(self.corner.logit, logit, side="right") - 1, 0, self.slope.size - 1)

    def coarser(self, index: Indices) -> Polygon:
        """The polygon of the edges to the right of some corners: on the safe side of this one, with fewer corners."""
        return Polygon.of_tangents(self.corner.take(index), self.slope[index])


def winners(curve: Tradeoff) -> Polygon:
    """The maximum of the curve's tangents, on or below W."""
    apart = np.diff(curve.x.u) > _LEAST_MASS
    apart[0] = True  # the curve starts at 0
    keep = np.flatnonzero(apart & (curve.log_slope[:-1] < _STEEPEST))
    x, w, slope = curve.x.take(keep), curve.w.take(keep), np.exp(curve.log_slope[keep])
    low = w.log_u <= w.log_q
    below = np.where(low, w.u * (1.0 - _MARGIN), 1.0 - np.exp(w.log_q) * (1.0 + _MARGIN))
    rest = np.where(low, 1.0 - below, np.exp(w.log_q) * (1.0 + _MARGIN))
    return Polygon.of_tangents(Points(x.u, np.exp(x.log_q), below, rest), slope)


def losers(curve: Tradeoff) -> Polygon:
    """The minimum of the mirrored tangents, on or above V."""
    back = slice(None, None, -1)
    y, v, log_slope = curve.x.complement().take(back), curve.w.complement().take(back), curve.log_slope[back]
    keep = np.flatnonzero((np.append(np.diff(y.u), 1.0) > _LEAST_MASS) & (log_slope < _STEEPEST))
    y, v, slope = y.take(keep), v.take(keep), np.exp(log_slope[keep])
    above, rest = v.u * (1.0 + _MARGIN), np.exp(v.log_q) * (1.0 - _MARGIN)
    # the line through the first point, prolonged to y = 0
    start = max(float(above[0] - slope[0] * y.u[0]), 0.0)
    point = Points(
        np.append(0.0, y.u),
        np.append(1.0, np.exp(y.log_q)),
        np.append(start, above),
        np.append(1.0 - start, rest),
    )
    return Polygon.of_tangents(point, np.append(slope[0], slope))


def chords(curve: Tradeoff) -> tuple[Polygon, Polygon]:
    """Winners and losers of the mechanism that has the curve's points and mixes between them."""
    out = []
    mirrored = [part.complement().take(slice(None, None, -1)) for part in (curve.x, curve.w)]
    for x, w in ((curve.x, curve.w), mirrored):
        # rounding may turn masses round that lie close
        mass, rest = np.maximum.accumulate(x.u), np.minimum.accumulate(np.exp(x.log_q))
        keep = np.append(np.flatnonzero(between(mass, rest) > _LEAST_MASS), mass.size - 1)
        point = Points(mass[keep], rest[keep], w.u[keep], np.exp(w.log_q)[keep])
        out.append(Polygon(point, between(point.w, point.w_rest) / between(point.x, point.x_rest)))
    return out[0], out[1]


def share_out(measures: list[Array], count: int) -> Indices:
    """About ``count`` indices of points, equally many in equal parts of every measure of the gaps between points."""
    total = np.zeros(measures[0].size + 1)
    for measure in measures:
        whole = float(np.sum(measure))
        if whole > 0.0:
            total[1:] += np.cumsum(measure / whole)
    return distinct(np.searchsorted(total, np.linspace(0.0, total[-1], count)).clip(0, total.size - 1))

"""The noise of observations, by how they differ from those around them."""

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from .frames import AbstractFrame
from .groups import Groups
from .normalise import AbstractCoordinates

FREEDOM = 128
"""Degrees of freedom of the noise at a place: an estimate of its variance is off by an eighth."""
UNSURE = 0.3
"""By how much the likeliest variance of the noise is off, as a share of it."""
BLOCK = 2**14
"""Groups that are looked at together."""
TINY = 1e-100
"""What nothing is divided by."""


class Scatter:
    """The standard deviation of the noise of single observations: `scatter(x [n d]) -> [n dy]`, that within the group
    which is nearest to a place and those around it, enough of them to be off by a sixteenth, as far as they differ from
    others by more than chance.

    **Arguments:** `std [m dy]`: of each group and those around it; where the groups are, `points [m d]` of a `frame`.
    **Cost:** O(log m) per place.
    """

    def __init__(self, std: np.ndarray, points: np.ndarray, frame: AbstractFrame, coordinates: AbstractCoordinates):
        self.std, self.points, self.tree = std, points, KDTree(points)
        self.frame, self.coordinates = frame, coordinates

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.std[self._nearest(x)] if len(x) else np.empty((0, self.std.shape[1]))

    def part(self, x: np.ndarray) -> "Scatter":
        """The same at places among `x`, from what these need; as it is where there are none."""
        some = np.unique(self._nearest(x)) if len(x) else slice(None)
        return Scatter(self.std[some], self.points[some], self.frame, self.coordinates)

    def _nearest(self, x):
        """Of several that are as near the first: on a lattice rounding errors do not decide."""
        count = min(4, len(self.points))
        distance, index = self.tree.query(self.frame(self.coordinates.positions(x)), count)
        distance, index = distance.reshape(-1, count), index.reshape(-1, count)
        return np.where(distance <= distance[:, :1] * (1 + 1e-9), index, len(self.points)).min(axis=1)


def noise_within(
    seen: Groups, points: np.ndarray, apart: np.ndarray, known: np.ndarray, likely: float | None
) -> np.ndarray:
    """The variance of the noise `[m dy]` at `points [m d]` of groups, by what is `apart [n dy]` from their means, less
    the variances that are `known [n dy]`; together with the `likely` one, which says more where errors are so unequal
    that the best observations stay alone. As far as places differ by more than chance from the mean of all, it is that
    of 128 degrees of freedom around each. **Cost:** O(m log m), the more the fewer observations a group has."""
    free = seen.weight * (1 - seen.weight / seen.total[seen.of_each])
    squares, freedom = seen.sums(seen.weight * np.square(apart) - free * known), seen.sums(free)
    of_all = squares.sum(axis=0) / np.maximum(freedom.sum(), TINY)
    around = min(max(round(FREEDOM * len(points) / max((seen.sizes - 1).sum(), 1)), 1), len(points))
    local = _sums_around(points, around, squares, freedom)
    of = np.maximum(local.freedom, TINY)
    if likely is not None:
        least = np.where(local.freedom > FREEDOM / 2, local.squares / of, np.inf).min(axis=0)
        plausible = np.maximum(likely, np.minimum(least, of_all))  # of a slow function the likeliest may be far too low
        chance = np.square(squares - of_all * freedom).sum(axis=0) / np.square(np.maximum(freedom.sum(), TINY))
        of_all += (plausible - of_all) * chance / (chance + np.square(UNSURE * plausible))
    here = local.squares / of - of_all
    by_chance = local.fourth - 2 * of_all * local.mixed + np.square(of_all) * local.freedoms
    by_chance = np.maximum(by_chance, 0.0) / np.square(of)
    surely = 1 + 2 * (2 * around / len(points)) ** 0.5  # two standard deviations of as many as are independent
    differ = 1 - surely * by_chance.sum(axis=0) / np.maximum(np.square(here).sum(axis=0), TINY)
    return np.maximum(of_all + np.maximum(differ, 0.0) * here, 0.0)


class _Around(NamedTuple):
    """Sums over the groups around each, `[m dy]`: of their squares and degrees of freedom, and of products of these."""

    squares: np.ndarray
    freedom: np.ndarray
    fourth: np.ndarray
    mixed: np.ndarray
    freedoms: np.ndarray


def _sums_around(points, number, squares, freedom):
    each = squares, freedom, np.square(squares), squares * freedom, np.square(freedom)
    tree, parts = KDTree(points), []
    for start in range(0, len(points), BLOCK):
        near = tree.query(points[start : start + BLOCK], number)[1].reshape(-1, number)
        parts.append([a[near].sum(axis=1) for a in each])
    return _Around(*(np.concatenate(sums) for sums in zip(*parts, strict=True)))

"""What places have in common with themselves at all times, and times with themselves at all places."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from .frames import HALF_SPAN
from .normalise import AbstractCoordinates
from .predict import Exact, Prediction
from .standardise import Standardiser
from .tile import Tiled

FEWEST = 5
"""Groups from which on levels are looked for, and other places (or times) that each has been seen at, in the mean."""
LARGER = 1.0
"""How many times the variance of what is left levels must have, at least."""
LEAST = 1e-10
"""The variance of what is left that is more than rounding errors, beside that of the values."""
ROUNDS, SETTLED = 200, 1e-6
"""In which levels along two groups of columns come to agree, and to what part of their standard deviation."""
EQUAL = 1e-6
"""The part by which variances differ that are one."""
UNEVEN = 0.05
"""Of a step, by what the steps of a lattice differ from whole numbers of the smallest, at most."""
RIDGE = 1e-6
"""Observations that say that a level is zero, so that all are told even where tables fall apart."""
WEIGHED = 8
"""How often levels are looked for where observations count by how much is left beside their known errors."""
SAME = 1e-5
"""The part of the range of places by which two may differ and are one, as after rounding to float32."""


class Levels(NamedTuple):
    r"""The main effect of some columns of `x`: of stations, say, a value each that is part of all observations there.

    **Shapes:** `columns`, which; `places [m k]`, the different rows of these; `values [m dy]` and their standard errors
    `unsure [m dy]`.
    """

    columns: tuple[int, ...]
    places: np.ndarray
    values: np.ndarray
    unsure: np.ndarray


def levels_of(
    coordinates: AbstractCoordinates,
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "n dy"],
    error: Float[np.ndarray, "n dy"] | None = None,
) -> tuple[list[Levels], Float[np.ndarray, "n dy"]]:
    r"""Levels of which values `y` are the sum and of what is left, `[n dy]`; none unless they vary by more than that.

    Monitoring networks see the same places at many times. Where wells differ by tens of metres and each varies by one,
    or all stations share a season that is far larger than what they differ by, no covariance of places and times says
    both: what is small is lost beside what is large (RMSE in gaps 0.72 and 0.83 of what is left, intervals of 95 % hold
    45 to 70 %; 0.45 to 0.49, and 89 to 93 %, where levels are taken off: `benchmarks/levels.py`). Climatologists take
    anomalies, statisticians main effects:

    $$y_i = a_{s(i)} + b_{t(i)} + r_i .$$

    The columns of `x` are cut in two in all ways that keep those of one unit together (`AbstractCoordinates.parts`).
    Of either part, if its rows come again and again beside others of the other part, there are levels, those of least
    squares; the cut is taken that leaves the least variance, and levels are kept that vary by more than that. Pictures,
    two columns of even steps, are not cut.

    **Cost:** sorting the columns; a second for a million rows.
    """
    if len(x) < FEWEST**2 or _is_picture(coordinates, x):
        return [], y
    sides, standardise = _Sides(coordinates.parts(x.shape[1]), x), Standardiser.of(y, error)
    values = standardise(y)
    known = np.zeros_like(values) if error is None else standardise.scaled(error).astype(float)
    best, least = [], np.full(y.shape[1], np.inf)
    for pair in sides.pairs():
        found, left = _kept(sides, [side for side in pair if sides.repeated(side)], values, np.square(known))
        as_good = np.all(left <= (1 + EQUAL) * least) and _width(found) > _width(best)  # one column tells of others
        if found and (as_good or np.all(left < (1 - EQUAL) * least)):
            best, least = found, left
    if not best:
        return [], y
    std, (first, *others) = standardise.std, best
    best = [first._replace(values=standardise.undo(first.values), unsure=first.unsure * std)]
    best += [of._replace(values=of.values * std, unsure=of.unsure * std) for of in others]
    return best, y - sum(of.values[sides.code(of.columns)] for of in best)


def _is_picture(coordinates, x):
    """Whether two columns have even steps each: neighbours in either direction say more than whole rows do."""
    return len(coordinates.parts(x.shape[1])) == x.shape[1] == 2 and all(map(_is_even, x.T))


def _is_even(column):
    values = np.unique(column)
    steps = np.diff(values) / np.diff(values).min(initial=np.inf)
    return bool(np.all(np.abs(steps - np.round(steps)) < UNEVEN) and steps.sum() <= 2 * len(steps))


def _width(levels):
    return sum(len(of.columns) for of in levels)


class Different(NamedTuple):
    """The different places `[p k]` among rows of `x`: which of them each row has, and which of the levels each place
    has, -1 where it was never seen."""

    places: np.ndarray
    rows: np.ndarray
    at: np.ndarray

    @property
    def known(self) -> np.ndarray:
        return self.at >= 0

    @property
    def new(self) -> np.ndarray:
        """Places that were never seen, `[m k]`."""
        return self.places[~self.known]


class LevelsEverywhere:
    """Levels at any places: where these were seen those that are known, elsewhere what a `map` of them predicts, their
    own chance deviations included."""

    def __init__(self, levels: Levels, coordinates: AbstractCoordinates, map: Exact | Tiled):
        self.levels, self.coordinates, self.map = levels, coordinates, map
        positions = coordinates.positions(levels.places)
        self.frame = coordinates.space(positions)
        self.tree = KDTree(self.frame(positions))

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Prediction:
        """Means, and standard deviations that are the same with and without noise."""
        some = self.different(x)
        mean, std = (np.take(a, some.at, axis=0) for a in (self.levels.values, self.levels.unsure))
        if not some.known.all():
            predicted = self.map(some.new)
            mean[~some.known], std[~some.known] = predicted.mean, predicted.std()
        return Prediction(mean[some.rows], std[some.rows], std[some.rows])

    def different(self, x: Float[np.ndarray, "n d"]) -> Different:
        places, rows = np.unique(x[:, self.levels.columns], axis=0, return_inverse=True)
        away, nearest = self.tree.query(self.frame(self.coordinates.positions(places)))
        return Different(places, rows.reshape(-1), np.where(away <= 2 * HALF_SPAN * SAME, nearest, -1))


class _Sides:
    """Groups of the columns of `x`, and which row of the different ones of these each observation has; `least`: how
    many there are of each, at least."""

    def __init__(self, parts: Sequence[tuple[int, ...]], x: np.ndarray):
        self.parts, self.x, self.codes = parts, x, {}
        self.least = {part: max(len(np.unique(x[:, column])) for column in part) for part in parts}

    def pairs(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        first, *others = self.parts
        for count in range(len(others)):
            for more in combinations(others, count):
                rest = [part for part in others if part not in more]
                yield tuple(sum((first, *more), ())), tuple(sum(rest, ()))

    def code(self, side: tuple[int, ...]) -> np.ndarray:
        if side not in self.codes:
            code = np.zeros(len(self.x), int)
            for column in side:
                own = np.unique(self.x[:, column], return_inverse=True)[1]
                code = _numbered(code * (own.max() + 1) + own)
            self.codes[side] = code
        return self.codes[side]

    def repeated(self, side: tuple[int, ...]) -> bool:
        """Whether its rows come again and again, beside others of the other columns."""
        if any(set(part) <= set(side) and FEWEST * least > len(self.x) for part, least in self.least.items()):
            return False
        number, every = (self.code(columns).max() + 1 for columns in (side, tuple(sorted(sum(self.parts, ())))))
        return bool(number >= FEWEST and every >= FEWEST * number)

    def places(self, side: tuple[int, ...]) -> np.ndarray:
        first = np.unique(self.code(side), return_index=True)[1]
        return self.x[first][:, side]


def _numbered(code):
    return np.unique(code, return_inverse=True)[1].reshape(-1)


def _kept(sides, some, y, known):
    """Levels of those of the groups of columns that have large ones, and the variance `[dy]` that is left beside the
    `known` ones `[n dy]` of errors."""
    while some:
        codes = [sides.code(side) for side in some]
        variance = np.ones(y.shape[1])
        for _ in range(WEIGHED if known.any() else 0):
            _, variance = _least_squares(codes, y, variance / (variance + known))
        weight = variance / (variance + known)
        levels, variance = _least_squares(codes, y, weight)
        shares = [len(level) / len(y) * variance for level in levels]
        of_levels = [np.var(level[code], axis=0) - s for level, code, s in zip(levels, codes, shares, strict=True)]
        large = [np.all(of > LARGER * variance) for of in of_levels]
        if np.any(variance <= 2 * LEAST):
            return [], variance
        if all(large):
            counts = [_sums(code, weight, len(level)) for code, level in zip(codes, levels, strict=True)]
            unsure = [np.sqrt(variance / count) for count in counts]
            found = zip(some, map(sides.places, some), levels, unsure, strict=True)
            return [Levels(*of) for of in found], variance
        some = [side for side, is_large in zip(some, large, strict=True) if is_large]
    return [], np.full(y.shape[1], np.inf)


def _least_squares(codes, y, weight):
    """Levels `[m dy]` of groups of rows, in turns, the first ones with the mean of all; and the variance `[dy]` of what
    they leave, of an observation that counts fully."""
    middle = np.sum(weight * y, axis=0) / weight.sum(axis=0)
    left = y - middle
    levels = [np.zeros((code.max() + 1, y.shape[1])) for code in codes]
    totals = [_sums(code, weight, len(level)) + RIDGE for code, level in zip(codes, levels, strict=True)]
    for _ in range(ROUNDS):
        moved = 0.0
        for code, level, total in zip(codes, levels, totals, strict=True):
            more = (_sums(code, weight * left, len(level)) - RIDGE * level) / total
            level += more
            left = left - more[code]
            moved = max(moved, np.abs(more).max())
        if moved < SETTLED or len(codes) == 1:
            break
    levels[0] += middle
    freedom = max(len(y) - sum(map(len, levels)), 1)
    return levels, np.sum(weight * np.square(left), axis=0) / freedom + LEAST


def _sums(code, a, number):
    return np.stack([np.bincount(code, column, number) for column in a.T], axis=1)

"""What places have in common with themselves at all times, and times with themselves at all places."""

import copy
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from .normalise import FAR, AbstractCoordinates
from .predict import Exact, Prediction
from .standardise import Standardiser
from .tile import Tiled

FEWEST = 5
"""Groups from which on levels are looked for, and other places (or times) that each has been seen at, in the mean."""
LARGER = 0.5
"""How many times the variance of what is left levels must have, at least."""
LEAST = 1e-10
"""The variance of what is left that is more than rounding errors, beside that of the values."""
ROUNDS, SETTLED = 200, 1e-6
"""In which levels along two groups of columns come to agree, and to what part of their standard deviation."""
EQUAL = 1e-6
"""The part by which variances differ that are one."""
UNEVEN = 0.05
"""Of a step, by what the steps of a lattice differ from whole numbers of the smallest, at most."""
WEIGHED, AGREED = 8, 0.01
"""How often levels are looked for where observations count by how much is left beside their known errors, unless that
agrees to such a part before."""
SAME, NEAR = 2 * np.finfo(np.float32).eps, 0.1
"""The part of the largest coordinate by which two may differ and are one, and of the way to the next place."""


class Levels(NamedTuple):
    r"""The main effect of some columns of `x`: of stations, say, a value each that is part of all observations there.

    **Shapes:** `columns`, which; `places [m k]`, the different rows of these; `values [m dy]` and their standard errors
    `unsure [m dy]`; `left [dy]`, the standard deviation of what they leave, 0 where that is not known.
    """

    columns: tuple[int, ...]
    places: np.ndarray
    values: np.ndarray
    unsure: np.ndarray
    left: np.ndarray | float = 0.0


def levels_of(
    coordinates: AbstractCoordinates,
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "n dy"],
    error: Float[np.ndarray, "n dy"] | None = None,
) -> tuple[list[Levels], Float[np.ndarray, "n dy"]]:
    r"""Levels of which values `y` are the sum and of what is left, `[n dy]`; none unless they vary about as much.

    Monitoring networks see the same places at many times. Where wells differ by tens of metres and each varies by one,
    or all stations share a season that is far larger than what they differ by, no covariance of places and times says
    both: what is small is lost beside what is large (of levels and of a season five times as large RMSE in gaps is 0.74
    and 0.86 of what is left, 95 % intervals hold 66 and 60 %; 0.49 and 87 to 90 % where they are taken off:
    `benchmarks/levels.py`). Climatologists take anomalies, statisticians main effects:

    $$y_i = a_{s(i)} + b_{t(i)} + r_i .$$

    The columns of `x` are cut in two in all ways that keep those of one unit together (`AbstractCoordinates.parts`).
    Of either part, if its rows come again and again beside others of the other part, there are levels, those of least
    squares; the cut is taken that leaves the least variance, and levels are kept that have half of that, at least.
    Pictures, two columns of even steps, are not cut.

    Where a table falls apart, into stations of one time and others of another, it has levels along one part of the
    columns only.

    **Cost:** 0.1 s for a million rows none of which come again, 2 to 7 s where they do.
    """
    if len(x) < FEWEST**2:
        return [], y
    sides, standardise = _Sides.of(coordinates, x), Standardiser.of(y, error)
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
    restored = [standardise.undo(first.values), *(of.values * std for of in others)]
    best = [
        of._replace(values=own, unsure=of.unsure * std, left=of.left * std)
        for of, own in zip(best, restored, strict=True)
    ]
    return best, y - sum(of.values[sides.code(of.columns)] for of in best)


def come_again(coordinates: AbstractCoordinates, x: Float[np.ndarray, "n d"]) -> bool:
    """Whether places, or times, come so often that values there may have levels, whatever they are."""
    if len(x) < FEWEST**2:
        return False
    sides = _Sides.of(coordinates, x)
    return any(map(sides.repeated, chain.from_iterable(sides.pairs())))


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

    def shares(self, of_known: np.ndarray | float) -> np.ndarray:
        """Those of each row, `[n dy]` or `[n 1]`: all of what was never seen."""
        return np.where(self.known[self.rows, None], of_known, 1.0)


class LevelsEverywhere:
    """Levels at any places: where these were seen those that are known, elsewhere what a `map` of them predicts, their
    own chance deviations included. A place of which less is known than levels differ by is taken for one of those.

    **Arguments:** `levels`; the `coordinates` of their columns; `map`: a predictor of `levels.values [m dy]` from
    `levels.places [m k]`. **Cost:** that of the map at the different places among `x` that were never seen.
    """

    def __init__(self, levels: Levels, coordinates: AbstractCoordinates, map: Exact | Tiled):
        self.levels, self.coordinates, self.map = levels, coordinates, map
        self.positions = coordinates.positions(levels.places)
        self.frame = coordinates.space(self.positions)
        self.tree = KDTree(self.frame(self.positions))
        self.apart = self.tree.query(self.frame(self.positions), 2)[0][:, 1]
        self.trusted = np.all(levels.unsure < levels.values.std(axis=0), axis=1)  # of others the map knows more

    def __call__(self, x: Float[np.ndarray, "n d"], share: Float[np.ndarray, "n dy"] | float = 1.0) -> Prediction:
        """Means, and standard deviations that are the same with and without noise; `share`: of the chance deviations
        of levels that are known (`unheard`)."""
        some = self.different(x)
        mean, std = (np.take(a, some.at, axis=0) for a in (self.levels.values, self.levels.unsure))
        if not some.known.all():
            predicted = self.map(some.new)
            mean[~some.known], std[~some.known] = predicted.mean, predicted.std()
        std = std[some.rows] * some.shares(share)
        return Prediction(mean[some.rows], std, std)

    def unheard(self, rest: Prediction) -> Float[np.ndarray, "n dy"]:
        r"""The share of a level's chance deviation that is left in the sum, at places where what levels leave is
        predicted as `rest`.

        If a level is $e$ too high all that is seen of its place is left $e$ too low, and the field, which hears that,
        is $w e$ too low at other times: $(1 - w) e$ remains, as in universal kriging; nothing beside what is seen, all
        of it far away. Taken is what is left of the variance, $1 - \rho^2$ where $\rho$ is the correlation with what is
        seen: of the same place that has $w = \rho$, of others, which tell of the field too, less.
        """
        whole = np.maximum(self.levels.left, np.finfo(float).tiny)
        return np.square(np.minimum(rest.observation_std / whole, 1.0))

    def different(self, x: Float[np.ndarray, "n d"]) -> Different:
        """The different places among the rows of `x`. What differs by no more than by rounding to float32 is one."""
        places, rows = np.unique(x[:, self.levels.columns], axis=0, return_inverse=True)
        positions = self.coordinates.positions(places)
        away, nearest = self.tree.query(np.clip(self.frame(positions), -FAR, FAR))
        rounded = SAME * np.maximum(np.abs(self.positions).max(axis=0), np.finfo(np.float32).tiny)
        same = np.all(np.abs(positions - self.positions[nearest]) <= rounded, axis=1)
        known = same & (away <= NEAR * self.apart[nearest]) & self.trusted[nearest]
        return Different(places, rows.reshape(-1), np.where(known, nearest, -1))

    def of(self, model: Any) -> "LevelsEverywhere":
        """The same with another model."""
        other = copy.copy(self)
        other.map = self.map.of(model)
        return other


class _Sides:
    """Groups of the columns of `x` that vary, and which row of the different ones of these each observation has;
    `least`: how many there are of each, at least."""

    def __init__(self, parts: Sequence[tuple[int, ...]], x: np.ndarray):
        least = {part: max(len(np.unique(x[:, column])) for column in part) for part in parts}
        self.least = {part: number for part, number in least.items() if number > 1}
        self.parts, self.x, self.codes = [*self.least], x, {}

    @classmethod
    def of(cls, coordinates: AbstractCoordinates, x: np.ndarray) -> "_Sides":
        return cls(coordinates.parts(x.shape[1]), coordinates.unwrapped(x))

    def pairs(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The columns cut in two, in all ways; not those of a picture, where neighbours in either direction say more
        than whole rows do."""
        picture = len(self.parts) == 2 and all(len(part) == 1 and _is_even(self.x[:, part[0]]) for part in self.parts)
        if len(self.parts) < 2 or picture:
            return
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
        if not _connected(codes):  # nothing says how the levels of one part of the table compare with another's
            each = [_kept(sides, [side], y, known) for side in some]
            return min(each, key=lambda found: np.sum(found[1]))
        levels, weight, variance = _weighed(codes, y, known)
        unsure = [np.sqrt(variance / _sums(code, weight, len(of))) for code, of in zip(codes, levels, strict=True)]
        each = variance + np.sum(weight * known, axis=0) / weight.sum(axis=0)
        of_levels = [
            np.var(of[code], axis=0) - np.mean(np.square(chance[code]), axis=0)
            for of, chance, code in zip(levels, unsure, codes, strict=True)
        ]
        large = [np.all(of > LARGER * each) for of in of_levels]
        if np.any(variance <= 2 * LEAST):
            break
        if all(large):
            found = zip(some, map(sides.places, some), levels, unsure, strict=True)
            return [Levels(*of, np.sqrt(variance)) for of in found], variance
        some = [side for side, is_large in zip(some, large, strict=True) if is_large]
    return [], np.full(y.shape[1], np.inf)


def _connected(codes):
    """Whether two groupings of rows lead from each row to each other."""
    if len(codes) < 2:
        return True
    first, second = codes
    number = first.max() + 1
    size = number + second.max() + 1
    links = coo_array((np.ones(len(first)), (first, number + second)), (size, size))
    return connected_components(links, directed=False)[0] == 1


def _weighed(codes, y, known):
    """Levels, the weights `[n dy]` of observations by what is left beside the `known` variances of their errors, and
    the variance `[dy]` of that."""
    levels = [np.zeros((code.max() + 1, y.shape[1])) for code in codes]
    variance, weight = np.ones(y.shape[1]), np.ones_like(y)
    for _ in range(WEIGHED if known.any() else 1):
        weight, before = variance / (variance + known), variance
        left = _settled(levels, codes, y, weight)
        freedom = max(len(y) - sum(map(len, levels)), 1)
        variance = np.sum(weight * np.square(left), axis=0) / freedom + LEAST
        if np.all(np.abs(variance - before) < AGREED * before):
            break
    return levels, weight, variance


def _settled(levels, codes, y, weight):
    """What levels `[m dy]` of groups of rows leave, which are brought to agree in turns."""
    left = y - sum(level[code] for level, code in zip(levels, codes, strict=True))
    totals = [_sums(code, weight, len(level)) for code, level in zip(codes, levels, strict=True)]
    for _ in range(ROUNDS):
        moved = 0.0
        for code, level, total in zip(codes, levels, totals, strict=True):
            more = _sums(code, weight * left, len(level)) / total
            level += more
            left = left - more[code]
            moved = max(moved, np.abs(more).max())
        if moved < SETTLED or len(codes) == 1:
            break
    return left


def _sums(code, a, number):
    return np.stack([np.bincount(code, column, number) for column in a.T], axis=1)

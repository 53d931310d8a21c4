"""Which observations answer around a place: the nearest, and ever fewer of those farther away."""

import bisect
import functools

import numpy as np
from scipy.spatial import KDTree

from .spread import Spread

LEVELS = ((8, 1 / 4), (64, 1 / 8))
"""Of each level: one observation in how many it holds, and its share of what is seen."""
GAP = 0.5
"""In a gap the nearest observation is farther away than this share of the distance to the last of the nearest ones."""
REPEATS = 32
"""Of one place no more than this share of what is seen, unless there are too few places."""


class Neighbours:
    """The observations seen from a place: most are the nearest ones; the others come from random eighths and
    sixty-fourths of all, each the nearest beyond those of the level before. So what lies around a gap, and the course
    of the field at large, are seen too, at the price of few observations. In a gap the nearest ones may lie on one
    side, or in one of several clusters: there they are chosen by `Spread`.

    Up to `size` observations are seen all; a level of fewer than `size` is left out, for more of the nearest. Of many
    observations at one place (a station's record of years) some at random count, and no others: the next places are to
    be seen too.

    **Arguments:** `points [n d]`; `size`: how many are seen from one place.
    **Attributes:** `counted`: indices of the observations that count, ascending.
    **Cost:** O(n log n) once, O(size log n) per place.
    """

    def __init__(self, points: np.ndarray, size: int):
        self.count = min(size, len(points))
        order = np.random.default_rng(0).permutation(np.lexsort(points.T))  # whatever order they come in
        order = order[_few_of_each_place(points[order], size)]
        self.counted = np.sort(order)
        self.levels = []
        for one_in, share in LEVELS:
            kept, count = np.sort(order[: len(order) // one_in]), int(share * size)
            if len(kept) >= size and count:
                self.levels.append((kept, KDTree(points[kept]), count))
        self.near = self.count - sum(count for *_, count in self.levels)
        self.tree, self.total = KDTree(points[self.counted]), len(points)
        self.gap = max(GAP, 2 * self.near ** (-1 / points.shape[1]))  # of many columns even the nearest is far away

    @functools.cached_property
    def spread(self) -> Spread:
        """Answers in gaps, of which there may be none."""
        return Spread(self.tree, self.count)

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """Indices `[*places count]`, ascending, of the observations seen from each of the `places [*places d]`."""
        distance, nearest = self._nearest(self.tree, places, self.near)
        in_gap = distance[..., 0] > self.gap * distance[..., -1]
        seen = self.counted[nearest]
        for kept, tree, count in self.levels:
            distance, found = self._nearest(tree, places, seen.shape[-1] + count)
            found = kept[found]
            beyond = np.argsort(np.where(self._among(found, seen), np.inf, distance), axis=-1, kind="stable")[
                ..., :count
            ]
            seen = np.concatenate([seen, np.take_along_axis(found, beyond, axis=-1)], axis=-1)
        if self.count < self.tree.n and in_gap.any():
            seen[in_gap] = self.counted[self.spread(places[in_gap])]
        return np.sort(seen, axis=-1)

    def distance(self, place: np.ndarray, rank: int) -> float:
        """How far the `rank`-th nearest observation that counts, or the last one, is from a place `[d]`."""
        return float(np.max(self.tree.query(place, min(rank, self.tree.n))[0]))

    def _among(self, found, seen):
        """Which of the indices `found [*places n]` are in the row of `seen [*places m]` of their place."""
        row = self.total * np.arange(np.prod(seen.shape[:-1], dtype=int)).reshape(*seen.shape[:-1], 1)
        return np.isin(found + row, seen + row)

    @staticmethod
    def _nearest(tree, places, count):
        distance, index = tree.query(places, count)
        shape = (*places.shape[:-1], count)  # which the query drops where it is 1
        return np.reshape(distance, shape), np.reshape(index, shape)


def _few_of_each_place(points: np.ndarray, size: int) -> np.ndarray:
    """Which of `points [n d]` to keep, `[n]`: the first few of those at each place; at least `size` in all."""
    by_place = np.lexsort(points.T)  # stable: those of one place stay in order
    new = np.append(True, np.any(np.diff(points[by_place], axis=0) != 0, axis=1))
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(points)))
    few, enough = max(1, size // REPEATS), min(size, len(points))
    if np.minimum(counts, few).sum() < enough:  # not more than that, lest a place seen whole hide the others
        more = range(few, counts.max() + 1)
        few = more[bisect.bisect_left(more, enough, key=lambda few: np.minimum(counts, few).sum())]
    kept = np.empty(len(points), bool)
    kept[by_place] = np.arange(len(points)) - np.repeat(starts, counts) < few
    return kept


class Remembered:
    """What `Neighbours` said of some `places [n d]`, `seen [n count]`: says the same of these, without the rest."""

    def __init__(self, places: np.ndarray, seen: np.ndarray):
        self.places, self.seen, self.tree = places, seen, KDTree(places)

    def __call__(self, places: np.ndarray) -> np.ndarray:
        return self.seen[self.tree.query(places)[1]]

    def __reduce__(self):
        return Remembered, (self.places, self.seen)  # the tree is cheap to grow again

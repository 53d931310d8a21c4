"""Which observations answer in a gap: some of the nearest, and others from all around it."""

import numpy as np
from scipy.spatial import KDTree

THINNER = 4
"""Each part of the observations has this many times fewer of them than the one before."""
NEAREST = 1 / 4
"""The share of what is seen that are the nearest ones."""
REACH = 4
"""Beyond so many times the distance to the nearest there are none, unless there are too few within."""
TOGETHER = 64
"""Places that are answered at a time."""


class Spread:
    """The observations seen from a place in a gap: a quarter are the nearest, each of the others is, seen from there,
    the farthest from all that are chosen already.

    The nearest alone lie on one side of a gap, or in one of several clusters. How far apart two observations seem is
    their distance as a share of that to the place: those farther away may lie farther apart. (The search by quadrants
    and octants of geostatistics has the same end; of two clusters in one quadrant it sees the nearer.)

    To choose from there are the `size` nearest ones of all, of a random quarter, of a sixteenth and so on.

    **Arguments:** `tree`: of the points to choose from; `size`: how many are seen.
    **Cost:** O(n log n) once, O(size² log n) per place.
    """

    def __init__(self, tree: KDTree, size: int):
        self.tree, self.size = tree, size
        order = np.random.default_rng(0).permutation(np.lexsort(tree.data.T))  # whatever order they come in
        self.parts = [(np.arange(tree.n), tree)]
        while len(self.parts[-1][0]) > size:  # the last is seen whole
            part = np.sort(order[: max(1, len(self.parts[-1][0]) // THINNER)])
            self.parts.append((part, KDTree(tree.data[part])))

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """Indices `[n size]`, of the points of the tree, that are seen from each of the `places [n d]`."""
        seen = [self._some(places[start : start + TOGETHER]) for start in range(0, len(places), TOGETHER)]
        return np.concatenate(seen) if seen else np.empty((0, self.size), int)

    def _some(self, places):
        index, distance = self._candidates(places)
        points, distance = self.tree.data[index], np.maximum(distance, np.finfo(float).tiny)
        beyond, taken = distance > REACH * distance[:, :1], np.isinf(distance)
        apart, rows = np.full(index.shape, np.inf), np.arange(len(places))
        chosen = np.empty((len(places), self.size), int)
        for i in range(self.size):
            if i < max(1, int(NEAREST * self.size)):
                which = np.full(len(places), i)
            else:
                which = np.argmax(np.where(taken, -np.inf, np.where(beyond, -distance, apart / distance)), axis=1)
            taken[rows, which] = True
            chosen[:, i] = index[rows, which]
            apart = np.minimum(apart, np.linalg.norm(points - points[rows, which][:, None], axis=-1))
        return chosen

    def _candidates(self, places):
        """Indices and distances `[n m]`, ascending; what is there twice stands at the end, infinitely far away."""
        found = []
        for part, tree in self.parts:
            count = min(self.size, len(part))
            found.append(part[tree.query(places, count)[1].reshape(len(places), count)])
        index = np.sort(np.concatenate(found, axis=1), axis=1)
        distance = np.linalg.norm(self.tree.data[index] - places[:, None], axis=-1)
        distance[:, 1:][index[:, 1:] == index[:, :-1]] = np.inf
        order = np.argsort(distance, axis=1, kind="stable")
        return np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1)

"""Groups of near observations, and means over them."""

from collections.abc import Callable, Iterator

import numpy as np


class Groups:
    """Means over groups, which are `rows`: indices of all, each in one group. Each row counts by its `weight [n]`."""

    def __init__(self, rows: list[np.ndarray], weight: np.ndarray):
        self.sizes, self.order = np.array([len(some) for some in rows]), np.concatenate(rows)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.of_each = np.empty(len(self.order), int)
        self.of_each[self.order] = np.repeat(np.arange(len(rows)), self.sizes)
        self.weight = weight[:, None]
        self.total = self.sums(self.weight)

    def sums(self, a: np.ndarray) -> np.ndarray:
        return np.add.reduceat(a[self.order], self.starts, axis=0)

    def means(self, a: np.ndarray) -> np.ndarray:
        return self.sums(self.weight * a) / self.total

    def variances(self, each: np.ndarray) -> np.ndarray:
        """Those of the means of what has the variance of `each`, and is independent."""
        return self.sums(np.square(self.weight) * each) / np.square(self.total)


def groups(points: np.ndarray, number: int, weight: np.ndarray | None = None) -> list[np.ndarray]:
    """Indices of groups of near `points [n d]` that have the `weight [n]` of a `number` of ordinary ones, or nearly as
    much: boxes, halved along their longest sides (`halved`), all of a size at a time. What coincides stays together.

    **Cost:** sorting `n` numbers as often as boxes are halved: 0.5 s for 200,000 points.
    """
    n = len(points)
    weight = np.ones(n) if weight is None else np.minimum(weight, number)
    heights = np.stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in points.T], axis=1)
    rows, starts = np.lexsort(points.T), np.zeros(1, int)
    while True:
        at, lengths = points[rows], np.diff(starts, append=n)
        box = np.repeat(np.arange(len(starts)), lengths)
        longest = np.argmax(np.maximum.reduceat(at, starts) - np.minimum.reduceat(at, starts), axis=1)
        height = box * n + heights[rows, longest[box]]
        order = np.argsort(height, kind="stable")
        first = _first(np.cumsum(weight[rows[order]]), starts, lengths, number)
        cut = _cuts(height[order], starts, lengths, first)
        in_two = cut > 0
        if not in_two.any():
            return np.split(rows, starts[1:])
        rows = np.where(in_two[box], rows[order], rows)
        starts = np.sort(np.append(starts, (starts + cut)[in_two]))


def _first(running, starts, lengths, number):
    """How many of the points of each box are to be in its first half; `running`: the sum of the weights of all points
    until one of them."""
    ends, before = running[starts + lengths - 1], np.append(0.0, running)[starts]
    parts = _rounded((ends - before) / number)
    half = before + (ends - before) * (parts // 2) / np.maximum(parts, 1)
    whole = np.minimum(np.searchsorted(running, half, "right"), starts + lengths - 1)
    last = np.append(0.0, running)[whole]
    share = (half - last) / np.maximum(running[whole] - last, np.finfo(float).tiny)
    return np.where(parts > 1, _rounded(whole - starts + share), 0).astype(int)


def _rounded(a):
    """To whole numbers; what is in the middle of two but for rounding errors as if it were there."""
    return np.rint(np.round(a, 6))


def _cuts(ascending, starts, lengths, near):
    """Where different numbers meet in each box, as `near` as may be; 0 where all are the same, or `near` is 0."""
    of = ascending[starts + np.minimum(near, lengths - 1)]
    left, right = (np.searchsorted(ascending, of, side) - starts for side in ("left", "right"))
    left, right = (np.where((cut > 0) & (cut < lengths), cut, 0) for cut in (left, right))
    nearest = np.where((left > 0) & ((right == 0) | (near - left <= right - near)), left, right)
    return np.where(near > 0, nearest, 0)


def of_same(points: np.ndarray) -> list[np.ndarray]:
    """Indices of the rows of `points [n d]` that are the same, of each one that is different."""
    _, which, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    return np.split(np.argsort(which.reshape(-1), kind="stable"), np.cumsum(count)[:-1])


def halved(points: np.ndarray, first: Callable[[np.ndarray], int]) -> Iterator[np.ndarray]:
    """Indices of the rows of `points [n d]` in boxes, which are cut in two along their longest sides. `first`: of the
    rows of a box, in order along it, how many are to be in the first half, or nearly as many; 0 for no further cut.
    What coincides stays together."""
    boxes = [np.lexsort(points.T)]  # what is at one height along a box stands in an order of its own
    while boxes:
        rows = boxes.pop()
        along = points[rows, np.argmax(np.ptp(points[rows], axis=0))]
        order = np.argsort(along, kind="stable")
        wanted = first(rows[order])
        cut = _cut(along[order], wanted) if wanted else 0
        if cut:
            boxes += [rows[order[cut:]], rows[order[:cut]]]
        else:
            yield rows


def _cut(ascending, near):
    """Where different numbers meet, as `near` as may be; 0 if all are the same."""
    same = [np.searchsorted(ascending, ascending[near], side) for side in ("left", "right")]
    inside = [cut for cut in same if 0 < cut < len(ascending)]
    return min(inside, key=lambda cut: abs(cut - near), default=0)

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


def groups(points: np.ndarray, number: int, weight: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """Indices of groups of near `points [n d]` that have the `weight [n]` of a `number` of ordinary ones, or nearly as
    much: boxes, halved along their longest sides. What coincides stays together."""
    weight = np.ones(len(points)) if weight is None else np.minimum(weight, number)

    def first(rows):
        running = np.append(0.0, np.cumsum(weight[rows]))
        parts = round(running[-1] / number)
        half = running[-1] * (parts // 2) / max(parts, 1)
        return round(np.interp(half, running, np.arange(len(running)))) if parts > 1 else 0

    return halved(points, first)


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

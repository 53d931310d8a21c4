"""Means of near observations, where noise hides what differs among them: superobservations, as data assimilation calls
them (Lorenc, 1981, Monthly Weather Review 109)."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.special import softmax

from .anisotropy import Blocks, Fit, fitted, matern12, matern32
from .frames import AbstractFrame
from .normalise import AbstractCoordinates
from .standardise import Standardiser

FEWEST = 250
"""Means that are left at least: of fewer the network tells less than of the observations themselves."""
LOST = 0.1
"""The variance between two groups, beside that of the noise of their means, up to which they become one."""
SEEN, UNSEEN = 10.0, 4
"""By how much a function is likelier than noise alone, in logarithms; and how many become one where it is not."""
FREEDOM = 128
"""Degrees of freedom of the noise at a place: an estimate of its variance is off by an eighth."""
BLOCK = 2**14
"""Groups that are looked at together."""
PLACES = 512
"""Where the distances between near observations are measured, at most."""


class Superobservations(NamedTuple):
    """Means `x [m d]`, `y [m dy]` of observations and the `number` of them in each, on average; where that is not 1,
    the noise of the observations; and the Gaussian process that they were taken for, where they are enough."""

    x: np.ndarray
    y: np.ndarray
    number: float = 1.0
    noise: "Scatter | None" = None
    fit: Fit | None = None


class Scatter:
    """The standard deviation of the noise of single observations: `scatter(x [n d]) -> [n dy]`, that within the group
    which is nearest to a place and those around it, enough of them to be off by a sixteenth.

    **Arguments:** `std [m dy]`: of each group and those around it; where the groups are, `points [m d]` of a `frame`.
    **Cost:** O(log m) per place.
    """

    def __init__(self, std: np.ndarray, points: np.ndarray, frame: AbstractFrame, coordinates: AbstractCoordinates):
        self.std, self.points, self.tree = std, points, KDTree(points)
        self.frame, self.coordinates = frame, coordinates

    @classmethod
    def of(
        cls, squares: np.ndarray, freedom: np.ndarray, unit: np.ndarray, points: np.ndarray, *view: Any
    ) -> "Scatter":
        """From squares of deviations from the means of groups, `[m dy]`, in squares of a `unit [dy]`, and their degrees
        of freedom, `[m]`. **Cost:** O(m log m), the more the fewer observations a group has."""
        count = min(max(round(FREEDOM / freedom.mean()), 1), len(points))
        tree, std = KDTree(points), np.empty_like(squares)
        for start in range(0, len(points), BLOCK):
            part = slice(start, start + BLOCK)
            near = tree.query(points[part], count)[1].reshape(-1, count)
            std[part] = np.sqrt(squares[near].sum(axis=1) / np.maximum(freedom[near].sum(axis=1), 1)[:, None]) * unit
        return cls(std, points, *view)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.std[self._nearest(x)] if len(x) else np.empty((0, self.std.shape[1]))

    def beside(self, error: np.ndarray) -> "Scatter":
        """What is left of it beside known standard errors `[n dy]`."""
        largest = error.max(axis=0)
        known = largest * np.sqrt(np.square(error / np.where(largest > 0, largest, 1.0)).mean(axis=0))
        left = np.sqrt(np.maximum(self.std - known, 0.0)) * np.sqrt(self.std + known)  # no squares that overflow
        return Scatter(left, self.points, self.frame, self.coordinates)

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


def superobservations(coordinates: AbstractCoordinates, x: np.ndarray, y: np.ndarray) -> Superobservations:
    """The observations `x [n d]`, `y [n dy]`, or means of 2, 4, 8, ... near ones each, as far as little is lost by it.

    A network that has learned from up to a thousand observations, or sees a hundred in a tile, sees little but noise
    where that is as large as what varies among them. Means of k have a k-th of its variance, are fewer, and reach k
    times as far. Two groups of k become one while the function differs between them by less than a tenth of the
    variance of the noise of their means, and 250 means are left. It is taken for a Gaussian process with the length
    scale and the noise of greatest likelihood, and a smooth covariance (Matern 3/2) or a rough one (1/2), which count
    by how likely they are: to the smooth one all that is rough is noise. The noise of single observations is that
    within the groups (`Scatter`).

    Where nothing is seen among the noise four become one at a time, until something is.

    **Arguments:** `coordinates` that are `adapted`: near is what varies little. **Cost:** on a CPU core 0.2 s for 400
    observations, 0.6 to 1 s for 2,000, 1 to 5 s for 200,000, and then as their number. **Pitfalls:** how many are
    averaged depends on the noise of most; it is taken to be independent. Groups are of about as many observations: the
    network is not told of how many each.
    """
    positions = coordinates.positions(x)
    frame = coordinates.space(positions)
    points = frame(positions)
    standardise = Standardiser.of(y)
    values = standardise(y)
    number, seen, before = 1, None, len(x)
    more, fit = how_many(points, values)
    while more > 1:
        number *= more
        seen = _Groups(list(groups(points, number)))
        if fit is not None:
            fit = fit._replace(noise=fit.noise * len(seen.sizes) / before)
            break
        before = len(seen.sizes)
        more, fit = how_many(seen.means(points), seen.means(values))  # perhaps they show what noise has hidden
    if seen is None:
        return Superobservations(x, y, fit=fit)
    middles = positions.min(axis=0) + seen.means(positions - positions.min(axis=0))  # differences to a corner are exact
    mean, freedom = seen.means(values), seen.sizes - 1
    squares = seen.sizes[:, None] * seen.means(np.square(values - mean[seen.of_each]))
    scatter = Scatter.of(squares, freedom, standardise.std, frame(middles), frame, coordinates)
    return Superobservations(coordinates.columns(middles), standardise.undo(mean), len(x) / len(mean), scatter, fit)


class _Groups:
    """Means over groups, which are `rows`: indices of all, each in one group."""

    def __init__(self, rows: list[np.ndarray]):
        self.sizes, self.order = np.array([len(some) for some in rows]), np.concatenate(rows)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.of_each = np.empty(len(self.order), int)
        self.of_each[self.order] = np.repeat(np.arange(len(rows)), self.sizes)

    def means(self, a: np.ndarray) -> np.ndarray:
        return np.add.reduceat(a[self.order], self.starts, axis=0) / self.sizes[:, None]


def how_many(points: np.ndarray, values: np.ndarray) -> tuple[int, Fit | None]:
    """A power of two: how many of the observations at `points [n d]` each mean is to hold; and what the observations
    are taken for, if anything is seen among the noise. Of one place they are means at once, and count as one."""
    n, number = len(np.unique(points, axis=0)), 1
    if n < 2 * FEWEST or not np.ptp(values, axis=0).any():
        return 1, None
    blocks = Blocks.of(points, values)
    fits = [fitted(points, values, kernel, blocks) for kernel in (matern12, matern32)]
    likely = softmax([fit.log_likelihood for fit in fits])
    best = max(fits, key=lambda fit: fit.log_likelihood)
    if best.gained < SEEN:
        return min(UNSEEN, 2 ** int(np.log2(n / FEWEST))), None
    tree = KDTree(points)
    places = points[np.random.default_rng(0).permutation(np.lexsort(points.T))[:PLACES]]
    while 2 * number * FEWEST <= n:
        distance = tree.query(places, 2 * number + 1)[0][:, -1]  # the nearest is the place itself
        if number * np.dot(likely, [np.mean(fit.varied(distance)) for fit in fits]) > LOST:
            break
        number *= 2
    return number, best


def groups(points: np.ndarray, number: int) -> Iterator[np.ndarray]:
    """Indices of groups of `number` near `points [n d]` or nearly as many: boxes, halved along their longest sides.
    What coincides stays together."""

    def first(rows):
        parts = round(len(rows) / number)
        return round(len(rows) * (parts // 2) / parts) if parts > 1 else 0

    return halved(points, first)


def halved(points: np.ndarray, first: Callable[[np.ndarray], int]) -> Iterator[np.ndarray]:
    """Indices of the rows of `points [n d]` in boxes, which are cut in two along their longest sides. `first`: of the
    rows of a box, in order along it, how many are to be in the first half, or nearly as many; 0 for no further cut.
    What coincides stays together."""
    boxes = [np.arange(len(points))]
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

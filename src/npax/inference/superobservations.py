"""Means of near observations, where noise hides what differs among them: superobservations, as data assimilation calls
them (Lorenc, 1981, Monthly Weather Review 109)."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

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
UNSURE = 0.3
"""By how much the likeliest variance of the noise is off, as a share of it."""
BLOCK = 2**14
"""Groups that are looked at together."""
PLACES = 512
"""Where the distances between near observations are measured, at most."""
TINY = 1e-100


class Superobservations(NamedTuple):
    """Means `x [m d]`, `y [m dy]` of observations and the `number` of them in each, on average. Where that is not 1,
    the noise of the observations, and the standard deviations `error [m dy]` of that of the means, known errors
    included; otherwise the known errors, if any. And the Gaussian process that they were taken for, where they are
    enough."""

    x: np.ndarray
    y: np.ndarray
    number: float = 1.0
    noise: "Scatter | None" = None
    fit: Fit | None = None
    error: np.ndarray | None = None


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


def superobservations(
    coordinates: AbstractCoordinates, x: np.ndarray, y: np.ndarray, error: np.ndarray | None = None
) -> Superobservations:
    r"""The observations `x [n d]`, `y [n dy]`, or means of 2, 4, 8, ... near ones each, as far as little is lost by it.

    A network that has learned from up to a thousand observations, or sees a hundred in a tile, sees little but noise
    where that is as large as what varies among them. Means of k have a k-th of its variance, are fewer, and reach k
    times as far. Two groups of k become one while the function differs between them by less than a tenth of the
    variance of the noise of their means, and 250 means are left. It is taken for a Gaussian process with the length
    scale and the noise of greatest likelihood, and a smooth covariance (Matern 3/2) or a rough one (1/2), which count
    by how likely they are: to the smooth one all that is rough is noise.

    Where standard errors $e$ of observations are known, each has the weight $1 / (e^2 + \sigma^2)$ in a mean, $\sigma$
    the likeliest noise beside them, and groups are of about as much weight: what says more than the others stays alone.
    The noise of single observations is that within the groups (`Scatter`), less what is known of it; the network hears
    that of each mean.

    Where nothing is seen among the noise four become one at a time, until something is.

    **Arguments:** `coordinates` that are `adapted`: near is what varies little. **Cost:** on a CPU core 0.2 s for 400
    observations, 0.6 to 1 s for 2,000, 1 to 5 s for 200,000, and then as their number. **Pitfalls:** how many are
    averaged depends on the noise of most; it is taken to be independent.
    """
    positions = coordinates.positions(x)
    frame = coordinates.space(positions)
    points = frame(positions)
    standardise = Standardiser.of(y, error)
    values = standardise(y)
    known = np.zeros_like(values) if error is None else np.square(standardise.scaled(error).astype(float))
    number, seen, before, of_means = 1, None, len(x), known
    more, fit = how_many(points, values, known)
    weight, likely = weights(known, fit), None if fit is None else unknown(fit)
    while more > 1:
        number *= more
        seen = Groups(list(groups(points, number, weight)), weight)
        if fit is not None:
            break
        before, of_means = len(seen.sizes), seen.variances(known)
        more, fit = how_many(seen.means(points), seen.means(values), of_means)  # they may show what noise has hidden
    if fit is not None:
        fit = ordinary(fit, of_means)
        fit = fit._replace(noise=fit.noise * (len(seen.sizes) / before if seen else 1.0))
    if seen is None:
        return Superobservations(x, y, fit=fit, error=error)
    middles = positions.min(axis=0) + seen.means(positions - positions.min(axis=0))  # differences to a corner are exact
    at, mean = frame(middles), seen.means(values)
    noise = noise_within(seen, at, values - mean[seen.of_each], known, likely)
    return Superobservations(
        coordinates.columns(middles),
        standardise.undo(mean),
        len(x) / len(mean),
        Scatter(np.sqrt(noise) * standardise.std, at, frame, coordinates),
        fit,
        np.sqrt(seen.variances(known + noise[seen.of_each])) * standardise.std,
    )


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


def how_many(points: np.ndarray, values: np.ndarray, known: np.ndarray | None = None) -> tuple[int, Fit | None]:
    """A power of two: how many of the observations at `points [n d]`, of ordinary weight, each mean is to hold; and
    what the observations are taken for, if anything is seen among the noise. Of one place they are means at once, and
    count as one. `known [n dy]`: variances of errors, of `values [n dy]` whose variance but for these is 1."""
    places, number = len(np.unique(points, axis=0)), 1
    if places < 2 * FEWEST or not np.ptp(values, axis=0).any():
        return 1, None
    known = np.zeros_like(values) if known is None else known
    blocks = Blocks.of(points, values)
    fits = [fitted(points, values, kernel, blocks, np.sqrt(known)) for kernel in (matern12, matern32)]
    likely = softmax([fit.log_likelihood for fit in fits])
    best = max(fits, key=lambda fit: fit.log_likelihood)
    seen = best if best.gained >= SEEN else None
    weight, fits = weights(known, seen), [ordinary(fit, known) for fit in fits]
    tree, some = KDTree(points), points[np.random.default_rng(0).permutation(np.lexsort(points.T))[:PLACES]]

    def left(number):
        return np.minimum(weight / number, 1.0).mean() * places

    def little_is_lost(number):
        if seen is None:
            return number < UNSEEN
        in_two = round(2 * places / left(number))
        distance = tree.query(some, in_two + 1)[0][:, -1]  # the nearest is the place itself
        return number * np.dot(likely, [np.mean(fit.varied(distance)) for fit in fits]) <= LOST

    while left(2 * number) >= FEWEST and little_is_lost(number):
        number *= 2
    return number, seen


def unknown(fit: Fit) -> float:
    """The variance of the noise beside known errors, of values whose variance but for these is 1."""
    return fit.noise / (1 + fit.noise)


def weights(known: np.ndarray, fit: Fit | None) -> np.ndarray:
    """How much observations of `known [n dy]` variances count, the ordinary one as 1. Without a fit all but those of
    `how_many`'s values is noise."""
    weight = 1 / (known + (1.0 if fit is None else unknown(fit))).mean(axis=1)
    return weight / np.median(weight)


def ordinary(fit: Fit, known: np.ndarray) -> Fit:
    """With the noise of an ordinary observation among those of `known` variances."""
    return fit._replace(noise=fit.noise + (1 + fit.noise) * float(np.median(known.mean(axis=1))))


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
    if likely is not None:
        chance = np.square(squares - of_all * freedom).sum(axis=0) / np.square(np.maximum(freedom.sum(), TINY))
        of_all += (likely - of_all) * chance / (chance + np.square(UNSURE * likely))
    more = squares - of_all * freedom
    tree, around = (
        KDTree(points),
        min(max(round(FREEDOM * len(points) / max((seen.sizes - 1).sum(), 1)), 1), len(points)),
    )
    here, by_chance = np.empty_like(more), np.empty_like(more)
    for start in range(0, len(points), BLOCK):
        part = slice(start, start + BLOCK)
        near = tree.query(points[part], around)[1].reshape(-1, around)
        of = np.maximum(freedom[near].sum(axis=1), TINY)
        here[part], by_chance[part] = more[near].sum(axis=1) / of, np.square(more[near]).sum(axis=1) / np.square(of)
    surely = 1 + 2 * (2 * around / len(points)) ** 0.5  # two standard deviations of as many as are independent
    differ = 1 - surely * by_chance.sum(axis=0) / np.maximum(np.square(here).sum(axis=0), TINY)
    return np.maximum(of_all + np.maximum(differ, 0.0) * here, 0.0)


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

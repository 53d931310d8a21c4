"""Means of near observations, where noise hides what differs among them: superobservations, as data assimilation calls
them (Lorenc, 1981, Monthly Weather Review 109)."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.special import softmax
from scipy.stats import chi2

from .anisotropy import Blocks, Fit, fitted, gaussian, matern12, matern32
from .groups import Groups, groups, of_same
from .normalise import AbstractCoordinates
from .scatter import TINY, Scatter, noise_within
from .standardise import Standardiser

FEWEST = 250
"""Means that are left at least: of fewer the network tells less than of the observations themselves."""
LOST = 0.1
"""The variance between two groups, beside that of the noise of their means, up to which they become one."""
DOUBT = 10.0
"""By how much the smoothest function must be likelier, in logarithms, than others: beside noise it is so by chance."""
FAINT = 1e-3
"""The variance of noise, beside that of a smooth function, below which it is not worth to be averaged away."""
SEEN, UNSEEN = 10.0, 4
"""By how much a function is likelier than noise alone, in logarithms; and how many become one where it is not."""
HEARD = 0.75
"""The share of the variance of unknown noise that the network hears of as known: it need not believe all of it."""
REPEATED, FREEDOM, SEVERAL = 1.5, 16, 10
"""Observations of a place, on average, and more of them than places, from which on they tell the noise; and places from
which on their means tell how much varies: intervals from those of three to five cover 74 to 92 %."""
BOX, FEATURE, OUTSTANDING = 32, 3, 4.0
"""Means in a box; how many of them make a feature, and by how many standard deviations they stand out."""
LEAST_NOISY = 0.25
"""The quantile that tells the noise in a box, of which a feature may fill most."""
PLACES = 512
"""Where the distances between near observations are measured, at most."""


class Superobservations(NamedTuple):
    """Means `x [m d]`, `y [m dy]` of observations and the `number` of them in each, on average. Where that is not 1,
    the noise of the observations, and standard deviations `error [m dy]` of that of the means, as far as the network
    is to hear of it; otherwise the known errors, if any. And the Gaussian process that they were taken for, where they
    are enough; `features`: whether something stands out in few places, which stays alone."""

    x: np.ndarray
    y: np.ndarray
    number: float = 1.0
    noise: Scatter | None = None
    fit: Fit | None = None
    error: np.ndarray | None = None
    features: bool = False


def superobservations(
    coordinates: AbstractCoordinates,
    x: np.ndarray,
    y: np.ndarray,
    error: np.ndarray | None = None,
    *,
    hears: bool = True,
) -> Superobservations:
    r"""The observations `x [n d]`, `y [n dy]`, or means of 2, 4, 8, ... near ones each, as far as little is lost by it.

    A network that has learned from up to a thousand observations, or sees a hundred in a tile, sees little but noise
    where that is as large as what varies among them. Means of k have a k-th of its variance, are fewer, and reach k
    times as far. Two groups of k become one while the function differs between them by less than a tenth of the
    variance of the noise of their means, and 250 means are left. It is taken for a Gaussian process with the length
    scale and the noise of greatest likelihood, and a rough covariance (Matern 1/2), a smoother one (3/2) or the
    smoothest (Gaussian), which count by how likely they are: to a smooth one all that is rough is noise. Of the
    smoothest only what is bent between two groups counts as a difference, for a mean lies in their middle.

    Where standard errors $e$ of observations are known, each has the weight $1 / (e^2 + \sigma^2)$ in a mean, $\sigma$
    the likeliest noise beside them, and groups are of about as much weight: what says more than the others stays alone.
    The noise of single observations is that within the groups (`Scatter`), less what is known of it. The network hears
    of the noise of each mean: of what is known, and, where something is seen, of three quarters of the variance beside
    it, for the function varies within groups, too.

    Where nothing is seen among the noise four become one at a time, until something is.

    What stands out in few places, such as a spectral line or a hot spot, the process does not know: there observations
    stay alone, or in groups of a quarter of the number (`resolving`).

    Repeated observations of the same places, ten or more, become their means where there are half as many more as
    places, and 16: then they tell the noise, and the network hears of all of that.

    **Arguments:** `coordinates` that are `adapted`: near is what varies little; `hears`: whether the network hears of
    errors, without which repeats stay as they are, and nothing is told of means. **Cost:** on a CPU core 0.9 s for
    2,000 observations, up to 4 s for 200,000, and then as their number; nothing below 500. **Pitfalls:** how many are
    averaged depends on the noise of most; it is taken to be independent. Of 10 to 40 places whose means are as noisy as
    the function is strong intervals of this are too narrow: they hold 83 to 93 % (`benchmarks/repeats.py`).
    """
    positions = coordinates.positions(x)
    frame = coordinates.space(positions)
    points = frame(positions)
    standardise = Standardiser.of(y, error)
    values = standardise(y)
    known = np.zeros_like(values) if error is None else np.square(standardise.scaled(error).astype(float))
    number, seen, before, of_means = 1, None, len(x), known
    more, fit = how_many(points, values, known)
    likely = None if fit is None else fit.unknown
    weight = weights(known, likely)
    while more > 1:
        number *= more
        seen = Groups(groups(points, number, weight), weight)
        if fit is not None:
            break
        before, of_means = len(seen.sizes), seen.variances(known)
        more, fit = how_many(seen.means(points), seen.means(values), of_means)  # they may show what noise has hidden
    features = False
    if seen is not None and fit is not None:
        finer = resolving(seen, points, values, known, fit, number)
        features = bool(finer.any())
        if features:
            weight = np.where(finer, np.maximum(finer, weight), weight)
            seen = Groups(groups(points, number, weight), weight)
    repeated = repeats(points, values, known, fit) if seen is None and hears else None
    seen = seen or repeated
    if fit is not None:
        left = len(seen.sizes) / before if seen else 1.0
        fit = fit._replace(noise=ordinary(fit, of_means).noise * left)
    if seen is None:
        return Superobservations(x, y, fit=fit, error=error)
    middles = positions.min(axis=0) + seen.means(positions - positions.min(axis=0))  # differences to a corner are exact
    at, mean = frame(middles), seen.means(values)
    noise = noise_within(seen, at, values - mean[seen.of_each], known, likely)
    share = 1.0 if repeated else HEARD if likely else 0.0  # what varies unseen is not all noise
    heard = known + share * noise[seen.of_each]
    return Superobservations(
        coordinates.columns(middles),
        standardise.undo(mean),
        len(x) / len(mean),
        Scatter(np.sqrt(noise) * standardise.std, at, frame, coordinates),
        fit,
        np.sqrt(seen.variances(heard)) * standardise.std if hears and heard.any() else None,
        features,
    )


def resolving(
    seen: Groups, points: np.ndarray, values: np.ndarray, known: np.ndarray, fit: Fit, number: int
) -> np.ndarray:
    """Weights `[n]` by which the observations at `points [n d]` stay alone, or in groups of a quarter of the `number`,
    where features stand out of these, and 0 elsewhere: spectral lines or hot spots, which are rare, so that a `fit` to
    all does not know them. The noise is that `seen` within groups, by the median, of which features and outliers change
    little; where it is stronger, that of the quarter of a box where it is least."""
    free = np.maximum(1 - seen.weight / seen.total[seen.of_each], TINY)
    squares = np.square(values - seen.means(values)[seen.of_each]) / free
    noise = np.maximum(np.median(squares, axis=0) / chi2.median(1) - np.median(known, axis=0), 0.0)
    here, boxes, expected = np.empty_like(values), groups(points, BOX), chi2.ppf(LEAST_NOISY, 1)
    for rows in boxes:
        local = np.quantile(squares[rows], LEAST_NOISY, axis=0) / expected
        here[rows] = np.maximum(known[rows] + noise, local)
    finer = np.zeros(len(points))
    if number // 4 > 1:
        of = Groups(groups(points, number // 4, seen.weight[:, 0]), seen.weight[:, 0])
        middles = of.means(points)
        out = standing_out(groups(middles, BOX), middles, of.means(values), of.variances(here), noise, fit)
        finer[out[of.of_each]] = 4
    finer[standing_out(boxes, points, values, here, noise, fit)] = number
    return finer


def standing_out(
    boxes: Iterable[np.ndarray],
    points: np.ndarray,
    values: np.ndarray,
    variances: np.ndarray,
    noise: np.ndarray,
    fit: Fit,
) -> np.ndarray:
    """Which of the `values [n dy]` at `points [n d]` lie where a feature stands out, `[n]`: in `boxes` of which
    three differ from the median, on one side, by four standard deviations of what their `variances [n dy]` and
    the function of a `fit` let expect. Few do by chance, and as many outliers are seldom in a box."""
    out = np.zeros(len(points), bool)
    for rows in boxes:
        apart = np.sqrt(np.square(points[rows] - points[rows].mean(axis=0)).sum(axis=1, keepdims=True))
        expected = variances[rows] + 2 * noise * fit.varied(apart)
        away = (values[rows] - np.median(values[rows], axis=0)) / np.sqrt(np.maximum(expected, TINY))
        out[rows] = max(np.sum(side * away > OUTSTANDING, axis=0).max() for side in (-1, 1)) >= FEATURE
    return out


def repeats(points: np.ndarray, values: np.ndarray, known: np.ndarray, fit: Fit | None) -> Groups | None:
    """Observations of the same `points [n d]`, if they are repeated so often that they tell the noise."""
    rows = of_same(points)
    if len(points) < max(REPEATED * len(rows), len(rows) + FREEDOM) or len(rows) < SEVERAL:
        return None
    if fit is not None:
        return Groups(rows, weights(known, fit.unknown))
    alike = Groups(rows, np.ones(len(points)))
    apart = values - alike.means(values)[alike.of_each]
    return Groups(rows, weights(known, noise_within(alike, alike.means(points), apart, known, None).mean()))


def how_many(points: np.ndarray, values: np.ndarray, known: np.ndarray | None = None) -> tuple[int, Fit | None]:
    """A power of two: how many of the observations at `points [n d]`, of ordinary weight, each mean is to hold; and
    what the observations are taken for, if anything is seen among the noise. Of one place they are means at once, and
    count as one. `known [n dy]`: variances of errors, of `values [n dy]` whose variance but for these is 1."""
    places, number = len(np.unique(points, axis=0)), 1
    if places < 2 * FEWEST or not np.ptp(values, axis=0).any():
        return 1, None
    known = np.zeros_like(values) if known is None else known
    blocks = Blocks.of(points, values)
    fits = [fitted(points, values, kernel, blocks, np.sqrt(known)) for kernel in (matern12, matern32, gaussian)]
    evidence = np.array([fit.log_likelihood - DOUBT * (fit.kernel is gaussian) for fit in fits])
    likely, best = softmax(evidence), fits[np.argmax(evidence)]
    seen = best if best.gained >= SEEN else None
    weight, fits = weights(known, None if seen is None else seen.unknown), [ordinary(fit, known) for fit in fits]
    tree, some = KDTree(points), points[np.random.default_rng(0).permutation(np.lexsort(points.T))[:PLACES]]

    def left(number):
        return np.minimum(weight / number, 1.0).mean() * places

    def little_is_lost(number):
        if seen is None:
            return number < UNSEEN
        in_two = round(2 * places / left(number))
        distance = tree.query(some, in_two + 1)[0][:, -1]  # the nearest is the place itself
        return number * np.dot(likely, [np.mean(hidden(fit, distance)) for fit in fits]) <= LOST

    while left(2 * number) >= FEWEST and little_is_lost(number):
        number *= 2
    return number, seen


def hidden(fit: Fit, distance: np.ndarray) -> np.ndarray:
    """What a mean over a distance hides of a function, in variances of the noise: all by which a rough one differs. A
    smooth one has its mean in the middle, but for what is bent."""
    return fit.bent(distance) if fit.kernel is gaussian and fit.noise > FAINT else fit.varied(distance)


def weights(known: np.ndarray, unknown: float | None) -> np.ndarray:
    """How much observations of `known [n dy]` variances count, beside an `unknown` one, the ordinary one as 1; without
    it all but those of `how_many`'s values is noise."""
    weight = 1 / np.maximum(known.mean(axis=1) + (1.0 if unknown is None else unknown), TINY)
    return weight / np.median(weight)


def ordinary(fit: Fit, known: np.ndarray) -> Fit:
    """With the noise of an ordinary observation among those of `known [n dy]` variances."""
    return fit._replace(noise=float(np.median(fit.beside(known.mean(axis=1)))))

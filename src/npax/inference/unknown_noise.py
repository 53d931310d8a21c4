"""The noise of observations beside their known errors."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.special import softmax
from scipy.stats import norm

from .anisotropy import (
    FOLLOWED,
    NUGGET,
    STARTS,
    Blocks,
    Kernel,
    gaussian,
    matern12,
    matern32,
    outer,
    squares,
    without_mean,
)
from .normalise import AbstractCoordinates
from .predict import Even
from .standardise import MOST_ERROR, Standardiser
from .superobservations import DOUBT

FEWEST = 16
"""Observations from which on it is looked for."""
BLOCKS = 16
"""Blocks that are looked at, at most: of several hundred observations."""
PLACES = 1000
"""Where the distances between observations are measured, at most."""
SLOWEST, FASTEST = -8.0, 8.0
"""Logarithms of inverse length scales."""
OTHERS = (-12.0, 6.0), (-12.0, 12.0)
"""Logarithms of the variances of noise and function: that of a slow one may be far larger than that of what is seen."""


def unknown_noise(coordinates: AbstractCoordinates, x: np.ndarray, y: np.ndarray, error: np.ndarray) -> Even | None:
    r"""The standard deviation of the noise of new observations, whose own errors are not known, from observations
    `x [n d]`, `y [n dy]` and their known errors `[n dy]`. None of few.

    The network, which hears of the errors, finds too little: beside errors that are as large 0.5 to 0.9 of the standard
    deviation of 200 observations, so that intervals of 95 % for new ones hold 78 to 95 %. This is by the likelihood of
    Gaussian processes, of a rough, a smoother and the smoothest covariance (Matern 1/2 and 3/2, Gaussian), which count
    by how likely they are. Blocks of neighbours are taken to be independent, each with a mean of its own, as in
    `relative_speeds`, but of one variance: what is known of the noise is known in the unit of the values.

    Where errors hide it the likeliest variance is often none. It is taken to be normal around where the slope of the
    logarithm of the likelihood points, over Fisher's information, but positive, and this is its mean.

    **Arguments:** `coordinates` that are `adapted`. **Cost:** 0.05 to 0.9 s on a CPU core.
    """
    if len(x) < FEWEST:
        return None
    positions = coordinates.positions(x)
    points, standardise = coordinates.space(positions)(positions), Standardiser.of(y, error)
    values, known = standardise(y), standardise.scaled(error).astype(float)
    values = np.where(known >= MOST_ERROR, 0.0, values)  # what says nothing could be anything
    known = np.square(known)
    seen = Blocks.of(points, values).seen
    seen = seen[:: -(-len(seen) // BLOCKS)]
    apart, weight = squares(points[seen]), min(1.0, len(x) / seen.size)  # as often as each is looked at
    fastest, of_each = _fastest(points), zip(values[seen].T, known[seen].T, strict=True)
    variances = [_expected(Neighbours(apart, of.T, beside.T, weight), fastest) for of, beside in of_each]
    return Even(np.sqrt(variances) * standardise.std)


class Neighbours(NamedTuple):
    """Blocks of observations: squared distances `[blocks m m]`, values and known variances of noise `[blocks m]`, and
    the weight of the likelihood of each."""

    apart: np.ndarray
    y: np.ndarray
    known: np.ndarray
    weight: float


def _expected(seen: Neighbours, fastest: float) -> float:
    """The variance of the noise: the mean over the summits of the likelihood of all kinds of processes, by how likely
    they are; `fastest`: the logarithm of the largest inverse length scale."""
    bounds = [(min(SLOWEST, fastest), fastest), *OTHERS]
    losses, variances = [], []
    for kernel, doubt in ((matern12, 0.0), (matern32, 0.0), (gaussian, DOUBT)):
        for end in _summits(seen, kernel, bounds):
            losses.append(end.fun + doubt)
            variances.append(_mean(end.x, seen, kernel))
    return float(np.dot(softmax(-np.array(losses)), variances))


def _summits(seen, kernel, bounds):
    """Where searches end that begin at the likeliest of slow and fast processes, and of what may be noise."""
    starts = [np.array([speed, np.log(noise / (1 + noise)), -np.log1p(noise)]) for speed, noise in STARTS]
    best = [min(part, key=lambda g: loss(g, seen, kernel)[0]) for part in np.array_split(starts, FOLLOWED)]
    options = {"method": "L-BFGS-B", "bounds": bounds, "options": {"maxiter": 40, "ftol": 1e-6}}
    return [minimize(loss, start, (seen, kernel), jac=True, **options) for start in best]


def _fastest(points):
    """As fast as places are apart: what varies faster could as well be noise."""
    places = np.unique(points, axis=0)
    if len(places) < 3:
        return FASTEST
    some = places[:: -(-len(places) // PLACES)]
    apart = np.median(KDTree(places).query(some, 3)[0][:, -1])  # in between, along a line
    return min(-float(np.log(max(apart, np.exp(-FASTEST)))), FASTEST)


def _mean(guess, seen, kernel):
    """Of a normal distribution above zero, with the length scale and the variance of the function of a `guess`."""
    p, py, _ = _residuals(guess, seen, kernel(np.exp(2 * guess[0]) * seen.apart)[0])
    slope = (np.sum(np.square(py)) - np.sum(np.trace(p, axis1=1, axis2=2))) / 2
    information = np.sum(np.square(p)) / 2
    middle, std = np.exp(guess[1]) + slope / information, 1 / np.sqrt(seen.weight * information)
    return max(middle + std * np.exp(norm.logpdf(middle / std) - norm.logcdf(middle / std)), 0.0)


def loss(guess: np.ndarray, seen: Neighbours, kernel: Kernel) -> tuple[float, np.ndarray]:
    """The negative logarithm of the likelihood, integrated over the mean of each block, up to a constant, and its
    gradient in the logarithms of the inverse length scale, and of the variances of noise and function."""
    speed, noise, variance = np.exp(guess)
    k, slope = kernel(np.square(speed) * seen.apart)
    p, py, logarithms = _residuals(guess, seen, k)
    p -= outer(py)  # now twice the slope in the matrix
    slope *= p
    of_noise = noise * np.einsum("bii->", p)
    slopes = np.array([-2 * variance * speed**2 * np.vdot(slope, seen.apart), of_noise, variance * np.vdot(p, k)])
    return seen.weight * (np.sum(seen.y * py) + logarithms) / 2, seen.weight * slopes / 2


def _residuals(guess, seen, k):
    """$P$ (`without_mean`) of the covariances, $P y$, and the logarithms of their determinants, of contrasts; `k`: the
    correlations `[blocks m m]`."""
    _, noise, variance = np.exp(guess)
    matrix = variance * k
    np.einsum("bii->bi", matrix)[...] += noise + NUGGET + seen.known
    p, one = without_mean(matrix)
    return p, np.einsum("bij,bj->bi", p, seen.y), np.sum(np.linalg.slogdet(matrix)[1] + np.log(one))

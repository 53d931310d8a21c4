"""How much faster a function varies along some coordinates than along others."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.special import expit

from .order import sorted_rows
from .standardise import MOST_ERROR

BLOCKS, SIZE = 192, 48
"""Blocks of neighbouring observations that are looked at, at most, and observations in each."""
FEW_BLOCKS = 48
"""Those that are enough where all coordinates are known to be alike."""
SEARCHED = 16
"""Blocks that are enough to tell the summits of the likelihood apart."""
COVERED = 2
"""How many times an observation is looked at, where there are few."""
EVERY = (1, 4, 16)
"""How many times as many are around a centre as there are in a block, for a third of the blocks each."""
OF = 50_000
"""Observations that blocks are taken from, at most."""
ROUNDS = 3
"""How often blocks are chosen anew, each time by the distances found before."""
STARTS = tuple((speed, noise) for speed in (-1.0, 0.0, 1.0, 2.0, 3.5, 5.0) for noise in (0.03, 0.3, 2.0))
"""Logarithms of inverse length scales, of all coordinates, and variances of noise: where the search may begin."""
AHEAD = -1.5, 0.0, 1.5
"""What is added to the logarithms of single coordinates where it may begin as well, and the noise there."""
FAST = 3.5, 5.0
"""Logarithms of one that is far ahead, a long series beside a place, where it may begin too."""
AT_ONCE = 16
"""Blocks whose matrices are made together: as many as the caches hold."""
NEVER = 20.0
"""Logarithm of the inverse length scale of noise."""
CLEAN = 0.03
FOLLOWED = 3
"""Likeliest starts from which the greatest likelihood is looked for: it has several summits."""
COST = 1.5
"""Of each further length scale, in units of the logarithm of the likelihood."""
FREEDOM, SPREAD = 3.0, 1.5
"""Of Student's t, the prior of the logarithms of the factors: a coordinate without effect is far off, and may be."""
SETTLED = 0.2
"""A change of the logarithms below which blocks are not chosen anew."""
LARGEST = 4.0
"""Logarithm of the largest factor between a coordinate and the mean of all: beyond it is as good as without effect."""
NUGGET = 1e-6
"""The least variance of noise, beside that of the function."""
STEP = 1 / 16
"""What logarithms are rounded to: a sixteenth does not matter, and rounding errors of the observations shall not."""
DECIMALS, FINE = 9, 2.0**-12
"""What coordinates, and logarithms, are rounded to where neighbours are looked for. Of stations that report at regular
times many are equally near, and rounding errors, which change with the order of the rows, shall not choose among them.
"""
CONSTANT = 1e-9
"""The range of a column that is constant but for rounding errors."""
FEWEST = 5
"""Observations below which coordinates are left as they are."""


def relative_speeds(
    points: np.ndarray,
    values: np.ndarray,
    error: np.ndarray | None,
    groups: Sequence[Sequence[int]],
    turned: Callable[[np.ndarray], np.ndarray] = lambda points: points,
) -> np.ndarray:
    r"""Factors `[d]`, the largest 1, by which coordinates are to be multiplied lest values vary faster along one than
    along another. Those of a group, such as the axes of a map, have one factor; that of a constant column is 1.

    The inverse length scales $s$ of greatest likelihood, up to a factor, of a Gaussian process with the covariance of
    Matern 3/2, $k(x, x') = (1 + \sqrt 3 r) e^{-\sqrt 3 r}$, $r = |s \circ (x - x')|$, and noise. Blocks of neighbours
    are taken to be independent, each with a mean and a variance of its own, which are maximised over: for $m$
    observations $y$ the logarithm is $-\tfrac12 ((m - 1) \log y^\top P y + \log |K| + \log 1^\top K^{-1} 1)$, where $P
    = K^{-1} - K^{-1} 1 1^\top K^{-1} / 1^\top K^{-1} 1$. Neighbours are those by the distances that are found, in a
    few rounds. A prior on the logarithms of the factors, Student's t, keeps them alike where observations say little,
    and they are multiplied by the probability that the coordinates are unlike at all.

    **Arguments:** `points [n d]`, of ranges of 4; `values [n dy]`, all of which have the same factors, and their known
    standard errors, if any; `turned`: what brings the points of all, or of blocks `[blocks m d]`, to the coordinates
    that are meant, where these are not the same everywhere (east and north, on a sphere). The order of the observations
    does not matter. **Cost:** on a CPU core 15 to 40 ms for 40 observations, 0.06 to 0.1 s for 200, 0.3 s for 2,000,
    0.4 to 0.5 s for any number from 5,000 on. **Pitfall:** of few observations of a field that is alike along all
    coordinates the factors are a little off: 40 in space have 8.9 instead of 5.3 % more CRPS than the best, 40 on the
    globe 10.8 instead of 8.4 %.
    """
    n, d = points.shape
    if n < FEWEST:
        return np.ones(d)
    groups = [columns for columns in groups if np.ptp(turned(points)[:, list(columns)], axis=0).max() > CONSTANT]
    if len(groups) < 2:
        return np.ones(d)
    member = np.zeros((len(groups), d))
    for row, columns in zip(member, groups, strict=True):
        row[list(columns)] = 1.0
    rng = np.random.default_rng(0)
    some = rng.permutation(sorted_rows(_rounded(points), values, error))[:OF]
    points, values = points[some], values[some]
    together = turned(points)
    known = np.zeros_like(values) if error is None else np.minimum(error[some], MOST_ERROR)
    size, centres, weight = _centres(rng, n, len(points), BLOCKS)

    def near(logarithms):
        scaled = together * (np.exp(_in_steps(logarithms, FINE)) @ member)
        seen = _blocks(scaled, centres, size)
        block = turned(points[seen])
        apart = np.stack([squares(block[..., list(columns)]) for columns in groups])
        return apart, values[seen], np.square(known[seen]), weight

    block = near(np.zeros(len(groups)))
    guess = _likeliest(_likeliest_anywhere(_thinned(block), len(groups)), block)
    guess, block = _settled(guess, block, near)
    logarithms = _in_steps(_apart(guess) * _probability(guess, block), STEP)
    return np.where(member.any(axis=0), np.exp(logarithms - logarithms.max()) @ member, 1.0)


Slopes = tuple[np.ndarray, np.ndarray]
Kernel = Callable[[np.ndarray], Slopes]


def matern32(squares: np.ndarray) -> Slopes:
    """The covariance at squared distances, in units of the length scale, and minus its slope in them."""
    r = np.sqrt(3 * squares)
    decay = np.exp(-r)
    return (1 + r) * decay, 3 / 2 * decay


def matern12(squares: np.ndarray) -> Slopes:
    """The same of rougher functions, of which no derivative is continuous; the slope at zero, which is infinite, 0."""
    r = np.sqrt(squares)
    decay = np.exp(-r)
    return decay, np.divide(decay, 2 * r, out=np.zeros_like(r), where=r > 0)


def gaussian(squares: np.ndarray) -> Slopes:
    """The same of the smoothest ones, which have all derivatives."""
    decay = np.exp(-squares / 2)
    return decay, decay / 2


class Fit(NamedTuple):
    """A Gaussian process: its covariance and inverse length scale, the variance of the noise beside that of the
    function, the logarithm of its likelihood, but for a constant, and by how much that is above that of noise alone."""

    kernel: Kernel
    speed: float
    noise: float
    log_likelihood: float
    gained: float

    def varied(self, distance: np.ndarray) -> np.ndarray:
        """Half the variance of differences at a distance, in variances of the noise."""
        return (1 - self.kernel(np.square(self.speed * distance))[0]) / self.noise

    def bent(self, distance: np.ndarray) -> np.ndarray:
        """Half the variance of second differences, f(x) - 2 f(x + r) + f(x + 2 r), for a distance r: of what is bent
        within it. In variances of the noise."""
        return 4 * self.varied(distance) - self.varied(2 * distance)

    @property
    def unknown(self) -> float:
        """The variance of the noise beside known errors, in that of all that varies but for them."""
        return self.noise / (1 + self.noise)

    def beside(self, known: np.ndarray) -> np.ndarray:
        """The variance of all noise of observations, beside that of the function; `known`: that of their errors, in
        that of all that varies but for them."""
        return self.noise + (1 + self.noise) * known


class Blocks(NamedTuple):
    """Blocks of neighbours, `seen [blocks m]`: their rows, and the weight of the likelihood of each."""

    seen: np.ndarray
    weight: float

    @classmethod
    def of(cls, points: np.ndarray, values: np.ndarray) -> "Blocks":
        """The same whatever the order of `points [n d]` and `values [n dy]`."""
        n, rng = len(points), np.random.default_rng(0)
        some = rng.permutation(sorted_rows(_rounded(points), values))[:OF]
        size, centres, weight = _centres(rng, n, len(some), FEW_BLOCKS)
        return cls(some[_blocks(points[some], centres, size)], weight)


def fitted(
    points: np.ndarray, values: np.ndarray, kernel: Kernel, blocks: Blocks, error: np.ndarray | None = None
) -> Fit:
    """The greatest likelihood (`relative_speeds`) of `values [n dy]`, and their known standard errors if any, that vary
    alike along all coordinates of `points [n d]`. **Cost:** 0.02 to 0.2 s on a CPU core."""
    seen, weight = blocks
    known = np.zeros_like(values[seen]) if error is None else np.square(np.minimum(error[seen], MOST_ERROR))
    block = squares(points[seen])[None], values[seen], known, weight
    starts = [np.array([speed, np.log(noise)]) for speed, noise in STARTS]
    from_each = [  # the slow, and the fast, which may be noise
        min(part, key=lambda start: _loss(start, *block, kernel)[0]) for part in np.array_split(starts, FOLLOWED)
    ]
    ends = [_likeliest(start, (*block, kernel), steps=10) for start in from_each]
    guess = _likeliest(min(ends, key=lambda end: _loss(end, *block, kernel)[0]), (*block, kernel))
    speed, noise = np.exp(guess)
    log_likelihood, alone = (-float(_loss(g, *block, kernel)[0]) for g in (guess, np.array([NEVER, 0.0])))
    return Fit(kernel, float(speed), float(noise), log_likelihood, log_likelihood - alone)


def _centres(rng, n, of, most):
    """The size of blocks, which of the observations are in the middle of one, and the weight of their likelihood."""
    size = min(SIZE, n)
    blocks = min(most, -(-COVERED * n // size))
    return size, rng.integers(of, size=blocks), min(1.0, n / (blocks * size))  # as often as each is looked at


def _thinned(block):
    """Some of the blocks, of each kind, where there are many."""
    apart, values, known, weight = block
    step = max(len(values) // SEARCHED, 1)
    return apart[:, ::step], values[::step], known[::step], weight


def _likeliest_anywhere(block, groups):
    """The likeliest of the guesses that searches end at, which begin with coordinates alike and with some ahead."""
    starts = [np.append(np.full(groups, speed), np.log(noise)) for speed, noise in STARTS]
    alike = min(starts, key=lambda start: _loss(start, *block)[0])
    others = [*(alike[:-1] + _ahead(groups)), *(fast * row for fast in FAST for row in np.eye(groups))]
    starts = [alike, *(np.append(speeds, np.log(CLEAN)) for speeds in others)]
    starts.sort(key=lambda start: _loss(start, *block)[0])
    ends = [_likeliest(start, block, steps=10) for start in starts[:FOLLOWED]]
    return min(ends, key=lambda end: _loss(end, *block)[0])


def _ahead(groups):
    """Which coordinates may be ahead of which: all combinations of three, of more one at a time, lest there be many."""
    each = product(AHEAD, repeat=groups) if groups <= 3 else np.concatenate([a * np.eye(groups) for a in AHEAD])
    each = np.array(list(each))
    return np.unique(each - each.mean(axis=1, keepdims=True), axis=0)


def _settled(guess, block, near):
    """The guess by its own distances, and the blocks of these."""
    changed = _apart(guess)
    for _ in range(ROUNDS - 1):
        if np.abs(changed).max() < SETTLED:
            break
        before, block = guess, near(_apart(guess))
        guess = _likeliest(before, block)
        changed = _apart(guess) - _apart(before)
    return guess, block


def _likeliest(start, block, steps=30):
    bounds = [(-8.0, 8.0)] * (len(start) - 1) + [(-10.0, 3.0)]
    options = {"maxiter": steps, "ftol": 1e-5}
    return minimize(_loss, start, block, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x


def _probability(unlike, block):
    """That coordinates are `unlike`, as a guess has them, and not alike, which takes fewer parameters."""
    together = block[0].sum(axis=0, keepdims=True), *block[1:]
    alike = _likeliest(np.array([unlike[:-1].mean(), unlike[-1]]), together)
    gained = _loss(alike, *together)[0] - _loss(unlike, *block)[0]
    return expit(gained - COST * (len(unlike) - 2))


def _blocks(points, centres, size):
    """Indices `[blocks size]` of the nearest around the points `centres`, and of every fourth, every sixteenth of more
    of them: beside noise the nearest alone say little."""
    points = _rounded(points)
    tree, parts = KDTree(points), np.array_split(points[centres], len(EVERY))
    return np.concatenate([_every(tree, part, size, every) for part, every in zip(parts, EVERY, strict=True)])


def _every(tree, centres, size, every):
    reach = min(size * every, tree.n)
    return tree.query(centres, reach)[1].reshape(len(centres), reach)[:, np.linspace(0, reach - 1, size).astype(int)]


def _rounded(points):
    return np.round(points - points.min(axis=0), DECIMALS)


def _in_steps(logarithms, step):
    return np.round(logarithms / step) * step


def _apart(guess):
    """Logarithms of the factors, their mean zero."""
    return np.clip(guess[:-1] - guess[:-1].mean(), -LARGEST, LARGEST)


def squares(x: np.ndarray) -> np.ndarray:
    """Squared distances within each block `[blocks m d]`: `[blocks m m]`."""
    return np.square(x[:, :, None] - x[:, None]).sum(axis=-1)


def _loss(guess, apart, values, known, weight, kernel: Kernel = matern32):
    """The negative logarithm of the likelihood and the prior, and its gradient in `guess`: logarithms of the speeds of
    each group and of the variance of the noise. Blocks in which nothing varies (no rain, no cases) say nothing: their
    likelihood has no bound.

    Squared distances, `apart [groups blocks m m]`, `values [blocks m dy]`, and the known variances of their noise, as
    these, beside which values have the variance 1: that of function and noise."""
    speeds, dy = guess[:-1], values.shape[2]
    varied = np.ptp(values, axis=1) > 1e-9 * np.ptp(values, axis=(0, 1))
    total, slopes = 0.0, np.zeros_like(guess)
    for first in range(0, len(values), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        of_some, slopes_of_some = _of_blocks(guess, apart[:, some], values[some], known[some], varied[some], kernel)
        total, slopes = total + of_some, slopes + slopes_of_some
    prior, of_prior = _prior(speeds - speeds.mean())
    slopes = weight * slopes / dy
    slopes[:-1] += of_prior
    return weight * total / dy + prior, slopes


def _of_blocks(guess, apart, values, known, varied, kernel):
    """The sum over blocks and columns of values of the negative logarithm of the likelihood, and its gradient."""
    factors, noise = np.exp(2 * guess[:-1]), np.exp(guess[-1])
    (m, dy), total, slopes = values.shape[1:], 0.0, np.zeros_like(guess)
    k, slope = kernel(np.einsum("g,gbij->bij", factors, apart))
    for column in range(dy):
        of = varied[:, column]
        y, beside, matrix = values[of, :, column], known[of, :, column], k[of]
        np.einsum("bii->bi", matrix)[...] += noise + NUGGET + (1 + noise) * beside
        p, one = without_mean(matrix)
        py = np.einsum("bij,bj->bi", p, y)
        rest = np.maximum(np.sum(y * py, axis=1), 1e-12 * m)
        total += np.sum((m - 1) * np.log(rest) + np.linalg.slogdet(matrix)[1] + np.log(one)) / 2
        p -= outer(py * np.sqrt((m - 1) / rest)[:, None])  # now twice the slope in the matrix
        slopes[-1] += noise / 2 * np.sum(np.einsum("bii->bi", p) * (1 + beside))
        p *= slope[of]
        slopes[:-1] -= factors * np.array([np.vdot(p, each[of]) for each in apart])
    return total, slopes


def without_mean(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Of covariances $K$ `[blocks m m]` the matrices $P = K^{-1} - K^{-1} 1 1^\top K^{-1} / 1^\top K^{-1} 1$, for
    which values and values plus a number are one, and the denominators `[blocks]`."""
    inverse = np.linalg.inv(matrix)
    of_one = inverse.sum(axis=2)
    one = of_one.sum(axis=1)
    inverse -= outer(of_one / np.sqrt(one)[:, None])
    return inverse, one


def outer(x: np.ndarray) -> np.ndarray:
    """Products of the entries of each row `[blocks m]`: `[blocks m m]`."""
    return x[:, :, None] * x[:, None]


def _prior(apart):
    """The negative logarithm of the prior, and its gradient in the speeds, whose mean does not matter."""
    slopes = (FREEDOM + 1) * apart / (FREEDOM * SPREAD**2 + apart**2)
    return (FREEDOM + 1) / 2 * np.log1p(apart**2 / (FREEDOM * SPREAD**2)).sum(), slopes - slopes.mean()

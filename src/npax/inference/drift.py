"""What covariates add to a field: the external drift of geostatistics."""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from .anisotropy import NUGGET, Blocks, Fit, Kernel, fitted, matern12, matern32, squares, without_mean
from .frames import Frame
from .groups import groups
from .normalise import AbstractCoordinates
from .predict import adapted
from .standardise import Standardiser

FEWEST = 5
"""Observations below which covariates are ignored."""
TOGETHER, SIZE = 1024, 128
"""Observations up to which all are seen together; and in each of the groups that more of them are cut into."""
ROUNDS, SOME = 3, 128
"""How often the field is looked at anew, each time without the drift that was found before; and in how many groups
at most, but for the last time."""
STEPS = 10
"""In which slopes and the variance of what they leave come to agree."""
LEAST = 1e-14
"""The variance of what slopes leave, beside that of the values."""
UNKNOWN = 0.05
"""What is left of the degrees of freedom, at least, when slopes have taken theirs."""
CHUNK = 4096
"""Targets whose covariances with observations are in memory at a time."""


class Drift:
    r"""What covariates `z` add to values: `drift(z [n p]) -> [n dy]`, by slopes that are fitted to observations.

    By generalised least squares, as in universal kriging (Cressie, 1993, Statistics for Spatial Data, 3.4): what lies
    near each other is alike anyway, so that slopes are told by differences of near observations more than by those of
    far ones. Ordinary least squares would take what differs between north and south, for whatever reason, for the
    covariate's doing.

    Values $y = Z \beta + f + \epsilon$ are taken for a Gaussian process $f$ of Matern 3/2 or 1/2, whichever is
    likelier, and noise, of the greatest likelihood of what the slopes leave (`anisotropy.fitted`), in units in which
    that varies alike along all coordinates; more than 1,024 of them in groups of 128 neighbours, each with a mean of
    its own. With $P$ as there and $s^2$ the variance of what the slopes leave, in half that of the group, in half that
    of all, $\hat\beta = C \sum Z^\top P y / s^2$, $C = (\sum Z^\top P Z / s^2 + p)^{-1}$. The $p$ is a prior: together
    the covariates move values by about as much as these vary, or less. What slopes take of the degrees of freedom is
    missing in what they leave, by which it varies less than it should: its standard deviations are `widened [dy]` times
    as large.

    `doubt` says what is not known of the slopes. At a target they matter only as far as its covariates differ from what
    those of the group around it let expect, $\hat z$ (kriging): $(z - \hat z)^\top C (z - \hat z)$ is the variance.

    **Arguments:** `coordinates` of `x [n d]`; covariates `z [n p]`; `y [n dy]`, each column of which has slopes of its
    own, and its known standard errors, if any. **Cost:** on a CPU core 0.1 to 0.4 s for 100 to 300 observations, 1 s
    for 2,000, 2 s for 20,000, 4 s for 200,000. **Pitfalls:** effects are linear, and the same everywhere. With fewer
    than five observations covariates are ignored. With many covariates, a fifth as many as observations and more,
    intervals are too narrow or too wide: 100 observations with 20 white ones cover 88 %, with 50 98 %.
    """

    def __init__(
        self,
        coordinates: AbstractCoordinates,
        x: Float[np.ndarray, "n d"],
        z: Float[np.ndarray, "n p"],
        y: Float[np.ndarray, "n dy"],
        error: Float[np.ndarray, "n dy"] | None = None,
    ):
        self.coordinates, self.of_z, self.of_y = coordinates, Standardiser.of(z), Standardiser.of(y, error)
        self.slopes, self.each = np.zeros((z.shape[1], y.shape[1])), []
        if len(z) < FEWEST or not z.shape[1]:
            return
        positions, covariates, values = coordinates.positions(x), self.of_z(z), self.of_y(y)
        known = None if error is None else self.of_y.scaled(error).astype(float)
        kernels: list[tuple[Kernel, ...]] = [(matern12, matern32)] * len(values.T)
        near = _Near.of(coordinates, positions)
        for number in range(ROUNDS):
            rest = values - covariates @ self.slopes
            if number == 1:
                self.coordinates = adapted(coordinates, positions, rest, known, True)
                near = _Near.of(self.coordinates, positions)
            seen = near if number == ROUNDS - 1 else near.some(SOME)
            errors = [None] * len(values.T) if known is None else known.T
            columns = zip(rest.T, self.slopes.T, errors, kernels, strict=True)
            self.each = [_slopes(seen, covariates, *column) for column in columns]
            self.slopes = np.stack([column.mean for column in self.each], axis=1)
            if number:  # what no slopes have left yet is rougher or smoother by what the covariates add
                kernels = [(column.expected.fit.kernel,) for column in self.each]

    def __call__(self, z: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n dy"]:
        return self.of_z(z) @ self.slopes * self.unit

    @property
    def unit(self) -> Float[np.ndarray, " dy"]:
        """The standard deviations of the values."""
        return self.of_y.std

    @property
    def widened(self) -> Float[np.ndarray, " dy"]:
        """How many times as large the standard deviations are of what the drift leaves."""
        return np.array([column.widened for column in self.each]) if self.each else np.ones(len(self.unit))

    @property
    def coef(self) -> Float[np.ndarray, "dy p"]:
        """The slopes in the units of values and covariates."""
        return self._in_their_units(self.slopes)

    @property
    def coef_std(self) -> Float[np.ndarray, "dy p"]:
        """Their standard deviations, infinite where there are too few observations to tell."""
        unknown = np.full_like(self.slopes, np.inf)
        for c, column in enumerate(self.each):
            unknown[:, c] = np.linalg.norm(column.root, axis=1)
        return self._in_their_units(unknown)

    def _in_their_units(self, slopes):
        with np.errstate(over="ignore"):
            return (slopes * self.unit / self.of_z.std[:, None]).T

    def doubt(self, x: Float[np.ndarray, "n d"], z: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n p dy"]:
        """Independent parts of what is not known of the drift at places `x`, in the `unit` of each column: roots of its
        covariance, whose sums of squares are variances."""
        parts = np.zeros((*z.shape, self.slopes.shape[1]))
        positions, covariates = self.coordinates.positions(x), self.of_z(z)
        for c, column in enumerate(self.each):
            parts[..., c] = (covariates - column.expected(positions)) @ column.root
        return parts

    def part(self, x: Float[np.ndarray, "n d"]) -> "Drift":
        """The same at places among `x`, from what these need."""
        part, positions = copy.copy(self), self.coordinates.positions(x)
        part.each = [column._replace(expected=column.expected.part(positions)) for column in self.each]
        return part


class Expected:
    """Covariates `[n p]` as those around a place let expect, by the covariance of the values: kriging from the group of
    the nearest of `points [n d]` of a frame.

    **Arguments:** `sizes`: of the groups, which follow each other; `weights [n p]`, on the covariances with a group,
    and `middles [groups p]` beside them.
    """

    def __init__(
        self,
        frame: Frame,
        points: np.ndarray,
        sizes: np.ndarray,
        fit: Fit,
        weights: np.ndarray,
        middles: np.ndarray,
    ):
        self.frame, self.points, self.sizes, self.fit = frame, points, sizes, fit
        self.weights, self.middles, self.tree = weights, middles, KDTree(points)

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        at, found = self.frame(positions), np.empty((len(positions), self.weights.shape[1]))
        group_of, rows = self._group_of(at), self._rows()
        order = np.argsort(group_of, kind="stable")
        for group, targets in zip(*_runs(group_of[order], order), strict=True):
            for some in np.array_split(targets, -(-len(targets) // CHUNK)):
                apart = cdist(at[some], self.points[rows[group]], "sqeuclidean")
                covariance = self.fit.kernel(self.fit.speed**2 * apart)[0]
                found[some] = self.middles[group] + covariance @ self.weights[rows[group]]
        return found

    def part(self, positions: np.ndarray) -> "Expected":
        """The same at places among `positions`, from the groups that these need; from one where there are none."""
        used = np.unique(self._group_of(self.frame(positions))) if len(positions) else np.zeros(1, int)
        every = self._rows()
        rows = np.concatenate([every[group] for group in used])
        parts = self.points[rows], self.sizes[used], self.fit, self.weights[rows], self.middles[used]
        return Expected(self.frame, *parts)

    def _rows(self):
        return np.split(np.arange(len(self.points)), np.cumsum(self.sizes)[:-1])

    def _group_of(self, at):
        """To which group the nearest of each place belongs."""
        if len(self.sizes) == 1:
            return np.zeros(len(at), int)
        return np.repeat(np.arange(len(self.sizes)), self.sizes)[self.tree.query(at)[1]]


def _runs(ascending, a):
    """The different numbers, and the parts of `a` along each."""
    numbers, starts = np.unique(ascending, return_index=True)
    return numbers, np.split(a, starts[1:]) if len(numbers) else []


class Slopes(NamedTuple):
    """Those of one column of values, `mean [p]`, a root `[p p]` of their covariance, how many times as much varies as
    they leave, and the covariates to be expected."""

    mean: np.ndarray
    root: np.ndarray
    widened: float
    expected: Expected


class _Near(NamedTuple):
    """Observations at `points [n d]` of a `frame`, in groups of neighbours, `rows` of them: all of a few."""

    frame: Frame
    points: np.ndarray
    rows: list[np.ndarray]

    @classmethod
    def of(cls, coordinates: AbstractCoordinates, positions: np.ndarray) -> "_Near":
        frame = coordinates.space(positions)
        points, n = frame(positions), len(positions)
        found = groups(points, SIZE) if n > TOGETHER else [np.arange(n)]  # places that coincide stay together
        rows = [part for rows in found for part in np.array_split(rows, -(-len(rows) // TOGETHER))]
        return cls(frame, points, rows)

    def some(self, most: int) -> "_Near":
        """At most so many of the groups."""
        return self._replace(rows=self.rows[:: -(-len(self.rows) // most)])


def _slopes(
    near: _Near,
    z: np.ndarray,
    rest: np.ndarray,
    before: np.ndarray,
    error: np.ndarray | None,
    kernels: Sequence[Kernel],
) -> Slopes:
    """Of values of which slopes `before [p]` leave `rest [n]`."""
    of_rest = Standardiser.of(rest[:, None], None if error is None else error[:, None])
    values = of_rest(rest[:, None])
    known = None if error is None else of_rest.scaled(error[:, None]).astype(float)
    blocks = Blocks.of(near.points, values)
    fits = [fitted(near.points, values, kernel, blocks, known) for kernel in kernels]
    fit = max(fits, key=lambda fit: fit.log_likelihood)
    noise = NUGGET + fit.beside(np.zeros(len(z)) if known is None else np.square(known[:, 0]))
    each = [_group(near.points[rows], z[rows], rest[rows], noise[rows], fit) for rows in near.rows]
    weights, middles, zpz, zpr, rpr = zip(*each, strict=True)
    sizes = np.array([len(rows) for rows in near.rows])
    mean, covariance, left = _settled(before, sizes, *map(np.array, (zpz, zpr, rpr)))
    root = np.linalg.cholesky(covariance / 2 + covariance.T / 2)
    points = near.points[np.concatenate(near.rows)]
    expected = Expected(near.frame, points, sizes, fit, np.concatenate(weights), np.array(middles))
    return Slopes(mean, root, left**-0.5, expected)


def _group(points, z, rest, noise, fit):
    """Of one group what tells its covariates, `P z [m p]` and their middle, and the products of covariates `z` and
    `rest` by `P`."""
    k = fit.kernel(fit.speed**2 * squares(points[None]))[0][0]
    inverse, _ = without_mean((k + np.diag(noise))[None])
    pz = inverse[0] @ z
    middle = np.mean(z - (k + np.diag(noise)) @ pz, axis=0)
    return pz, middle, z.T @ pz, pz.T @ rest, rest @ inverse[0] @ rest


def _settled(before, sizes, zpz, zpr, rpr):
    """Slopes `[p]` and their covariance, which agree with the variance of what they leave in each group; and the share
    of the degrees of freedom that they leave."""
    p, others = len(before), sizes - 1.0
    more, covariance, share = np.zeros(p), np.eye(p), 1.0
    for _ in range(STEPS):
        freedom = np.maximum(share * others, UNKNOWN)
        left = np.maximum(rpr - 2 * zpr @ more + np.einsum("p,gpq,q->g", more, zpz, more), 0.0)
        variance = left / freedom / 2 + left.sum() / freedom.sum() / 2
        weight = 1 / np.maximum(variance, LEAST)
        told = np.einsum("gpq,g->pq", zpz, weight)
        covariance = np.linalg.inv(told + p * np.eye(p))
        more = covariance @ (np.einsum("gp,g->p", zpr, weight) + told @ before) - before
        share = max(1 - np.trace(covariance @ told) / max(others.sum(), 1.0), UNKNOWN)
    return before + more, covariance, share

"""What covariates add to a field: the external drift of geostatistics."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from .anisotropy import NUGGET, Blocks, Fit, fitted, matern12, matern32, squares, without_mean
from .frames import Frame
from .normalise import AbstractCoordinates
from .predict import Exact, Prediction, adapted
from .standardise import Standardiser
from .tile import Tiled

FEWEST = 5
"""Observations below which covariates are not heard."""
TOGETHER = 1024
"""Observations up to which all are seen together, and slopes have a doubt; more leave little."""
LEAST = 1e-9
"""Of the variance in a block beside that of all values."""
CHUNK = 4096
"""Targets whose covariances with the observations are in memory at a time."""


class Drift:
    r"""What covariates `z` add to values: `drift(z [n p]) -> [n dy]`, by slopes that are fitted to observations.

    By generalised least squares, as in universal kriging (Cressie, 1993, Statistics for Spatial Data, 3.4): what lies
    near each other is alike anyway, so that slopes are told by differences of near observations more than by those of
    far ones. Ordinary least squares would take what differs between north and south, for whatever reason, for the
    covariate's doing.

    Values $y = Z \beta + f + \epsilon$ are taken for a Gaussian process $f$ of Matern 3/2 or 1/2, whichever is
    likelier, and noise, of the greatest likelihood of what the slopes leave (`anisotropy.fitted`); more than 1,024 of
    them in blocks of neighbours, each with a mean and a variance $s^2$ of its own:
    $\hat\beta = C \sum Z^\top P y / s^2$, $C = (\sum Z^\top P Z / s^2 + 1)^{-1}$. The 1 is a prior: a covariate's
    standard deviation moves values by about one of theirs, or less. Twice: the second time without the slopes found
    first, and in units in which what they leave varies alike along all coordinates.

    `doubt` says what is not known of the slopes. At a target they matter only as far as its covariates differ from what
    those around it have let expect, $\hat z$ (kriging): $(z - \hat z)^\top C (z - \hat z)$ is the variance.

    **Arguments:** `coordinates` of `x [n d]`; covariates `z [n p]`; `y [n dy]`, each column of which has slopes of its
    own, and its known standard errors, if any. **Cost:** on a CPU core 0.1 to 0.3 s for 100 to 300 observations, 2 s
    for any number from 5,000 on. **Pitfalls:** effects are linear, and the same everywhere.
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
        for units_are_found in (False, True):
            rest = values - covariates @ self.slopes
            system = adapted(coordinates, positions, rest, known, True) if units_are_found else coordinates
            frame = system.space(positions)
            self.each = [
                _slopes(frame, frame(positions), covariates, *column)
                for column in zip(values.T, rest.T, [None] * len(values.T) if known is None else known.T, strict=True)
            ]
            self.slopes = np.stack([column.mean for column in self.each], axis=1)

    def __call__(self, z: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n dy"]:
        return self.of_z(z) @ self.slopes * self.of_y.std

    @property
    def coef(self) -> Float[np.ndarray, "dy p"]:
        """The slopes in the units of values and covariates."""
        return (self.slopes / self.of_z.std[:, None] * self.of_y.std).T

    def doubt(self, x: Float[np.ndarray, "n d"], z: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n p dy"]:
        """Independent parts of what is not known of the drift at places `x`: roots of its covariance, whose sums of
        squares are variances."""
        parts = np.zeros((*z.shape, self.slopes.shape[1]))
        positions, covariates = self.coordinates.positions(x), self.of_z(z)
        for c, (_, root, expected) in enumerate(self.each):
            if expected is not None:
                parts[..., c] = (covariates - expected(positions)) @ root
        return parts * self.of_y.std


class Expected(NamedTuple):
    """Covariates as those around a place let expect, by the covariance of the values: kriging from `points [n d]` of a
    frame, with `weights [n p]` on the covariances, and a `middle [p]`."""

    frame: Frame
    points: np.ndarray
    fit: Fit
    weights: np.ndarray
    middle: np.ndarray

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        found = np.empty((len(positions), len(self.middle)))
        for start in range(0, len(positions), CHUNK):
            rows = slice(start, start + CHUNK)
            apart = cdist(self.frame(positions[rows]), self.points, "sqeuclidean")
            found[rows] = self.middle + self.fit.kernel(self.fit.speed**2 * apart)[0] @ self.weights
        return found


class Slopes(NamedTuple):
    """Those of one column of values, `mean [p]`, and a root `[p p]` of their covariance; `expected` is None where many
    observations leave little doubt."""

    mean: np.ndarray
    root: np.ndarray
    expected: Expected | None = None


def _slopes(frame, points, z, y, rest, error):
    """Of values `y [n]`, of which an earlier drift leaves `rest`."""
    rest, error = rest[:, None], None if error is None else error[:, None]
    of_rest = Standardiser.of(rest, error)
    rest, error = of_rest(rest), None if error is None else of_rest.scaled(error).astype(float)
    blocks = Blocks.of(points, rest)
    fits = [fitted(points, rest, kernel, blocks, error) for kernel in (matern12, matern32)]
    fit, (n, p) = max(fits, key=lambda fit: fit.log_likelihood), z.shape
    seen, weight = Blocks(np.arange(n)[None], 1.0) if n <= TOGETHER else blocks
    noise = fit.noise + NUGGET + (0.0 if error is None else np.square(error[seen]))
    k = fit.kernel(fit.speed**2 * squares(points[seen]))[0] + noise * np.eye(seen.shape[1])
    inverse, _ = without_mean(k)
    rest, pz = rest[seen, 0], inverse @ z[seen]
    freedom = max(seen.shape[1] - 1 - (p if len(seen) == 1 else 0), 1)
    variance = np.maximum(np.einsum("bi,bij,bj->b", rest, inverse, rest) / freedom, LEAST) * of_rest.std**2
    weights = weight / variance
    information = np.einsum("bip,biq,b->pq", pz, z[seen], weights) + np.eye(p)
    covariance = np.linalg.inv(information)
    mean = covariance @ np.einsum("bip,bi,b->p", pz, y[seen], weights)
    root = np.linalg.cholesky(covariance / 2 + covariance.T / 2)
    if n > TOGETHER:
        return Slopes(mean, root)
    middle = np.mean(z - (k @ pz)[0], axis=0)
    return Slopes(mean, root, Expected(frame, points, fit, pz[0], middle))


class Columns(NamedTuple):
    """Which columns of a table `x [n d + p]` are coordinates of `places`, and which are `covariates`."""

    places: list[int]
    covariates: list[int]

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`[n d]` and `[n p]`."""
        return x[:, self.places], x[:, self.covariates]


class WithDrift:
    """A predictor of what a `drift` leaves, and the drift: a function of `x [n d + p]`, whose `columns` are coordinates
    and covariates."""

    def __init__(self, field: Exact | Tiled, drift: Drift, columns: Columns):
        self.field, self.drift, self.columns = field, drift, columns

    def __call__(self, x: np.ndarray) -> Prediction:
        rest, added = self.field(self.columns.split(x)[0]), self.added(x)
        unknown = np.sqrt(np.square(self.doubt(x)).sum(axis=1))
        stds = (np.hypot(std, unknown) for std in (rest.observation_std, rest.function_std))
        return Prediction(rest.mean + added, *stds)

    def added(self, x: np.ndarray) -> np.ndarray:
        """The drift at rows of `x`, `[n dy]`."""
        return self.drift(self.columns.split(x)[1])

    def doubt(self, x: np.ndarray) -> np.ndarray:
        """What is not known of it, `[n p dy]` (`Drift.doubt`)."""
        return self.drift.doubt(*self.columns.split(x))

    def part(self, x: np.ndarray) -> "WithDrift":
        """The same answers at places among `x` from what those need (`Tiled.part`)."""
        assert isinstance(self.field, Tiled)  # only tiles have parts
        return WithDrift(self.field.part(self.columns.split(x)[0]), self.drift, self.columns)

    def of(self, model: Any) -> "WithDrift":
        """The same with another model (`Tiled.of`)."""
        assert isinstance(self.field, Tiled)
        return WithDrift(self.field.of(model), self.drift, self.columns)

    @property
    def in_tiles(self) -> bool:
        return self.field.in_tiles

    @property
    def model(self) -> Any:
        return self.field.model

    @property
    def dy(self) -> int:
        return self.field.dy

    @property
    def progress(self) -> bool:
        return self.field.progress

    @progress.setter
    def progress(self, shown: bool) -> None:
        self.field.progress = shown

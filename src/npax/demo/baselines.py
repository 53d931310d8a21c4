"""What one would reach for first, as honest opponents: fitted on the same observations, with uncertainty."""

import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel


def chords(X: np.ndarray) -> np.ndarray:
    """Longitude and latitude in degrees, the first columns of `X [n d]`, to points on the unit sphere `[n 3]`."""
    lon, lat = np.deg2rad(X[:, :2]).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


PACES = (0.0, *np.geomspace(1e-4, 1e-2, 9))
"""How far, in radii of the globe, a further coordinate's unit (a day) may be: one of these."""


class InverseDistance:
    r"""Inverse-distance weighting of the `neighbours` nearest observations, weights $1/r^2$, on the sphere, and in a
    further coordinate, such as days, in the unit in which (at most 5,000 of) the observations are best predicted from
    the others.

    The standard deviation comes from the weighted spread $s$ of the neighbours about their mean:
    $\sigma^2 = a s^2 + b$, with $a$ and $b$ fitted once by maximum likelihood of the leave-one-out residuals of
    (at most 5,000 of) the observations. So it is calibrated on average, and larger where neighbours disagree.
    """

    def __init__(self, neighbours: int = 16, random_state: int = 0):
        self.neighbours, self.random_state = neighbours, random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "InverseDistance":
        self._y = y
        some = np.random.default_rng(self.random_state).permutation(len(X))[:5000]
        found = [(pace, *self._left_out(X, some, pace)) for pace in (PACES if X.shape[1] > 2 else PACES[:1])]
        self._pace, squares, spread = min(found, key=lambda each: each[1].mean())
        self._tree = KDTree(self._places(X, self._pace))

        def loss(log_ab):
            variance = np.exp(log_ab[0]) * spread + np.exp(log_ab[1])
            return np.mean(np.log(variance) + squares / variance)

        self._a, self._b = np.exp(minimize(loss, [0.0, np.log(0.1 * squares.mean() + 1e-12)]).x)
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a new observation, each `[n]`."""
        mean, spread = self._weigh(self._tree, self._places(X, self._pace))
        return mean, np.sqrt(self._a * spread + self._b)

    def _left_out(self, X, some, pace):
        """Squared errors and spreads at observations that do not count themselves."""
        places = self._places(X, pace)
        mean, spread = self._weigh(KDTree(places), places[some], skip=1)
        return np.square(self._y[some] - mean), spread

    @staticmethod
    def _places(X, pace):
        return np.column_stack([chords(X), pace * X[:, 2:]])

    def _weigh(self, tree, places, skip=0):
        """Weighted mean and variance of the nearest observations, without the first `skip` of them."""
        nearest = min(self.neighbours + skip, len(self._y))
        distance, index = (np.reshape(a, (len(places), -1)) for a in tree.query(places, nearest))
        distance, index = distance[:, skip:], index[:, skip:]
        weights = 1 / np.maximum(distance, 1e-6) ** 2
        weights /= weights.sum(axis=1, keepdims=True)
        mean = np.sum(weights * self._y[index], axis=1)
        return mean, np.sum(weights * np.square(self._y[index] - mean[:, None]), axis=1)


class SubsetGP:
    """scikit-learn's exact Gaussian process on a random subset of the observations, on the sphere.

    Kernel: a constant times Matern 3/2 on chords, plus white noise; amplitude, length scale and noise by maximum
    marginal likelihood, `y` standardised. With a further coordinate, such as days, one length scale for each axis. More
    than a few thousand observations are out of its reach: O(n³).
    """

    def __init__(self, size: int = 2000, random_state: int = 0):
        self.size, self.random_state = size, random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SubsetGP":
        some = np.random.default_rng(self.random_state).permutation(len(X))[: self.size]
        spread = X[some, 2:].std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        lengths = 0.3 if X.shape[1] == 2 else [0.3] * 3 + [1.0] * (X.shape[1] - 2)
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(lengths, (1e-3, 1e2), nu=1.5)
        kernel = kernel + WhiteKernel(0.05, (1e-6, 1e1))
        self._gp = GaussianProcessRegressor(kernel, normalize_y=True, random_state=self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._gp.fit(self._places(X[some]), y[some])
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a new observation, each `[n]`."""
        return self._gp.predict(self._places(X), return_std=True)  # pyright: ignore[reportReturnType]

    def _places(self, X):
        return np.column_stack([chords(X), X[:, 2:] / self._spread])

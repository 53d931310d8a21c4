"""What one would reach for first, as honest opponents: fitted on the same observations, with uncertainty."""

import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel


def chords(X: np.ndarray) -> np.ndarray:
    """Longitude and latitude in degrees `[n 2]` to points on the unit sphere `[n 3]`."""
    lon, lat = np.deg2rad(X).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


class InverseDistance:
    r"""Inverse-distance weighting of the `neighbours` nearest observations, weights $1/r^2$, on the sphere.

    The standard deviation comes from the weighted spread $s$ of the neighbours about their mean:
    $\sigma^2 = a s^2 + b$, with $a$ and $b$ fitted once by maximum likelihood of the leave-one-out residuals of
    (at most 5,000 of) the observations. So it is calibrated on average, and larger where neighbours disagree.
    """

    def __init__(self, neighbours: int = 16, random_state: int = 0):
        self.neighbours, self.random_state = neighbours, random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "InverseDistance":
        self._tree, self._y = KDTree(chords(X)), y
        some = np.random.default_rng(self.random_state).permutation(len(X))[:5000]
        mean, spread = self._weigh(X[some], skip=1)  # without the point itself
        squares = np.square(y[some] - mean)

        def loss(log_ab):
            variance = np.exp(log_ab[0]) * spread + np.exp(log_ab[1])
            return np.mean(np.log(variance) + squares / variance)

        self._a, self._b = np.exp(minimize(loss, [0.0, np.log(0.1 * squares.mean() + 1e-12)]).x)
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a new observation, each `[n]`."""
        mean, spread = self._weigh(X)
        return mean, np.sqrt(self._a * spread + self._b)

    def _weigh(self, X, skip=0):
        """Weighted mean and variance of the nearest observations, without the first `skip` of them."""
        nearest = min(self.neighbours + skip, len(self._y))
        distance, index = (np.reshape(a, (len(X), -1)) for a in self._tree.query(chords(X), nearest))
        distance, index = distance[:, skip:], index[:, skip:]
        weights = 1 / np.maximum(distance, 1e-6) ** 2
        weights /= weights.sum(axis=1, keepdims=True)
        mean = np.sum(weights * self._y[index], axis=1)
        return mean, np.sum(weights * np.square(self._y[index] - mean[:, None]), axis=1)


class SubsetGP:
    """scikit-learn's exact Gaussian process on a random subset of the observations, on the sphere.

    Kernel: a constant times Matern 3/2 on chords, plus white noise; amplitude, length scale and noise by maximum
    marginal likelihood, `y` standardised. More than a few thousand observations are out of its reach: O(n³).
    """

    def __init__(self, size: int = 2000, random_state: int = 0):
        self.size, self.random_state = size, random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SubsetGP":
        some = np.random.default_rng(self.random_state).permutation(len(X))[: self.size]
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(0.3, (1e-3, 1e2), nu=1.5) + WhiteKernel(0.05, (1e-6, 1e1))
        self._gp = GaussianProcessRegressor(kernel, normalize_y=True, random_state=self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._gp.fit(chords(X[some]), y[some])
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a new observation, each `[n]`."""
        return self._gp.predict(chords(X), return_std=True)  # pyright: ignore[reportReturnType]

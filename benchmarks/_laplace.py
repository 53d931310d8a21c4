"""A Gaussian process of the levels of counts, fitted by Laplace's approximation: what geostatistics would do."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from npax.counts import AbstractCounts

MEAN = 25.0
"""The variance of the mean of all levels, about that of the rate of all: as good as not known."""
STARTS = ((-1.5, 0.0, -2.0), (0.0, 0.0, -2.0))
"""Logarithms of the length, of the variance, and of the variance of the noise."""
BOUNDS = ((-4.0, 3.0), (-4.0, 3.0), (-8.0, 2.0))


@dataclass(frozen=True)
class Laplace:
    """Matern 3/2 of one length and noise, the greatest of their likelihoods by Laplace's approximation, with the same
    for predictions (Rasmussen and Williams, 2006, chapter 3; here for any count)."""

    counts: AbstractCounts

    def levels(self, places, y, exposure, wanted) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the level of a new count at each of `wanted [m d]`."""
        middle = self.counts.level((y.sum() + 0.5) / (exposure.sum() + 1.0))
        centre, width = places.mean(axis=0), places.std(axis=0).max()
        x, at = (places - centre) / width, (wanted - centre) / width
        given = (cdist(x, x), y, exposure, middle)
        ends = [minimize(self._loss, start, given, method="L-BFGS-B", bounds=BOUNDS) for start in STARTS]
        best = min(ends, key=lambda end: end.fun).x
        k = self._covariance(best, given[0], np.eye(len(y)))
        mode, weight, _ = self._mode(k, *given[1:])
        across, noise = self._covariance(best, cdist(at, x), 0.0), np.exp(best[2])
        slope = self._slope(mode, y, exposure, middle)
        known = cho_factor(k + np.diag(1 / weight))
        variance = np.exp(best[1]) + MEAN + noise - np.einsum("ij,ji->i", across, cho_solve(known, across.T))
        return middle + across @ slope, np.sqrt(np.maximum(variance, 1e-9))

    def _loss(self, logarithms, distance, y, exposure, middle):
        return -self._mode(self._covariance(logarithms, distance, np.eye(len(y))), y, exposure, middle)[2]

    @staticmethod
    def _covariance(logarithms, distance, own):
        scale, variance, noise = np.exp(logarithms)
        r = np.sqrt(3) * distance / scale
        return variance * (1 + r) * np.exp(-r) + MEAN + noise * own

    def _mode(self, k, y, exposure, middle):
        """The mode of levels less `middle`, by Newton's method, the weights there and the logarithm of the evidence."""
        f = np.zeros(len(y))
        for _ in range(50):
            weight = np.maximum(exposure * self.counts.slope(middle + f, np.zeros(len(y))), 1e-8)
            target = f + self._slope(f, y, exposure, middle) / weight
            new = k @ np.linalg.solve(k + np.diag(1 / weight), target)
            step = np.clip(new - f, -2.0, 2.0)
            f = f + step
            if np.abs(step).max() < 1e-6:
                break
        root = np.sqrt(weight)
        _, determinant = np.linalg.slogdet(np.eye(len(y)) + root[:, None] * k * root)
        likely = self.counts.log_prob(y, exposure, middle + f).sum()
        return f, weight, likely - f @ self._slope(f, y, exposure, middle) / 2 - determinant / 2

    def _slope(self, f, y, exposure, middle):
        """The derivative of the logarithm of the likelihood; at the mode the inverse covariance times it."""
        return y - exposure * self.counts.rate(middle + f)

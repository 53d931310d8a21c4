"""Exact kriging of a picture: an exponential covariance, by conjugate gradients and fast Fourier transforms."""

from dataclasses import dataclass

import numpy as np
from scipy import fft
from scipy.spatial import cKDTree

NEIGHBOURS = 48
"""Observations that the variance at a pixel is computed from; the mean is computed from all."""
TOLERANCE = 1e-4
MOST = 500


@dataclass(frozen=True)
class Kriging:
    """Ordinary kriging with `variance * exp(-distance / scale)`, distances in pixels, and noise of the share `nugget`
    of the variance. Mean and variance are estimated (generalised least squares), `scale` and `nugget` are given.

    **Cost:** some hundred products with the covariance, each two transforms of four times the picture.
    """

    scale: float
    nugget: float

    def fill(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a new observation at each pixel of `y [rows columns]`, NaN in the gaps."""
        seen = np.isfinite(y)
        covariance = _Covariance(y.shape, self)
        ones = seen.astype(float)
        weights, of_ones = (covariance.solve(np.where(seen, a, 0.0), seen) for a in (y, ones))
        centre = weights.sum() / of_ones.sum()
        weights = weights - centre * of_ones
        variance = np.sum(weights * np.where(seen, y - centre, 0.0)) / (seen.sum() - 1)
        return centre + covariance @ weights, np.sqrt(variance * self._variances(seen))

    def _variances(self, seen):
        """Of a new observation, given the nearest ones, for a process of unit variance."""
        places, wanted = np.argwhere(seen), np.argwhere(np.ones_like(seen))
        _, nearest = cKDTree(places).query(wanted, NEIGHBOURS)
        found = np.empty(len(wanted))
        for part in np.array_split(np.arange(len(wanted)), max(1, len(wanted) // 2000)):
            near = places[nearest[part]]
            among = self._exp(near[:, :, None] - near[:, None]) + self.nugget * np.eye(NEIGHBOURS)
            across = self._exp(near - wanted[part, None])
            found[part] = 1 + self.nugget - np.sum(across * np.linalg.solve(among, across[..., None])[..., 0], axis=1)
        return found.reshape(seen.shape)

    def _exp(self, difference):
        return np.exp(-np.hypot(difference[..., 0], difference[..., 1]) / self.scale)


class _Covariance:
    """Of all pixels of a picture, as an operator; it lies in a torus of twice the sides."""

    def __init__(self, shape, kriging):
        self.shape, self.torus, self.nugget = shape, tuple(2 * n for n in shape), kriging.nugget
        rows, columns = (np.minimum(np.arange(n), n - np.arange(n)) for n in self.torus)
        around = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1)
        self.spectrum = fft.rfft2(kriging._exp(around)).real  # of the torus: some of it may be negative

    def __matmul__(self, values):
        return self._filtered(values, self.spectrum)

    def _filtered(self, values, spectrum):
        product = fft.irfft2(spectrum * fft.rfft2(values, s=self.torus), s=self.torus)
        return product[: self.shape[0], : self.shape[1]]

    def solve(self, values, seen):
        """Conjugate gradients, preconditioned by the inverse on the torus; zero where nothing is seen."""
        inverse = 1 / (np.maximum(self.spectrum, 0.0) + self.nugget)
        x, left, direction, before = np.zeros(self.shape), values, np.zeros(self.shape), np.inf
        for _ in range(MOST):
            if np.linalg.norm(left) < TOLERANCE * np.linalg.norm(values):
                return x
            conditioned = seen * self._filtered(left, inverse)
            now = np.sum(left * conditioned)
            direction = conditioned + now / before * direction
            product = seen * (self @ direction + self.nugget * direction)
            step = now / np.sum(direction * product)
            x, left, before = x + step * direction, left - step * product, now
        raise RuntimeError(f"Conjugate gradients did not come to {TOLERANCE:g} within {MOST} steps.")

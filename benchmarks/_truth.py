"""Fields whose covariance is known: drawn, and predicted as well as can be."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.spatial.distance import cdist


def matern32(x: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Matern 3/2 covariances of unit variance among places `x [n d]`."""
    r = np.sqrt(3) * cdist(x, x) / scale
    return (1 + r) * np.exp(-r)


def draw(rng: np.random.Generator, k: np.ndarray) -> np.ndarray:
    """A field of the covariances `k [n n]`."""
    return cholesky(k + 1e-8 * np.eye(len(k)), lower=True) @ rng.normal(size=len(k))


def best_answer(
    k: np.ndarray, y: np.ndarray, noise: float | np.ndarray, include_noise: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation at the last places of the process that knows `k`, the covariances of all, and the
    standard deviation of the noise on observations `y` at the first: of the field, or of new observations."""
    n = len(y)
    known, across = cho_factor(k[:n, :n] + np.square(noise) * np.eye(n)), k[n:, :n]
    variance = np.diag(k)[n:] - np.einsum("ij,ji->i", across, cho_solve(known, across.T))
    more = np.square(noise) if include_noise else 0.0
    return across @ cho_solve(known, y), np.sqrt(np.maximum(variance, 1e-12) + more)

"""The trend surface of a large context."""

from itertools import combinations_with_replacement

import numpy as np

SMALLEST = 1e-2
"""Singular value, beside the largest, of what is fitted: of points that fill a box none is below 0.06."""


class Trend:
    """The surface of second degree, `trend(points [n d]) -> [n dy]`, nearest to values at `points` by least squares.

    With known standard errors of the values, in units of what varies beside the trend, the squares count the less the
    larger these are, $1 / (1 + e^2)$.

    Constant in a coordinate beyond the box that holds the points: polynomials are no guide outside of what they were
    fitted to. Nor in the parts of the box without points, where these lie along a line or on a small patch of a sphere:
    what they hardly tell apart is not fitted.

    **Cost:** O(d^4) per point, once; O(d^2) later. **Good values:** many points, a thousand or more.
    """

    def __init__(self, points: np.ndarray, values: np.ndarray, error: np.ndarray | None = None):
        self.low, self.high = points.min(axis=0), points.max(axis=0)
        powers = self._powers(points)
        if error is None:
            self.weights = np.linalg.lstsq(powers, values, rcond=SMALLEST)[0]
        else:
            roots = 1 / np.hypot(1.0, error)
            columns = zip(values.T, roots.T, strict=True)
            fits = [np.linalg.lstsq(powers * root[:, None], y * root, rcond=SMALLEST)[0] for y, root in columns]
            self.weights = np.stack(fits, axis=1)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return self._powers(points) @ self.weights

    def _powers(self, points):
        """All products of up to two coordinates, each of which is brought to [-1, 1]."""
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        scaled = (2 * np.clip(points, self.low, self.high) - self.low - self.high) / width
        factors = [np.ones(len(points)), *scaled.T]
        return np.stack([a * b for a, b in combinations_with_replacement(factors, 2)], axis=1)

"""The benchmark's own kriging against its closed form."""

from pathlib import Path

import numpy as np

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_kriging_is_the_best_linear_unbiased_prediction(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from _kriging import NEIGHBOURS, Kriging

    y = np.random.default_rng(0).normal(size=(7, 10))
    y[2:5, 3:7] = y[0, 9] = np.nan
    seen, n = np.isfinite(y), NEIGHBOURS
    y[tuple(np.argwhere(seen)[n:].T)] = np.nan  # as many observations as the variance is computed from
    seen = np.isfinite(y)
    places, wanted = np.argwhere(seen), np.argwhere(np.ones_like(seen))

    def covariance(a, b):
        return np.exp(-np.linalg.norm(a[:, None] - b, axis=-1) / 5.0)

    inverse, across = np.linalg.inv(covariance(places, places) + 0.1 * np.eye(n)), covariance(wanted, places)
    ones = np.ones(n)
    centre = ones @ inverse @ y[seen] / (ones @ inverse @ ones)
    left = y[seen] - centre
    variance = left @ inverse @ left / (n - 1) * (1.1 - np.sum(across @ inverse * across, axis=1))
    mean, std = Kriging(scale=5.0, nugget=0.1).fill(y)
    assert np.allclose(mean.ravel(), centre + across @ inverse @ left, atol=1e-3)
    assert np.allclose(std.ravel(), np.sqrt(variance), rtol=1e-3)

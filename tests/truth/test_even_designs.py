"""The shipped model against Gaussian processes that know kernel and noise, where no two observations are close."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import npax
from npax.metrics import score_report


def kernel(a, b):
    r = np.sqrt(3) * cdist(a, b) / 0.3
    return (1 + r) * np.exp(-r)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("sides", [(40,), (12, 12)])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_noise_is_told_from_the_function_on_even_designs(sides, noise):
    """Matern 3/2 fields on a line and on a lattice: 4,000 new observations of 20 fields."""
    axes = [np.linspace(0, 1, side) for side in sides]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(sides))
    reg, scores = npax.NeuralProcessRegressor(), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        xt = rng.uniform(size=(200, len(sides)))
        every = np.concatenate([x, xt])
        k = kernel(every, every)
        y = np.linalg.cholesky(k + 1e-9 * np.eye(len(k))) @ rng.normal(size=len(k)) + noise * rng.normal(size=len(k))
        n = len(x)
        weights = np.linalg.solve(k[:n, :n] + noise**2 * np.eye(n), k[:n, n:])
        best = y[:n] @ weights, np.sqrt(1 - np.sum(weights * k[:n, n:], axis=0) + noise**2)
        found = reg.fit(x, y[:n]).predict(xt, return_std=True)
        reports = [score_report(y[n:], *moments) for moments in (found, best)]
        scores.append([[report["crps"], report["coverage"]] for report in reports])
    (crps, coverage), (best_crps, _) = np.mean(scores, axis=0)
    assert 0.86 < coverage < 0.98 and crps < 1.12 * best_crps

"""The shipped model, told the errors of averages of few and many values, against a Gaussian process that knows all."""

import numpy as np
from scipy.spatial.distance import cdist

import npax
from npax.metrics import score_report


def kernel(a, b):
    r = np.sqrt(3) * cdist(a, b) / 0.5
    return (1 + r) * np.exp(-r)


def test_known_errors_leave_little_of_what_is_lost_without_them():
    """Matern 3/2 fields in the plane, averages of 1 to 100 values with noise as strong as the field."""
    reg, scores = npax.NeuralProcessRegressor(), []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, xt = rng.uniform(size=(100, 2)), rng.uniform(size=(100, 2))
        error = 1 / np.sqrt(np.floor(100 ** rng.uniform(size=100)))
        every = np.concatenate([x, xt])
        function = np.linalg.cholesky(kernel(every, every) + 1e-9 * np.eye(200)) @ rng.normal(size=200)
        y, truth = function[:100] + error * rng.normal(size=100), function[100:]
        weights = np.linalg.solve(kernel(x, x) + np.diag(error**2), kernel(x, xt))
        best = y @ weights, np.sqrt(1 - np.sum(weights * kernel(x, xt), axis=0))
        answers = [reg.fit(x, y, error=e).predict(xt, return_std=True, include_noise=False) for e in (error, None)]
        reports = [score_report(truth, *moments) for moments in (*answers, best)]
        scores.append([[report["crps"], report["coverage"]] for report in reports])
    (told, coverage), (untold, _), (best, _) = np.mean(scores, axis=0)
    assert told < 1.15 * best < 1.4 * best < untold and 0.9 < coverage < 0.98

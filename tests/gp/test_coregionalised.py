"""Processes of several outputs against the dense textbook formula, and their fit."""

import jax
import numpy as np
import pytest
import scipy.stats

from npax import Task
from npax.gp import CoregionalisedGP, maximum_a_posteriori, maximum_a_posteriori_gp

posterior = jax.jit(CoregionalisedGP.posterior)
rotation = jax.jit(lambda gp: gp.rotation)


def between_outputs(gp):
    with jax.enable_x64(True):
        u = np.asarray(rotation(gp))
    return u @ np.diag(np.exp(gp.log_variance)) @ u.T


def dense(gp, x, z):
    """Covariances between all outputs at `x` and all at `z`, `[n dy, m dy]`, without noise."""
    away = (x[:, None] - z[None]) / np.exp(gp.log_scale)
    return np.kron(np.exp(-0.5 * np.sum(away**2, axis=-1)), between_outputs(gp))


def log_posterior(gp, x, y):
    """Up to a constant."""
    with jax.enable_x64(True):
        evidence = float(posterior(gp, x, y, x[:0], np.ones(len(x), bool))[2])
    power = np.log((1 + np.sum(y**2) / y.shape[1]) / (1 + len(y)))
    prior = scipy.stats.norm.logpdf(gp.log_scale).sum() + scipy.stats.norm.logpdf(gp.log_variance, power).sum()
    return evidence + prior + scipy.stats.norm.logpdf(gp.log_noise, power + np.log(0.01), 2)


@pytest.fixture(scope="module")
def gp():
    with jax.enable_x64(True):
        return CoregionalisedGP(*map(jax.device_put, (*map(np.log, ([0.7, 2.0], [1.5, 0.2], 0.04)), np.array([0.3]))))


@pytest.mark.parametrize("junk", [0.0, np.nan])
def test_the_posterior_is_that_of_the_dense_formula(gp, junk, rng):
    n, m = 9, 4
    x, z, y = rng.uniform(-2, 2, (n, 2)), rng.uniform(-2, 2, (m, 2)), rng.normal(size=(n, 2))
    k = dense(gp, x, x) + 0.04 * np.eye(2 * n)
    cross = dense(gp, x, z)
    mean = cross.T @ np.linalg.solve(k, y.ravel())
    variance = np.diag(dense(gp, z, z) - cross.T @ np.linalg.solve(k, cross))
    evidence = scipy.stats.multivariate_normal(np.zeros(2 * n), k).logpdf(y.ravel())
    padded = [np.concatenate([a, np.full((3, 2), junk)]) for a in (x, y)]
    with jax.enable_x64(True):
        found = [np.asarray(a) for a in posterior(gp, *padded, z, np.arange(n + 3) < n)]
    np.testing.assert_allclose(found[0].ravel(), mean, atol=1e-9)
    np.testing.assert_allclose(found[1].ravel(), variance, atol=1e-9)
    assert float(found[2]) == pytest.approx(evidence, abs=1e-8)
    assert np.abs(cross).max() > 0.1


def test_outputs_are_correlated_and_the_rotation_keeps_what_is_turned(gp):
    b = between_outputs(gp)
    assert b[0, 1] == pytest.approx(b[1, 0]) and abs(b[0, 1]) > 0.1
    np.testing.assert_allclose(np.linalg.eigvalsh(b), [0.2, 1.5], rtol=1e-12)


def test_the_fit_finds_what_the_data_were_drawn_from(gp, rng):
    n = 60
    x = rng.uniform(-2, 2, (n, 2))
    y = (np.linalg.cholesky(dense(gp, x, x) + 0.04 * np.eye(2 * n)) @ rng.normal(size=2 * n)).reshape(n, 2)
    mask = np.ones(n, bool)
    found = maximum_a_posteriori(*map(jax.device_put, (x.astype(np.float32), y.astype(np.float32), mask)))
    np.testing.assert_allclose(np.exp(found.log_scale), [0.7, 2.0], rtol=0.4)
    assert np.exp(found.log_noise) == pytest.approx(0.04, rel=0.4)
    probable = [log_posterior(one, x, y) for one in (found, gp)]
    assert probable[0] > probable[1]  # no parameters are more probable, the true neither
    b = between_outputs(found)
    assert (
        np.sign(b[0, 1]) == np.sign(between_outputs(gp)[0, 1])
        and np.linalg.eigvalsh(b) @ [5, 0] < np.linalg.eigvalsh(b)[1] < 5
    )

    z = rng.uniform(-2, 2, (40, 2)).astype(np.float32)
    task = Task.of(x, y, z, np.zeros((40, 2)))
    prediction = maximum_a_posteriori_gp(task)
    assert prediction.batch_shape == (40,) and prediction.event_shape == (2,)
    assert float(prediction.variance.min()) >= 0.9 * float(np.exp(found.log_noise))
    alone = maximum_a_posteriori_gp(Task.of(x[:0], y[:0], z, np.zeros((40, 2))))
    assert np.isfinite(alone.mean).all() and np.allclose(alone.mean, 0)


def test_short_length_scales_are_not_taken_for_noise(rng):
    """Where a climb from length scales of 1 ends with noise alone."""
    x = rng.uniform(-1, 1, (150, 4))
    scales, noise = np.log([0.1, 1.0, 0.3, 1.0]), np.log(0.01)
    away = (x[:, None] - x) / np.exp(scales)
    kernel = np.exp(-0.5 * np.sum(away**2, axis=-1)) + 0.01 * np.eye(150)
    y = np.linalg.cholesky(kernel) @ rng.standard_normal((150, 1))
    mask = np.ones(150, bool)
    found = maximum_a_posteriori(*map(jax.device_put, (x.astype(np.float32), y.astype(np.float32), mask)))
    with jax.enable_x64(True):
        true = CoregionalisedGP(*map(jax.device_put, (scales, np.zeros(1), np.asarray(noise), np.zeros(0))))
    assert log_posterior(found, x, y) > log_posterior(true, x, y)


def test_few_points_do_not_take_away_all_doubt():
    """Three observations on a line through the origin: evidence grows for ever as scales grow and noise falls."""
    x = np.array([[-1.0, 0.0], [0.5, 0.3], [1.0, -0.4]])
    task = Task.of(x, x[:, :1], np.array([[0.0, 3.0], [8.0, 0.0]]), np.zeros((2, 1)))
    std = np.sqrt(maximum_a_posteriori_gp(task).variance)[:, 0]
    assert std[0] > 0.1 and std[1] > 0.5


def test_what_is_hidden_counts_for_nothing_in_the_fit(rng):
    x, y = rng.uniform(-1, 1, (8, 1)), rng.normal(size=(8, 1))
    x, y = (np.concatenate([a, np.zeros((2, 1))]) for a in (x, y))
    seen = np.arange(10) < 8
    junk = [np.where(seen[:, None], a, np.nan) for a in (x, y)]
    given = [[jax.device_put(a.astype(np.float32)) for a in both] for both in ((x, y), junk)]
    found, among_junk = (maximum_a_posteriori(*both, jax.device_put(seen), iterations=10) for both in given)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(among_junk), strict=True):
        np.testing.assert_array_equal(a, b)

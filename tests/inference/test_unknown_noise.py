"""The noise of observations beside their known errors."""

import sys

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal, truncnorm

import npax
from npax.inference import Planar, unknown_noise
from npax.inference.anisotropy import gaussian, matern12, matern32, squares

inside = sys.modules["npax.inference.unknown_noise"]


def series(seed, n=200, noise=0.3, error=0.3, length=0.8):
    """A process with Matern 3/2, noise, and known errors besides: `x`, `y`, `error`."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 1))
    root = np.linalg.cholesky(matern32(np.square(x - x.T) / length**2)[0] + 1e-9 * np.eye(n))
    errors = error * np.exp(0.5 * rng.normal(size=(n, 1)))
    return x, root @ rng.normal(size=(n, 1)) + np.hypot(noise, errors) * rng.normal(size=(n, 1)), errors


def found(x, y, error):
    return unknown_noise(Planar().adapted(x, y), x, y, error).std


@pytest.mark.parametrize(("noise", "error"), [(0.3, 0.1), (0.3, 0.3), (0.1, 0.1)])
@pytest.mark.parametrize("length", [0.3, 100.0], ids=["fast", "slow"])
def test_it_is_found_beside_errors(noise, error, length):
    """Of a slow function too, whose variance is far larger than that of what is seen of it."""
    each = [found(*series(seed, noise=noise, error=error, length=length)).item() for seed in range(4)]
    assert np.median(each) == pytest.approx(noise, rel=0.15)


def test_where_there_is_none_little_is_found():
    assert np.median([found(*series(seed, noise=0.0)).item() for seed in range(4)]) < 0.1


def test_the_loss_is_that_of_the_differences_of_a_normal_density(rng):
    """Of contrasts of each block; with its slope."""
    x, y, known = rng.normal(size=(2, 9, 1)), rng.normal(size=(2, 9)), rng.uniform(size=(2, 9))
    seen = inside.Neighbours(squares(x), y, known, 0.7)
    contrasts = np.linalg.qr(np.column_stack([np.ones(9), rng.normal(size=(9, 8))]))[0][:, 1:].T

    def expected(speed, noise, variance):
        total = 0.0
        for i in range(2):
            k = np.exp(variance) * matern12(np.square(np.exp(speed) * (x[i] - x[i].T)))[0]
            k += np.diag(np.exp(noise) + inside.NUGGET + known[i])
            total -= 0.7 * multivariate_normal(cov=contrasts @ k @ contrasts.T).logpdf(contrasts @ y[i])
        return total

    first, second = rng.normal(size=(2, 3))
    differs = inside.loss(first, seen, matern12)[0] - inside.loss(second, seen, matern12)[0]
    assert differs == pytest.approx(expected(*first) - expected(*second))
    for kernel in (matern12, matern32, gaussian):
        value, slope = (lambda g, i=i, k=kernel: inside.loss(g, seen, k)[i] for i in (0, 1))
        assert check_grad(value, slope, first) < 1e-5


def test_its_mean_is_that_of_the_tangent_above_zero(rng):
    """Where noise is all there is, slope and information are sums; the variance is unsure by a third here."""
    y, known = 0.1 * rng.normal(size=(1, 30)), np.full((1, 30), 1.0)
    seen = inside.Neighbours(squares(rng.normal(size=(1, 30, 1))), y, known, 1.0)
    spread = np.sum(np.square(y - y.mean()))
    v = 1.0 + 1e-3 + 2 * inside.NUGGET
    information = 29 / v**2 / 2
    middle = 1e-3 + (spread / v**2 - 29 / v) / 2 / information
    expected = truncnorm.mean(-middle * information**0.5, np.inf, middle, information**-0.5)
    assert inside._mean(np.log([1.0, 1e-3, 1e-30]), seen, matern32) == pytest.approx(expected, rel=1e-5)
    assert middle < 0 < expected


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_it_has_the_unit_of_the_values_of_each_column(scale):
    x, y, error = series(0)
    both = found(x, scale * np.column_stack([y, 10 * y]), scale * np.column_stack([error, 10 * error]))
    np.testing.assert_allclose(both / scale, found(x, y, error) * [1, 10], rtol=1e-6)


def test_of_few_observations_and_of_what_does_not_vary():
    x, y, error = series(0)
    assert unknown_noise(Planar(), x[:15], y[:15], error[:15]) is None
    for values, errors in ((0 * y, error), (y, 0 * error + 1e30), (0 * y, 0 * error + 1e-30)):
        assert np.isfinite(found(x, values, errors)).all()


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("strategy", ["exact", "tiled"])
def test_intervals_for_new_observations_hold_them(strategy):
    """Of five series; by the noise that the network finds by itself they are too narrow."""
    held, by_itself = [], []
    for seed in range(5):
        x, y, _ = series(seed, n=1200, noise=0.1, error=0.0)
        rng = np.random.default_rng(seed + 10)
        error = 0.2 * np.exp(0.5 * rng.normal(size=200))
        observed = y[:200, 0] + error * rng.normal(size=200)
        reg = npax.NeuralProcessRegressor(strategy=strategy, views=None).fit(x[:200], observed, error=error)
        mean, std = reg.predict(x[200:], return_std=True)
        held.append(np.abs(y[200:, 0] - mean) < 1.96 * std)
        reg._tell_noise(None)
        by_itself.append(np.abs(y[200:, 0] - mean) < 1.96 * reg.predict(x[200:], return_std=True)[1])
    assert 0.92 < np.mean(held) < 0.97 and np.mean(by_itself) < 0.9

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given, settings, strategies as st

from npax.inference import Standardiser
from npax.inference.random_effects import random_effects
from npax.inference.trend import Trend


def draw(seed, n=40, dy=1):
    rng = np.random.default_rng(seed)
    error = rng.choice([0.0, 0.1, 1.0, 30.0], size=(n, dy), p=[0.2, 0.3, 0.3, 0.2])
    return 3.0 + 2.0 * rng.normal(size=(n, dy)) + error * rng.normal(size=(n, dy)), error


@given(st.integers(2, 50), st.integers(1, 3), st.integers(0, 100))
@settings(deadline=None, max_examples=20)
def test_without_errors_they_are_those_of_the_values(n, dy, seed):
    y, _ = draw(seed, n, dy)
    mean, std = random_effects(y, np.zeros_like(y))
    assert np.allclose(mean, y.mean(axis=0)) and np.allclose(std, y.std(axis=0))


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_no_others_have_a_greater_likelihood(seed):
    y, error = draw(seed)
    mean, std = random_effects(y, error)

    def log_likelihood(mean, std):
        return scipy.stats.norm(mean, np.hypot(std, error)).logpdf(y).sum()

    best = scipy.optimize.minimize(lambda p: -log_likelihood(p[0], np.exp(p[1])), [mean[0], np.log(std[0])]).fun
    assert log_likelihood(mean, std) > -best - 1e-4


def test_bad_measurements_have_no_say():
    y, error = draw(0, 4000)
    mean, std = random_effects(y, error)
    assert abs(mean[0] - 3) < 0.15 and abs(std[0] - 2) < 0.15 and y.std() > 10
    worse = np.where(error == 30, 1e9, 1.0)
    found = random_effects(3 + (y - 3) * worse, error * worse)
    assert np.allclose(found, random_effects(*(a[error != 30][:, None] for a in (y, error))), rtol=1e-2)


def test_each_context_and_column_by_itself():
    y, error = (np.stack(a) for a in zip(*(draw(seed, dy=2) for seed in range(3)), strict=True))
    for together, apart in zip(random_effects(y, error), zip(*map(random_effects, y, error), strict=True), strict=True):
        assert np.allclose(together, np.stack(apart))


@pytest.mark.parametrize("c", [1e-300, 1e-165, 1.0, 1e155, 1e305])
def test_no_unit_is_too_large_or_too_small(c):
    y, error = draw(1)
    expected, found = Standardiser.of(y, error), Standardiser.of(c * y, c * error)
    assert np.allclose(found.mean / c, expected.mean) and np.allclose(found.std / c, expected.std)
    assert np.allclose(found.scaled(c * error), expected.scaled(error))


def test_where_errors_explain_all_the_unit_is_a_part_of_them(rng):
    y = 0.01 * rng.normal(size=(50, 1))
    found = Standardiser.of(y, np.ones((50, 1)))
    assert found.std == pytest.approx(0.05**0.5) and abs(found.mean[0]) < 0.01
    assert Standardiser.of(y).std == pytest.approx(y.std())


def test_values_that_do_not_vary_keep_their_unit():
    """But for several of known errors: they vary by less than these, as do those that hardly vary."""
    found, hardly = (Standardiser.of(7.0 + by * np.eye(5)[:, :1], np.ones((5, 1))) for by in (0.0, 1e-9))
    assert found.mean == 7 and found.std == pytest.approx(hardly.std) and found.std < 1
    assert Standardiser.of(np.full((1, 1), 7.0), np.ones((1, 1))).std == 1
    assert Standardiser.of(np.zeros((0, 1)), np.zeros((0, 1))).std == 1
    known = Standardiser.of(np.full((5, 1), 7.0), np.zeros((5, 1)))
    assert known.mean == 7 and known.std == 1


def test_values_of_large_errors_do_not_bend_a_trend(rng):
    x = rng.uniform(-1, 1, (400, 2))
    error = np.where(rng.uniform(size=(400, 2)) < 0.5, 0.0, 1e3)
    surface = np.stack([x[:, 0] ** 2, 1 + x[:, 1]], axis=1)
    values = surface + error * rng.normal(size=(400, 2))
    assert np.abs(Trend(x, values, error)(x) - surface).max() < 1.0 < 50 < np.abs(Trend(x, values)(x) - surface).max()


@pytest.mark.parametrize("error", [0.0, 1e-3])
@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_one_good_measurement_does_not_count_for_all(error, noise, rng):
    """Wherever it stands, and however much the others' errors explain of what varies."""
    y = rng.normal(size=(60, 1)) + noise * rng.normal(size=(60, 1))
    errors = np.full((60, 1), noise)
    expected = random_effects(y, errors)
    for i in (0, 30, 59):
        errors = np.full((60, 1), noise)
        errors[i] = error
        mean, std = random_effects(y, errors)
        assert np.abs(np.log(std / expected[1])) < 1.0 and np.abs(mean - expected[0]) < 1.5 * std

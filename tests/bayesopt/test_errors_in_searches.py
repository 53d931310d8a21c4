"""Searches by evaluations whose standard errors are known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import tinygp
import untrained

import npax
from npax.bayesopt import Evaluations, FailedEvaluation, GPSurrogate, Optimizer
from npax.bayesopt.scale import Scale


def told(model, errors, **options):
    """A parabola with its minimum at 0.3, and one value of another place that is far too low."""
    opt = Optimizer([(0, 1)], n_init=4, model=model, random_state=0, **options)
    x = np.linspace(0.05, 0.95, 10)
    y = 3 * (x - 0.3) ** 2
    y[8] = -0.5
    opt.tell(x[:, None], y, error=None if errors is None else np.where(np.arange(10) == 8, *errors))
    return opt


def test_a_low_value_of_large_error_is_not_believed():
    model = npax.load("gp-universal")
    assert told(model, (2.0, 0.01)).recommend()[0] == pytest.approx(0.3, abs=0.11)
    assert told(model, (0.01, 0.01)).recommend()[0] == pytest.approx(0.85), "the control"


@pytest.mark.parametrize("acquisition", ["ei", "ucb", "thompson"])
def test_places_are_asked_for_with_and_without_errors(acquisition):
    model = untrained.small()
    opt = told(model, (2.0, 0.01), acquisition=acquisition)
    for error in (0.1, None, 0.0):
        opt.tell(opt.ask(), 1.0, error=error)
    assert [e for *_, e in opt._told][-4:] == [0.01, 0.1, 0.0, 0.0]
    with pytest.warns(FailedEvaluation):
        opt.tell([0.5], np.nan, error=np.nan)
    assert np.isfinite(opt.ask()).all() and np.isfinite(opt.recommend()[1])


def test_errors_of_zero_are_none():
    model = untrained.small()
    (x, y), (same_x, same_y) = told(model, None).recommend(), told(model, (0.0, 0.0)).recommend()
    assert x == same_x and y == pytest.approx(same_y, rel=1e-5)
    assert told(model, (0.0, 0.5)).recommend()[1] != pytest.approx(y, rel=1e-5)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (-1.0, "`error` must hold standard deviations"),
        (np.inf, "in row 0"),
        ([0.1, 0.2], "`error` must have the shape"),
    ],
)
def test_wrong_errors_change_nothing(error, words):
    opt = Optimizer([(0, 1)], model=untrained.small())
    with pytest.raises(ValueError, match=words):
        opt.tell([0.5], 1.0, error=error)
    with pytest.raises(ValueError, match="not made for any"):
        Optimizer([(0, 1)], model=untrained.cnp(3)).tell([0.5], 1.0, error=0.1)
    assert opt.result().nfev == 0 and not opt.result().success and opt.result().message == "No value was told yet."
    with pytest.warns(FailedEvaluation):
        opt.tell([0.5], np.nan)
    assert opt.result().nfev == 1 and opt.result().message == "No evaluation had a finite value."


def test_small_errors_are_scaled_by_the_slope_and_large_ones_by_what_they_span():
    scale = Scale(median=1.0, spread=2.0, mean=0.3, std=0.7)
    y = np.array([-5.0, 1.0, 4.0, 1e6])
    slope = 1 / (0.7 * np.hypot(2.0, y - 1.0))
    np.testing.assert_allclose(scale.error(y, np.full(4, 1e-3)), 1e-3 * slope, rtol=1e-4)
    assert scale.error(y[1:2], np.array([20.0])) == pytest.approx(np.arcsinh(10) / 0.7)
    assert (scale.error(y, np.zeros(4)) == 0).all()


def test_the_oracle_knows_them():
    rng = np.random.default_rng(0)
    x, y, error, xt = (
        rng.uniform(-2, 2, (6, 1)),
        rng.normal(size=6),
        rng.uniform(0, 1, 6),
        np.linspace(-2, 2, 5)[:, None],
    )
    k = lambda a, b: np.exp(-((a - b.T) ** 2) / (2 * 0.6**2))  # noqa: E731
    gain = k(xt, x) @ np.linalg.inv(k(x, x) + np.diag(0.2**2 + error**2))
    mean, cov = gain @ y, k(xt, xt) - gain @ k(x, xt)
    surrogate = GPSurrogate(tinygp.kernels.ExpSquared(jnp.array(0.6)), 0.2)
    seen = Evaluations(
        *(jnp.asarray(a, jnp.float32) for a in (x, y)), jnp.ones(6, bool), jnp.asarray(error, jnp.float32)
    )
    xt = jnp.asarray(xt, jnp.float32)
    found_mean, found_std = eqx.filter_jit(GPSurrogate.moments)(surrogate, seen, xt)
    np.testing.assert_allclose(found_mean, mean, atol=1e-4)
    np.testing.assert_allclose(found_std, np.sqrt(np.diag(cov)), atol=1e-3)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: surrogate.sample(seen, xt, key)))(jr.split(jr.key(0), 20_000)))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.04)


def test_open_questions_leave_known_errors_as_they_are():
    opt = told(untrained.small(), (2.0, 0.01))
    alone, beside = (opt._seen(pending)[0] for pending in ([], [np.array([0.5])]))
    assert np.array_equal(beside.error[:10], alone.error[:10]) and np.asarray(alone.error[:10]).all()
    assert beside.error[10] == 0 and beside.mask.sum() == 11

"""Acquisitions and surrogates against closed forms in numpy float64 and against Monte Carlo."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.special
import scipy.stats
import tinygp

import npax
from npax.bayesopt import (
    AbstractSurrogate,
    ConfidenceBound,
    Evaluations,
    ExpectedImprovement,
    GPSurrogate,
    ModelSurrogate,
    RandomSearch,
    ThompsonSampling,
    log_expected_improvement,
)
from npax.bayesopt.acquisition import acquisition


class Known(AbstractSurrogate):
    """A belief that is the same whatever was seen: mean and standard deviation are the first two coordinates."""

    def moments(self, seen, xt):
        return xt[:, 0], xt[:, 1]

    def sample(self, seen, xt, key):
        return xt[:, 0] + xt[:, 1] * jr.normal(key, xt.shape[:1])


def expected_improvement(mean, std, best):
    z = (best - mean) / std
    return (best - mean) * scipy.stats.norm.cdf(z) + std * scipy.stats.norm.pdf(z)


def evaluations(x, y, mask=None) -> Evaluations:
    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    return Evaluations(x, y, jnp.ones(len(y), bool) if mask is None else jnp.asarray(mask))


def tail(z):
    """log(phi(z) - z Phi(-z)) in float64, by the scaled complementary error function."""
    ratio = np.sqrt(np.pi / 2) * scipy.special.erfcx(z / np.sqrt(2))
    return scipy.stats.norm.logpdf(z) + np.log(1 - z * ratio)


def test_expected_improvement_is_that_of_the_closed_form():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=200), np.exp(rng.normal(size=200))
    found = log_expected_improvement(jnp.asarray(mean, jnp.float32), jnp.asarray(std, jnp.float32), 0.3)
    close = (0.3 - mean) / std > -4
    np.testing.assert_allclose(found[close], np.log(expected_improvement(mean, std, 0.3))[close], rtol=0, atol=2e-5)
    wrong = np.log(expected_improvement(mean, std, 0.4))[close]
    assert np.abs(found[close] - wrong).max() > 0.05


def test_expected_improvement_is_that_of_monte_carlo():
    draws = 0.5 + 0.8 * np.random.default_rng(1).normal(size=1_000_000)
    gains = np.maximum(0.2 - draws, 0)
    found = np.exp(log_expected_improvement(jnp.array(0.5), jnp.array(0.8), 0.2))
    assert abs(found - gains.mean()) < 5 * gains.std() / 1000


def test_small_improvements_lose_nothing_to_rounding():
    z = np.concatenate([np.linspace(2.5, 3.5, 41), np.geomspace(4, 300, 20)])
    found = log_expected_improvement(jnp.asarray(z, jnp.float32), jnp.ones(len(z)), 0.0)
    np.testing.assert_allclose(found, tail(z), rtol=3e-6, atol=3e-6)
    naive = jax.scipy.stats.norm.pdf(-20.0) - 20.0 * jax.scipy.stats.norm.cdf(-20.0)
    assert not jnp.isfinite(jnp.log(naive))
    with jax.enable_x64(True):
        exact = log_expected_improvement(jnp.asarray(z), jnp.ones(len(z)), 0.0)
        np.testing.assert_allclose(exact, tail(z), rtol=0, atol=1e-9)


@pytest.mark.parametrize("mean", [-1e4, -3.0, 0.0, 3.0, 1e2, 1e4])
@pytest.mark.parametrize("std", [1e-4, 1.0, 1e3])
def test_values_and_gradients_are_finite_and_point_the_right_way(mean, std):
    value, (to_mean, to_std) = jax.value_and_grad(log_expected_improvement, (0, 1))(
        jnp.array(mean), jnp.array(std), jnp.array(0.0)
    )
    assert np.isfinite([value, to_mean, to_std]).all()
    assert to_mean < 0 and to_std * std > -1e-6  # zero but for rounding where the mean is far below


def test_improvement_is_on_the_lowest_posterior_mean_among_evaluations():
    mean, std = jnp.array([0.5, -0.5, 2.0]), jnp.array([1.0, 0.1, 3.0])
    seen = evaluations([[0.2, 1.0], [-0.1, 1.0], [-9.0, 1.0]], [5.0, -7.0, 0.0], [True, True, False])
    found = ExpectedImprovement()(Known(), seen, jnp.stack([mean, std], axis=1), jr.key(0))
    np.testing.assert_allclose(np.exp(found), expected_improvement(mean, std, -0.1), rtol=1e-4)


def test_bounds_samples_and_chance():
    xt = jnp.array([[0.5, 1.0], [-0.5, 0.1]])
    seen = evaluations([[0.0, 1.0]], [0.0])
    np.testing.assert_allclose(ConfidenceBound(3.0)(Known(), seen, xt, jr.key(0)), [2.5, 0.8], rtol=1e-6)
    sample = Known().sample(seen, xt, jr.key(1))
    np.testing.assert_array_equal(ThompsonSampling()(Known(), seen, xt, jr.key(1)), -sample)
    picks = jax.vmap(lambda key: RandomSearch()(Known(), seen, xt, key).argmax())(jr.split(jr.key(0), 1000))
    assert 400 < int(picks.sum()) < 600


@eqx.filter_jit
def promises(rule, surrogate, seen, xt):
    return rule(surrogate, seen, xt, jr.key(0))


NAMES = ["ei", "ucb", "thompson"]


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="got 'pi'"):
        acquisition("pi")


@pytest.mark.parametrize("name", NAMES)
def test_masked_evaluations_tell_nothing(name, small):
    surrogate, xt = ModelSurrogate(small, anchors=2), jnp.linspace(-2.0, 2.0, 5)[:, None]
    junk = evaluations([[0.5], [np.nan]], [1.0, np.nan], [True, False])
    other = evaluations([[0.5], [0.0]], [1.0, -3.0], [True, False])
    known = evaluations([[0.5], [0.0]], [1.0, -3.0])
    found = [promises(acquisition(name), surrogate, seen, xt) for seen in (junk, other, known)]
    assert bool(jnp.isfinite(found[0]).all())
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert float(jnp.abs(found[0] - found[2]).max()) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_gradients_in_the_candidates_are_finite(name, small):
    surrogate, xt = ModelSurrogate(small, anchors=2), jnp.array([[0.5], [1.0]])  # one of them evaluated
    seen = evaluations([[0.5], [np.nan]], [1.0, np.nan], [True, False])
    slope = eqx.filter_jit(jax.grad(lambda xt: promises(acquisition(name), surrogate, seen, xt).sum()))(xt)
    assert bool(jnp.isfinite(slope).all()) and float(jnp.abs(slope).max()) > 0


@pytest.mark.parametrize("rule", [ExpectedImprovement(), ThompsonSampling()], ids=repr)
def test_a_search_may_begin_with_nothing(rule, small):
    surrogate, xt = ModelSurrogate(small, anchors=2), jnp.linspace(-2.0, 2.0, 5)[:, None]
    none = promises(rule, surrogate, evaluations(np.zeros((0, 1)), np.zeros(0)), xt)
    masked = promises(rule, surrogate, evaluations([[np.nan]], [np.nan], [False]), xt)
    assert bool(jnp.isfinite(none).all())
    np.testing.assert_allclose(none, masked, atol=1e-5)


@pytest.fixture(scope="module")
def gp():
    """A GP surrogate with evaluations, one of them masked, and its exact posterior by numpy."""
    rng = np.random.default_rng(3)
    xc, yc, xt = rng.uniform(-2, 2, (5, 1)), rng.normal(size=5), np.linspace(-2, 2, 7)[:, None]
    k = lambda a, b: np.exp(-((a - b.T) ** 2) / (2 * 0.6**2))  # noqa: E731
    gain = k(xt, xc) @ np.linalg.inv(k(xc, xc) + 0.2**2 * np.eye(5))
    mean, cov = gain @ yc, k(xt, xt) - gain @ k(xc, xt)
    seen = evaluations(np.r_[xc, [[np.nan]]], np.r_[yc, np.nan], [True] * 5 + [False])
    return GPSurrogate(tinygp.kernels.ExpSquared(jnp.array(0.6)), 0.2), seen, jnp.asarray(xt, jnp.float32), mean, cov


def test_the_oracle_knows_the_posterior(gp):
    surrogate, seen, xt, mean, cov = gp
    found_mean, found_std = surrogate.moments(seen, xt)
    np.testing.assert_allclose(found_mean, mean, atol=1e-4)
    np.testing.assert_allclose(found_std, np.sqrt(np.diag(cov)), atol=1e-3)


def test_the_oracle_samples_the_posterior(gp):
    surrogate, seen, xt, mean, cov = gp
    draws = np.asarray(jax.jit(jax.vmap(lambda key: surrogate.sample(seen, xt, key)))(jr.split(jr.key(0), 20_000)))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.04)
    assert np.abs(np.cov(draws.T) - np.diag(np.diag(cov))).max() > 0.1


def test_a_sample_is_a_function_of_the_key(small):
    """One value at every place, whichever candidates are asked for together; another key, another function."""
    surrogate, seen = ModelSurrogate(small, anchors=4), evaluations([[0.5], [-1.0]], [1.0, -1.0])
    draw = eqx.filter_jit(lambda xt, key: surrogate.sample(seen, xt, key))
    xt = jnp.linspace(-2.0, 2.0, 6)[:, None]
    whole, moved = draw(xt, jr.key(0)), draw(xt.at[:2].set(1.7), jr.key(0))
    np.testing.assert_allclose(moved[2:], whole[2:], atol=1e-5)
    assert float(jnp.abs(draw(xt, jr.key(1)) - whole).max()) > 1e-4


def test_a_sample_of_a_latent_model_is_that_of_one_draw():
    model = npax.NP(1, 1, encoder=(8,), size=8, latent=2, decoder=(8,), key=jr.key(0))
    surrogate, seen = ModelSurrogate(model), evaluations([[0.5], [np.nan]], [1.0, np.nan], [True, False])
    draw = eqx.filter_jit(lambda xt, key: surrogate.sample(seen, xt, key))
    xt = jnp.linspace(-2.0, 2.0, 4)[:, None]
    whole = draw(xt, jr.key(0))
    np.testing.assert_allclose(draw(xt[::-1], jr.key(0)), whole[::-1], atol=1e-6)
    assert float(jnp.abs(draw(xt, jr.key(1)) - whole).max()) > 1e-4


def test_samples_of_a_model_have_its_spread(exact):
    """A model that is a GP: means and covariances of its samples where anchors are dense."""
    model, posterior = exact
    seen = evaluations([[0.5], [-1.0]], [1.0, -1.0])
    xt = jnp.array([[-1.5], [0.0], [1.0]])
    mean, cov = posterior(seen, xt)
    surrogate = ModelSurrogate(model, anchors=24)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: surrogate.sample(seen, xt, key)))(jr.split(jr.key(0), 1500)))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.15)
    assert np.sqrt(np.diag(cov)).min() > 0.5


def test_bad_arguments_are_named(small):
    with pytest.raises(ValueError, match="`width`"):
        ConfidenceBound(-1.0)
    with pytest.raises(ValueError, match="`anchors`"):
        ModelSurrogate(small, anchors=0)
    with pytest.raises(ValueError, match="`noise_std`"):
        GPSurrogate(tinygp.kernels.ExpSquared(jnp.array(0.6)), 0.0)

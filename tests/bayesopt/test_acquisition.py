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
from laws import finite

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


improvement = jax.jit(log_expected_improvement)
improvement_and_slope = jax.jit(jax.value_and_grad(log_expected_improvement, (0, 1)))


def expected_improvement(mean, std, best):
    z = (best - mean) / std
    return (best - mean) * scipy.stats.norm.cdf(z) + std * scipy.stats.norm.pdf(z)


def evaluations(x, y, mask=None) -> Evaluations:
    mask = np.ones(len(y), bool) if mask is None else np.array(mask)
    return Evaluations(*map(jax.device_put, (np.array(x, np.float32), np.array(y, np.float32), mask)))


def tail(z):
    """log(phi(z) - z Phi(-z)) in float64, by the scaled complementary error function."""
    ratio = np.sqrt(np.pi / 2) * scipy.special.erfcx(z / np.sqrt(2))
    return scipy.stats.norm.logpdf(z) + np.log(1 - z * ratio)


def test_expected_improvement_is_that_of_the_closed_form():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=200), np.exp(rng.normal(size=200))
    found = np.asarray(improvement(mean.astype(np.float32), std.astype(np.float32), 0.3))
    close = (0.3 - mean) / std > -4
    np.testing.assert_allclose(found[close], np.log(expected_improvement(mean, std, 0.3))[close], rtol=0, atol=2e-5)
    wrong = np.log(expected_improvement(mean, std, 0.4))[close]
    assert np.abs(found[close] - wrong).max() > 0.05


def test_expected_improvement_is_that_of_monte_carlo():
    draws = 0.5 + 0.8 * np.random.default_rng(1).normal(size=1_000_000)
    gains = np.maximum(0.2 - draws, 0)
    found = np.exp(improvement(0.5, 0.8, 0.2))
    assert abs(found - gains.mean()) < 5 * gains.std() / 1000


def test_where_nothing_is_uncertain_the_improvement_is_known():
    found = log_expected_improvement(jnp.array([0.0, 1.0, -1.0]), jnp.zeros(3), 0.0)
    assert found.tolist() == [-np.inf, -np.inf, 0.0]
    short = log_expected_improvement(*(jnp.array([0.5, 1.0], jnp.float16) for _ in "ms"), 0.0)
    assert short.dtype == jnp.float16 and finite(short)


def test_small_improvements_lose_nothing_to_rounding():
    z = np.concatenate([np.linspace(2.5, 3.5, 41), np.geomspace(4, 300, 20)])
    found = improvement(z.astype(np.float32), np.ones(len(z), np.float32), 0.0)
    np.testing.assert_allclose(found, tail(z), rtol=3e-6, atol=3e-6)
    naive = jax.jit(lambda z: jnp.log(jax.scipy.stats.norm.pdf(z) + z * jax.scipy.stats.norm.cdf(z)))
    assert not np.isfinite(naive(-20.0))
    with jax.enable_x64(True):
        exact = improvement(z, np.ones(len(z)), 0.0)
        np.testing.assert_allclose(exact, tail(z), rtol=0, atol=1e-9)


@pytest.mark.parametrize("mean", [-1e4, -3.0, 0.0, 3.0, 1e2, 1e4])
@pytest.mark.parametrize("std", [1e-4, 1.0, 1e3])
def test_values_and_gradients_are_finite_and_point_the_right_way(mean, std):
    value, (to_mean, to_std) = improvement_and_slope(mean, std, 0.0)
    assert np.isfinite([value, to_mean, to_std]).all()
    assert to_mean < 0 and to_std * std > -1e-6  # zero but for rounding where the mean is far below


def test_improvement_is_on_the_lowest_posterior_mean_among_evaluations():
    mean, std = np.array([0.5, -0.5, 2.0], np.float32), np.array([1.0, 0.1, 3.0], np.float32)
    seen = evaluations([[0.2, 1.0], [-0.1, 1.0], [-9.0, 1.0]], [5.0, -7.0, 0.0], [True, True, False])
    found, _ = promises(ExpectedImprovement(), Known(), seen, np.stack([mean, std], axis=1))
    np.testing.assert_allclose(np.exp(found), expected_improvement(mean, std, -0.1), rtol=1e-4)


def test_bounds_samples_and_chance():
    xt = jnp.array([[0.5, 1.0], [-0.5, 0.1]])
    seen = evaluations([[0.0, 1.0]], [0.0])
    np.testing.assert_allclose(ConfidenceBound(3.0)(Known(), seen, xt, jr.key(0)), [2.5, 0.8], rtol=1e-6)
    sample = Known().sample(seen, xt, jr.key(1))
    np.testing.assert_array_equal(ThompsonSampling()(Known(), seen, xt, jr.key(1)), -sample)
    pick = jax.jit(jax.vmap(lambda key: RandomSearch()(Known(), seen, xt, key).argmax()))
    assert 400 < np.asarray(pick(jr.split(jr.key(0), 1000))).sum() < 600


@eqx.filter_jit
def promises(rule, surrogate, seen, xt):
    """Of each candidate, and the slope of their sum in the candidates."""

    def total(xt):
        found = rule(surrogate, seen, xt, jr.key(0))
        return found.sum(), found

    slope, found = jax.grad(total, has_aux=True)(xt)
    return found, slope


NAMES = ["ei", "ucb", "thompson"]
PLACES = np.array([[-2.0], [-1.0], [0.5], [1.0], [2.0]], np.float32)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="got 'pi'"):
        acquisition("pi")


@pytest.mark.parametrize("name", NAMES)
def test_masked_evaluations_tell_nothing(name, small):
    surrogate = ModelSurrogate(small, anchors=2)
    junk = evaluations([[0.5], [np.nan]], [1.0, np.nan], [True, False])
    other = evaluations([[0.5], [0.0]], [1.0, -3.0], [True, False])
    known = evaluations([[0.5], [0.0]], [1.0, -3.0])
    found = [np.asarray(promises(acquisition(name), surrogate, seen, PLACES)[0]) for seen in (junk, other, known)]
    assert np.isfinite(found[0]).all()
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_gradients_in_the_candidates_are_finite(name, small):
    seen = evaluations([[0.5], [-0.7], [np.nan]], [1.0, -1.0, np.nan], [True, True, False])  # one at a candidate
    slope = np.asarray(promises(acquisition(name), ModelSurrogate(small, anchors=2), seen, PLACES)[1])
    assert np.isfinite(slope).all() and np.abs(slope).max() > 1e-3


@pytest.mark.parametrize("rule", [ExpectedImprovement(), ThompsonSampling()], ids=repr)
def test_a_search_may_begin_with_nothing(rule, small):
    surrogate = ModelSurrogate(small, anchors=2)
    none, _ = promises(rule, surrogate, evaluations(np.zeros((0, 1)), np.zeros(0)), PLACES)
    masked, _ = promises(rule, surrogate, evaluations(2 * [[np.nan]], 2 * [np.nan], [False, False]), PLACES)
    assert np.isfinite(none).all()
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
    found_mean, found_std = eqx.filter_jit(GPSurrogate.moments)(surrogate, seen, xt)
    np.testing.assert_allclose(found_mean, mean, atol=1e-4)
    np.testing.assert_allclose(found_std, np.sqrt(np.diag(cov)), atol=1e-3)


def test_the_oracle_samples_the_posterior(gp):
    surrogate, seen, xt, mean, cov = gp
    draws = np.asarray(jax.jit(jax.vmap(lambda key: surrogate.sample(seen, xt, key)))(jr.split(jr.key(0), 20_000)))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.04)
    assert np.abs(np.cov(draws.T) - np.diag(np.diag(cov))).max() > 0.1


@pytest.mark.parametrize("scale", [2.0**-6, 2.0**5])
def test_samples_of_a_gp_scale_with_its_kernel(gp, scale):
    """`c` times a function has `c` times the values and the noise, and `c²` times the kernel."""
    surrogate, seen, *_ = gp
    xt = np.linspace(-2, 2, 150, dtype=np.float32)[:, None]
    large = GPSurrogate(scale**2 * surrogate.kernel, scale * surrogate.noise_std)
    times = Evaluations(seen.x, scale * seen.y, seen.mask)
    plain, scaled = (
        np.asarray(jax.jit(lambda key, s=s, e=e: s.sample(e, xt, key))(jr.key(0)))
        for s, e in ((surrogate, seen), (large, times))
    )
    np.testing.assert_allclose(scaled / scale, plain, atol=1e-4)


def test_a_sample_is_a_function_of_the_key(small):
    """One value at every place, whichever candidates are asked for together; another key, another function."""
    surrogate, seen = ModelSurrogate(small, anchors=4), evaluations([[0.5], [-1.0]], [1.0, -1.0])
    draw = eqx.filter_jit(lambda xt, key: surrogate.sample(seen, xt, key))
    xt = np.linspace(-2.0, 2.0, 6, dtype=np.float32)[:, None]
    other = np.where(np.arange(6)[:, None] < 2, np.float32(1.7), xt)
    whole, moved, another = (np.asarray(draw(x, jr.key(seed))) for x, seed in ((xt, 0), (other, 0), (xt, 1)))
    np.testing.assert_allclose(moved[2:], whole[2:], atol=1e-5)
    assert np.abs(another - whole).max() > 1e-4


def test_a_sample_of_a_latent_model_is_that_of_one_draw():
    model = npax.NP(1, 1, encoder=(8,), size=8, latent=2, decoder=(8,), key=jr.key(0))
    surrogate, seen = ModelSurrogate(model), evaluations([[0.5], [np.nan]], [1.0, np.nan], [True, False])
    draw = eqx.filter_jit(lambda xt, key: surrogate.sample(seen, xt, key))
    xt = np.linspace(-2.0, 2.0, 4, dtype=np.float32)[:, None]
    whole, turned, another = (np.asarray(draw(x, jr.key(seed))) for x, seed in ((xt, 0), (xt[::-1], 0), (xt, 1)))
    np.testing.assert_allclose(turned, whole[::-1], atol=1e-6)
    assert np.abs(another - whole).max() > 1e-4


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
    assert ConfidenceBound(ConfidenceBound(3.0).width).width == 3.0
    with pytest.raises(ValueError, match="`anchors`"):
        ModelSurrogate(small, anchors=0)
    with pytest.raises(ValueError, match="`noise_std`"):
        GPSurrogate(tinygp.kernels.ExpSquared(jnp.array(0.6)), 0.0)


def test_another_width_compiles_nothing(small):
    traced = []

    @eqx.filter_jit
    def ask(rule):
        traced.append(rule)
        return rule(Known(), evaluations([[0.0]], [1.0]), jnp.ones((3, 2)), jr.key(0))

    narrow, wide = ask(ConfidenceBound(1.0)), ask(ConfidenceBound(4.0))
    assert len(traced) == 1 and (wide > narrow).all()


def test_samples_by_themselves_are_compiled_once(small, compilations, getkey):
    seen, places = evaluations([[0.0], [1.0]], [0.0, 1.0]), jax.device_put(np.zeros((3, 1), np.float32))
    belief = ModelSurrogate(small, anchors=2)
    belief.sample(seen, places, getkey())
    before, key = compilations.count, getkey()
    belief.sample(seen, places, key)
    assert before and compilations.count == before

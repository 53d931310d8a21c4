"""Likelihoods against scipy, and at the extremes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
import scipy.stats
from laws import finite, normal

import npax
from npax.likelihoods import (
    FunctionAndNoise,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    JointGaussian,
    NoisyNormal,
    marginals,
    noiseless,
)

LIKELIHOODS = {
    "heteroscedastic": HeteroscedasticGaussian(2),
    "bounded": HeteroscedasticGaussian(2, min_std=0.05),
    "homoscedastic": HomoscedasticGaussian(2),
    "function-and-noise": FunctionAndNoise(2),
}
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)


call = eqx.filter_jit(lambda likelihood, raw: likelihood(raw))
log_prob = jax.jit(lambda distribution, y: distribution.log_prob(y))
moments = jax.jit(lambda distribution: (distribution.mean, distribution.variance))


def softplus(x):
    return np.logaddexp(0, np.asarray(x, np.float64))


@every_likelihood
def test_shapes_and_log_density_are_those_of_independent_normals(likelihood, getkey):
    raw, y = normal(getkey(), (7, likelihood.size)), normal(getkey(), (7, 2))
    d = call(likelihood, raw)
    assert d.batch_shape == (7,) and d.event_shape == (2,)
    mean, variance = (np.asarray(a, np.float64) for a in moments(d))
    gaussian = scipy.stats.norm(mean, np.sqrt(variance))
    assert reference.relative(log_prob(d, y), gaussian.logpdf(np.asarray(y)).sum(axis=-1)) < 1e-5


@pytest.mark.parametrize("raw", [-20.0, 0.0, 300.0])
@pytest.mark.parametrize("likelihood", [FunctionAndNoise(1), JointGaussian(1, 2)], ids=lambda kind: type(kind).__name__)
def test_standard_deviations_in_float16_are_those_of_float32(likelihood, raw):
    @jax.jit
    def std(raw):
        found = marginals(likelihood(raw))
        return getattr(found, "observation", found).scale

    raw = jnp.full((1, likelihood.size), raw, jnp.float16)
    assert std(raw).dtype == jnp.float16
    assert np.allclose(std(raw), std(raw.astype("float32")), rtol=2e-3)


def test_the_standard_deviations_are_softplus_above_the_floor(getkey):
    raw = normal(getkey(), (5, 6))
    mean, spread, noise = np.split(np.asarray(raw, np.float64), 3, axis=-1)
    for floor in (1e-4, 0.05):
        d = HeteroscedasticGaussian(2, min_std=floor)(raw[:, :4])
        assert reference.relative(d.mean, mean) < 1e-6
        assert reference.relative(d.variance, (floor + (1 - floor) * softplus(spread)) ** 2) < 1e-5
    d = FunctionAndNoise(2, min_std=0.01)(raw)
    f, n = (0.01 + 0.99 * softplus(a) for a in (spread, noise))
    assert reference.relative(d.variance, f**2 + n**2) < 1e-5
    assert reference.relative(noiseless(d).variance, f**2) < 1e-5
    d = HomoscedasticGaussian(2)(raw[:, :2])
    assert reference.relative(d.variance, np.full((5, 2), (1e-4 + (1 - 1e-4) * np.log(2)) ** 2)) < 1e-5


@pytest.mark.parametrize("kind", [HeteroscedasticGaussian, HomoscedasticGaussian, FunctionAndNoise, JointGaussian])
@pytest.mark.parametrize("floor", [5.0, 1.0, 0.0, -0.1, float("nan")])
def test_a_floor_leaves_standard_deviations_positive(kind, floor):
    with pytest.raises(ValueError, match="`min_std` must be above 0 and below 1, got"):
        kind(2, min_std=floor)


def test_a_shared_standard_deviation_is_learned_in_some_hundred_steps(getkey):
    """Of little noise, from the initial value on, at the rates at which networks learn."""
    y = 0.1 * normal(getkey(), (500, 2))
    optimizer = npax.training.muon(300)

    def nll(likelihood):
        return -jnp.mean(likelihood(jnp.zeros((500, 2))).log_prob(y))

    def step(carry, _):
        likelihood, state = carry
        updates, state = optimizer.update(jax.grad(nll)(likelihood), state, likelihood)
        return (eqx.apply_updates(likelihood, updates), state), None

    start = HomoscedasticGaussian(2)
    with jax.numpy_dtype_promotion("standard"):  # for optax
        (learned, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), None, length=300)
    std = jnp.sqrt(learned(jnp.zeros((1, 2))).variance)[0]
    assert reference.relative(std, np.std(np.asarray(y), axis=0)) < 0.1


@eqx.filter_jit
def std_and_log_density(likelihood, raw):
    """The density of ones comes with its gradient in the raw values."""
    density = jax.value_and_grad(lambda raw: likelihood(raw).log_prob(jnp.ones((3, 2))).sum())
    return jnp.sqrt(marginals(likelihood(raw)).variance), density(raw)


@every_likelihood
@pytest.mark.parametrize("extreme", [-1e4, 1e4, 0.0])
def test_extreme_raw_values_keep_density_and_gradients_finite(likelihood, extreme):
    raw = np.full((3, likelihood.size), extreme, np.float32)
    std, density = std_and_log_density(likelihood, raw)
    assert (np.asarray(std) > 0).all() and finite(std) and finite(density)


@every_likelihood
def test_marginal_quantiles_invert_the_distribution_function(likelihood, getkey):
    m = marginals(call(likelihood, normal(getkey(), (4, likelihood.size))))
    assert m.event_shape == () and m.batch_shape == (4, 2)
    cdf, icdf = (jax.jit(lambda m, a, name=name: getattr(m, name)(a)) for name in ("cdf", "icdf"))
    for q in (0.025, 0.5, 0.9):
        quantiles = icdf(m, np.full((4, 2), q, np.float32))
        assert np.allclose(cdf(m, quantiles), q, atol=1e-5)
    mean, variance = map(np.asarray, moments(m))
    assert reference.relative(quantiles, scipy.stats.norm(mean, np.sqrt(variance)).ppf(0.9)) < 1e-5


def test_noise_adds_to_the_variance_of_the_function():
    loc, scale, noise = jnp.array([1.0, -2.0]), jnp.array([0.3, 4.0]), jnp.array([0.4, 3.0])
    d = NoisyNormal(loc, scale, noise)
    assert np.allclose(d.variance, [0.25, 25.0])
    assert np.allclose(d.function.variance, [0.09, 16.0])
    draws = np.asarray(d.sample(jr.key(0), (20_000,)))
    assert np.allclose(draws.mean(axis=0), loc, atol=0.1) and np.allclose(draws.std(axis=0), [0.5, 5.0], rtol=0.03)


@every_likelihood
def test_without_noise_of_its_own_noiseless_is_the_same_again(likelihood, getkey):
    d = call(likelihood, normal(getkey(), (4, likelihood.size)))
    f = noiseless(d)
    assert f.batch_shape == (4,) and f.event_shape == (2,)
    if isinstance(likelihood, FunctionAndNoise):
        assert np.less(*map(np.asarray, (f.variance, d.variance))).all() and np.array_equal(f.mean, d.mean)
    else:
        assert f is d

"""Likelihoods against scipy, and at the extremes."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
import scipy.stats
from laws import normal

from npax.likelihoods import (
    FunctionAndNoise,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
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


def softplus(x):
    return np.logaddexp(0, np.asarray(x, np.float64))


@every_likelihood
def test_shapes_and_log_density_are_those_of_independent_normals(likelihood, getkey):
    raw, y = normal(getkey(), (7, likelihood.size)), normal(getkey(), (7, 2))
    d = likelihood(raw)
    assert d.batch_shape == (7,) and d.event_shape == (2,)
    gaussian = scipy.stats.norm(np.asarray(d.mean, np.float64), np.sqrt(np.asarray(d.variance, np.float64)))
    assert reference.relative(d.log_prob(y), gaussian.logpdf(np.asarray(y)).sum(axis=-1)) < 1e-5


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


@every_likelihood
@pytest.mark.parametrize("extreme", [-1e4, 1e4, 0.0])
def test_extreme_raw_values_keep_density_and_gradients_finite(likelihood, extreme):
    raw = jnp.full((3, likelihood.size), extreme)

    def log_density(raw):
        return jnp.sum(likelihood(raw).log_prob(jnp.ones((3, 2))))

    std = jnp.sqrt(marginals(likelihood(raw)).variance)
    assert (std > 0).all() and jnp.isfinite(std).all()
    value, slope = jax.value_and_grad(log_density)(raw)
    assert jnp.isfinite(value) and jnp.isfinite(slope).all()


@every_likelihood
def test_marginal_quantiles_invert_the_distribution_function(likelihood, getkey):
    m = marginals(likelihood(normal(getkey(), (4, likelihood.size))))
    assert m.event_shape == () and m.batch_shape == (4, 2)
    for q in (0.025, 0.5, 0.9):
        assert np.allclose(m.cdf(m.icdf(jnp.full((4, 2), q))), q, atol=1e-5)
    true = scipy.stats.norm(np.asarray(m.mean), np.sqrt(np.asarray(m.variance))).ppf(0.9)
    assert reference.relative(m.icdf(jnp.full((4, 2), 0.9)), true) < 1e-5


def test_noise_adds_to_the_variance_of_the_function():
    loc, scale, noise = jnp.array([1.0, -2.0]), jnp.array([0.3, 4.0]), jnp.array([0.4, 3.0])
    d = NoisyNormal(loc, scale, noise)
    assert np.allclose(d.variance, [0.25, 25.0])
    assert np.allclose(d.function.variance, [0.09, 16.0])
    draws = d.sample(jr.key(0), (20_000,))
    assert np.allclose(draws.mean(axis=0), loc, atol=0.1) and np.allclose(draws.std(axis=0), [0.5, 5.0], rtol=0.03)


@every_likelihood
def test_without_noise_of_its_own_noiseless_is_the_same_again(likelihood, getkey):
    d = likelihood(normal(getkey(), (4, likelihood.size)))
    f = noiseless(d)
    assert f.batch_shape == (4,) and f.event_shape == (2,)
    if isinstance(likelihood, FunctionAndNoise):
        assert (f.variance < d.variance).all() and (f.mean == d.mean).all()
    else:
        assert f is d

"""The joint Gaussian and the mixture against scipy."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from laws import normal

from npax.likelihoods import JointGaussian, NormalMixture, marginals, mixture


@pytest.fixture
def raw(getkey):
    return JointGaussian(2, rank=3), normal(getkey(), (6, JointGaussian(2, rank=3).size))


def test_joint_covariance_is_positive_definite_even_for_equal_targets(raw):
    likelihood, raw = raw
    equal = jnp.broadcast_to(raw[:1], (40, raw.shape[1])).at[:, 4:6].set(-30.0)  # hardly any noise
    for given in (raw, equal):
        joint = likelihood.joint(given)
        assert np.linalg.eigvalsh(np.asarray(joint.covariance_matrix, np.float64)).min() > 0
        assert jnp.isfinite(joint.log_prob(jnp.zeros(given.shape[0] * 2)))


def test_marginals_of_the_joint_are_those_of_each_target(raw):
    likelihood, raw = raw
    joint, each = likelihood.joint(raw), likelihood(raw)
    assert np.allclose(joint.mean, each.mean.reshape(-1))
    assert np.allclose(joint.variance, each.variance.reshape(-1), rtol=1e-5)


def test_targets_can_be_permuted_or_left_out(raw):
    likelihood, raw = raw
    covariance = np.asarray(likelihood.joint(raw).covariance_matrix).reshape(6, 2, 6, 2)
    order = np.array([3, 0, 5])
    part = np.asarray(likelihood.joint(raw[order]).covariance_matrix).reshape(3, 2, 3, 2)
    assert np.allclose(part, covariance[order][:, :, order], rtol=1e-5)
    hidden = likelihood.joint(raw, jnp.isin(jnp.arange(6), order))
    y = np.repeat(np.where(np.isin(np.arange(6), order), 0.3, 0.0), 2)
    unseen = scipy.stats.norm.logpdf(0) * 6
    alone = likelihood.joint(raw[np.sort(order)]).log_prob(jnp.full(6, 0.3))
    assert abs(float(hidden.log_prob(jnp.asarray(y, jnp.float32))) - unseen - float(alone)) < 1e-3


def test_joint_density_is_scipys(raw):
    likelihood, raw = raw
    joint = likelihood.joint(raw)
    y = np.linspace(-1, 1, 12)
    truth = scipy.stats.multivariate_normal(
        np.asarray(joint.mean, np.float64), np.asarray(joint.covariance_matrix, np.float64)
    )
    assert abs(float(joint.log_prob(jnp.asarray(y, jnp.float32))) - truth.logpdf(y)) < 1e-3


LOC, SCALE = np.array([[-2.0, 2.0, 0.5], [0.0, 0.1, 0.2]]), np.array([[0.1, 0.1, 1.0], [1.0, 2.0, 0.5]])


def test_mixture_has_the_density_distribution_and_moments_of_its_parts():
    found = NormalMixture(jnp.asarray(LOC, jnp.float32), jnp.asarray(SCALE, jnp.float32))
    parts = scipy.stats.norm(LOC, SCALE)
    y = np.array([1.9, -0.3])
    assert np.allclose(found.log_prob(jnp.asarray(y)), np.log(parts.pdf(y[:, None]).mean(axis=1)), atol=1e-4)
    assert np.allclose(found.cdf(jnp.asarray(y)), parts.cdf(y[:, None]).mean(axis=1), atol=1e-5)
    mean = LOC.mean(axis=1)
    assert np.allclose(found.mean, mean, atol=1e-6)
    assert np.allclose(found.variance, (SCALE**2 + LOC**2).mean(axis=1) - mean**2, rtol=1e-5)
    drawn = np.asarray(found.sample(jr.key(0), (20_000,)))
    assert drawn.shape == (20_000, 2)
    assert np.allclose(drawn.mean(axis=0), mean, atol=0.05)
    for q in (0.025, 0.5, 0.9):
        assert np.allclose(found.cdf(found.icdf(jnp.full(2, q))), q, atol=1e-4)


def test_mixture_of_two_modes_is_not_the_gaussian_of_their_mean():
    """Modes at -2 and 2, seen at 2: a Gaussian of averaged activations would be a hundred nats off."""
    parts = dist.Normal(jnp.array([-2.0, 2.0])[:, None, None], jnp.full((2, 1, 1), 0.1)).to_event(1)
    found = mixture(parts).log_prob(jnp.array([[2.0]]))
    assert abs(float(found[0]) - (np.log(0.5) + scipy.stats.norm(2, 0.1).logpdf(2))) < 1e-4
    assert float(dist.Normal(0.0, 0.1).log_prob(2.0)) < -100


def test_columns_share_the_part_of_a_mixture():
    loc = jnp.array([[[-2.0, -2.0]], [[2.0, 2.0]]])
    found = mixture(dist.Normal(loc, jnp.full(loc.shape, 0.1)).to_event(1))
    assert found.batch_shape == (1,) and found.event_shape == (2,)
    drawn = found.sample(jr.key(0), (100,))
    assert (jnp.sign(drawn[..., 0]) == jnp.sign(drawn[..., 1])).all()
    single = marginals(found)
    assert single.batch_shape == (1, 2)
    assert np.allclose(single.icdf(jnp.full((1, 2), 0.75)), 2.0, atol=1e-2)


def test_mixture_takes_gaussians():
    with pytest.raises(TypeError, match="takes Gaussian parts or classes, got Independent"):
        mixture(dist.Laplace(jnp.zeros((2, 3, 1)), 1.0).to_event(1))


def test_gradients_of_mixtures_are_finite_far_out():
    def log_prob(loc):
        return NormalMixture(loc, jnp.full((3,), 1e-3)).log_prob(jnp.array(1e3))

    assert jnp.isfinite(jax.grad(log_prob)(jnp.zeros(3))).all()

"""The joint Gaussian and the mixture against scipy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.optimize
import scipy.stats
from laws import normal

import npax
from npax.likelihoods import (
    AbstractLikelihood,
    EqualMixture,
    FunctionAndNoise,
    JointGaussian,
    NoisyNormal,
    marginals,
    mixture,
    noiseless,
)


@eqx.filter_jit
def joint_of(likelihood, raw, mask=None):
    """The joint Gaussian and its covariance."""
    joint = likelihood.joint(raw, mask)
    return joint, joint.covariance_matrix


log_prob = jax.jit(lambda distribution, y: distribution.log_prob(y))
moments = jax.jit(lambda distribution: (distribution.mean, distribution.variance))


@pytest.fixture
def raw(getkey):
    return JointGaussian(2, rank=3), np.asarray(normal(getkey(), (6, JointGaussian(2, rank=3).size)))


def test_joint_covariance_is_positive_definite_even_for_equal_targets(raw):
    likelihood, raw = raw
    equal = np.repeat(raw[:1], 40, axis=0)
    equal[:, 4:6] = -30.0  # hardly any noise
    for given in (raw, equal):
        joint, covariance = joint_of(likelihood, given)
        assert np.linalg.eigvalsh(np.asarray(covariance, np.float64)).min() > 0
        assert np.isfinite(log_prob(joint, np.zeros(given.shape[0] * 2, np.float32)))


def test_marginals_of_the_joint_are_those_of_each_target(raw):
    likelihood, raw = raw
    (mean, variance), each = moments(joint_of(likelihood, raw)[0]), moments(eqx.filter_jit(likelihood)(raw))
    assert np.allclose(mean, np.ravel(each[0]))
    assert np.allclose(variance, np.ravel(each[1]), rtol=1e-5)


def test_nothing_under_a_mask_moves_a_gradient(raw):
    likelihood, raw = raw
    mask = jnp.arange(len(raw)) > 0

    def density(raw):
        return likelihood.joint(raw, mask).log_prob(jnp.zeros(likelihood.dy * len(raw)))

    found, expected = (jax.jit(jax.grad(density))(jnp.asarray(raw).at[0].set(junk)) for junk in (jnp.nan, 0.0))
    assert not np.any(found[0]) and np.array_equal(found, expected)


def test_targets_can_be_permuted_or_left_out(raw):
    likelihood, raw = raw
    covariance = np.asarray(joint_of(likelihood, raw)[1]).reshape(6, 2, 6, 2)
    order = np.array([3, 0, 5])
    part = np.asarray(joint_of(likelihood, raw[order])[1]).reshape(3, 2, 3, 2)
    assert np.allclose(part, covariance[order][:, :, order], rtol=1e-5)
    kept = np.isin(np.arange(6), order)
    hidden, _ = joint_of(likelihood, raw, kept)
    y = np.repeat(np.where(kept, np.float32(0.3), np.float32(0.0)), 2)
    unseen = scipy.stats.norm.logpdf(0) * 6
    alone = log_prob(joint_of(likelihood, raw[kept])[0], np.full(6, 0.3, np.float32))
    assert abs(float(log_prob(hidden, y)) - unseen - float(alone)) < 1e-3


@pytest.mark.parametrize("slots", [24, 150])
def test_padding_changes_no_density_of_smooth_targets(slots):
    """Neighbours of a smooth function, hardly told apart and without noise: where rounding needs care."""
    likelihood, at = JointGaussian(1, rank=1), np.linspace(0, 3, 24, dtype=np.float32)
    raw = np.stack([np.zeros(24), np.full(24, 1.0), np.full(24, -30.0), at], axis=1).astype(np.float32)
    raw = np.concatenate([raw, np.ones((slots - 24, 4), np.float32)])
    y = np.where(np.arange(slots) < 24, np.sin(np.resize(at, slots)), 0.0).astype(np.float32)
    joint, covariance = joint_of(likelihood, raw, np.arange(slots) < 24)
    alone, _ = joint_of(likelihood, raw[:24])
    unseen = scipy.stats.norm.logpdf(0) * (slots - 24)
    assert abs(float(log_prob(joint, y)) - unseen - float(log_prob(alone, y[:24]))) < 0.05
    assert np.linalg.eigvalsh(np.asarray(covariance, np.float64)).min() > 1e-5


def test_joint_density_is_scipys(raw):
    likelihood, raw = raw
    joint, covariance = joint_of(likelihood, raw)
    y = np.linspace(-1, 1, 12)
    truth = scipy.stats.multivariate_normal(np.asarray(joint.mean, np.float64), np.asarray(covariance, np.float64))
    assert abs(float(log_prob(joint, y.astype(np.float32))) - truth.logpdf(y)) < 1e-3


LOC, SCALE = np.array([[-2.0, 0.0], [2.0, 0.1], [0.5, 0.2]]), np.array([[0.1, 1.0], [0.1, 2.0], [1.0, 0.5]])


def test_mixture_has_the_density_distribution_and_moments_of_its_parts():
    found = EqualMixture(dist.Normal(*(jax.device_put(a.astype(np.float32)) for a in (LOC, SCALE))))
    parts = scipy.stats.norm(LOC, SCALE)
    y = np.array([1.9, -0.3], np.float32)
    cdf, icdf = (jax.jit(lambda d, a, name=name: getattr(d, name)(a)) for name in ("cdf", "icdf"))
    assert np.allclose(log_prob(found, y), np.log(parts.pdf(y).mean(axis=0)), atol=1e-4)
    assert np.allclose(cdf(found, y), parts.cdf(y).mean(axis=0), atol=1e-5)
    mean = LOC.mean(axis=0)
    assert np.allclose(moments(found)[0], mean, atol=1e-6)
    assert np.allclose(moments(found)[1], (SCALE**2 + LOC**2).mean(axis=0) - mean**2, rtol=1e-5)
    drawn = np.asarray(jax.jit(lambda d: d.sample(jr.key(0), (20_000,)))(found))
    assert drawn.shape == (20_000, 2)
    assert np.allclose(drawn.mean(axis=0), mean, atol=0.05)
    for q in (0.025, 0.5, 0.9):
        assert np.allclose(cdf(found, icdf(found, np.full(2, q, np.float32))), q, atol=1e-4)


def test_mixture_of_two_modes_is_not_the_gaussian_of_their_mean():
    """Modes at -2 and 2, seen at 2: a Gaussian of averaged activations would be a hundred nats off."""
    loc, y = np.array([-2.0, 2.0], np.float32)[:, None, None], np.full((1, 1), 2.0, np.float32)
    found = jax.jit(lambda loc, y: mixture(dist.Normal(loc, jnp.full_like(loc, 0.1)).to_event(1)).log_prob(y))(loc, y)
    assert abs(found.item() - (np.log(0.5) + scipy.stats.norm(2, 0.1).logpdf(2))) < 1e-4
    assert scipy.stats.norm(0, 0.1).logpdf(2) < -100


def test_columns_share_the_part_of_a_mixture():
    @jax.jit
    def mixed(loc):
        found = mixture(dist.Normal(loc, jnp.full_like(loc, 0.1)).to_event(1))
        single = marginals(found)
        return found, found.sample(jr.key(0), (100,)), single, single.icdf(jnp.full((1, 2), 0.75))

    found, drawn, single, quantiles = mixed(np.array([[[-2.0, -2.0]], [[2.0, 2.0]]], np.float32))
    assert found.batch_shape == (1,) and found.event_shape == (2,)
    assert (np.sign(drawn[..., 0]) == np.sign(drawn[..., 1])).all()
    assert single.batch_shape == (1, 2)
    assert np.allclose(quantiles, 2.0, atol=1e-2)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.8])
def test_quantiles_of_a_mixture_have_the_slopes_of_the_implicit_function(p):
    loc, scale = np.array([0.0, 2.0]), np.array([1.0, 0.5])
    part = scipy.stats.norm(loc, scale)
    at = scipy.optimize.brentq(lambda y: part.cdf(y).mean() - p, -9, 9, xtol=1e-13)
    density = part.pdf(at).mean()
    slopes = part.pdf(at) / 2 / density, (at - loc) / scale * part.pdf(at) / 2 / density, 1 / density
    quantile = jax.jit(jax.grad(lambda *args: mixture(dist.Normal(*args[:2])).icdf(args[2]), (0, 1, 2)))
    found = quantile(*(jnp.asarray(a, jnp.float32) for a in (loc, scale, p)))
    assert all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(found, slopes, strict=True))


@pytest.mark.parametrize("law", [dist.Normal, dist.LogNormal])
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_ends_of_a_mixture_stay_where_they_are(p, law):
    def quantile(loc, scale):
        return mixture(law(loc, scale)).icdf(p)

    value, slopes = jax.jit(jax.value_and_grad(quantile, (0, 1)))(jnp.zeros(3), jnp.ones(3))
    assert value == law(0.0, 1.0).icdf(p) and np.isfinite(slopes).all()


def test_quantiles_of_a_mixture_bend_as_they_should():
    with jax.enable_x64():
        raw = jnp.asarray(np.random.default_rng(5).normal(size=(2, 3)))

        def quantile(q, raw):
            return mixture(dist.Normal(raw[0], jnp.exp(raw[1]))).icdf(q)

        bends, h = jax.jit(jax.grad(jax.grad(quantile)))(0.3, raw), 1e-4
        mixed = jax.jit(jax.grad(lambda q, raw: jnp.sum(jax.grad(quantile, 1)(q, raw))))(0.3, raw)
        low, middle, high = (float(quantile(q, raw)) for q in (0.3 - h, 0.3, 0.3 + h))
        slopes = [float(jnp.sum(jax.grad(quantile, 1)(q, raw))) for q in (0.3 - h, 0.3 + h)]
    assert np.isclose(bends, (low - 2 * middle + high) / h**2, rtol=1e-4)
    assert np.isclose(mixed, (slopes[1] - slopes[0]) / (2 * h), rtol=1e-4)


class Poisson(AbstractLikelihood):
    dy: int = eqx.field(static=True, default=1)

    @property
    def size(self):
        return self.dy

    def __call__(self, raw):
        return dist.Poisson(jnp.exp(raw)).to_event(1)


def test_mixture_of_counts_is_scipys():
    rate, y = np.array([[[0.5]], [[4.0]], [[9.0]]], np.float32), np.arange(12, dtype=np.float32)[:, None, None]

    @jax.jit
    def facts(rate, y):
        found = mixture(dist.Poisson(rate).to_event(1))
        single = marginals(found)
        return found.log_prob(y), single.cdf(y), found.mean, found.variance, found.sample(jr.key(0), (20_000,))

    parts = scipy.stats.poisson(rate[None])
    density, below, mean, variance, drawn = map(np.asarray, facts(rate, y))
    assert np.allclose(np.exp(density), parts.pmf(y[:, None]).mean(axis=1)[..., 0], atol=1e-6)
    assert np.allclose(below, parts.cdf(y[:, None]).mean(axis=1), atol=1e-5)
    assert np.allclose(mean, 4.5) and np.allclose(variance, 4.5 + np.var([0.5, 4, 9]), rtol=1e-5)
    assert drawn.shape == (20_000, 1, 1) and (drawn == np.round(drawn)).all()
    assert abs(drawn.mean() - 4.5) < 0.1 and abs(drawn.var() - variance) < 0.5


@pytest.mark.parametrize("likelihood", [Poisson(), FunctionAndNoise(1)], ids=["counts", "function and noise"])
def test_latent_models_take_any_likelihood(getkey, likelihood):
    model = npax.NP(1, 1, encoder=(8,), size=8, latent=4, decoder=(8,), likelihood=likelihood, key=getkey())

    @eqx.filter_jit
    def facts(model, x, y):
        found = model(x, y, x)
        return noiseless(found).variance, found.variance, found.log_prob(y), found.sample(jr.key(0), (3,))

    x = np.linspace(-1, 1, 5, dtype=np.float32)[:, None]
    of_function, variance, log_prob, drawn = map(np.asarray, facts(model, x, np.round(x + 2)))
    assert np.isfinite(log_prob).all() and log_prob.shape == (5,) and drawn.shape == (3, 5, 1)
    assert (of_function <= variance).all() and (of_function < variance).all() == isinstance(
        likelihood, FunctionAndNoise
    )


def test_bootstraps_refuse_counts(getkey):
    with pytest.raises(ValueError, match="`likelihood` = Poisson may not"):
        npax.BNP(1, 1, likelihood=Poisson(), key=getkey())


def test_gradients_of_mixtures_are_finite_far_out():
    def log_prob(loc):
        return EqualMixture(dist.Normal(loc, jnp.full((3,), 1e-3))).log_prob(jnp.array(1e3))

    assert np.isfinite(jax.jit(jax.grad(log_prob))(np.zeros(3, np.float32))).all()


def test_where_no_part_can_be_a_mixture_has_no_slope():
    class Positive(dist.LogNormal):
        def log_prob(self, value, intermediates=None):
            return jnp.where(value > 0, super().log_prob(jnp.where(value > 0, value, 1.0)), -jnp.inf)

    def log_prob(y):
        return EqualMixture(Positive(jnp.zeros((3, 2)), 1.0)).log_prob(y)

    y = jnp.array([-1.0, 1.0])
    found, slope = jax.jit(lambda y: jax.jvp(log_prob, (y,), (jnp.ones(2),)))(y)
    assert found[0] == -jnp.inf and np.isclose(found[1], scipy.stats.lognorm(1.0).logpdf(1.0))
    assert np.allclose(slope, [0.0, -1.0])


def test_values_are_broadcast_as_numpyro_does():
    found = EqualMixture(dist.Normal(*(jax.device_put(a.astype(np.float32)) for a in (LOC, SCALE))))

    @jax.jit
    def of_one(d):
        return d.log_prob(0.5), d.cdf(0.5), d.icdf(0.9)

    @jax.jit
    def of_both(d):
        half, most = jnp.full(2, 0.5), jnp.full(2, 0.9)
        return d.log_prob(half), d.cdf(half), d.icdf(most)

    for one, both in zip(of_one(found), of_both(found), strict=True):
        assert one.shape == (2,) and np.allclose(one, both)


def test_a_mixture_without_noise_of_its_own_is_its_own_function(rng):
    """Then samples with and without noise are the same, and no chain is drawn anew."""
    parts = dist.Normal(jnp.asarray(rng.normal(size=(4, 3, 1))), 1.0).to_event(1)
    mixture = EqualMixture(parts)
    assert noiseless(mixture) is mixture
    noisy = EqualMixture(NoisyNormal(parts.base_dist.loc, 1.0, 0.5).to_event(1))
    assert noiseless(noisy) is not noisy and np.allclose(noisy.variance - noiseless(noisy).variance, 0.25)

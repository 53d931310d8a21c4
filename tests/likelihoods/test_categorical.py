"""Classes: against scipy and numpyro's multinomial, at the extremes, in mixtures, samples and predictions."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.special
import scipy.stats
from laws import TINY, finite, normal, rotary

import npax
from npax.inference import Exact, Planar, Tiled
from npax.likelihoods import Categorical, OneHotCategorical, marginals, mixture, noiseless


@pytest.fixture
def drawn(getkey):
    d = Categorical(3)(jax.device_put(2 * np.asarray(normal(getkey(), (50, 3)))))
    return d, jax.jit(lambda d, key: d.sample(key))(d, getkey())


@jax.jit
def facts(d, y):
    return d.log_prob(y), d.mean, d.variance


def test_it_is_a_multinomial_of_one_trial(drawn):
    d, y = drawn
    assert d.batch_shape == (50,) and d.event_shape == (3,) and y.dtype == jnp.float32
    with jax.numpy_dtype_promotion("standard"):
        same = facts(dist.MultinomialLogits(d.logits, 1), y)
    for found, true, atol in zip(facts(d, y), same, (1e-5, 1e-6, 1e-6), strict=True):
        assert np.allclose(found, true, atol=atol)


def test_likelihood_and_entropy_are_scipys(drawn):
    d, y = drawn
    p = scipy.special.softmax(np.asarray(d.logits, float), axis=-1)
    taken = np.take_along_axis(p, np.argmax(y, axis=-1)[:, None], axis=-1)[:, 0]
    log_prob, entropy = (np.asarray(a) for a in jax.jit(lambda d, y: (d.log_prob(y), d.entropy()))(d, y))
    np.testing.assert_allclose(log_prob, np.log(taken), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(entropy, scipy.stats.entropy(p, axis=-1), atol=1e-5)
    assert entropy.max() <= np.log(3) + 1e-6


def test_samples_are_one_hot_and_as_frequent_as_probable():
    d = OneHotCategorical(jax.device_put(np.log([[0.2, 0.5, 0.3]], dtype=np.float32)))
    y = np.asarray(jax.jit(lambda d: d.sample(jr.key(0), (20_000,)))(d))
    assert y.shape == (20_000, 1, 3) and set(np.unique(y)) == {0.0, 1.0} and (y.sum(axis=-1) == 1).all()
    assert np.allclose(y.mean(axis=0), [[0.2, 0.5, 0.3]], atol=0.02)


@pytest.mark.parametrize("extreme", [-1e4, 1e4])
def test_extreme_logits_keep_everything_finite(extreme):
    raw = np.array([[0.0, extreme, 0.0]], np.float32)
    log_prob = jax.jit(jax.value_and_grad(lambda raw, y: Categorical(3)(raw).log_prob(y)[0]))
    for y in np.eye(3, dtype=np.float32):
        assert finite(log_prob(raw, y[None]))
    assert finite(jax.jit(lambda raw: Categorical(3)(raw).entropy())(raw))


def test_a_difference_beyond_all_numbers_is_certainty():
    """A class of no probability has no share in anything."""
    for dtype, large in ((jnp.float32, 3e38), (jnp.float16, 6e4)):
        d = OneHotCategorical(jnp.array([large, -large, 0.0], dtype))
        certain, entropy = jax.jit(lambda d, y: (d.log_prob(y), d.entropy()))(d, jnp.eye(3, dtype=dtype))
        assert certain[0] == 0 and (certain[1:] < -1e4).all() and entropy == 0
        gradient = jax.jit(jax.grad(lambda logits: OneHotCategorical(logits).entropy()))(d.logits)
        assert np.isfinite(gradient).all()


def test_marginals_are_the_entries(drawn):
    d, y = drawn
    single = jax.jit(marginals)(d)
    assert single.batch_shape == (50, 3) and single.event_shape == ()
    assert all(map(np.allclose, facts(single, y)[1:], facts(d, y)[1:]))
    assert noiseless(d) is d


def test_a_mixture_has_the_mean_probabilities():
    logits = np.array([[[50.0, 0.0, 0.0]], [[0.0, 50.0, 0.0]]], np.float32)
    mixed = jax.jit(lambda logits: mixture(OneHotCategorical(logits)))(logits)
    averaged_logits = OneHotCategorical(jax.device_put(logits.mean(axis=0)))
    third = np.array([[0.0, 0.0, 1.0]], np.float32)
    log_prob, probs, _ = facts(mixed, third)
    assert mixed.batch_shape == (1,) and np.allclose(probs, [[0.5, 0.5, 0.0]], atol=1e-6)
    assert log_prob.item() < -40 and facts(averaged_logits, third)[0].item() > -30


def test_a_single_class_is_refused():
    with pytest.raises(ValueError, match="`dy` must be a whole number, at least 2; got 1"):
        Categorical(1)


def test_models_of_residuals_are_refused(getkey):
    with pytest.raises(ValueError, match="Categorical"):
        npax.BNP(2, 3, likelihood=Categorical(3), key=getkey())


@pytest.fixture(scope="module")
def classes():
    """A model of three classes, observed at random cells and asked for on all of a lattice."""
    model = npax.TNPKR(2, 3, rotary=rotary(2), locations=False, likelihood=Categorical(3), **TINY, key=jr.key(1))
    # Fresh models hardly mind where they look.
    model = jax.tree.map(lambda a: jax.device_put(np.float32(1.5) * np.asarray(a)), model)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-8, 8, (40, 2)) / 4.0, np.eye(3)[rng.integers(0, 3, 40)]
    return model, x, y, np.stack(np.meshgrid(*2 * (np.arange(-8, 8) / 4,)), axis=-1).reshape(-1, 2)


def test_predictions_are_probabilities_in_the_units_of_classes(classes):
    """One-hot values are not standardised: the model answers as it does to raw values."""
    model, x, y, xt = classes
    found = Exact(model, x, y, Planar(scaled=False))(xt)
    direct = eqx.filter_jit(lambda model, *data: model(*data).mean)(model, *(a.astype(np.float32) for a in (x, y, xt)))
    mean = np.asarray(found.mean)
    np.testing.assert_allclose(mean, direct, atol=1e-5)
    np.testing.assert_allclose(mean.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(found.variance, mean * (1 - mean), atol=1e-5)
    assert np.abs(np.asarray(Exact(model, x, y, Planar())(2 * xt).mean) - mean).max() > 1e-3


def test_tiles_that_see_all_of_a_lattice_answer_as_one(classes):
    model, x, y, xt = classes
    moved = np.array([100.0, -50.0])  # nothing is scaled, and the model sees differences only
    whole, tiled = (
        Exact(model, x, y, Planar(scaled=False))(xt),
        Tiled(model, x + moved, y, Planar(scaled=False), size=64)(xt + moved),
    )
    np.testing.assert_allclose(tiled.mean, whole.mean, atol=1e-5)
    few = Tiled(model, x, y, Planar(scaled=False), size=16)(xt).mean
    np.testing.assert_allclose(few.sum(axis=1), 1, atol=1e-5)
    assert np.abs(few - whole.mean).max() > 1e-4


def test_joint_samples_of_classes_are_one_hot(classes):
    model, x, y, xt = classes
    for method in ("ar", "independent"):
        drawn = np.asarray(npax.sample(model, x[:10], y[:10], xt[:5], 3, key=jr.key(0), method=method))
        assert drawn.shape == (3, 5, 3) and set(np.unique(drawn)) <= {0.0, 1.0} and (drawn.sum(axis=-1) == 1).all()


@pytest.mark.parametrize(
    "parts", [dist.Cauchy, partial(dist.StudentT, 1.0), lambda a, b: dist.Pareto(jnp.exp(a), b / 2)]
)
def test_hidden_values_of_distributions_without_a_mean_move_nothing(parts):
    def total(loc, mask):
        return jnp.sum(npax.likelihoods.log_prob(parts(loc, 1.0).to_event(1), jnp.full((3, 1), 2.0), mask))

    for seen in (0, 2):
        value, slope = jax.jit(jax.value_and_grad(total))(jnp.zeros((3, 1)), jnp.arange(3) < seen)
        assert np.isfinite(value) and np.isfinite(slope).all() and (slope[seen:] == 0).all()


class WithoutSupport(dist.Distribution):
    """One's own, of which no more than the density is known."""

    def __init__(self, loc):
        self.loc = loc
        super().__init__(jnp.shape(loc)[:1], jnp.shape(loc)[1:])

    def log_prob(self, value, intermediates=None):
        return -jnp.sum(jnp.square(value - self.loc), axis=-1)


@pytest.mark.parametrize(
    "make",
    [
        WithoutSupport,
        lambda loc: mixture(dist.Uniform(loc + jnp.zeros((2, 1, 1)), loc + jnp.full((2, 1, 1), 3.0)).to_event(1)),
        lambda loc: mixture(dist.Pareto(jnp.exp(loc + jnp.zeros((2, 1, 1))), 0.5).to_event(1)),
    ],
    ids=["own", "uniform", "pareto"],
)
def test_hidden_values_need_no_support_of_one_shape(make):
    def total(loc, mask):
        return jnp.sum(npax.likelihoods.log_prob(make(loc), jnp.full((3, 1), 2.0), mask))

    for seen in (0, 2):
        value, slope = jax.jit(jax.value_and_grad(total))(jnp.zeros((3, 1)), jnp.arange(3) < seen)
        assert np.isfinite(value) and np.isfinite(slope).all() and (slope[seen:] == 0).all()


def test_no_targets_are_legal(getkey):
    model = npax.CNP(2, 3, encoder=(8,), size=8, decoder=(8,), likelihood=Categorical(3), key=getkey())
    x, y = jnp.zeros((4, 2)), jnp.eye(3)[jnp.array([0, 1, 2, 0])]
    nothing = eqx.filter_jit(lambda model, x, y: model(x, y, x[:0]).mean)(model, x, y)
    assert nothing.shape == (0, 3)
    task = npax.Task.of(x, y, x[:0], y[:0])
    value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(npax.objectives.nll))(model, task)
    assert value == 0 and finite(gradient)

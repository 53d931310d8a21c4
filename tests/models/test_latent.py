"""Neural processes with latent variables, and bootstrapping ones, against their definitions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
import scipy.stats
from laws import MODELS, close, draw_data, normal

import npax
from npax.models.bnp import _sorted, _with_replacement


def as64(a):
    return np.asarray(a, np.float64)


@pytest.fixture(scope="module")
def np_model():
    return MODELS["np"](jr.key(1))


@pytest.fixture
def data(np_model, getkey):
    return draw_data(np_model, getkey())


def test_the_latent_variable_is_that_of_the_paper(np_model, data):
    """Mean of the encoded points, then an MLP; the standard deviation between 0.1 and 1 (ANP App. A)."""
    mask = jnp.arange(20) < 13
    state = np_model.condition(data.xc, data.yc, mask)
    encoded = as64(np_model.latent_path.encoder.embed(jnp.concatenate([data.xc, data.yc], axis=1)))[:13].mean(axis=0)
    mean, spread = np.split(as64(np_model.latent_path.head(jnp.asarray(encoded, jnp.float32)[None]))[0], 2)
    assert reference.relative(state.mean, mean) < 1e-5
    assert reference.relative(state.std, 0.1 + 0.9 / (1 + np.exp(-spread))) < 1e-5


def test_the_prediction_is_the_mixture_over_draws(np_model, data):
    state = np_model.condition(data.xc, data.yc, data.mask)
    each = np_model.predict_each(state, data.xt)
    densities = scipy.stats.norm(as64(each.mean), np.sqrt(as64(each.variance))).pdf(0.4)[..., 0]
    found = np_model.predict(state, data.xt).log_prob(jnp.full((9, 1), 0.4))
    assert np.allclose(found, np.log(densities.mean(axis=0)), atol=1e-4)


def test_predictions_are_the_same_at_every_call_and_others_with_another_key(np_model, data):
    state = np_model.condition(data.xc, data.yc, data.mask)
    first, again = (np_model.predict(state, data.xt).mean for _ in range(2))
    other = np_model.predict(state, data.xt, key=jr.key(5)).mean
    assert (first == again).all() and not close(first, other)
    with pytest.raises(ValueError, match="`samples` must be at least 1, got 0"):
        np_model.predict(state, data.xt, samples=0)


@pytest.mark.parametrize("name", ["np", "anp-laplace", "bnp", "tnp-nd", "tnp-a"])
def test_hidden_targets_do_not_change_joint_likelihoods(name, getkey):
    model = MODELS[name](jr.key(1))
    data = draw_data(model, getkey())
    yt = normal(getkey(), (9, model.dy))

    @eqx.filter_jit
    def joint_log_prob(xt, yt, mask):
        return model.joint_log_prob(model.condition(data.xc, data.yc, data.mask), xt, yt, mask)

    few = joint_log_prob(data.xt[:6], yt[:6], jnp.ones(6, bool))
    hidden = joint_log_prob(data.xt, yt.at[6:].set(jnp.nan), jnp.arange(9) < 6)
    whole = joint_log_prob(data.xt, yt, jnp.ones(9, bool))
    assert close(hidden, few, 1e-4) and not close(whole, few, 1e-4)


def test_the_joint_likelihood_of_a_latent_model_averages_products(np_model, data, getkey):
    yt = normal(getkey(), (9, 1))
    state = np_model.condition(data.xc, data.yc, data.mask)
    each = np_model.predict_each(state, data.xt, key=jr.key(3))
    logs = scipy.stats.norm(as64(each.mean), np.sqrt(as64(each.variance))).logpdf(as64(yt)).sum(axis=(1, 2))
    found = float(np_model.joint_log_prob(state, data.xt, yt, key=jr.key(3)))
    assert abs(found - (np.logaddexp.reduce(logs) - np.log(16))) < 1e-3


def test_samples_of_one_draw_belong_together(np_model, data):
    """Far from any data the targets of one sample move together with its latent variable."""
    wide = eqx.tree_at(lambda m: m.latent_path.head.layers[-1].bias, np_model, replace_fn=lambda b: b + 4.0)
    wide = eqx.tree_at(lambda m: m.decoder.layers[0].weight, wide, replace_fn=lambda w: w.at[16:20].mul(20.0))
    narrow = eqx.tree_at(lambda m: m.decoder.layers[-1].bias, wide, replace_fn=lambda b: b.at[1].set(-8.0))
    xt = jnp.array([[0.5, 0.5], [0.5, 0.51]])
    drawn = np.asarray(npax.sample(narrow, data.xc, data.yc, xt, 200, key=jr.key(0)))[..., 0]
    assert np.corrcoef(drawn.T)[0, 1] > 0.9
    jagged = np.asarray(npax.sample(narrow, data.xc, data.yc, xt, 200, key=jr.key(0), method="independent"))[..., 0]
    assert abs(np.corrcoef(jagged.T)[0, 1]) < 0.3


def test_latent_samples_need_a_latent_variable(getkey):
    model = MODELS["cnp"](jr.key(0))
    data = draw_data(model, getkey())
    with pytest.raises(ValueError, match="needs a model with a latent variable, and CNP has none"):
        npax.sample(model, data.xc, data.yc, data.xt, key=jr.key(0), method="latent")


def test_bootstrapped_values_are_predictions_and_resampled_residuals(getkey):
    model = MODELS["bnp"](jr.key(1))
    data = draw_data(model, getkey())._replace(mask=jnp.arange(20) < 13)
    state = model.condition(data.xc, data.yc, data.mask)
    key = jr.key(4)
    pairs, residuals = jr.split(key)
    some = np.asarray(_with_replacement(pairs, state.mask))
    assert (some[:13] < 13).all() and len(set(some[:13])) < 13
    again = model.condition(state.xc[some[:13]], state.yc[some[:13]])
    predicted = model.predict_base(again, state.xc[:13])
    mean, std = as64(predicted.mean), np.sqrt(as64(predicted.variance))
    residual = (as64(state.yc)[:13] - mean) / std
    residual = (residual - residual.mean(axis=0))[np.asarray(_with_replacement(residuals, state.mask))[:13]]
    assert reference.relative(model._bootstrap(state, key)[:13], mean + std * residual) < 1e-4


def test_no_gradient_passes_through_the_bootstrap(getkey):
    model = MODELS["bnp"](jr.key(1))
    data = draw_data(model, getkey())
    gradient = eqx.filter_grad(lambda m: jnp.sum(m._bootstrap(m.condition(data.xc, data.yc), jr.key(0))))(model)
    assert all((g == 0).all() for g in jax.tree.leaves(gradient))


def test_sorting_puts_valid_points_first_in_one_order(getkey):
    x, y = normal(getkey(), (9, 2)), normal(getkey(), (9, 1))
    mask = jnp.arange(9) < 6
    order = jr.permutation(getkey(), 9)
    a, b = _sorted(x, y, mask), _sorted(x[order], y[order], mask[order])
    assert a[2].tolist() == [True] * 6 + [False] * 3
    assert (a[0][:6] == b[0][:6]).all() and (a[1][:6] == b[1][:6]).all()
    assert (jnp.diff(a[0][:6, 0]) >= 0).all()

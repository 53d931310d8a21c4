"""Neural processes with latent variables, and bootstrapping ones, against their definitions."""

from inspect import unwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
import scipy.stats
from laws import MODELS, close, draw_data, moments, normal
from untrained import untrained

import npax
from npax.likelihoods import FunctionAndNoise
from npax.models._base import gaussian_unless
from npax.models.bnp import _sorted, _with_replacement


def as64(a):
    return np.asarray(a, np.float64)


@eqx.filter_jit
def conditioned(model, data):
    return model.condition(data.xc, data.yc, data.mask)


@eqx.filter_jit
def predicted_by_each(model, data, key=None):
    each = model.predict_each(model.condition(data.xc, data.yc, data.mask), data.xt, key=key)
    return each.mean, each.variance


@pytest.fixture(scope="module")
def np_model():
    return MODELS["np"](jr.key(1))


@pytest.fixture
def data(np_model, getkey):
    return draw_data(np_model, getkey())


def test_the_latent_variable_is_that_of_the_paper(np_model, data):
    """Mean of the encoded points, then an MLP; the standard deviation between 0.1 and 1 (ANP App. A)."""
    state, path = conditioned(np_model, data._replace(mask=np.arange(20) < 13)), np_model.latent_path
    encoded = as64(eqx.filter_jit(path.encoder.embed)(np.concatenate([data.xc, data.yc], axis=1)))[:13].mean(axis=0)
    mean, spread = np.split(as64(eqx.filter_jit(path.head)(encoded[None].astype(np.float32)))[0], 2)
    assert reference.relative(state.mean, mean) < 1e-5
    assert reference.relative(state.std, 0.1 + 0.9 / (1 + np.exp(-spread))) < 1e-5


def test_the_prediction_is_the_mixture_over_draws(np_model, data):
    mean, variance = map(as64, predicted_by_each(np_model, data))
    densities = scipy.stats.norm(mean, np.sqrt(variance)).pdf(0.4)[..., 0]
    log_prob = eqx.filter_jit(lambda state: np_model.predict(state, data.xt).log_prob(jnp.full((9, 1), 0.4)))
    found = log_prob(conditioned(np_model, data))
    assert np.allclose(found, np.log(densities.mean(axis=0)), atol=1e-4)


def test_predictions_are_the_same_at_every_call_and_others_with_another_key(np_model, data):
    state = conditioned(np_model, data)

    def mean(key):  # traced anew at every call
        return np.asarray(jax.jit(lambda state: np_model.predict(state, data.xt, key=key).mean)(state))

    first, again, other = mean(None), mean(None), mean(jr.key(5))
    assert (first == again).all() and not close(first, other)
    with pytest.raises(ValueError, match="`samples` must be a whole number, at least 1; got 0"):
        np_model.predict(state, data.xt, samples=0)


def test_a_latent_model_of_ones_own_is_trained_by_the_evidence_bound(np_model, data, getkey):
    """One that is made of an `NP`, and so has its bound."""

    class Own(npax.models.AbstractVariationalNeuralProcess):
        inner: npax.NP
        likelihood: npax.likelihoods.AbstractLikelihood
        dx: int = eqx.field(static=True)

        def condition(self, xc, yc, mask=None):
            return self.inner.condition(xc, yc, mask)

        def prior(self, state):
            return self.inner.prior(state)

        def posterior(self, x, y, mask=None):
            return self.inner.posterior(x, y, mask)

        def draw(self, state, key):
            return self.inner.draw(state, key)

        def decode(self, state, draw, xt):
            return self.inner.decode(state, draw, xt)

    own = Own(np_model, np_model.likelihood, np_model.dx)
    assert npax.objectives.suited(own) is npax.objectives.elbo
    task = npax.Task.of(data.xc, data.yc, data.xt, normal(getkey(), (len(data.xt), 1)))
    loss = eqx.filter_jit(npax.objectives.elbo)
    assert loss(own, task, jr.key(0)) == loss(np_model, task, jr.key(0))


@pytest.mark.parametrize("name", ["np", "anp-laplace", "bnp", "tnp-nd", "tnp-a"])
def test_hidden_targets_do_not_change_joint_likelihoods(name, getkey):
    model = MODELS[name](jr.key(1))
    data = draw_data(model, getkey())
    yt, first = normal(getkey(), (9, model.dy)), np.arange(9) < 6

    @eqx.filter_jit
    def joint_log_prob(xt, yt, mask):
        return model.joint_log_prob(model.condition(data.xc, data.yc, data.mask), xt, yt, mask)

    few = joint_log_prob(data.xt[:6], yt[:6], np.ones(6, bool))
    hidden = joint_log_prob(data.xt, np.where(first[:, None], yt, np.float32("nan")), first)
    whole = joint_log_prob(data.xt, yt, np.ones(9, bool))
    assert close(hidden, few, 1e-4) and not close(whole, few, 1e-4)


def test_the_joint_likelihood_of_a_latent_model_averages_products(np_model, data, getkey):
    yt = normal(getkey(), (9, 1))
    mean, variance = map(as64, predicted_by_each(np_model, data, jr.key(3)))
    logs = scipy.stats.norm(mean, np.sqrt(variance)).logpdf(as64(yt)).sum(axis=(1, 2))
    found = eqx.filter_jit(np_model.joint_log_prob)(conditioned(np_model, data), data.xt, yt, key=jr.key(3))
    assert abs(float(found) - (np.logaddexp.reduce(logs) - np.log(16))) < 1e-3


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
    data = draw_data(model, getkey())._replace(mask=np.arange(20) < 13)
    state = conditioned(model, data)
    xc, yc = np.asarray(state.xc)[:13], np.asarray(state.yc)[:13]
    key = jr.key(4)
    some, others = (np.asarray(jax.jit(_with_replacement)(k, state.mask))[:13] for k in jr.split(key))
    assert (some < 13).all() and len(set(some)) < 13

    @eqx.filter_jit
    def predicted(model, resampled, xt):
        d = model.predict_base(model.condition(*resampled), xt)
        return d.mean, d.variance

    mean, variance = map(as64, predicted(model, (xc[some], yc[some]), xc))
    residual = (yc - mean) / np.sqrt(variance)
    residual = residual[others] - residual[others].mean(axis=0)
    found = np.asarray(eqx.filter_jit(type(model)._bootstrap)(model, state, key))[:13]
    assert reference.relative(found, mean + np.sqrt(variance) * residual) < 1e-4


def test_the_base_refuses_targets_of_other_columns(getkey):
    model = MODELS["bnp"](getkey())
    data = draw_data(model, getkey())
    state = jax.eval_shape(model.condition, data.xc, data.yc)
    with pytest.raises(ValueError, match="`xt` must have the shape"):
        jax.eval_shape(lambda s: unwrap(type(model).predict_base)(model, s, data.xt[:, :-1]).mean, state)


def test_no_gradient_passes_through_the_bootstrap(getkey):
    model = MODELS["bnp"](jr.key(1))
    data = draw_data(model, getkey())

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        return jnp.sum(model._bootstrap(model.condition(data.xc, data.yc), jr.key(0)))

    assert all((np.asarray(g) == 0).all() for g in jax.tree.leaves(gradient(model)))


def test_sorting_puts_valid_points_first_in_one_order(rng):
    points = rng.standard_normal((9, 2), np.float32), rng.standard_normal((9, 1), np.float32), np.arange(9) < 6
    order = rng.permutation(9)
    a, b = (list(map(np.asarray, jax.jit(_sorted)(*p))) for p in (points, [column[order] for column in points]))
    assert a[2].tolist() == [True] * 6 + [False] * 3
    assert (a[0][:6] == b[0][:6]).all() and (a[1][:6] == b[1][:6]).all()
    assert (np.diff(a[0][:6, 0]) >= 0).all()


@pytest.mark.parametrize("name", ["np", "bnp", "tnp-a"])
def test_samples_leave_the_noise_out_where_it_is_told_apart(name, getkey):
    """Draws of the function scatter less than new observations."""
    sizes = {"encoder": (8,), "size": 8, "decoder": (8,)}
    if name == "tnp-a":
        sizes = {"blocks": 1, "size": 8, "heads": 1, "head_size": 8, "hidden": 8}
    kind = {"np": npax.NP, "bnp": npax.BNP, "tnp-a": npax.TNPA}[name]
    model = untrained(lambda key: kind(2, 1, likelihood=FunctionAndNoise(1), key=key, **sizes))
    data = draw_data(model, getkey())
    noisy, clean = (
        np.asarray(npax.sample(model, data.xc, data.yc, data.xt[:2], 64, key=jr.key(0), include_noise=noise))
        for noise in (True, False)
    )
    assert not np.array_equal(noisy, clean) and clean.var(axis=0).mean() < noisy.var(axis=0).mean()


def test_attention_to_all_alike_is_the_neural_process(data):
    """ANP with a Laplace kernel of endless length is NP; with a short one it is not."""
    options = {"encoder": (16,), "size": 16, "latent": 4, "decoder": (16,), "key": jr.key(7)}
    attentions = npax.UniformAttention(), npax.LaplaceAttention(1e7), npax.LaplaceAttention(0.3)
    plain, wide, narrow = (npax.NP(2, 1, attention=attention, **options) for attention in attentions)
    assert close(moments(wide, data), moments(plain, data))
    assert not close(moments(narrow, data), moments(plain, data), 1e-3)


@pytest.mark.parametrize("name", ["np", "bnp"])
def test_what_is_hidden_may_be_anything_outside_of_a_jit_too(name, rng):
    model = MODELS[name](jr.key(0))
    x, y = (rng.normal(size=(4, n)).astype(np.float32) for n in (model.dx, model.likelihood.dy))
    seen = np.arange(4) < 2
    state = model.condition(x, y)
    drawn = model.sample(state, np.where(seen[:, None], x, np.nan).astype(np.float32), jr.key(1), 3, mask=seen)
    assert np.isfinite(drawn[:, :2]).all()


@pytest.mark.parametrize("name", ["np", "bnp", "tnp-a", "tnp-nd"])
def test_masks_of_targets_are_as_long_as_these_are(name):
    model = MODELS[name](jr.key(0))
    data = draw_data(model, jr.key(1))
    state = jax.eval_shape(model.condition, data.xc, data.yc)
    drawn = unwrap(type(model).sample)
    sample = lambda mask: jax.eval_shape(lambda s: drawn(model, s, data.xt, jr.key(0), mask=mask), state)  # noqa: E731
    with pytest.raises(ValueError, match=r"`mask` must have the shape \[9\], as long as `xt`; got \[1\]"):
        sample(np.ones(1, bool))
    with pytest.raises(TypeError, match="`mask` must be of True and False"):
        sample(np.ones(9, int))


def test_parts_of_one_path_are_checked(getkey):
    for wrong in ({"heads": 0}, {"layers": -1}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be a whole number"):
            npax.CNP(1, 1, **wrong, key=getkey())
    with pytest.raises(ValueError, match="`heads` must divide `size` where there are layers, got heads=3, size=8"):
        npax.CNP(1, 1, size=8, layers=1, heads=3, key=getkey())
    for model in (npax.LBANP, npax.PTTNP, npax.TETNP, npax.TEPTTNP):
        with pytest.raises(ValueError, match="`hidden` must be a whole number"):
            model(1, 1, hidden=0, key=getkey())


def test_widths_are_at_least_one(getkey):
    with pytest.raises(ValueError, match=r"widths of a network must be at least 1, got \["):
        npax.CNP(1, 1, encoder=(0,), key=getkey())
    with pytest.raises(TypeError, match=r"`likelihood` must be one of npax\.likelihoods"):
        unwrap(gaussian_unless)(npax.likelihoods.HeteroscedasticGaussian, 1)

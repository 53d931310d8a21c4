"""Objectives against scipy and closed forms."""

from inspect import unwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
import pytest
import reference
import scipy.stats
from laws import MODELS, close, draw_data, finite, normal

import npax
from npax.likelihoods import NoisyNormal, marginals, noiseless
from npax.objectives import (
    _among,
    _posterior,
    bootstrap_nll,
    elbo,
    function_and_noise_nll,
    gaussian_cross_entropy,
    importance_weighted_nll,
    joint_and_single_nll,
    joint_nll,
    masked_mean,
    nll,
    suited,
)
from npax.task import Task
from npax.tasks import PosteriorTask


@pytest.fixture(scope="module")
def noisy_model():
    return MODELS["universal"](jr.key(0))


@pytest.fixture
def posterior(getkey):
    xc, yc, xt = normal(getkey(), (20, 3)), normal(getkey(), (20, 1)), normal(getkey(), (9, 3))
    mean, variance = normal(getkey(), (9, 1)), np.exp(normal(getkey(), (9, 1)))
    task = Task.of(xc, yc, xt, mean)
    return PosteriorTask(task, *map(jax.device_put, (mean, variance, np.full((9, 1), 0.3, np.float32))))


@eqx.filter_jit
def predict(model, task):
    return model(task.xc, task.yc, task.xt)


def loss_and_gradient(objective, model, *arguments):
    return eqx.filter_jit(eqx.filter_value_and_grad(objective))(model, *arguments)


def test_nll_is_the_mean_of_the_densities_of_scipy(noisy_model, posterior):
    task = posterior.task
    d = predict(noisy_model, task)
    gaussian = scipy.stats.norm(np.asarray(d.mean, np.float64), np.sqrt(np.asarray(d.variance, np.float64)))
    loss, _ = loss_and_gradient(nll, noisy_model, task)
    assert abs(float(loss) + gaussian.logpdf(np.asarray(task.yt)).mean()) < 1e-4


def test_columns_of_y_are_summed(getkey):
    model = MODELS["invariant"](jr.key(0))
    task = Task.of(*(normal(getkey(), shape) for shape in [(5, 2), (5, 2), (7, 2), (7, 2)]))
    d = predict(model, task)
    gaussian = scipy.stats.norm(np.asarray(d.mean, np.float64), np.sqrt(np.asarray(d.variance, np.float64)))
    assert abs(float(eqx.filter_jit(nll)(model, task)) + gaussian.logpdf(np.asarray(task.yt)).sum(axis=1).mean()) < 1e-4


@pytest.mark.parametrize("objective", [nll, function_and_noise_nll])
def test_masked_targets_do_not_count(objective, noisy_model, posterior):
    def cut(junk):
        hidden = np.arange(9) >= 6
        hide = lambda a: jax.device_put(np.where(hidden[:, None], np.float32(junk), a))  # noqa: E731
        task = eqx.tree_at(lambda t: (t.xt, t.yt), posterior.task, (hide(posterior.task.xt), hide(posterior.task.yt)))
        task = eqx.tree_at(lambda t: t.mask_t, task, jax.device_put(~hidden))
        both = PosteriorTask(task, hide(posterior.mean), hide(posterior.variance), posterior.noise)
        return task if objective is nll else both

    loss, gradient = loss_and_gradient(objective, noisy_model, cut(1.0))
    junk_loss, junk_gradient = loss_and_gradient(objective, noisy_model, cut(np.nan))
    assert abs(float(loss) - float(junk_loss)) < 1e-5
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(junk_gradient), strict=True):
        assert finite(b) and reference.relative(b, a) < 1e-4
    whole, _ = loss_and_gradient(objective, noisy_model, posterior.task if objective is nll else posterior)
    assert abs(float(loss) - float(whole)) > 1e-3


def test_no_valid_target_gives_zero(noisy_model, posterior):
    task = eqx.tree_at(lambda t: t.mask_t, posterior.task, jax.device_put(np.zeros(9, bool)))
    loss, gradient = loss_and_gradient(nll, noisy_model, task)
    assert float(loss) == 0 and not any(np.asarray(g).any() for g in jax.tree.leaves(gradient))


def test_gaussian_cross_entropy_is_the_integral():
    mu, sigma, m, v = 0.3, 0.7, -0.4, 1.9
    x = np.linspace(-15, 15, 20_001)
    density = scipy.stats.norm(m, np.sqrt(v)).pdf(x)
    true = np.trapezoid(-density * scipy.stats.norm(mu, sigma).logpdf(x), x)
    cross_entropy = jax.jit(lambda mu, sigma, m, v: gaussian_cross_entropy(dist.Normal(mu, sigma), m, v))
    got = cross_entropy(*np.array([mu, sigma, m, v], np.float32).reshape(4, 1, 1))
    assert abs(float(got[0, 0]) - true) < 1e-5


def test_function_and_noise_nll_is_the_mean_over_draws_of_function_and_observation(noisy_model, posterior):
    """The tower rule: draws from the posterior, scored by the densities of scipy."""
    task = posterior.task
    predicted = predict(noisy_model, task)
    assert isinstance(marginals(predicted), NoisyNormal)
    rng = np.random.default_rng(0)
    mean, variance = np.asarray(posterior.mean, np.float64), np.asarray(posterior.variance, np.float64)
    f = mean + np.sqrt(variance) * rng.standard_normal((20_000, 9, 1))
    y = f + np.sqrt(0.3) * rng.standard_normal(f.shape)
    moments = [(d.mean, np.sqrt(d.variance)) for d in (noiseless(predicted), predicted)]
    (f_mean, f_std), (y_mean, y_std) = ((np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in moments)
    scores = -0.5 * (scipy.stats.norm(f_mean, f_std).logpdf(f) + scipy.stats.norm(y_mean, y_std).logpdf(y))
    per_draw = scores.mean(axis=(1, 2))
    got, _ = loss_and_gradient(function_and_noise_nll, noisy_model, posterior)
    assert abs(float(got) - per_draw.mean()) < 4 * per_draw.std() / np.sqrt(len(per_draw))


def test_another_likelihood_is_refused(posterior):
    model = MODELS["no-bias"](jr.key(0))
    columns = lambda p: (p.task.xc, p.task.xt)  # noqa: E731
    one_column = eqx.tree_at(columns, posterior, [np.asarray(x)[:, :1] for x in columns(posterior)])
    with pytest.raises(TypeError, match=r"needs a model with the `FunctionAndNoise` likelihood.*Normal"):
        eqx.filter_eval_shape(function_and_noise_nll, model, one_column)


def latent_task(model, getkey):
    data = draw_data(model, getkey())
    return Task(data.xc, data.yc, data.mask, data.xt, normal(getkey(), (9, model.dy)), jax.device_put(np.arange(9) < 7))


def test_elbo_weighs_the_divergence_once_per_task(getkey):
    """Against the closed form of the divergence, both terms divided by the number of targets that count."""
    model = MODELS["np"](jr.key(0))
    model = eqx.tree_at(lambda m: m.latent_path.head.layers[-1].weight, model, replace_fn=lambda w: 30 * w)
    task, key = latent_task(model, getkey), jr.key(3)

    @eqx.filter_jit
    def beliefs(model, xc, yc, xt, yt):
        prior = model.condition(xc, yc)
        q = model.posterior(jnp.concatenate([xc, xt]), jnp.concatenate([yc, yt]))
        z = q.loc + q.scale * jr.normal(key, q.loc.shape)
        return q, prior, model.likelihood(model.decode(prior, z, xt))

    q, prior, d = beliefs(model, task.xc, task.yc, *(np.asarray(a)[:7] for a in (task.xt, task.yt)))
    m1, s1, m0, s0 = (np.asarray(a, np.float64) for a in (q.loc, q.scale, prior.mean, prior.std))
    divergence = np.sum(np.log(s0 / s1) + (s1**2 + (m1 - m0) ** 2) / (2 * s0**2) - 0.5)
    gaussian = scipy.stats.norm(np.asarray(d.mean, np.float64), np.sqrt(np.asarray(d.variance, np.float64)))
    truth = (divergence - gaussian.logpdf(np.asarray(task.yt)[:7]).sum()) / 7
    assert divergence > 0.01
    loss, _ = loss_and_gradient(elbo, model, task, key)
    assert abs(float(loss) - truth) < 1e-3


def test_importance_weights_need_a_sample(getkey):
    model = MODELS["np"](getkey())
    task = npax.Task.of(*(jnp.zeros((3, n)) for n in (model.dx, model.likelihood.dy) * 2))
    with pytest.raises(ValueError, match="`samples` must be a whole number, at least 1; got 0"):
        importance_weighted_nll(model, task, getkey(), 0)


@pytest.mark.parametrize("what", ["xt", "yt", "mask_t"])
def test_one_row_is_not_taken_for_all(what, getkey):
    model = MODELS["cnp"](getkey())
    task = npax.Task.of(*(jnp.zeros((3, n)) for n in (model.dx, model.likelihood.dy) * 2))
    cut = eqx.tree_at(lambda task: getattr(task, what), task, replace_fn=lambda a: a[:1])
    with pytest.raises(ValueError, match=r"must have a row for each of `mask_t`, [13]; got"):
        nll(model, cut)


def test_a_mask_is_of_booleans(getkey):
    """Of 255 each target would count so often."""
    model = MODELS["cnp"](getkey())
    task = npax.Task.of(*(jnp.zeros((3, n)) for n in (model.dx, model.likelihood.dy) * 2))
    bytes_ = eqx.tree_at(lambda task: task.mask_t, task, replace_fn=lambda a: 255 * a.astype(jnp.uint8))
    with pytest.raises(TypeError, match="`mask_t` must be of True and False, got uint8: write `mask_t != 0`"):
        nll(model, bytes_)


def test_means_of_short_numbers_are_taken_in_float32():
    values, mask = jnp.full(1000, 100, jnp.float16), jnp.arange(1000) < 900
    assert masked_mean(values, mask) == 100 and masked_mean(values, ~mask & mask) == 0
    assert masked_mean(jnp.full(257, 1, jnp.bfloat16), jnp.ones(257, bool)) == 1


def test_lower_bounds_need_a_key(getkey):
    model = MODELS["np"](jr.key(0))
    with pytest.raises(TypeError, match="`key` must be a key"):
        unwrap(elbo)(model, latent_task(model, getkey), None)


def test_importance_weights_give_the_joint_likelihood(getkey):
    """With one sample its mean is the `elbo`; with many it is what draws given the context alone say."""
    model = MODELS["np"](jr.key(0))
    model = eqx.tree_at(lambda m: m.latent_path.head.layers[-1].weight, model, replace_fn=lambda w: 5 * w)
    task, keys = latent_task(model, getkey), jr.split(jr.key(3), 2000)

    @eqx.filter_jit
    def figures(model, task, keys):
        weighted = lambda samples: jax.vmap(lambda key: importance_weighted_nll(model, task, key, samples))  # noqa: E731
        state = model.condition(task.xc, task.yc, task.mask_c)
        joint = model.joint_log_prob(state, task.xt, task.yt, task.mask_t, key=jr.key(1), samples=20_000)
        one, bound = weighted(1)(keys), jax.vmap(lambda key: elbo(model, task, key))(keys)
        return one, bound, weighted(1000)(keys[:20]), -joint / 7

    one, bound, many, joint = map(np.asarray, figures(model, task, keys))
    assert abs(one.mean() - bound.mean()) < 4 * np.hypot(one.std(), bound.std()) / 2000**0.5
    assert np.abs(many - joint).max() < 0.02 < one.mean() - joint
    hidden = eqx.tree_at(lambda t: t.mask_t, task, np.zeros(9, bool))
    value, gradient = loss_and_gradient(importance_weighted_nll, model, hidden, jr.key(1))
    assert float(value) == 0 and finite(gradient)


def test_bootstrap_nll_adds_base_and_mixture(getkey):
    model = MODELS["bnp"](jr.key(0))
    task, key = latent_task(model, getkey), jr.key(3)

    @eqx.filter_jit
    def log_probs(model, xt, yt):
        state = model.condition(task.xc, task.yc)
        mixed = model.predict(state, xt, key=key, samples=4)
        return model.predict_base(state, xt).log_prob(yt), mixed.log_prob(yt)

    base, mixed = log_probs(model, *(np.asarray(a)[:7] for a in (task.xt, task.yt)))
    loss, _ = loss_and_gradient(bootstrap_nll, model, task, key)
    assert abs(float(loss) + np.asarray(base).mean() + np.asarray(mixed).mean()) < 1e-4


@pytest.mark.parametrize("name", ["np", "bnp", "tnp-nd", "tnp-a"])
def test_suited_objectives_ignore_what_is_masked(name, getkey):
    model = MODELS[name](jr.key(0))
    task, objective = latent_task(model, getkey), suited(model)
    cut = lambda a, junk: jax.device_put(np.where(task.mask_t[:, None], a, np.float32(junk)))  # noqa: E731
    junk = eqx.tree_at(lambda t: (t.xt, t.yt), task, (cut(task.xt, np.nan), cut(task.yt, np.inf)))
    (a, d_a), (b, d_b) = (loss_and_gradient(objective, model, given, jr.key(1)) for given in (task, junk))
    assert close(a, b) and close(d_a, d_b) and finite(d_b)
    nothing = eqx.tree_at(lambda t: (t.mask_c, t.mask_t), task, (np.zeros(20, bool), np.zeros(9, bool)))
    value, gradient = loss_and_gradient(objective, model, nothing, jr.key(1))
    assert abs(float(value)) < 1e-4 and finite(gradient)


def test_joint_and_single_nll_is_the_sum_of_its_parts(getkey):
    """Of all targets at once, since they are fewer than 32: `joint_nll` and `nll`. Of two at random: of two of those
    that count, each pair as likely."""
    model = MODELS["tnp-nd"](jr.key(0))
    task, keys = latent_task(model, getkey), jr.split(jr.key(3), 64)
    both, parts = eqx.filter_jit(joint_and_single_nll), eqx.filter_jit(lambda *of: (joint_nll(*of), nll(*of)))
    joint, single = map(float, parts(model, task, keys[0]))
    assert close(loss_and_gradient(joint_and_single_nll, model, task, keys[0])[0], joint + single)
    only = lambda *indices: eqx.tree_at(lambda t: t.mask_t, task, np.isin(np.arange(9), indices))  # noqa: E731
    single = float(parts(model, only(1, 4, 8), keys[0])[1])
    values = np.array([both(model, only(1, 4, 8), key, 2) for key in keys])
    pairs = [float(parts(model, only(*pair), keys[0])[0]) for pair in ((1, 4), (1, 8), (4, 8))]
    drawn = np.isclose(values[:, None], single + np.array(pairs), atol=1e-3)
    assert np.all(drawn.sum(axis=1) == 1) and np.all(drawn.sum(axis=0) > 10)


def test_both_parts_of_joint_and_single_nll_are_drawn_anew(getkey):
    """Of a latent model: the single part had the same draws for every task and step."""
    model = MODELS["np"](jr.key(0))
    task, keys = latent_task(model, getkey), jr.split(jr.key(3), 4)
    parts = [jr.split(key) for key in keys]
    expected = [joint_nll(model, task, joint) + nll(model, task, single) for joint, single in parts]
    assert close([joint_and_single_nll(model, task, key) for key in keys], expected)
    assert len({float(nll(model, task, single)) for _, single in parts}) == 4


def test_each_kind_of_model_has_its_objective():
    kinds = {"np": elbo, "anp-laplace": elbo, "bnp": bootstrap_nll, "tnp-a": joint_nll, "cnp": nll}
    kinds["tnp-nd"] = joint_and_single_nll
    for name, objective in kinds.items():
        assert suited(MODELS[name](jr.key(0))) is objective


def test_nll_draws_anew_with_each_key_and_not_without_one():
    model, task = MODELS["np"](jr.key(0)), Task.of(*(normal(jr.key(i), (5, d)) for i, d in enumerate([2, 1, 2, 1])))
    loss = eqx.filter_jit(nll)
    first, second = (float(loss(model, task, jr.key(i))) for i in (1, 2))
    assert first != second and float(loss(model, task)) == float(loss(model, task))


def test_rows_are_found_among_others(rng):
    """Whatever their number and order, repeats among either; what is masked is nothing."""
    rows, others = (np.float32(rng.integers(0, 3, (n, 3))) for n in (12, 9))
    among = jax.jit(_among)
    for mask in (np.ones(9, bool), rng.random(9) < 0.4, np.zeros(9, bool)):
        assert np.array_equal(among(rows, others, mask), (rows[:, None] == others[mask]).all(axis=2).any(axis=1))
    many = np.zeros((8000, 2), np.float32)  # pairs of which would take 64 MB
    program = among.lower(many, many, np.ones(8000, bool)).compile()
    assert program.memory_analysis().temp_size_in_bytes < 4e6


def test_a_context_point_that_is_a_target_counts_once_in_the_posterior():
    """The posterior of ANP, eq. 3, is given the targets, of which the context is a part."""
    model = MODELS["np"](jr.key(0))
    x, y = normal(jr.key(1), (9, 2)), normal(jr.key(2), (9, 1))
    among = Task.of(x[:4], y[:4], x, y)
    apart = Task.of(x[:4], y[:4], x[4:], y[4:])
    found = [eqx.filter_jit(_posterior)(model, task, task.xt, task.yt) for task in (among, apart)]
    expected = model.posterior(x, y, jnp.ones(9, bool))
    for q in found:
        np.testing.assert_allclose(q.loc, expected.loc, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(q.scale, expected.scale, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("objective", "name"),
    [(elbo, "cnp"), (bootstrap_nll, "np"), (joint_nll, "cnp"), (joint_and_single_nll, "cnp")],
)
def test_models_of_another_kind_are_named(objective, name, getkey):
    model = MODELS[name](getkey())
    x, y = np.zeros((2, model.dx), np.float32), np.zeros((2, 1), np.float32)
    with pytest.raises(
        TypeError, match=rf"`{objective.__name__}` .* got {type(model).__name__}: train it by `objectives"
    ):
        unwrap(objective)(model, Task.of(x, y, x, y), getkey())


class Whole(npax.likelihoods.AbstractLikelihood):
    """All targets are one event."""

    dy: int = eqx.field(static=True, default=1)

    @property
    def size(self):
        return 1

    def __call__(self, raw):
        return dist.Normal(raw, 1.0).to_event(2)


class WithoutEvent(npax.likelihoods.AbstractLikelihood):
    """A likelihood that forgets that columns are an event."""

    dy: int = eqx.field(static=True, default=1)

    @property
    def size(self):
        return 2 * self.dy

    def __call__(self, raw):
        mean, scale = jnp.split(raw, 2, axis=-1)
        return dist.Normal(mean, jnp.exp(scale))


@pytest.mark.parametrize("likelihood", [WithoutEvent(), Whole()])
def test_columns_that_are_no_event_are_refused(likelihood, getkey):
    """NumPyro would pair every target with every other, or have one likelihood for all of them."""
    task = npax.Task.of(*(normal(getkey(), (4, 1)) for _ in range(4)))
    model = npax.CNP(1, 1, encoder=(8,), size=8, decoder=(8,), likelihood=likelihood, key=getkey())
    with pytest.raises(ValueError, match=r"event shape \[1\].*to_event\(1\)"):
        npax.objectives.nll(model, task)


class Amounts(npax.likelihoods.AbstractLikelihood):
    """Positive numbers, gamma distributed."""

    dy: int = eqx.field(static=True, default=1)

    @property
    def size(self):
        return 2

    def __call__(self, raw):
        shape, rate = jnp.split(jnp.exp(raw), 2, axis=-1)
        return dist.Gamma(shape, rate).to_event(1)


@pytest.mark.parametrize("count", [9, 6, 0])
def test_gradients_are_finite_where_zero_is_no_value(count, getkey):
    """What stands under the mask is replaced by a value of the support."""
    model = npax.CNP(1, 1, encoder=(8,), size=8, decoder=(8,), likelihood=Amounts(), key=getkey())
    xc, xt = normal(getkey(), (4, 1)), normal(getkey(), (9, 1))
    yc, yt = jnp.exp(normal(getkey(), (4, 1))), jnp.exp(normal(getkey(), (9, 1)))
    mask = jnp.arange(9) < count
    task = Task(xc, yc, jnp.ones(4, bool), xt, jnp.where(mask[:, None], yt, jnp.nan), mask)
    value, gradient = loss_and_gradient(nll, model, task, jr.key(0))
    assert finite(gradient)
    if count:
        alone = npax.Task.of(xc, yc, xt[:count], yt[:count])
        assert close(value, loss_and_gradient(nll, model, alone, jr.key(0))[0])

"""Scores against npax.metrics and samples; references against numpy in float64."""

import importlib
import inspect
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.linalg
import scipy.special
import scipy.stats
from laws import MODELS, TINY, rotary
from scipy import integrate, stats
from untrained import cnp, untrained

import npax
from npax.bench import draw, mean_and_error, score_floor, score_model, score_oracle
from npax.bench.scores import GROUP, crps, score
from npax.gp import bayes_mixture
from npax.inference.predict import moments
from npax.likelihoods import Categorical, EqualMixture, NoisyNormal, OneHotCategorical, noiseless
from npax.task import Task
from npax.tasks import ContextAmongTargets, GPCurveTask, GPShiftTask, GPTask, PeriodicPrior, RBFPrior, SIRTask


def test_crps_of_a_normal_is_the_closed_form():
    y, mean, std = np.random.default_rng(0).normal(size=(3, 200)) * np.array([[2.0], [1.0], [1.0]])
    std = np.exp(std)
    y[:3] = mean[:3] + np.array([30.0, -30.0, 0.0]) * std[:3]
    with jax.enable_x64(True):
        found = jax.jit(lambda y: crps(dist.Normal(mean, std), y))(jnp.asarray(y))
    truth = [npax.metrics.crps(*one) for one in zip(y[:, None], mean[:, None], std[:, None], strict=True)]
    np.testing.assert_allclose(found, truth, rtol=2e-3)
    np.testing.assert_allclose(found[3:], truth[3:], rtol=1e-5)


def test_what_has_no_distribution_function_has_its_other_scores():
    y, mask = jnp.array([[0.5], [1.0]]), jnp.ones(2, bool)
    found = score(dist.VonMises(jnp.zeros((2, 1)), 2.0).to_event(1), y, mask)
    assert np.isnan([found["crps"], found["covered"]]).all()
    assert np.allclose(found["nll"], -scipy.stats.vonmises.logpdf(y, 2.0).mean(), rtol=1e-5)
    with pytest.raises(TypeError, match="`batch` must be an instance of Task"):
        inspect.unwrap(score_model)(None, np.ones(2), MODELS["cnp"](jr.key(0)))


def test_what_has_no_mean_has_its_other_scores():
    y, mask = jnp.array([[0.5], [0.6]]), jnp.ones(2, bool)
    normal = dist.Normal(jnp.zeros((2, 1)), 1.0)
    found = score(dist.TransformedDistribution(normal, dist.transforms.SigmoidTransform()).to_event(1), y, mask)
    assert np.isnan([found["squared_error"], found["absolute_error"]]).all()
    logit = np.log(y / (1 - y))
    assert np.allclose(found["nll"], np.mean(np.log(y * (1 - y)) - scipy.stats.norm.logpdf(logit)), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="TransformedDistribution, what the likelihood gives, has no `mean`"):
        moments(dist.TransformedDistribution(normal, dist.transforms.SigmoidTransform()).to_event(1))


def test_likelihoods_are_of_a_value_whether_columns_are_told_apart_or_not(rng):
    """Of the same distribution, whose columns are independent."""
    loc, y = jnp.asarray(rng.normal(size=(2, 4, 3)), jnp.float32)
    apart = score(dist.Normal(loc, 0.7).to_event(1), y, jnp.ones(4, bool))
    whole = dist.MultivariateNormal(loc, scale_tril=0.7 * jnp.eye(3))
    together = score(whole, y, jnp.ones(4, bool))
    for name in ("nll", "squared_error"):
        assert np.allclose(apart[name], together[name], rtol=1e-5)


def test_a_task_without_a_leading_axis_is_refused(shifted):
    _, batch, _ = shifted
    one = jax.tree.map(lambda a: a[0], batch)
    with pytest.raises(ValueError, match=r"`batch` must be tasks of a leading axis, .* got \[7, 1\]"):
        inspect.unwrap(score_model)(None, one, MODELS["cnp"](jr.key(0)))


def test_one_distribution_may_be_scored_at_many_values():
    y = jnp.array([0.0, 1.0, 2.0])
    expected = [npax.metrics.crps(np.array([v]), np.zeros(1), np.ones(1)) for v in (0.0, 1.0, 2.0)]
    mixed = EqualMixture(dist.Normal(jnp.array([-1.0, 0.0, 1.0]), 1.0))
    for law, each in ((dist.Normal(0.0, 1.0), expected), (mixed, [float(crps(mixed, v[None])[0]) for v in y])):
        assert np.allclose(crps(law, y), each, rtol=1e-5)


def test_crps_of_a_mixture_is_that_of_its_samples():
    parts = dist.Normal(jnp.array([-2.0, 2.0]), jnp.array([0.1, 1.0]))
    mixture = dist.MixtureSameFamily(dist.Categorical(jnp.array([0.3, 0.7])), parts)
    samples = np.asarray(jax.jit(lambda key: mixture.sample(key, (200_000,)))(jr.key(0)))
    score_at = jax.jit(lambda y: crps(mixture, y))
    for y in (-2.0, 0.5, 3.0):
        found = float(score_at(np.float32(y)))
        assert abs(found - npax.metrics.crps_samples(np.array([y]), samples[:, None])) < 0.01
    assert abs(found - npax.metrics.crps(np.array([y]), [mixture.mean], [mixture.variance**0.5])) > 0.02


@pytest.mark.parametrize("std", [1e-3, 0.05, 2.0])
@pytest.mark.parametrize("y", [0.0, 1.0, 4.0])
def test_crps_of_an_equal_mixture_is_the_closed_form(std, y):
    """The integral in float64, in as many pieces as the distribution has."""
    means, stds = np.array([-1.0, 1.0, 1.5]), np.array([std, std, 2 * std])
    found = crps(EqualMixture(dist.Normal(means[:, None], stds[:, None])), jnp.array([y]))
    noisy = EqualMixture(NoisyNormal(means[:, None], 0.6 * stds[:, None], 0.8 * stds[:, None]))
    ends = np.unique(np.r_[y, (means[:, None] + stds[:, None] * [-9, -3, -1, 0, 1, 3, 9]).ravel()])
    square = lambda x: (stats.norm.cdf(x, means, stds).mean() - (x >= y)) ** 2  # noqa: E731
    truth = sum(integrate.quad(square, *pair, epsabs=1e-10)[0] for pair in itertools.pairwise(ends))
    one_std = EqualMixture(dist.Normal(jnp.asarray(means)[:, None], 0.5))
    assert np.isfinite(crps(one_std, jnp.array([y])))
    assert np.isclose(found[0], truth, rtol=1e-4) and np.isclose(crps(noisy, jnp.array([y]))[0], truth, rtol=1e-4)


def test_scores_of_a_model_are_those_of_npax_metrics():
    tasks = GPTask(RBFPrior(), nc=5, low=2, grid=4)
    batch, _ = draw(tasks, GROUP + 3, seed=1)
    model = cnp(2)  # takes a coordinate more
    scores = score_model(tasks, batch, model)
    for i in (0, GROUP + 2):
        task = jax.tree.map(lambda a, i=i: np.asarray(a)[i], batch)
        xc, xt = (np.pad(x, ((0, 0), (0, 1))) for x in (task.xc, task.xt))
        found = noiseless(eqx.filter_jit(model)(xc, task.yc, xt, task.mask_c))  # as the targets of these tasks are
        truth = npax.metrics.score_report(task.yt, found.mean, found.variance**0.5)
        expected = {"nll": "nll", "absolute_error": "mae", "crps": "crps", "covered": "coverage"}
        for name, other in expected.items():
            np.testing.assert_allclose(scores[name][i], truth[other], rtol=1e-4)
        np.testing.assert_allclose(scores["squared_error"][i], truth["rmse"] ** 2, rtol=1e-4)


def test_hidden_targets_do_not_count():
    @jax.jit
    def scores(y, mask):
        return score(dist.Normal(jnp.zeros(3), 1.0), y, mask)

    hidden = np.array([True, False, True])
    found, same = (scores(np.array([0.3, junk, -1.0], np.float32), hidden) for junk in (np.nan, 7.0))
    assert all(np.array_equal(found[name], same[name]) for name in same)
    assert np.allclose(found["absolute_error"], 0.65)
    assert np.isnan(scores(np.zeros(3, np.float32), np.zeros(3, bool))["nll"])


@pytest.fixture(scope="module")
def shifted():
    tasks = GPShiftTask(RBFPrior(), nc=7, low=0, nt=5)
    return tasks, *draw(tasks, 200, seed=3)


def numpy_nll(task, scale, noise, target_noise):
    """Mean NLL of new observations, and log evidence."""
    n = int(task.mask_c.sum())
    x, y, xt, yt = (np.asarray(a, float)[:, 0] for a in (task.xc[:n], task.yc[:n], task.xt, task.yt))
    k = np.exp(-((x[:, None] - x) ** 2) / (2 * scale**2)) + noise**2 * np.eye(n)
    k_ct = np.exp(-((x[:, None] - xt) ** 2) / (2 * scale**2))
    solved = scipy.linalg.solve(k, k_ct, assume_a="pos") if n else np.zeros((0, len(xt)))
    var = 1 - np.sum(k_ct * solved, axis=0) + target_noise**2
    evidence = scipy.stats.multivariate_normal(np.zeros(n), k).logpdf(y) if n else 0.0
    return -scipy.stats.norm(solved.T @ y, np.sqrt(var)).logpdf(yt), evidence


def test_oracle_and_floor_score_new_observations_of_every_task_in_its_place(shifted):
    tasks, batch, kernels = shifted
    oracle, floor = score_oracle(tasks, batch, kernels), score_floor(tasks, batch, nodes=16)
    scales, weights = np.asarray(RBFPrior().quadrature(16)[0].scale, float), RBFPrior().quadrature(16)[1]
    for i in range(0, 200, 20):
        task = jax.tree.map(lambda a, i=i: np.asarray(a)[i], batch)
        truth, _ = numpy_nll(task, float(kernels.scale[i]), 0.2, 0.2)
        assert abs(oracle["nll"][i] - truth.mean()) < 1e-5
        parts = [numpy_nll(task, scale, 0.2, 0.2) for scale in scales]
        logits = np.log(weights) + np.array([evidence for _, evidence in parts])
        logits = (logits - scipy.special.logsumexp(logits))[:, None]
        mixture = -scipy.special.logsumexp(logits - np.array([nll for nll, _ in parts]), axis=0)
        assert abs(floor["nll"][i] - mixture.mean()) < 1e-4
    noiseless, _ = numpy_nll(task, float(kernels.scale[i]), 0.2, 0.0)
    assert abs(oracle["nll"][i] - noiseless.mean()) > 0.01
    gap, error = mean_and_error(floor["nll"] - oracle["nll"])
    assert gap > -2 * error
    assert abs(oracle["covered"].mean() - 0.95) < 0.03


def test_references_see_all_that_counts_wherever_it_stands(shifted):
    tasks, batch, kernels = shifted
    turned = Task(batch.xc[:, ::-1], batch.yc[:, ::-1], batch.mask_c[:, ::-1], batch.xt, batch.yt, batch.mask_t)
    for found, same in (
        (score_oracle(tasks, turned, kernels), score_oracle(tasks, batch, kernels)),
        (score_floor(tasks, turned, nodes=8), score_floor(tasks, batch, nodes=8)),
    ):
        for name in ("nll", "crps"):
            np.testing.assert_allclose(found[name], same[name], atol=1e-5)


def test_a_floor_is_of_targets_apart_from_the_context():
    tasks = GPCurveTask(RBFPrior(), points=6)
    batch, kernels = draw(tasks, 2, seed=0)
    for reference in (lambda: score_oracle(tasks, batch, kernels), lambda: score_floor(tasks, batch)):
        with pytest.raises(ValueError, match="a model may copy: take `GPShiftTask`"):
            reference()


def test_a_mixture_of_the_nodes_that_count_is_close_to_that_of_all():
    tasks = GPTask(PeriodicPrior(), nc=12, low=1, grid=6)
    batch, _ = draw(tasks, 24, seed=5)
    kernels, weights = tasks.kernel.quadrature(4)
    weights = jnp.asarray(weights, jnp.float32)

    def both(task):
        few, all_ = (bayes_mixture(kernels, weights, 0.1, task, keep=keep) for keep in (64, len(weights)))
        return few.log_prob(task.yt[:, 0]), all_.log_prob(task.yt[:, 0]), few.variance, all_.variance

    few, all_, variance, truth = jax.jit(lambda batch: jax.lax.map(both, batch))(batch)
    assert len(weights) == 4 * 64 * 4
    assert np.abs(few.mean(1) - all_.mean(1)).mean() < 0.05 and abs(float(few.mean() - all_.mean())) < 0.02
    assert np.corrcoef(np.ravel(variance), np.ravel(truth))[0, 1] > 0.99


def test_mean_and_error():
    assert mean_and_error(np.array([1.0, 3.0])) == (2.0, 1.0)
    assert mean_and_error(np.array([1.0])) == (1.0, 0.0)


def test_scores_of_classes_are_those_of_a_loop(rng):
    logits = 2 * rng.normal(size=(60, 3)).astype(np.float32)
    truth, mask = rng.integers(0, 3, 60), rng.random(60) < 0.8
    compiled = jax.jit(lambda logits, yt, mask: score(OneHotCategorical(logits), yt, mask))
    found = compiled(logits, np.eye(3, dtype=np.float32)[truth], mask)
    p = scipy.special.softmax(logits.astype(float), axis=1)
    nll, brier, covered = [], [], []
    for row, k in zip(p[mask], truth[mask], strict=True):
        order = np.argsort(-row)
        best = order[: 1 + np.searchsorted(np.cumsum(row[order]), 0.95)]  # as many as it takes to hold 95 %
        nll.append(-np.log(row[k]))
        brier.append(np.mean((row - np.eye(3)[k]) ** 2))
        covered.append(k in best)
    for name, values in {"nll": nll, "squared_error": brier, "crps": brier, "covered": covered}.items():
        np.testing.assert_allclose(found[name], np.mean(values), rtol=1e-4)
    assert 0.5 < np.mean(covered) < 1


def test_targets_are_scored_in_chunks_and_large_contexts_in_tiles(monkeypatch):
    """The same scores as of the whole at once: of any model by chunks, of one that sees all of a context by tiles."""
    module = importlib.import_module("npax.bench.scores")
    tasks = SIRTask(ContextAmongTargets(20, 12), side=9, steps=5)
    batch, _ = draw(tasks, 3, seed=1)
    model = untrained(
        lambda key: npax.TNPKR(2, 3, rotary=rotary(2), locations=False, likelihood=Categorical(3), **TINY, key=key)
    )
    whole = score_model(tasks, batch, model)
    few = jax.tree.map(lambda a: jax.device_put(np.asarray(a)[:2]), batch)  # another shape, so another program
    for name, value in (("CHUNK", 16), ("EXACT", 5)):
        monkeypatch.setattr(module, name, value)
        for score_name, values in score_model(tasks, few, model).items():
            np.testing.assert_allclose(values, whole[score_name][:2], rtol=1e-3, atol=1e-5)
    monkeypatch.setattr(module, "TILE", 8)
    assert np.abs(score_model(tasks, few, model)["nll"] - whole["nll"][:2]).max() > 1e-5


def test_a_wider_lattice_gets_a_wider_grid():
    tasks = SIRTask(ContextAmongTargets(60, 60), side=32, steps=5)
    batch, _ = draw(tasks, 1, seed=1)
    options = {"spacing": 1 / 4, "extent": 1.0, "blocks": (1,), "size": 8, "likelihood": Categorical(3)}
    model = untrained(lambda key: npax.ConvCNP(2, 3, **options, key=key))
    found = score_model(tasks, batch, model)["nll"]
    assert np.allclose(found, score_model(tasks, batch, model.covering(4.0))["nll"], rtol=1e-5)


@pytest.mark.parametrize(
    ("of", "truth", "std"),
    [
        (dist.Poisson(np.float32(3.0)), scipy.stats.poisson(3.0), 3**0.5),
        (dist.NegativeBinomial2(np.float32(3.0), 2.0), scipy.stats.nbinom(2, 2 / 5), 7.5**0.5),
    ],
    ids=["poisson", "negative-binomial"],
)
def test_crps_of_counts_is_that_of_their_steps(of, truth, std):
    counts = np.arange(1000)
    score_at = jax.jit(lambda y: crps(of, y))
    for y in (0, 2, 7):
        exact = np.sum((truth.cdf(counts) - (counts >= y)) ** 2)
        assert abs(float(score_at(np.float32(y))) - exact) < 0.02 * std


def test_crps_of_positive_numbers_is_that_of_samples():
    gamma = dist.Gamma(np.float32(2.0), 1.0)
    samples = scipy.stats.gamma(2.0).rvs(100_000, random_state=0)
    for y in (0.1, 2.0, 7.0):
        found = float(jax.jit(lambda y: crps(gamma, y))(np.float32(y)))
        assert abs(found - npax.metrics.crps_samples(np.array([y]), samples[:, None])) < 0.02


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (2.0, 0.5)])
def test_crps_of_shares_is_the_integral(a, b):
    """The distribution function of a bounded interval is asked for within it only."""
    beta = dist.Beta(np.float32(a), b)
    score_at = jax.jit(lambda y: crps(beta, y))
    cdf = scipy.stats.beta(a, b).cdf
    for y in (0.03, 0.4, 0.97):
        truth = integrate.quad(lambda x: cdf(x) ** 2, 0, y)[0] + integrate.quad(lambda x: (1 - cdf(x)) ** 2, y, 1)[0]
        assert np.isclose(score_at(np.float32(y)), truth, rtol=1e-3)
    vector = jax.jit(lambda y: score(dist.Beta(jnp.full((3, 1), a), b).to_event(1), y, jnp.ones(3, bool)))
    y = np.array([[0.03], [0.4], [0.97]], np.float32)
    found, level = vector(y), cdf(np.asarray(y, float))
    assert np.isclose(found["covered"], np.mean((level > 0.025) & (level < 0.975)))


@pytest.mark.parametrize(
    ("of", "truth"),
    [
        *((dist.Poisson(np.float32(rate)), scipy.stats.poisson(rate)) for rate in (0.02, 0.5, 3.0, 40.0)),
        (dist.NegativeBinomial2(np.float32(3.0), 2.0), scipy.stats.nbinom(2, 2 / 5)),
        (dist.DiscreteUniform(3, 12), scipy.stats.randint(3, 13)),
        (dist.DiscreteUniform(3, 102), scipy.stats.randint(3, 103)),
    ],
    ids=["poisson-0.02", "poisson-0.5", "poisson-3", "poisson-40", "negative-binomial", "uniform-10", "uniform-100"],
)
def test_counts_are_covered_from_quantile_to_quantile(of, truth):
    """Of a rare event no count is in the middle of the distribution function: zero has more than 97.5 % itself."""
    y = np.arange(truth.support()[0], min(truth.support()[1], 110) + 1)
    covered_at = jax.jit(jax.vmap(lambda y: score(of, y[None], jnp.ones(1, bool))["covered"]))
    found = np.asarray(covered_at(y.astype(np.float32)), bool)
    expected = (truth.ppf(0.025) <= y) & (y <= truth.ppf(0.975))
    assert np.array_equal(found, expected)
    if truth.pmf(0) > 0.975:
        assert found[0] and not found[1]


@pytest.mark.parametrize("discrete", [False, True])
def test_parts_of_a_mixture_may_end_where_others_do_not(discrete, rng):
    """Of intervals side by side, each of which half of the samples are from."""
    low, high = np.array([[0.0], [5.0]], np.float32), np.array([[4.0], [20.0]], np.float32)
    mixture = EqualMixture((dist.DiscreteUniform if discrete else dist.Uniform)(low, high))
    drawn = rng.integers(low, high + 1, (2, 20_000)) if discrete else rng.uniform(low, high, (2, 20_000))
    samples = drawn.reshape(-1, 1).astype(float)
    for y in (0.0, 3.0, 17.0, 20.0):
        found = jax.jit(lambda y: score(mixture, y, jnp.ones(1, bool)))(np.array([y], np.float32))
        truth = npax.metrics.crps_samples(np.array([y]), samples)
        assert abs(float(found["crps"]) - truth) < 0.02 * samples.std()
        level = np.mean(samples <= y), np.mean(samples < y)
        assert bool(found["covered"]) == (level[0] >= 0.025 and level[1] < 0.975)

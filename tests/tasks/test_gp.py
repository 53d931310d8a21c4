"""GP tasks against closed forms in numpy float64."""

from inspect import unwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.linalg
import scipy.stats
import tinygp
from laws import TINY, normal

import npax
from npax.tasks import GPPosteriorTask, GPTask, Matern32Prior, PeriodicPrior, RBFPrior, ScaledRBFPrior
from npax.tasks.gp_kernels import AbstractKernelPrior, matern32, periodic, rbf


class Fixed(AbstractKernelPrior):
    """A prior with one kernel only."""

    kernel: tinygp.kernels.Kernel

    def draw(self, key):
        return self.kernel

    def quadrature(self, nodes):
        return jax.tree.map(lambda a: a[None], self.kernel), np.ones(1)


def numpy_kernel(name, r, scale, period=1.0):
    match name:
        case "rbf":
            return np.exp(-(r**2) / (2 * scale**2))
        case "matern32":
            return (1 + np.sqrt(3) * r / scale) * np.exp(-np.sqrt(3) * r / scale)
        case "periodic":
            return np.exp(-2 * np.sin(np.pi * r / period) ** 2 / scale**2)


def distances(x, y):
    return np.linalg.norm(np.asarray(x, float)[:, None] - np.asarray(y, float)[None], axis=-1)


def sampled(tasks, seed, n):
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(tasks.sample))(jr.split(jr.key(seed), n)))


@pytest.fixture(scope="module")
def draws():
    """Many tasks of one known kernel: 4 context slots, 9 targets."""
    tasks = GPTask(Fixed(rbf(jnp.array(0.7))), nc=4, low=4, grid=5)
    return tasks, sampled(tasks, 1, 40_000)


def test_functions_have_the_covariance_of_the_kernel(draws):
    _, batch = draws
    y, x = batch.yt[:, 4:, 0].astype(float), batch.xt[0, 4:]
    truth = numpy_kernel("rbf", distances(x, x), 0.7)
    assert np.abs(y.mean(0)).max() < 0.025  # five standard errors
    assert np.abs(y.T @ y / len(y) - truth).max() < 0.035
    wrong = numpy_kernel("rbf", distances(x, x), 1.0)
    assert np.abs(y.T @ y / len(y) - wrong).max() > 0.1


def test_noise_is_on_the_context_only(draws):
    tasks, batch = draws
    noise = batch.yc[..., 0].astype(float) - batch.yt[:, :4, 0]
    assert abs(noise.std() / tasks.noise_std - 1) < 0.02
    assert abs(np.mean(noise * batch.yt[:, :4, 0])) < 0.002  # independent of the function
    assert np.array_equal(batch.xc, batch.xt[:, :4])


def test_gp_1d_has_the_shapes_and_sizes_of_the_paper():
    batch = sampled(npax.tasks.gp_1d(RBFPrior()), 0, 2000)
    assert batch.xc.shape == (2000, 50, 1) and batch.xt.shape == batch.yt.shape == (2000, 150, 1)
    sizes = batch.mask_c.sum(1)
    assert np.array_equal(np.unique(sizes), np.arange(3, 51))
    assert scipy.stats.chisquare(np.bincount(sizes, minlength=51)[3:]).pvalue > 1e-3
    assert batch.mask_t.all() and np.isfinite(batch.yt).all()
    assert np.allclose(batch.xt[0, 50:, 0], np.linspace(-2, 2, 100), atol=1e-6)
    assert scipy.stats.kstest(batch.xc.ravel(), "uniform", (-2, 4)).pvalue > 1e-3
    assert np.all(np.diff(batch.mask_c.astype(int), axis=1) <= 0)


def test_gp_2d_has_the_shapes_and_sizes_of_the_paper():
    batch = sampled(npax.tasks.gp_2d(), 0, 200)
    assert batch.xc.shape == (200, 128, 2) and batch.yt.shape == (200, 384, 1)
    sizes = batch.mask_c.sum(1)
    assert sizes.min() >= 12 and sizes.max() <= 128 and len(np.unique(sizes)) > 50
    assert batch.mask_t.all() and np.isfinite(batch.yt).all()
    assert abs(batch.yt.std() - 1) < 0.05


@pytest.mark.parametrize("prior", [RBFPrior(), Matern32Prior(), PeriodicPrior()])
def test_hyper_parameters_follow_their_prior(prior):
    kernels = jax.tree.map(np.asarray, jax.jit(jax.vmap(prior.draw))(jr.split(jr.key(2), 5000)))
    if isinstance(prior, PeriodicPrior):
        scale, period = np.sqrt(2 / kernels.gamma), kernels.scale
        assert scipy.stats.kstest(period, "uniform", (0.5, 1.5)).pvalue > 1e-3
    else:
        scale = kernels.scale
    assert scipy.stats.kstest(scale, "beta", (3, 7)).pvalue > 1e-3
    assert scipy.stats.kstest(scale, "beta", (2, 7)).pvalue < 1e-6
    kernels, weights = jax.tree.map(np.asarray, prior.quadrature(64))
    scale = np.sqrt(2 / kernels.gamma) if isinstance(prior, PeriodicPrior) else kernels.scale
    assert abs(weights.sum() - 1) < 1e-6 and abs(weights @ scale - 0.3) < 1e-3


@pytest.mark.parametrize(
    "name, kernel",
    [
        ("rbf", rbf(jnp.array(0.4))),
        ("matern32", matern32(jnp.array(0.4))),
        ("periodic", periodic(jnp.array(0.4), jnp.array(1.3))),
    ],
)
def test_kernels_are_those_of_the_paper(name, kernel):
    x = np.linspace(-2, 2, 9)[:, None]
    truth = numpy_kernel(name, distances(x, x), 0.4, 1.3)

    @jax.jit
    def gram_and_gradient(x):
        return kernel(x, x), kernel(x), jax.grad(lambda x: jnp.sum(kernel(x, x)))(jnp.zeros((3, 1)))

    gram, diagonal, gradient = gram_and_gradient(x.astype(np.float32))
    assert np.allclose(gram, truth, atol=2e-5) and np.allclose(diagonal, 1)
    assert np.isfinite(gradient).all()


@pytest.fixture(scope="module")
def posteriors():
    tasks = GPPosteriorTask(npax.tasks.gp_1d(Fixed(matern32(jnp.array(0.3)))))
    return tasks.tasks, sampled(tasks, 3, 400)


def numpy_posterior(task, noise):
    n = int(task.mask_c.sum())
    x, y, xt = (np.asarray(a, float) for a in (task.xc[:n], task.yc[:n, 0], task.xt))
    k = numpy_kernel("matern32", distances(x, x), 0.3) + noise * np.eye(n)
    k_ct = numpy_kernel("matern32", distances(x, xt), 0.3)
    solved = scipy.linalg.solve(k, np.column_stack([k_ct, y]), assume_a="pos")
    evidence = scipy.stats.multivariate_normal(np.zeros(n), k).logpdf(y)
    return k_ct.T @ solved[:, -1], 1 - np.sum(k_ct * solved[:, :-1], axis=0), evidence


def test_posterior_equals_numpy(posteriors):
    tasks, batch = posteriors
    exact_posterior = eqx.filter_jit(npax.gp.exact_posterior)
    for i in range(10):
        posterior = jax.tree.map(lambda a, i=i: a[i], batch)
        mean, variance, evidence = numpy_posterior(posterior.task, tasks.noise_std**2)
        assert np.allclose(posterior.mean[:, 0], mean, atol=2e-4)
        assert np.allclose(posterior.variance[:, 0], variance, atol=2e-5)
        assert np.allclose(posterior.noise, 0.01)
        task = posterior.task
        kernel = tasks.kernel.kernel
        exact = exact_posterior(kernel, np.float32(0.01), task.xc, task.yc[:, 0], task.xt, task.mask_c)
        assert np.allclose(exact[2], evidence, rtol=1e-4, atol=1e-3)


def test_shapes_that_do_not_fit_are_refused():
    """Targets too: a row would be taken for one of another width."""
    kernel, (xc, yc, mask) = tinygp.kernels.ExpSquared(), (np.zeros((2, 1)), np.ones(2), np.ones(2, bool))
    exact_posterior = unwrap(npax.gp.exact_posterior)
    for xt in (np.zeros((1, 2)), np.zeros(2), np.zeros((2, 3))):
        with pytest.raises(ValueError, match=r"`xt`, .* must have the shapes .*\[nt, dx\].* got \[2, 1\], \[2\], "):
            exact_posterior(kernel, 0.1, xc, yc, xt, mask)


def test_targets_and_context_values_fit_their_posterior(posteriors):
    _, batch = posteriors
    z = (batch.task.yt - batch.mean) / np.sqrt(batch.variance)
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02
    yc = batch.task.yc[batch.task.mask_c]
    assert abs(yc.std() ** 2 - 1.01) < 0.05


def test_masked_context_counts_for_nothing(posteriors):
    tasks, batch = posteriors
    task = jax.tree.map(lambda a: a[0], batch.task)
    hidden = ~task.mask_c[:, None]
    xc, yc = np.where(hidden, np.float32(np.nan), task.xc), np.where(hidden, np.float32(np.inf), task.yc)
    junk = eqx.tree_at(lambda t: (t.xc, t.yc), task, (xc, yc))
    oracle = eqx.filter_jit(npax.gp.oracle)
    clean, dirty = (oracle(tasks.kernel.kernel, 0.1, t) for t in (task, junk))
    assert np.array_equal(clean.mean, dirty.mean) and np.array_equal(clean.variance, dirty.variance)


def test_a_broken_factorisation_makes_a_task_without_points():
    @jax.jit
    def sample(scale, key):
        tasks = GPTask(Fixed(rbf(scale)), nc=4, low=4, grid=3)
        return tasks.sample(key), GPPosteriorTask(tasks).sample(key).task

    for task in jax.tree.map(np.asarray, sample(np.float32(np.nan), jr.key(0))):
        assert not task.mask_c.any() and not task.mask_t.any()
        assert all(np.isfinite(a).all() for a in (task.xc, task.yc, task.xt, task.yt))
    assert all(np.asarray(task.mask_c).all() for task in sample(np.float32(0.3), jr.key(0)))


def test_same_key_same_task_and_other_key_other_task():
    tasks = GPTask(RBFPrior(), nc=4, low=1, grid=3)
    sample = jax.jit(tasks.sample)
    a, b, c = sample(jr.key(0)), sample(jr.key(0)), sample(jr.key(1))
    assert np.array_equal(a.yt, b.yt) and not np.array_equal(a.yt, c.yt)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"dx": 0}, "dx"),
        ({"nc": 0, "low": 0, "grid": 0}, "`nc` and `grid`"),
        ({"grid": -1}, "grid"),
        ({"low": 5, "nc": 4}, "low"),
        ({"noise_std": 0.0}, "noise_std"),
        ({"noise_std": np.inf}, "`noise_std` must be positive and finite, got inf"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        GPTask(RBFPrior(), **arguments)


@pytest.mark.parametrize("wrong", [{"scale": (0.6, 0.1)}, {"amplitude": (0.0, 1.0)}])
def test_ranges_go_upwards_from_above_zero(wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be .low, high. with 0 < low <= high"):
        ScaledRBFPrior(**wrong)


def test_the_name_of_a_kernel_is_none():
    with pytest.raises(
        TypeError, match=r"`kernel` must be a prior over kernels, such as npax.tasks.RBFPrior\(\); got 'rbf'"
    ):
        unwrap(GPTask.__init__)(object(), "rbf")


def test_a_periodic_kernel_is_of_one_coordinate():
    """In the plane the function of the distance is no kernel: factorisations break down and tasks come out empty."""
    with pytest.raises(ValueError, match=r"`kernel` = PeriodicPrior is of one coordinate: take `dx` = 1, not 2"):
        npax.tasks.gp_2d(PeriodicPrior())
    with pytest.raises(ValueError, match=r"is of one coordinate: take `dx` = 1, not 2, or another"):
        GPTask(npax.tasks.RBFPeriodicMatern52Prior(), dx=2)


SMALL = GPPosteriorTask(GPTask(RBFPrior(), nc=4, low=1, grid=3))


def test_posterior_nll_is_the_mean_of_nll_over_targets(getkey):
    model = npax.TNPKR(1, 1, **TINY, key=getkey())
    posterior = jax.jit(SMALL.sample)(getkey())
    expected = eqx.filter_jit(npax.objectives.posterior_nll)(model, posterior)

    def nll_of(noise):
        task = posterior.task
        yt = posterior.mean + jnp.sqrt(posterior.variance) * noise
        return npax.objectives.nll(model, npax.Task(task.xc, task.yc, task.mask_c, task.xt, yt, task.mask_t))

    drawn = np.asarray(jax.jit(jax.vmap(nll_of))(normal(getkey(), (4000, *posterior.mean.shape))))
    assert abs(drawn.mean() - float(expected)) < 5 * drawn.std() / 4000**0.5


class Cauchy(npax.likelihoods.AbstractLikelihood):
    dy: int = 1

    @property
    def size(self):
        return self.dy

    def __call__(self, raw):
        return dist.Cauchy(raw, 1.0).to_event(1)


def test_posterior_nll_refuses_other_likelihoods(getkey):
    posterior = jax.eval_shape(SMALL.sample, getkey())
    model = npax.TNPKR(1, 1, likelihood=Cauchy(), **TINY, key=getkey())
    with pytest.raises(TypeError, match="needs a model with a Gaussian likelihood"):
        eqx.filter_eval_shape(npax.objectives.posterior_nll, model, posterior)

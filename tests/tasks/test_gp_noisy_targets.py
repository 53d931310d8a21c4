"""GP-1D-shift, GP-1D of ANP and their kernels against closed forms in numpy float64."""

import jax
import jax.random as jr
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import npax
from npax.tasks import GPCurveTask, GPShiftTask, PeriodicPrior, RBFPeriodicMatern52Prior, RBFPrior, ScaledRBFPrior

FIXED = ScaledRBFPrior((0.6, 0.6), (1.0, 1.0))


def batch_of(tasks, n, seed=0):
    batch, _ = jax.jit(jax.vmap(tasks.sample_with_kernel))(jr.split(jr.key(seed), n))
    return jax.tree.map(np.asarray, batch)


def rbf(x, y, scale=0.6):
    return np.exp(-((x[:, None] - y[None]) ** 2) / (2 * scale**2))


def whitened(x, y, noise_std):
    """Standard normal numbers where y is a draw from a Gaussian process with the fixed kernel and this noise."""
    x, y = x[..., 0].astype(float), y[..., 0].astype(float)
    factors = (scipy.linalg.cholesky(rbf(a, a) + noise_std**2 * np.eye(len(a)), lower=True) for a in x)
    return np.array([scipy.linalg.solve_triangular(c, b, lower=True) for c, b in zip(factors, y, strict=True)])


def is_standard_normal(z):
    scatter = z.T @ z / len(z)
    return abs(z.mean()) < 0.02 and np.abs(scatter - np.eye(z.shape[1])).max() < 6 / len(z) ** 0.5


def test_shift_has_the_sizes_and_ranges_of_the_paper():
    batch = batch_of(npax.tasks.gp_1d_shift(), 2000)
    assert batch.xc.shape == (2000, 64, 1) and batch.yt.shape == (2000, 128, 1)
    sizes = batch.mask_c.sum(1)
    assert np.array_equal(np.unique(sizes), np.arange(1, 65))
    assert scipy.stats.chisquare(np.bincount(sizes, minlength=65)[1:]).pvalue > 1e-3
    assert batch.mask_t.all() and np.isfinite(batch.yt).all()
    assert np.all(np.diff(batch.mask_c.astype(int), axis=1) <= 0)
    for x, low, width in ((batch.xc, -2, 4), (batch.xt, -3, 6)):
        some = x[:200].ravel()
        assert scipy.stats.kstest(some, "uniform", (low, width)).pvalue > 1e-3
        assert scipy.stats.kstest(some, "uniform", (low + 0.2, width)).pvalue < 1e-6


def test_shift_values_have_the_kernel_and_noise_on_all():
    tasks = GPShiftTask(FIXED, nc=4, low=4, nt=5)
    batch = batch_of(tasks, 6000)
    x, y = (np.concatenate(pair, axis=1) for pair in ((batch.xc, batch.xt), (batch.yc, batch.yt)))
    assert is_standard_normal(whitened(x, y, 0.2))
    assert not is_standard_normal(whitened(x, y, 0.15))
    assert tasks.target_noise_std == tasks.noise_std == 0.2


def test_a_shift_moves_all_locations_and_no_value():
    here, there = (batch_of(npax.tasks.gp_1d_shift(shift), 50) for shift in (0.0, 1.5))
    assert np.allclose(there.xc, here.xc + 1.5, atol=1e-6) and np.allclose(there.xt, here.xt + 1.5, atol=1e-6)
    assert np.allclose(there.yc, here.yc, atol=2e-3) and np.allclose(there.yt, here.yt, atol=2e-3)
    assert np.array_equal(there.mask_c, here.mask_c)


def test_bimodal_locations_are_those_of_the_paper():
    batch = batch_of(npax.tasks.gp_1d_bimodal(), 300)
    for x in (batch.xc, batch.xt):
        some = x[:200].ravel()
        assert scipy.stats.kstest(np.abs(some), "uniform", (1, 3)).pvalue > 1e-3
        assert scipy.stats.binomtest(int((some > 0).sum()), some.size).pvalue > 1e-3


def test_anp_has_the_sizes_of_the_paper():
    batch = batch_of(npax.tasks.gp_1d_anp(), 5000)
    assert batch.xc.shape == batch.xt.shape == (5000, 100, 1)
    n, m = (mask.sum(1) for mask in (batch.mask_c, batch.mask_t))
    assert np.array_equal(np.unique(n), np.arange(3, 101))
    assert scipy.stats.chisquare(np.bincount(n)[3:]).pvalue > 1e-3
    assert (n <= m).all() and m.max() == 100
    few = n < 8
    uniform = (m[few] - n[few] + np.random.default_rng(0).uniform(size=few.sum())) / (101 - n[few])
    assert scipy.stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert scipy.stats.kstest(batch.xt[:200].ravel(), "uniform", (-2, 4)).pvalue > 1e-3


def test_anp_context_is_the_first_of_the_targets_with_the_same_noise():
    tasks = GPCurveTask(FIXED, points=6, noise_std=0.3)
    batch = batch_of(tasks, 6000)
    assert np.array_equal(batch.xc, batch.xt) and np.array_equal(batch.yc, batch.yt)
    assert np.all(batch.mask_t | ~batch.mask_c)
    assert is_standard_normal(whitened(batch.xt, batch.yt, 0.3))
    assert not is_standard_normal(whitened(batch.xt, batch.yt, 0.2))


def test_the_three_families_and_their_scales():
    prior = npax.tasks.gp_1d_shift().kernel
    assert isinstance(prior, RBFPeriodicMatern52Prior)
    kernels = jax.tree.map(np.asarray, jax.jit(jax.vmap(prior.draw))(jr.split(jr.key(0), 4000)))
    chosen = [np.asarray(part.kernel2.value) for part in (kernels.kernel1.kernel1, kernels.kernel1.kernel2)]
    chosen.append(np.asarray(kernels.kernel2.kernel2.value))
    counts = np.sum(chosen, axis=1)
    assert counts.sum() == 4000 and scipy.stats.chisquare(counts).pvalue > 1e-3
    scale = np.asarray(kernels.kernel2.kernel1.scale)
    assert scipy.stats.kstest(scale, "loguniform", (0.25, 4.0)).pvalue > 1e-3
    assert scipy.stats.kstest(scale, "uniform", (0.25, 3.75)).pvalue < 1e-6

    x = np.linspace(-3, 3, 7)[:, None]
    r = np.abs(x - x.T)
    grams = jax.jit(jax.vmap(lambda kernel: kernel(x.astype(np.float32), x.astype(np.float32))))(kernels)
    grams = np.asarray(grams)
    for i in range(30):
        s = np.sqrt(5) * r / scale[i]
        families = (
            np.exp(-(r**2) / (2 * scale[i] ** 2)),
            np.exp(-2 * np.sin(np.pi * r / scale[i]) ** 2),
            (1 + s + s**2 / 3) * np.exp(-s),
        )
        truth = families[int(np.argmax([one[i] for one in chosen]))]
        assert np.allclose(grams[i], truth, atol=2e-4)


@pytest.mark.parametrize(
    "prior", [RBFPrior(), PeriodicPrior(), ScaledRBFPrior(), RBFPeriodicMatern52Prior()], ids=lambda p: type(p).__name__
)
def test_the_quadrature_is_that_of_the_draws(prior):
    """The kernel's expectation, by quadrature and by Monte Carlo, and that of its square."""
    x = np.linspace(0.0, 1.7, 6, dtype=np.float32)[:, None]
    rows = jax.jit(jax.vmap(lambda kernel: kernel(x[:1], x)[0]))
    drawn = np.asarray(rows(jax.jit(jax.vmap(prior.draw))(jr.split(jr.key(4), 20_000))), float)
    kernels, weights = prior.quadrature(24)
    nodes = np.asarray(rows(kernels), float)
    assert abs(weights.sum() - 1) < 1e-6 and (weights > 0).all() and weights.shape == (len(nodes),)
    for power in (1, 2):
        error = (drawn**power).std(axis=0) / len(drawn) ** 0.5
        assert np.all(np.abs(weights @ nodes**power - (drawn**power).mean(axis=0)) < 5 * error + 1e-3)


@pytest.mark.parametrize(
    ("task", "arguments", "name"),
    [
        (GPShiftTask, {"low": 5, "nc": 4}, "low"),
        (GPShiftTask, {"nt": 0}, "nt"),
        (GPShiftTask, {"low": -1}, "low"),
        (GPShiftTask, {"noise_std": 0.0}, "noise_std"),
        (GPCurveTask, {"low": 101}, "low"),
        (GPCurveTask, {"noise_std": -1.0}, "noise_std"),
    ],
)
def test_bad_arguments_are_named(task, arguments, name):
    with pytest.raises(ValueError, match=name):
        task(RBFPrior(), **arguments)

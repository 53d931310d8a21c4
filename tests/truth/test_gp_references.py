"""The Bayes mixture against brute force in numpy float64, and what it promises: nothing honest beats it."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

from npax import Task
from npax.gp import bayes_mixture, oracle
from npax.tasks import GPTask, RBFPrior
from npax.tasks.gp_kernels import rbf

NOISE = 0.1


@pytest.fixture(scope="module")
def scored():
    """Tasks with their kernels, and the log-likelihood of the true function under each predictor."""
    tasks = GPTask(RBFPrior(), nc=8, low=2, grid=6)
    kernels, weights = tasks.kernel.quadrature(24)
    weights = jnp.asarray(weights, jnp.float32)

    def one(key):
        task, kernel = tasks.sample_with_kernel(key)
        mixture = bayes_mixture(kernels, weights, NOISE, task)
        wrong = oracle(rbf(jnp.array(0.3)), NOISE, task)
        y = task.yt[:, 0]
        scores = {
            "oracle": oracle(kernel, NOISE, task).log_prob(y).mean(),
            "mixture": mixture.log_prob(y).mean(),
            "mean length scale": wrong.log_prob(y).mean(),
        }
        return task, scores, mixture.log_prob(y), mixture.mean

    drawn = jax.jit(lambda keys: jax.lax.map(one, keys))(jr.split(jr.key(0), 2000))
    return kernels, weights, jax.tree.map(np.asarray, drawn)


def test_mixture_equals_brute_force(scored):
    kernels, weights, (batch, _, log_prob, mean) = scored
    for i in range(5):
        task = jax.tree.map(lambda a, i=i: a[i], batch)
        n = int(task.mask_c.sum())
        x, y, xt, yt = (a.astype(float)[:, 0] for a in (task.xc[:n], task.yc[:n], task.xt, task.yt))
        parts, means, evidence = [], [], []
        for scale in np.asarray(kernels.scale, float):
            k = np.exp(-((x[:, None] - x) ** 2) / (2 * scale**2)) + NOISE**2 * np.eye(n)
            k_ct = np.exp(-((x[:, None] - xt) ** 2) / (2 * scale**2))
            solved = scipy.linalg.solve(k, k_ct, assume_a="pos")
            m, v = solved.T @ y, 1 - np.sum(k_ct * solved, axis=0)
            parts.append(scipy.stats.norm(m, np.sqrt(v)).logpdf(yt))
            means.append(m)
            evidence.append(scipy.stats.multivariate_normal(np.zeros(n), k).logpdf(y))
        logits = np.log(np.asarray(weights, float)) + np.array(evidence)
        logits = (logits - scipy.special.logsumexp(logits))[:, None]
        assert np.allclose(log_prob[i], scipy.special.logsumexp(logits + np.array(parts), axis=0), atol=5e-3)
        assert np.allclose(mean[i], np.sum(np.exp(logits) * np.array(means), axis=0), atol=1e-3)


def test_the_floor_lies_between_the_oracle_and_a_fixed_length_scale(scored):
    _, _, (_, scores, _, _) = scored
    for better, worse in (("oracle", "mixture"), ("mixture", "mean length scale")):
        gap = scores[better].astype(float) - scores[worse]
        assert gap.mean() > 3 * gap.std() / len(gap) ** 0.5


def test_a_mixture_of_one_kernel_is_the_oracle():
    task = jax.jit(GPTask(RBFPrior(), nc=8, low=2, grid=6).sample)(jr.key(1))

    @jax.jit
    def both(scale, task):
        one = bayes_mixture(jax.vmap(rbf)(scale[None]), jnp.ones(1), NOISE, task)
        exact = oracle(rbf(scale), NOISE, task)
        return one.log_prob(task.yt[:, 0]), exact.log_prob(task.yt[:, 0])

    mixture, exact = both(jnp.array(0.4), task)
    assert np.allclose(mixture, exact, atol=1e-4)


def test_references_are_of_one_column():
    x, y = jnp.zeros((3, 1)), jnp.zeros((3, 2))
    task, (kernels, weights) = Task.of(x, y, x, y), RBFPrior().quadrature(4)
    weights = jnp.asarray(weights, jnp.float32)
    for reference in (
        lambda: oracle(rbf(jnp.array(0.3)), NOISE, task),
        lambda: bayes_mixture(kernels, weights, NOISE, task),
    ):
        with pytest.raises(ValueError, match="`task` must have one column of `y`, got 2"):
            reference()

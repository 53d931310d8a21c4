"""GP tasks with hidden kernels, and the scores of what predicts them: shared by the accuracy benchmarks."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist

import npax
from npax.gp import bayes_mixture, oracle
from npax.likelihoods import marginals, noiseless
from npax.tasks import GPTask

Scores = dict[str, np.ndarray]
"""Per task: `nll`, `squared_error` and `covered` (share of targets in the central 95 %), means over targets."""


def draw(tasks: GPTask, n: int, seed: int):
    """`n` tasks and the kernels they came from, the same for the same seed."""
    return jax.jit(lambda keys: jax.lax.map(tasks.sample_with_kernel, keys, batch_size=32))(jr.split(jr.key(seed), n))


def score(prediction: dist.Distribution, yt) -> dict:
    """The scores of one task's prediction of the noiseless function; batch shape `[nt]`, event shape `[]`."""
    return {
        "nll": -jnp.mean(prediction.log_prob(yt)),
        "squared_error": jnp.mean(jnp.square(prediction.mean - yt)),
        "covered": jnp.mean(jnp.abs(prediction.cdf(yt) - 0.5) < 0.475),
    }


def score_model(model: npax.models.AbstractNeuralProcess, batch: npax.Task) -> Scores:
    """A model on raw coordinates and values; coordinates are padded with zeros to as many as the model takes."""
    return jax.tree.map(np.asarray, _score_model(model, batch))


@eqx.filter_jit
def _score_model(model, batch):
    missing = model.dx - batch.xc.shape[-1]

    def one(task):
        xc, xt = (jnp.pad(x, ((0, 0), (0, missing))) for x in (task.xc, task.xt))
        prediction = marginals(noiseless(model(xc, task.yc, xt, task.mask_c)))
        return score(dist.Normal(prediction.mean[:, 0], jnp.sqrt(prediction.variance[:, 0])), task.yt[:, 0])

    return jax.lax.map(one, batch, batch_size=16)


def score_oracle(tasks: GPTask, batch: npax.Task, kernels) -> Scores:
    """The Gaussian process that knows each task's kernel and the noise."""
    return _in_float64(lambda task, kernel: score(oracle(kernel, tasks.noise_std, task), task.yt[:, 0]), batch, kernels)


def score_floor(tasks: GPTask, batch: npax.Task, nodes: int = 32) -> Scores:
    """The Bayes floor: hyper-parameters integrated out. 32 length scales are within 1e-4 nats of 128."""
    with jax.enable_x64(True):
        kernels, weights = tasks.kernel.quadrature(nodes)
        kernels, weights = _float64(kernels), jnp.asarray(weights)

        def one(task, _):
            return score(bayes_mixture(kernels, weights, tasks.noise_std, task), task.yt[:, 0])

        return _in_float64(one, batch, None)


def _in_float64(one: Callable, batch: npax.Task, beside, groups: int = 6) -> Scores:
    """`one(task, beside)` for every task. Sorted by the size of their context and cut to the largest of a group."""
    sizes = np.asarray(jnp.sum(batch.mask_c, axis=1))
    order = np.argsort(sizes, kind="stable")
    parts = []
    with jax.enable_x64(True):
        run = jax.jit(lambda pair: jax.lax.map(lambda one_pair: one(*one_pair), pair))
        for rows in np.array_split(order, min(groups, len(order))):
            task, other = _float64(jax.tree.map(lambda a, rows=rows: a[rows], (batch, beside)))
            n = max(int(sizes[rows[-1]]), 1)
            cut = npax.Task(task.xc[:, :n], task.yc[:, :n], task.mask_c[:, :n], task.xt, task.yt, task.mask_t)
            parts.append(jax.tree.map(np.asarray, run((cut, other))))
    back = np.argsort(order)
    return {name: np.concatenate([part[name] for part in parts])[back] for name in parts[0]}


def _float64(tree):
    return jax.tree.map(lambda a: jnp.asarray(a, jnp.float64) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree)


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean over tasks and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))

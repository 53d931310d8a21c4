"""Scores of predictions on many tasks, task by task."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float
from tinygp.kernels import Kernel

from ..likelihoods import marginals, noiseless
from ..models import AbstractNeuralProcess
from ..task import Task
from ..tasks import AbstractGPTask

Scores = dict[str, np.ndarray]
"""Per task, means over its targets: `nll`, `squared_error`, `absolute_error`, `crps` and `covered`, the share of the
targets in the central 95 %."""

GROUP = 128
"""Tasks that are scored by one call of a compiled program."""


def draw(tasks: AbstractGPTask, n: int, seed: int) -> tuple[Task, Kernel]:
    """`n` tasks and the kernels they came from, the same for the same seed."""
    return jax.jit(lambda keys: jax.lax.map(tasks.sample_with_kernel, keys, batch_size=32))(jr.split(jr.key(seed), n))


def score(
    prediction: dist.Distribution, yt: Float[Array, " nt *dy"], mask: Bool[Array, " nt"]
) -> dict[str, Float[Array, ""]]:
    """The scores of one task's prediction, whose batch shape is that of `yt`, with event shape `[]`.

    Means over the targets that `mask` lets count; a task without any scores NaN.
    """
    yt = jnp.where(mask.reshape(-1, *(yt.ndim - 1) * [1]), yt, 0.0)
    each = {
        "nll": -jnp.asarray(prediction.log_prob(yt)),
        "squared_error": jnp.square(prediction.mean - yt),
        "absolute_error": jnp.abs(prediction.mean - yt),
        "crps": crps(prediction, yt),
        "covered": (jnp.abs(prediction.cdf(yt) - 0.5) < 0.475).astype(yt.dtype),
    }
    return {name: jnp.mean(values.reshape(len(yt), -1), where=mask[:, None]) for name, values in each.items()}


def crps(prediction: dist.Distribution, y: Float[Array, "*shape"], nodes: int = 64) -> Float[Array, "*shape"]:
    r"""$\int (F(x) - 1[x \ge y])^2 dx$ of any distribution with a mean, a variance and a `cdf`.

    By Gauss-Legendre quadrature on either side of `y`, out to 8 standard deviations from the mean.
    """
    at, weights = (jnp.asarray(a, y.dtype).reshape(-1, *y.ndim * [1]) for a in np.polynomial.legendre.leggauss(nodes))
    reach = 8 * jnp.sqrt(prediction.variance)
    low, high = jnp.minimum(y, prediction.mean - reach), jnp.maximum(y, prediction.mean + reach)
    below = prediction.cdf(low + (y - low) * (at + 1) / 2)
    above = 1 - prediction.cdf(y + (high - y) * (at + 1) / 2)
    parts = (y - low) * jnp.square(below) + (high - y) * jnp.square(above)
    return jnp.sum(weights * parts, axis=0) / 2


def score_model(tasks: AbstractGPTask, batch: Task, model: AbstractNeuralProcess) -> Scores:
    """A model on raw coordinates and values; coordinates are padded with zeros to as many as the model takes.

    Where the targets of `tasks` are the noiseless function so is what is scored, if the model tells function and
    noise apart. Joint predictions are scored by their marginals.
    """
    groups = range(0, batch.xc.shape[0], GROUP)
    parts = [jax.tree.map(lambda a, i=i: a[i : i + GROUP], batch) for i in groups]
    return concatenate([_score_model(model, part, tasks.target_noise_std > 0) for part in parts])


@eqx.filter_jit
def _score_model(model, batch, noisy):
    missing = model.dx - batch.xc.shape[-1]

    def one(task):
        xc, xt = (jnp.pad(x, ((0, 0), (0, missing))) for x in (task.xc, task.xt))
        prediction = model(xc, task.yc, xt, task.mask_c)
        return score(marginals(prediction if noisy else noiseless(prediction)), task.yt, task.mask_t)

    return jax.lax.map(one, batch, batch_size=16)


def concatenate(parts) -> Scores:
    """The scores of several groups of tasks as one."""
    return {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error; no error where there is one value only."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(error)

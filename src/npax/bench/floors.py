"""References: a Gaussian process that knows each task's kernel, the Bayes floor, and a process fitted to each task."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from tinygp.kernels import Kernel

from ..gp import bayes_mixture, maximum_a_posteriori_gp, oracle
from ..inference import bucket
from ..task import Task
from ..tasks import AbstractGPTask, GPCurveTask
from .scores import Scores, concatenate, score


def score_oracle(tasks: AbstractGPTask, batch: Task, kernels: Kernel) -> Scores:
    """The Gaussian process that knows each task's kernel and the noise. **Raises** as `score_floor`."""
    _check_apart(tasks)

    def predict(task, kernel):
        return oracle(kernel, tasks.noise_std, task, target_noise_std=tasks.target_noise_std)

    return _score(predict, batch, kernels)


def score_floor(tasks: AbstractGPTask, batch: Task, nodes: int = 32) -> Scores:
    """The Bayes floor: hyper-parameters integrated out (`npax.gp.bayes_mixture`). 32 length scales are within 1e-4
    nats of 128.

    **Raises** `ValueError` where observations of the context are targets too: whoever copies them beats any process.
    """
    _check_apart(tasks)
    with jax.enable_x64(True):
        kernels, weights = tasks.kernel.quadrature(nodes)
        kernels, weights = _cast(kernels, jnp.float64), jnp.asarray(weights)

    def predict(task, _):
        return bayes_mixture(kernels, weights, tasks.noise_std, task, target_noise_std=tasks.target_noise_std)

    return _score(predict, batch, None)


def _check_apart(tasks):
    if isinstance(tasks, GPCurveTask):
        raise ValueError(
            "`tasks` asks for the noisy values of the context itself, which a model may copy: take `GPShiftTask`, "
            "whose targets are apart."
        )


def score_gp(batch: Task) -> Scores:
    """A Gaussian process fitted to the context of each task, with as many outputs as there are (TE's baselines).

    Contexts are padded to few sizes, so that few programs are compiled.
    """
    sizes = np.asarray(jnp.sum(batch.mask_c, axis=1))
    parts = []
    for i, size in enumerate(sizes):
        task = jax.tree.map(lambda a, i=i: a[i], batch)
        cut = _cut(task, bucket(int(size)))
        parts.append({name: value[None] for name, value in _score_gp(maximum_a_posteriori_gp(cut), cut).items()})
    return concatenate(parts)


@jax.jit
def _score_gp(prediction, task):
    return score(prediction, task.yt, task.mask_t)


def _score(predict: Callable, batch: Task, beside) -> Scores:
    """The scores of `predict(task, beside)` for every task: predicted in float64, scored in float32.

    Tasks are sorted by the size of their context and cut to the largest of a group.
    """
    sizes = np.asarray(jnp.sum(batch.mask_c, axis=1))
    order = np.argsort(sizes, kind="stable")
    parts = []
    with jax.enable_x64(True):

        def one(pair):
            task, other = _cast(pair, jnp.float64)
            return score(_cast(predict(task, other), jnp.float32), pair[0].yt[:, 0], task.mask_t)

        run = jax.jit(lambda pairs: jax.lax.map(one, pairs))
        for rows in np.array_split(order, np.clip(len(order) // 32, 1, 6)):
            task, other = jax.tree.map(lambda a, rows=rows: a[rows], (batch, beside))
            n = max(int(sizes[rows[-1]]), 1)
            parts.append(run((jax.vmap(partial(_cut, n=n))(task), other)))
    back = np.argsort(order)
    return {name: values[back] for name, values in concatenate(parts).items()}


def _cut(task, n):
    """The task with at most `n` slots for its context, in the first of which are the observations that count."""
    first = jnp.argsort(~task.mask_c, stable=True)[:n]
    return Task(task.xc[first], task.yc[first], task.mask_c[first], task.xt, task.yt, task.mask_t)


def _cast(tree, dtype):
    return jax.tree.map(lambda a: a.astype(dtype) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree)

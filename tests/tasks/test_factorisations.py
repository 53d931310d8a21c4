"""On CPUs samplers hand LAPACK one matrix at a time: batches of two devices, or two of a program, can hang jaxlib."""

import re

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from laws import TINY

import npax
from npax.objectives import joint_nll
from npax.tasks import GPPosteriorTask, GPPrior, GPTask, PeriodicPrior

TASKS = [
    GPTask(PeriodicPrior(), nc=6, grid=4),
    GPPosteriorTask(GPTask(PeriodicPrior(), nc=6, grid=4)),
    npax.tasks.gp_2d(),
    GPPrior(8, 4),
]


def lapack_ranks(function, *arguments):
    """Of the first array that each call of LAPACK takes, the rank; what XLA batches has three and more."""
    with jax.numpy_dtype_promotion("standard"):
        program = jax.jit(function).lower(*arguments).as_text()
    calls = re.findall(r"custom_call @lapack_\w+\(.*?: \(tensor<([^>]*)>", program)
    return [len(shape.split("x")) - 1 for shape in calls]


@pytest.mark.parametrize("tasks", TASKS, ids=lambda tasks: type(tasks).__name__)
def test_a_sampler_factorises_one_by_one(tasks):
    ranks = lapack_ranks(jax.vmap(tasks.sample), jr.split(jr.key(0), 2))
    assert ranks and set(ranks) == {2}


def test_so_does_the_joint_likelihood_and_its_gradient():
    tasks = jax.eval_shape(jax.vmap(TASKS[0].sample), jr.split(jr.key(0), 2))

    def loss(scale, tasks):
        model = npax.TNPND(1, 1, **TINY, key=jr.key(0))
        scaled = npax.Task(tasks.xc, scale * tasks.yc, tasks.mask_c, tasks.xt, tasks.yt, tasks.mask_t)
        return jnp.sum(jax.vmap(lambda task: joint_nll(model, task, jr.key(0)))(scaled))

    ranks = lapack_ranks(jax.grad(loss), 1.0, tasks)
    assert len(ranks) > 2 and set(ranks) == {2}


def test_batches_would_be_seen():
    assert lapack_ranks(jnp.linalg.cholesky, np.ones((2, 3, 3), np.float32)) == [3]

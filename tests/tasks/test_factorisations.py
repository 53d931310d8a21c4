"""Samplers factorise once: two batched factorisations side by side can hang jaxlib on CPUs with few cores."""

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

import npax
from npax.tasks import GPPosteriorTask, GPPrior, GPTask, PeriodicPrior

TASKS = [
    GPTask(PeriodicPrior(), nc=6, grid=4),
    GPPosteriorTask(GPTask(PeriodicPrior(), nc=6, grid=4)),
    npax.tasks.gp_2d(),
    GPPrior(8, 4),
]


def factorisations(jaxpr):
    """How many factorisations a program holds, in whatever it calls."""
    programs = (ClosedJaxpr, Jaxpr)
    found = 0
    for equation in jaxpr.eqns:
        found += equation.primitive.name == "cholesky"
        inner = jax.tree.leaves(equation.params, is_leaf=lambda value: isinstance(value, programs))
        found += sum(factorisations(getattr(p, "jaxpr", p)) for p in inner if isinstance(p, programs))
    return found


@pytest.mark.parametrize("tasks", TASKS, ids=lambda tasks: type(tasks).__name__)
def test_a_sampler_factorises_once(tasks):
    with jax.numpy_dtype_promotion("standard"):
        program = jax.make_jaxpr(jax.vmap(tasks.sample))(jr.split(jr.key(0), 2))
    assert factorisations(program.jaxpr) == 1


def test_two_factorisations_would_be_seen():
    program = jax.make_jaxpr(lambda k: jnp.linalg.cholesky(k) + jnp.linalg.cholesky(2 * k))(jnp.eye(3))
    assert factorisations(program.jaxpr) == 2

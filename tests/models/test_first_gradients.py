"""Deep networks start with gradients that a step can take, whatever the data: zeros, nothing, noise."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import optax
import pytest

import npax
from npax.likelihoods import FunctionAndNoise
from npax.objectives import picture_nll
from npax.task import Task
from npax.tasks import FieldPrior

SMALL = {"size": 8, "heads": 2, "head_size": 4, "hidden": 16}
DEEP = {
    "te_tnp": lambda key: npax.TETNP(1, 1, blocks=6, **SMALL, key=key),
    "te_pt_tnp": lambda key: npax.TEPTTNP(1, 1, blocks=5, pseudo_tokens=4, **SMALL, key=key),
    "tnp_d": lambda key: npax.TNPD(1, 1, blocks=6, **SMALL, key=key),
    "tnp_kr": lambda key: npax.TNPKR(1, 1, blocks=6, locations=False, **SMALL, key=key),
}


@eqx.filter_jit
def size(objective, model, task):
    """The norm of the gradient."""
    return optax.tree.norm(eqx.filter(eqx.filter_grad(objective)(model, task), eqx.is_inexact_array))


@pytest.mark.parametrize("name", DEEP)
def test_of_tasks(name):
    model, x = DEEP[name](jr.key(0)), jnp.linspace(-2.0, 2.0, 12)[:, None]
    noise, all_of_them = jr.normal(jr.key(1), (12, 1)), jnp.ones(12, bool)
    for y, mask in ((noise, all_of_them), (jnp.zeros((12, 1)), all_of_them), (noise, ~all_of_them)):
        assert size(npax.objectives.nll, model, Task(x, y, mask, x, y, all_of_them)) < 100


def test_of_pictures():
    model = npax.GridConvCNP(
        2, 1, spacing=1.0, sizes=(8,) * 6, blocks=(1, 1, 2, 2, 2, 3), likelihood=FunctionAndNoise(1), key=jr.key(0)
    )
    picture = eqx.filter_jit(FieldPrior(32).sample)(jr.key(1))
    for mask in (picture.mask, jnp.zeros_like(picture.mask)):
        assert size(picture_nll, model, dataclasses.replace(picture, mask=jnp.asarray(mask))) < 1000

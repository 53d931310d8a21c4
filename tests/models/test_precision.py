"""Weights and data of different precision: gradients as `fit` takes them have the precision of the weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from laws import MODELS

from npax.blocks.set_conv import Grid
from npax.matmul import summed_over_tasks
from npax.models import TNPA
from npax.objectives import suited
from npax.task import Task


def cast(tree, dtype):
    return jax.tree.map(lambda a: a.astype(dtype) if eqx.is_inexact_array(a) else a, tree)


@pytest.mark.parametrize(("weights", "data"), [("bfloat16", "float32"), ("float32", "float64")])
@pytest.mark.parametrize("name", ["anp-laplace", "convcnp", "tnp-a", "te-pt-tnp"])
def test_gradients_have_the_precision_of_the_weights(name, weights, data, rng):
    with jax.enable_x64(data == "float64"), jax.numpy_dtype_promotion("standard"):
        model = cast(MODELS[name](jr.key(0)), weights)
        dy = model.likelihood.dy
        shapes = [(2, 5, model.dx), (2, 5, dy), (2, 7, model.dx), (2, 7, dy)]
        tasks = eqx.filter_vmap(Task.of)(*(jnp.asarray(rng.normal(size=shape), data) for shape in shapes))

        @eqx.filter_jit
        @eqx.filter_grad
        def gradient(model):
            with summed_over_tasks():
                loss = eqx.filter_vmap(suited(model), in_axes=(None, 0, 0))
                return jnp.mean(loss(model, tasks, jr.split(jr.key(0), 2)))

        found = gradient(model)
        wanted = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
        for got, weight in zip(jax.tree.leaves(found), wanted, strict=True):
            assert got.dtype == weight.dtype and bool(jnp.isfinite(got).all())


def test_in_bfloat16_no_target_sees_its_own_value():
    model = cast(TNPA(1, 1, blocks=1, size=8, heads=2, hidden=8, key=jr.key(0)), jnp.bfloat16)
    n = 150  # beyond 128 bfloat16 does not tell i from i - 1/2
    x, y = (jr.normal(jr.key(i), (n, 1), jnp.bfloat16) for i in range(2))
    state = model.condition(x[:3], y[:3])

    @jax.jit
    def raw(y):
        memories, places = model._with_targets(state, x, y, jnp.ones(n, bool))
        return model._read(memories, x, places - 0.5)

    for i in (100, 132, 149):
        before, after = raw(y), raw(y.at[i].add(5))
        assert np.array_equal(before[: i + 1], after[: i + 1])
    assert not np.array_equal(raw(y), raw(y.at[100].add(5)))


def test_nodes_of_a_grid_are_apart_in_bfloat16():
    grid = Grid(spacing=0.01, extent=4.0, margin=0.0, stride=1)
    x = jnp.linspace(-1, 1, 5, dtype=jnp.bfloat16)[:, None]
    cells = grid.cells(x, grid.origin(x, jnp.ones(5, bool)))
    assert grid.side > 400 and (np.abs(np.asarray(cells, float)) < 0.6).sum(axis=-1).max() <= 2

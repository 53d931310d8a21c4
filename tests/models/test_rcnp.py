"""RCNP against its formula: pairs in blocks, the encoder's last map behind the mean, blocks that are skipped."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from untrained import untrained

import npax

NC, NT, TASKS = 21, 6, 3
rng = np.random.default_rng(0)
xc, yc, xt, d = (rng.normal(size=(TASKS, n, k)).astype(np.float32) for n, k in ((NC, 2), (NC, 1), (NT, 2), (NT, 2)))
masks = np.stack([np.arange(NC) < 5, (np.arange(NC) % 16) > 12, np.zeros(NC, bool)])
"""Most blocks of eight empty; some points of most blocks; nothing."""


def model(block):
    return untrained(lambda key: npax.RCNP(2, 1, encoder=(12, 8), size=10, decoder=(8,), block=block, key=key))


def formula(model, xc, yc, mask, xt):
    """Every pair through the whole encoder (TE eq. 38)."""
    pairs = jnp.concatenate([xt[:, None] - xc[None], jnp.broadcast_to(yc[None], (NT, NC, 1))], axis=-1)
    encoded = jax.vmap(model.encoder)(pairs)
    total = jnp.sum(jnp.where(mask[None, :, None], encoded, 0.0), axis=1)
    return model.decoder(total / jnp.maximum(jnp.sum(mask.astype(total.dtype)), 1.0))


def blocks(model, xc, yc, mask, xt):
    return model.decode(model.condition(xc, yc, mask), xt)


def value_and_gradients(predict, block, tasks):
    """Of all that it depends on, summed over tasks."""

    @jax.jit
    def ask(points):
        parameters, rest = eqx.partition(model(block), eqx.is_array)

        def loss(parameters, points):
            model, (xc, yc, xt) = eqx.combine(parameters, rest), points
            out = jax.vmap(functools.partial(predict, model))(xc, yc, masks[tasks], xt)
            return jnp.sum(out * d[tasks]), out

        return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(parameters, points)

    (_, out), gradients = ask((xc[tasks], yc[tasks], xt[tasks]))
    return out, gradients


@pytest.mark.parametrize("block", [1, 24, 64, 4096])  # a target, some of them, all of a task, all tasks at once
def test_blocks_are_the_formula(block):
    out, gradients = value_and_gradients(blocks, block, slice(None))
    truth, true_gradients = value_and_gradients(formula, block, slice(None))
    np.testing.assert_allclose(out, truth, atol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(gradients), jax.tree.leaves(true_gradients), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_the_formula_notices_a_point_more():
    out, _ = value_and_gradients(blocks, 64, slice(0, 1))
    more = formula(model(64), xc[0], yc[0], np.arange(NC) < 6, xt[0])
    assert np.abs(out[0] - more).max() > 1e-3


def test_widths_of_layers_are_lists():
    with pytest.raises(TypeError, match="encoder"):
        npax.RCNP(2, 1, encoder=8, key=jr.key(0))

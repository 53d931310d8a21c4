"""Attention at linear cost against what it stands for."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
from laws import normal

import npax
from npax.attention.rotary import RotaryCoordinates

HEADS, NQ, NK, D, DX = 2, 7, 30, 8, 2


@pytest.fixture
def points(getkey):
    shapes = [(HEADS, NQ, D), (HEADS, NK, D), (HEADS, NK, 5), (NQ, DX), (NK, DX)]
    return [normal(getkey(), shape) for shape in shapes]


def as64(*arrays):
    return [np.asarray(a, np.float64) for a in arrays]


def read(attention, q, k, v, xq, xk, mask):
    @jax.jit
    def run(q, k, v, xq, xk, mask):
        return attention.recall(q, xq, attention.memorise(k, v, xk, mask), None)

    return run(q, k, v, xq, xk, mask)


def softmax(q, k, v, mask):
    s = np.where(mask, np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(q.shape[-1]), -np.inf)
    return reference.softmax_average(s, np.where(mask[:, None], v, 0))[0]


def test_favor_approaches_softmax_attention_as_features_grow(points, getkey):
    q, k, v, xq, xk = points
    q, k = 0.35 * q, 0.35 * k
    mask = jnp.arange(NK) < 21
    truth = softmax(*as64(q, k, v), np.asarray(mask))
    error = {
        m: reference.relative(read(npax.FavorAttention(D, features=m, key=getkey()), q, k, v, xq, xk, mask), truth)
        for m in (16, 4096)
    }
    assert error[4096] < 0.1 < error[16]


def test_favor_is_finite_at_any_logits(points):
    q, k, v, xq, xk = points
    attention = npax.FavorAttention(D, features=16, key=jr.key(0))

    def total(operands, mask):
        q, k, v = operands
        return jnp.sum(attention.recall(q, xq, attention.memorise(k, v, xk, mask), None))

    for scale in (1e-4, 1.0, 30.0, 1e3):
        for mask in (jnp.ones(NK, bool), jnp.zeros(NK, bool)):
            value, gradients = jax.jit(jax.value_and_grad(total))((scale * q, scale * k, v), mask)
            assert jnp.isfinite(value) and all(jnp.isfinite(g).all() for g in gradients)
    assert (read(attention, q, k, v, xq, xk, jnp.zeros(NK, bool)) == 0).all()


def test_random_features_have_the_lengths_of_gaussians_and_are_orthogonal():
    projection = np.asarray(npax.FavorAttention(16, features=160, key=jr.key(0)).projection, np.float64)
    assert abs(np.mean(np.sum(projection**2, axis=1)) / 16 - 1) < 0.1
    for group in np.split(projection, 10):
        gram = group @ group.T
        assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-4
    again = npax.FavorAttention(16, features=160, key=jr.key(0)).redraw(jr.key(1)).projection
    assert not np.allclose(again, projection)


@pytest.mark.parametrize("turned", [False, True])
def test_deep_kernel_attention_is_its_equation(points, turned, getkey):
    q, k, _, xq, xk = points
    z, zc, mask = q[0], k[0], jnp.arange(NK) < 21
    rotary = RotaryCoordinates(1, 6, DX, high=4.0, key=getkey()) if turned else None
    attention = npax.DeepKernelAttention(D, DX, features=6, hidden=8, rotary=rotary, key=getkey())

    def embed(a, x):
        row = attention.phi((a if turned else jnp.concatenate([a, x]))[None])[0]
        if not turned:
            return np.asarray(row, np.float64)
        pairs = np.asarray(row[:3], np.float64) + 1j * np.asarray(row[3:], np.float64)
        return pairs * np.exp(1j * (np.asarray(rotary.w[0], np.float64) @ np.asarray(x, np.float64)))

    truth = np.zeros((NQ, D))
    for i in range(NQ):
        total = sum(
            np.real(np.vdot(embed(z[i], xq[i]), embed(zc[j], xk[j])))
            * np.asarray(attention.psi(zc[j][None])[0], np.float64)
            for j in range(21)
        )
        centred = total / 21 - np.mean(total / 21)
        truth[i] = centred / np.sqrt(np.mean(centred**2) + 1e-5)
    found = jax.jit(lambda: attention.recall(z, xq, attention.memorise(zc, xk, mask)))()
    assert reference.relative(found, truth) < 1e-4


def test_the_memory_of_favor_does_not_grow_with_the_keys(getkey):
    attention = npax.FavorAttention(D, features=16, key=getkey())
    assert memory_sizes(attention, (HEADS, 3, D), (HEADS, 3, D)) == memory_sizes(
        attention, (HEADS, 3000, D), (HEADS, 3000, D)
    )


def test_the_memory_of_deep_kernels_does_not_grow_with_the_context(getkey):
    attention = npax.DeepKernelAttention(D, DX, features=16, key=getkey())
    assert memory_sizes(attention, (3, D)) == memory_sizes(attention, (3000, D))


def memory_sizes(attention, *shapes):
    n = shapes[0][-2]
    remembered = [jax.ShapeDtypeStruct(s, jnp.float32) for s in [*shapes, (n, DX)]]
    memory = jax.eval_shape(attention.memorise, *remembered, jax.ShapeDtypeStruct((n,), bool))
    return [leaf.shape for leaf in jax.tree.leaves(memory)]


def test_favor_refuses_a_pairwise_bias(points):
    q, k, _, xq, xk = points
    attention = npax.FavorAttention(D, key=jr.key(0))
    memory = attention.memorise(k, k, xk, jnp.ones(NK, bool))
    with pytest.raises(ValueError, match="takes no pairwise `bias`"):
        attention.recall(q, xq, memory, npax.GeometricRBFBias(HEADS, key=jr.key(0)))


@pytest.mark.parametrize("part", ["bias", "rotary"])
def test_deep_kernels_refuse_what_the_model_gives_to_heads(part):
    given = {
        "bias": npax.GeometricRBFBias(4, key=jr.key(0)),
        "rotary": npax.RotaryCoordinates(4, 32, DX, key=jr.key(0)),
    }[part]
    with pytest.raises(ValueError, match="`DeepKernelAttention` takes no `bias` and no `rotary` of the model"):
        npax.TNPKR(DX, 1, attention=npax.DeepKernelAttention(64, DX, key=jr.key(0)), **{part: given}, key=jr.key(0))

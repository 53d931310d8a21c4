"""Attention at linear cost against what it stands for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
from laws import MODELS, TINY, finite, normal
from untrained import untrained

import npax
from npax.attention.rotary import RotaryCoordinates

HEADS, NQ, NK, D, DX = 2, 7, 30, 8, 2


@pytest.fixture
def points(getkey):
    shapes = [(HEADS, NQ, D), (HEADS, NK, D), (HEADS, NK, 5), (NQ, DX), (NK, DX)]
    return [normal(getkey(), shape) for shape in shapes]


def as64(*arrays):
    return [np.asarray(a, np.float64) for a in arrays]


@eqx.filter_jit
def read(attention, q, k, v, xq, xk, mask):
    return attention.recall(q, xq, attention.memorise(k, v, xk, mask), None)


def softmax(q, k, v, mask):
    s = np.where(mask, np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(q.shape[-1]), -np.inf)
    return reference.softmax_average(s, np.where(mask[:, None], v, 0))[0]


def test_favor_approaches_softmax_attention_as_features_grow(points, getkey):
    q, k, v, xq, xk = points
    q, k = 0.35 * q, 0.35 * k
    mask = np.arange(NK) < 21
    truth = softmax(*as64(q, k, v), mask)
    error = {
        m: reference.relative(read(npax.FavorAttention(D, features=m, key=getkey()), q, k, v, xq, xk, mask), truth)
        for m in (16, 4096)
    }
    assert error[4096] < 0.1 < error[16]


def test_favor_of_another_head_size_is_refused(points):
    q, k, v, xq, xk = points
    mask = np.ones(NK, bool)
    with pytest.raises(ValueError, match=f"made for a `head_size` of {D + 1}, and the model's is {D}"):
        read(npax.FavorAttention(D + 1, features=4, key=jr.key(0)), q, k, v, xq, xk, mask)


def test_favor_is_finite_at_any_logits(points):
    q, k, v, xq, xk = points
    attention = npax.FavorAttention(D, features=16, key=jr.key(0))

    @jax.jit
    @jax.value_and_grad
    def total(operands, mask):
        q, k, v = operands
        return jnp.sum(attention.recall(q, xq, attention.memorise(k, v, xk, mask), None))

    for scale in (1e-4, 1.0, 30.0, 1e3):
        for mask in (np.ones(NK, bool), np.zeros(NK, bool)):
            assert finite(total((scale * q, scale * k, v), mask))
    assert (np.asarray(read(attention, q, k, v, xq, xk, np.zeros(NK, bool))) == 0).all()


@pytest.mark.parametrize(("turned", "dtype", "size"), [(0, "float32", 12.0), (0, "float16", 2.0), (1, "float16", 2.0)])
@pytest.mark.parametrize("keys", [1, 20])
def test_favor_reads_what_it_estimates_where_logits_are_large(turned, dtype, size, keys, getkey):
    """The same random features in float64, where nothing vanishes; of one key that is not turned, its value."""
    rotary = RotaryCoordinates(HEADS, 8, DX, high=2.0, key=getkey()) if turned else None
    attention = npax.FavorAttention(D, features=8, rotary=rotary, key=getkey())
    shapes = [(size, (HEADS, NQ, D)), (size, (HEADS, keys, D)), (1, (HEADS, keys, D)), (1, (NQ, DX)), (1, (keys, DX))]
    operands = [scale * normal(getkey(), shape) for scale, shape in shapes]
    attention, operands = jax.tree.map(lambda a: a.astype(dtype), (attention, operands))
    found = read(attention, *operands, np.ones(keys, bool))
    q, k, v, xq, xk, w = as64(*operands, attention.projection)
    phi_q, phi_k = (np.exp(a @ w.T * D**-0.25 - 0.5 * D**-0.5 * np.sum(a**2, axis=-1, keepdims=True)) for a in (q, k))
    among = np.einsum("hqm,hkm->hqk", phi_q, phi_k)
    total = among.sum(axis=-1, keepdims=True)
    if turned:  # a pair of features is a complex number
        phi_q, phi_k = (a[..., :4] + 1j * a[..., 4:] for a in (phi_q, phi_k))
        turns = np.exp(1j * np.einsum("hpx,qkx->hqkp", as64(attention.rotary.w)[0], xq[:, None] - xk))
        among = np.real(np.einsum("hqp,hkp,hqkp->hqk", phi_q, phi_k.conj(), turns))
    assert found.dtype == dtype
    assert reference.relative(np.asarray(found, np.float64), among / total @ v) < (2e-2 if dtype == "float16" else 1e-4)


def test_random_features_have_the_lengths_of_gaussians_and_are_orthogonal():
    projection = np.asarray(npax.FavorAttention(16, features=160, key=jr.key(0)).projection, np.float64)
    assert abs(np.mean(np.sum(projection**2, axis=1)) / 16 - 1) < 0.1
    for group in np.split(projection, 10):
        gram = group @ group.T
        assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-4
    again = npax.FavorAttention(16, features=160, key=jr.key(0)).redraw(jr.key(1)).projection
    assert not np.allclose(again, projection)
    short = jax.tree.map(lambda a: a.astype(jnp.bfloat16), npax.FavorAttention(16, key=jr.key(0)))
    assert short.redraw(jr.key(1)).projection.dtype == jnp.bfloat16


def test_random_features_of_a_stack_are_drawn_anew_block_by_block():
    blocks = untrained(MODELS["perf"]).stack.attention.attention
    drawn = np.asarray(blocks.redraw(jr.key(1)).projection)
    assert drawn.shape == blocks.projection.shape and not np.allclose(drawn[0], drawn[1])
    assert not any(np.allclose(new, old) for new, old in zip(drawn, blocks.projection, strict=True))


def off_diagonal(rows):
    """The greatest product of two unit rows."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.abs(rows @ rows.T - np.eye(len(rows))).max()


@pytest.mark.parametrize(
    "make",
    [
        lambda favor, key: npax.TNPKR(2, 1, attention=favor, **TINY, key=key).stack,
        lambda favor, key: npax.TNPD(2, 1, attention=favor, **TINY, key=key).stack,
        lambda favor, key: npax.LBANP(2, 1, attention=favor, **TINY, key=key).mix_stack,
    ],
    ids=["tnp-kr", "tnp-d", "lbanp"],
)
def test_blocks_that_are_given_one_favor_attention_have_draws_of_their_own(make):
    favor = npax.FavorAttention(8, features=8, key=jr.key(0))
    drawn = np.asarray(eqx.filter_jit(make)(favor, jr.key(1)).attention.attention.projection, np.float64)
    assert drawn.shape == (TINY["blocks"], 8, 8)
    assert max(off_diagonal(block) for block in drawn) < 1e-5
    both = np.concatenate(drawn)
    assert off_diagonal(both) > 0.2 and not np.allclose(drawn[0], drawn[1])
    template = np.asarray(favor.projection, np.float64)
    assert not any(np.allclose(block, template, rtol=0.3) for block in drawn)
    noisy = template * (1 + 0.1 * np.random.default_rng(0).normal(size=template.shape))
    assert off_diagonal(template) < 1e-5 < 0.02 < off_diagonal(noisy)  # what noise on them would do


@pytest.mark.parametrize("turned", [False, True])
def test_deep_kernel_attention_is_its_equation(points, turned, getkey):
    q, k, _, xq, xk = points
    z, zc, mask = q[0], k[0], jax.device_put(np.arange(NK) < 21)
    rotary = RotaryCoordinates(1, 6, DX, high=4.0, key=getkey()) if turned else None
    attention = npax.DeepKernelAttention(D, DX, features=6, hidden=8, rotary=rotary, key=getkey())

    def embed(a, x):
        rows, x = as64(eqx.filter_jit(attention.phi)(a if turned else np.concatenate([a, x], axis=1)), x)
        if not turned:
            return rows
        return (rows[:, :3] + 1j * rows[:, 3:]) * np.exp(1j * x @ np.asarray(rotary.w[0], np.float64).T)

    query, key, (value,) = embed(z, xq), embed(zc, xk), as64(eqx.filter_jit(attention.psi)(zc))
    truth = np.zeros((NQ, D))
    for i in range(NQ):
        total = sum(np.real(np.vdot(query[i], key[j])) * value[j] for j in range(21))
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
    memory = eqx.filter_eval_shape(attention.memorise, k, k, xk, np.ones(NK, bool))
    with pytest.raises(ValueError, match="takes no pairwise `bias`"):
        attention.recall(q, xq, memory, npax.GeometricRBFBias(HEADS, key=jr.key(0)))


@pytest.mark.parametrize("part", ["bias", "rotary"])
def test_deep_kernels_refuse_what_the_model_gives_to_heads(part):
    def model(key):
        given = {"bias": npax.GeometricRBFBias(4, key=key), "rotary": npax.RotaryCoordinates(4, 32, DX, key=key)}[part]
        return npax.TNPKR(DX, 1, attention=npax.DeepKernelAttention(64, DX, key=key), **{part: given}, key=key)

    with pytest.raises(ValueError, match="`DeepKernelAttention` takes no `bias` and no `rotary` of the model"):
        eqx.filter_eval_shape(model, jr.key(0))


@pytest.mark.parametrize(("heads", "size"), [(1, 8), (HEADS, 4)])
def test_rotations_of_other_features_or_heads_are_refused(points, heads, size):
    """Of one head, or of a single pair, they were taken for all."""
    _, k, v, _, xk = points
    attention = npax.FavorAttention(
        D, features=8, rotary=npax.RotaryCoordinates(heads, size, DX, key=jr.key(0)), key=jr.key(0)
    )
    with pytest.raises(ValueError, match=f"of {heads} heads of size {size}, and is to turn {HEADS} of size 8"):
        eqx.filter_eval_shape(attention.memorise, k, v, xk, np.ones(NK, bool))


@pytest.mark.parametrize(("heads", "size"), [(4, 8), (1, 2)])
def test_deep_kernels_refuse_rotations_of_other_features_or_heads(heads, size):
    rotary = npax.RotaryCoordinates(heads, size, DX, key=jr.key(0))
    attention = npax.DeepKernelAttention(6, DX, features=8, rotary=rotary, key=jr.key(0))
    with pytest.raises(ValueError, match=f"of {heads} heads of size {size}, and is to turn 1 of size 8"):
        eqx.filter_eval_shape(attention.memorise, np.zeros((5, 6), "f"), np.zeros((5, DX), "f"), np.ones(5, bool))


def test_favor_answers_in_the_precision_of_the_queries(points):
    attention = npax.FavorAttention(D, features=8, key=jr.key(0))
    with jax.enable_x64(), jax.numpy_dtype_promotion("standard"):
        q, k, v, xq, xk = (jnp.asarray(a, jnp.float64) for a in points)
        assert read(attention, q, k, v, xq, xk, jnp.ones(NK, bool)).dtype == jnp.float64

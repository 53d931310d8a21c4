"""TNP-KR against its definition, written out in float64 numpy."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest
import reference
from laws import BIASES, MODELS, TINY, close, draw_data, evaluate

import npax


def as64(a):
    return np.asarray(a, np.float64)


def linear(layer, x):
    return x @ as64(layer.weight) + (0.0 if layer.bias is None else as64(layer.bias))


def mlp(network, x):
    for layer in network.layers[:-1]:
        x = linear(layer, x)
        x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return linear(network.layers[-1], x)


def norm(layer, x):
    centred = x - x.mean(axis=1, keepdims=True)
    return as64(layer.scale) * centred / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) + as64(layer.shift)


def heads(a, n):
    return a.reshape(len(a), n, -1).transpose(1, 0, 2)


def attention(layer, z, zc, bias, mask):
    """Eq. 4: softmax of products and bias, per head."""
    q, k, v = (heads(linear(m, a), layer.heads) for m, a in ((layer.query, z), (layer.key, zc), (layer.value, zc)))
    s = np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(q.shape[-1]) + bias
    read = reference.softmax_average(np.where(mask, s, -np.inf), v)[0]
    return linear(layer.output, read.transpose(1, 0, 2).reshape(len(z), -1))


def tokens(model, x, y, observed):
    """Eq. 2."""
    status = np.broadcast_to(as64(model.embed_observed)[observed], (len(x), model.embed_observed.shape[1]))
    location, value = linear(model.embed_location, as64(x)), linear(model.embed_value, as64(y))
    return mlp(model.co_embed, np.concatenate([status, location, value], axis=1))


def definition(model, data):
    """Algorithm 1, block by block; then the head."""
    qs, ks = tokens(model, data.xt, np.zeros((len(data.xt), model.dy)), 0), tokens(model, data.xc, data.yc, 1)
    arrays, rest = eqx.partition(model.stack, eqx.is_array)
    for i in range(model.blocks):
        block = eqx.combine(jax.tree.map(lambda a, i=i: a[i], arrays), rest)
        q_bias, k_bias = (as64(block.attention.bias(x, data.xc)) for x in (data.xt, data.xc))
        qs_1, ks_1 = norm(block.attention_norm, qs), norm(block.attention_norm, ks)
        qs = qs + attention(block.attention, qs_1, ks_1, q_bias, data.mask)
        ks = ks + attention(block.attention, ks_1, ks_1, k_bias, data.mask)
        qs, ks = (z + mlp(block.feed, norm(block.feed_norm, z)) for z in (qs, ks))
    return mlp(model.head, norm(model.norm, qs))


@pytest.mark.parametrize("seen", [20, 13, 1])
def test_blocks_are_algorithm_1_of_the_paper(seen):
    model = MODELS["locations"](jr.key(3))
    shift = lambda tree: jax.tree.map(lambda a: a + 0.1 if eqx.is_inexact_array(a) else a, tree)  # noqa: E731
    norms = lambda m: (m.norm, m.stack.attention_norm, m.stack.feed_norm)  # noqa: E731
    model = eqx.tree_at(norms, model, shift(norms(model)))  # scales of one and shifts of zero would hide mistakes
    data = draw_data(model, jr.key(4))._replace(mask=np.arange(20) < seen)
    decode = eqx.filter_jit(lambda data: model.decode(model.condition(data.xc, data.yc, data.mask), data.xt))
    truth = definition(model, data)
    assert reference.relative(decode(data), truth) < 2e-5
    assert seen == 20 or reference.relative(decode(data._replace(mask=np.ones(20, bool))), truth) > 1e-3


def test_scan_attention_gives_what_full_attention_gives(getkey):
    """TNP-KR: SA is TNP-KR: Full in other words: the same predictions and gradients, masks included."""
    kinds = {"full": npax.DenseAttention(), "sa": npax.ScanAttention(block=8)}
    full, sa = (
        npax.TNPKR(2, 1, bias=BIASES["rbf-network"], attention=kind, **TINY, key=jr.key(3)) for kind in kinds.values()
    )
    data = draw_data(sa, getkey())._replace(mask=np.arange(20) < 13)
    (a, (d_model, d_data)), (b, (e_model, e_data)) = evaluate(full, data), evaluate(sa, data)
    assert close(a, b) and close(d_data, e_data)
    assert close(jax.tree.leaves(d_model), jax.tree.leaves(e_model))
    moved = eqx.tree_at(lambda m: m.stack.attention.bias, sa, replace_fn=lambda b: jax.tree.map(lambda a: 1.2 * a, b))
    assert not close(evaluate(moved, data)[0], b)

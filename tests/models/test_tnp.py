"""TNP-D against its definition: all tokens together under a mask."""

import equinox as eqx
import jax
import jax.numpy as jnp
from laws import MODELS, close, draw_data


def masked_tnp_d(model, data):
    """The original form (Nguyen and Grover 2022): self-attention over context and targets, which see the context."""
    context = jnp.concatenate([data.xc, data.yc, jnp.ones((len(data.xc), 1))], axis=1)
    targets = jnp.concatenate([data.xt, jnp.zeros((len(data.xt), model.dy + 1))], axis=1)
    z = model.embed(jnp.concatenate([context, targets]))
    seen = jnp.concatenate([data.mask, jnp.zeros(len(data.xt), bool)])
    arrays, rest = eqx.partition(model.stack, eqx.is_array)
    for layer in range(jax.tree.leaves(arrays)[0].shape[0]):
        block = eqx.combine(jax.tree.map(lambda a, layer=layer: a[layer], arrays), rest)
        q, k, v = (f(z).reshape(len(z), block.heads, -1) for f in (block.query, block.key, block.value))
        logits = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
        weights = jax.nn.softmax(jnp.where(seen, logits, -jnp.inf), axis=-1)
        read = jnp.einsum("hqk,khd->qhd", weights, v).reshape(len(z), -1)
        z = block.attention_norm(z + block.output(read))
        z = block.feed_norm(z + block.feed(z))
    return model.head(z[len(data.xc) :])


def test_efficient_queries_equal_the_masked_form(getkey):
    model = MODELS["tnp-d"](getkey())
    data = draw_data(model, getkey())._replace(mask=jnp.arange(20) < 13)
    state = model.condition(data.xc, data.yc, data.mask)
    assert close(model.decode(state, data.xt), masked_tnp_d(model, data))
    everything = data._replace(mask=jnp.ones(20, bool))
    assert not close(model.decode(state, data.xt), masked_tnp_d(model, everything))

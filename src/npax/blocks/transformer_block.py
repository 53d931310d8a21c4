import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..attention._base import AbstractAttention, Memory
from ..bias import AbstractBias
from .heads import join_heads, split_heads
from .mlp import MLP, LayerNorm, Linear


class TransformerBlock(eqx.Module):
    r"""The block of the transformer neural processes (TNP; Nguyen and Grover 2022), normalised after each sum:

    $$z \leftarrow \mathrm{LN}_1(z + \mathrm{Attn}(z, z_c)), \qquad z \leftarrow \mathrm{LN}_2(z + \mathrm{MLP}(z)).$$

    Two verbs, as for `KRBlock`: `memorise` the context's tokens once, then `update` any tokens that read them.

    **Arguments:** `size`: token width; `heads`, `head_size`; `hidden`: feed-forward width; `attention`;
    `bias`: optional.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    attention_norm: LayerNorm
    feed: MLP
    feed_norm: LayerNorm
    attention: AbstractAttention
    bias: AbstractBias | None
    heads: int = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        *,
        heads: int,
        head_size: int,
        hidden: int,
        attention: AbstractAttention,
        bias: AbstractBias | None = None,
        key: PRNGKeyArray,
    ):
        q_key, k_key, v_key, o_key, f_key = jr.split(key, 5)
        inner = heads * head_size
        self.query = Linear(size, inner, use_bias=False, key=q_key)
        self.key = Linear(size, inner, use_bias=False, key=k_key)
        self.value = Linear(size, inner, use_bias=False, key=v_key)
        self.output = Linear(inner, size, key=o_key)
        self.feed = MLP([size, hidden, size], key=f_key)
        self.attention_norm, self.feed_norm = LayerNorm(size), LayerNorm(size)
        self.attention, self.bias, self.heads = attention, bias, heads

    def memorise(self, zc: Float[Array, "nc size"], xc: Float[Array, "nc dx"], mask: Bool[Array, " nc"]) -> Memory:
        """What later updates read of the context tokens `zc`."""
        k, v = (split_heads(a, self.heads) for a in (self.key(zc), self.value(zc)))
        return self.attention.memorise(k, v, xc, mask)

    def update(self, z: Float[Array, "n size"], x: Float[Array, "n dx"], memory: Memory) -> Float[Array, "n size"]:
        """New tokens of points at `x`, each from its own token and the memory."""
        read = self.attention.recall(split_heads(self.query(z), self.heads), x, memory, self.bias)
        z = self.attention_norm(z + self.output(join_heads(read)))
        return self.feed_norm(z + self.feed(z))


def transformer_stack(blocks: int, size: int, *, key: PRNGKeyArray, **shape) -> TransformerBlock:
    """Blocks of one shape, stored as one whose arrays have a leading axis, as `scan_blocks` takes them."""
    return eqx.filter_vmap(lambda key: TransformerBlock(size, **shape, key=key))(jr.split(key, blocks))

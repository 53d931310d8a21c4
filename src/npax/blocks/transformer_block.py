import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..attention._base import AbstractAttention, Memory
from ..attention.favor import redrawn
from ..attention.tokens import TokenAttention
from ..bias import AbstractBias
from ..layers import MLP, LayerNorm


class TransformerBlock(eqx.Module):
    r"""The block of the transformer neural processes (TNP; Nguyen and Grover 2022), normalised after each sum:

    $$z \leftarrow \mathrm{LN}_1(z + \mathrm{Attn}(z, z_c)), \qquad z \leftarrow \mathrm{LN}_2(z + \mathrm{MLP}(z)).$$

    Two verbs, as for `KRBlock`: `memorise` the context's tokens once, then `update` any tokens that read them.

    **Arguments:** `size`: token width; `heads`, `head_size`; `hidden`: feed-forward width; `attention`;
    `bias`: optional.
    """

    attention: TokenAttention
    attention_norm: LayerNorm
    feed: MLP
    feed_norm: LayerNorm

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
        a_key, f_key = jr.split(key)
        self.attention = TokenAttention(
            size, heads=heads, head_size=head_size, attention=attention, bias=bias, key=a_key
        )
        self.feed = MLP([size, hidden, size], key=f_key)
        self.attention_norm, self.feed_norm = LayerNorm(size), LayerNorm(size)

    def memorise(self, zc: Float[Array, "nc size"], xc: Float[Array, "nc dx"], mask: Bool[Array, " nc"]) -> Memory:
        """What later updates read of the context tokens `zc`."""
        return self.attention.memorise(zc, xc, mask)

    def update(self, z: Float[Array, "n size"], x: Float[Array, "n dx"], memory: Memory) -> Float[Array, "n size"]:
        """New tokens of points at `x`, each from its own token and the memory."""
        z = self.attention_norm(z + self.attention.recall(z, x, memory))
        return self.feed_norm(z + self.feed(z))


def transformer_stack(
    blocks: int, size: int, *, attention: AbstractAttention, key: PRNGKeyArray, **shape
) -> TransformerBlock:
    """Blocks of one shape, stored as one whose arrays have a leading axis, as `scan_blocks` takes them; random features
    of `attention` are drawn for each."""

    def block(key):
        own = redrawn(attention, jr.fold_in(key, 2))  # the block splits the key in two
        return TransformerBlock(size, attention=own, **shape, key=key)

    return eqx.filter_vmap(block)(jr.split(key, blocks))

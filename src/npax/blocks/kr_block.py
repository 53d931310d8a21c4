import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..attention._base import AbstractAttention, Memory
from ..attention.favor import redrawn
from ..attention.tokens import AbstractTokenAttention, TokenAttention
from ..layers import MLP, LayerNorm, standardise


class KRBlock(eqx.Module):
    r"""Kernel regression block (KR2, Alg. 1; KR1, Alg. 2): pre-norm attention and feed-forward, shared by both sets.

    Targets and context pass through the *same* weights and read from the same place, the normalised context:

    $$z \leftarrow z + \mathrm{Attn}(\mathrm{LN}_1 z,\ \mathrm{LN}_1 z_c), \qquad
      z \leftarrow z + \mathrm{MLP}(\mathrm{LN}_2 z).$$

    Without the algorithms' dropout. So one method updates either: `memorise` the context once, then `update` the
    context itself and any targets.

    **Arguments:** `size`: token width; `attention`: how tokens of that width read; `hidden`: feed-forward width.
    """

    attention_norm: LayerNorm
    attention: AbstractTokenAttention
    feed_norm: LayerNorm
    feed: MLP

    def __init__(self, size: int, attention: AbstractTokenAttention, *, hidden: int, key: PRNGKeyArray):
        self.attention_norm, self.feed_norm = LayerNorm(size), LayerNorm(size)
        self.attention, self.feed = attention, MLP([size, hidden, size], key=key)

    def memorise(self, zc: Float[Array, "nc size"], xc: Float[Array, "nc dx"], mask: Bool[Array, " nc"]) -> Memory:
        """What later updates read of the context tokens `zc`."""
        return self._attention().memorise(standardise(zc), xc, mask)

    def update(self, z: Float[Array, "n size"], x: Float[Array, "n dx"], memory: Memory) -> Float[Array, "n size"]:
        """New tokens of points at `x` (context or targets), each from its own token and the memory."""
        z = z + self._attention().recall(standardise(z), x, memory)
        return z + self.feed.behind(self.feed_norm)(standardise(z))

    def _attention(self):
        return self.attention.behind(self.attention_norm)


def kr_stack(
    blocks: int,
    size: int,
    *,
    heads: int,
    head_size: int,
    hidden: int,
    attention: AbstractAttention,
    key: PRNGKeyArray,
) -> KRBlock:
    """Blocks of one shape that read by multi-head attention, stacked as `scan_blocks` takes them; random features of
    `attention` are drawn for each."""

    def block(key):
        read_key, feed_key = jr.split(key)
        own = redrawn(attention, jr.fold_in(key, 2))
        reads = TokenAttention(size, heads=heads, head_size=head_size, attention=own, key=read_key)
        return KRBlock(size, reads, hidden=hidden, key=feed_key)

    return eqx.filter_vmap(block)(jr.split(key, blocks))

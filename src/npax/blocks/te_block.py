from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..attention.translation_equivariant import translation_equivariant_attention
from ..layers import MLP, LayerNorm, Linear, join_heads, split_heads
from .pair_network import PairNetwork
from .stack import scan_blocks


class Located(NamedTuple):
    """What a `TEBlock` keeps of the set that others read: its keys and values, and where they are."""

    k: Float[Array, "heads n d"]
    v: Float[Array, "heads n d"]
    x: Float[Array, "n dx"]
    mask: Bool[Array, " n"]


class TEBlock(eqx.Module):
    r"""Translation equivariant transformer block (TE §3, F.1): pre-norm attention and feed-forward, and a step of the
    locations,

    $$z_n, x_n \leftarrow z_n + \mathrm{Attn}(\mathrm{LN}_1 z_n, \mathrm{LN}_1 z_c;\ x_n - x_c), \quad x_n', \qquad
      z \leftarrow z + \mathrm{MLP}(\mathrm{LN}_2 z).$$

    The feed-forward has one hidden layer, of width `hidden`; TE's has two, of the width of the tokens.

    Two verbs, as for `KRBlock`: `memorise` tokens and locations of one set, then `update` those of any set that
    reads it.

    **Arguments:** `size`: token width; `dx`; `heads`, `head_size`; `hidden`: feed-forward width; `moves`: whether
    locations are updated; `block`: pairs that go through the attention's networks (of width `size`) at a time.
    """

    attention_norm: LayerNorm
    query: Linear
    key: Linear
    value: Linear
    rho: PairNetwork
    phi: PairNetwork | None
    output: Linear
    feed_norm: LayerNorm
    feed: MLP
    heads: int = eqx.field(static=True)
    block: int = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        dx: int,
        *,
        heads: int,
        head_size: int,
        hidden: int,
        moves: bool,
        block: int,
        key: PRNGKeyArray,
    ):
        q_key, k_key, v_key, r_key, p_key, o_key, f_key = jr.split(key, 7)
        inner = heads * head_size
        self.attention_norm, self.feed_norm = LayerNorm(size), LayerNorm(size)
        self.query = Linear(size, inner, use_bias=False, key=q_key)
        self.key = Linear(size, inner, use_bias=False, key=k_key)
        self.value = Linear(size, inner, use_bias=False, key=v_key)
        self.rho = PairNetwork(heads + dx, size, heads, key=r_key)
        self.phi = PairNetwork(heads, size, 1, key=p_key) if moves else None
        self.output = Linear(inner, size, key=o_key)
        self.feed = MLP([size, hidden, size], key=f_key)
        self.heads, self.block = heads, block

    def memorise(self, z: Float[Array, "n size"], x: Float[Array, "n dx"], mask: Bool[Array, " n"]) -> Located:
        """What later updates read of tokens `z` at `x`."""
        z = self.attention_norm(z)
        k, v = (split_heads(a, self.heads) for a in (self.key(z), self.value(z)))
        return Located(k, v, x, mask)

    def update(
        self, z: Float[Array, "n size"], x: Float[Array, "n dx"], memory: Located
    ) -> tuple[Float[Array, "n size"], Float[Array, "n dx"]]:
        """New tokens and locations of points at `x`, each from its own and the memory."""
        q = split_heads(self.query(self.attention_norm(z)), self.heads)
        k, v, xk, mask = memory
        read, x = translation_equivariant_attention(
            q, k, v, self.rho, self.phi, xq=x, xk=xk, mask=mask, block=self.block
        )
        z = z + self.output(join_heads(read))
        return z + self.feed(self.feed_norm(z)), x


def te_stack(blocks: int, size: int, dx: int, *, key: PRNGKeyArray, **shape) -> TEBlock:
    """Blocks of one shape, stored as one whose arrays have a leading axis, as `scan_blocks` takes them."""
    return eqx.filter_vmap(lambda key: TEBlock(size, dx, **shape, key=key))(jr.split(key, blocks))


def read_located(
    stack: TEBlock, last: TEBlock, memories: tuple[Any, Any], token: Float[Array, " size"], x: Float[Array, "n dx"]
) -> Float[Array, "n size"]:
    """The token that all targets start from, at each of the points `x`, after a stack of blocks and one more, each with
    its memory (of the stack, of the last).

    The last block stands apart because nobody asks where it would leave the locations: it has no parameters for that.
    """

    def through(carry, layer):
        block, memory = layer
        return block.update(*carry, memory), None

    z = jnp.broadcast_to(token, (x.shape[0], *token.shape)).astype(jnp.result_type(token, x))
    (z, x), _ = scan_blocks(through, (z, x), (stack, memories[0]))
    return last.update(z, x, memories[1])[0]

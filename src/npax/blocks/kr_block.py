import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..attention._base import AbstractAttention, Memory
from ..attention.rotary import RotaryCoordinates
from ..bias import AbstractBias
from .heads import join_heads, split_heads
from .mlp import MLP, LayerNorm, Linear


class KRBlock(eqx.Module):
    r"""Kernel regression block (KR2, Alg. 1; KR1, Alg. 2): pre-norm attention and feed-forward, shared by both sets.

    Targets and context pass through the *same* weights and read from the same place, the normalised context:

    $$z \leftarrow z + \mathrm{Attn}(\mathrm{LN}_1 z,\ \mathrm{LN}_1 z_c), \qquad
      z \leftarrow z + \mathrm{MLP}(\mathrm{LN}_2 z).$$

    So one method updates either: `memorise` the context once, then `update` the context itself and any targets.

    **Arguments:** `size`: token width; `heads`, `head_size`; `hidden`: feed-forward width; `attention`; `bias`
    (heads of its own) and `rotary`, both optional: how the block sees locations.
    """

    attention_norm: LayerNorm
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    feed_norm: LayerNorm
    feed: MLP
    attention: AbstractAttention
    bias: AbstractBias | None
    rotary: RotaryCoordinates | None
    heads: int = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        *,
        heads: int,
        head_size: int,
        hidden: int,
        attention: AbstractAttention,
        bias: AbstractBias | None,
        rotary: RotaryCoordinates | None,
        key: PRNGKeyArray,
    ):
        q_key, k_key, v_key, o_key, f_key = jr.split(key, 5)
        inner = heads * head_size
        self.attention_norm, self.feed_norm = LayerNorm(size), LayerNorm(size)
        self.query = Linear(size, inner, use_bias=False, key=q_key)
        self.key = Linear(size, inner, use_bias=False, key=k_key)
        self.value = Linear(size, inner, use_bias=False, key=v_key)
        self.output = Linear(inner, size, key=o_key)
        self.feed = MLP([size, hidden, size], key=f_key)
        self.attention, self.bias, self.rotary, self.heads = attention, bias, rotary, heads

    def memorise(self, zc: Float[Array, "nc size"], xc: Float[Array, "nc dx"], mask: Bool[Array, " nc"]) -> Memory:
        """What later updates read of the context tokens `zc`."""
        zc = self.attention_norm(zc)
        k = self._turn(split_heads(self.key(zc), self.heads), xc)
        return self.attention.memorise(k, split_heads(self.value(zc), self.heads), xc, mask)

    def update(self, z: Float[Array, "n size"], x: Float[Array, "n dx"], memory: Memory) -> Float[Array, "n size"]:
        """New tokens of points at `x` (context or targets), each from its own token and the memory."""
        q = self._turn(split_heads(self.query(self.attention_norm(z)), self.heads), x)
        read = self.attention.recall(q, x, memory, self.bias)
        z = z + self.output(join_heads(read))
        return z + self.feed(self.feed_norm(z))

    def _turn(self, a, x):
        return a if self.rotary is None else self.rotary.rotate(a, self.rotary.turns(x))

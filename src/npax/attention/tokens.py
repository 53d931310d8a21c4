import abc

import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..arguments import instance
from ..bias import AbstractBias
from ..layers import LayerNorm, Linear, join_heads, split_heads
from ._base import AbstractAttention, Memory
from .rotary import RotaryCoordinates


class AbstractTokenAttention(eqx.Module):
    """How tokens read from the tokens of the context, with the projections that belong to it.

    Two verbs, as for `AbstractAttention`: `memorise` all that depends on the context alone, `recall` for any tokens.
    """

    @abc.abstractmethod
    def memorise(self, zc: Float[Array, "nc size"], xc: Float[Array, "nc dx"], mask: Bool[Array, " nc"]) -> Memory:
        """What later tokens read of the context tokens `zc` at `xc`; a `False` in `mask` hides one, which is finite all
        the same, as models make them."""

    @abc.abstractmethod
    def recall(self, z: Float[Array, "n size"], x: Float[Array, "n dx"], memory: Memory) -> Float[Array, "n size"]:
        """What the tokens `z` at `x` read."""

    @abc.abstractmethod
    def behind(self, norm: LayerNorm) -> "AbstractTokenAttention":
        """The same with the scale and shift of `norm` inside: it takes tokens that are only standardised."""


class TokenAttention(AbstractTokenAttention):
    """Multi-head attention: linear maps to queries, keys and values, `attention` in every head, a linear map back.

    **Arguments:** `size`: token width; `heads`, `head_size`; `attention`; `bias` (heads of its own) and `rotary`,
    both optional: how the heads see locations.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
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
        attention: AbstractAttention,
        bias: AbstractBias | None = None,
        rotary: RotaryCoordinates | None = None,
        key: PRNGKeyArray,
    ):
        instance(AbstractAttention, attention=attention)
        if bias is not None:
            instance(AbstractBias, bias=bias)
        q_key, k_key, v_key, o_key = jr.split(key, 4)
        inner = heads * head_size
        self.query = Linear(size, inner, use_bias=False, key=q_key)
        self.key = Linear(size, inner, use_bias=False, key=k_key)
        self.value = Linear(size, inner, use_bias=False, key=v_key)
        self.output = Linear(inner, size, key=o_key)
        self.attention, self.bias, self.rotary, self.heads = attention, bias, rotary, heads

    def memorise(self, zc, xc, mask):
        k = self._turn(split_heads(self.key(zc), self.heads), xc)
        return self.attention.memorise(k, split_heads(self.value(zc), self.heads), xc, mask)

    def recall(self, z, x, memory):
        q = self._turn(split_heads(self.query(z), self.heads), x)
        read = self.attention.recall(q, x, memory, self.bias)
        if getattr(read, "shape", None) != q.shape:  # values are as wide as queries
            raise ValueError(
                f"`recall` of {type(self.attention).__name__} must return the values that the queries read, [heads, "
                f"nq, dv], here {[*q.shape]}; got {[*read.shape] if eqx.is_array(read) else type(read).__name__}."
            )
        return self.output(join_heads(read))

    def behind(self, norm):
        maps = tuple(norm.before(linear) for linear in (self.query, self.key, self.value))
        return eqx.tree_at(lambda m: (m.query, m.key, m.value), self, maps)

    def _turn(self, a, x):
        return a if self.rotary is None else self.rotary.turned(a, x)

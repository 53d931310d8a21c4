"""Cross-attention of attentive neural processes (ANP §2.2): how a target reads the representations of the context."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..attention.dense import scores, softmax
from ..attention.scan import scan_attention
from ..bias import AbstractBias
from ..layers import MLP, Linear, ReLU, join_heads, masked_mean, split_heads


class AbstractCrossAttention(eqx.Module):
    r"""A weighted mean of the context's representations at each target, $r(x_t) = \sum_i w_i(x_t, x_c)\, r_i$.

    The weights come from locations alone. A `False` in `mask` hides a context point; without any the mean is zero.
    """

    @abc.abstractmethod
    def memorise(self, xc: Float[Array, "nc dx"], r: Float[Array, "nc size"], mask: Bool[Array, " nc"]) -> Any:
        """Everything that targets need of the context."""

    @abc.abstractmethod
    def read(self, memory: Any, xt: Float[Array, "nt dx"]) -> Float[Array, "#nt size"]:
        """The representation of each target; one row if all have the same."""


class UniformAttention(AbstractCrossAttention):
    """All context points weigh the same, wherever the target: the mean of CNP and NP. Memory O(1) in the context."""

    def memorise(self, xc, r, mask):
        return masked_mean(r, mask)

    def read(self, memory, xt):
        return memory[None]


class LaplaceAttention(AbstractCrossAttention):
    r"""Weights $\propto \exp(-\lVert x_t - x_i \rVert_1 / l)$: a kernel average, without parameters.

    **Arguments:** `scale`: the length $l$, in the units of the coordinates (ANP: 1).
    """

    scale: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if not self.scale > 0:
            raise ValueError(f"`scale` must be positive, got {self.scale}.")

    def memorise(self, xc, r, mask):
        return xc, r, mask

    def read(self, memory, xt):
        xc, r, mask = memory
        q, k = (jnp.zeros((1, n, 1), r.dtype) for n in (xt.shape[0], xc.shape[0]))
        bias = _LaplaceBias(self.scale)
        return scan_attention(q, k, r[None], bias=bias, xq=xt, xk=xc, mask=mask)[0]


class _LaplaceBias(AbstractBias):
    scale: float = eqx.field(static=True)

    def __call__(self, xq, xk):
        return -jnp.sum(jnp.abs(xq[:, None] - xk[None]), axis=-1)[None] / self.scale


class DotProductAttention(AbstractCrossAttention):
    r"""Weights $\mathrm{softmax}(e(x_t)^\top e(x_i) / \sqrt d)$ with an MLP $e$ on locations."""

    embed: MLP

    def __init__(self, dx: int, size: int, *, key: PRNGKeyArray):
        self.embed = MLP([dx, size, size], activation=ReLU(), locations=slice(0, dx), key=key)

    def memorise(self, xc, r, mask):
        return self.embed(xc)[None], r[None], mask

    def read(self, memory, xt):
        k, r, mask = memory
        return scan_attention(self.embed(xt)[None], k, r, mask=mask)[0]


class MultiHeadAttention(AbstractCrossAttention):
    r"""As `DotProductAttention` with several heads, each with projections of its own of embedded locations and of
    representations, joined by a linear map. **Good values:** 8 heads (ANP)."""

    embed: MLP
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    heads: int = eqx.field(static=True)

    def __init__(self, dx: int, size: int, *, heads: int = 8, key: PRNGKeyArray):
        if heads < 1 or size % heads:
            raise ValueError(f"`heads` must divide `size`, got heads={heads}, size={size}.")
        keys = jr.split(key, 5)
        self.embed = MLP([dx, size, size], activation=ReLU(), locations=slice(0, dx), key=keys[0])
        self.query, self.key, self.value = (Linear(size, size, use_bias=False, key=k) for k in keys[1:4])
        self.output, self.heads = Linear(size, size, use_bias=False, key=keys[4]), heads

    def memorise(self, xc, r, mask):
        return self._keys(xc), split_heads(self.value(r), self.heads), mask

    def read(self, memory, xt):
        k, v, mask = memory
        return self.output(join_heads(scan_attention(self._queries(xt), k, v, mask=mask)))

    def weights(
        self, xc: Float[Array, "nc dx"], xt: Float[Array, "nt dx"], mask: Bool[Array, " nc"] | None = None
    ) -> Float[Array, "heads nt nc"]:
        """How much each target reads of each context point, per head: what attention maps show."""
        return softmax(scores(self._queries(xt), self._keys(xc), None, mask))

    def _queries(self, xt):
        return split_heads(self.embed.then(self.query)(xt), self.heads)

    def _keys(self, xc):
        return split_heads(self.embed.then(self.key)(xc), self.heads)

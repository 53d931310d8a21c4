from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..arguments import whole_number
from ..layers import MLP, LayerNorm
from .linear import read, totals
from .rotary import RotaryCoordinates
from .tokens import AbstractTokenAttention


class KernelSums(NamedTuple):
    """What is kept of the keys where features are not turned: all that the hidden layer of a query is multiplied by."""

    values: Float[Array, "hidden+1 size"]
    number: Float[Array, ""]


class DeepKernelAttention(AbstractTokenAttention):
    r"""Deep kernel attention (DKA; KR2 §3.4, eq. 9): a learned kernel of low rank in the place of the softmax,

    $$\omega_i = \phi(z, s)^\top \phi(z_i, s_i), \qquad
      o = \mathrm{LN}\Bigl(\frac1n \sum_i \omega_i\, \psi(z_i)\Bigr),$$

    with one MLP $\phi$ for queries and keys and another, $\psi$, for values. They are the projections: they take
    whole tokens, and there are no others. The locations $s$ go into $\phi$, which so learns a distance bias of its
    own. Dividing by the number n of keys that count, which the paper leaves to the LayerNorm, keeps the scale of
    its input.

    With `rotary` locations stay out of $\phi$, whose outputs are turned by them instead: the kernel then depends on
    differences only, and a model without locations in its tokens is translation equivariant.

    **Arguments:** `size`: token width; `dx`: columns of the locations; `features`: rank of the kernel; `hidden`:
    width inside the MLPs; `rotary`: optional, of one head of size `features`.
    **Cost:** O((nq + nk) hidden size); the memory `[hidden+1 size]` does not grow with the keys. The last map of
    $\phi$ is linear, so that a token's features need not be formed: it is part of the memory (with `rotary` it is not,
    which costs (nq + nk) features (hidden + size) more). Tokens that see no key read the shift of the LayerNorm.
    """

    phi: MLP
    psi: MLP
    norm: LayerNorm
    rotary: RotaryCoordinates | None

    def __init__(
        self,
        size: int,
        dx: int,
        *,
        features: int = 128,
        hidden: int = 128,
        rotary: RotaryCoordinates | None = None,
        key: PRNGKeyArray,
    ):
        whole_number(1, size=size, dx=dx, features=features, hidden=hidden)
        phi_key, psi_key = jr.split(key)
        self.phi = MLP([size + (dx if rotary is None else 0), hidden, features], key=phi_key)
        self.psi = MLP([size, hidden, size], key=psi_key)
        self.norm, self.rotary = LayerNorm(size), rotary

    def memorise(self, zc, xc, mask):
        values = jnp.where(mask[:, None], self.psi(zc), 0.0)
        if self.rotary is not None:
            xc = jnp.where(mask[:, None], xc, 0.0)
            return totals(self.phi(zc)[None], values[None], xc, mask, self.rotary)
        hidden = jnp.where(mask[:, None], self.phi.hidden(zc, xc), 0.0)
        sums = jnp.concatenate([hidden.T @ values, jnp.sum(values, axis=0, keepdims=True)])
        return KernelSums(self._kernel() @ sums, jnp.sum(mask.astype(values.dtype)))

    def recall(self, z, x, memory):
        if self.rotary is not None:
            total = read(self.phi(z)[None], x, memory, self.rotary)[0]
        else:
            total = self.phi.hidden(z, x) @ memory.values[:-1] + memory.values[-1]
        return self.norm(total / jnp.maximum(memory.number, 1.0))

    def behind(self, norm):
        return eqx.tree_at(lambda m: (m.phi, m.psi), self, (self.phi.behind(norm), self.psi.behind(norm)))

    def _kernel(self):
        r"""$\omega$ as a form in the hidden layer of $\phi$ and a one beside it: `[hidden+1 hidden+1]`."""
        last = self.phi.layers[-1]
        w = jnp.concatenate([last.weight, last.offset[None]])
        return w @ w.T

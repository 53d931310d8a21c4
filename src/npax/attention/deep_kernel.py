import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from ..blocks.mlp import MLP, LayerNorm
from ._base import AbstractAttention
from .dense import hide
from .linear import Totals, read, totals
from .rotary import RotaryCoordinates


class DeepKernelAttention(AbstractAttention):
    r"""Deep kernel attention (DKA; KR2 §3.4, eq. 9): a learned kernel of low rank in the place of the softmax,

    $$\omega_i = \phi(q, s_q)^\top \phi(k_i, s_i), \qquad
      o = \mathrm{LN}\Bigl(\frac1n \sum_i \omega_i\, \psi(v_i)\Bigr),$$

    with one MLP $\phi$ for queries and keys and another, $\psi$, for values; all heads share them. The locations $s$
    go into $\phi$, which so learns a distance bias of its own. Dividing by the number n of keys that count, which
    the paper leaves to the LayerNorm, keeps the scale of its input.

    With `rotary` locations stay out of $\phi$, whose outputs are turned by them instead: the kernel then depends on
    differences only, and a model without locations in its tokens is translation equivariant.

    **Arguments:** `head_size`: width of queries, keys and values; `dx`: columns of the locations; `features`: rank
    of the kernel; `hidden`: width inside the MLPs; `rotary`: optional, of size `features`.
    **Cost:** O((nq + nk) features head_size); the memory does not grow with the keys. Queries that see no key read
    the shift of the LayerNorm. **Pitfalls:** takes no pairwise bias.
    """

    phi: MLP
    psi: MLP
    norm: LayerNorm
    rotary: RotaryCoordinates | None

    def __init__(
        self,
        head_size: int,
        dx: int,
        *,
        features: int = 32,
        hidden: int = 32,
        rotary: RotaryCoordinates | None = None,
        key: PRNGKeyArray,
    ):
        if min(head_size, dx, features, hidden) < 1:
            raise ValueError(
                "`head_size`, `dx`, `features` and `hidden` must be at least 1, "
                f"got {head_size}, {dx}, {features} and {hidden}."
            )
        phi_key, psi_key = jr.split(key)
        self.phi = MLP([head_size + (dx if rotary is None else 0), hidden, features], key=phi_key)
        self.psi = MLP([head_size, hidden, head_size], key=psi_key)
        self.norm, self.rotary = LayerNorm(head_size), rotary

    def memorise(self, k, v, xk, mask):
        k, v, _ = hide(mask, k, v, None)
        xk = jnp.where(mask[:, None], xk, 0.0)
        return totals(self._embed(k, xk), _rows(self.psi, v), xk, mask, self.rotary)

    def recall(self, q, xq, memory: Totals, bias):
        if bias is not None:
            raise ValueError("`DeepKernelAttention` takes no pairwise `bias`: its cost is linear. Use `rotary`.")
        return self.norm(read(self._embed(q, xq), xq, memory, self.rotary) / jnp.maximum(memory.number, 1.0))

    def _embed(self, a, x):
        """`[heads n features]`."""
        if self.rotary is None:
            a = jnp.concatenate([a, jnp.broadcast_to(x, (a.shape[0], *x.shape))], axis=-1)
        return _rows(self.phi, a)


def _rows(mlp, a):
    """The MLP on each row of each head."""
    heads, n, size = a.shape
    out = mlp(a.reshape(heads * n, size))
    return out.reshape(heads, n, out.shape[1])

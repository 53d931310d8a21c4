from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..arguments import whole_number
from ._base import AbstractAttention
from .dense import hide, widened
from .linear import Totals, read, totals
from .rotary import RotaryCoordinates

M = TypeVar("M")


class FavorMemory(NamedTuple):
    """What is kept of the keys: totals, each feature divided by its greatest value, and the exponents of these."""

    totals: Totals
    top: Float[Array, "heads features"]


class FavorAttention(AbstractAttention):
    r"""Performer attention, FAVOR+ (Choromanski et al. 2021): softmax attention at linear cost, by random features.

    The exponential of a product is an expectation over Gaussian $w$, of positive functions of either side,

    $$e^{q^\top k} = \mathbb E_w\bigl[e^{w^\top q - \|q\|^2/2}\; e^{w^\top k - \|k\|^2/2}\bigr],$$

    so with $m$ draws of $w$ all keys are summed up in one `[m d]` matrix before any query is seen. The draws of a
    group of d are orthogonal, which lowers the variance. Maxima are subtracted from the exponents, over the keys for
    each feature, which is kept and given back to the queries, and then for each query: nothing overflows, and what a
    query reads does not vanish where other features of the keys are much larger. Operands of 16 bits are computed with
    in float32.

    With `rotary`, the features of queries and keys are turned by their locations in the numerator (not in the
    denominator, which stays positive): what is read depends on differences of locations only, exactly.

    **Arguments:** `head_size`: d; `features`: m; `rotary`: optional, of as many heads as the model has, of size
    `features`.
    **Cost:** O((nq + nk) m d); the memory `[heads m d+1]` does not grow with the keys.
    **Good values:** 64 to 128 features. **Pitfalls:** takes no pairwise bias. The error grows with the size of the
    logits; the draws are not trained: `redraw` gives new ones. Each block of a model that is given one has draws of its
    own. Weight decay would shrink them, if not that of `npax.training`'s optimisers, which spares them: mask
    `projection` in others'.
    """

    projection: Float[Array, "features d"]
    rotary: RotaryCoordinates | None

    def __init__(
        self, head_size: int, *, features: int = 64, rotary: RotaryCoordinates | None = None, key: PRNGKeyArray
    ):
        whole_number(1, head_size=head_size, features=features)
        self.projection = _orthogonal(key, features, head_size)
        self.rotary = rotary

    def redraw(self, key: PRNGKeyArray) -> "FavorAttention":
        """The same attention with new random features; of the blocks of a stack, each its own."""
        if self.projection.ndim > 2:
            return eqx.filter_vmap(FavorAttention.redraw)(self, jr.split(key, self.projection.shape[0]))
        features, head_size = self.projection.shape
        new = FavorAttention(head_size, features=features, rotary=self.rotary, key=key)
        return eqx.tree_at(lambda a: a.projection, new, new.projection.astype(self.projection.dtype))

    def memorise(self, k, v, xk, mask):
        self, k, v, xk = widened((self, k, v, xk))
        k, v, xk = hide(mask, k, v, xk)
        half = 0.5 * k.shape[-1] ** -0.5 * jnp.sum(jnp.square(k), axis=-1, keepdims=True)
        exponent = self._exponent(k) - jnp.where(mask[:, None], half, jnp.inf)
        top = self._greatest(exponent)
        return FavorMemory(totals(jnp.exp(exponent - top[:, None]), v, xk, mask, self.rotary), top)

    def recall(self, q, xq, memory: FavorMemory, bias):
        if bias is not None:
            raise ValueError("`FavorAttention` takes no pairwise `bias`: its cost is linear. Use `rotary`.")
        dtype = q.dtype
        wide, q, xq, memory = widened((self, q, xq, memory))
        exponent = wide._exponent(q) + memory.top[:, None]
        phi = jnp.exp(exponent - jax.lax.stop_gradient(jnp.max(exponent, axis=2, keepdims=True)))
        total = jnp.einsum("hqm,hm->hq", phi, memory.totals.weights)[..., None]
        seen = total > jnp.finfo(total.dtype).tiny ** 0.5  # smaller totals would overflow in the gradient
        phi = phi * jnp.where(seen, 1.0 / jnp.where(seen, total, 1.0), 0.0)
        return read(phi, xq, memory.totals, wide.rotary).astype(dtype)

    def _greatest(self, exponent):
        """Over the keys, `[heads features]`; one for both features of a pair that is turned; zero without any key."""
        top = jax.lax.stop_gradient(jnp.max(exponent, axis=1, initial=-jnp.inf))
        if self.rotary is not None:
            top = jnp.tile(jnp.maximum(*jnp.split(top, 2, axis=-1)), 2)
        return jnp.where(jnp.isfinite(top), top, 0.0)

    def _exponent(self, a):
        r"""$w^\top a$ with the scale of the softmax: `[heads n features]`."""
        if a.shape[-1] != self.projection.shape[-1]:
            raise ValueError(
                f"`FavorAttention` was made for a `head_size` of {self.projection.shape[-1]}, and the model's is "
                f"{a.shape[-1]}: make both the same."
            )
        return a @ (a.shape[-1] ** -0.25 * jax.lax.stop_gradient(self.projection).T)


def redrawn(attention: M, key: PRNGKeyArray) -> M:
    """With new random features for a `FavorAttention`, also for one inside; all else as it is."""
    favor = lambda a: isinstance(a, FavorAttention)  # noqa: E731
    return jax.tree.map(lambda a: a.redraw(key) if favor(a) else a, attention, is_leaf=favor)


def _orthogonal(key, features, size):
    """Gaussian rows, orthogonal within each group of `size`: `[features size]`."""
    direction_key, length_key = jr.split(key)
    groups = [_rotation(k, size) for k in jr.split(direction_key, -(-features // size))]
    lengths = jnp.linalg.norm(jr.normal(length_key, (features, size)), axis=1)
    return lengths[:, None] * jnp.concatenate(groups)[:features]


def _rotation(key, size):
    """Uniform among the orthogonal matrices: the sign that the factorisation leaves open is settled."""
    q, r = jnp.linalg.qr(jr.normal(key, (size, size)))
    return q * jnp.sign(jnp.diagonal(r))

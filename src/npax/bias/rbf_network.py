import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ._base import AbstractBias
from .distance import distance


class RBFNetworkBias(AbstractBias):
    r"""TISA's radial basis function network on the distance $r = \lVert x_q - x_k \rVert$, one per head:

    $$B_h(x_q, x_k) = \sum_{s=1}^{S} a_{hs} \exp(-|b_{hs}| (r - c_{hs})^2).$$

    The bias of TNP-KR's experiments (KR2 §4; Wennberg & Henter 2021), invariant to translations and rotations.
    Basis functions that start equal receive equal gradients and stay equal, so they start **apart**: sharpness $b$
    spread geometrically from 1 to 256, centres at 0, amplitudes drawn at random.

    **Good values:** `bases=5`; coordinates scaled to about [-2, 2].
    **Cost:** one exponential per pair, head and basis; `GeometricRBFBias` needs one per pair.
    """

    a: Float[Array, "heads bases"]
    b: Float[Array, "heads bases"]
    c: Float[Array, "heads bases"]

    def __init__(self, heads: int, *, bases: int = 5, key: PRNGKeyArray):
        self.a = 0.5 * jr.normal(key, (heads, bases))
        self.b = jnp.broadcast_to(jnp.geomspace(1.0, 256.0, bases), (heads, bases))
        self.c = jnp.zeros((heads, bases))

    def __call__(self, xq, xk):
        r = distance(xq, xk)[None]
        a, b, c = (p[:, :, None, None] for p in (self.a, jnp.abs(self.b), self.c))
        bases = (a[:, s] * jnp.exp(-b[:, s] * jnp.square(r - c[:, s])) for s in range(self.a.shape[1]))
        return sum(bases, start=jnp.zeros((self.a.shape[0], *r.shape[1:]), r.dtype))

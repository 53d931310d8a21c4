import jax
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
        return _network(self.a, self.b, self.c, distance(xq, xk))


@jax.custom_vjp
def _network(a, b, c, r: Float[Array, "nq nk"]) -> Float[Array, "heads nq nk"]:
    total = jnp.zeros((a.shape[0], *r.shape), r.dtype)
    for a_s, b_s, c_s in _bases(a, b, c):
        total = total + a_s * jnp.exp(-jnp.abs(b_s) * jnp.square(r - c_s))
    return total


def _bases(a, b, c):
    """The parameters of each basis, `[heads 1 1]` each: a sum of fused terms, with no axis of bases to reduce."""
    return zip(*(jnp.moveaxis(p, 1, 0)[:, :, None, None] for p in (a, b, c)), strict=True)


def _network_fwd(a, b, c, r):
    return _network(a, b, c, r), (a, b, c, r)


def _network_bwd(residuals, d_out):
    r"""All gradients are moments of $w = \dot B e^{-|b| u^2}$ in $u = r - c$; recomputing $w$ beats storing it."""
    a, b, c, r = residuals
    d_a, d_b, d_c, d_r = [], [], [], jnp.zeros_like(r)
    for a_s, b_s, c_s in _bases(a, b, c):
        u = r - c_s
        w = d_out * jnp.exp(-jnp.abs(b_s) * jnp.square(u))
        slope = 2 * a_s * jnp.abs(b_s) * w * u
        d_a.append(jnp.sum(w, axis=(1, 2)))
        d_b.append(-a_s[:, 0, 0] * jnp.sign(b_s[:, 0, 0]) * jnp.sum(w * jnp.square(u), axis=(1, 2)))
        d_c.append(jnp.sum(slope, axis=(1, 2)))
        d_r = d_r - jnp.sum(slope, axis=0)
    return *(jnp.stack(d, axis=1) for d in (d_a, d_b, d_c)), d_r


_network.defvjp(_network_fwd, _network_bwd)

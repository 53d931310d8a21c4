import math

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..arguments import whole_number
from ._base import AbstractBias
from .distance import distance
from .exponential import exp2_nonpositive

LOG2_E = math.log2(math.e)


class RBFNetworkBias(AbstractBias):
    r"""TISA's radial basis function network on the distance $r = \lVert x_q - x_k \rVert$, one per head:

    $$B_h(x_q, x_k) = \sum_{s=1}^{S} a_{hs} \exp(-|b_{hs}| (r - c_{hs})^2).$$

    The bias of TNP-KR's experiments (KR2 §4; Wennberg & Henter 2021), invariant to translations and rotations.
    Basis functions that start equal receive equal gradients and stay equal, so they start **apart**: sharpness $b$
    spread geometrically from 1 to 256, centres at 0, amplitudes drawn at random.

    **Good values:** `bases=5`; coordinates scaled to about [-2, 2].
    **Cost:** one exponential per pair, head and basis; `GeometricRBFBias` needs one per pair.
    **Pitfall:** derivatives are of reverse mode.
    """

    a: Float[Array, "heads bases"]
    b: Float[Array, "heads bases"]
    c: Float[Array, "heads bases"]

    def __init__(self, heads: int, *, bases: int = 5, key: PRNGKeyArray):
        whole_number(1, heads=heads, bases=bases)
        self.a = 0.5 * jr.normal(key, (heads, bases))
        self.b = jnp.broadcast_to(jnp.geomspace(1.0, 256.0, bases), (heads, bases))
        self.c = jnp.zeros((heads, bases))

    def __call__(self, xq, xk):
        # The barrier keeps XLA from computing the distance again for every head and basis.
        return _network(self.a, self.b, self.c, jax.lax.optimization_barrier(distance(xq, xk)))


@jax.custom_vjp
def _network(a, b, c, r: Float[Array, "nq nk"]) -> Float[Array, "heads nq nk"]:
    def head(parameters):
        terms = [a_s * _basis(b_s, r - c_s) for a_s, b_s, c_s in zip(*parameters, strict=True)]
        return sum(terms[1:], start=terms[0])

    # One head after another: with scalar parameters XLA's CPU backend vectorises the exponentials, 7 times faster. In
    # Python, since a loop of XLA's takes nearly twice as long (backward it is the other way round).
    return jnp.stack([head(parameters) for parameters in zip(a, b, c, strict=True)])


def _basis(b, u):
    return exp2_nonpositive(-LOG2_E * jnp.abs(b) * jnp.square(u))


def _network_fwd(a, b, c, r):
    # Not the arguments themselves: JAX (0.10) takes one of them for another in second derivatives within a loop.
    return _network(a, b, c, r), jax.lax.optimization_barrier((a, b, c, r))


def _network_bwd(residuals, d_out):
    r"""All gradients are moments of $w = \dot B e^{-|b| u^2}$ in $u = r - c$; recomputing $w$ beats storing it."""
    a, b, c, r = residuals

    def head(d_r, part):
        d_out, *parameters = part
        moments = []
        for a_s, b_s, c_s in zip(*parameters, strict=True):
            u = r - c_s
            w = d_out * _basis(b_s, u)
            first = w * u
            d_r = d_r - 2 * a_s * jnp.abs(b_s) * first
            moments.append(jnp.stack([jnp.sum(w), jnp.sum(first), jnp.sum(first * u)]))
        return d_r, jnp.stack(moments, axis=1)

    d_r, moments = jax.lax.scan(head, jnp.zeros(r.shape, jnp.result_type(r, a)), (d_out, a, b, c))
    zeroth, first, second = jnp.moveaxis(moments, 1, 0)
    gradients = zeroth, -a * jnp.sign(b) * second, 2 * a * jnp.abs(b) * first
    return *(g.astype(p.dtype) for g, p in zip(gradients, (a, b, c), strict=True)), d_r.astype(r.dtype)


_network.defvjp(_network_fwd, _network_bwd)

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..arguments import whole_number
from ._base import AbstractBias
from .distance import squared_distance

RUNGS = 3
"""Bases made from one exponential."""


class GeometricRBFBias(AbstractBias):
    r"""Squared-exponential bases whose sharpness grows by a factor of four, mixed by each head:

    $$B_h(x_q, x_k) = \sum_{s=0}^{S-1} a_{hs} f_s, \qquad f_0 = \exp(-b r^2), \quad f_{s+1} = f_s^4.$$

    The RBF network of TISA with centres at 0 and tied widths. The ladder needs one exponential per *pair* for three
    bases, not one per pair, head and basis. Roundings grow fourfold with each rung, so every third one is an
    exponential of its own: errors stay below $10^{-6}$ in float32.

    **Good values:** `bases=6`, `sharpness=0.25`: widths from 1.4 down to 0.04 for coordinates in [-2, 2].
    **Pitfalls:** gradients are of reverse mode; second derivatives by `jax.jacrev(jax.grad(...))`, not `jax.hessian`
    (for which take a `KernelBias`).
    """

    a: Float[Array, "heads bases"]
    sharpness: float = eqx.field(static=True)

    def __init__(self, heads: int, *, bases: int = 6, sharpness: float = 0.25, key: PRNGKeyArray):
        whole_number(1, heads=heads, bases=bases)
        if not 0 < sharpness < math.inf:
            raise ValueError(f"`sharpness` must be positive and finite, got {sharpness}.")
        self.a = 0.5 * jr.normal(key, (heads, bases))
        self.sharpness = float(sharpness)

    def __call__(self, xq, xk):
        r2 = squared_distance(xq, xk)
        anchors = [jnp.exp(-self.sharpness * 4.0**s * r2) for s in range(0, self.a.shape[1], RUNGS)]
        # The barrier keeps XLA from computing the exponentials again for every head.
        return _mix(self.a, jax.lax.optimization_barrier(anchors))


def ladder(anchors):
    """Every rung, each made from the one below or from an exponential of its own."""
    for f in anchors:
        for _ in range(RUNGS):
            yield f
            f = jnp.square(jnp.square(f))


@jax.custom_vjp
def _mix(a: Float[Array, "heads bases"], anchors: list[Float[Array, "nq nk"]]) -> Float[Array, "heads nq nk"]:
    r"""$\sum_s a_{hs} f_s$. The rungs are made anew for every head: cheaper than an array of them all."""
    heads, bases = a.shape
    rungs = ladder([jnp.broadcast_to(f, (heads, *f.shape)) for f in anchors])
    terms = [a[:, s, None, None] * f for s, f in zip(range(bases), rungs, strict=False)]
    return sum(terms[1:], start=terms[0])


def _mix_fwd(a, anchors):
    return _mix(a, anchors), (a, anchors)


def _mix_bwd(residuals, d_out):
    a, anchors = residuals
    rungs = [f for _, f in zip(range(a.shape[1]), ladder(anchors), strict=False)]
    flat = jnp.stack([f.reshape(-1) for f in rungs])
    d_a = jnp.matmul(d_out.reshape(a.shape[0], -1), flat.T, precision="highest")
    # df_s / df = n f^(n-1) without a division: each rung's slope is 4 f_(s-1)^3 times that of the rung below.
    d_anchors = [jnp.zeros_like(f) for f in anchors]
    slope = jnp.ones_like(anchors[0])
    for s in range(len(rungs)):
        below = rungs[s - 1]
        slope = jnp.ones_like(below) if s % RUNGS == 0 else 4 * below * jnp.square(below) * slope
        d_anchors[s // RUNGS] += jnp.einsum("h,hqk->qk", a[:, s], d_out) * slope
    return d_a.astype(a.dtype), [d.astype(f.dtype) for d, f in zip(d_anchors, anchors, strict=True)]


_mix.defvjp(_mix_fwd, _mix_bwd)

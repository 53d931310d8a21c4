"""Distributions over kernels: each draws a tinygp kernel, or lists kernels with the weights of a quadrature."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy.stats
import tinygp
from jaxtyping import Array, Float, PRNGKeyArray
from tinygp.kernels import Kernel
from tinygp.kernels.distance import Distance


class AbstractKernelPrior(eqx.Module):
    """A distribution over kernels of one family."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray) -> Kernel:
        """One tinygp kernel. Jittable; cheap, since it runs inside training steps."""

    @abc.abstractmethod
    def quadrature(self, nodes: int) -> tuple[Kernel, Float[np.ndarray, " n"]]:
        """Kernels stacked along a leading axis, and weights that sum to one: the integral over the prior."""


class RBFPrior(AbstractKernelPrior):
    r"""$k(r) = \exp(-r^2 / 2 l^2)$ with $l \sim \mathrm{Beta}(3, 7)$ (KR2 §4)."""

    def draw(self, key):
        return rbf(_beta_3_7(key))

    def quadrature(self, nodes):
        scales, weights = _beta_3_7_quadrature(nodes)
        return jax.vmap(rbf)(scales), weights


class Matern32Prior(AbstractKernelPrior):
    r"""$k(r) = (1 + \sqrt 3 r / l) \exp(-\sqrt 3 r / l)$ with $l \sim \mathrm{Beta}(3, 7)$ (KR2 §4)."""

    def draw(self, key):
        return matern32(_beta_3_7(key))

    def quadrature(self, nodes):
        scales, weights = _beta_3_7_quadrature(nodes)
        return jax.vmap(matern32)(scales), weights


class PeriodicPrior(AbstractKernelPrior):
    r"""$k(r) = \exp(-2 \sin^2(\pi r / p) / l^2)$ with $l \sim \mathrm{Beta}(3, 7)$ and $p \sim U(0.5, 2)$ (KR2 §4).

    One coordinate only. The quadrature is a product of `nodes` length scales and `nodes` periods; since the period
    is known to a fraction of a percent after a few dozen observations, a coarse one overstates the uncertainty.
    """

    def draw(self, key):
        scale, period = jr.split(key)
        return periodic(_beta_3_7(scale), jr.uniform(period, minval=0.5, maxval=2.0))

    def quadrature(self, nodes):
        scales, weights = _beta_3_7_quadrature(nodes)
        periods = jnp.asarray(0.5 + 1.5 * (np.arange(nodes) + 0.5) / nodes)
        pairs = [a.ravel() for a in jnp.meshgrid(scales, periods, indexing="ij")]
        return jax.vmap(periodic)(*pairs), np.repeat(weights / nodes, nodes)


class Euclidean(Distance):
    """The L2 distance as a sum over columns, which fuses with the kernel: in two dimensions twice as fast as
    tinygp's reduction over an axis."""

    def squared_distance(self, X1, X2):
        columns = (jnp.square(a - b) for a, b in zip(X1, X2, strict=True))
        return sum(columns, start=jnp.zeros((), X1.dtype))

    def distance(self, X1, X2):
        r2 = self.squared_distance(X1, X2)
        apart = r2 > 0
        return jnp.where(apart, jnp.sqrt(jnp.where(apart, r2, 1.0)), 0.0)


def rbf(scale: Float[Array, ""]) -> Kernel:
    return tinygp.kernels.ExpSquared(scale, Euclidean())


def matern32(scale: Float[Array, ""]) -> Kernel:
    return tinygp.kernels.Matern32(scale, Euclidean())


def periodic(scale: Float[Array, ""], period: Float[Array, ""]) -> Kernel:
    return tinygp.kernels.ExpSineSquared(period, Euclidean(), gamma=2 / jnp.square(scale))


def _beta_3_7(key):
    """A Beta(3, 7) draw from ten exponentials: no rejection loop, which would be slow to compile and to run."""
    e = jr.exponential(key, (10,))
    return jnp.sum(e[:3]) / jnp.sum(e)


def _beta_3_7_quadrature(nodes):
    """Midpoints of equal steps in log l: relative resolution is what the likelihood of a length scale asks for.
    The prior mass outside [0.005, 0.999] is 1e-5."""
    edges = np.linspace(np.log(0.005), np.log(0.999), nodes + 1)
    scales = np.exp((edges[1:] + edges[:-1]) / 2)
    weights = scipy.stats.beta.pdf(scales, 3, 7) * scales
    return jnp.asarray(scales), weights / weights.sum()

"""Distributions over kernels: each draws a tinygp kernel, or lists kernels with the weights of a quadrature."""

import abc
from typing import Any, ClassVar

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

from ..bias.distance import root


class AbstractKernelPrior(eqx.Module):
    """A distribution over kernels of one family.

    **Attributes:** `one_coordinate`: whether its kernels are of a single coordinate, as periodic ones are.
    """

    one_coordinate: ClassVar[bool] = False

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray) -> Kernel:
        """One tinygp kernel. Jittable; cheap, since it runs inside training steps."""

    @abc.abstractmethod
    def quadrature(self, nodes: int) -> tuple[Kernel, Float[np.ndarray, " n"]]:
        """Kernels stacked along a leading axis (of one tinygp kernel, as `jax.vmap(kernel)(scales)` makes it), and
        weights that sum to one: the integral over the prior, for the Bayes floor of `npax.bench`. Training does not
        ask for it: a prior of your own may raise `NotImplementedError` here."""


def check_prior(kernel: Any) -> None:
    """**Raises** `TypeError` for what is no distribution over kernels, such as a kernel."""
    if not isinstance(kernel, AbstractKernelPrior):
        raise TypeError(f"`kernel` must be a prior over kernels, such as npax.tasks.RBFPrior(); got {kernel!r}.")


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
    r"""$k(r) = \exp(-2 \sin^2(\pi r / p) / l^2)$ with $l \sim \mathrm{Beta}(3, 7)$ and $p \sim U(0.5, 2)$ (KR2 §4,
    which prints no formula).

    One coordinate only. The quadrature is a product of `nodes` length scales and `64 nodes` periods, evenly spaced in
    their inverse: a few dozen observations know the frequency to a fraction of a percent, whatever the period.
    """

    one_coordinate = True

    def draw(self, key):
        scale, period = jr.split(key)
        return periodic(_beta_3_7(scale), jr.uniform(period, minval=0.5, maxval=2.0))

    def quadrature(self, nodes):
        scales, weights = _beta_3_7_quadrature(nodes)
        periods, shares = _inverse_quadrature(64 * nodes, 0.5, 2.0, lambda period: np.ones_like(period))
        pairs = [a.ravel() for a in jnp.meshgrid(scales, periods, indexing="ij")]
        return jax.vmap(periodic)(*pairs), np.outer(weights, shares).ravel()


class ScaledRBFPrior(AbstractKernelPrior):
    r"""$k(r) = \sigma_f^2 \exp(-r^2 / 2 l^2)$ with $l$ and $\sigma_f$ uniform (ANP App. B): drawn for each task by
    default, `ScaledRBFPrior((0.6, 0.6), (1.0, 1.0))` for the fixed kernel of that page.

    The quadrature is a product of `nodes` length scales and `nodes` amplitudes.
    """

    scale: tuple[float, float] = eqx.field(static=True, default=(0.1, 0.6))
    amplitude: tuple[float, float] = eqx.field(static=True, default=(0.1, 1.0))

    def __check_init__(self):
        for name, (low, high) in {"scale": self.scale, "amplitude": self.amplitude}.items():
            if not 0 < low <= high < np.inf:
                raise ValueError(f"`{name}` must be (low, high) with 0 < low <= high, got {(low, high)}.")

    def draw(self, key):
        u = jr.uniform(key, (2,))
        (a, b), (c, d) = self.scale, self.amplitude
        return rbf(a + (b - a) * u[0]) * jnp.square(c + (d - c) * u[1])

    def quadrature(self, nodes):
        scales, amplitudes = (
            jnp.asarray(low + (high - low) * (np.arange(nodes) + 0.5) / nodes)
            for low, high in (self.scale, self.amplitude)
        )
        pairs = [a.ravel() for a in jnp.meshgrid(scales, amplitudes, indexing="ij")]
        kernels = jax.vmap(lambda scale, amplitude: rbf(scale) * jnp.square(amplitude))(*pairs)
        return kernels, np.full(nodes**2, 1 / nodes**2)


class RBFPeriodicMatern52Prior(AbstractKernelPrior):
    r"""One of three families, with equal chances, and $\log l \sim U(\log 0.25, \log 4)$ (TE App. F.1):
    $\exp(-r^2 / 2 l^2)$, $\exp(-2 \sin^2(\pi r / l))$, or Matern 5/2 with length scale $l$.

    The periodic family has its period drawn, and the length scale inside of the period is 1. A kernel is the sum of
    the three, each times 0 or 1, so that all draws are of one structure. The quadrature is their union: `nodes`
    scales for each, and `64 nodes` periods, evenly spaced in their inverse.
    """

    one_coordinate = True

    def draw(self, key):
        which, scale = jr.split(key)
        family = jr.randint(which, (), 0, 3)
        return _one_of_three(family, jnp.exp(jr.uniform(scale, minval=jnp.log(0.25), maxval=jnp.log(4.0))))

    def quadrature(self, nodes):
        scales = jnp.asarray(0.25 * 16.0 ** ((np.arange(nodes) + 0.5) / nodes))
        periods, shares = _inverse_quadrature(64 * nodes, 0.25, 4.0, lambda period: 1 / period)
        even = np.full(nodes, 1 / nodes)
        families = jnp.repeat(jnp.arange(3), np.array([nodes, 64 * nodes, nodes]))
        kernels = jax.vmap(_one_of_three)(families, jnp.concatenate([scales, periods, scales]))
        return kernels, np.concatenate([even, shares, even]) / 3


class Euclidean(Distance):
    """The L2 distance as a sum over columns, which fuses with the kernel: in two dimensions twice as fast as
    tinygp's reduction over an axis."""

    def squared_distance(self, X1, X2):
        columns = (jnp.square(a - b) for a, b in zip(X1, X2, strict=True))
        return sum(columns, start=jnp.zeros((), X1.dtype))

    def distance(self, X1, X2):
        return root(self.squared_distance(X1, X2))


def rbf(scale: Float[Array, ""]) -> Kernel:
    return tinygp.kernels.ExpSquared(scale, Euclidean())


def matern32(scale: Float[Array, ""]) -> Kernel:
    return tinygp.kernels.Matern32(scale, Euclidean())


def matern52(scale: Float[Array, ""]) -> Kernel:
    return tinygp.kernels.Matern52(scale, Euclidean())


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


def _inverse_quadrature(nodes, low, high, density):
    """Midpoints of equal steps in 1/p for a period p in [low, high] of this density, and weights."""
    edges = np.linspace(1 / high, 1 / low, nodes + 1)
    periods = 2 / (edges[1:] + edges[:-1])
    weights = density(periods) * np.square(periods)
    return jnp.asarray(periods), weights / weights.sum()


def _one_of_three(family, scale):
    chosen = (family == jnp.arange(3)).astype(scale.dtype)
    kernels = rbf(scale), periodic(jnp.ones_like(scale), scale), matern52(scale)
    first, second, third = (kernel * share for kernel, share in zip(kernels, chosen, strict=True))
    return first + second + third

"""Pictures with gaps on which the shipped model of grids is trained: random fields under random clouds."""

import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray, Scalar

from ..arguments import whole_number
from ._base import AbstractTasks


class Picture(eqx.Module):
    """A field on a lattice, seen with noise at some of its nodes.

    **Shapes:** `y`, what is seen where `mask` is `True` (and would be elsewhere), and `function`, the field without
    noise, `[*side 1]`; `mask [*side]`; `noise`: the standard deviation of the noise.
    """

    y: Float[Array, "*batch rows columns 1"]
    mask: Bool[Array, "*batch rows columns"]
    function: Float[Array, "*batch rows columns 1"]
    noise: Float[Array, "*batch"]


class FieldPrior(AbstractTasks):
    r"""Random fields for pretraining, in pixels: each task draws what the field is made of, and what hides it.

    - Matern fields (`matern_field`): one with a length scale of 2 to 300 pixels; to it in half of the tasks each a
      short one (1.5 to 8 pixels) and a long one (30 to 300), of a tenth to 1.5 times its standard deviation; smoothness
      0.25 to 2.5, anisotropy up to 4 in half of them;
    - in three tasks of ten the short one's amplitude varies from place to place; in one of five the ground is of two
      kinds, one of them warmer or colder; in three of twenty values are bent, so that they are skewed and heavy-tailed;
    - a linear trend in two of five; noise in half of the tasks, 0.01 to 0.7 times the field's standard deviation;
    - clouds: a field below one of its quantiles, so that 5 to 90 % are hidden, in patches of all sizes; in a quarter of
      the tasks nodes are seen at random, down to one in a hundred; a rectangle is missing in a third; in three of
      twenty there are no clouds, but a rectangle is missing;
    - values standardised by mean and standard deviation of what is seen, as users' data are.

    **Arguments:** `side`: pixels of the square picture, cut out of a torus of twice the side.
    **Cost:** fourteen fast Fourier transforms of the torus.
    """

    side: int = eqx.field(static=True, default=128)

    def __check_init__(self):
        whole_number(16, side=self.side)

    def sample(self, key: PRNGKeyArray) -> Picture:
        of_field, of_noise, of_mask, noisy, strength = jr.split(key, 5)
        function, mask = self._field(of_field), self._seen(of_mask)
        noise = _sometimes(noisy, 0.5, _log_uniform(strength, 0.01, 0.7))
        y = function + noise * jr.normal(of_noise, function.shape)
        centre, scale = _moments(y, mask)
        y, function = ((a[..., None] - centre) / scale for a in (y, function))
        return Picture(y, mask, function, noise / scale)

    def _matern(self, key, scales, smoothness=(0.25, 2.5)) -> Float[Array, "side side"]:
        draw, scale, smooth, stretched, stretch, angle = jr.split(key, 6)
        field = matern_field(
            draw,
            2 * self.side,
            smoothness=_log_uniform(smooth, *smoothness),
            scale=_log_uniform(scale, *scales),
            stretch=jnp.where(jr.bernoulli(stretched), _log_uniform(stretch, 1.0, 4.0), 1.0),
            angle=jr.uniform(angle, maxval=jnp.pi),
        )
        return field[: self.side, : self.side]

    def _field(self, key):
        keys = iter(jr.split(key, 20))
        short, long = (_sometimes(next(keys), 0.5, _log_uniform(next(keys), 0.1, 1.5)) for _ in range(2))
        uneven = jnp.exp(_sometimes(next(keys), 0.3, 0.5) * self._matern(next(keys), (20.0, 300.0), (1.0, 2.5)))
        field = self._matern(next(keys), (2.0, 300.0))
        field = field + short * uneven * self._matern(next(keys), (1.5, 8.0))
        field = field + long * self._matern(next(keys), (30.0, 300.0))
        ground = self._matern(next(keys), (5.0, 100.0), (0.5, 2.0)) > 0.8
        field = field + _sometimes(next(keys), 0.2, 1.5) * jnp.where(ground, jr.normal(next(keys)), 0.0)
        field = field / jnp.sqrt(1 + jnp.square(short) + jnp.square(long))
        bent = jnp.sinh(0.6 * field + jr.uniform(next(keys), minval=-0.6, maxval=0.6))
        field = jnp.where(jr.bernoulli(next(keys), 0.15), bent, field)
        slopes = _sometimes(next(keys), 0.4, 1.0) * jr.normal(next(keys), (2, 1, 1))
        across = jnp.linspace(-1.0, 1.0, self.side)
        return field + slopes[0] * across[:, None] + slopes[1] * across

    def _seen(self, key):
        keys = iter(jr.split(key, 16))
        side = self.side
        veil = self._matern(next(keys), (4.0, 150.0), (0.3, 2.0)) + 0.3 * self._matern(next(keys), (2.0, 20.0))
        seen = veil > jnp.quantile(veil, jr.uniform(next(keys), minval=0.05, maxval=0.9))
        share = jnp.where(jr.bernoulli(next(keys), 0.25), _log_uniform(next(keys), 0.01, 0.9), 1.0)
        among = jr.uniform(next(keys), (side, side)) < share
        start = jr.randint(next(keys), (2, 1), -side // 2, side)
        inside = jnp.arange(side) - start
        inside = (inside >= 0) & (inside < jr.randint(next(keys), (2, 1), side // 8, side))
        hole = inside[0][:, None] & inside[1]
        seen = jnp.where(jr.bernoulli(next(keys), 0.15), ~hole, seen & ~(hole & jr.bernoulli(next(keys), 0.35)))
        return seen & among


def matern_field(
    key: PRNGKeyArray, side: int, *, smoothness: Scalar, scale: Scalar, stretch: Scalar, angle: Scalar
) -> Float[Array, "{side} {side}"]:
    r"""A draw of a Gaussian field on a torus of `side` x `side` pixels, of unit variance and zero mean over it.

    The density of its spectrum is that of the Matern covariance in the plane (Whittle 1954),

    $$S(\omega) \propto \bigl(2 \nu / \ell^2 + |\omega|^2\bigr)^{-(\nu + 1)},$$

    with smoothness $\nu$ and length scale $\ell$ in pixels; `stretch`: how much longer the scale is along `angle`
    (radians) than across it, $\ell$ being the geometric mean of the two. Where $\ell$ is much smaller than `side` the
    covariance is Matern's.

    **Cost:** two fast Fourier transforms.
    """
    rows, columns = 2 * jnp.pi * jnp.fft.fftfreq(side)[:, None], 2 * jnp.pi * jnp.fft.rfftfreq(side)
    along = (jnp.cos(angle) * rows + jnp.sin(angle) * columns) * jnp.sqrt(stretch)
    across = (jnp.cos(angle) * columns - jnp.sin(angle) * rows) / jnp.sqrt(stretch)
    squares = jnp.square(along) + jnp.square(across)
    log_density = -(smoothness + 1) * jnp.log1p(squares * jnp.square(scale) / (2 * smoothness))
    amplitude = jnp.exp(0.5 * log_density).at[0, 0].set(0.0)
    twice = jnp.full(columns.shape, 2.0).at[0].set(1.0).at[-1].set(1.0 if side % 2 == 0 else 2.0)
    power = jnp.sum(twice * jnp.square(amplitude)) / side**2
    spectrum = jnp.fft.rfft2(jr.normal(key, (side, side))) * amplitude.astype(jnp.complex64)
    return jnp.fft.irfft2(spectrum, s=(side, side)) / jnp.sqrt(power)


def _log_uniform(key, low, high):
    return jnp.exp(jr.uniform(key, minval=math.log(low), maxval=math.log(high)))


def _sometimes(key, chance, value):
    """The value with this chance, else zero."""
    return jnp.where(jr.bernoulli(key, chance), value, 0.0)


def _moments(y, mask):
    """Mean and standard deviation of what is seen; 0 and 1 where that is less than two nodes."""
    n = jnp.maximum(jnp.sum(mask.astype(y.dtype)), 1.0)
    mean = jnp.sum(jnp.where(mask, y, 0.0)) / n
    variance = jnp.sum(jnp.where(mask, jnp.square(y - mean), 0.0)) / n
    return jnp.where(n > 1, mean, 0.0), jnp.where(n > 1, jnp.sqrt(variance + 1e-6), 1.0)

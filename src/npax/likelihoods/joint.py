"""A Gaussian over all targets together."""

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float

from ..arguments import whole_number
from ..linalg import cholesky_with_jitter
from ..wide import root_of_squares, wide
from ._base import AbstractLikelihood
from .gaussian import check_floor, positive

CAP = 256
"""Spacings of floats between one and the largest correlation of two rows, whatever their number."""


class JointGaussian(AbstractLikelihood):
    r"""$y \sim \mathcal N(\mu, \Sigma)$ over all targets, with covariances from learned features of each,

    $$\Sigma_{ij} = s_i s_j \exp\bigl(-\tfrac12 \lVert e_i - e_j \rVert^2\bigr) + \delta_{ij} n_i^2.$$

    The network gives mean $\mu$, scale $s$, noise $n$ and embedding $e$ of every target and column of `y`. Positive
    definite whatever they are, of full rank, equivariant to the order of the targets and consistent: leaving targets
    out leaves the distribution of the others as it is (so called `kvv` covariance; Markou et al. 2022).

    **Arguments:** `dy`; `rank`: width of the embedding; `min_std`: the least noise.
    **Cost** of `joint`: O((nt dy)³). **Pitfalls:** in float32 correlations are capped just below 1 (as by noise of
    0.006 s), by more where many rows (`nt dy`), hardly told apart and without noise, have no factor otherwise: only
    then what is left out, or padded, does make a difference.
    """

    dy: int = eqx.field(static=True)
    rank: int = eqx.field(static=True, default=16)
    min_std: float = eqx.field(static=True, default=1e-4, converter=float)

    def __check_init__(self):
        whole_number(1, dy=self.dy, rank=self.rank)
        check_floor(self.min_std)

    @property
    def size(self):
        return self.dy * (3 + self.rank)

    def __call__(self, raw):
        """The distribution of each target by itself."""
        mean, scale, noise, _ = self._parts(raw)
        return dist.Normal(mean, root_of_squares(scale, noise)).to_event(1)

    def joint(self, raw: Float[Array, "nt size"], mask: Bool[Array, " nt"] | None = None) -> dist.MultivariateNormal:
        """The distribution of all targets, row by row: event shape `[nt * dy]`. Targets under a `False` are
        standard normal, apart from all others. Raw numbers of 16 bits are computed with in float32."""
        raw = raw.astype(wide(raw.dtype))
        raw = raw if mask is None else jnp.where(mask[:, None], raw, 0.0)
        mean, scale, noise, embedding = self._parts(raw)
        mean, scale, noise = (a.reshape(-1) for a in (mean, scale, noise))
        e = embedding.reshape(mean.shape[0], self.rank)
        squared = jnp.sum(jnp.square(e[:, None] - e[None]), axis=-1)
        cap = 1 - CAP * jnp.finfo(e.dtype).eps
        diagonal = jnp.eye(mean.shape[0], dtype=bool)
        covariance = scale[:, None] * scale[None] * jnp.where(diagonal, 1.0, cap * jnp.exp(-0.5 * squared))
        covariance = covariance + jnp.diag(jnp.square(noise))
        if mask is not None:
            seen = jnp.repeat(mask, self.dy)
            mean = jnp.where(seen, mean, 0.0)
            covariance = jnp.where(seen[:, None] & seen[None], covariance, diagonal.astype(e.dtype))
        return dist.MultivariateNormal(mean, scale_tril=cholesky_with_jitter(covariance))

    def _parts(self, raw):
        dy = self.dy
        mean, scale, noise, embedding = jnp.split(raw, [dy, 2 * dy, 3 * dy], axis=-1)
        return mean, positive(scale, self.min_std), positive(noise, self.min_std), embedding

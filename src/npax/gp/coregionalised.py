import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import scipy.optimize
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Scalar
from tinygp.kernels import ExpSquared

from ..task import Task
from .exact import exact_posterior

Posterior = tuple[Float[Array, "nt dy"], Float[Array, "nt dy"], Scalar]


class CoregionalisedGP(eqx.Module):
    r"""A Gaussian process of several outputs, with a squared exponential kernel and one matrix of covariances between
    the outputs (intrinsic coregionalisation; TE eq. 41), and one noise:

    $$\mathrm{cov}(y_i(x), y_j(x')) = B_{ij} \exp\Bigl(-\tfrac12 \sum_d (x_d - x'_d)^2 / l_d^2\Bigr)
      + \sigma^2 \delta_{ij} \delta_{x x'}, \qquad B = U \operatorname{diag}(\lambda)\, U^\top.$$

    All outputs are observed at the same places, so turned by $U$ they are `dy` processes independent of each other:
    `dy` factorisations of `[nc nc]` instead of one of `[dy nc, dy nc]`. With one output it is the plain process with a
    length scale for each coordinate.

    **Attributes:** the logarithms of $l$, $\lambda$ and $\sigma^2$; `skew`, from which $U = (I - S)(I + S)^{-1}$ with
    its entries above the diagonal of the antisymmetric $S$.
    """

    log_scale: Float[Array, " dx"]
    log_variance: Float[Array, " dy"]
    log_noise: Float[Array, ""]
    skew: Float[Array, " pairs"]

    @property
    def rotation(self) -> Float[Array, "dy dy"]:
        dy = len(self.log_variance)
        s = jnp.zeros((dy, dy), self.skew.dtype).at[jnp.triu_indices(dy, 1)].set(self.skew)
        s, one = s - s.T, jnp.eye(dy, dtype=self.skew.dtype)
        return (one - s) @ jnp.linalg.inv(one + s)

    def posterior(
        self, xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], xt: Float[Array, "nt dx"], mask: Bool[Array, " nc"]
    ) -> Posterior:
        """Mean and variance of the noiseless function at `xt`, and the log evidence of the context."""
        xc, yc = (jnp.where(mask[:, None], a, 0.0) for a in (xc, yc))
        scale, noise = jnp.exp(self.log_scale), jnp.exp(self.log_noise)
        turned = yc @ self.rotation

        def one(log_variance, y):
            return exact_posterior(jnp.exp(log_variance) * ExpSquared(), noise, xc / scale, y, xt / scale, mask)

        mean, variance, evidence = jax.vmap(one, (0, 1), (1, 1, 0))(self.log_variance, turned)
        return mean @ self.rotation.T, variance @ jnp.square(self.rotation).T, jnp.sum(evidence)


STARTS = (1.0, 0.3, 0.1)
"""Length scales from which the climb begins."""

NOISE = 0.01
"""Share of the values' mean square that is most probably noise."""


def maximum_a_posteriori(
    xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], mask: Bool[Array, " nc"], *, iterations: int = 200
) -> CoregionalisedGP:
    r"""The process that is most probable given one context, by L-BFGS in float64, the best of three starts: length
    scales of 1, 0.3 and 0.1. From one alone it often ends where all is noise.

    Evidence alone (ML-II, as in TE) has no maximum for a handful of points: with three observations of a flow it ends
    at infinite length scales without noise and at errors of forty standard deviations. Hence a weak prior in units of
    the coordinates and of the values' mean square $s^2$, to which an observation of one is added:

    $$\log l_d \sim N(0, 1), \quad \log \lambda_j \sim N(\log s^2, 1), \quad
      \log \sigma^2 \sim N(\log 0.01 s^2, 2^2).$$

    Meant for coordinates and values of order one. Length scales stay within 0.007 and 150, variances within 3e-4 and
    400, the noise's within 6e-6 and 20.

    **Cost:** some three hundred times `dy` factorisations of `[nc nc]`. A context of none gives the prior's mode.
    """
    with jax.enable_x64(True):
        xc, yc, mask = (jnp.asarray(a, dtype) for a, dtype in ((xc, jnp.float64), (yc, jnp.float64), (mask, bool)))
        dx, dy = xc.shape[1], yc.shape[1]
        squares = jnp.sum(jnp.where(mask[:, None], jnp.square(yc), 0.0)) / dy
        power = jnp.log((1 + squares) / (1 + jnp.sum(mask, dtype=jnp.float64)))
        mode = CoregionalisedGP(
            jnp.zeros(dx), jnp.full(dy, power), power + jnp.log(NOISE), jnp.zeros(dy * (dy - 1) // 2)
        )
        flat, shape = ravel_pytree(mode)
        scales = np.arange(len(flat)) < dx  # they come first
        bounds = [*[(-5.0, 5.0)] * dx, *[(-8.0, 6.0)] * dy, (-12.0, 3.0), *[(-1.0, 1.0)] * (len(flat) - dx - dy - 1)]

        def loss(flat):
            value, slope = _negative_log_posterior(flat, mode, xc, yc, mask)
            return float(value), np.asarray(slope)

        def climbed(scale):
            first = np.clip(np.where(scales, np.log(scale), flat), *np.transpose(bounds))
            options = {"maxiter": iterations}
            return scipy.optimize.minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

        found = min(map(climbed, STARTS), key=lambda found: found.fun)
        return shape(jnp.asarray(found.x))


def maximum_a_posteriori_gp(task: Task) -> dist.Distribution:
    """New observations at the targets of a task, by the process most probable given its context (the GP baselines of
    TE, with a weak prior).

    Batch shape `[nt]`, event shape `[dy]`.
    """
    gp = maximum_a_posteriori(task.xc, task.yc, task.mask_c)
    with jax.enable_x64(True):
        xc, yc, xt = (jnp.asarray(a, jnp.float64) for a in (task.xc, task.yc, task.xt))
        mean, variance = _predict(gp, xc, yc, xt, task.mask_c)
        mean, std = np.asarray(mean, np.float32), np.asarray(jnp.sqrt(variance), np.float32)
    return dist.Normal(jnp.asarray(mean), jnp.asarray(std)).to_event(1)


@eqx.filter_jit
def _negative_log_posterior(flat, mode, xc, yc, mask):
    _, shape = ravel_pytree(mode)

    def loss(flat):
        gp = shape(flat)
        surprise = (
            jnp.sum(jnp.square(gp.log_scale - mode.log_scale))
            + jnp.sum(jnp.square(gp.log_variance - mode.log_variance))
            + jnp.square((gp.log_noise - mode.log_noise) / 2)
        )
        return surprise / 2 - gp.posterior(xc, yc, xc[:0], mask)[2]

    value, slope = jax.value_and_grad(loss)(flat)
    sound = jnp.isfinite(value) & jnp.isfinite(slope).all()
    return jnp.where(sound, value, 1e10), jnp.where(sound, slope, 0.0)


@eqx.filter_jit
def _predict(gp, xc, yc, xt, mask):
    mean, variance, _ = gp.posterior(xc, yc, xt, mask)
    return mean, variance + jnp.exp(gp.log_noise)

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..arguments import whole_number
from ..task import Task
from .gp import AbstractGPTask, factorise, whole
from .gp_kernels import AbstractKernelPrior, RBFPeriodicMatern52Prior, check_prior


class GPShiftTask(AbstractGPTask):
    r"""Observations of functions of one coordinate, at context locations and at others; all may be moved (TE F.1).

    $$n \sim U\{\texttt{low}, \dots, \texttt{nc}\},\quad x_c \sim U(-2, 2) + \Delta,\quad x_t \sim U(-3, 3) + \Delta,
      \quad y \sim \mathcal N(0, K + \sigma^2 I):$$

    values of the targets carry noise too, so likelihoods are those of **new observations**. A model trained at
    $\Delta = 0$ and tested elsewhere keeps its likelihood only if it is translation equivariant: the kernels are
    stationary, and the same key gives the same values at the same places relative to $\Delta$.

    **Arguments:** `kernel`: the distribution over kernels; `nc`, `low`: most and fewest context points; `nt` targets;
    `reach`, `reach_c`: $|x_t - \Delta|$ and $|x_c - \Delta|$ at most; `apart`: both at least, so that locations come in
    two clusters; `noise_std`; `shift`: $\Delta$.
    """

    kernel: AbstractKernelPrior
    nc: int = eqx.field(static=True)
    low: int = eqx.field(static=True)
    nt: int = eqx.field(static=True)
    reach: float = eqx.field(static=True)
    reach_c: float = eqx.field(static=True)
    apart: float = eqx.field(static=True)
    noise_std: float = eqx.field(static=True)
    shift: float = eqx.field(static=True)

    def __init__(
        self,
        kernel: AbstractKernelPrior,
        *,
        nc: int = 64,
        low: int = 1,
        nt: int = 128,
        reach: float = 3.0,
        reach_c: float = 2.0,
        apart: float = 0.0,
        noise_std: float = 0.2,
        shift: float = 0.0,
    ):
        check_prior(kernel)
        whole_number(0, low=low, nc=nc)
        whole_number(1, nt=nt)
        if low > nc:
            raise ValueError(f"The context sizes must satisfy low <= nc, got low={low}, nc={nc}.")
        if not (noise_std > 0 and min(reach, reach_c) > apart >= 0):
            raise ValueError(
                "`noise_std` must be positive, and `reach` and `reach_c` above `apart`, which is not negative; got "
                f"noise_std={noise_std}, reach={reach}, reach_c={reach_c}, apart={apart}."
            )
        self.kernel, self.nc, self.low, self.nt = kernel, nc, low, nt
        self.reach, self.reach_c, self.apart = reach, reach_c, apart
        self.noise_std, self.shift = noise_std, shift

    @property
    def target_noise_std(self):
        return self.noise_std

    def sample_with_kernel(self, key):
        design, kernel_key, values = jr.split(key, 3)
        nc, n = self.nc, self.nc + self.nt
        u = jr.uniform(design, (n + 1,))
        size = self.low + jnp.floor(u[0] * (nc - self.low + 1))
        side = 2 * u[1:] - 1
        reach = jnp.where(jnp.arange(n) < nc, self.reach_c, self.reach)
        x = (jnp.sign(side) * self.apart + (reach - self.apart) * side + self.shift)[:, None]
        kernel = self.kernel.draw(kernel_key)
        y = factorise(kernel, x, self.noise_std**2) @ jr.normal(values, (n, 1))
        mask = jnp.arange(nc, dtype=u.dtype) < size
        return whole(Task(x[:nc], y[:nc], mask, x[nc:], y[nc:], jnp.ones(self.nt, bool))), kernel


def gp_1d_shift(shift: float = 0.0) -> GPShiftTask:
    """GP-1D-shift of TE F.1: three families of kernels, 1 to 64 context points, 128 targets, noise 0.2 on all."""
    return GPShiftTask(RBFPeriodicMatern52Prior(), shift=shift)


def gp_1d_bimodal() -> GPShiftTask:
    """GP-1D-shift with all locations, 1 to 4 away from the origin, on either side of it (TE F.5): a model that has its
    pseudo-tokens around the mean of the context has them where nothing is."""
    return GPShiftTask(RBFPeriodicMatern52Prior(), reach=4.0, reach_c=4.0, apart=1.0)

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..arguments import whole_number
from ..task import Task
from .gp import AbstractGPTask, factorise, whole
from .gp_kernels import AbstractKernelPrior, ScaledRBFPrior, check_prior


class GPCurveTask(AbstractGPTask):
    r"""Noisy curves of one coordinate, of which the context is a part of the targets (ANP §4, App. B).

    $$x \sim U(-2, 2),\quad y \sim \mathcal N(0, K + \sigma^2 I),\quad n \sim U\{\texttt{low}, \dots, \texttt{points}\},
      \quad m \sim U\{n, \dots, \texttt{points}\}:$$

    the first `n` points are the context and the first `m` the targets, with the **same** noisy values.

    **Arguments:** `kernel`: the distribution over kernels; `points`: most context points and targets; `low`: fewest
    context points; `noise_std`.
    **Pitfalls:** the context's own values among the targets are known exactly, so this likelihood has no floor; to
    compare predictors, score them at points apart from the context (`GPShiftTask`).
    """

    kernel: AbstractKernelPrior
    points: int = eqx.field(static=True)
    low: int = eqx.field(static=True)
    noise_std: float = eqx.field(static=True)

    def __init__(self, kernel: AbstractKernelPrior, *, points: int = 100, low: int = 3, noise_std: float = 0.02):
        check_prior(kernel)
        whole_number(0, low=low)
        whole_number(1, points=points)
        if low > points:
            raise ValueError(f"The sizes must satisfy low <= points, got low={low}, points={points}.")
        if not noise_std > 0:
            raise ValueError(f"`noise_std` must be positive, got {noise_std}.")
        self.kernel, self.points, self.low, self.noise_std = kernel, points, low, noise_std

    @property
    def target_noise_std(self):
        return self.noise_std

    def sample_with_kernel(self, key):
        design, kernel_key, values = jr.split(key, 3)
        u = jr.uniform(design, (self.points + 2,))
        n = self.low + jnp.floor(u[0] * (self.points - self.low + 1))
        m = n + jnp.floor(u[1] * (self.points - n + 1))
        x = (4 * u[2:] - 2)[:, None]
        kernel = self.kernel.draw(kernel_key)
        y = factorise(kernel, x, self.noise_std**2) @ jr.normal(values, (self.points, 1))
        order = jnp.arange(self.points, dtype=u.dtype)
        return whole(Task(x, y, order < n, x, y, order < m)), kernel


def gp_1d_anp(kernel: AbstractKernelPrior | None = None) -> GPCurveTask:
    """GP-1D of ANP: 3 to 100 context points, noise 0.02, a squared exponential drawn for each task."""
    return GPCurveTask(ScaledRBFPrior() if kernel is None else kernel)

"""Tasks drawn from Gaussian processes, and those of KR2."""

import abc
import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray
from tinygp.kernels import Kernel

from ..arguments import whole_number
from ..linalg import cholesky
from ..task import Task
from ._base import AbstractTasks
from .gp_kernels import AbstractKernelPrior, RBFPrior, check_prior
from .posterior import PosteriorTask, draw_and_condition


class AbstractGPTask(AbstractTasks):
    """Functions drawn from a Gaussian process, a new kernel for each task; values of the context carry noise.

    The `kernel` prior and the two standard deviations of noise are all that an oracle and the Bayes floor need to
    know (`npax.gp`).
    """

    kernel: eqx.AbstractVar[AbstractKernelPrior]
    noise_std: eqx.AbstractVar[float]

    @property
    @abc.abstractmethod
    def target_noise_std(self) -> float:
        """The noise of the targets' values; zero where they are the noiseless function."""

    @abc.abstractmethod
    def sample_with_kernel(self, key: PRNGKeyArray) -> tuple[Task, Kernel]:
        """A task and the kernel it was drawn from, for oracles."""

    def sample(self, key: PRNGKeyArray) -> Task:
        return self.sample_with_kernel(key)[0]


class GPTask(AbstractGPTask):
    r"""Functions drawn from a Gaussian process on $[-2, 2]^{d_x}$, a new kernel for each task (KR2 §4).

    Of `nc` uniform locations a random number, $n \sim U\{\texttt{low}, \dots, \texttt{nc}\}$, is the context, whose
    values carry noise of standard deviation `noise_std`. Targets are **all** `nc` uniform locations and the nodes of
    a regular grid, and their values are the **noiseless** function: what the published likelihoods are of.

    **Arguments:** `kernel`: the distribution over kernels (variance 1 at every point); `dx`; `nc`, `low`: most and
    fewest context points; `grid`: nodes per axis; `noise_std`.

    **Shapes:** `nc` context slots, `nt = nc + grid ** dx` targets, one column of `y`.
    **Cost:** one Cholesky factorisation of `[nt nt]` per task.
    **Pitfalls:** in float32 the factorisation needs a jitter, `nt` times the machine epsilon (2e-5 for 150 points):
    white noise of standard deviation 0.004 on the function. A draw that breaks down all the same is a task without
    points.
    """

    kernel: AbstractKernelPrior
    dx: int = eqx.field(static=True)
    nc: int = eqx.field(static=True)
    low: int = eqx.field(static=True)
    grid: int = eqx.field(static=True)
    noise_std: float = eqx.field(static=True)

    def __init__(
        self,
        kernel: AbstractKernelPrior,
        *,
        dx: int = 1,
        nc: int = 50,
        low: int = 3,
        grid: int = 100,
        noise_std: float = 0.1,
    ):
        check_prior(kernel)
        whole_number(1, dx=dx)
        whole_number(0, grid=grid, low=low, nc=nc)
        if low > nc:
            raise ValueError(f"The context sizes must satisfy low <= nc, got low={low}, nc={nc}.")
        if nc + grid == 0:
            raise ValueError("`nc` and `grid` must not both be 0: there would be no targets.")
        if not 0 < noise_std < math.inf:
            raise ValueError(f"`noise_std` must be positive and finite, got {noise_std}.")
        if dx > 1 and kernel.one_coordinate:
            kind = type(kernel).__name__
            raise ValueError(f"`kernel` = {kind} is of one coordinate: take `dx` = 1, not {dx}, or another prior.")
        self.kernel, self.dx, self.nc, self.low, self.grid, self.noise_std = kernel, dx, nc, low, grid, float(noise_std)

    @property
    def target_noise_std(self):
        return 0.0

    def sample_with_kernel(self, key):
        design, kernel_key, values = jr.split(key, 3)
        x, mask = self._design(design)
        kernel = self.kernel.draw(kernel_key)
        white, noise = jnp.split(jr.normal(values, (x.shape[0] + self.nc, 1)), [x.shape[0]])
        f = factorise(kernel, x) @ white
        yc = f[: self.nc] + self.noise_std * noise
        return whole(Task(x[: self.nc], yc, mask, x, f, jnp.ones(len(x), bool))), kernel

    def _design(self, key):
        """Locations (those of the context first) and which of the context slots are taken."""
        u = jr.uniform(key, (self.nc * self.dx + 1,))  # one draw: each costs half a second of compilation
        free = 4 * u[1:].reshape(self.nc, self.dx) - 2
        axes = [jnp.linspace(-2.0, 2.0, self.grid)] * self.dx
        nodes = jnp.stack(jnp.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dx)
        size = self.low + jnp.floor(u[0] * (self.nc - self.low + 1))
        return jnp.concatenate([free, nodes]), jnp.arange(self.nc, dtype=u.dtype) < size


class GPPosteriorTask(AbstractTasks):
    r"""The same distribution over tasks, with the exact posterior of the targets given each task's kernel.

    For `objectives.posterior_nll`, whose gradients have less noise than `nll`'s and the same mean. It needs a
    factorisation of the context alone, so it costs less than `GPTask`; the price is that `task.yt` is drawn target
    by target, not jointly: objectives that look at several targets together need `GPTask`.
    """

    tasks: GPTask

    def sample(self, key: PRNGKeyArray) -> PosteriorTask:
        design, kernel_key, values = jr.split(key, 3)
        x, mask = self.tasks._design(design)
        nc, variance = self.tasks.nc, self.tasks.noise_std**2
        kernel, xc = self.tasks.kernel.draw(kernel_key), x[: self.tasks.nc]
        context, targets = jr.split(values)
        noise = jnp.full(nc, variance)
        yc, mean, var = draw_and_condition(context, kernel(xc, xc), kernel(xc, x), kernel(x), noise, mask)
        yt = mean + jnp.sqrt(var) * jr.normal(targets, mean.shape)
        task = whole(Task(xc, yc[:, None], mask, x, yt[:, None], jnp.ones(len(x), bool)))
        mean, var = (jnp.where(task.mask_t, a, safe)[:, None] for a, safe in ((mean, 0.0), (var, 1.0)))
        return PosteriorTask(task, mean, var, jnp.full(mean.shape, variance))


def gp_1d(kernel: AbstractKernelPrior) -> GPTask:
    """GP-1D of KR2: 50 uniform locations of which 3 to 50 are context, 100 equally spaced, targets all 150."""
    return GPTask(kernel, dx=1, nc=50, low=3, grid=100)


def gp_2d(kernel: AbstractKernelPrior | None = None) -> GPTask:
    """GP-2D of KR2: 128 uniform locations of which 12 to 128 are context, a 16 x 16 grid, targets all 384; RBF."""
    return GPTask(RBFPrior() if kernel is None else kernel, dx=2, nc=128, low=12, grid=16)


def factorise(kernel: Kernel, x: Float[Array, "n dx"], variance: float = 0.0) -> Float[Array, "n n"]:
    """The Cholesky factor of the kernel's matrix with `variance` on its diagonal, and a jitter for float32."""
    return cholesky(kernel(x, x) + (variance + len(x) * jnp.finfo(x.dtype).eps) * jnp.eye(len(x)))


def whole(task: Task) -> Task:
    """The task as it is if its values are finite; one without points if a factorisation broke down."""
    sound = jnp.isfinite(jnp.sum(task.yc) + jnp.sum(task.yt))
    yc, yt = (jnp.where(sound, y, 0.0) for y in (task.yc, task.yt))
    return Task(task.xc, yc, task.mask_c & sound, task.xt, yt, task.mask_t & sound)

"""Two-dimensional Kolmogorov flow: turbulence that a sinusoidal force keeps up."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from ..progress import Progress
from ._base import AbstractTasks
from .split import check_sizes, split

EXTENT = 2 * math.pi
"""The side of the periodic square."""
FORCED = 4
"""Waves of the force across the square."""
DRAG = 0.1


class KolmogorovTask(AbstractTasks):
    r"""Velocities of a turbulent flow, seen at a few places and times of a small block of space and time (TE F.3).

    A block of `crop` x `crop` x `crop` nodes is cut at random out of a random trajectory; across the borders of the
    square, which is periodic, but not of time. Of its nodes $n \sim U\{\texttt{low}, \dots, \texttt{high}\}$ are the
    context and the others the targets. $x$ = (time, place, place), each axis of the block scaled to $[-3, 3]$;
    $y$ = the two components of the velocity, in units of the flow. There is no noise.

    **Arguments:** `velocity [trajectories time n n 2]`, as `kolmogorov_flow` makes it; `crop`: side of a block; `low`,
    `high`: fewest and most context points; `nt`: targets, drawn from the others (default: all of them).

    **Cost:** a permutation of crop³ nodes per task. **Good values:** `nt` 256 in training: 3,600 targets say little
    more than 256 of them.
    """

    velocity: Float[Array, "trajectories time n n 2"]
    crop: int = eqx.field(static=True)
    low: int = eqx.field(static=True)
    high: int = eqx.field(static=True)
    nt: int = eqx.field(static=True)

    def __init__(
        self,
        velocity: ArrayLike,
        *,
        crop: int = 16,
        low: int = 1,
        high: int = 500,
        nt: int | None = None,
    ):
        velocity = jnp.asarray(velocity)
        if velocity.ndim != 5 or velocity.shape[2] != velocity.shape[3] or velocity.shape[4] != 2:
            raise ValueError(f"`velocity` must have the shape [trajectories time n n 2], got {velocity.shape}.")
        if not 2 <= crop <= min(velocity.shape[1:3]):
            raise ValueError(
                f"`crop` must be at least 2 and fit into the {velocity.shape[1]} times and {velocity.shape[2]} nodes "
                f"of a trajectory, got {crop}."
            )
        self.velocity, self.crop, self.low, self.high = velocity, crop, low, high
        self.nt = check_sizes(low, high, nt, crop**3)

    def block(self, key: PRNGKeyArray) -> tuple[Float[Array, "crop crop crop 3"], Float[Array, "crop crop crop 2"]]:
        """Locations and velocities of a whole block, for pictures."""
        trajectories, times, side, _, _ = self.velocity.shape
        last = jnp.array([trajectories, times - self.crop + 1, side, side])
        which, *start = jr.randint(key, (4,), 0, last)
        t, i, j = (first + jnp.arange(self.crop) for first in start)
        y = self.velocity[which, t[:, None, None], i[:, None] % side, j % side]
        axis = jnp.linspace(-3.0, 3.0, self.crop)
        return jnp.stack(jnp.meshgrid(axis, axis, axis, indexing="ij"), axis=-1), y

    def sample(self, key):
        cut, choice = jr.split(key)
        x, y = (a.reshape(-1, a.shape[-1]) for a in self.block(cut))
        return split(choice, x, y, jnp.ones(len(x), bool), low=self.low, high=self.high, nt=self.nt)


def kolmogorov_flow(
    key: PRNGKeyArray,
    trajectories: int,
    *,
    points: int = 64,
    times: int = 64,
    burn_in: int = 64,
    interval: float = 0.2,
    reynolds: float = 1000.0,
    refine: int = 2,
    progress: bool = False,
) -> Float[Array, "trajectories times points points 2"]:
    r"""Velocities of Kolmogorov flows on the periodic square of side $2\pi$, from random initial ones.

    $$\partial_t u + \nabla \cdot (u \otimes u) = \tfrac{1}{\mathrm{Re}} \nabla^2 u - \tfrac1\rho \nabla p - 0.1\, u
      - \sin(4 x_2)\, e_1, \qquad \nabla \cdot u = 0.$$

    Solved for the vorticity, by spectral exponential time differencing of order 4 (exponax) on a grid `refine` times
    as fine, from which waves too short for `points` nodes are then cut off.

    **Arguments:** `points`: nodes per side; `times`: snapshots, `interval` apart, after `burn_in` that are thrown
    away; `reynolds`: Re; `progress`: show a bar.

    **Cost:** by default 2,688 steps on 128 x 128 nodes per trajectory, about 4 s on a CPU core; 2 MB each.
    **Pitfalls:** TE uses the data of Rozet and Louppe (2023), from another solver on 256 x 256 nodes with other
    initial velocities: the same equation, not the same numbers. Too few nodes for the Reynolds number end in NaN,
    refused with a `ValueError`.
    """
    grid = points * refine
    steps = math.ceil(5.0 * interval * grid / EXTENT)  # at a speed of 5 nothing moves by more than a node in a step
    solver = kolmogorov_solver(grid, interval / steps, reynolds)
    snapshots = _exponax().rollout(_exponax().repeat(solver, steps), burn_in + times)
    start = _exponax().ic.RandomTruncatedFourierSeries(2, cutoff=6, std_one=True)

    def one(key):
        trajectory = snapshots(5.0 * start(grid, key=key))  # pyright: ignore
        vorticity = -trajectory[burn_in:, 0]  # exponax's has the opposite sign
        return velocity_of(vorticity, points)

    run, flows = jax.jit(one), []
    with Progress("Simulating flows", trajectories, shown=progress) as bar, jax.numpy_dtype_promotion("standard"):
        for own in jr.split(key, trajectories):
            flows.append(jax.block_until_ready(run(own)))
            bar.advance(1)
    flow = jnp.stack(flows)
    if not bool(jnp.isfinite(flow).all()):
        raise ValueError(
            f"The simulation broke down: {grid} nodes per side are too few for `reynolds`={reynolds:g}; "
            "raise `refine` or lower `reynolds`."
        )
    return flow


def velocity_of(vorticity: Float[Array, "*batch n n"], points: int | None = None) -> Float[Array, "*batch m m 2"]:
    r"""The velocity without divergence and without mean whose vorticity $\omega = \partial_1 u_2 - \partial_2 u_1$ is
    given: $u = (-\partial_2 \psi, \partial_1 \psi)$ with the stream function $\nabla^2 \psi = \omega$, by FFT.

    **Arguments:** `points`: nodes per side of the result, at most `n`: fewer leave out the shorter waves.
    """
    n = vorticity.shape[-1]
    m = n if points is None else points
    if not 1 <= m <= n:
        raise ValueError(f"`points` must be from 1 to the {n} nodes per side of `vorticity`, got {points}.")
    first, second = _derivatives(n)
    laplacian = first**2 + second**2
    stream = jnp.fft.rfft2(vorticity) / jnp.where(laplacian == 0, jnp.ones_like(laplacian), laplacian)
    waves = jnp.stack([-second * stream, first * stream], axis=-1)
    # Waves of two nodes have no direction: they are left out.
    kept = (jnp.abs(first) < math.pi / EXTENT * m) & (jnp.abs(second) < math.pi / EXTENT * m)
    rows = jnp.concatenate([jnp.arange((m + 1) // 2), jnp.arange(n - m // 2, n)])
    waves = jnp.where(kept[..., None], waves, 0.0)[..., rows, : m // 2 + 1, :] * (m / n) ** 2
    return jnp.fft.irfft2(waves, s=(m, m), axes=(-3, -2))


def vorticity_of(velocity: Float[Array, "*batch n n 2"]) -> Float[Array, "*batch n n"]:
    r"""The vorticity $\partial_1 u_2 - \partial_2 u_1$ of a velocity on the periodic square, by FFT."""
    first, second = _derivatives(velocity.shape[-2])
    waves = jnp.fft.rfft2(velocity, axes=(-3, -2))
    curl = first * waves[..., 1] - second * waves[..., 0]
    return jnp.fft.irfft2(curl, s=velocity.shape[-3:-1])


def kolmogorov_solver(grid: int, step: float, reynolds: float):
    """The exponax stepper of the equation on `grid` nodes per side. Its vorticity `[1 n n]` has the opposite sign."""
    with jax.numpy_dtype_promotion("standard"):
        return _exponax().stepper.KolmogorovFlowVorticity(
            2, EXTENT, grid, step, diffusivity=1 / reynolds, drag=-DRAG, injection_mode=FORCED, order=4
        )


def _derivatives(n):
    """What the waves of an `rfft2` are multiplied with by a derivative along the first axis, and along the second."""
    first, second = jnp.fft.fftfreq(n, EXTENT / (2 * math.pi * n)), jnp.fft.rfftfreq(n, EXTENT / (2 * math.pi * n))
    return tuple(jax.lax.complex(jnp.zeros_like(k), k) for k in (first[:, None], second))


def _exponax():
    try:
        import exponax
    except ImportError as error:
        raise ImportError("Kolmogorov flow is simulated by exponax: pip install 'npax[tasks]'.") from error
    return exponax

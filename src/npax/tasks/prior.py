"""The prior on which the shipped model is trained: Gaussian processes of many kinds, designs and noises."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..alone import compiled_alone
from ..arguments import whole_number
from ..bias.distance import squared_distance
from ..task import Task
from ._base import AbstractTasks
from .designs import draw_places
from .posterior import PosteriorTask, draw_and_condition

DX = 3
"""Coordinates of every task; those of fewer dimensions are padded with zeros."""

# Profiles k(r) = (p0 + p1 r + p2 r²) exp(-a r - b r²), one row each; see `profile`.
_PROFILES = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.5],  # squared exponential
        [1.0, 0.0, 0.0, 1.0, 0.0],  # Matern 1/2
        [1.0, 3.0**0.5, 0.0, 3.0**0.5, 0.0],  # Matern 3/2
        [1.0, 5.0**0.5, 5.0 / 3.0, 5.0**0.5, 0.0],  # Matern 5/2
    ],
    np.float32,
)
_RATIONAL, _PERIODIC = 4, 5
SHORTEST, LONGEST = 0.05, 5.0
"""Length scales on [-2, 2]."""
ENDLESS = 3.0
"""Logarithm of a length scale along which a kernel hardly varies over [-2, 2]."""
_FAMILIES = np.array([0.3, 0.16, 0.22, 0.12, 0.08, 0.12], np.float32)


class Component(eqx.Module):
    """One stationary kernel: a profile of the distance between warped coordinates."""

    family: Array
    inverse_scale: Float[Array, " dx"]
    wave_number: Float[Array, " dx"]
    roughness: Array
    alpha: Array
    variance: Array

    def features(self, x: Float[Array, "n dx"]) -> Float[Array, "n 3*dx"]:
        r"""Coordinates in which the kernel is a function of the distance. A periodic kernel
        $\exp(-2 \sin^2(\pi \delta / p) / l^2)$ is a squared exponential on circles of radius $1/l$."""
        angle = x * self.wave_number
        turning = jnp.where(self.wave_number > 0, self.roughness, 0.0)
        parts = [x * self.inverse_scale, jnp.cos(angle) * turning, jnp.sin(angle) * turning]
        # Kept from fusing into the distances, where XLA would compute them again for every pair.
        return jax.lax.optimization_barrier(jnp.concatenate(parts, axis=-1))

    def __call__(self, x: Float[Array, "n dx"], y: Float[Array, "m dx"]) -> Float[Array, "n m"]:
        r2 = squared_distance(self.features(x), self.features(y))
        r = jnp.sqrt(r2 + 1e-12)
        p0, p1, p2, a, b = jnp.asarray(_PROFILES)[jnp.where(self.family < _RATIONAL, self.family, 0)]
        stationary = (p0 + p1 * r + p2 * r2) * jnp.exp(-a * r - b * r2)
        rational = jnp.exp(-self.alpha * jnp.log1p(r2 / (2 * self.alpha)))
        return self.variance * jnp.where(self.family == _RATIONAL, rational, stationary)


class Modulation(eqx.Module):
    r"""A positive function that varies slowly over space: $\exp(\sum_k a_k \cos(w_k \cdot x + \phi_k))$."""

    amplitude: Float[Array, " waves"]
    wave_vector: Float[Array, "waves dx"]
    phase: Float[Array, " waves"]

    @classmethod
    def draw(cls, key: PRNGKeyArray, plain, waves: int = 3) -> "Modulation":
        """Constant in plain tasks and in one of three others; else its logarithm varies by up to 0.7 (one sigma)."""
        uniforms, normals = jr.split(key)
        u = jr.uniform(uniforms, (waves + 2,))
        normal = jr.normal(normals, (waves, DX + 1))
        size = jnp.where(plain | (u[0] < 1 / 3), 0.0, 0.7 * u[1])
        return cls(size * (2 / waves) ** 0.5 * normal[:, 0], normal[:, 1:], 2 * jnp.pi * u[2:])

    def __call__(self, x: Float[Array, "n dx"]) -> Float[Array, " n"]:
        return jnp.exp(jnp.cos(x @ self.wave_vector.T + self.phase) @ self.amplitude)


class Field(eqx.Module):
    """A Gaussian process of the prior; called on places, the covariances between them."""

    components: Component  # two, stacked
    turn: Float[Array, "dx dx"]
    uneven: Modulation
    offset: Array
    slope: Array

    @classmethod
    def draw(cls, key: PRNGKeyArray, mask: Bool[Array, " nc"], dx, plain) -> "Field":
        """Of `dx` coordinates, for a context of which those points count where `mask` is `True`."""
        keys = iter(jr.split(key, 7))
        shortest = _shortest(next(keys), mask, dx)
        draw = jax.vmap(lambda key: draw_component(key, jnp.arange(DX) < dx, shortest))
        components = draw(jr.split(next(keys), 2))
        second, share = jr.uniform(next(keys), (2,))
        share = jnp.where(plain | (second > 0.6), 0.0, share)
        variance = jnp.square(jnp.exp(0.3 * jr.normal(next(keys)))) * jnp.stack([1 - share, share])
        offset, slope = jnp.where(plain, 0.0, _trend(next(keys)))
        return cls(
            components=eqx.tree_at(lambda c: c.variance, components, variance),
            turn=_rotation(next(keys), dx),
            uneven=Modulation.draw(next(keys), plain),
            offset=offset,
            slope=slope,
        )

    def __call__(self, x: Float[Array, "n dx"], y: Float[Array, "m dx"]) -> Float[Array, "n m"]:
        stationary = jnp.sum(jax.vmap(lambda c: c(x @ self.turn, y @ self.turn))(self.components), axis=0)
        stationary = self.uneven(x)[:, None] * stationary * self.uneven(y)[None, :]
        return stationary + jnp.square(self.offset) + jnp.square(self.slope) * (x @ y.T)

    def variance(self, x: Float[Array, "n dx"]) -> Float[Array, " n"]:
        stationary = jnp.sum(self.components.variance) * jnp.square(self.uneven(x))
        return stationary + jnp.square(self.offset) + jnp.square(self.slope) * jnp.sum(jnp.square(x), axis=-1)


class GPPrior(AbstractTasks):
    r"""Gaussian processes for pretraining: each task draws its dimension, kernel, noise and design.

    - half of the tasks are plain: one kernel, equal Gaussian noise, no trend. What is said below of sums, trends, heavy
      tails and amplitudes that vary holds of the other half;
    - dimension 1, 2 or 3, coordinates in about [-2, 2]; one column of `y`;
    - squared exponential, Matern 1/2, 3/2, 5/2, rational quadratic, (locally) periodic; alone or a sum of two;
    - length scales log-uniform over two decades [0.05, 5], half of them drawn nearer to 0.5; of 30 points and more in
      two thirds of the tasks from their mean spacing on, $4 / n^{1/d}$; other lengths along other axes in half of the
      kernels, in a quarter by a factor whose median is three in the plane, rotated in half; a direction without effect
      in an eighth of the kernels in the plane, a fifth in space;
    - noise from nearly none (0.003) to the size of the signal, in half of the tasks uniform from a tenth on;
      heavy-tailed in three tasks of ten (a Gaussian whose variance is itself random at each point); constant offsets
      and linear trends in some;
    - in two thirds each, the amplitude of the function and the noise vary over space (`Modulation`);
    - context uniform, clustered, on grids with repeats, on lattices without, with holes, along bands, in blobs, in
      narrow boxes, half of those of three coordinates on spheres (`designs`); its size log-uniform or uniform, 0
      included; targets in a box around it and close to it or, in two tasks of five, drawn as it is; in half of the
      tasks some of them at places of observations;
    - `y` standardised by the context's mean and standard deviation in half the tasks, as users' data are;
    - in the share `errors` of the tasks a further part of the noise on the context is known, as `task.error_c`: of
      standard deviations from a twentieth to twice the field's, equal, log-normal, or of two groups of which one may
      have none; in half of these what is left to be inferred is small.

    Given what was drawn all is Gaussian, so the exact posterior of the targets comes with the task, at less cost
    than a joint draw: with $K_{cc} + \Sigma = L L^\top$, $y = L \epsilon$ and $A = L^{-1} K_{ct}$ the posterior mean
    is $A^\top \epsilon$ and its variance $k_{tt} - \sum A^2$.

    **Arguments:** `nc`: slots for context points (the most there can be); `nt`: targets; `low`: the least number of
    context points; `errors`: share of tasks whose observations have known standard errors (0: `task.error_c` is None).
    """

    nc: int = eqx.field(static=True)
    nt: int = eqx.field(static=True)
    low: int = eqx.field(static=True, default=0)
    errors: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        if not 0 <= self.errors <= 1:
            raise ValueError(f"`errors` must be a share of the tasks, from 0 to 1, got {self.errors}.")
        whole_number(0, low=self.low)
        whole_number(1, nc=self.nc, nt=self.nt)
        if self.low > self.nc:
            raise ValueError(f"The context sizes must satisfy low <= nc, got low={self.low}, nc={self.nc}.")

    @compiled_alone
    def sample(self, key: PRNGKeyArray) -> PosteriorTask:
        keys = iter(jr.split(key, 10))
        plain = jr.bernoulli(next(keys))
        dx = jr.choice(next(keys), 3, p=jnp.array([0.35, 0.4, 0.25])) + 1
        mask = jnp.arange(self.nc, dtype=jnp.float32) < self._size(next(keys))
        xc, xt = draw_places(next(keys), dx, mask, self.nt)
        field = Field.draw(next(keys), mask, dx, plain)
        restless = Modulation.draw(next(keys), plain)
        noise, noise_c = draw_noise(next(keys), self.nc, plain)
        error, left = draw_errors(jr.fold_in(key, 10), self.nc, self.errors)
        noise, noise_c = left * noise * jnp.square(restless(xt)), left * noise_c * jnp.square(restless(xc)) + 1e-5
        k_cc, k_ct, k_tt = field(xc, xc), field(xc, xt), field.variance(xt)
        yc, mean, var = draw_and_condition(next(keys), k_cc, k_ct, k_tt, noise_c + jnp.square(error), mask)
        centre, scale = _spread(yc, mask, jr.bernoulli(next(keys)))
        yc, mean, error = (yc - centre) / scale, (mean - centre) / scale, error / scale
        var, noise = var / jnp.square(scale), noise / jnp.square(scale)

        # A factorisation that broke down makes a task without points, not a run without weights.
        sound = jnp.isfinite(jnp.sum(yc) + jnp.sum(mean) + jnp.sum(var))
        yc, mean, var = (jnp.where(sound, a, safe) for a, safe in ((yc, 0.0), (mean, 0.0), (var, 1.0)))
        yt = mean + jnp.sqrt(var) * jr.normal(next(keys), mean.shape)
        known = error[:, None] if self.errors else None
        task = Task(xc, yc[:, None], mask & sound, xt, yt[:, None], jnp.full(self.nt, sound), known)
        return PosteriorTask(task, mean[:, None], var[:, None], noise[:, None])

    def _size(self, key):
        """Log-uniform in half the tasks, uniform in the others."""
        which, share = jr.split(key)
        low, high = self.low + 0.8, self.nc + 0.999
        share = jr.uniform(share)
        log_uniform = low * (high / low) ** share
        return jnp.floor(jnp.where(jr.bernoulli(which), log_uniform, low + share * (high - low)))


class AsPrior(AbstractTasks):
    """Tasks of another prior in the form of `GPPrior`'s, half of them normalised as users' data are.

    Coordinates are padded with zeros to three. Half of the tasks are seen as `NeuralProcessRegressor` sees data: each
    coordinate of the context is stretched to [-2, 2], and its values have mean zero and standard deviation one.

    **Arguments:** `tasks`: samples `PosteriorTask`s with one column of `y` and at most three coordinates, such as
    `GPPosteriorTask`.
    """

    tasks: AbstractTasks

    def sample(self, key: PRNGKeyArray) -> PosteriorTask:
        draw, normalise = jr.split(key)
        posterior = self.tasks.sample(draw)
        task = posterior.task
        if task.xc.shape[-1] > DX:
            raise ValueError(f"`tasks` must have at most {DX} coordinates, got {task.xc.shape[-1]}.")
        chosen = jr.bernoulli(normalise)
        middle, stretch = _span(task.xc, task.mask_c, chosen)
        centre, scale = _spread(task.yc[:, 0], task.mask_c, chosen)
        xc, xt = (jnp.pad((x - middle) * stretch, ((0, 0), (0, DX - x.shape[-1]))) for x in (task.xc, task.xt))
        yc, yt, mean = ((y - centre) / scale for y in (task.yc, task.yt, posterior.mean))
        variance, noise = (v / jnp.square(scale) for v in (posterior.variance, posterior.noise))
        error = None if task.error_c is None else task.error_c / scale
        return PosteriorTask(Task(xc, yc, task.mask_c, xt, yt, task.mask_t, error), mean, variance, noise)


def draw_component(key: PRNGKeyArray, active, shortest) -> Component:
    """The kernel of coordinates of which those that are `active` count; length scales from the `shortest` on."""
    keys = iter(jr.split(key, 10))
    family = jr.choice(next(keys), len(_FAMILIES), p=jnp.asarray(_FAMILIES))
    wide = jr.uniform(next(keys))
    near = jnp.clip(0.5 + 0.2 * jr.normal(next(keys)), 0.0, 1.0)  # of two decades: about 0.5, times or over 2.5
    share = jnp.where(jr.bernoulli(next(keys), 0.5), wide, near)
    log_scale = jnp.log(shortest) + share * (jnp.log(LONGEST) - jnp.log(shortest))
    log_scale = log_scale + _anisotropy(next(keys), active)
    dull = _dull(next(keys), active)
    log_scale = jnp.where(dull, jnp.maximum(log_scale, ENDLESS), log_scale)
    period = jnp.exp(jr.uniform(next(keys), minval=jnp.log(jnp.maximum(0.2, 2 * shortest)), maxval=jnp.log(3.0)))
    roughness = jnp.exp(-jr.uniform(next(keys), minval=jnp.log(0.08), maxval=jnp.log(2.0)))
    envelope = jnp.where(jr.bernoulli(next(keys), 0.6), 0.0, jnp.exp(-jnp.maximum(log_scale, 0.0)))
    periodic = family == _PERIODIC
    return Component(
        family=family,
        inverse_scale=jnp.where(periodic, envelope, jnp.exp(-log_scale)),
        wave_number=jnp.where(periodic & active & ~dull, 2 * jnp.pi / period, 0.0),
        roughness=roughness,
        alpha=jnp.exp(jr.uniform(next(keys), minval=jnp.log(0.3), maxval=jnp.log(10.0))),
        variance=jnp.ones(()),
    )


def _shortest(key, mask, dx):
    """The shortest length scale: that of the finest fields, or, of many points in two thirds of the tasks, their mean
    spacing, since what they cannot resolve is noise to whoever has them."""
    n = jnp.maximum(jnp.sum(mask.astype(jnp.float32)), 1.0)
    spacing = jnp.maximum(4 / n ** (1 / dx), SHORTEST)
    return jnp.where(jr.bernoulli(key, 2 / 3) & (n >= 30), spacing, SHORTEST)


def _anisotropy(key, active):
    """What is added to the logarithm of the length scale along each axis: nothing in half of the kernels; in a quarter
    a little on all, in a quarter much on those along which the field varies least."""
    kind, size = jr.split(key)
    kind, axes = jr.uniform(kind), jr.normal(size, (DX,))
    longer = 1.2 * (axes - jnp.min(axes, where=active, initial=jnp.inf))
    return jnp.where(kind < 0.5, 0.0, jnp.where(kind < 0.75, 0.5 * axes, longer))


def _dull(key, active):
    """Which coordinate hardly matters: in a fifth of the kernels of three, in fewer of two, in none of one."""
    which, one = jr.split(key)
    axis = jnp.arange(DX) == jr.randint(one, (), 0, DX)
    return axis & active & (jnp.sum(active) > 1) & jr.bernoulli(which, 0.2)


def _rotation(key, dx):
    """A random rotation of the active coordinates in half the tasks, else the identity (as a quaternion's matrix)."""
    turned, axes = jr.split(key)
    free = jnp.array([[1.0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1]])[dx - 1]
    q = jr.normal(axes, (4,)) * free
    w, x, y, z = jnp.where(jr.bernoulli(turned), q / jnp.linalg.norm(q), jnp.array([1.0, 0.0, 0.0, 0.0]))
    return jnp.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _trend(key):
    """Standard deviations of a constant offset (two thirds of the tasks) and of linear slopes (a third)."""
    has, size = jr.uniform(key, (2, 2))
    return jnp.where(has < jnp.array([2 / 3, 1 / 3]), size, 0.0)


def draw_noise(key, nc, plain):
    """Mean noise variance, and that of each context point: equal, or inverse-chi-square around it (heavy tails)."""
    kind, size, heavy, freedom, scale = jr.split(key, 5)
    low, high = jnp.array([[0.003, 0.02], [0.02, 1.0], [0.1, 1.0]])[jr.choice(kind, 3, p=jnp.array([0.2, 0.3, 0.5]))]
    share = jr.uniform(size)
    std = jnp.where(low < 0.1, low * (high / low) ** share, low + share * (high - low))
    variance = jnp.square(std)
    degrees = jr.randint(freedom, (), 3, 9)  # of Student's t: the inverse of a chi-square mixes normals into it
    chi_square = jnp.sum(jnp.square(jr.normal(scale, (nc, 8))), axis=-1, where=jnp.arange(8) < degrees)
    spread = (degrees - 2).astype(jnp.float32) / jnp.maximum(chi_square, 0.05)
    return variance, variance * jnp.where(jr.bernoulli(heavy, 0.3) & ~plain, spread, 1.0)


def draw_errors(key: PRNGKeyArray, nc: int, share: float) -> tuple[Float[Array, " nc"], Float[Array, ""]]:
    """Known standard errors of the context's values, none but in the `share` of the tasks, and the factor on the
    variance of the noise that is left to be inferred."""
    has, kind, size, spread, values, few, ratio, left = jr.split(key, 8)
    size = 0.05 * (2.0 / 0.05) ** jr.uniform(size)
    log_normal = jnp.exp((0.2 + jr.uniform(spread)) * jr.normal(values, (nc,)))
    less = jnp.where(jr.uniform(ratio) < 1 / 3, 0.0, 0.05 + 0.45 * jr.uniform(jr.fold_in(ratio, 1)))
    groups = jnp.where(jr.bernoulli(jr.fold_in(few, 1), 0.1 + 0.8 * jr.uniform(few), (nc,)), less, 1.0)
    kind = jr.uniform(kind)
    pattern = jnp.where(kind < 0.25, 1.0, jnp.where(kind < 0.7, log_normal, groups))
    has = jr.bernoulli(has, share)
    small = jnp.where(jr.bernoulli(left), jnp.square(0.003 * (0.3 / 0.003) ** jr.uniform(jr.fold_in(left, 1))), 1.0)
    return jnp.where(has, size * pattern, 0.0), jnp.where(has, small, 1.0)


def _span(xc, mask, chosen):
    """What brings each coordinate of the context to [-2, 2]: its middle and the factor; 0 and 1 where not `chosen`."""
    mask = mask[:, None]
    low = jnp.min(xc, axis=0, initial=jnp.inf, where=mask)
    high = jnp.max(xc, axis=0, initial=-jnp.inf, where=mask)
    chosen = chosen & (high - low > 0.04)
    return jnp.where(chosen, (low + high) / 2, 0.0), jnp.where(chosen, 4 / (high - low), 1.0)


def _spread(yc, mask, chosen):
    """Mean and standard deviation of the context's values; 0 and 1 where not `chosen`."""
    n = jnp.maximum(jnp.sum(mask.astype(yc.dtype)), 1.0)
    mean = jnp.sum(jnp.where(mask, yc, 0.0)) / n
    std = jnp.sqrt(jnp.sum(jnp.where(mask, jnp.square(yc - mean), 0.0)) / n)
    chosen = chosen & (n > 1) & (std > 0.1)
    return jnp.where(chosen, mean, 0.0), jnp.where(chosen, std, 1.0)

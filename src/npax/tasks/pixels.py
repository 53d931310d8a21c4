"""Pixels of a lattice: where they lie, and which of them a task shows and asks for."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from ..task import Task


def pixel_coordinates(rows: int, columns: int, spacing: float) -> Float[Array, "{rows}*{columns} 2"]:
    """The centres of pixels `spacing` apart, row by row; the middle of the lattice is zero.

    The first coordinate goes down the rows, the second along the columns, so that values `[rows * columns dy]`
    reshape to a picture. With `spacing = 4 / side` a square lattice fills [-2, 2]; one of twice the side at the same
    spacing [-4, 4], at half the spacing the same square more finely. Ours: pixels are squares, and
    these their centres; the public code of KR2's authors has a grid from -2 to 2 for images, ends included.
    """
    axes = [spacing * (jnp.arange(n, dtype=jnp.float32) - (n - 1) / 2) for n in (rows, columns)]
    return jnp.stack(jnp.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


class Choice(NamedTuple):
    """Pixels (indices) of the context and of the targets, and which of the slots are taken."""

    context: Int[Array, " nc"]
    mask_c: Bool[Array, " nc"]
    targets: Int[Array, " nt"]
    mask_t: Bool[Array, " nt"]


class AbstractPixelChoice(eqx.Module):
    """How many pixels are context and targets; which ones is left to chance, all alike probable."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, pixels: int) -> Choice:
        """Of `pixels` in all. **Raises** `ValueError` where there are too few."""


class ContextAmongTargets(AbstractPixelChoice):
    r"""`nt` pixels are targets, and $n \sim U\{\texttt{low}, \dots, \texttt{nc}\}$ of them are seen (KR2, KR1).

    `nt=None`: all pixels are targets. **Pitfall:** the values of the context are asked for too, and known exactly:
    bound the standard deviation from below (`HeteroscedasticGaussian(dy, min_std=0.05)`), or likelihoods diverge.
    """

    nc: int = eqx.field(static=True)
    low: int = eqx.field(static=True)
    nt: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if not 0 <= self.low <= self.nc or (self.nt is not None and self.nt < self.nc):
            raise ValueError(
                f"The sizes must satisfy 0 <= low <= nc <= nt, got low={self.low}, nc={self.nc}, nt={self.nt}."
            )

    def draw(self, key, pixels):
        nt = pixels if self.nt is None else self.nt
        which, size = jr.split(key)
        chosen = some(which, pixels, max(nt, self.nc))
        n = jr.randint(size, (), self.low, self.nc + 1)
        return Choice(chosen[: self.nc], jnp.arange(self.nc) < n, chosen[:nt], jnp.ones(nt, bool))


class NestedSizes(AbstractPixelChoice):
    r"""$n \sim U\{\texttt{low}, \dots, \texttt{points}\}$ pixels are seen, and $m \sim U\{n, \dots, \texttt{points}\}$
    are targets, the seen ones among them (ANP App. D)."""

    points: int = eqx.field(static=True, default=200)
    low: int = eqx.field(static=True, default=3)

    def __check_init__(self):
        if not 0 <= self.low <= self.points:
            raise ValueError(f"The sizes must satisfy 0 <= low <= points, got low={self.low}, points={self.points}.")

    def draw(self, key, pixels):
        which, seen, asked = jr.split(key, 3)
        chosen = some(which, pixels, self.points)
        n = jr.randint(seen, (), self.low, self.points + 1)
        m = jr.randint(asked, (), n, self.points + 1)
        order = jnp.arange(self.points)
        return Choice(chosen, order < n, chosen, order < m)


class ContextAndRest(AbstractPixelChoice):
    r"""$n \sim U\{\texttt{low}, \dots, \texttt{nc}\}$ pixels are seen, and **all others** are targets (TE F.2).

    `nt`: so many of the others instead, drawn at random; in training a few say nearly as much as all, at a fraction of
    the cost.
    """

    nc: int = eqx.field(static=True)
    low: int = eqx.field(static=True)
    nt: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if not 0 <= self.low <= self.nc or (self.nt is not None and self.nt < 1):
            raise ValueError(
                f"The sizes must satisfy 0 <= low <= nc and nt >= 1, got low={self.low}, nc={self.nc}, nt={self.nt}."
            )

    def draw(self, key, pixels):
        which, size = jr.split(key)
        if self.nc > pixels:
            raise ValueError(f"The task shows {self.nc} pixels, and the picture has {pixels}. Choose fewer.")
        nt = pixels - self.low if self.nt is None else self.nt
        chosen = some(which, pixels, min(self.nc + nt, pixels))
        n = jr.randint(size, (), self.low, self.nc + 1)
        at = n + jnp.arange(nt)
        targets = chosen[jnp.minimum(at, len(chosen) - 1)]
        return Choice(chosen[: self.nc], jnp.arange(self.nc) < n, targets, at < len(chosen))


def pixel_task(x: Float[Array, "pixels dx"], y: Float[Array, "pixels dy"], choice: Choice) -> Task:
    """The task that shows some pixels of a picture and asks for others."""
    context, targets = choice.context, choice.targets
    return Task(x[context], y[context], choice.mask_c, x[targets], y[targets], choice.mask_t)


def some(key: PRNGKeyArray, pixels: int, n: int) -> Int[Array, " n"]:
    """`n` different ones of `pixels`, in random order. A quarter of them costs a seventh of `jax.random.permutation`.

    **Raises** `ValueError` where there are not so many.
    """
    if n > pixels:
        raise ValueError(f"The task takes {n} pixels, and the picture has {pixels}. Choose fewer.")
    return jax.lax.top_k(jr.uniform(key, (pixels,)), n)[1]

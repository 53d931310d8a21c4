"""Pictures whose own gaps, moved to where they are seen, hide what is asked for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..arguments import booleans
from ._base import AbstractTasks


class HiddenPixels(eqx.Module):
    """A picture of which a part is seen, `mask`, and another is asked for, `wanted`.

    **Shapes:** `y [rows columns dy]`, anything where neither holds; `mask`, `wanted [rows columns]`.
    """

    y: Float[Array, "*batch rows columns dy"]
    mask: Bool[Array, "*batch rows columns"]
    wanted: Bool[Array, "*batch rows columns"]


class MovedGapsTask(AbstractTasks):
    """Squares cut out of pictures, turned and mirrored, in which gaps of these pictures hide what is seen.

    The gaps of a random picture, mirrored at random and moved round the torus, are laid over another; what they cover
    there is asked for.

    **Arguments:** `y [pictures rows columns dy]`, finite; `seen [pictures rows columns]`; `side`: of the squares, at
    most as many pixels as the picture's shorter side.
    """

    y: Float[Array, "pictures rows columns dy"] = eqx.field(converter=jnp.asarray)
    seen: Bool[Array, "pictures rows columns"] = eqx.field(converter=jnp.asarray)
    side: int = eqx.field(static=True)

    def __check_init__(self):
        if self.y.ndim != 4 or self.y.shape[:3] != self.seen.shape:
            raise ValueError(
                "`y` and `seen` must be [pictures rows columns dy] and [pictures rows columns], "
                f"got {self.y.shape} and {self.seen.shape}."
            )
        booleans(seen=self.seen)
        most = min(self.seen.shape[1:])
        if not 1 <= self.side <= most:
            raise ValueError(f"`side` must be from 1 to the shorter side of the pictures, {most}; got {self.side}.")

    def sample(self, key: PRNGKeyArray) -> HiddenPixels:
        which, shift, place, turn, other = jr.split(key, 5)
        pictures, *sides = self.seen.shape
        i, j = jr.randint(which, (2,), 0, pictures)
        by = jr.randint(shift, (2,), 0, jnp.array(sides))
        gaps = jnp.roll(_turned(~self.seen[j], other, transpose=False), by, (0, 1))
        start = jr.randint(place, (2,), 0, jnp.array(sides) - self.side + 1)
        seen, gaps = (jax.lax.dynamic_slice(a, start, 2 * (self.side,)) for a in (self.seen[i], gaps))
        size = (self.side, self.side, self.y.shape[-1])
        y = jax.lax.dynamic_slice(self.y[i], (*start, jnp.zeros((), start.dtype)), size)
        y, seen, gaps = (_turned(a, turn) for a in (y, seen, gaps))
        return HiddenPixels(y, seen & ~gaps, seen & gaps)


def _turned(a, key, transpose=True):
    """One of the mirror images, rotations included where `transpose`."""
    flips = jr.bernoulli(key, shape=(3,))
    a = jnp.where(flips[0], a[::-1], a)
    a = jnp.where(flips[1], a[:, ::-1], a)
    return jnp.where(flips[2], jnp.swapaxes(a, 0, 1), a) if transpose else a

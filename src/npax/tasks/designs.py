"""Where observations lie: uniform, clustered, on grids, with holes, in narrow boxes. Coordinates in [-2, 2]."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

DX = 3


def draw_context(key: PRNGKeyArray, n: int) -> Float[Array, "n 3"]:
    """Locations of observations under a random design; the first points are as spread as the rest."""
    kind, narrow, box, points = jr.split(key, 4)
    which = jr.choice(kind, 4, p=jnp.array([0.5, 0.2, 0.12, 0.18]))
    sides = jnp.where(jr.bernoulli(narrow, 0.3), jr.uniform(box, (DX,), minval=0.3, maxval=1.0), 1.0)
    drawn = jnp.stack([design(points, n) for design in (_uniform, _clustered, _gridded, _with_hole)])
    return drawn[which] * sides


def draw_targets(key: PRNGKeyArray, xc: Float[Array, "nc 3"], mask: Bool[Array, " nc"], n: int) -> Float[Array, "n 3"]:
    """Targets: two thirds uniform in a box a little larger than the domain, a third close to observations."""
    free, pick, step, reach = jr.split(key, 4)
    uniform = jr.uniform(free, (n, DX), minval=-2.2, maxval=2.2)
    near = xc[jr.randint(pick, (n,), 0, jnp.maximum(jnp.sum(mask), 1))]
    width = jnp.exp(jr.uniform(reach, (n, 1), minval=jnp.log(0.01), maxval=jnp.log(0.5)))
    near = near + width * jr.normal(step, (n, DX))
    return jnp.where((jnp.arange(n) % 3 == 0)[:, None] & jnp.any(mask), near, uniform)


def _uniform(key, n):
    return jr.uniform(key, (n, DX), minval=-2.0, maxval=2.0)


def _clustered(key, n):
    """Up to eight clusters of one width over a thin uniform background."""
    centre, number, member, width, step, thin, back = jr.split(key, 7)
    centres = jr.uniform(centre, (8, DX), minval=-1.8, maxval=1.8)
    count = jr.randint(number, (), 1, 9)
    std = jnp.exp(jr.uniform(width, minval=jnp.log(0.05), maxval=jnp.log(0.8)))
    x = centres[jr.randint(member, (n,), 0, count)] + std * jr.normal(step, (n, DX))
    return jnp.where(jr.bernoulli(thin, 0.2, (n, 1)), _uniform(back, n), _fold(x))


def _gridded(key, n):
    """Nodes of a grid, each with points dropped on it at random: gaps and repeated points included."""
    side, points = jr.split(key)
    nodes = jr.randint(side, (), 4, 65).astype(jnp.float32)
    return jnp.round((_uniform(points, n) + 2) / 4 * nodes) / nodes * 4 - 2


def _with_hole(key, n):
    """Uniform outside a range of the first coordinate, in which few points fall."""
    place, size, first, second = jr.split(key, 4)
    centre = jr.uniform(place, (DX,), minval=-1.5, maxval=1.5)
    half = jr.uniform(size, minval=0.2, maxval=1.2)
    a, b = _uniform(first, n), _uniform(second, n)
    inside = jnp.abs(a - centre)[:, :1] < half
    return jnp.where(inside, b, a)


def _fold(x):
    """Reflects coordinates back into [-2, 2]."""
    return jnp.abs(jnp.mod(x - 2, 8) - 4) - 2

"""Where observations and targets lie: uniform, clustered, on grids, with holes, along bands, in blobs, on spheres.
Coordinates in [-2, 2]."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

DX = 3


def draw_places(
    key: PRNGKeyArray, dx: Int[Array, ""], mask: Bool[Array, " nc"], nt: int
) -> tuple[Float[Array, "nc 3"], Float[Array, "nt 3"]]:
    """Locations of observations under a random design, and of targets; zero in the columns from `dx` on.

    In two tasks of five targets are drawn as the observations are: other stations of the same network. Half of the
    tasks of three coordinates lie on a sphere or a part of it, as longitudes and latitudes do (`coords="latlon"`).
    """
    design, kind, targets, where, cap = jr.split(key, 5)
    places = _draw_design(design, len(mask) + nt)
    xc, alike = places[: len(mask)], places[len(mask) :]
    xt = jnp.where(jr.bernoulli(kind, 0.4), alike, _draw_targets(targets, xc, mask, nt))
    round_the_globe = (dx == DX) & jr.bernoulli(where)
    on_sphere = _on_sphere(cap, xc, xt)
    used = (jnp.arange(DX) < dx).astype(xc.dtype)
    return jnp.where(round_the_globe, on_sphere[0], xc) * used, jnp.where(round_the_globe, on_sphere[1], xt) * used


def _draw_design(key, n):
    """The first points are as spread as the rest."""
    kind, narrow, box, points = jr.split(key, 4)
    designs = (_uniform, _clustered, _gridded, _with_hole, _band, _blob)
    which = jr.choice(kind, len(designs), p=jnp.array([0.34, 0.14, 0.12, 0.14, 0.12, 0.14]))
    sides = jnp.where(jr.bernoulli(narrow, 0.3), jr.uniform(box, (DX,), minval=0.3, maxval=1.0), 1.0)
    return jnp.stack([design(points, n) for design in designs])[which] * sides


def _draw_targets(key, xc, mask, n):
    """Two thirds uniform in a box a little larger than the domain, a third close to observations."""
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


def _band(key, n):
    """Along a winding curve, as the sites on a river's banks or the casts of a ship's track."""
    size, phase, length, place, width, step = jr.split(key, 6)
    waves = jnp.arange(1.0, 4.0)[:, None]
    turns = jr.uniform(length, minval=0.5, maxval=1.0) * jnp.pi * waves * jr.uniform(place, (n, 1, 1))
    turns = turns + jr.uniform(phase, (3, DX), maxval=2 * jnp.pi)
    curve = jnp.sum(jr.normal(size, (3, DX)) / waves * jnp.cos(turns), axis=1)
    std = jnp.exp(jr.uniform(width, minval=jnp.log(0.02), maxval=jnp.log(0.5)))
    return _fold(_stretched(curve) + std * jr.normal(step, (n, DX)))


def _blob(key, n):
    """In a region of irregular outline, such as a country, denser in its middle or towards its border."""
    direction, radius, power, size, wave, phase = jr.split(key, 6)
    d = jr.normal(direction, (n, DX))
    d = d / jnp.linalg.norm(d, axis=-1, keepdims=True)
    outline = jnp.cos(d @ jr.normal(wave, (DX, 4)) + jr.uniform(phase, (4,), maxval=2 * jnp.pi))
    outline = jnp.exp(outline @ (0.4 * jr.normal(size, (4,))))
    share = jr.uniform(radius, (n,)) ** jr.uniform(power, minval=0.2, maxval=0.6)
    return _stretched((share * outline)[:, None] * d)


def _on_sphere(key, xc, xt):
    """The plane of the first two coordinates rolled on a sphere, from nearly flat to nearly closed, and framed as
    `LatLon` does: the third axis points up from the middle, all have one scale and the context fills [-2, 2]."""
    curvature = jnp.exp(jr.uniform(key, minval=jnp.log(0.03), maxval=jnp.log(1.1)))

    def rolled(x):
        x = curvature * x[:, :2]
        angle = jnp.sqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True) + 1e-12)
        return jnp.concatenate([jnp.sin(angle) / angle * x, jnp.cos(angle)], axis=-1)

    xc, xt = rolled(xc), rolled(xt)
    middle, half = _middle_and_half(xc)
    scale = 2 / jnp.maximum(jnp.max(half), 1e-3)
    return (xc - middle) * scale, (xt - middle) * scale


def _stretched(x):
    """Each coordinate so that it fills [-2, 2]."""
    middle, half = _middle_and_half(x)
    return 2 * (x - middle) / jnp.maximum(half, 1e-3)


def _middle_and_half(x):
    low, high = jnp.min(x, axis=0), jnp.max(x, axis=0)
    return (low + high) / 2, (high - low) / 2


def _fold(x):
    """Reflects coordinates back into [-2, 2]."""
    return jnp.abs(jnp.mod(x - 2, 8) - 4) - 2

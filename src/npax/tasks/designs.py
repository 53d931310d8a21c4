"""Where observations and targets lie: uniform, clustered, on grids, on lattices, with holes, along bands, in blobs, on
spheres. Coordinates in [-2, 2]."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

DX = 3


def draw_places(
    key: PRNGKeyArray, dx: Int[Array, ""], mask: Bool[Array, " nc"], nt: int
) -> tuple[Float[Array, "nc 3"], Float[Array, "nt 3"]]:
    """Locations of observations under a random design, and of targets; zero in the columns from `dx` on.

    In two tasks of five targets are drawn as the observations are: other stations of the same network. In half of the
    tasks a fifth of the targets lie where there are observations, to the bit: who fits a model asks it there too. Half
    of the tasks of three coordinates lie on a sphere or a part of it, as longitudes and latitudes do
    (`coords="latlon"`).
    """
    design, sides, kind, targets, where, cap, again = jr.split(key, 7)
    round_the_globe = (dx == DX) & jr.bernoulli(where)
    seen = jnp.sum(mask.astype(jnp.float32))
    sides = _draw_sides(sides)
    places = sides * _draw_design(design, len(mask) + nt, jnp.where(round_the_globe, 2, dx), seen)
    xc, alike = places[: len(mask)], places[len(mask) :]
    xt = jnp.where(jr.bernoulli(kind, 0.4), alike, _draw_targets(targets, xc, mask, nt, sides))
    on_sphere = _on_sphere(cap, xc, xt)
    used = (jnp.arange(DX) < dx).astype(xc.dtype)
    xc, xt = (jnp.where(round_the_globe, there, flat) * used for there, flat in zip(on_sphere, (xc, xt), strict=True))
    return xc, _some_at(again, xc, mask, xt)


def _draw_design(key, n, dx, seen):
    """The first points are as spread as the rest; on a lattice the first `seen` of them are its nodes."""
    kind, points = jr.split(key)
    designs = (_uniform, _clustered, _gridded, _with_hole, _band, _blob)
    which = jr.choice(kind, 1 + len(designs), p=jnp.array([0.24, 0.24, 0.10, 0.06, 0.12, 0.11, 0.13]))
    lattice = _lattice(points, n, dx, seen)
    return jnp.stack([lattice, *(design(points, n) for design in designs)])[which]


def _draw_sides(key):
    """Of the box, 1 is the whole domain. In a third of the tasks it is narrow, in half of these down to a twentieth:
    coordinates along which a function varies slowly are of units as long as those."""
    narrow, much, box = jr.split(key, 3)
    share = jr.uniform(box, (DX,))
    sides = jnp.where(jr.bernoulli(much), 0.05**share, 1.0 - 0.7 * share)
    return jnp.where(jr.bernoulli(narrow, 1 / 3), sides, 1.0)


def _draw_targets(key, xc, mask, n, sides):
    """Two thirds uniform in a box a little larger than the domain or, in half of the tasks, than the observations' box,
    a third close to observations."""
    free, pick, step, reach = jr.split(key, 4)
    uniform = jr.uniform(free, (n, DX), minval=-2.2, maxval=2.2)
    uniform = uniform * jnp.where(jr.bernoulli(jr.fold_in(free, 1)), sides, 1.0)
    near = xc[jr.randint(pick, (n,), 0, jnp.maximum(jnp.sum(mask), 1))]
    width = jnp.exp(jr.uniform(reach, (n, 1), minval=jnp.log(0.01), maxval=jnp.log(0.5)))
    near = near + width * jr.normal(step, (n, DX))
    return jnp.where((jnp.arange(n) % 3 == 0)[:, None] & jnp.any(mask), near, uniform)


def _some_at(key, xc, mask, xt):
    """In half of the tasks, a fifth of the targets moved to places of observations."""
    often, which, pick = jr.split(key, 3)
    chosen = jr.bernoulli(which, 0.2, (len(xt), 1)) & jr.bernoulli(often) & jnp.any(mask)
    return jnp.where(chosen, xc[jr.randint(pick, (len(xt),), 0, jnp.maximum(jnp.sum(mask), 1))], xt)


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


def _lattice(key, n, dx, seen):
    """At most one point on each node of a lattice of `dx` axes: what is measured every day, or on a raster. In half of
    them row by row without a gap; else up to half of the nodes are left out, which targets may lie on. Some are shaken
    by up to half a step, some turned in the plane."""
    free, gaps, missing, sizes, pick, shaken, shake, by, turned, angle = jr.split(key, 10)
    missing = jnp.where(jr.bernoulli(gaps), jr.uniform(missing, maxval=0.5), 0.0)
    sides = _sides(sizes, dx, seen / (1 - missing))
    nodes, slots = jnp.prod(sides), jnp.arange(3 * n)
    order = jnp.where(missing > 0, jr.uniform(pick, slots.shape), 1 - slots.astype(jnp.float32) / len(slots))
    node = jax.lax.top_k(jnp.where(slots < nodes, order, -1.0), n)[1]
    at = jnp.stack([node, node // sides[0], node // (sides[0] * sides[1])], axis=1) % sides
    size = jnp.where(jr.bernoulli(shaken, 1 / 3), jr.uniform(shake, maxval=0.5), 0.0)
    at = at.astype(jnp.float32) + size * jr.uniform(by, (n, DX), minval=-1.0)
    last = jnp.maximum(sides - 1, 1).astype(jnp.float32)
    x = jnp.where(sides > 1, 2 * (at + size) / (last + 2 * size) - 1, 0.0)
    x = _turned(angle, x, (dx > 1) & jr.bernoulli(turned, 0.25))
    return jnp.where((node < nodes)[:, None], 2 * x, _uniform(free, n))


def _sides(key, dx, nodes):
    """Of a lattice of `dx` axes with about so many nodes, or some more: whole numbers, at least one."""
    ratios = jnp.exp(jr.uniform(key, (2,), minval=-0.7, maxval=0.7))
    first = jnp.where(dx == 1, nodes, jnp.round(ratios[0] * nodes ** (1 / dx)))
    rest = nodes / jnp.maximum(first, 1)
    second = jnp.where(dx == 3, jnp.round(ratios[1] * jnp.sqrt(rest)), jnp.where(dx == 2, rest, 1.0))
    third = jnp.where(dx == 3, rest / jnp.maximum(second, 1), 1.0)
    return jnp.maximum(jnp.ceil(jnp.stack([first, second, third])), 1).astype(jnp.int32)


def _turned(key, x, chosen):
    """The first two coordinates by any angle, made smaller so that a square stays within its sides."""
    angle = jnp.where(chosen, jr.uniform(key, maxval=jnp.pi), 0.0)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    plane = jnp.stack([cos * x[:, 0] - sin * x[:, 1], sin * x[:, 0] + cos * x[:, 1]], axis=1)
    return jnp.concatenate([plane / (jnp.abs(cos) + jnp.abs(sin)), x[:, 2:]], axis=1)


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
    `LatLon` does: the third axis points up from the middle, all have one scale and the slots of the context, whether
    they count or not (a few alone would be of no extent), fill [-2, 2]."""
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

"""The ConvCNP on the grid: its pyramid against numpy, its two doors against each other, and what it promises."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
from laws import close, normal

import npax
from npax.blocks import pull_push, pyramid
from npax.models.grid_convcnp import _nodes, _patches


def tiny(dx=2, dy=1, **changes):
    shape = {"spacing": 0.25, "extent": 3.0, "sizes": (8, 12), "blocks": (1, 1), "window": 3, **changes}
    return npax.GridConvCNP(dx, dy, **shape, key=jr.key(5))


@eqx.filter_jit
def on_grid(model, y, mask):
    d = model.on_grid(y, mask)
    return d.mean, d.variance


@eqx.filter_jit
def predict(model, xc, yc, mask, xt):
    d = model(xc, yc, xt, mask)
    return d.mean, d.variance


def test_the_pyramid_holds_means_and_spreads_of_what_is_seen(rng):
    y, seen = rng.standard_normal((8, 12, 2)).astype(np.float32), rng.random((8, 12)) < 0.3
    levels = jax.jit(lambda *a: pyramid(*a, 3))(np.where(seen[..., None], y, 0), seen[..., None].astype(np.float32))
    for k, level in enumerate(levels):
        step = 2**k
        for i, j in np.ndindex(8 // step, 12 // step):
            cell = np.s_[step * i : step * (i + 1), step * j : step * (j + 1)]
            values = y[cell][seen[cell]].astype(np.float64)
            assert np.isclose(level.share[i, j, 0], seen[cell].mean())
            assert np.allclose(level.mean[i, j], values.mean(axis=0) if len(values) else 0, atol=1e-5)
            spread = np.sqrt(values.var(axis=0) + 1e-6) if len(values) else 0
            assert np.allclose(level.spread[i, j], spread, atol=1e-3)


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_the_filled_picture_keeps_what_is_seen_and_constants(share, rng):
    y, seen = rng.standard_normal((16, 16, 1)).astype(np.float32), rng.random((16, 16, 1)) < share
    seen[3, 5] = True
    filled = jax.jit(lambda y, share: pull_push(pyramid(y * share, share, 5)))
    found = filled(y, seen.astype(np.float32))
    assert [a.shape[0] for a in found] == [16, 8, 4, 2, 1]
    assert np.allclose(found[0][seen[..., 0]], y[seen[..., 0]], atol=1e-5)
    assert np.abs(found[0]).max() <= np.abs(y[seen]).max() + 1e-5, "no gap is filled with more than what is seen"
    assert np.allclose(filled(np.full_like(y, 3.0), seen.astype(np.float32))[0], 3.0, atol=1e-4)


@pytest.mark.parametrize("dx", [1, 2])
def test_wide_gaps_are_filled_by_nearly_harmonic_functions(dx):
    """A wave that falls off by Laplace's equation, known around a gap: without the sweeps there are coarse edges."""
    x = np.stack(np.meshgrid(*dx * [np.linspace(-1, 1, 32)], indexing="ij"), axis=-1)
    y = np.float32(x[..., :1] if dx == 1 else np.exp(2 * x[..., :1]) * np.cos(2 * x[..., 1:]))
    seen = np.float32(np.abs(x).max(axis=-1, keepdims=True) > 0.55)

    def error(**sweeps):
        filled = jax.jit(lambda y, share: pull_push(pyramid(y * share, share, 5), **sweeps)[0])(y, seen)
        return np.sqrt(np.mean((np.asarray(filled) - y)[seen == 0] ** 2)) / y[seen == 0].std()

    assert error() < 0.1 < error(sweeps=0)


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_patches_are_taken_apart_as_they_were_put_together(dx, rng):
    a = rng.standard_normal((*(4, 6, 8)[:dx], 3)).astype(np.float32)
    patches = _patches(jnp.asarray(a))
    assert patches.shape == (*(2, 3, 4)[:dx], 3 * 2**dx)
    first = a[tuple(slice(2) for _ in range(dx))].reshape(-1)
    assert np.array_equal(patches[(0,) * dx], first)
    assert np.array_equal(_nodes(patches, dx), a)


@pytest.mark.parametrize("jitter", [0.0, 2e-5])
def test_points_on_the_nodes_get_what_the_picture_gets(jitter, rng):
    model = tiny()
    side = model.grid.side
    y, mask = rng.standard_normal((side, side, 1)).astype(np.float32), rng.random((side, side)) < 0.4
    mask[:4], mask[-4:], mask[:, :4], mask[:, -4:] = False, False, False, False
    mask[4, 4] = mask[-5, -5] = True
    at = np.stack(np.nonzero(mask), axis=1) * np.float32(0.25)
    at = (at + jitter * rng.standard_normal(at.shape)).astype(np.float32)
    origin = np.asarray(model.grid.origin(jnp.asarray(at), jnp.ones(len(at), bool)))
    shift = np.round(origin / 0.25).astype(int)  # of the model's grid against this picture
    assert (shift % model.stride == 0).all()
    picture, seen = np.zeros_like(y), np.zeros_like(mask)
    rows, columns = (np.stack(np.nonzero(mask)) - shift[:, None]).tolist()
    picture[rows, columns], seen[rows, columns] = y[mask], True
    nodes = origin + 0.25 * np.stack(np.meshgrid(*2 * [np.arange(side)], indexing="ij"), axis=-1).reshape(-1, 2)
    found = predict(model, at, y[mask], np.ones(len(at), bool), nodes.astype(np.float32))
    assert close([a.reshape(side, side, 1) for a in found], on_grid(model, picture, seen), 1e-4)


def test_between_nodes_the_raw_numbers_are_interpolated(rng):
    model = tiny(dx=1, likelihood=npax.likelihoods.HomoscedasticGaussian(1))
    x, y = rng.uniform(-1, 1, (9, 1)).astype(np.float32), rng.standard_normal((9, 1)).astype(np.float32)
    origin = float(model.grid.origin(jnp.asarray(x), jnp.ones(9, bool))[0])
    nodes = np.float32(origin + 0.25 * np.arange(model.grid.side))
    xt = np.linspace(nodes[0], nodes[-1], 50, dtype=np.float32)
    at_nodes = predict(model, x, y, np.ones(9, bool), nodes[:, None])[0]
    between = predict(model, x, y, np.ones(9, bool), xt[:, None])[0]
    assert np.allclose(between[:, 0], np.interp(xt, nodes, at_nodes[:, 0]), atol=1e-5)


@pytest.mark.parametrize("sides", [(5, 9), (16, 3)])
def test_pictures_of_any_size_and_nothing_under_the_mask(sides, rng):
    model, mask = tiny(dy=2), rng.random(sides) < 0.5
    y = rng.standard_normal((*sides, 2)).astype(np.float32)
    found = on_grid(model, np.where(mask[..., None], y, np.float32(np.nan)), mask)
    assert found[0].shape == (*sides, 2) and all(np.isfinite(a).all() for a in found)
    assert close(on_grid(model, np.where(mask[..., None], y, np.float32(1e30)), mask), found)
    assert not close(on_grid(model, y + 1, mask), found), "what is seen counts"
    wider = tuple(n + -n % model.stride for n in sides)
    ends = [(0, w - n) for w, n in zip(wider, sides, strict=True)]
    padded = on_grid(model, np.pad(y, [*ends, (0, 0)]), np.pad(mask, ends))
    assert close([a[: sides[0], : sides[1]] for a in padded], found)


def test_it_begins_with_the_filled_picture():
    """An untrained head adds little; the mean starts at what surrounds a gap."""
    model = tiny()
    model = eqx.tree_at(lambda m: m.head, model, jax.tree.map(jnp.zeros_like, model.head))
    y, mask = np.float32(normal(jr.key(0), (16, 16, 1))), np.asarray(normal(jr.key(1), (16, 16))) > 0.5
    share = mask[..., None].astype(np.float32)
    assert (
        reference.relative(
            on_grid(model, y, mask)[0], jax.jit(lambda *a: pull_push(pyramid(*a, 3)))(y * share, share)[0]
        )
        < 1e-5
    )


@pytest.mark.parametrize(
    "y, mask, error, message",
    [
        ((8, 8), (8, 8), ValueError, r"`y` must have the sides of the picture, 2, and then the 1 columns .* \[8, 8\]"),
        ((8, 8, 2), (8, 8), ValueError, r"got the shape \[8, 8, 2\]"),
        ((1, 8, 1), (8, 8), ValueError, r"`mask` must have the sides of `y`, \[1, 8\]; got \[8, 8\]"),
        ((8, 8, 1), (8, 8), TypeError, "`mask` must be of True and False"),
    ],
)
def test_pictures_of_other_shapes_are_refused(y, mask, error, message):
    mask = np.ones(mask, bool if error is ValueError else np.float32)
    with pytest.raises(error, match=message):
        inspect.unwrap(npax.GridConvCNP.on_grid)(tiny(), np.zeros(y, np.float32), mask)

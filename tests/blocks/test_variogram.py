"""The variogram of a picture with gaps against pairs counted one by one and covariances that are known."""

import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from npax.blocks import VariogramEncoder, variogram
from npax.blocks.variogram import directions
from npax.tasks.fields import matern_field


def test_directions_are_half_of_the_neighbours():
    assert [len(directions(dx)) for dx in (1, 2, 3)] == [1, 4, 13]
    for dx in (1, 2, 3):
        both = {step for d in directions(dx) for step in (d, tuple(-s for s in d))}
        assert both == set(itertools.product((-1, 0, 1), repeat=dx)) - {(0,) * dx}


@settings(max_examples=8, deadline=None)
@given(dx=st.integers(1, 3), seed=st.integers(0, 99), fractional=st.booleans())
def test_all_pairs_counted_one_by_one(dx, seed, fractional):
    rng = np.random.default_rng(seed)
    side, lags = (5, 4, 6)[:dx], (1, 3, 4, 7)
    y, share = rng.standard_normal((*side, 2)), rng.random((*side, 1))
    share = share if fractional else np.round(share)
    found = variogram(jnp.float32(y), jnp.float32(share), lags, pairs=2.0)
    assert found.shape == (len(directions(dx)), len(lags), 2)
    for (i, direction), (j, lag) in itertools.product(enumerate(directions(dx)), enumerate(lags)):
        unlike, weights = 2.0, 2.0
        for here in np.ndindex(side):
            there = tuple(h + lag * d for h, d in zip(here, direction, strict=True))
            if all(0 <= t < n for t, n in zip(there, side, strict=True)):
                weight = share[(*here, 0)] * share[(*there, 0)]
                unlike, weights = unlike + 0.5 * weight * (y[here] - y[there]) ** 2, weights + weight
        assert np.allclose(found[i, j], unlike / weights, rtol=1e-5)


def test_a_rough_field_with_noise_is_seen_through_gaps():
    """Matern 3/2, twice as long down the rows as along them, and noise of variance 0.3."""
    draw, noise, seen = jr.split(jr.key(1), 3)
    field = matern_field(
        draw, 512, smoothness=jnp.array(1.5), scale=jnp.array(8.0), stretch=jnp.array(2.0), angle=jnp.array(0.0)
    )
    y = field + jnp.sqrt(0.3) * jr.normal(noise, field.shape)
    share = jr.bernoulli(seen, 0.4, field.shape).astype(y.dtype)
    lags = np.array([1, 2, 4, 8])
    found = variogram((share * y)[..., None], share[..., None], lags.tolist())[..., 0]
    rows, columns = (found[directions(2).index(d)] for d in ((1, 0), (0, 1)))
    for semivariance, scale in ((rows, 8 * 2**0.5), (columns, 8 / 2**0.5)):
        distance = 3**0.5 * lags / scale
        assert np.allclose(semivariance, 0.3 + 1 - (1 + distance) * np.exp(-distance), atol=0.04)


def test_nothing_seen_is_told_as_unit_variance_and_has_gradients():
    y, share = jnp.zeros((6, 6, 1)), jnp.zeros((6, 6, 1))
    assert np.allclose(variogram(y, share, (1, 2, 9)), 1.0)
    encoder = VariogramEncoder((1, 2, 9), 8, dx=2, dy=1, key=jr.key(0))
    for known in (share, share + 1):  # a constant picture has no semivariance at all
        gradient = jax.grad(lambda y, known=known: jnp.sum(encoder(y, known)))(y)
        assert encoder(y, known).shape == (8,) and np.isfinite(gradient).all()


def test_what_hidden_nodes_hold_is_not_told():
    rng = np.random.default_rng(0)
    y, seen = rng.standard_normal((8, 8, 1)).astype(np.float32), rng.random((8, 8, 1)) < 0.5
    found = [variogram(jnp.where(seen, y, other), jnp.float32(seen), (1, 2)) for other in (0.0, 99.0)]
    assert np.allclose(*found) and not np.allclose(found[0], variogram(jnp.asarray(y), jnp.ones_like(y), (1, 2)))


def test_lags_below_one_are_refused():
    with pytest.raises(ValueError, match="`lags` must be at least 1 node"):
        VariogramEncoder((1, 0), 8, dx=2, dy=1, key=jr.key(0))

"""Random fields against the covariance they promise, and pictures of them."""

import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from tinygp import kernels

from npax.tasks import FieldPrior, MovedGapsTask, matern_field

SIDE = 128


@jax.jit
def fields(smoothness, scale, stretch, angle):
    def draw(key):
        return matern_field(key, SIDE, smoothness=smoothness, scale=scale, stretch=stretch, angle=angle)

    return jax.lax.map(draw, jr.split(jr.key(0), 200), batch_size=20)


def at_distance(kernel, r):
    return float(kernel.evaluate(jnp.zeros(1), jnp.full(1, float(r))))


def covariance(drawn, lag):
    """Over all pairs of pixels that far apart on the torus, and over draws."""
    drawn = np.asarray(drawn, np.float64)
    return np.mean(drawn * np.roll(drawn, lag, axis=(1, 2)))


@pytest.mark.parametrize("smoothness, kernel", [(1.5, kernels.Matern32(4.0)), (2.5, kernels.Matern52(4.0))])
def test_the_covariance_is_the_matern_kernel(smoothness, kernel):
    drawn = fields(smoothness, 4.0, 1.0, 0.0)
    for lag in [(0, 0), (0, 1), (2, 0), (3, 4), (0, 8), (10, 0)]:
        assert abs(covariance(drawn, lag) - at_distance(kernel, np.hypot(*lag))) < 0.02, lag


def test_the_roughest_field_is_exponential_beyond_its_pixels():
    """What varies within a pixel a torus of pixels does not hold: 8 % of this field."""
    drawn, kernel = fields(0.5, 4.0, 1.0, 0.0), kernels.Exp(4.0)
    near = covariance(drawn, (3, 0)) / at_distance(kernel, 3.0)
    assert 1.0 < near < 1.15
    for lag in [(0, 4), (3, 4), (0, 8), (10, 0)]:
        assert abs(covariance(drawn, lag) / near - at_distance(kernel, np.hypot(*lag))) < 0.02, lag


def test_a_stretched_field_is_longer_along_its_angle():
    drawn = fields(1.5, 4.0, 4.0, 0.0)  # length scales of 8 along the rows' axis and 2 across it
    along, across = kernels.Matern32(8.0), kernels.Matern32(2.0)
    for lag in (1, 3, 6):
        assert abs(covariance(drawn, (lag, 0)) - at_distance(along, lag)) < 0.03
        assert abs(covariance(drawn, (0, lag)) - at_distance(across, lag)) < 0.03
    turned = fields(1.5, 4.0, 4.0, np.pi / 2)
    assert abs(covariance(turned, (0, 6)) - covariance(drawn, (6, 0))) < 0.03


def test_every_draw_has_unit_variance_over_the_torus():
    drawn = np.asarray(fields(1.0, 200.0, 1.0, 0.3))
    assert np.allclose(drawn.mean(axis=(1, 2)), 0, atol=1e-4)
    assert 0.5 < np.mean(drawn**2) < 1.5 and np.isfinite(drawn).all()


@pytest.fixture(scope="module")
def drawn():
    return jax.device_get(jax.jit(jax.vmap(FieldPrior(32).sample))(jr.split(jr.key(0), 300)))


def test_pictures_are_finite_and_standardised_where_they_are_seen(drawn):
    assert drawn.y.shape == drawn.function.shape == (300, 32, 32, 1) and drawn.mask.shape == (300, 32, 32)
    assert all(np.isfinite(a).all() for a in (drawn.y, drawn.function, drawn.noise))
    for y, mask in zip(drawn.y[..., 0], drawn.mask, strict=True):
        if mask.sum() > 1:
            assert abs(y[mask].mean()) < 1e-3 and (abs(y[mask].std() - 1) < 1e-2 or y[mask].std() < 0.1)
    assert np.mean(drawn.y.std(axis=(1, 2, 3)) < 0.1) < 0.05, "few are flat"


def test_gaps_noise_and_trends_are_of_all_kinds(drawn):
    share = drawn.mask.mean(axis=(1, 2))
    assert (share < 0.05).any() and (share > 0.9).any() and 0.2 < share.mean() < 0.6
    assert 0.35 < (drawn.noise == 0).mean() < 0.65
    noisy = drawn.noise > 0.05
    apart = np.std((drawn.y - drawn.function)[..., 0], axis=(1, 2))
    assert np.allclose(apart[noisy], drawn.noise[noisy], rtol=0.15)
    assert np.allclose(apart[drawn.noise == 0], 0, atol=1e-5)


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    y, seen = rng.standard_normal((2, 12, 20, 1)).astype(np.float32), rng.random((2, 12, 20)) < 0.7
    return MovedGapsTask(jnp.asarray(np.where(seen[..., None], y, 0)), jnp.asarray(seen), 8)


def test_moved_gaps_hide_what_is_seen(pictures):
    found = jax.device_get(jax.jit(jax.vmap(pictures.sample))(jr.split(jr.key(1), 200)))
    assert found.y.shape == (200, 8, 8, 1)
    assert not (found.mask & found.wanted).any()
    known = set(np.asarray(pictures.y)[np.asarray(pictures.seen)].ravel().tolist())
    assert set(found.y[found.mask | found.wanted].ravel().tolist()) <= known, "nothing but what is seen is asked for"
    assert 0.2 < found.wanted.mean() < 0.25 and 0.45 < found.mask.mean() < 0.53  # 0.7 x 0.3 and 0.7 x 0.7
    assert len(np.unique(found.wanted.reshape(200, -1), axis=0)) > 190, "the gaps differ"


def test_gaps_move_along_each_side_alike():
    """Of a picture that is not square rows moved more often by less than the difference of its sides."""
    seen = np.ones((1, 4, 7), bool)
    seen[0, 0, 0] = False
    squares = MovedGapsTask(np.zeros((1, 4, 7, 1), np.float32), seen, 4)
    found = jax.device_get(jax.jit(jax.vmap(squares.sample))(jr.split(jr.key(1), 4000)))
    wanted = found.wanted.any(axis=(1, 2))
    rows = np.argwhere(found.wanted.any(axis=2) & wanted[:, None])[:, 1]
    rows = np.concatenate([rows, np.argwhere(found.wanted.any(axis=1) & wanted[:, None])[:, 1]])  # turned half the time
    assert np.all(np.abs(np.bincount(rows) / len(rows) - 0.25) < 0.03)


def test_clear_errors(pictures):
    with pytest.raises(ValueError, match="`side` must be a whole number, at least 16; got 8"):
        FieldPrior(8)
    with pytest.raises(ValueError, match="shorter side of the pictures, 12; got 13"):
        MovedGapsTask(pictures.y, pictures.seen, 13)


def test_pictures_and_what_is_seen_of_them_belong_together(rng):
    y, seen = rng.normal(size=(2, 6, 6, 1)).astype(np.float32), np.ones((2, 6, 6), bool)
    assert jax.vmap(MovedGapsTask(y, seen, 3).sample)(jr.split(jr.key(0), 4)).y.shape == (4, 3, 3, 1)
    with pytest.raises(ValueError, match=r"`y` and `seen` must be \[pictures rows columns dy\]"):
        inspect.unwrap(MovedGapsTask)(y[:, :4], seen, 3)

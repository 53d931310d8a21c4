"""The periodogram against regressions in float64 and scipy; the bias of a task against its sum of cosines."""

import jax
import jax.numpy as jnp
import jax.random as jr
import laws
import numpy as np
import pytest
import scipy.signal

import npax
from npax.models.tnp_kr_spectral import periodogram

LENGTH, FREQUENCIES = 8.0, 40
FREQUENCY = np.arange(1, FREQUENCIES + 1) / LENGTH


def scattered(seed, n=60, *, period=0.8, dy=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 1))
    phases = rng.uniform(0, 2 * np.pi, (1, dy))
    return x, np.sin(2 * np.pi * x / period + phases) + 0.1 * rng.normal(size=(n, dy)) + 3.0


def read(x, y, mask=None, **settings):
    settings = {"length": LENGTH, "frequencies": FREQUENCIES, **settings}
    mask = np.ones(len(x), bool) if mask is None else mask
    out = periodogram(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(mask), **settings)
    return np.asarray(out, float)


def shares(features):
    return 0.5 * (features[:, :FREQUENCIES] + 0.5)


def test_shares_are_those_of_ridge_regressions_on_each_sinusoid():
    x, y = scattered(0, n=12, dy=2)
    y = y - y.mean(axis=0)
    expected = []
    for f in FREQUENCY:
        angle = 2 * np.pi * f * (x[:, 0] - x.mean())
        design = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        design -= design.mean(axis=0)
        products = design.T @ y
        inverse = np.linalg.inv(design.T @ design + (0.05 * len(x) + 0.1) * np.eye(2))
        expected.append(np.sum(products * (inverse @ products)) / (np.sum(y**2) + 0.1))
    features = read(x, y)
    np.testing.assert_allclose(shares(features)[0], expected, atol=2e-5)
    evidence = np.log1p(-len(x) * np.log1p(-np.array(expected)))
    np.testing.assert_allclose(features[0, FREQUENCIES : 2 * FREQUENCIES] + 1, evidence, atol=2e-4)


@pytest.mark.parametrize("period", [0.5, 0.8, 1.6])
def test_the_peak_is_the_period_as_scipy_has_it(period):
    x, y = scattered(1, period=period)
    theirs = scipy.signal.lombscargle(x[:, 0], y[:, 0], 2 * np.pi * FREQUENCY, floating_mean=True, normalize=True)
    ours = shares(read(x, y))[0]
    assert FREQUENCY[np.argmax(ours)] == FREQUENCY[np.argmax(theirs)] == pytest.approx(1 / period, abs=0.07)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.99


def test_the_periodogram_sees_neither_place_nor_level_nor_what_is_masked():
    x, y = scattered(2, dy=2)
    plain = read(x, y)
    np.testing.assert_allclose(read(x + 1.25, y - 2.0), plain, atol=1e-3)
    np.testing.assert_allclose(read(x, y[:, ::-1]), plain, atol=1e-4)
    padded = [np.concatenate([a, np.full_like(a[:5], 9.0)]) for a in (x, y)]
    np.testing.assert_allclose(read(*padded, np.arange(65) < 60), plain, atol=1e-4)
    assert np.abs(read(x, np.random.default_rng(3).permutation(y)) - plain).max() > 0.5  # another function


def test_each_coordinate_has_its_own():
    (x, y), (other, _) = scattered(4), scattered(5)
    both = read(np.concatenate([x, other], axis=1), y)
    np.testing.assert_allclose(both[0], read(x, y)[0], atol=1e-4)
    np.testing.assert_allclose(both[1], read(other, y)[0], atol=1e-4)
    assert np.argmax(shares(both)[0]) != np.argmax(shares(both)[1])


@pytest.mark.parametrize("n", [0, 1])
def test_next_to_nothing_gives_finite_numbers(n):
    x, y = np.zeros((3, 2)), np.ones((3, 1))
    assert np.isfinite(read(x, y, np.arange(3) < n)).all()


def tiny(**settings):
    size = {**laws.TINY, "terms": 4, "frequencies": 10, "summary": (8,), **settings}
    return npax.SpectralTNPKR(1, 1, bias=laws.BIASES["rbf-network"], **size, key=jr.key(0))


def test_the_bias_is_the_series_of_cosines_beside_that_of_all_tasks():
    model = tiny()
    x, y = (jnp.asarray(a, jnp.float32) for a in scattered(6, n=7))
    (a, _, centre), _ = model.condition(x, y)
    informed = model._informed((a, jnp.zeros((2, laws.TINY["size"])), centre))
    bias = jax.tree.map(lambda leaf: leaf[1], informed.stack.attention.bias)  # of the second block
    with_waves = model._with_waves(x)
    difference = np.asarray(x - x.T, float)
    m = np.arange(1, 5)[:, None, None]
    series = np.tensordot(np.asarray(a[1, :, 0], float), np.cos(2 * np.pi * m * difference / model.length), 1)
    np.testing.assert_allclose(bias(with_waves, with_waves) - bias.bias(x, x), series, atol=1e-5)
    assert np.abs(series).max() > 0.05


def test_the_period_matters_to_the_bias_more_than_the_points_do():
    model = tiny()
    (a, *_), (b, *_), (c, *_) = (
        model.condition(*(jnp.asarray(v, jnp.float32) for v in task))[0]
        for task in (scattered(7, period=0.5), scattered(7, period=1.6), scattered(8, period=1.6))
    )
    assert np.linalg.norm(a - b) > 1.5 * np.linalg.norm(b - c)  # the points of c are others, its period is that of b


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="`frequencies` must be at least `terms`, 11, got 10"):
        tiny(terms=11)
    with pytest.raises(ValueError, match="`length` must be positive, got 0"):
        tiny(length=0.0)
    with pytest.raises(ValueError, match="`terms` must be a whole number, at least 1; got 0"):
        tiny(terms=0)
    for bias in (npax.RBFNetworkBias, lambda xq, xk: xq - xk):
        with pytest.raises(TypeError, match="Expected AbstractBias, or a function of a key"):
            npax.SpectralTNPKR(1, 1, bias=bias, key=jr.key(0))

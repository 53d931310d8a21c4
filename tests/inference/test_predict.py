import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings, strategies as st
from untrained import cnp, untrained

import npax
from npax.blocks import stack
from npax.inference import Exact, Planar, Tiled, joint_samples, predict


@pytest.fixture(scope="session")
def tiny():
    """A model of any kind, where compiling is most of the work."""
    return cnp(3)


@pytest.fixture
def data(rng):
    x = rng.uniform(0, 10, (30, 2))
    return x, np.sin(x) + 3, rng.uniform(-1, 11, (1100, 2))


def test_chunks_equal_one_call(small, data):
    x, y, xt = data
    exact = Exact(small, x, y)
    whole = exact(xt)  # more than a chunk: conditioned once, decoded in chunks
    for part in (slice(0, 40), slice(1060, 1100)):
        for a, b in zip(whole, exact(xt[part]), strict=True):
            assert np.allclose(a[part], b, atol=1e-5)


def test_large_chunks_are_for_gpus_and_for_models_that_keep_no_logits(small):
    def is_scan(part):
        return isinstance(part, npax.ScanAttention)

    dense = jax.tree.map(lambda part: npax.DenseAttention() if is_scan(part) else part, small, is_leaf=is_scan)
    sizes = [predict.chunk_size(model, platform) for model in (small, dense) for platform in ("cpu", "gpu")]
    assert sizes == [predict.CHUNK, predict.LARGE_CHUNK, predict.CHUNK, predict.CHUNK]


def test_a_context_is_conditioned_once(small, data, monkeypatch):
    x, y, xt = data
    asked, condition = [], predict.condition
    monkeypatch.setattr(predict, "condition", lambda *args: asked.append(args) or condition(*args))
    exact = Exact(small, x, y[:, :1])
    first, again = exact(xt[:5]), exact(xt[:5])
    assert len(asked) == 1 and np.array_equal(first.mean, again.mean)
    pickle.loads(pickle.dumps(exact))(xt[:5])
    assert len(asked) == 2  # what is sent is small


@pytest.mark.parametrize("name", ["TNPKR", "TNPD", "CNP"])
def test_a_large_context_is_conditioned_in_threads_to_the_same_numbers(name, data, monkeypatch):
    x, y, xt = data
    size = {"blocks": 3, "size": 8, "heads": 2, "head_size": 4, "hidden": 8} if name != "CNP" else {"size": 8}
    model = untrained(lambda key: getattr(npax, name)(2, 1, key=key, **size))
    plain = Exact(model, x, y[:, :1])(xt[:9])
    shares, update = [], stack._update
    monkeypatch.setattr(stack, "_update", lambda *args: shares.append(len(args[2])) or update(*args))
    monkeypatch.setattr(stack, "SHARE", 8)
    monkeypatch.setattr(predict, "LARGE", 16)
    for cores in (1, 2):
        shares.clear()
        monkeypatch.setattr(predict, "cores_each", lambda mesh, cores=cores: cores)
        threaded = Exact(model, x, y[:, :1])(xt[:9])
        for a, b in zip(plain, threaded, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
        assert shares == ([8] * 4 * 2 if cores > 1 and name != "CNP" else [])  # all blocks but the last


def test_equals_the_model_itself(small, data):
    x, y, xt = data
    exact = Exact(small, x, y[:, :1])
    u, ut = (jnp.asarray(np.pad(exact.frame(a), ((0, 0), (0, 1))), jnp.float32) for a in (x, xt[:9]))
    mean, std = y[:, :1].mean(), y[:, :1].std()
    truth = eqx.filter_jit(small)(u, jnp.asarray((y[:, :1] - mean) / std, jnp.float32), ut)
    predicted = exact(xt[:9])
    assert np.allclose(predicted.mean, truth.mean * std + mean, atol=1e-4)
    assert np.allclose(predicted.variance, truth.variance * std**2, rtol=1e-4)
    noiseless = npax.likelihoods.noiseless(truth).variance
    assert np.allclose(predicted.function_variance, noiseless * std**2, rtol=1e-4)
    assert (predicted.std(True) > predicted.std(False)).all()


def test_columns_are_served_independently(small, data):
    x, y, xt = data
    system = Planar().adapted(x, y)  # in units that they share
    both = Exact(small, x, y, system)(xt[:5])
    alone = Exact(small, x, y[:, 1:], system)(xt[:5])
    assert np.allclose(both.mean[:, 1:], alone.mean)
    assert not np.allclose(both.mean[:, :1], alone.mean)


def test_units_of_y_and_x_do_not_matter(small, data):
    x, y, xt = data
    plain = Exact(small, x, y)(xt[:20])
    scaled = Exact(small, x * [1e6, 1e-3] + 1e9 * np.array([1, 0]), y * 1e5 - 1e7)(xt[:20] * [1e6, 1e-3] + [1e9, 0])
    assert np.allclose(scaled.mean, plain.mean * 1e5 - 1e7, atol=20)
    assert np.allclose(scaled.variance, plain.variance * 1e10, rtol=1e-3)


@pytest.mark.parametrize("kind", [Exact, partial(Tiled, size=2)], ids=["exact", "tiles and a trend"])
@given(exponent=st.floats(-290, 306))
@settings(deadline=None, max_examples=20)
def test_predictions_have_the_unit_of_y_whatever_that_is(tiny, kind, exponent):
    rng = np.random.default_rng(0)
    x, xt, c = rng.uniform(0, 10, (40, 2)), rng.uniform(0, 10, (9, 2)), 10**exponent
    plain, scaled = (kind(tiny, x, unit * (np.sin(x) + 3)) for unit in (1.0, c))
    for a, b in zip(plain(xt), scaled(xt), strict=True):
        np.testing.assert_allclose(b / c, a, rtol=1e-3, atol=1e-5)
    one, other = (joint_samples(p, xt, 2, jr.key(0)) for p in (plain, scaled))
    np.testing.assert_allclose(other / c, one, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("size", [40, 2])
def test_values_without_a_scale_keep_their_unit_in_tiles_too(small, data, size):
    """With and without a trend, whose rounding errors are no scale; a trend alone has one."""
    x, _, xt = data
    y = np.stack([np.full(30, 1e9 / 3), np.full(30, 0.1), x[:, 0]], axis=1)
    whole = Exact(small, x, y[:, :2])(xt[:5])
    tiled = Tiled(small, np.tile(x, (2, 1)), np.tile(y, (2, 1)), size=size)(xt[:5])
    for a, b in zip(whole, tiled, strict=True):
        np.testing.assert_allclose(b[:, :2], a, rtol=0.2)
    assert (tiled.function_std[:, 2] > 0.01).all()


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_no_targets(small, data, kind):
    x, y, _ = data
    predicted = kind(small, x, y)(np.zeros((0, 2)))
    assert predicted.mean.shape == predicted.variance.shape == (0, 2)


def test_an_empty_context_gives_the_prior(small):
    predicted = Exact(small, np.zeros((0, 1)), np.zeros((0, 1)))(np.array([[-1.0], [0.0], [5.0]]))
    prior = eqx.filter_jit(small)(jnp.zeros((0, 3)), jnp.zeros((0, 1)), jnp.zeros((1, 3)))
    assert np.allclose(predicted.mean, prior.mean, atol=1e-5)  # translation equivariant: the same everywhere


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_refusals(small, data, kind):
    x = data[0]
    with pytest.raises(ValueError, match="up to 3 coordinates, got 4"):
        kind(small, np.zeros((5, 4)), np.zeros((5, 1)))
    with pytest.raises(ValueError, match="takes 2 columns of `y`, got 3"):
        kind(cnp(2, dy=2), x, np.zeros((30, 3)))


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_shapes_and_missing_values_are_refused(small, data, kind):
    x, y, xt = data
    for rows, values, words in (
        (x[:, 0], y, r"`x` must have the shape \[rows, columns\].*got \(30,\)"),
        (x, y[:, 0], r"`y` must have the shape \[rows, columns\].*got \(30,\)"),
        (x, y[:, :0], r"`y` must have .* at least one column; got \(30, 0\)"),
        (np.ma.masked_greater(x, 9), y, r"`x` holds NaN or infinity in \d+ of 30 rows"),
        (np.where(x > 9, np.inf, x), y, r"`x` holds NaN or infinity in \d+ of 30 rows"),
        (x, np.where(np.arange(30)[:, None] < 2, np.nan, y), "`y` holds NaN or infinity in 2 of 30 rows"),
    ):
        with pytest.raises(ValueError, match=words):
            kind(small, rows, values)
    predictor = kind(small, x, y)
    for places, words in (
        (xt[:, :1], r"`x` must have the shape \[n, 2\].*got \(1100, 1\)"),
        (xt[0], r"`x` must have the shape \[n, 2\].*got \(2,\)"),
        (np.where(np.arange(1100)[:, None] == 7, np.nan, xt), "NaN or infinity in row 7"),
    ):
        with pytest.raises(ValueError, match=words):
            predictor(places)


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_pickles(small, data, kind):
    x, y, xt = data
    predictor = kind(small, x, y)
    assert np.array_equal(pickle.loads(pickle.dumps(predictor))(xt[:5]).mean, predictor(xt[:5]).mean)


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_answers_do_not_change_with_the_users_arrays(small, data, kind):
    x, y, xt = data
    predictor = kind(small, x, y)
    first = predictor(xt[:5])
    x[:], y[:] = 7.0, -1.0
    for a, b in zip(first, predictor(xt[:5]), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_integers_are_numbers(small, kind):
    x, xt = np.array([[200], [210], [250]], np.uint8), np.array([[190], [255]], np.uint8)
    y = np.array([[1], [2], [4]])
    whole, real = (kind(small, a, y)(b).mean for a, b in ((x, xt), (x.astype(float), xt.astype(float))))
    assert np.array_equal(whole, real)  # unsigned ones do not wrap around the context's corner


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_rows_must_match(small, data, kind):
    x, y, _ = data
    with pytest.raises(ValueError, match="as many rows as each other, got 30 and 27"):
        kind(small, x, y[:27])


def test_threads_share_what_is_conditioned(small, data, monkeypatch):
    x, y, xt = data
    asked, condition = [], predict.condition
    monkeypatch.setattr(predict, "condition", lambda *args: asked.append(args) or condition(*args))
    exact = Exact(small, x, y[:, :1])
    with ThreadPoolExecutor(6) as pool:
        first, *others = pool.map(exact, [xt[:5]] * 6)
    assert len(asked) == 1 and all(np.array_equal(first.mean, other.mean) for other in others)


def test_places_at_the_end_of_the_numbers_are_answered_without_a_word(tiny):
    found = Exact(tiny, np.arange(12.0)[:, None], np.arange(12.0)[:, None])(np.array([[1e300], [-1e308]]))
    assert all(np.isfinite(moment).all() for moment in found)


class WithoutEvent(npax.likelihoods.AbstractLikelihood):
    dy: int = 1

    @property
    def size(self):
        return self.dy

    def __call__(self, raw):
        return dist.Normal(raw[..., 0], 1.0)


def test_columns_that_are_no_event_are_refused(data):
    x, y, xt = data
    model = npax.CNP(2, 1, encoder=(8,), size=8, decoder=(8,), likelihood=WithoutEvent(), key=jr.key(0))
    with pytest.raises(ValueError, match=r"event shape \[dy\]; got .* and \[\]\. `\.to_event\(1\)` makes an event"):
        Exact(model, x, y[:, :1])(xt[:4])


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_far_places_that_are_not_normalised_are_refused(kind, tiny):
    """A million units away all were the same place."""
    x, y = np.arange(8.0)[:, None], np.arange(8.0)[:, None]
    with pytest.raises(ValueError, match=r"`x` has the coordinate 2e\+06, beyond 1e\+06, and is not normalised"):
        kind(tiny, 2e6 + x, y, normalize=False)
    with pytest.raises(ValueError, match="`x` has the coordinate -3e"):
        kind(tiny, x, y, normalize=False)(np.array([[-3e6]]))
    assert np.isfinite(kind(tiny, 1e12 + x, y)(1e12 + x).mean).all()
    for xc, xt, name in ((x + 2e6, x, "xc"), (x, x - 2e6, "xt")):
        with pytest.raises(ValueError, match=f"`{name}` has the coordinate"):
            npax.sample(tiny, xc, y, xt, key=jr.key(0))


def test_ranges_beyond_all_numbers_have_a_half(tiny):
    x = np.array([[-1e308], [0.0], [1e308]])
    assert np.isfinite(Exact(tiny, x, x / 1e308)(x).mean).all()

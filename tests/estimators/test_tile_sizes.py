"""The size of tiles that predicts held-out places best."""

import numpy as np
import pytest
import untrained

import npax


def with_dips(rng, n=1000):
    """A wave with three narrow dips: the function, and what is seen of it with noise of the standard deviation 1."""
    x = np.linspace(0, 1, n)[:, None]
    dips = np.exp(-0.5 * np.square((x - [0.2, 0.5, 0.8]) / (4 / n))).sum(axis=1)
    function = 3 * np.sin(9 * x[:, 0]) - 6 * dips
    return x, function, function + rng.normal(size=n)


@pytest.mark.usefixtures("optimised")
def test_narrow_features_get_small_tiles_and_fields_without_them_the_usual(rng):
    x, function, y = with_dips(rng)
    usual, chosen = (npax.NeuralProcessRegressor(tile_size=size, views=None).fit(x, y) for size in (128, "auto"))
    assert usual.tile_size_ == 128 and chosen.tile_size_ in (32, 64)
    off = [np.sqrt(np.mean(np.square(reg.predict(x) - function))) for reg in (usual, chosen)]
    assert off[1] < 0.8 * off[0]
    same = npax.NeuralProcessRegressor(tile_size=chosen.tile_size_, views=None).fit(x, y)
    assert np.array_equal(same.predict(x[:50]), chosen.predict(x[:50]))
    at = np.random.default_rng(1).permutation(len(x))
    assert npax.NeuralProcessRegressor(tile_size="auto", views=None).fit(x[at], y[at]).tile_size_ == chosen.tile_size_
    smooth = 3 * np.sin(9 * x[:, 0]) + rng.normal(size=len(x))
    assert npax.NeuralProcessRegressor(tile_size="auto", views=None).fit(x, smooth).tile_size_ == 128


@pytest.fixture
def told(monkeypatch):
    """Tells which tiles see `better` than the usual, and by how much of the log-likelihood of each value."""

    def tell(better):
        def keep(self, X, y, error=None):
            self.y_, self.asked = y, self.tile_size_
            return self

        def predictor(self):
            def answer(X):
                std = np.exp(-better.get(self.tile_size_, 0.0)) * np.ones((len(X), 1))
                return npax.inference.Prediction(np.zeros((len(X), 1)), std, std)

            return answer

        monkeypatch.setattr(npax.NeuralProcessRegressor, "_keep", keep)
        monkeypatch.setattr(npax.NeuralProcessRegressor, "_predictor", predictor)
        take = lambda self, size: setattr(self, "tile_size_", size)  # noqa: E731
        monkeypatch.setattr(npax.NeuralProcessRegressor, "_take_tiles", take)
        for check in ("_check_scale", "_warn_of_strays"):
            monkeypatch.setattr(npax.NeuralProcessRegressor, check, lambda self: None)

    return tell


@pytest.mark.parametrize(
    ("n", "better", "size"),
    [
        (200, {64: 0.1}, 64),
        (200, {64: 0.1, 32: 0.2}, 32),
        (200, {64: 0.2, 32: 0.1}, 64),
        (200, {64: 0.02}, 128),  # 4 of the log-likelihood: not enough
        (200, {64: -0.1, 32: -0.1}, 128),
        (2000, {32: 0.1}, 32),
        (99, {64: 1.0}, 128),
    ],
)
def test_a_clear_gain_decides(told, rng, n, better, size):
    told(better)
    small = untrained.small()
    reg = npax.NeuralProcessRegressor(small, tile_size="auto").fit(rng.uniform(size=(n, 2)), np.zeros(n) + 1e-9)
    assert reg.tile_size_ == size and reg.tile_size == "auto"
    assert npax.NeuralProcessRegressor(small, tile_size=77).fit(rng.uniform(size=(n, 2)), np.zeros(n)).tile_size_ == 77
    exact = npax.NeuralProcessRegressor(small, tile_size="auto", strategy="exact")
    assert exact.fit(rng.uniform(size=(n, 2)), np.zeros(n)).tile_size_ == 128


def test_a_place_is_held_out_with_all_that_was_observed_there(told, rng, monkeypatch):
    told({})
    kept, keep = [], npax.NeuralProcessRegressor._keep
    monkeypatch.setattr(
        npax.NeuralProcessRegressor, "_keep", lambda self, X, *rest: kept.append(X) or keep(self, X, *rest)
    )
    x = rng.uniform(size=(40, 2))
    npax.NeuralProcessRegressor(untrained.small(), tile_size="auto").fit(np.tile(x, (5, 1)), rng.normal(size=200))
    parts = kept[:5]
    assert all(len(seen) == 160 and len(np.unique(seen, axis=0)) == 32 for seen in parts)


@pytest.mark.parametrize("size", ["small", 0, 2.5, True])
def test_what_is_no_size_is_refused(rng, size):
    with pytest.raises(ValueError, match="`tile_size` must be a"):
        npax.NeuralProcessRegressor(untrained.small(), tile_size=size).fit(rng.uniform(size=(9, 2)), np.arange(9.0))


def test_counts_have_no_held_out_values_to_compare(rng):
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(untrained.hearing(3), tile_size="auto"))
    with pytest.raises(ValueError, match='"auto" is not for counts'):
        reg.fit(rng.uniform(size=(9, 2)), np.arange(9.0))

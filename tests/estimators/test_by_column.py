"""A column of `y` is answered as if the others were not there."""

import numpy as np
import pytest

import npax
from npax.metrics import rmse

XT = np.random.default_rng(1).uniform(-1, 1, (9, 2))


@pytest.fixture(params=["planar", "isotropic", "latlon"])
def coords(request):
    return request.param


def unlike(rng, n):
    """One column varies along the first coordinate, the other along the second."""
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.column_stack([np.sin(8 * X[:, 0]), np.cos(7 * X[:, 1])]) + 0.1 * rng.normal(size=(n, 2))


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
@pytest.mark.parametrize("known", [False, True])
def test_each_is_as_it_would_be_alone(small, coords, strategy, known, rng):
    X, y = unlike(rng, 80)
    error = rng.uniform(0, 0.5, y.shape) if known else None

    def fitted(y, error):
        reg = npax.NeuralProcessRegressor(small, coords=coords, strategy=strategy, tile_size=24)
        return reg.fit(X, y, error=error)

    together = fitted(y, error)
    mean, std = together.predict(XT, return_std=True)
    _, cov = together.predict(XT, return_cov=True)
    samples, noiseless = (together.sample_y(XT, 3, include_noise=noise) for noise in (True, False))
    assert cov.shape == (9, 9, 2) and samples.shape == (9, 2, 3)
    assert np.isfinite(samples).all() and not np.allclose(samples, noiseless)
    for i, column in enumerate(y.T):
        alone = fitted(column, None if error is None else error[:, i])
        expected = alone.predict(XT, return_std=True)
        assert np.allclose([mean[:, i], std[:, i]], expected, atol=1e-5)
        assert np.allclose(cov[..., i], alone.predict(XT, return_cov=True)[1], atol=1e-5)
        assert alone.sample_y(XT, 3).shape == (9, 3)


def test_columns_that_vary_unlike_are_seen_in_units_of_their_own(rng):
    """The shipped model. With units shared by both (those of the sum of the likelihoods) there is none to see."""
    X, y = unlike(rng, 120)
    at = rng.uniform(-1, 1, (200, 2))
    truth = np.column_stack([np.sin(8 * at[:, 0]), np.cos(7 * at[:, 1])])
    together = npax.NeuralProcessRegressor(strategy="exact").fit(X, y)
    shared = npax.inference.Exact(together.model_, X, y)(at)
    assert rmse(truth, together.predict(at)) < 0.8 * rmse(truth, shared.mean)


def test_in_parts_too(small, rng):
    """What a block is sent under dask."""
    X, y = unlike(rng, 80)
    predictor = npax.NeuralProcessRegressor(small, strategy="tiled", tile_size=24).fit(X, y)._predictor()
    part = predictor.part(XT[:4]).of(None).of(predictor.model)
    assert part.dy == 2 and np.allclose(part(XT[:4]).mean, predictor(XT[:4]).mean, atol=1e-5)

"""Averages over regions, from the estimators."""

import numpy as np
import pandas as pd
import pytest
import untrained
from scipy.stats import norm

import npax
from npax.counts import Binomial, Poisson


@pytest.fixture(scope="module")
def reg():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 2))
    y = np.stack([np.sin(3 * X[:, 0]), 5 + X[:, 1]], axis=1)
    return npax.NeuralProcessRegressor(untrained.cnp(2), views=None).fit(X, y)


def test_means_are_those_of_the_cells_by_their_weights(reg, rng):
    cells, weights = rng.uniform(-1, 1, (50, 2)), rng.uniform(size=(3, 50))
    each = reg.predict(cells)
    expected = np.stack([np.average(each, axis=0, weights=w) for w in weights])
    assert np.allclose(reg.predict_average(cells, weights), expected)
    assert np.allclose(reg.predict_average(cells, 1e300 * weights[0]), expected[0])
    assert np.allclose(reg.predict_average(cells), each.mean(axis=0))


def test_shapes_are_those_of_regions_and_columns(reg, rng):
    cells, weights = rng.uniform(-1, 1, (20, 2)), rng.uniform(size=(3, 20))
    one = npax.NeuralProcessRegressor(untrained.cnp(2), views=None).fit(reg.X_, reg.y_[:, 0])
    for of, columns in ((reg, (2,)), (one, ())):
        for given, regions in ((weights, (3,)), (weights[:1], (1,)), (weights[0], ()), (None, ())):
            mean, std = of.predict_average(cells, given, return_std=True)
            assert mean.shape == std.shape == (*regions, *columns)
            _, cov = of.predict_average(cells, given, return_cov=True)
            assert cov.shape == (*regions, *regions, *columns)
            assert np.allclose(np.sqrt(np.einsum("kk...->k...", cov) if regions else cov), std)


def test_of_one_cell_they_are_its_prediction(reg):
    cells = np.array([[0.3, -0.2], [0.5, 0.9]])
    found = reg.predict_average(cells, np.eye(2), return_std=True)
    for got, expected in zip(found, reg.predict(cells, return_std=True, include_noise=False), strict=True):
        assert np.allclose(got, expected)


def test_tables_give_weights_too(reg, rng):
    table = pd.DataFrame(rng.uniform(-1, 1, (12, 2)), columns=["a", "b"]).assign(people=rng.uniform(size=12))
    X = table[["a", "b"]].to_numpy()
    assert np.allclose(reg.predict_average(X, table.people), reg.predict_average(X, table.people.to_numpy()))
    district = pd.Series(["north", "south", "south"] * 4)
    each = reg.predict_average(X, pd.get_dummies(district).T * table.people)
    south = district == "south"
    assert np.allclose(each[1], reg.predict_average(X[south], table.people[south]))


def test_what_cannot_be_is_told(reg, rng):
    X = rng.uniform(-1, 1, (5, 2))
    for weights, words in (
        (np.ones(4), r"`weights` must have the shape \[n\] or \[regions n\] for 5 rows of `X`, got \(4,\)\."),
        (np.ones((5, 2)), r"got \(5, 2\): transpose them"),
        (list("abcde"), "`weights` must be numbers, got .a."),
        (np.full(5, np.nan), "`weights` must be finite and not negative, got nan"),
        ([1.0, -1.0, 0, 0, 0], "got -1: how regions differ is told by the `cov` of several"),
        ([np.ones(5), np.zeros(5)], "must not be zero at all rows of `X`, as those of region 1"),
    ):
        with pytest.raises(ValueError, match=words):
            reg.predict_average(X, weights)
    with pytest.raises(ValueError, match="`X` must have one row or more"):
        reg.predict_average(X[:0])
    with pytest.raises(ValueError, match="At most one of `return_std` and `return_cov`"):
        reg.predict_average(X, return_std=True, return_cov=True)


@pytest.mark.usefixtures("optimised")
def test_averages_of_a_field_are_as_certain_as_they_are_said_to_be():
    """By the shipped model: of fields that a Gaussian process drew, as well as that itself could say, within a fifth;
    cells whose errors are taken to be independent are said to be certain of what they are not."""
    rng, axis = np.random.default_rng(1), (np.arange(12) + 0.5) / 12
    cells = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    weights = np.stack([np.ones(144), (cells < 0.5).all(axis=1)]) / [[144], [36]]
    ratios, alone = [], []
    for _ in range(2):
        x = rng.uniform(size=(60, 2))
        both = np.concatenate([x, cells])
        r = np.sqrt(3 * np.square(both[:, None] - both).sum(axis=-1)) / 0.3
        k = (1 + r) * np.exp(-r)
        field = np.linalg.cholesky(k + 1e-9 * np.eye(len(k))) @ rng.normal(size=len(k))
        reg = npax.NeuralProcessRegressor().fit(x, field[:60] + 0.3 * rng.normal(size=60))
        _, std = reg.predict_average(cells, weights, return_std=True)
        left = k[60:, 60:] - k[60:, :60] @ np.linalg.solve(k[:60, :60] + 0.09 * np.eye(60), k[:60, 60:])
        best = np.sqrt(np.einsum("ki,ij,kj->k", weights, left, weights))
        _, of_cells = reg.predict(cells, return_std=True, include_noise=False)
        ratios.append(std / best)
        alone.append(np.sqrt(np.square(weights) @ np.square(of_cells)) / best)
    assert (np.abs(np.mean(ratios, axis=0) - 1) < 0.2).all() and np.max(alone) < 0.6


@pytest.mark.parametrize("counts", [Poisson(), Binomial()], ids=["poisson", "binomial"])
def test_average_rates_are_of_the_cells_and_of_one_as_predicted(counts, rng):
    X, exposure = rng.uniform(-1, 1, (60, 2)), np.full(60, 8.0)
    y = counts.draw(rng, exposure, counts.rate(np.sin(3 * X[:, 0]) - 0.5))
    reg = npax.CountRegressor(counts, npax.NeuralProcessRegressor(untrained.hearing(2))).fit(X, y, exposure=exposure)
    cells, people = rng.uniform(-1, 1, (9, 2)), rng.uniform(size=9)
    assert reg.predict_average(cells, people) == pytest.approx(np.average(reg.predict(cells), weights=people))
    mean, std = reg.predict_average(cells, np.eye(9), return_std=True)
    assert np.allclose(mean, reg.predict(cells))
    smooth, of_smooth = reg.predict(cells, return_std=True, include_noise=False)
    exact = isinstance(counts, Poisson)  # of shares it is that of the smooth one, times a ratio of slopes
    assert np.allclose(std / mean, of_smooth / smooth, rtol=1e-6 if exact else 0.25)
    quantiles = reg.predict_average_quantiles(cells, [0.025, 0.5, 0.975], [people, np.eye(9)[0]])
    assert quantiles.shape == (2, 3) and (np.diff(quantiles, axis=1) > 0).all()
    assert reg.predict_average_quantiles(cells, 0.5, people) == pytest.approx(quantiles[0, 1])
    level, across = counts.of_moments(mean[:1], std[:1])
    assert np.allclose(quantiles[1], counts.rate(level + across * norm.ppf([0.025, 0.5, 0.975])))


def test_counts_without_doubt_of_their_rates_have_averages_without():
    """A million positives of two million everywhere."""
    X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    reg = npax.CountRegressor(Binomial(), npax.NeuralProcessRegressor(untrained.hearing(2)))
    reg.fit(X, np.full(30, 1e6), exposure=2e6)
    mean, std = reg.predict_average(X, return_std=True)
    assert np.isfinite([mean, std]).all() and abs(mean - 0.5) < 0.2

"""Wells of different levels, and stations with one season: what they have in common is predicted by itself."""

import pickle

import equinox as eqx
import jax
import numpy as np
import pandas as pd
import pytest

import npax
from npax.inference import levels_of


@pytest.fixture
def wells(rng):
    """Rows of twelve wells at twenty times, some of which are missing, and the rows of these and of a new well."""
    places, times = rng.uniform(size=(12, 2)), np.sort(rng.uniform(0, 300, 20))
    well, time = (a.ravel() for a in np.indices((12, 20)))
    level = 20 * rng.normal(size=12)[well] + np.sin(times[time] / 40 + well) + 0.3 * rng.normal(size=240)
    table = pd.DataFrame({"x": places[well, 0], "y": places[well, 1], "day": times[time], "level": level})
    seen = rng.uniform(size=240) < 0.7
    new = pd.DataFrame({"x": 0.5, "y": 0.5, "day": [10.0, 200.0]})
    return table[seen], pd.concat([table[~seen][:8], table[~seen].iloc[[0, 9]].assign(day=[3.3, 4.4]), new])


PLACE = ["x", "y", "day"]


@pytest.fixture(params=["exact", "tiled"])
def make(request, hearing, monkeypatch):
    """An estimator that takes levels off wherever there are some, however held-out places are predicted."""
    monkeypatch.setattr("npax.estimators.sklearn.levels_help", lambda reg, *of: reg.levels)
    return lambda **options: npax.NeuralProcessRegressor(hearing, strategy=request.param, tile_size=32, **options)


@pytest.fixture
def apart(make, wells):
    """The estimator, one of what levels leave, and the levels."""
    table, _ = wells
    X, y = table[PLACE], table["level"].to_numpy()
    (levels,), rest = levels_of(npax.inference.Planar(), X.to_numpy(), y[:, None])
    return make().fit(X, y), make(levels=False).fit(X, rest[:, 0]), levels


def at(levels, X):
    """To which well each row belongs, -1 to none."""
    same = (X[["x", "y"]].to_numpy()[:, None] == levels.places).all(axis=-1)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def unsure_of(levels, of_rest, X):
    """What is not known of the level at each row, beside what the field hears of it: less than its standard error."""
    whole = np.minimum(of_rest.predict(X, return_std=True)[1] / levels.left[0], 1.0)
    return levels.unsure[at(levels, X), 0] * whole**2


@pytest.mark.parametrize("include_noise", [True, False])
def test_predictions_are_sums_of_levels_and_of_what_they_leave(apart, wells, include_noise):
    reg, of_rest, levels = apart
    X = wells[1][PLACE]
    well = at(levels, X)
    assert reg.levels_ == [[("x", "y")]] and of_rest.levels_ == [[]]
    assert (well >= 0).sum() == 10
    mean, std = reg.predict(X, return_std=True, include_noise=include_noise)
    rest, of_rest_std = of_rest.predict(X, return_std=True, include_noise=include_noise)
    known = well >= 0
    assert np.allclose(mean[known], (rest + levels.values[well, 0])[known], atol=1e-5)
    assert np.allclose(std[known], np.hypot(of_rest_std, unsure_of(levels, of_rest, X))[known], rtol=1e-5)
    of_new = npax.NeuralProcessRegressor(reg.model, strategy="exact", levels=False)
    of_new.fit(levels.places, levels.values[:, 0], error=levels.unsure[:, 0])
    level, unsure = of_new.predict(X[["x", "y"]].to_numpy()[~known], return_std=True)
    assert np.allclose(mean[~known], rest[~known] + level, atol=1e-3 * np.std(mean))
    assert np.allclose(std[~known], np.hypot(of_rest_std[~known], unsure), rtol=1e-3)


def test_covariances_are_those_of_both(apart, wells):
    reg, of_rest, levels = apart
    X = wells[1][PLACE]
    well = at(levels, X)
    _, cov = reg.predict(X, return_cov=True)
    _, std = reg.predict(X, return_std=True)
    assert np.allclose(np.diag(cov), std**2, rtol=1e-4)
    _, of_rest_cov = of_rest.predict(X, return_cov=True)
    own = (well[:, None] == well) & (well >= 0)
    known = np.outer(well >= 0, well >= 0)
    added = (cov - of_rest_cov)[known]
    unsure = unsure_of(levels, of_rest, X)
    assert np.allclose(added, np.where(own, np.outer(unsure, unsure), 0.0)[known], atol=1e-4 * np.max(cov))
    new = (cov - of_rest_cov)[-2:, -2:]  # one well, one level at both times
    assert np.allclose(new, new[0, 0], rtol=1e-3) and new[0, 0] > 1.0


def test_averages_are_as_unsure_as_their_levels(apart, wells):
    reg, of_rest, levels = apart
    X = wells[0][PLACE].iloc[:30]
    well = at(levels, X)
    weights = np.stack([np.ones(30), np.arange(30) < 9.0])
    _, cov = reg.predict_average(X, weights, return_cov=True)
    _, of_rest_cov = of_rest.predict_average(X, weights, return_cov=True)
    shares = weights / weights.sum(axis=1, keepdims=True)
    unsure = shares * unsure_of(levels, of_rest, X)
    of_wells = np.stack([np.bincount(well, region, len(levels.values)) for region in unsure])
    assert np.allclose(cov - of_rest_cov, of_wells @ of_wells.T, rtol=1e-3, atol=1e-6)
    new = wells[1][PLACE].iloc[-2:]
    mean, std = reg.predict_average(new, return_std=True)
    assert mean == pytest.approx(reg.predict(new).mean(), rel=1e-5)
    assert std > 0.5 * of_rest.predict_average(new, return_std=True)[1]


def test_samples_are_of_both(apart, wells):
    reg, _, _ = apart
    X = wells[1][PLACE].iloc[-4:]
    drawn = reg.sample_y(X, 200)
    mean, std = reg.predict(X, return_std=True)
    assert np.all(np.abs(drawn.mean(axis=1) - mean) < 5 * std / np.sqrt(200))
    assert np.all(np.abs(drawn.std(axis=1) / std - 1) < 0.35)
    assert np.corrcoef(drawn[-2:])[0, 1] > 0.5  # one new well, whose level is not known


def test_an_update_is_a_fit_on_all_and_what_is_sent_elsewhere_answers_alike(make, wells):
    table, wanted = wells
    X, y = table[PLACE], table["level"]
    reg = make().fit(X, y)
    expected = reg.predict(wanted[PLACE], return_std=True)
    updated = make().fit(X[:100], y[:100]).update(X[100:], y[100:])
    assert np.allclose(updated.predict(wanted[PLACE], return_std=True), expected, rtol=1e-4, atol=1e-4)
    sent = pickle.loads(pickle.dumps(reg))
    assert np.allclose(sent.predict(wanted[PLACE], return_std=True), expected, rtol=1e-5, atol=1e-5)
    if reg.strategy_ == "tiled":
        part = reg._predictor().part(wanted[PLACE].to_numpy())
        assert np.allclose(part(wanted[PLACE].to_numpy()).mean[:, 0], expected[0], rtol=1e-5, atol=1e-5)
        weights = sum(a.nbytes for a in jax.tree.leaves(eqx.filter(reg.model_, eqx.is_array)))
        alone = pickle.dumps(part.of(None))
        assert len(alone) < len(pickle.dumps(part)) - weights, "the network is not sent along"
        found = pickle.loads(alone).of(reg._network)(wanted[PLACE].to_numpy())
        assert np.allclose(found.mean[:, 0], expected[0], rtol=1e-5, atol=1e-5)


def test_levels_beside_covariates_and_errors_and_logarithms(make, wells, rng):
    table, wanted = wells
    more = {"elevation": lambda t: t.x + rng.normal(size=len(t)), "se": 0.1}
    found = npax.interpolate(
        table.assign(**more, ratio=np.exp(table.level / 50)),
        wanted[PLACE].assign(**more),
        x=PLACE,
        y="ratio",
        covariates=["elevation"],
        error="se",
        lognormal=True,
        model=make().model,
    )
    assert np.isfinite(found.ratio_mean).all() and (found.ratio_mean > 0).all()


def test_without_levels_or_units_nothing_is_taken_off(small, wells):
    table, _ = wells
    for options in ({"levels": False}, {"normalize": False}):
        reg = npax.NeuralProcessRegressor(small, **options).fit(table[PLACE] / 300, table["level"])
        assert reg.levels_ == [[]] and not reg.takes_levels_
    with pytest.raises(ValueError, match="`levels` must be True or False"):
        npax.NeuralProcessRegressor(small, levels="yes").fit(table[PLACE], table["level"])


def test_where_nothing_comes_again_the_drift_is_not_fitted_twice(small, rng, monkeypatch):
    monkeypatch.setattr("npax.estimators.levels.Drift", lambda *_: pytest.fail("is fitted once more"))
    X = rng.uniform(size=(60, 4))
    assert npax.NeuralProcessRegressor(small, covariates=[3]).fit(X, X[:, 3]).levels_ == [[]]
    station, time = (a.ravel() for a in np.indices((6, 10)))  # the negative control
    table = np.column_stack([X[station, :2], time, X[:, 3]])
    with pytest.raises(pytest.fail.Exception, match="once more"):
        npax.NeuralProcessRegressor(small, covariates=[3]).fit(table, X[:, 3])


@pytest.mark.usefixtures("optimised")
def test_a_season_that_all_stations_share_does_not_hide_what_they_differ_by(rng):
    """Held-out places tell that it is better taken off; of a smooth field, that nothing is."""
    places, times = rng.uniform(size=(16, 2)), np.arange(36.0)
    station, time = (a.ravel() for a in np.indices((16, 36)))
    slow = np.linalg.cholesky(np.exp(-np.abs(times[:, None] - times) / 8) + 1e-9 * np.eye(36))
    own = (slow @ rng.normal(size=(36, 16)))[time, station]
    truth = 8 * np.cos(2 * np.pi * times[time] / 12) + own
    X, y = np.column_stack([places[station], times[time]]), truth + 0.1 * rng.normal(size=len(own))
    gaps = rng.uniform(size=len(own)) < 0.25
    plain, reg = (
        npax.NeuralProcessRegressor(levels=levels, views=None).fit(X[~gaps], y[~gaps]) for levels in (False, True)
    )
    assert (2,) in reg.levels_[0] and plain.levels_ == [[]]
    error, of_plain = (np.sqrt(np.mean(np.square(r.predict(X[gaps]) - truth[gaps]))) for r in (reg, plain))
    assert error < 0.8 * of_plain
    uneven = np.sort(rng.uniform(size=20))
    a, b = (c.ravel() for c in np.meshgrid(uneven, uneven))
    smooth = np.sin(4 * a + 2 * b) + a + 0.05 * rng.normal(size=400)
    some = rng.uniform(size=400) < 0.6
    field = np.column_stack([a, b])[some]
    assert levels_of(npax.inference.Planar(), field, smooth[some, None])[0]
    assert npax.NeuralProcessRegressor(views=None).fit(field, smooth[some]).levels_ == [[]]

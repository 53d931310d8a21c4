"""What stations have in common at all times, and times at all stations."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from npax import NeuralProcessRegressor
from npax.inference import Exact, LatLon, Levels, LevelsEverywhere, Planar, Prediction, levels_of


def network(rng, stations=12, times=20, missing=0.3):
    """Rows `[n 3]` of places and times, and which station and which time each has."""
    places = rng.uniform(size=(stations, 2))
    station, time = (a.ravel() for a in np.indices((stations, times)))
    seen = rng.uniform(size=len(station)) > missing
    station, time = station[seen], time[seen]
    return np.column_stack([places[station], 10.0 * time]), station, time


def columns(found):
    return [of.columns for of in found]


def of_rows(levels, x):
    """The level of each row."""
    at = np.unique(x[:, levels.columns], axis=0, return_inverse=True)[1].reshape(-1)
    return levels.values[at]


@settings(max_examples=20, deadline=None)
@given(st.integers(6, 15), st.integers(10, 30), st.floats(0.0, 0.5), st.integers(0, 10**6))
def test_levels_are_those_of_least_squares(stations, times, missing, seed):
    rng = np.random.default_rng(seed)
    x, station, time = network(rng, stations, times, missing)
    y = 20 * rng.normal(size=stations)[station] + 15 * rng.normal(size=times)[time] + rng.normal(size=len(x))
    found, rest = levels_of(Planar(), x, y[:, None])
    design = np.column_stack([np.eye(stations)[station], np.eye(times)[time]])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    if columns(found) == [(0, 1), (2,)]:
        assert np.abs(rest[:, 0] - left).max() < 0.15 * np.abs(y).max() and np.std(rest[:, 0] - left) < 0.1 * y.std()
    assert np.allclose(rest + sum((of_rows(levels, x) for levels in found), np.zeros_like(rest)), y[:, None])


def test_levels_of_both_kinds_are_told_from_each_other(rng):
    x, station, time = network(rng)
    noise = rng.normal(size=len(x))
    of_stations, of_times = 10 * rng.normal(size=12)[station], 10 * rng.normal(size=20)[time]
    cases = {(): noise, ((0, 1),): of_stations + noise, ((2,),): of_times + noise}
    cases[(0, 1), (2,)] = of_stations + of_times + noise
    for expected, y in cases.items():
        for error in (None, 0.1, 1.0):  # the last is all that varies beside levels
            known = None if error is None else np.full((len(x), 1), error)
            found, rest = levels_of(Planar(), x, y[:, None], known)
            assert columns(found) == [*expected]
            assert np.std(rest) == pytest.approx(1.0, rel=0.2)


def test_stations_and_seasons_that_were_seen_unevenly_are_told_apart(rng):
    """Half of the stations were seen in winter alone: their means, the negative control, are far from their levels."""
    x, station, time = network(rng, stations=14, times=48, missing=0.0)
    season = 30 * np.cos(2 * np.pi * np.arange(48) / 12)
    level = 30 * rng.normal(size=14)
    seen = (station % 2 == 0) | (season[time] > 0)
    x, station, time = x[seen], station[seen], time[seen]
    y = level[station] + season[time] + rng.normal(size=len(x))
    (of_places, _), _ = levels_of(Planar(), x, y[:, None])
    order = np.unique(x[:, :2], axis=0, return_index=True)[1]
    error = of_places.values[:, 0] - level[station[order]]
    assert np.std(error) < 1.0
    means = np.array([y[station == s].mean() for s in station[order]])
    assert np.std(means - level[station[order]]) > 5.0


def test_of_a_table_that_falls_apart_one_side_has_levels(rng):
    """Some stations at some times, others at others: nothing compares the ones with the others."""
    x, station, time = network(rng, stations=24, times=48, missing=0.0)
    y = 20 * rng.normal(size=24)[station] + np.where(time < 24, 0.0, 30.0) + rng.normal(size=len(x))
    y += 10 * rng.normal(size=48)[time]
    assert columns(levels_of(Planar(), x, y[:, None])[0]) == [(0, 1), (2,)]
    seen = (station < 12) == (time < 24)
    assert columns(levels_of(Planar(), x[seen], y[seen, None])[0]) in ([(0, 1)], [(2,)])
    linked = seen | ((station == 3) & (time > 40))
    assert columns(levels_of(Planar(), x[linked], y[linked, None])[0]) == [(0, 1), (2,)]


def test_longitudes_may_wrap_anywhere(rng):
    lon, (station, time) = np.linspace(-0.3, 17.3, 12), (a.ravel() for a in np.indices((12, 8)))
    x = np.column_stack([lon[station], np.zeros(96), time])
    y = (10 * rng.normal(size=12)[station] + rng.normal(size=96))[:, None]
    (expected,), rest = levels_of(LatLon(), x, y)
    wrapped = x + np.where(time % 2, 360.0, 0.0)[:, None] * [1, 0, 0]
    (found,), left = levels_of(LatLon(), wrapped, y)
    assert len(found.places) == 12 and np.allclose(np.sort(found.values[:, 0]), np.sort(expected.values[:, 0]))
    assert np.allclose(left, rest)


def test_units_origins_and_the_order_of_rows_do_not_matter(rng):
    x, station, _ = network(rng)
    y = (10 * rng.normal(size=12)[station] + rng.normal(size=len(x)))[:, None]
    (expected,), rest = levels_of(Planar(), x, y)
    order = rng.permutation(len(x))
    (found,), left = levels_of(Planar(), 1e3 * x[order] + 7, 1e-6 * y[order] + 3.0)
    assert np.allclose(found.values, 1e-6 * expected.values + 3.0, rtol=1e-12, atol=1e-9)
    assert np.allclose(found.unsure, 1e-6 * expected.unsure, rtol=1e-4)
    assert np.allclose(left, 1e-6 * rest[order], atol=1e-9)


def test_two_columns_of_values_must_both_have_them(rng):
    x, station, _ = network(rng)
    large, small = 10 * rng.normal(size=12)[station] + rng.normal(size=len(x)), rng.normal(size=len(x))
    found, rest = levels_of(Planar(), x, np.column_stack([large, 2 * large]))
    assert columns(found) == [(0, 1)] and np.allclose(rest[:, 1], 2 * rest[:, 0])
    assert not levels_of(Planar(), x, np.column_stack([large, small]))[0]


def test_where_nothing_comes_again_there_are_none(rng):
    """Scattered places; places that are measured again and again, without a time; and single stations."""
    scattered = rng.uniform(size=(300, 3))
    again = np.repeat(rng.uniform(size=(30, 2)), 10, axis=0)
    one = np.column_stack([np.zeros((60, 2)), np.arange(60)])
    for x in (scattered, again, one, scattered[:0], scattered[:1]):
        y = (100 * np.sin(7 * x[:, :1]) + rng.normal(size=(len(x), 1))).reshape(len(x), 1)
        found, rest = levels_of(Planar(), x, y)
        assert not found and np.array_equal(rest, y)


def test_columns_of_one_unit_are_not_cut(rng):
    uneven = np.cumsum(rng.uniform(0.2, 1.0, 20))
    a, b = (c.ravel() for c in np.meshgrid(uneven, np.arange(30.0)))
    y = (100 * np.sin(a) + rng.normal(size=600))[:, None]
    grid = np.column_stack([a, b])
    assert columns(levels_of(Planar(), grid, y)[0]) == [(0,)]
    even = np.column_stack([np.searchsorted(uneven, a) / 7, b])
    for picture in (even, np.column_stack([even, np.ones(600)])):
        assert not levels_of(Planar(), picture, y)[0]
    assert not levels_of(Planar(isotropic=True), grid, y)[0]
    assert not levels_of(LatLon(), grid, y)[0]
    with_time = np.column_stack([np.tile(grid, (6, 1)), np.repeat(np.arange(6.0), 600)])
    assert columns(levels_of(LatLon(), with_time, np.tile(y, (6, 1)) + rng.normal(size=(3600, 1)))[0]) == [(0, 1)]


def test_values_without_anything_beside_levels_are_left_as_they_are(rng):
    x, station, _ = network(rng)
    y = 10 * rng.normal(size=12)[station][:, None]
    for exact in (y, 0 * y + 3.0, 1e200 * y, 1e-200 * y):
        found, rest = levels_of(Planar(), x, exact)
        assert not found and np.array_equal(rest, exact)


def test_what_is_known_to_be_wrong_hardly_counts(rng):
    x, station, _ = network(rng, missing=0.0)
    level = 10 * rng.normal(size=12)
    bad = rng.uniform(size=len(x)) < 0.2
    error = np.where(bad, 100.0, 0.1)[:, None]
    y = (level[station] + rng.normal(size=len(x)) + 100 * bad * rng.normal(size=len(x)))[:, None]
    (found,), _ = levels_of(Planar(), x, y, error)
    order = np.unique(x[:, :2], axis=0, return_index=True)[1]
    assert np.std(found.values[:, 0] - level[station[order]]) < 1.5
    assert not levels_of(Planar(), x, y)[0]  # as though all were of one kind


@pytest.fixture
def everywhere(gp, rng):
    """Levels of stations on a line of longitudes, which a Gaussian process maps."""
    lon = np.linspace(170, 190, 9) % 360
    station, time = (a.ravel() for a in np.indices((9, 20)))
    x = np.column_stack([lon[station], np.zeros(180), time])
    y = 10 * np.sin(station / 2)[:, None] + 0.5 * rng.normal(size=(180, 1))
    (levels,), _ = levels_of(LatLon(), x, y)
    known = Exact(gp, levels.places, levels.values, LatLon(), error=levels.unsure)
    return LevelsEverywhere(levels, LatLon(), known)


def test_places_that_were_seen_have_their_levels_and_others_those_of_the_map(everywhere):
    known = everywhere.levels
    shifted = known.places + np.array([[-360, 0]])
    for places in (known.places, known.places.astype(np.float32), shifted):
        found = everywhere(np.column_stack([places, np.full(9, 1000.0)]))
        assert np.array_equal(found.mean, known.values) and np.array_equal(found.std(), known.unsure)
    new = np.array([[171.0, 0.0, 3.0], [186.0, 0.0, 4.0], [186.0, 0.0, 5.0]])
    found, expected = everywhere(new), everywhere.map(new[:, :2])
    assert np.allclose(found.mean, expected.mean) and np.allclose(found.std(False), expected.std(True))
    both = everywhere(np.concatenate([new, np.column_stack([known.places, np.zeros(9)])]))
    assert np.allclose(both.mean, np.concatenate([expected.mean, known.values]))


def test_hours_of_many_years_are_each_by_themselves(gp):
    """What lies between two is another, however long the series; and what is infinitely far is nowhere near."""
    hours = np.concatenate([np.arange(72.0), 24 * 365 * 30 + np.arange(72.0)])[:, None] / 24
    of_day = Levels((1,), hours, np.sin(2 * np.pi * hours), np.full(hours.shape, 0.1))
    everywhere = LevelsEverywhere(of_day, Planar(), Exact(gp, hours, of_day.values))
    rows = lambda times: np.column_stack([np.zeros(len(times)), times])  # noqa: E731
    assert everywhere.different(rows(hours)).known.all()
    assert not everywhere.different(rows(hours + 0.5 / 24)).known.any()
    assert not everywhere.different(rows(np.array([[1e308], [-1e308]]))).known.any()


def test_a_level_of_which_next_to_nothing_is_known_is_that_of_the_map(everywhere):
    known = everywhere.levels
    bad = known._replace(unsure=np.where(np.arange(9)[:, None] == 4, 1e3, known.unsure))
    other = LevelsEverywhere(bad, LatLon(), everywhere.map)
    found = other.different(np.column_stack([known.places, np.zeros(9)]))
    assert np.count_nonzero(~found.known) == 1
    assert other(np.column_stack([known.places[4:5], [0.0]])).std().item() < 100


def test_what_is_left_of_a_levels_chance_deviation_is_that_of_universal_kriging(everywhere):
    """Of a Matern-1/2 process that is seen at ten times, a level that is off by one moves what kriging makes of the
    rest by the sum of its weights: all of it is left far away, nothing beside what is seen."""
    seen, asked = np.arange(10.0)[:, None], np.array([4.0, 4.5, 9.5, 11.0, 15.0, 100.0])[:, None]
    k, between = (np.exp(-np.abs(a - b.T) / 3) for a, b in ((seen, seen), (asked, seen)))
    weights = np.linalg.solve(k, between.T).T
    std = 2.0 * np.sqrt(np.maximum(1 - np.sum(weights * between, axis=1, keepdims=True), 0.0))
    true = 1 - weights.sum(axis=1, keepdims=True)
    levels = LevelsEverywhere(everywhere.levels._replace(left=np.array([2.0])), LatLon(), everywhere.map)
    found = levels.unheard(Prediction(np.zeros_like(std), std, std))
    assert np.all(true - 1e-6 < found) and np.all(found < 2 * true + 0.15), "never less, nor much more"
    assert found[0] < 1e-6 and found[-1] > 0.999 < true[-1]


def test_averages_over_what_is_seen_are_as_certain_as_what_is_seen(optimised):
    """Whatever is taken for the level and whatever for the season: of fields that a Gaussian process knows."""
    rng = np.random.default_rng(3)
    places, days = rng.uniform(size=(14, 2)), 30.0 * np.arange(18)
    station, month = (a.ravel() for a in np.indices((14, 18)))
    apart, later = (np.sqrt(np.square(a[:, None] - a).sum(axis=-1)) for a in (places, days[:, None]))
    root = np.linalg.cholesky(np.kron(np.exp(-apart / 0.3), np.exp(-later / 200)) + 1e-9 * np.eye(252))
    field = 5 * rng.normal(size=14)[station] + 3 * rng.normal(size=18)[month] + root @ rng.normal(size=252)
    x = np.column_stack([places[station], days[month]])
    shown = rng.uniform(size=252) > 0.2
    reg = NeuralProcessRegressor().fit(x[shown], (field + 0.05 * rng.normal(size=252))[shown])
    assert reg.takes_levels_ and len(reg.levels_[0]) == 2
    each = month == np.arange(18)[:, None]
    mean, std = reg.predict_average(x, each, return_std=True)
    away = mean - np.array([field[of].mean() for of in each])
    assert np.std(away) < 0.2 and np.all(np.abs(away) < 4 * std)
    assert 0.5 * np.sqrt(np.mean(away**2)) < np.sqrt(np.mean(std**2)) < 2 * np.sqrt(np.mean(away**2))

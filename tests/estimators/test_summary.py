"""Quantiles, and probabilities of more than a threshold, by name."""

import inspect

import dask.array
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import npax
from npax.estimators.summary import Summary

LON, LAT = np.linspace(-5, 5, 7), np.linspace(40, 48, 5)
ASKED = {"quantiles": [0.025, 0.5], "above": [0.3, 1e-7]}
NAMES = ["_mean", "_std", "_q0.025", "_q0.5", "_above_0.3", "_above_0.0000001"]


@pytest.fixture
def villages(rng):
    lon, lat = rng.uniform(-5, 5, 40), rng.uniform(40, 48, 40)
    tested = rng.integers(5, 50, 40)
    table = pd.DataFrame({"lon": lon, "lat": lat, "positive": rng.binomial(tested, 0.3), "tested": tested})
    return table.assign(temp=lon / 10, salt=lat - 44)


def test_values_have_those_of_the_normal_distribution(rng):
    mean, std = rng.normal(size=(5, 3, 2)), rng.uniform(0.1, 2, (5, 3, 2))
    told = Summary.of(None, [0.1, 0.5], 0.4)(np.concatenate([mean, std], axis=-1))
    law = stats.norm(mean, std)
    assert np.allclose(told, np.concatenate([mean, std, law.ppf(0.1), mean, law.sf(0.4)], axis=-1))


def test_rates_have_those_of_their_levels(rng):
    mean, std = rng.normal(size=(5, 1)), rng.uniform(0.1, 1, (5, 1))
    told = Summary.of(npax.counts.Poisson(), [0.1, 0.9], 0.7)(np.concatenate([mean, std], axis=-1))
    law = stats.lognorm(std, scale=np.exp(mean))
    expected = np.concatenate([law.mean(), law.std(), law.ppf(0.1), law.ppf(0.9), law.sf(0.7)], axis=-1)
    assert np.allclose(told, expected)
    averages = Summary.of(npax.counts.Poisson(), [0.1, 0.9], 0.7).of_averages(law.mean(), law.std())
    assert np.allclose(averages, expected)


def interpolate(villages, target, model, **options):
    return npax.interpolate(villages, target, ["lon", "lat"], coords="latlon", model=model, **{**ASKED, **options})


def test_a_share_of_zeros_is_noted_where_a_distribution_is_asked(villages, hearing, recwarn):
    """As of rain: a normal distribution knows none."""
    dry = np.arange(40) < 11
    rain = villages.assign(rain=np.where(dry, 0.0, 1 + villages.salt**2)).assign(cold=lambda t: t.rain - 5)
    words = "11 of 40 values of 'rain' are 0, the least of them: predictions are normal .*Binomial.*`lognormal=True`"
    for asked in ({"quantiles": 0.5}, {"above": 1.0}):
        with pytest.warns(UserWarning, match=words):
            npax.interpolate(rain, {"lon": LON, "lat": LAT}, y="rain", coords="latlon", model=hearing, **asked)
    with pytest.warns(UserWarning, match=r"'cold' are -5, .*without the others\.$"):
        interpolate(rain, {"lon": LON, "lat": LAT}, hearing, y="cold")
    assert not recwarn.list
    interpolate(rain, {"lon": LON, "lat": LAT}, hearing, y="rain", quantiles=(), above=())
    wet = rain.assign(
        some=np.where(dry & (np.arange(40) > 1), 0, rain.rain + 1),  # fewer
        top=-rain.rain,
        kind=np.where(dry, 0.0, np.arange(40) % 2 + 1),
        of_all=rain.rain + 1,
    )
    for y, options in (("some", {}), ("top", {}), ("kind", {}), ("of_all", {"lognormal": True, "above": 1.5})):
        interpolate(wet, {"lon": LON, "lat": LAT}, hearing, y=y, **options)
    counts = {"y": "positive", "exposure": "tested", "counts": npax.counts.Binomial()}
    interpolate(wet.assign(positive=wet.positive.where(~dry, 0)), {"lon": LON, "lat": LAT}, hearing, **counts)
    assert not [str(w.message) for w in recwarn.list if "least of them" in str(w.message)]


@pytest.mark.parametrize("noise", [True, False])
def test_tables_grids_lazy_ones_and_stores_tell_the_estimators(noise, villages, hearing, tmp_path):
    options = {"y": "positive", "counts": npax.counts.Binomial(), "exposure": "tested", "include_noise": noise}
    reg = npax.CountRegressor(npax.counts.Binomial(), npax.NeuralProcessRegressor(hearing, coords="latlon"))
    reg.fit(villages[["lon", "lat"]], villages.positive, exposure=villages.tested)
    lat, lon = (a.ravel() for a in np.meshgrid(LAT, LON, indexing="ij"))
    places = pd.DataFrame({"lon": lon, "lat": lat})
    quantiles = reg.predict_quantiles(places, ASKED["quantiles"], include_noise=noise)
    above = [reg.exceedance(places, rate, include_noise=noise) for rate in ASKED["above"]]
    expected = np.stack([*reg.predict(places, return_std=True, include_noise=noise), *quantiles.T, *above], axis=1)
    table = interpolate(villages, places, hearing, **options)
    assert list(table)[2:] == [f"positive{name}" for name in NAMES] and np.allclose(table.iloc[:, 2:], expected)
    grid = {"lat": LAT, "lon": LON}
    lazy = xr.DataArray(dask.array.zeros((5, 7), chunks=(2, 7)), grid, ("lat", "lon"))
    for target, store in ((grid, None), (lazy, None), (grid, tmp_path / "a.zarr")):
        found = interpolate(villages, target, hearing, **options, store=store)
        assert list(found) == list(table)[2:] or store
        for i, name in enumerate(NAMES):
            assert found[f"positive{name}"].dims == ("lat", "lon")
            assert np.allclose(found[f"positive{name}"].to_numpy().ravel(), expected[:, i])
    of = "the rate of a single further place" if noise else "the rate that varies smoothly"
    assert found["positive_std"].attrs["comment"] == f"of {of}"
    with pytest.raises(FileExistsError, match="another prediction"):
        interpolate(villages, grid, hearing, **{**options, "above": 0.4}, store=tmp_path / "a.zarr")


def test_several_variables_have_theirs_each(villages, hearing):
    data = xr.Dataset({name: ("row", villages[name].to_numpy()) for name in villages}).set_coords(["lon", "lat"])
    data["temp"].attrs = {"units": "degC", "long_name": "temperature", "standard_name": "sea_water_temperature"}
    places = villages[["lon", "lat"]].head(3)
    table = interpolate(villages, places, hearing, y=["temp", "salt"])
    assert list(table)[2:] == [f"{y}{name}" for y in ("temp", "salt") for name in NAMES]
    law = stats.norm(table.salt_mean, table.salt_std)
    assert np.allclose(table["salt_q0.025"], law.ppf(0.025)) and np.allclose(table["salt_above_0.3"], law.sf(0.3))
    found = interpolate(data, {"lat": LAT, "lon": LON}, hearing, y=["temp", "salt"])
    assert found["temp_q0.025"].attrs == {
        "units": "degC",
        "long_name": "0.025 quantile of temperature",
        "quantile": 0.025,
        "comment": "of a new observation",
    }
    of_more = {"units": "1", "long_name": "probability that temperature is above 0.3", "threshold": 0.3}
    assert found["temp_above_0.3"].attrs == {**of_more, "comment": "of a new observation"}
    found = interpolate(data, {"lat": LAT, "lon": LON}, hearing, y="temp", include_noise=False)
    assert {found[f"temp{name}"].attrs["comment"] for name in NAMES[1:]} == {"of the noiseless function"}
    assert "comment" not in found.temp_mean.attrs


def test_the_estimator_tells_how_likely_more_is(villages, hearing):
    reg = npax.NeuralProcessRegressor(hearing, coords="latlon").fit(villages[["lon", "lat"]], villages.temp)
    places = villages[["lon", "lat"]].head(3)
    for noise in (True, False):
        law = stats.norm(*reg.predict(places, return_std=True, include_noise=noise))
        assert np.allclose(reg.exceedance(places, 0.1, include_noise=noise), law.sf(0.1))
    assert np.array_equal(reg.exceedance(places, 0.1), reg.exceedance(places, 0.1, include_noise=True))
    assert np.array_equal(reg.exceedance(places, [0.1]), reg.exceedance(places, 0.1)[:, None])
    for wrong in ([[0.1, 0.2]], np.nan, True, "0.1"):
        with pytest.raises(ValueError, match="`threshold` must be a number or a list of numbers, all finite; got"):
            reg.exceedance(places, wrong)


@pytest.mark.parametrize("columns", ["temp", ["temp", "salt"]])
@pytest.mark.parametrize("regions", [1, 2])
def test_the_estimators_averages_have_quantiles(columns, regions, villages, hearing):
    reg = npax.NeuralProcessRegressor(hearing, coords="latlon").fit(villages[["lon", "lat"]], villages[columns])
    places, shares = villages[["lon", "lat"]].head(4), np.array([[1.0, 2, 3, 4], [1, 0, 0, 1]])
    weights = shares[0] if regions == 1 else shares
    mean, std = reg.predict_average(places, weights, return_std=True)
    found = reg.predict_average_quantiles(places, [0.1, 0.5], weights)
    assert np.allclose(found, np.stack([stats.norm(mean, std).ppf(q) for q in (0.1, 0.5)], axis=-1))
    assert np.allclose(reg.predict_average_quantiles(places, 0.1, weights), found[..., 0])


def test_averages_have_theirs(villages, hearing):
    lat, lon = (a.ravel() for a in np.meshgrid(LAT, LON, indexing="ij"))
    cells = pd.DataFrame({"lon": lon, "lat": lat, "side": np.where(lon > 0, "east", "west")})
    options = {"by": "side", "coords": "latlon", "model": hearing}
    found = npax.average(villages, cells, y=["temp", "salt"], **options, **ASKED)
    assert list(found) == [f"{y}{name}" for y in ("temp", "salt") for name in NAMES]
    law = stats.norm(found.temp_mean, found.temp_std)
    assert np.allclose(found["temp_q0.025"], law.ppf(0.025)) and np.allclose(found["temp_above_0.3"], law.sf(0.3))
    of_counts = {"counts": npax.counts.Binomial(), "exposure": "tested"}
    found = npax.average(villages, cells, y="positive", **of_counts, **options, **ASKED)
    reg = npax.CountRegressor(npax.counts.Binomial(), npax.NeuralProcessRegressor(hearing, coords="latlon"))
    reg.fit(villages[["lon", "lat"]].to_numpy(), villages.positive, exposure=villages.tested)
    shares = pd.get_dummies(cells.side).T.to_numpy(float)
    places = cells[["lon", "lat"]].to_numpy()
    quantiles = reg.predict_average_quantiles(places, ASKED["quantiles"], shares)
    assert np.allclose(found[["positive_q0.025", "positive_q0.5"]], quantiles)
    assert np.allclose(found.positive_std, reg.predict_average(places, shares, return_std=True)[1])
    level, across = npax.counts.Binomial().of_moments(found.positive_mean.to_numpy(), found.positive_std.to_numpy())
    assert np.allclose(found["positive_above_0.3"], stats.norm(level, across).sf(np.log(0.3 / 0.7)))
    gridded = npax.average(villages, cells.set_index(["lat", "lon"]).to_xarray(), y="temp", **options, **ASKED)
    assert list(gridded) == [f"temp{name}" for name in NAMES] and gridded["temp_above_0.3"].attrs["units"] == "1"


def test_names_are_short_and_those_of_coordinates_stay(villages, hearing, recwarn):
    places = villages[["lon", "lat"]].head(2)
    short = {"quantiles": np.array([0.025], np.float32), "above": np.array([0.3, 1e-30, -0.0], np.float32)}
    found = npax.interpolate(villages, places, ["lon", "lat"], "temp", model=hearing, **short)
    assert list(found)[4:] == ["temp_q0.025", "temp_above_0.3", "temp_above_1e-30", "temp_above_0"]
    renamed = {"lon": "temp_mean"}
    with pytest.raises(ValueError, match="`target` has a coordinate 'temp_mean'"):
        npax.interpolate(villages.rename(columns=renamed), places.rename(columns=renamed), ["temp_mean", "lat"], "temp")
    many = np.linspace(0.005, 0.995, 150)
    assert npax.interpolate(villages, places, ["lon", "lat"], "temp", model=hearing, quantiles=many).shape == (2, 154)
    assert not [w for w in recwarn if "fragmented" in str(w.message)]


def test_columns_of_one_name_are_refused_by_it(villages, hearing):
    twice = pd.concat([villages, villages[["lon"]]], axis=1)
    for observed, target in ((twice, villages), (villages, twice)):
        with pytest.raises(ValueError, match="several columns that are named 'lon'"):
            npax.interpolate(observed, target, ["lon", "lat"], "temp", model=hearing)


def test_what_cannot_be_asked_is_refused_before_the_work(villages, hearing):
    unchecked, places = inspect.unwrap(npax.interpolate), villages[["lon", "lat"]]
    options = {"y": "temp", "model": hearing}
    for words, wrong in {
        "`quantiles` must be probabilities above 0 and below 1": {"quantiles": [2.5, 97.5]},
        "`quantiles` must have each number once": {"quantiles": [0.5, 0.5]},
        "`above` must be a number or a list of numbers": {"above": "much"},
        "`above` must .* finite": {"above": [np.inf]},
        "A rate of events must be positive": {"above": -1.0, "counts": npax.counts.Poisson()},
    }.items():
        with pytest.raises(ValueError, match=words):
            unchecked(villages, places, **{**options, **wrong})
    taken = xr.Dataset(coords={"lat": LAT, "lon": LON, "temp_q0.5": 1.0})
    with pytest.raises(ValueError, match=r"`target` has a coordinate 'temp_q0.5'"):
        unchecked(villages, taken, **options, quantiles=0.5)

"""Averages over regions of tables and grids."""

import inspect
import sys

import numpy as np
import pandas as pd
import pytest
import untrained
import xarray as xr

import npax

LON, LAT = np.linspace(-5, 5, 7), np.linspace(40, 48, 5)
MODEL = untrained.cnp(3, 1)


@pytest.fixture(scope="module")
def stations():
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(-5, 5, 40), rng.uniform(40, 48, 40)
    return pd.DataFrame({"lon": lon, "lat": lat, "temp": 15 - lat / 10, "salt": 35 + lon})


@pytest.fixture(scope="module")
def cells():
    """A grid whose cells are of the north or the south, one of neither."""
    name = np.where(LAT[:, None] > 44, "north", "south") + np.full((1, 7), "")
    name = name.astype(object)
    name[1, 2] = None
    area = xr.DataArray(np.arange(1.0, 36).reshape(5, 7), dims=("lat", "lon"))
    grid = xr.Dataset({"basin": (("lat", "lon"), name), "area": area}, coords={"lat": LAT, "lon": LON})
    grid["basin"].attrs = {"long_name": "half of the sea"}
    return grid


def average(observations, target, **options):
    return npax.average(observations, target, **{"y": "temp", "coords": "latlon", **options}, model=MODEL)


@pytest.fixture(scope="module")
def reg(stations):
    return npax.NeuralProcessRegressor(MODEL, coords="latlon").fit(stations[["lon", "lat"]].to_numpy(), stations.temp)


def test_a_table_gives_the_estimators_averages(stations, cells, reg):
    rows = cells.to_dataframe().reset_index()
    found = average(stations, rows, by="basin", weights="area")
    assert list(found.index) == ["north", "south"] and found.index.name == "basin"
    assert list(found) == ["temp_mean", "temp_std"]
    named = rows.dropna()
    shares = pd.get_dummies(named.basin).T * named.area
    mean, std = reg.predict_average(named[["lon", "lat"]].to_numpy(), shares.to_numpy(float), return_std=True)
    assert np.allclose(found.temp_mean, mean) and np.allclose(found.temp_std, std)
    series = stations.set_index(["lon", "lat"]).temp
    assert average(series, rows, by="basin", weights="area", y=None).equals(found)


def test_a_grid_gives_the_same_with_attributes(stations, cells):
    data = xr.Dataset({name: ("obs", stations[name].to_numpy()) for name in stations}).set_coords(["lon", "lat"])
    data["temp"].attrs = {"units": "degC"}
    expected = average(stations, cells.to_dataframe().reset_index(), by="basin", weights="area")
    found = average(data, cells, by="basin", weights="area")
    assert found.temp_mean.dims == ("basin",) and list(found.basin.to_numpy()) == list(expected.index)
    assert np.allclose(found.temp_mean, expected.temp_mean) and np.allclose(found.temp_std, expected.temp_std)
    assert found.temp_mean.attrs["units"] == found.temp_std.attrs["units"] == "degC"
    assert found.basin.attrs == {"long_name": "half of the sea"}
    named = {"lat": LAT, "lon": LON, "basin": (("lat", "lon"), cells.basin.to_numpy())}
    chunked = cells.basin.chunk(lat=2)
    for target in (cells.drop_vars("area"), cells.basin, named, chunked, cells.basin.transpose("lon", "lat")):
        whole = average(stations, target, by="basin")
        xr.testing.assert_allclose(whole, average(stations, cells, by="basin"))


def test_cells_of_longitudes_and_latitudes_count_by_their_area(stations, cells):
    by_area = cells.assign(area=np.cos(np.deg2rad(cells.lat)) + 0 * cells.area)
    found = average(stations, by_area, weights="area", by="basin")
    assert np.allclose(average(stations, cells, by="basin").temp_mean, found.temp_mean)
    flat = average(stations, by_area.assign(area=1 + 0 * cells.area), weights="area", by="basin")
    assert not np.allclose(found.temp_mean, flat.temp_mean, rtol=1e-6)
    both = cells, cells.to_dataframe().reset_index()
    alike = [average(stations, target, coords="planar", by="basin") for target in both]
    assert np.allclose(alike[0].temp_mean, alike[1].temp_mean)


def test_all_places_are_one_region_without_names(stations, cells, reg):
    rows = cells.to_dataframe().reset_index()
    found = average(stations, rows, y=["temp", "salt"], weights="area")
    mean, std = reg.predict_average(rows[["lon", "lat"]].to_numpy(), rows.area, return_std=True)
    assert len(found) == 1 and list(found) == ["temp_mean", "temp_std", "salt_mean", "salt_std"]
    assert np.allclose(found.iloc[0, :2], [mean, std])
    whole = average(stations, cells, y=["temp", "salt"], weights="area")
    assert not whole.sizes and np.allclose(whole.temp_mean, mean) and np.allclose(whole.salt_std, found.salt_std)


@pytest.mark.filterwarnings("ignore::npax.estimators.DroppedRows")
def test_averages_of_variables_with_different_gaps_are_each_from_where_they_are_known(stations, cells):
    rows = cells.to_dataframe().reset_index()
    stations = stations.copy()
    stations.loc[stations.index[:9], "temp"] = np.nan
    for target in (rows, cells):
        both, *alone = (average(stations, target, y=y, by="basin") for y in (["temp", "salt"], "temp", "salt"))
        for name, each in zip(("temp", "salt"), alone, strict=True):
            for kind in ("mean", "std"):
                assert np.array_equal(both[f"{name}_{kind}"], each[f"{name}_{kind}"])
    assert both.salt_mean.attrs == alone[1].salt_mean.attrs


def test_regions_may_have_several_names(stations, cells):
    rows = cells.to_dataframe().reset_index().assign(east=lambda t: t.lon > 0)
    found = average(stations, rows, by=["basin", "east"])
    assert list(found.index) == [("north", False), ("north", True), ("south", False), ("south", True)]
    one = average(stations, rows[(rows.basin == "south") & rows.east])
    assert np.allclose(found.loc["south", True], one.iloc[0], rtol=0.1)  # by places that stand for all regions
    gridded = average(stations, cells.assign(east=cells.lon > 0), by=["basin", "east"], weights="area")
    assert gridded.temp_mean.dims == ("basin", "east") and gridded.temp_mean.shape == (2, 2)


def test_months_are_regions_of_time(rng):
    date = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 365, 50), "D")
    series = pd.DataFrame({"date": date, "level": rng.normal(size=50)})
    days = pd.DataFrame({"date": pd.date_range("2020-01-01", "2020-12-31")}).assign(month=lambda t: t.date.dt.month)
    found = npax.average(series, days, "date", "level", by="month", model=MODEL)
    assert list(found.index) == [*range(1, 13)] and np.isfinite(found).all(axis=None)
    months = xr.DataArray(days.month, {"date": days.date}, "date", "month")
    gridded = npax.average(series, months, "date", "level", by="month", model=MODEL)
    assert np.allclose(gridded.level_mean, found.level_mean)
    own = npax.average(series, days[:3], "date", "level", by="date", model=MODEL)
    assert list(own.index) == list(days.date[:3])


def test_places_that_are_not_there_are_in_no_region(stations, cells):
    lon, lat = np.meshgrid(LON, LAT)
    lon[0, 0] = np.nan
    swath = xr.Dataset({"basin": cells.basin.drop_vars(["lat", "lon"]).rename(lat="row", lon="cell")})
    swath = swath.assign_coords(lon=(("row", "cell"), lon), lat=(("row", "cell"), lat))
    rows = swath.to_dataframe().dropna()
    found = average(stations, swath, by="basin")
    expected = average(stations, rows.assign(area=np.cos(np.deg2rad(rows.lat))), by="basin", weights="area")
    assert np.allclose(found.temp_mean, expected.temp_mean)


def test_covariates_and_errors_are_named(stations, cells, rng):
    hearing = untrained.hearing(3)
    table = stations.assign(height=rng.uniform(0, 2, 40), se=0.1)
    rows = cells.to_dataframe().reset_index().assign(height=1.0)
    options = {"y": "temp", "coords": "latlon", "model": hearing, "covariates": "height", "error": "se"}
    found = npax.average(table, rows, by="basin", **options)
    reg = npax.NeuralProcessRegressor(hearing, coords="latlon", covariates=[2])
    reg.fit(table[["lon", "lat", "height"]].to_numpy(), table.temp, error=table.se)
    south = rows[rows.basin == "south"][["lon", "lat", "height"]].to_numpy()
    assert np.allclose(found.temp_mean["south"], reg.predict_average(south))


def test_rates_of_counts(stations, cells, rng):
    hearing, tested = untrained.hearing(3), rng.integers(5, 30, 40)
    table = stations.assign(tested=tested, positive=rng.binomial(tested, 0.3))
    rows = cells.to_dataframe().reset_index()
    options = {"counts": npax.counts.Binomial(), "exposure": "tested", "coords": "latlon", "model": hearing}
    found = npax.average(table, rows, y="positive", by="basin", weights="area", **options)
    of_counts = npax.CountRegressor(npax.counts.Binomial(), npax.NeuralProcessRegressor(hearing, coords="latlon"))
    of_counts.fit(table[["lon", "lat"]].to_numpy(), table.positive, exposure=tested)
    south = rows[rows.basin == "south"]
    expected = of_counts.predict_average(south[["lon", "lat"]].to_numpy(), south.area, return_std=True)
    assert np.allclose(found.loc["south"], expected, rtol=1e-3)


@pytest.mark.parametrize(
    "words, options",
    [
        ("`target` has no 'sea'; it has", {"by": "sea"}),
        ("`target` has no 'people'; it has", {"weights": "people"}),
        ("'basin' of `target` is not of numbers", {"weights": "basin"}),
        ("`by` has a coordinate 'temp_mean'", {"by": "temp_mean"}),
        ("`weights`, 'none', must not be zero all over a region, as of 'north'", {"weights": "none", "by": "basin"}),
        ("`weights`, 'less', must be finite and not negative, got -1 at 35 of 35 places", {"weights": "less"}),
        (
            "`weights`, 'nowhere', must be finite .* got nan .* in the region 'south'",
            {"weights": "nowhere", "by": "basin"},
        ),
        ("`by` must name every column once", {"by": ["basin", "basin"]}),
        ("No place of `target` is in a region: of all 35", {"by": "nowhere"}),
    ],
)
def test_what_cannot_be_is_told(words, options, stations, cells):
    given = {"none": 0.0, "less": -1.0, "nowhere": np.nan, "temp_mean": "a"}
    grid = cells.assign({name: (("lat", "lon"), np.full((5, 7), value)) for name, value in given.items()})
    for target in (grid, grid.to_dataframe().reset_index()):
        with pytest.raises(ValueError, match=words):
            average(stations, target, **options)


def test_what_varies_elsewhere_is_refused(stations, cells):
    masks = cells.assign(mask=(("region", "lat"), np.ones((3, 5))))
    with pytest.raises(ValueError, match="'mask' of `target` varies along 'region', as no place does"):
        average(stations, masks.drop_vars(["basin", "area"]), by="mask")


def test_values_in_place_of_names_are_refused(stations, cells):
    rows = cells.to_dataframe().reset_index()
    for argument, values in {"by": rows.basin, "weights": rows.area.to_numpy()}.items():
        with pytest.raises(TypeError, match=f"`{argument}` is a name here: add the values to `target`"):
            inspect.unwrap(npax.average)(stations, rows, y="temp", **{argument: values}, model=MODEL)
    with pytest.raises(ValueError, match="`target` has several columns that are named 'basin'"):
        average(stations, pd.concat([rows, rows[["basin"]]], axis=1), by="basin")
    with pytest.raises(ValueError, match="`target` has no places"):
        average(stations, rows[:0])
    with pytest.raises(ValueError, match="no `finetune` with its `gaps`"):
        gaps = npax.training.RoundGaps()
        npax.average(stations, rows, y="temp", counts=npax.counts.Poisson(), gaps=gaps, model=untrained.hearing(3))


def test_numbers_that_are_packed_or_stand_for_what_is_missing_are_refused(stations, cells):
    packed = cells.assign(area=cells.area.assign_attrs(scale_factor=0.1, add_offset=100.0))
    with pytest.raises(ValueError, match="`target` holds 'area' packed"):
        average(stations, packed, weights="area")
    marked = cells.assign(zone=(cells.area > 3).astype(int).where(cells.area != 1, -999).assign_attrs(_FillValue=-999))
    with pytest.raises(ValueError, match="`target` holds -999, its attribute `_FillValue`, 1 times in 'zone'"):
        average(stations, marked.drop_vars("basin"), by="zone")


def test_a_meridian_that_is_there_twice_counts_once(rng):
    lon, lat = rng.uniform(0, 360, 40), rng.uniform(-60, 60, 40)
    table = pd.DataFrame({"lon": lon, "lat": lat, "temp": np.cos(np.deg2rad(lon))})
    open_, closed = ({"lon": np.arange(0.0, end, 30), "lat": np.arange(-60.0, 61, 30)} for end in (360, 361))
    westward = {**closed, "lon": closed["lon"][::-1]}
    found = [average(table, grid) for grid in (open_, closed, westward)]
    assert np.allclose(found[0].temp_mean, [each.temp_mean for each in found[1:]])
    assert not average(table, closed, by="lon").temp_mean.isnull().any()


def test_points_in_a_row_count_alike_wherever_they_begin_and_end(stations):
    at = np.array([1.0, 2, 3, 1]), np.array([41.0, 42, 43, 44])
    track = xr.Dataset(coords={name: ("point", values) for name, values in zip(("lon", "lat"), at, strict=True)})
    by_area = track.assign(area=np.cos(np.deg2rad(track.lat)))
    assert np.allclose(average(stations, track).temp_mean, average(stations, by_area, weights="area").temp_mean)


def test_many_regions_are_asked_for_in_batches(stations, monkeypatch, rng):
    rows = pd.DataFrame(
        {"lon": rng.uniform(-5, 5, 60), "lat": rng.uniform(40, 48, 60), "county": rng.integers(0, 9, 60)}
    )
    together = average(stations, rows, by="county")
    for name, size in {"TOGETHER": 4, "LARGEST": 50}.items():
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["npax.estimators.averages"], name, size)
            apart = average(stations, rows, by="county")
        assert np.allclose(apart.temp_mean, together.temp_mean)
        assert np.allclose(apart.temp_std, together.temp_std, rtol=0.1)  # by places that stand for the batch
    assert together.attrs["strategy"] == "exact"


def test_empty_texts_are_missing(stations, cells, tmp_path):
    """Files of grids have no other word for it."""
    cells.to_netcdf(tmp_path / "basins.nc")
    with xr.open_dataset(tmp_path / "basins.nc") as read:
        found = average(stations, read, by="basin")
    xr.testing.assert_allclose(found, average(stations, cells, by="basin"))


def test_what_is_no_option_is_told(stations, cells):
    with pytest.raises(TypeError, match="keyword argument 'weigths'; did you mean 'weights'"):
        average(stations, cells, weigths="area")
    with pytest.raises(TypeError, match=r"keyword argument 'include_noise'\.$"):  # an average has none
        average(stations, cells, include_noise=False)


def test_dates_of_time_zones_are_those_of_utc(rng):
    date = pd.date_range("2020-01-01", periods=50, tz="Asia/Tokyo")
    series = pd.DataFrame({"date": date, "level": rng.normal(size=50)})
    naive = series.assign(date=date.tz_convert(None))
    found = npax.interpolate(series, series[:3], "date", "level", model=MODEL)
    expected = npax.interpolate(naive, naive[:3], "date", "level", model=MODEL)
    assert np.allclose(found.level_mean, expected.level_mean) and found.date.dt.tz is not None
    with pytest.raises(ValueError, match="'date' has a time zone in one of `observations` and `target`"):
        npax.interpolate(series, naive, "date", "level", model=MODEL)

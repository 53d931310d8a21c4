import inspect
import subprocess
import sys
import warnings

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import untrained
import xarray as xr

import npax
from npax.estimators import Extrapolation, PlanarDegrees
from npax.estimators.dates import in_days
from npax.estimators.units import warn_of_other_units

LON, LAT = np.linspace(-5, 5, 7), np.linspace(40, 48, 5)


@pytest.fixture
def table(rng):
    lon, lat = rng.uniform(-5, 5, 40), rng.uniform(40, 48, 40)
    return pd.DataFrame({"lon": lon, "lat": lat, "temp": 15 - lat / 10, "salt": 35 + lon})


@pytest.fixture
def points(table):
    """The same observations as a Dataset along one dimension, with units."""
    data = xr.Dataset({name: ("obs", table[name].to_numpy()) for name in table}).set_coords(["lon", "lat"])
    data["temp"].attrs = {"units": "degC", "long_name": "temperature", "standard_name": "sea_water_temperature"}
    return data


@pytest.fixture
def truth(table, small):
    """The estimator's own answer on the grid `[lat lon]`."""
    reg = npax.NeuralProcessRegressor(small, coords="latlon").fit(table[["lon", "lat"]].to_numpy(), table["temp"])
    lon, lat = np.meshgrid(LON, LAT)
    mean, std = reg.predict(np.stack([lon.ravel(), lat.ravel()], axis=1), return_std=True)
    return mean.reshape(lon.shape), std.reshape(lon.shape)


def interpolate(observations, target, small, **options):
    return npax.interpolate(
        observations, target, ["lon", "lat"], **{"y": "temp", "coords": "latlon", **options}, model=small
    )


def test_table_to_table(table, small):
    target = pd.DataFrame({"name": ["a", "b"], "lat": [41.0, 42.0], "lon": [0.0, 1.0]}, index=[7, 9])
    out = interpolate(table, target, small)
    assert list(out.columns) == ["name", "lat", "lon", "temp_mean", "temp_std"] and list(out.index) == [7, 9]
    assert list(target.columns) == ["name", "lat", "lon"]
    reg = npax.NeuralProcessRegressor(small, coords="latlon").fit(table[["lon", "lat"]], table["temp"])
    mean, std = reg.predict(target[["lon", "lat"]], return_std=True)
    assert np.allclose(out["temp_mean"], mean) and np.allclose(out["temp_std"], std)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("as_coordinate", [False, True])
def test_the_projection_of_the_target_is_that_of_the_prediction(as_coordinate, stored, points, small, tmp_path):
    """As files of GDAL have it, or rioxarray."""
    target = xr.Dataset({"elev": (("lat", "lon"), np.zeros((LAT.size, LON.size)), {"grid_mapping": "crs"})})
    target = target.assign(crs=((), 0, {"grid_mapping_name": "latitude_longitude"})).assign_coords(lat=LAT, lon=LON)
    target = target.set_coords("crs") if as_coordinate else target
    out = interpolate(points, target, small, store=tmp_path / "map.zarr" if stored else None)
    assert out.crs.attrs["grid_mapping_name"] == "latitude_longitude"
    for name in ("temp_mean", "temp_std"):
        assert out[name].attrs["grid_mapping"] == "crs"
    assert (
        "elev" not in out and "grid_mapping" not in interpolate(points, {"lat": LAT, "lon": LON}, small).temp_mean.attrs
    )


def test_fine_tuned_as_the_estimator_is(table, tiny):
    options = {"tile_size": 8, "strategy": "tiled"}
    target = pd.DataFrame({"lat": [41.0, 42.0], "lon": [0.0, 1.0]})
    out = interpolate(table, target, tiny, finetune=8, **options)
    reg = npax.NeuralProcessRegressor(tiny, coords="latlon", **options)
    reg.fit(table[["lon", "lat"]], table["temp"], finetune=8)
    assert np.allclose(out["temp_mean"], reg.predict(target[["lon", "lat"]]))


@pytest.mark.parametrize("kind", ["mapping", "Dataset", "DataArray", "coordinates"])
def test_grids_keep_dimensions_coordinates_and_units(points, small, truth, kind):
    grid = xr.Dataset(coords={"lat": LAT, "lon": LON, "region": "east"}, attrs={"title": "a grid"})
    grid["lat"].attrs = {"units": "degrees_north"}
    target = {
        "mapping": {"lat": LAT, "lon": LON},
        "Dataset": grid,
        "DataArray": xr.DataArray(np.zeros((5, 7)), grid.drop_vars("region").coords, ("lat", "lon")),
        "coordinates": grid.coords,
    }[kind]
    out = interpolate(points, target, small)
    assert isinstance(out, xr.Dataset) and set(out) == {"temp_mean", "temp_std"}
    assert out["temp_mean"].dims == ("lat", "lon") and np.array_equal(out["lon"], LON)
    assert np.allclose(out["temp_mean"], truth[0]) and np.allclose(out["temp_std"], truth[1])
    assert out["temp_mean"].attrs["units"] == out["temp_std"].attrs["units"] == "degC"
    assert out["temp_mean"].attrs["standard_name"] == "sea_water_temperature"
    assert out["temp_std"].attrs["long_name"] == "standard deviation of temperature"
    if kind == "Dataset":
        assert out.attrs == {"title": "a grid"} and out["region"] == "east"
    if kind != "mapping":
        assert out["lat"].attrs == {"units": "degrees_north"}


@pytest.mark.parametrize("chunks", [None, {"lat": 2}])
def test_coordinates_of_other_dimensions_are_kept(points, small, truth, chunks, tmp_path):
    days = np.array(["2020-01-01", "2020-01-02"], "M8[ns]")
    grid = xr.Dataset(coords={"time": days, "lat": LAT, "lon": LON})
    out = interpolate(points, grid.chunk(chunks) if chunks else grid, small, store=tmp_path / "map.zarr")
    assert np.allclose(out["temp_mean"], truth[0]) and out["temp_mean"].dims == ("lat", "lon")
    assert np.array_equal(out["time"], days)


def test_the_name_of_an_array_is_the_name_to_predict(points, small):
    temp = points["temp"]
    with pytest.raises(ValueError, match="`observations` has no 'tmep'; it has 'temp'"):
        interpolate(temp, {"lat": LAT, "lon": LON}, small, y="tmep")
    out = interpolate(temp.rename(None), {"lat": LAT, "lon": LON}, small, y="t")
    assert set(out) == {"t_mean", "t_std"}


def test_order_of_dimensions_is_the_targets(points, small, truth):
    out = interpolate(points, {"lon": LON, "lat": LAT}, small)
    assert out["temp_mean"].dims == ("lon", "lat") and np.allclose(out["temp_mean"], truth[0].T)


def test_curvilinear_and_scattered_targets(points, small, truth):
    lon, lat = np.meshgrid(LON, LAT)
    curved = xr.Dataset(coords={"lon": (("j", "i"), lon), "lat": (("j", "i"), lat)})
    assert np.allclose(interpolate(points, curved, small)["temp_mean"], truth[0])
    scattered = xr.Dataset({"lon": ("station", lon[0]), "lat": ("station", lat[0])})
    out = interpolate(points, scattered, small)
    assert out["temp_mean"].dims == ("station",) and np.allclose(out["temp_mean"], truth[0][0]) and "lon" in out


def test_chunked_targets_stay_lazy(points, small, truth):
    chunked = xr.DataArray(np.zeros((5, 7)), {"lat": LAT, "lon": LON}, ("lat", "lon")).chunk({"lat": 2, "lon": 4})
    with dask.config.set(scheduler=_refuse):
        out = interpolate(points, chunked, small)
    assert out["temp_mean"].chunks == ((2, 2, 1), (4, 3))
    with dask.config.set(scheduler="threads"):
        computed = out.compute()
    assert np.allclose(computed["temp_mean"], truth[0], atol=1e-5)
    assert np.allclose(computed["temp_std"], truth[1], atol=1e-5)


@pytest.mark.filterwarnings("ignore::npax.estimators.Extrapolation")  # numbers of any kind will do
@pytest.mark.parametrize("strategy", ["exact", "tiled"])
def test_lazy_blocks_show_no_bars_of_their_own(points, small, strategy, capsys):
    axes = {"lat": np.linspace(0, 5, 30), "lon": np.linspace(0, 5, 80)}
    blocks = xr.DataArray(np.zeros((30, 80)), axes, ("lat", "lon")).chunk({"lat": 30, "lon": 40})  # more than a chunk
    out = interpolate(points, blocks, small, progress=True, strategy=strategy)
    with dask.config.set(scheduler="threads"):
        assert np.isfinite(out.compute()["temp_mean"]).all()
    assert "Predicting" not in capsys.readouterr().err
    interpolate(points, blocks.compute(), small, progress=True, strategy=strategy)
    told = capsys.readouterr()
    assert "Predicting" in told.err and not told.out


@pytest.mark.parametrize("chunks", [None, {"obs": 7}])
def test_numbers_that_stand_for_what_is_missing_are_refused(chunks, points, small):
    points["temp"] = points["temp"].where(points["temp"] < points["temp"].max(), -999.0)
    points["temp"].attrs["_FillValue"] = -999.0
    with pytest.raises(ValueError, match=r"`observations` holds -999, its attribute `_FillValue`, 1 times in 'temp'"):
        interpolate(points if chunks is None else points.chunk(chunks), {"lon": LON, "lat": LAT}, small)


def test_levels_of_an_index_are_columns_too(table, small):
    lazy = dd.from_pandas(table.set_index("lon"), npartitions=2)
    expected = interpolate(table, {"lon": LON, "lat": LAT}, small)
    for indexed in (table.set_index("lon"), table.set_index(["lon", "lat"]), lazy):
        found = interpolate(indexed, {"lon": LON, "lat": LAT}, small)
        np.testing.assert_allclose(found["temp_mean"], expected["temp_mean"], atol=1e-5)


def test_a_name_that_is_taken_is_refused(points, small):
    target = xr.Dataset(coords={"lat": LAT, "lon": LON, "temp_mean": ("lat", LAT)})
    with pytest.raises(ValueError, match="`target` has a coordinate 'temp_mean', as the result is to be named"):
        interpolate(points, target, small)


def test_warnings_name_the_users_line(table, small):
    table.loc[3, "temp"] = np.nan
    far = {"lon": [0.0, 100.0], "lat": [45.0, -20.0]}
    for target in (pd.DataFrame(far), far):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            interpolate(table, target, small)
        assert {w.category.__name__ for w in told} == {"DroppedRows", "Extrapolation"}
        assert all(w.filename == __file__ for w in told)


def _refuse(*args, **kwargs):
    raise AssertionError("computed before it was asked for")


def test_gridded_observations_with_gaps(small, truth):
    lon, lat = np.meshgrid(LON, LAT)
    values = np.where((lon + lat) % 3 < 1, np.nan, lon)
    field = xr.DataArray(values, {"lat": LAT, "lon": LON}, ("lat", "lon"), name="temp", attrs={"units": "K"})
    out = interpolate(field, {"lat": LAT, "lon": LON}, small, y=None)  # without a warning: gaps are no rows
    from_dataset = interpolate(field.to_dataset(), {"lat": LAT, "lon": LON}, small)
    assert np.isfinite(out["temp_mean"]).all() and out["temp_mean"].attrs["units"] == "K"
    xr.testing.assert_allclose(out, from_dataset)


def test_marks_of_pandas_are_missing_values(table, small):
    where = pd.DataFrame({"lon": [1.0], "lat": [45.0]})
    given = table.assign(temp=table.temp.astype(object).where(table.index != 3, pd.NA))
    with pytest.warns(npax.estimators.DroppedRows, match="1 of"):
        found = interpolate(given, where, small)
    assert found.equals(interpolate(table.drop(index=3), where, small))
    nowhere = table.assign(lon=table.lon.astype(object).where(table.index != 3, pd.NA))
    with pytest.raises(ValueError, match=r"NaN or infinity in 1 of .* rows \(columns 'lon'\)"):
        interpolate(nowhere, where, small)


def test_times_that_x_does_not_name_are_repeats_and_told(small):
    lat, lon = np.arange(4.0), np.arange(5.0)
    values = np.random.default_rng(0).normal(size=(3, 4, 5))
    field = xr.DataArray(values, {"time": [0, 1, 2], "lat": lat, "lon": lon}, name="sst")
    with pytest.warns(UserWarning, match=r"values along 'time', which `x` = .* does not name"):
        found = npax.interpolate(field, {"lat": [1.5], "lon": [2.5]}, model=small)
    pooled = field.to_dataframe().reset_index()
    again = npax.interpolate(pooled, {"lat": [1.5], "lon": [2.5]}, y="sst", model=small)
    np.testing.assert_allclose(found["sst_mean"], again["sst_mean"], rtol=1e-5)
    npax.interpolate(field[:1], {"lat": [1.5], "lon": [2.5]}, model=small)  # one time: nothing to tell


@pytest.mark.parametrize("coords", ["planar", "isotropic"])
def test_copies_of_observations_are_told(tiny, coords, rng):
    """And no measurements that were made again, nor a few values that come often."""
    x, values = rng.uniform(size=(30, 2)), rng.normal(size=30)
    reg, again = npax.NeuralProcessRegressor(tiny, coords=coords), np.r_[np.arange(30), np.arange(30)]
    with pytest.warns(UserWarning, match="30 of 60 observations are copies of others, place and value"):
        reg.fit(x[again], values[again])
    with pytest.warns(UserWarning, match="6 of 36 observations are copies"):
        reg.fit(x, values).update(x[:6], values[:6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reg.fit(x[again], np.r_[values, values[:20], rng.normal(size=10)])
        reg.fit(x[again], np.r_[values, rng.normal(size=30)])
        reg.fit(x[again], np.where(values > 1, values, 0.0)[again])
        reg.fit(np.r_[x, x[:4]], np.r_[values, values[:4]])


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_at_the_same_places_are_told(table, tiny, lazy):
    few = table[:8]

    def predict(*parts):
        rows = pd.concat([part.assign(temp=part.temp + i) for i, part in enumerate(parts)])
        interpolate(dd.from_pandas(rows, npartitions=2) if lazy else rows, few[:4], tiny)

    with pytest.warns(UserWarning, match=r"has 40 rows at 8 places.* such as time, name it in `x`"):
        predict(*[few] * 5)
    predict(*[few] * 4, few.assign(temp=np.nan).assign(lon=np.nan))  # fewer at each
    predict(*[few[:4]] * 9)  # hardly any places: repeats are most of what is known


def test_values_that_do_not_vary_are_told_once(table, tiny):
    with pytest.warns(UserWarning, match="^All values of `y` are 3: nothing says how large deviations are") as told:
        interpolate(table.assign(temp=3.0), {"lat": LAT, "lon": LON}, tiny, strategy="tiled", tile_size=8)
    assert len(told) == 1


def test_a_series_without_names_is_no_table(table, tiny):
    with pytest.raises(TypeError, match=r"`obs.* must be a pandas DataFrame.*`observations.reset_index.*rename_axis\("):
        npax.interpolate(table["temp"], table, y="temp", model=tiny)
    with pytest.raises(TypeError, match="`target` must be a pandas DataFrame"):
        npax.interpolate(table, table["temp"], y="temp", model=tiny)


def test_several_variables(points, table, small):
    out = interpolate(points, {"lat": LAT, "lon": LON}, small, y=["temp", "salt"])
    assert set(out) == {"temp_mean", "temp_std", "salt_mean", "salt_std"}
    alone = interpolate(points, {"lat": LAT, "lon": LON}, small, y="salt")
    assert np.allclose(out["salt_mean"], alone["salt_mean"], atol=1e-4)
    assert "salt_mean" in interpolate(table, table, small, y="salt")


@pytest.mark.filterwarnings("ignore::npax.estimators.DroppedRows")
def test_variables_of_different_gaps_are_each_predicted_from_where_they_are_known(points, table, small, tmp_path):
    gaps = {"temp": slice(0, 12), "salt": slice(20, 28)}
    for name, rows in gaps.items():
        table.loc[table.index[rows], name] = np.nan
        points[name] = points[name].where((np.arange(40) < rows.start) | (np.arange(40) >= rows.stop))
    grid = {"lat": LAT, "lon": LON}
    for observations, target in ((points, grid), (table, table[["lon", "lat"]])):
        both, *alone = (interpolate(observations, target, small, y=y) for y in (["temp", "salt"], "temp", "salt"))
        assert list(both)[-4:] == ["temp_mean", "temp_std", "salt_mean", "salt_std"]
        for name, each in zip(gaps, alone, strict=True):
            assert np.array_equal(both[f"{name}_mean"], each[f"{name}_mean"])
            assert np.array_equal(both[f"{name}_std"], each[f"{name}_std"])
        assert both.attrs.get("strategy") == alone[0].attrs.get("strategy")
    with pytest.warns(npax.estimators.DroppedRows, match="12 of 40 rows of 'temp' hold NaN or infinity"):
        interpolate(table, table, small, y=["temp", "salt"])
    with pytest.raises(ValueError, match="`observations` holds no value of 'none': leave it out"):
        interpolate(points.assign(none=np.nan * points["temp"]), grid, small, y=["temp", "none"])
    stacked = xr.Dataset(coords=grid).stack(place=["lon", "lat"])
    both = interpolate(points, stacked, small, y=["temp", "salt"])
    assert np.array_equal(both["salt_mean"], interpolate(points, stacked, small, y="salt")["salt_mean"])
    with pytest.raises(ValueError, match="`store` takes columns `y` of the same gaps"):
        interpolate(points, grid, small, y=["temp", "salt"], store=tmp_path / "map.zarr")
    two = untrained.cnp(3, 2)
    with pytest.warns(UserWarning, match="20 of 40 rows of `y` .* 20 known values .* with a model of one column"):
        interpolate(table, table, two, y=["temp", "salt"])


def test_units_that_are_not_those_of_the_target_are_told(points, table, small):
    elevation = np.linspace(0, 900, 40)
    points = points.assign_coords(elevation=("obs", elevation, {"units": "m"}))
    points["lon"].attrs = {"units": "degrees_east"}
    lon, lat = xr.DataArray(LON, dims="lon", attrs={"units": "degree_E"}), xr.DataArray(LAT, dims="lat")
    target = {"lat": lat, "lon": lon, "elevation": ("lat", np.linspace(0, 0.9, 5), {"units": "km"})}
    with pytest.warns(UserWarning, match="'elevation' is in m in `observations` and in km in `target`") as told:
        interpolate(points, xr.Dataset(coords=target), small, covariates="elevation")
    assert not any("'lon'" in str(each.message) for each in told)
    target["elevation"] = ("lat", np.linspace(0, 900, 5), {"units": "metres"})
    interpolate(points, xr.Dataset(coords=target), small, covariates="elevation")


SPELLINGS = {
    "degree": "degrees_north deg °",
    "m": "metres meter",
    "km": "kilometers",
    "K": "kelvin degK",
    "degree Celsius": "degC celsius °C",
    "s": "sec seconds",
    "min": "minutes",
    "h": "hours hr",
    "day": "d days",
    "year": "yr years",
    "Pa": "Pa",
    "hPa": "mbar millibar",
    "dbar": "decibar",
}


def test_each_unit_is_one_however_it_is_written_and_no_other():
    def column(unit):
        return xr.Dataset({"z": ("obs", [1.0], {"units": unit})})

    def told(one, other):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            warn_of_other_units(["z"], column(one), column(other))
        return bool(seen)

    written = [(unit, word) for unit, words in SPELLINGS.items() for word in words.split()]
    for unit, one in written:
        for other_unit, other in written:
            assert told(one, other) == (unit != other_unit), (one, other)
        assert not told(one, "furlong") and not told(one, "m s-1")


@pytest.mark.parametrize("argument", ["x", "y", "covariates"])
def test_values_in_the_place_of_names_are_told(argument, points, table, tiny):
    for given in (points["temp"], [points["temp"]], table["temp"], table["temp"].to_numpy()):
        options = {"x": ["lon", "lat"], "y": "temp", argument: given}
        with pytest.raises(TypeError, match=f"`{argument}` takes names here: add the values to `observations`"):
            inspect.unwrap(npax.interpolate)(table, table, **options, model=tiny)
    dates = pd.date_range("2020-01-01", periods=2)
    wide = table.set_axis(["lon", "lat", *dates], axis=1)
    assert len(inspect.unwrap(npax.interpolate)(wide, wide, ["lon", "lat"], wide.columns[2:], model=tiny)) == 40
    names = table.columns[:2], table.columns[:2].to_numpy(), pd.Series(["lon", "lat"])
    assert all("temp_mean" in inspect.unwrap(npax.interpolate)(table, table, x, "temp", model=tiny) for x in names)


@pytest.mark.parametrize(("x", "y", "z"), [("lon", "temp", "salt"), (0, 1, 2)])
def test_one_name_is_a_list_of_one(table, tiny, x, y, z):
    table = pd.DataFrame({x: table["lon"], y: table["temp"], z: table["salt"]})
    out, listed = (npax.interpolate(table, table, *names, model=tiny) for names in ((x, y), ([x], [y])))
    pd.testing.assert_frame_equal(out, listed)
    both = npax.interpolate(table, table, (x,), (y, z), model=tiny)
    assert np.array_equal(both[f"{y}_mean"], out[f"{y}_mean"]) and f"{z}_mean" in both


def test_refusals(table, points, small):
    with pytest.raises(ValueError, match="`observations` has no 'wind'; it has 'lon'"):
        interpolate(table, table, small, y="wind")
    with pytest.raises(ValueError, match="`target` has no 'lon'"):
        interpolate(table, table[["lat"]], small)
    with pytest.raises(ValueError, match="`target` has no 'lat'"):
        interpolate(table, {"lon": LON}, small)
    with pytest.raises(ValueError, match="longitude comes first"):
        npax.interpolate(table, table, ["lat", "lon"], "temp", coords="latlon", model=small)
    with pytest.raises(ValueError, match="`y` must name"):
        npax.interpolate(table, table, model=small)
    for empty in ({"x": []}, {"y": []}):
        with pytest.raises(ValueError, match=f"`{next(iter(empty))}` must name at least one column"):
            npax.interpolate(table, table, **{"x": ["lon", "lat"], "y": "temp", "model": small, **empty})
    for nothing in (LON, 5, None, ["lon", "lat"]):
        with pytest.raises(TypeError, match="`target` must be"):
            interpolate(table, nothing, small)
        with pytest.raises(TypeError, match="`target` must be"):
            npax.interpolate(table, nothing, ["lon", "lat"], "temp", model=small)
    with pytest.raises(TypeError, match="`observations` must be"):
        interpolate([1, 2], table, small)


def test_columns_of_several_levels_are_refused_with_what_makes_them_one(table, tiny):
    levels = table.set_axis(pd.MultiIndex.from_product([["sea"], table.columns]), axis=1)
    for y in (("sea", "temp"), [("sea", "temp")]):
        with pytest.raises(ValueError, match=r"of `observations` must .* got 2 levels, as in \('sea', 'lon'\)\. Join"):
            npax.interpolate(levels, table, [("sea", "lon"), ("sea", "lat")], y, model=tiny)
    with pytest.raises(ValueError, match="The columns of `target` must have one name each, got 2 levels"):
        interpolate(table, levels, tiny)
    levels.columns = ["_".join(map(str, names)) for names in levels.columns]
    npax.interpolate(levels, levels, ["sea_lon", "sea_lat"], "sea_temp", model=tiny)


def test_what_is_missing_or_text_is_refused_by_column(table, tiny):
    east = pd.Series(pd.array(np.arange(40), "Int64")).where(np.arange(40) != 7)
    for missing in (table.assign(lon=table["lon"].where(table["lon"] < 3)), table.assign(lon=east)):
        lost = missing["lon"].isna().sum()
        words = rf"contains NaN or infinity in {lost} of 40 rows \(columns 'lon'\)"
        with pytest.raises(ValueError, match="`observations` " + words):
            interpolate(missing, table, tiny)
        with pytest.raises(ValueError, match="`target` " + words):
            interpolate(table, missing, tiny)
    with pytest.raises(ValueError, match=r"column 'lat' of `target` is not of numbers: could not convert.*'here'"):
        interpolate(table, table.assign(lat="here"), tiny)
    with pytest.raises(ValueError, match="column 'temp' of `observations` is not of numbers"):
        interpolate(table.assign(temp="warm"), table, tiny)
    with pytest.raises(ValueError, match="coordinate 'lat' of `target` must hold numbers"):
        interpolate(table, {"lon": [0.0], "lat": ["north", "south"]}, tiny)
    with pytest.raises(ValueError, match="`observations` has several columns that are named 'lat'"):
        interpolate(pd.concat([table, table[["lat"]]], axis=1), table, tiny)


def test_lazy_observations_are_computed_and_lazy_tables_of_targets_refused(table, tiny):
    target = table[["lon", "lat"]]
    lazy = dd.from_pandas(table.assign(unused="text"), npartitions=3)
    pd.testing.assert_frame_equal(interpolate(lazy, target, tiny), interpolate(table, target, tiny))
    with pytest.raises(
        TypeError, match=r"`target` must be in memory.*got a dask DataFrame: pass `target\.compute\(\)`"
    ):
        interpolate(table, dd.from_pandas(target, npartitions=3), tiny)


def test_what_has_neither_a_place_nor_a_value_is_left_out(table, tiny):
    """As the edges of swaths, and the last lines of some files."""
    empty = pd.concat([table, pd.DataFrame({name: [np.nan] for name in table})])
    pd.testing.assert_frame_equal(interpolate(empty, table, tiny), interpolate(table, table, tiny))
    with pytest.raises(ValueError, match=r"contains NaN or infinity in 1 of 41 rows \(columns 'lon'\)"):
        interpolate(empty.fillna({"lat": 1.0, "temp": 1.0}), table, tiny)


HOURS = np.timedelta64(6, "h")


def test_parts_of_seconds_are_parts_of_days_from_a_start_between_seconds():
    times = np.array(["2020-01-01T00:00:00.75", "2020-01-02T00:00:01.25", "1969-12-31T23:59:59.5"], "M8[ms]")
    assert np.allclose(in_days(times, times[0]), (times - times[0]) / np.timedelta64(1, "D"), rtol=1e-12, atol=1e-9)


def test_dates_are_days_where_units_do_not_matter(table, small, tmp_path):
    """In tables, grids, lazily and in a store; and durations likewise."""
    days = pd.date_range("2020-01-01", periods=40)
    dated, numbered = table.assign(day=days), table.assign(day=np.arange(40.0))
    axis = days[:7] + HOURS
    for observations, one in ((dated, axis), (dated.assign(day=dated["day"] - days[0]), axis - days[0])):
        target = {"lon": LON, "day": one}
        found = npax.interpolate(observations, target, ["lon", "day"], "temp", model=small)
        expected = npax.interpolate(
            numbered, {**target, "day": np.arange(7) + 0.25}, ["lon", "day"], "temp", model=small
        )
        assert np.allclose(found.temp_mean, expected.temp_mean, atol=1e-5)
        assert np.array_equal(found.day, np.asarray(one))
        lazy = xr.Dataset({"lon": ("i", table["lon"]), "day": ("i", observations["day"])}).chunk()
        lazy = npax.interpolate(observations, lazy, ["lon", "day"], "temp", model=small).temp_mean
        rows = npax.interpolate(observations, observations, ["lon", "day"], "temp", model=small)
        assert (
            lazy.chunks and np.allclose(lazy, rows.temp_mean, atol=1e-5) and (rows["day"] == observations["day"]).all()
        )
        assert np.allclose(
            npax.interpolate(observations.to_xarray(), target, ["lon", "day"], "temp", model=small).temp_mean,
            found.temp_mean,
        )
    options = {"x": ["lon", "day"], "y": "temp", "model": small, "store": tmp_path / "map.zarr"}
    stored = npax.interpolate(dated, {"lon": LON, "day": axis}, **options)
    assert np.array_equal(stored.day, axis) and np.allclose(stored.temp_mean, expected.temp_mean, atol=1e-5)
    with pytest.warns(UserWarning, match="holds all of this prediction"):
        assert npax.interpolate(dated, {"lon": LON, "day": axis}, **options).equals(stored)
    close = table.assign(day=days[0] + np.arange(40) * np.timedelta64(1, "ns"))
    tight = npax.interpolate(close, close, ["lon", "day"], "temp", model=small)
    wide = npax.interpolate(numbered, numbered, ["lon", "day"], "temp", model=small)
    assert np.allclose(tight.temp_mean, wide.temp_mean, atol=1e-5)
    gap = dated.copy()
    gap.loc[3, "day"] = pd.NaT
    with pytest.raises(ValueError, match="'day'"):
        npax.interpolate(gap, dated, ["lon", "day"], "temp", model=small)


@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_dates_of_other_calendars_are_days_too(calendar, small):
    dates = xr.date_range("2001-01-01", periods=30, freq="5D", calendar=calendar, use_cftime=True)
    series = xr.DataArray(np.sin(np.arange(30.0)), {"time": dates}, "time", "level")
    at = xr.Dataset(coords={"time": dates[3:7]})
    found = npax.interpolate(series, at, "time", model=small)
    numbers = series.assign_coords(time=5.0 * np.arange(30))
    expected = npax.interpolate(numbers, {"time": 5.0 * np.arange(3, 7)}, "time", model=small)
    assert np.allclose(found.level_mean, expected.level_mean) and (found.time == at.time).all()
    table = series.to_dataframe().reset_index()
    rows = npax.interpolate(table, table[3:7], "time", "level", model=small)
    assert np.allclose(rows.level_mean, expected.level_mean)
    with pytest.raises(ValueError, match=f"'time' is dates of the calendar '{calendar}' in .*convert_calendar"):
        npax.interpolate(series, {"time": pd.date_range("2001-01-01", periods=3)}, "time", model=small)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_of_arrow_are_dates(zone, small):
    dates = pd.date_range("2001-01-01", periods=30, freq="5D", tz=zone)
    table = pd.DataFrame({"time": dates, "level": np.sin(np.arange(30.0))})
    arrow = table.astype({"time": pd.ArrowDtype(pa.timestamp("ns", tz=zone))})
    expected = npax.interpolate(table, table[3:7], "time", "level", model=small)
    for observed, wanted in ((arrow, arrow), (table, arrow), (arrow, table)):
        found = npax.interpolate(observed, wanted[3:7], "time", "level", model=small)
        assert np.allclose(found.level_mean, expected.level_mean)
    lengths = table.assign(time=table.time - table.time[0])
    arrow = lengths.astype({"time": pd.ArrowDtype(pa.duration("ns"))})
    found = npax.interpolate(arrow, arrow[3:7], "time", "level", model=small)
    assert np.allclose(found.level_mean, expected.level_mean)


@pytest.mark.parametrize("coords", ["latlon", "planar"])
def test_stacked_targets_have_predictions(coords, points, small):
    points["lat"].attrs = {"units": "degrees_north"}
    grid = xr.Dataset(coords={"lat": LAT, "lon": LON})
    stacked = interpolate(points, grid.stack(place=("lat", "lon")), small, coords=coords)
    expected = interpolate(points, grid, small, coords=coords).temp_mean.to_numpy().ravel()
    assert np.allclose(stacked.temp_mean, expected)


def test_dates_of_arrow_may_be_of_any_century(small):
    dates = pd.Series(np.arange("1500-01-01", "1500-01-31", dtype="M8[D]").astype("M8[us]"))
    table = pd.DataFrame({"time": dates, "level": np.sin(np.arange(30.0))})
    arrow = table.astype({"time": pd.ArrowDtype(pa.timestamp("us"))})
    found, expected = (npax.interpolate(each, each[3:7], "time", "level", model=small) for each in (arrow, table))
    assert np.allclose(found.level_mean, expected.level_mean)


@pytest.mark.parametrize("kind", ["table", "grid", "lazy"])
def test_dates_in_nanoseconds_may_be_centuries_apart(kind, small):
    """Their differences, and their instants in the unit of the observations, are beyond what 64 bits hold."""
    dates = pd.date_range("1700", "2010", freq="5YS").to_numpy()
    table = pd.DataFrame({"time": dates.astype("M8[s]"), "level": np.sin(np.arange(len(dates)) / 5)})
    fine = table.astype({"time": "M8[ns]"})
    ancient = pd.DataFrame({"time": np.array(["-1978-08-29", "2020-01-01"], "M8[s]"), "level": [0.0, 1.0]})
    asked = lambda each: each[::20] if kind == "table" else each[["time"]].set_index("time").to_xarray()  # noqa: E731
    if kind == "lazy":
        asked = lambda each: each[["time"]].set_index("time").to_xarray().chunk(time=20)  # noqa: E731
    expected = npax.interpolate(table, asked(table), "time", "level", model=small)
    for observed, wanted in ((fine, fine), (table, fine), (fine, table)):
        found = npax.interpolate(observed, asked(wanted), "time", "level", model=small)
        assert np.allclose(found.level_mean, expected.level_mean)
    assert np.isfinite(npax.interpolate(ancient, asked(fine), "time", "level", model=small).level_mean).all()


def test_dates_of_arrow_may_be_axes(small):
    table = pd.DataFrame({"time": pd.date_range("2001-01-01", periods=30, freq="5D"), "level": np.sin(np.arange(30.0))})
    expected = npax.interpolate(table, {"time": table.time[3:7]}, "time", "level", model=small)
    for unit in ("ns", "us"):
        arrow = table.astype({"time": pd.ArrowDtype(pa.timestamp(unit))})
        found = npax.interpolate(table, {"time": arrow.time[3:7]}, "time", "level", model=small)
        assert np.allclose(found.level_mean, expected.level_mean)


def test_dates_of_two_calendars_are_refused(small):
    dates = [
        date
        for calendar in ("noleap", "360_day")
        for date in xr.date_range("2000-01-01", periods=5, calendar=calendar, use_cftime=True)
    ]
    table = pd.DataFrame({"time": dates, "level": np.arange(10.0)})
    with pytest.raises(ValueError, match="Dates of one coordinate must be of one calendar, got '360_day' and 'noleap'"):
        npax.interpolate(table, table[:2], "time", "level", model=small)


def test_trees_are_no_datasets(table, points, small):
    tree = xr.DataTree.from_dict({"/": xr.Dataset(coords={"lat": LAT, "lon": LON})})
    with pytest.raises(TypeError, match=r"got .*DataTree. Pass the dataset of a node, `tree\[path\].to_dataset\(\)`"):
        interpolate(tree, points, small)
    with pytest.raises(TypeError, match="got DataTree"):
        interpolate(table, tree, small)
    with pytest.raises(TypeError, match=r"got DataTree. .* a tree by `tree.to_dataset\(\)`"):
        npax.fill_gaps(tree)


def test_coordinates_say_what_they_are(table, points, small):
    """Those of the sphere, or as the observations have it; what a target says itself stays."""
    target = xr.Dataset(coords={"lat": LAT, "lon": LON})
    found = interpolate(table, target, small)
    assert found.lon.attrs == {"units": "degrees_east", "standard_name": "longitude"}
    assert found.lat.attrs == {"units": "degrees_north", "standard_name": "latitude"}
    assert not target.lon.attrs and not interpolate(table, target, small, coords="isotropic").lon.attrs
    points["lat"].attrs = {"units": "degree_north", "long_name": "north", "_FillValue": -1e9}
    assert interpolate(points, target, small).lat.attrs == {
        "units": "degree_north",
        "standard_name": "latitude",
        "long_name": "north",
    }
    target["lon"].attrs = {"units": "degE"}
    assert interpolate(table, target, small).lon.attrs == {"units": "degE"}


def test_beside_longitudes_and_latitudes_time_has_a_scale_of_its_own(table, small, tmp_path):
    """Dates or numbers, in tables, lazily and in a store; but dates are no longitudes."""
    days = pd.date_range("2020-01-01", periods=40)
    dated, numbered = table.assign(day=days), table.assign(day=np.arange(40.0))
    grid = {"day": days[:3] + HOURS, "lat": LAT, "lon": LON}
    x, options = ["lon", "lat", "day"], {"y": "temp", "model": small, "coords": "latlon"}
    found = npax.interpolate(dated, grid, x, **options).temp_mean
    assert found.dims == ("day", "lat", "lon")
    expected = npax.interpolate(numbered, {**grid, "day": np.arange(3) + 0.25}, x, **options).temp_mean
    assert np.allclose(found, expected, atol=1e-5)
    target = xr.Dataset({"z": (tuple(grid), np.zeros(found.shape))}, coords=grid).chunk({"lat": 2})
    lazy = npax.interpolate(dated, target, x, **options).temp_mean
    assert lazy.chunks and np.allclose(lazy, found, atol=1e-5)
    stored = npax.interpolate(dated, grid, x, store=tmp_path / "map.zarr", **options)
    assert np.allclose(stored.temp_mean, found, atol=1e-5) and np.array_equal(stored.day, grid["day"])
    with pytest.raises(ValueError, match="holds dates"):
        npax.interpolate(dated, dated, ["day", "lat", "lon"][:2], **options)
    for order in (["lat", "lon", "day"], ["day", "lon", "lat"]):
        with pytest.raises(ValueError, match="longitude comes first, then latitude, then depth or time"):
            npax.interpolate(numbered, numbered, order, **options)


def test_dates_are_refused_by_column_where_a_unit_is_needed(table, tiny):
    days = pd.date_range("2020-01-01", periods=40)
    dated, numbered = table.assign(day=days), table.assign(day=np.arange(40.0))
    of_no_leap_years = table.assign(day=xr.date_range("2020-01-01", periods=40, calendar="noleap", use_cftime=True))
    told = [table.assign(day=days.date)]
    cases = [(dated, dated, {"coords": "isotropic"}), (dated, dated, {"normalize": False})]
    cases += [(dated.to_xarray(), dated, {"coords": "isotropic"})]
    cases += [(of_no_leap_years, of_no_leap_years, {"coords": "isotropic"})]
    cases += [(other, other, {}) for other in told] + [(numbered, told[0], {})]
    cases += [(numbered, table.assign(day=days.tz_localize("UTC")), {})]
    for observations, target, options in cases:
        with pytest.raises(ValueError, match=r"holds dates.*columns 'day'.*np.timedelta64\(1, \"D\"\)"):
            npax.interpolate(observations, target, ["lon", "day"], "temp", model=tiny, **options)
    for target in (
        {"lon": LON, "day": days},
        xr.Dataset({"lon": ("i", table["lon"]), "day": ("i", days)}).chunk(),
    ):
        with pytest.raises(ValueError, match=r"`target` holds dates.*columns 'day'.*np.timedelta64\(1, \"D\"\)"):
            npax.interpolate(numbered, target, ["lon", "day"], "temp", model=tiny, coords="isotropic")
    with pytest.raises(ValueError, match="`observations` holds dates"):
        npax.interpolate(dated, dated, ["lon", "lat"], "day", model=tiny)
    remedy = dated.assign(day=(dated["day"] - np.datetime64("2020-01-01")) / np.timedelta64(1, "D"))
    assert np.array_equal(remedy["day"], numbered["day"])


def test_dates_of_other_kinds_have_one_remedy_that_comes_first(table, tiny):
    days = pd.date_range("2020-01-01", periods=40)
    told = "holds dates or durations .columns 'day'. where numbers are needed. "
    for day, words in (
        (
            days.to_period("D"),
            told + "These are periods: `column.dt.to_timestamp... makes dates of them. `npax.interpol",
        ),
        (days.date, told + "These are of `datetime.date`: `pandas.to_datetime.column.` makes dates"),
        (
            days.strftime("%Y-%m-%d"),
            "'day' is dates as text in `obs.* and `target`: read both by `pandas.to_datetime.c",
        ),
        (days.strftime("%d.%m.%Y"), "read both by `pandas.to_datetime.column, dayfirst=True.`"),
    ):
        other = table.assign(day=day)
        for target in (other, {"lon": LON, "day": np.asarray(day)}):
            with pytest.raises(ValueError, match=words):
                npax.interpolate(other, target, ["lon", "day"], "temp", model=tiny)
    text = table.assign(day=days.astype(str))
    for target in (text, {"lon": LON, "day": days.astype(str)}):
        with pytest.raises(
            ValueError, match=r"as text: read them by `pandas|must hold numbers, got .* Read dates by `pa"
        ):
            npax.interpolate(text, target, ["lon", "day"], "temp", model=tiny, coords="isotropic")


def test_numbers_that_look_like_dates_are_noted(table, tiny, recwarn):
    days = pd.date_range("2020-01-01", periods=40)
    written = table.assign(day=days.strftime("%Y%m%d").astype(int))
    with pytest.warns(UserWarning, match="'day' holds numbers such as 20200101, which look like dates"):
        npax.interpolate(written, written, ["lon", "day"], "temp", model=tiny)
    months = 100 * (2018 + np.arange(40) // 12) + 1 + np.arange(40) % 12
    with pytest.warns(UserWarning, match=r"'day' holds numbers such as 201801, .* each year.*format=\"%Y%m\"\)"):
        other = table.assign(day=months)
        npax.interpolate(other, other, ["lon", "day"], "temp", model=tiny)
    assert len(recwarn.list) == 0
    metres = [200_000 + 12.5 * np.arange(40), 200_001 + np.arange(40), 201_801 + np.arange(40) % 12, months % 500]
    fractions = [months + 0.5, np.where(np.arange(40) < 20, 201_801, 202_001)]
    near = [20200101 + np.arange(40), 1e7 + np.arange(40), np.full(40, 20200101), written["day"] + 0.5]
    for day in (days, *near, *metres, *fractions):
        other = table.assign(day=day)
        npax.interpolate(other, other, ["lon", "day"], "temp", model=tiny)
    assert not recwarn.list


def test_dates_beside_numbers_are_refused(table, tiny):
    days = pd.date_range("2020-01-01", periods=40)
    dated, numbered, passed = (table.assign(day=day) for day in (days, np.arange(40), days - days[0]))
    integers, text = numbered.astype({"day": "Int64"}), table.assign(day=days.astype(str))
    for observations, target, words in (
        (dated, numbered, "'day' is dates in `observations` and numbers in `target`: give both alike"),
        (dated, integers, "'day' is dates in `observations` and numbers in `target`"),
        (text, dated, "'day' is text in `observations` and dates in `target`: read .* by `pandas.to_datetime`"),
        (
            text,
            {"day": [1.0]},
            "'day' is text in `observations` and numbers in `target`: read .* by `pandas.to_numeric`",
        ),
        (numbered, {"lon": LON, "day": days}, "'day' is numbers in `observations` and dates in `target`"),
        (passed, dated.to_xarray().chunk(), "'day' is durations in `observations` and dates in `target`"),
    ):
        with pytest.raises(ValueError, match=words):
            npax.interpolate(observations, target, ["lon", "day"], "temp", model=tiny)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({2: "<0.1", 9: "-"}, "2 of 40 entries of 'temp' are text, the first '<0.1' in row 12. Of what is below a lim"),
        ({2: "<0.1", 9: "-"}, 'half of the limit.*NaN. `pandas.to_numeric.column, errors="coerce".` makes'),
        ({5: " n.d."}, "1 of 40 entries of 'temp' are text, the first ' n.d.' in row 15. `pandas.to_numeric"),
        ({7: "0,82", 8: None}, "the first '0,82' in row 17. Decimal commas are read by .*decimal=.,.*=.,.`.$"),
        (dict.fromkeys(range(40), "-0,82"), "40 of 40 entries of 'temp'.*decimal=.,."),
        (dict.fromkeys(range(30), "warm"), "not of numbers: .*`pandas.get_dummies`"),
    ],
)
@pytest.mark.parametrize("all_text", [False, True])
def test_text_among_numbers_has_remedies_of_its_own(texts, words, all_text, table, tiny):
    column = table["temp"].astype(str if all_text else object).astype(object)
    column.iloc[[*texts]] = [*texts.values()]
    written = table.assign(temp=column).set_index(np.arange(10, 50))
    with pytest.raises(ValueError, match=words):
        interpolate(written, table, tiny)
    with pytest.raises(ValueError, match=words.replace("'temp'", "'lat'").replace("of `obs", "of `tar")):
        interpolate(table, written.assign(lat=written["temp"]), tiny)


@pytest.mark.parametrize(
    ("lon", "lat", "words"),
    [
        ((-10, 30), (35, 70), "58% shorter at 70 degrees of latitude than at 35"),
        ((0, 10), (-60, 5), "50% shorter at 60 degrees of latitude than at 0"),
        ((-180, 180), (-10, 10), "span 360 of them"),
        ((20, 379), (-10, 10), "span 359 of them"),
        ((-359, -2), (-10, 10), "span 357 of them"),
        ((5, 15), (47, 55), None),  # a degree of longitude shrinks by 16 %
        ((100, 140), (-11, 20), None),
        ((0, 1000), (0, 80), None),  # no degrees
        ((-10, 359), (50, 58), "in two ranges"),
        ((-200, 170), (0, 20), None),  # a track that goes round
        ((0, 10), (0, 100), None),
    ],
)
@pytest.mark.parametrize("names", [("lon", "lat"), ("Longitude", "LATITUDE"), ("x", "lat")])
def test_degrees_in_a_plane_are_noticed_where_it_matters(tiny, lon, lat, words, names):
    table = pd.DataFrame({names[0]: lon, names[1]: lat, "temp": [1.0, 2.0]})

    def warned(coords, x):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            npax.interpolate(table, table, x, "temp", coords=coords, model=tiny)
        return [str(w.message) for w in seen if w.category is PlanarDegrees]

    expected = bool(words and names[0] != "x")
    for x in (names, names[::-1]):
        found = warned("planar", x)
        assert len(found) == expected
        assert not found or (words in found[0] and '`coords="latlon"`' in found[0] and repr(names[0]) in found[0])
    assert not warned("planar", names[0]) and (lat[1] > 90 or not warned("latlon", names))


@pytest.mark.parametrize("kind", ["table", "grid"])
def test_longitudes_of_another_range_are_told(tiny, kind):
    table = pd.DataFrame({"lon": [-10.0, 2.0, 1.0, -8.0], "lat": [50.0, 51.0, 50.0, 51.0], "temp": np.arange(4.0)})
    lon, lat = np.arange(350.0, 363.0), np.array([50.0, 51.0])
    target = {"lat": lat, "lon": lon} if kind == "grid" else pd.DataFrame({"lon": lon, "lat": 50.0})
    with pytest.warns(Extrapolation, match=r"'lon' is of another range .*: moved by -360 degrees.*coords=\"latlon\""):
        interpolate(table, target, tiny, coords="planar")
    with pytest.warns(Extrapolation, match=r"of these targets\.$"):
        interpolate(table, {"lat": lat, "lon": lon - 300}, tiny, coords="planar")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interpolate(table, target, tiny, coords="latlon")


def test_a_table_without_rows_has_none_whatever_its_columns_are(tiny):
    days = pd.DataFrame({"time": pd.date_range("2024", periods=5), "level": np.arange(5.0)})
    for table in (days, days.assign(time=np.arange(5.0))):
        with pytest.raises(ValueError, match="`observations` holds none: there is no row"):
            npax.interpolate(table.iloc[:0], table[["time"]], x="time", y="level", model=tiny)


@pytest.mark.parametrize("coords", ["planar", "latlon"])
@pytest.mark.parametrize("kind", ["table", "grid", "chunks", "store", "curves", "large"])
def test_targets_outside_of_the_observations_are_counted(tiny, coords, kind, tmp_path):
    table = pd.DataFrame({"lon": [0.0, 2.0, 1.0, 0.0], "lat": [50.0, 51.0, 50.0, 51.0], "temp": np.arange(4.0)})
    n = 100 if kind == "large" else 10
    lon, lat = np.linspace(0, 2, n), np.linspace(49.9, 51.1, n)
    across, down = np.meshgrid(lon + 10 * (lon > 1), lat)  # half of them
    target = {
        "table": pd.DataFrame({"lon": across.ravel(), "lat": down.ravel()}),
        "chunks": xr.DataArray(across, {"lat": lat, "lon": across[0]}, ("lat", "lon")).chunk({"lat": 5}),
        "curves": {"lon": (("i", "j"), across), "lat": (("i", "j"), down)},
    }.get(kind, {"lat": lat, "lon": across[0]})
    store = {"store": tmp_path / "map.zarr"} if kind == "store" else {}
    words = "About 5,000 of 10,000 targets" if kind == "large" else "^50 of 100 targets"
    with pytest.warns(Extrapolation, match=words):
        interpolate(table, target, tiny, coords=coords, **store)
    if kind in ("grid", "curves"):
        lazy = xr.Dataset({"lon": (("i", "j"), across), "lat": (("i", "j"), down)}).chunk()
        interpolate(table, lazy, tiny, coords=coords)  # the coordinates are not known yet
        interpolate(table, {"lat": lat, "lon": lon}, tiny, coords=coords)


def test_importing_npax_imports_no_extra():
    code = "import sys, npax; print([m for m in ('pandas', 'xarray', 'dask', 'matplotlib') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
    assert npax.interpolate.__module__ == "npax.estimators.geo"


def test_estimators_are_there_and_listed_before_they_are_imported():
    code = "import npax; print({'NeuralProcessRegressor', 'estimators'} <= {*dir(npax)}, npax.estimators.Extrapolation)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split()[0] == "True" and "Extrapolation" in out.stdout
    with pytest.raises(AttributeError, match="Estimator"):
        npax.Estimator  # noqa: B018


@pytest.mark.parametrize("options", [{}, {"store": True}, {"chunks": True}])
def test_an_empty_axis_gives_an_empty_map(points, small, options, tmp_path):
    grid = xr.Dataset(coords={"lat": LAT[:0], "lon": LON})
    if "chunks" in options:
        grid["mask"] = (("lat", "lon"), np.zeros((0, 7)))
        grid = grid.chunk()
    given = {"store": tmp_path / "empty.zarr"} if "store" in options else {}
    out = interpolate(points, grid, small, **given)
    assert out["temp_mean"].shape == out["temp_std"].shape == (0, 7)


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
@pytest.mark.parametrize("chunks", [{}, {"row": 2}])
def test_places_without_coordinates_have_no_prediction(table, small, strategy, chunks):
    """A swath has pixels whose place is not known."""
    lon, lat = np.meshgrid(LON, LAT)
    whole = xr.Dataset({"lon": (("row", "column"), lon), "lat": (("row", "column"), lat)})
    lon[0, 1] = lat[3, 2] = np.nan
    swath = xr.Dataset({"lon": (("row", "column"), lon), "lat": (("row", "column"), lat)})
    found, full = (interpolate(table, t, small, strategy=strategy, tile_size=16) for t in (swath.chunk(chunks), whole))
    missing = np.isnan(lon) | np.isnan(lat)
    for name in ("temp_mean", "temp_std"):
        assert np.array_equal(np.isnan(found[name]), missing)
        assert np.allclose(found[name].to_numpy()[~missing], full[name].to_numpy()[~missing], atol=1e-4)


@pytest.mark.parametrize(
    "x, y", [(["lon", "lat"], "lon"), (["lon", "lon"], "temp"), (["lon", "lat"], ["temp", "temp"])]
)
def test_columns_are_named_once(x, y, table, small):
    with pytest.raises(ValueError, match="must name every column once"):
        npax.interpolate(table, {"lon": LON, "lat": LAT}, x, y, model=small)


def test_a_table_of_another_library_is_named(small):
    with pytest.raises(TypeError, match=r"got test_geo\.Frame\. Pass `observations.to_pandas\(\)`"):
        npax.interpolate(Frame({}), {"lon": LON, "lat": LAT}, ["lon", "lat"], "temp", model=small)


def test_a_series_is_a_table_of_its_index(table, tiny):
    date = pd.date_range("2020-01-01", periods=40, name="date")
    series, target = table["temp"].set_axis(date), date[5:9] + pd.Timedelta("6h")
    frame = series.reset_index()
    expected = npax.interpolate(frame, pd.DataFrame({"date": target}), "date", "temp", model=tiny)
    for given in (target, target.rename(None)):
        found = npax.interpolate(series, given, "date", model=tiny)
        assert found.index.equals(target) and found.index.name == "date" and [*found] == ["temp_mean", "temp_std"]
        assert np.array_equal(found.temp_mean, expected.temp_mean)
    found = npax.interpolate(series.rename(None), pd.Series(target), ["date"], "temp", model=tiny)
    assert found.equals(expected)
    assert "y_mean" in npax.interpolate(series.rename(None), target, "date", model=tiny)
    places = table.set_index(["lon", "lat"])["temp"]
    assert interpolate(places, table, tiny, y=None).equals(interpolate(table, table, tiny))


def test_what_is_no_table_has_a_remedy(table, tiny):
    with pytest.raises(ValueError, match=r"must be named 'lat'.*got 'lon'. Pass `target.rename\('lat'\)`.*{'lat': val"):
        npax.interpolate(table, table["lon"], "lat", "temp", model=tiny)
    with pytest.raises(TypeError, match=r"got ndarray. Pass `{'lat': values}`"):
        npax.interpolate(table, table["lat"].to_numpy(), "lat", "temp", model=tiny)
    with pytest.raises(TypeError, match=r"got Table. Pass `target.to_pandas\(\)`"):
        interpolate(table, pa.Table.from_pandas(table), tiny)
    with pytest.raises(TypeError, match=r"got pandas.*Series. Pass `observations.reset_index\(\)`"):
        npax.average(table["temp"], table, ["lon", "lat"], "temp", model=tiny)
    with pytest.raises(TypeError, match=r"got pandas.*Series. Pass `observations.reset_index\(\)`"):
        npax.interpolate(table["temp"], table, ["lon", "lat"], "temp", model=tiny)


class Frame:
    """A table that is none of pandas, such as polars has: with names, and numbers where there were dates."""

    def __init__(self, columns):
        self.table = columns
        self.columns = [*columns]

    def __getitem__(self, name):
        return self.table[name]

    def __len__(self):
        return len(next(iter(self.table.values())))

    @property
    def shape(self):
        return len(self), len(self.columns)

    def __array__(self, dtype=None, copy=None):
        columns = [
            np.asarray(a).astype(object if np.asarray(a).dtype.kind in "OU" else float) for a in self.table.values()
        ]
        return np.stack(columns, axis=1).astype(dtype)

    def to_pandas(self):
        return pd.DataFrame(self.table)


def test_dates_and_text_of_tables_of_other_libraries_are_refused(small, rng):
    numbers, y = {"lon": rng.normal(size=5), "lat": rng.normal(size=5)}, rng.normal(size=5)
    reg = npax.NeuralProcessRegressor(small)
    reg.fit(Frame(numbers), y)
    with pytest.raises(ValueError, match=r"holds dates or durations \(columns 'time'\)"):
        reg.fit(Frame({**numbers, "time": np.arange("2020-01-01", "2020-01-06", dtype="M8[D]")}), y)
    with pytest.raises(ValueError, match="column 'kind' of `X` must be numbers"):
        reg.fit(Frame({**numbers, "kind": list("abcde")}), y)


def test_the_estimator_reads_the_names_of_columns(table, small):
    """As `interpolate` does: the order on the sphere, and degrees on a plane."""
    with pytest.raises(ValueError, match=r"longitude comes first, then latitude.*; got .*lat.*lon"):
        npax.NeuralProcessRegressor(small, coords="latlon").fit(table[["lat", "lon"]], table["temp"])
    wide = table.assign(lon=table["lon"] * 30)
    with pytest.warns(PlanarDegrees, match="'lon' and 'lat' look like degrees"):
        npax.NeuralProcessRegressor(small).fit(wide[["lon", "lat"]], table["temp"])


def test_a_setting_changed_after_fit_counts_at_the_next(table, small):
    X = table[["lon", "lat"]].to_numpy()
    reg = npax.NeuralProcessRegressor(small).fit(X, table["temp"])
    before = reg.predict(X[:3])
    assert np.array_equal(reg.set_params(coords="latlon").predict(X[:3]), before)
    assert not np.array_equal(reg.fit(X, table["temp"]).predict(X[:3]), before)


def test_levels_of_an_index_are_columns(table, small):
    """A table that came from xarray has its coordinates there."""
    plain = interpolate(table, table, small)
    indexed = table.set_index(["lon", "lat"])
    found = interpolate(indexed, indexed, small)
    assert found.index.equals(indexed.index)
    assert np.array_equal(found["temp_mean"], plain["temp_mean"])


def test_coordinates_that_nobody_asks_for_are_not_computed(small, rng):
    def expensive(block):
        asked.append(block.shape)
        return block

    asked = []
    values = xr.DataArray(rng.standard_normal((4, 5)), {"lat": np.arange(4.0), "lon": np.arange(5.0)}, ("lat", "lon"))
    depth = dask.array.zeros((4, 5), chunks=2).map_blocks(expensive, meta=np.zeros((0, 0)))
    with_depth = values.assign_coords(depth=(("lat", "lon"), depth)).rename("t")
    target = {"lat": [1.5], "lon": [2.5]}
    found = npax.interpolate(with_depth, target, model=small)
    assert not asked and found.equals(npax.interpolate(values.rename("t"), target, model=small))
    stacked = with_depth.stack(place=("lat", "lon"))
    assert np.allclose(npax.interpolate(stacked, target, model=small).t_mean, found.t_mean) and not asked
    npax.interpolate(with_depth, {**target, "depth": [0.0]}, x=["lon", "lat", "depth"], model=small)
    assert asked, "the counter counts"


def test_values_that_do_not_vary_along_a_coordinate_are_refused(small):
    axes = {"lat": np.arange(10.0), "lon": np.arange(5.0)}
    mean = xr.Dataset({"zonal": ("lat", np.arange(10.0))}, axes)
    with pytest.raises(ValueError, match="'zonal' of `observations` does not vary along 'lon', as 'lon' does"):
        npax.interpolate(mean, {"lat": [1.0], "lon": [2.0]}, y="zonal", model=small)
    along = {"lon": ("station", np.arange(5.0)), "lat": ("station", np.arange(5.0)), "t": ("time", np.arange(3.0))}
    with pytest.raises(ValueError, match="does not vary along 'station', as 'lon' does"):
        npax.interpolate(xr.Dataset(along), {"lat": [1.0], "lon": [2.0]}, y="t", model=small)


def test_no_observations_at_all_are_told(table, small):
    with pytest.raises(ValueError, match="`observations` holds none"):
        npax.interpolate(table[:0], table, x=["lon", "lat"], y="temp", model=small)
    with pytest.raises(TypeError, match=r"`observations` must be a pandas DataFrame.*got numpy\.ndarray"):
        npax.interpolate(np.zeros((3, 2)), table, x=["lon", "lat"])


def test_yes_and_no_are_no_texts(table, small):
    with pytest.raises(ValueError, match="`include_noise` must be True or False, got 'no'"):
        given = {"x": ["lon", "lat"], "y": "temp", "model": small}
        inspect.unwrap(npax.interpolate)(table, table, **given, include_noise="no")


def test_values_without_a_name_may_have_a_coordinate_y(small):
    field = xr.DataArray(
        np.arange(20.0).reshape(4, 5), dims=("y", "x"), coords={"y": np.arange(4.0), "x": np.arange(5.0)}
    )
    found = npax.interpolate(field, {"x": [1.5], "y": [2.5]}, x=["x", "y"], model=small)
    assert set(found) == {"value_mean", "value_std"} and found.value_mean.shape == (1, 1)


def test_a_target_that_will_not_do_is_refused_before_the_fit(table, small, monkeypatch):
    monkeypatch.setattr(npax.NeuralProcessRegressor, "fit", lambda *args, **options: pytest.fail("fitted"))
    for target, words in (({"lon": [1.0]}, "'lat'"), ({"lon": [1.0], "lat": [np.nan]}, "NaN")):
        with pytest.raises(ValueError, match=words):
            interpolate(table, pd.DataFrame(target), small)


def test_bounds_of_cells_that_are_not_kept_are_not_named(points, small):
    target = xr.Dataset({"lat_bnds": (("lat", "nv"), np.zeros((5, 2)))}, coords={"lon": LON, "lat": LAT})
    target["lat"].attrs = {"bounds": "lat_bnds", "units": "degrees_north"}
    found = interpolate(points, target, small)
    assert "lat_bnds" not in found.variables and found["lat"].attrs == {"units": "degrees_north"}
    assert target["lat"].attrs["bounds"] == "lat_bnds"


def test_packed_coordinates_are_refused(points, small):
    packed = points.assign_coords(lat=points["lat"].assign_attrs(scale_factor=0.01))
    with pytest.raises(ValueError, match="`observations` holds 'lat' packed"):
        interpolate(packed, {"lon": LON, "lat": LAT}, small)
    with pytest.raises(ValueError, match="`target` holds 'lat' packed"):
        interpolate(points, xr.Dataset(coords={"lon": LON, "lat": ("lat", LAT, {"add_offset": 10.0})}), small)


@pytest.mark.parametrize("names", [["decimalLatitude", "decimalLongitude"], ["Lat_deg", "Long_deg"], ["lat.", "lng"]])
def test_degrees_are_known_by_their_names(names, table, small):
    renamed = table.rename(columns=dict(zip(["lat", "lon"], names, strict=True)))
    with pytest.raises(ValueError, match="longitude comes first"):
        npax.interpolate(renamed, renamed, names, "temp", coords="latlon", model=small)
    renamed[names[1]] *= 20.0
    with pytest.warns(PlanarDegrees, match="look like degrees"):
        npax.interpolate(renamed, renamed.head(2), names, "temp", model=small)


@pytest.fixture
def villages(rng):
    lon, lat = rng.uniform(-5, 5, 40), rng.uniform(40, 48, 40)
    tested = rng.integers(5, 50, 40)
    return pd.DataFrame({"lon": lon, "lat": lat, "positive": rng.binomial(tested, 0.3), "tested": tested})


@pytest.mark.parametrize("noise", [True, False])
def test_counts_have_rates(villages, hearing, noise, tmp_path):
    """In a table, on a grid, lazily and in a store: those of the estimator."""
    counts = npax.counts.Binomial()
    reg = npax.CountRegressor(counts, npax.NeuralProcessRegressor(hearing, coords="latlon"))
    reg.fit(villages[["lon", "lat"]].to_numpy(), villages.positive, exposure=villages.tested)
    lon, lat = np.meshgrid(LON, LAT)
    places = np.stack([lon.ravel(), lat.ravel()], axis=1)
    mean, std = reg.predict(places, return_std=True, include_noise=noise)
    options = {"y": "positive", "counts": counts, "exposure": "tested", "include_noise": noise}
    out = interpolate(villages, pd.DataFrame(places, columns=["lon", "lat"]), hearing, **options)
    assert np.allclose(out.positive_mean, mean) and np.allclose(out.positive_std, std)
    lazy = xr.DataArray(dask.array.zeros((5, 7), chunks=(2, 7)), {"lat": LAT, "lon": LON}, ("lat", "lon"))
    for target, store in (
        ({"lat": LAT, "lon": LON}, None),
        (lazy, None),
        ({"lat": LAT, "lon": LON}, tmp_path / "a.zarr"),
    ):
        found = interpolate(villages, target, hearing, **options, store=store)
        assert (found.positive_mean.chunks is None) == (target is not lazy and store is None)
        assert np.allclose(found.positive_mean, mean.reshape(5, 7)) and np.allclose(
            found.positive_std, std.reshape(5, 7)
        )
    with pytest.warns(UserWarning, match="nothing is computed again"):
        again = interpolate(villages, {"lat": LAT, "lon": LON}, hearing, **options, store=tmp_path / "a.zarr")
    assert np.array_equal(again.positive_mean, found.positive_mean)
    with pytest.raises(FileExistsError, match="another prediction"):
        twice = villages.assign(tested=2 * villages.tested)
        interpolate(twice, {"lat": LAT, "lon": LON}, hearing, **options, store=tmp_path / "a.zarr")


def test_rates_are_not_in_the_unit_of_their_counts(villages, hearing):
    data = xr.Dataset({name: ("village", villages[name].to_numpy()) for name in villages}).set_coords(["lon", "lat"])
    data["positive"].attrs = {"units": "persons", "long_name": "infected children"}
    options = {"y": "positive", "counts": npax.counts.Binomial(), "exposure": "tested"}
    found = interpolate(data, {"lat": LAT, "lon": LON}, hearing, **options).positive_mean
    assert "units" not in found.attrs and found.attrs["long_name"] == "predicted mean of the rate of infected children"


def test_what_goes_with_counts_is_said(villages, hearing):
    target = villages[["lon", "lat"]]
    options = {"y": "positive", "counts": npax.counts.Binomial(), "exposure": "tested"}
    for words, wrong in {
        r"`exposure` is of counts: say which, `counts=npax.counts.Poisson\(\)`": {"counts": None},
        r"one column `y`, no `error` .* and no `finetune` with its `gaps`; got .*error=\['tested'\]": {
            "error": "tested"
        },
        r"no `finetune` with its `gaps`; got .*finetune=5": {"finetune": 5},
        r"got y=\['positive', 'tested'\]": {"y": ["positive", "tested"]},
        "no column .*'people'|'people'": {"exposure": "people"},
        "from 0 to `exposure`": {"exposure": None},
        "`exposure` must name a column of its own, got 'positive'": {"exposure": "positive"},
    }.items():
        with pytest.raises(ValueError, match=words):
            interpolate(villages, target, hearing, **{**options, **wrong})
    unchecked, x = inspect.unwrap(npax.interpolate), ["lon", "lat"]
    with pytest.raises(TypeError, match="`exposure` is one name here"):
        unchecked(villages, target, x, **{**options, "exposure": villages.tested})
    with pytest.raises(TypeError, match="`counts` must be an instance of AbstractCounts"):
        unchecked(villages, target, x, **{**options, "counts": "binomial"})

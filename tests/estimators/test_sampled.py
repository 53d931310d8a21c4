"""Covariates of observations that only the grid has which is predicted on."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import npax
from npax.estimators import DroppedRows
from npax.estimators.sampled import sampled


@pytest.fixture
def stations(rng):
    x, y, elevation, soil = rng.uniform(-1, 1, (4, 80))
    rain = np.sin(3 * x) + y + 2 * elevation - soil + 0.1 * rng.normal(size=80)
    return pd.DataFrame({"x": x, "y": y, "elevation": elevation, "soil": soil, "rain": rain})


@pytest.fixture
def ground(rng):
    axes = {"x": np.linspace(-0.9, 0.9, 7), "y": np.linspace(-0.9, 0.9, 5)}
    return xr.Dataset({"soil": ("x", rng.uniform(-0.9, 0.9, 7))}, axes)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("falling", [False, True])
def test_what_only_the_grid_has_is_read_off_there(stations, small, falling, lazy):
    """Linear functions without an error, also up to half a cell beyond the outermost places."""
    axes = {"x": np.linspace(-0.8, 0.8, 5), "y": np.array([-0.7, -0.2, 0.1, 0.6])}
    ground = xr.Dataset(coords={name: axis[::-1] if falling else axis for name, axis in axes.items()})
    ground = ground.assign(elevation=ground.x + 2 * ground.y + ground.x * ground.y, soil=3 * ground.x)
    inside = stations.assign(x=stations.x.clip(-0.99, 0.99), y=stations.y.clip(-0.94, 0.84))
    x, y = inside.x.clip(-0.8, 0.8), inside.y.clip(-0.7, 0.6)
    known = inside.assign(elevation=x + 2 * y + x * y, soil=3 * x)
    options = {"x": ["x", "y"], "y": "rain", "covariates": ["elevation", "soil"], "model": small}
    target = ground.chunk(x=2) if lazy else ground
    for lost in (["elevation", "soil"], ["soil"]):
        found = npax.interpolate(known.drop(columns=lost), target, **options)
        assert (found.rain_mean.chunks is not None) == lazy
        xr.testing.assert_allclose(found.compute(), npax.interpolate(known, ground, **options), atol=1e-4)
    other = npax.interpolate(known.assign(soil=-known.soil), ground, **options)  # the negative control
    assert not np.allclose(other.rain_mean, found.rain_mean, atol=1e-2)


def read_off(ground, places, x=("x", "y"), around=None):
    axes = {name: ground[name].variable for name in (*x, "z")}
    return sampled(dict(zip(x, np.asarray(places, float).T, strict=True)), ["z"], axes, around=around).values[:, 0]


def test_beside_a_gap_the_nearest_place_counts():
    ground = xr.Dataset({"z": (("x", "y"), [[1.0, 2.0], [4.0, np.nan]])}, {"x": [0.0, 1.0], "y": [0.0, 1.0]})
    places = [[0.2, 0.3], [0.0, 0.25], [0.6, 0.4], [0.9, 0.8], [-0.4, 1.4], [-0.6, 0.0], [0.0, 1.6]]
    np.testing.assert_allclose(read_off(ground, places), [1, 1.25, 4, 4, 2, np.nan, np.nan])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 0, 1)])
def test_longitudes_come_round_again(order):
    """All around the globe without a seam; beside it what is half a cell away."""
    lon = np.arange(0.0, 360.0, 90)[list(order)]
    ground = xr.Dataset({"z": (("lat", "lon"), np.add.outer([0.0, 10.0], np.abs(lon - 180)))})
    ground = ground.assign_coords(lat=[-1.0, 1.0], lon=lon)
    places = np.array([[-90, 0], [45, 0], [405, 0], [-45, 0], [-9, 0.5], [720, -1]])
    found = read_off(ground, places, ("lon", "lat"), around="lon")
    np.testing.assert_allclose(found, [95, 140, 140, 140, 178.5, 180])
    part = ground.sel(lon=[0, 270])  # 90 degrees, across Greenwich
    within = places[[0, 3, 4, 5]]
    np.testing.assert_allclose(read_off(part, within, ("lon", "lat"), around="lon"), found[[0, 3, 4, 5]])
    beyond = read_off(part, [[46, 0], [180, 0], [224, 0], [226, 0], [44, 0]], ("lon", "lat"), around="lon")
    np.testing.assert_allclose(beyond, [np.nan, np.nan, np.nan, 95, 185])
    assert np.isnan(read_off(ground, [[-90, 0]], ("lon", "lat"))).all()


def test_what_is_true_or_false_is_not_in_between():
    ground = xr.Dataset({"z": ("x", [True, False])}, {"x": [0.0, 1.0], "y": [0.0]})
    assert read_off(ground, [[0.2, 0.0], [0.8, 0.0]]).tolist() == [1, 0]


def test_of_a_lazy_grid_each_block_is_computed_once():
    computed = []
    ground = xr.Dataset({"z": (("x", "y"), np.zeros((6, 6)))}, {"x": np.arange(6.0), "y": np.arange(6.0)}).chunk(3)
    ground["z"] = ground.z.copy(data=ground.z.data.map_blocks(lambda a: computed.append(0) or a, meta=np.zeros((0, 0))))
    read_off(ground, np.random.default_rng(0).uniform(0, 5, (50, 2)))
    assert len(computed) == 4


@given(st.integers(1, 5), st.integers(1, 4), st.permutations(["x", "y"]), st.integers(0, 1000))
def test_a_place_of_the_grid_has_its_own_value(nx, ny, dims, seed):
    rng = np.random.default_rng(seed)
    axes = {"x": rng.permutation(np.sort(rng.uniform(size=nx))), "y": np.sort(rng.uniform(size=ny))[::-1]}
    ground = xr.Dataset(coords=axes)
    ground["z"] = (dims, rng.normal(size=[ground.sizes[d] for d in dims]))
    table = ground.to_dataframe().reset_index()
    np.testing.assert_allclose(read_off(ground, table[["x", "y"]]), table.z)


def test_of_dates_and_of_what_does_not_vary_along_them(stations, small):
    days = pd.date_range("2020-01-01", periods=3)
    rain = stations.drop(columns=["soil", "elevation", "y"]).assign(day=days[0] + pd.to_timedelta(stations.y + 1, "D"))
    ground = xr.Dataset({"soil": ("day", [0.0, 1.0, 4.0])}, {"day": days, "x": np.linspace(-0.9, 0.9, 3)})
    ground["elevation"] = 2 * ground.x
    options = {"x": ["x", "day"], "y": "rain", "covariates": ["soil", "elevation"], "model": small}
    since = stations.y + 1
    known = rain.assign(soil=np.interp(since, [0, 1, 2], [0, 1, 4]), elevation=2 * rain.x.clip(-0.9, 0.9))
    xr.testing.assert_allclose(
        npax.interpolate(rain, ground, **options), npax.interpolate(known, ground, **options), atol=1e-4
    )


def test_rows_that_cannot_be_read_off_are_left_out_and_told(stations, ground, small):
    options = {"x": ["x", "y"], "y": "rain", "covariates": "soil", "model": small}
    table = stations.drop(columns="soil").set_index(np.arange(100, 180))
    away = table.assign(x=table.x.where(table.index > 102, 5.0))
    away.loc[100, "rain"] = np.nan
    told = r"Of 80 rows of `observations` 3 lie outside `target`, the first of them 100"
    with pytest.warns(DroppedRows, match=told):
        found = npax.interpolate(away, ground, **options)
    xr.testing.assert_identical(found, npax.interpolate(away[3:], ground, **options))
    with pytest.raises(ValueError, match=told + r": leave these rows out, or add 'soil' to `observations`"):
        npax.interpolate(away, ground, **options, on_missing="raise")
    gaps = ground.assign(soil=ground.soil.where(ground.x > -0.5))
    lost = int(np.sum(table.x < -0.6))
    with pytest.warns(DroppedRows, match=rf"Of 80 rows of `observations` {lost} where it has no value of 'soil'"):
        npax.interpolate(table, gaps, **options)
    with pytest.raises(ValueError, match="80 lie outside"):
        npax.interpolate(table.assign(x=9.0), ground, **options)


def test_an_array_may_be_its_own_covariate(stations, ground, small):
    """With a band, as rasters have it, and the gaps of a mask."""
    options = {"x": ["x", "y"], "y": "rain", "covariates": "soil", "model": small}
    table = stations.drop(columns="soil")
    soil = ground.soil.broadcast_like(xr.zeros_like(ground.y * ground.x))
    expected = npax.interpolate(table, soil.to_dataset(), **options)
    xr.testing.assert_allclose(npax.interpolate(table, soil, **options), expected)
    raster = soil.expand_dims(band=[1])
    found = npax.interpolate(table, raster, **options)
    np.testing.assert_allclose(found.rain_mean.squeeze("band"), expected.rain_mean, atol=1e-5)
    marked = soil.where(soil.x > 0, -9999.0).assign_attrs(nodata=-9999)
    with pytest.raises(ValueError, match="holds -9999, its attribute `nodata`"):
        npax.interpolate(table, marked, **options)


def test_one_time_of_a_grid_is_told_of_observations_at_others(stations, small):
    rain = stations[["x", "rain"]].assign(day=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(80) % 3, "D"))
    days = pd.date_range("2020-01-01", periods=3)
    ground = xr.Dataset({"snow": ("day", [0.0, 1.0, 4.0])}, {"day": days, "x": np.linspace(-0.9, 0.9, 3)})
    options = {"x": ["x", "day"], "y": "rain", "covariates": ["snow"], "model": small}
    with pytest.warns(UserWarning, match="'snow' is read off `target`, which has one 'day' only"):
        npax.interpolate(rain, ground.isel(day=0).assign(snow=("x", [0.0, 1.0, 2.0])), **options)
    one = rain[rain.day == days[0]]
    npax.interpolate(one, ground.isel(day=0).assign(snow=("x", [0.0, 1.0, 2.0])), **options)


def test_what_cannot_be_read_off(stations, ground, small):
    options = {"x": ["x", "y"], "y": "rain", "covariates": "soil", "model": small}
    table = stations.drop(columns="soil")
    with pytest.raises(ValueError, match="'x' is text in `observations` and numbers in `target`"):
        npax.interpolate(table.assign(x=table.x.astype(str) + "m"), ground, **options)
    with pytest.raises(ValueError, match=r"NaN or infinity in 3 of 80 rows \(columns 'x'\). Leave these rows out.$"):
        npax.interpolate(table.assign(x=table.x.where(table.index > 2)), ground, **options)
    with pytest.raises(ValueError, match=r"columns 'soil'\). Leave these rows out, or the column: what only `target`"):
        npax.interpolate(stations.assign(soil=stations.soil.where(stations.soil > 0)), ground, **options)
    with pytest.raises(ValueError, match=r"has no 'soil', and it cannot be read off `target`, .* along 'month'"):
        npax.interpolate(table, ground.assign(soil=ground.soil.expand_dims(month=2)), **options)
    points = ground.stack(place=["x", "y"]).reset_index("place")
    with pytest.raises(ValueError, match=r"along 'place', which is the axis of none of the coordinates"):
        npax.interpolate(table, points.assign(soil=points.x), **options)


def test_places_of_the_grid_without_a_coordinate_are_as_none():
    axes = {"x": [np.nan, 0.0, 1.0], "y": [0.0, 2.0]}
    ground = xr.Dataset({"z": (("x", "y"), [[9.0, 9.0], [1.0, 2.0], [4.0, 8.0]])}, axes)
    np.testing.assert_allclose(read_off(ground, [[0.5, 1.0], [1.2, 0.0], [0.0, 2.0]]), [3.75, 4, 2])


def test_half_a_cell_beyond_an_end_is_half_of_the_cell_there():
    ground = xr.Dataset({"z": (("x", "y"), [[1.0], [2.0], [3.0]])}, {"x": [0.0, 1.0, 5.0], "y": [0.0]})
    found = read_off(ground, [[-0.4, 0], [-0.6, 0], [6.9, 0], [7.1, 0]])
    np.testing.assert_allclose(found, [1, np.nan, 3, np.nan])

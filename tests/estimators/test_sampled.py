"""Covariates of observations that only the grid has which is predicted on."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import npax
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
    return sampled(
        pd.DataFrame(dict(zip(x, np.asarray(places, float).T, strict=True))), ["z"], axes, x, around=around
    ).z


def test_beside_a_gap_the_nearest_place_counts():
    ground = xr.Dataset({"z": (("x", "y"), [[1.0, 2.0], [4.0, np.nan]])}, {"x": [0.0, 1.0], "y": [0.0, 1.0]})
    places = [[0.2, 0.3], [0.0, 0.25], [0.6, 0.4], [0.9, 0.9], [-0.4, 1.4], [-0.6, 0.0], [0.0, 1.6]]
    np.testing.assert_allclose(read_off(ground, places), [1, 1.25, 4, np.nan, 2, np.nan, np.nan])


def test_longitudes_come_round_again():
    lon = np.arange(0.0, 360.0, 90)
    ground = xr.Dataset({"z": (("lat", "lon"), np.add.outer([0.0, 10.0], lon))}, {"lat": [-1.0, 1.0], "lon": lon})
    places = [[-90, 0], [45, 0], [405, 0], [-45.1, 0], [-44.9, 0]]
    found = read_off(ground, places, ("lon", "lat"), around="lon")
    np.testing.assert_allclose(found, [275, 50, 50, 275, 5])
    assert np.isnan(read_off(ground, places, ("lon", "lat"))[0])


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


def test_what_cannot_be_read_off(stations, ground, small):
    options = {"x": ["x", "y"], "y": "rain", "covariates": "soil", "model": small}
    table = stations.drop(columns="soil")
    away = table.assign(x=table.x.where(table.index > 2, 5.0))
    with pytest.raises(ValueError, match=r"3 of 80 rows of `observations` lie outside `target`, .* 'soil'"):
        npax.interpolate(away, ground, **options)
    with pytest.raises(ValueError, match=r"has no 'soil', and it cannot be read off `target`, .* along 'month'"):
        npax.interpolate(table, ground.assign(soil=ground.soil.expand_dims(month=2)), **options)
    points = ground.stack(place=["x", "y"]).reset_index("place")
    with pytest.raises(ValueError, match=r"along 'place', which is the axis of none of the coordinates"):
        npax.interpolate(table, points.assign(soil=points.x), **options)

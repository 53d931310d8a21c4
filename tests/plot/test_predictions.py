"""Pictures of what `interpolate` and `fill_gaps` return."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from untrained import cnp

import npax
from npax import plot

OPTIONS = {"x": ["lon", "lat"], "y": "temp"}


@pytest.fixture
def floats(rng):
    lon, lat = rng.uniform(-40, -30, 30), rng.uniform(30, 40, 30)
    return pd.DataFrame({"lon": lon, "lat": lat, "temp": 20 - lat / 4 + rng.normal(size=30)})


GRID = {"lat": np.arange(30.0, 40.0, 2), "lon": np.arange(-40.0, -30.0, 2.5)}


def mesh(ax):
    return np.asarray(ax.collections[0].get_array())


@pytest.mark.parametrize("dims", [("lat", "lon"), ("lon", "lat")])
@pytest.mark.parametrize("coords", ["planar", "isotropic", "latlon"])
def test_a_grid_is_two_maps_with_the_first_coordinate_across(floats, dims, coords):
    found = npax.interpolate(floats, GRID, **OPTIONS, model=cnp(3), coords="latlon").transpose(*dims)
    figure = plot.prediction(found, ["lon", "lat"], coords=coords, observations=floats)
    mean, std, *_ = figure.axes
    np.testing.assert_allclose(mesh(mean), found.temp_mean.transpose("lat", "lon"), rtol=1e-6)
    np.testing.assert_allclose(mesh(std), found.temp_std.transpose("lat", "lon"), rtol=1e-6)
    dots = std.lines[-1]
    np.testing.assert_allclose(dots.get_xydata(), floats[["lon", "lat"]])
    assert mean.get_xlabel() == "lon" and figure.get_suptitle() == "temp"


def test_a_table_is_two_maps_of_points(floats):
    found = npax.interpolate(floats, floats, **OPTIONS, model=cnp(3), coords="latlon", above=18.0)
    figure = plot.prediction(found, ["lon", "lat"], "temp", coords="latlon", name="temperature")
    dots = figure.axes[0].collections[0]
    np.testing.assert_allclose(dots.get_offsets(), floats[["lon", "lat"]])
    np.testing.assert_allclose(dots.get_array(), found.temp_mean)
    labels = [ax.get_xlabel() for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert labels[-1] == "probability of temperature above 18" and labels[0] == "temperature"


@pytest.mark.parametrize("kind", [pd.DataFrame, xr.Dataset])
def test_of_one_coordinate_it_is_a_curve(kind):
    days = pd.date_range("2020-01-01", periods=9)
    seen = pd.DataFrame({"day": days, "level": [*np.sin(np.arange(8.0)), np.nan]})
    target = seen[["day"]] if kind is pd.DataFrame else {"day": days.to_numpy()}
    found = npax.interpolate(seen.dropna(), target, x="day", y="level", model=cnp(1))
    assert isinstance(found, kind)
    (ax,) = plot.prediction(found, "day", observations=seen).axes
    mean, dots = ax.lines
    np.testing.assert_allclose(mean.get_ydata(), found.level_mean)
    assert len(dots.get_xdata()) == 8 and ax.get_xlabel() == "day" and ax.get_ylabel() == "level"


def test_observations_may_be_of_xarray_and_too_many_to_draw(floats):
    found = npax.interpolate(floats, GRID, **OPTIONS, model=cnp(3), coords="latlon")
    seen = floats.rename_axis("float").to_xarray().set_coords(["lon", "lat"])
    for given in (seen, seen.temp):
        _, std, *_ = plot.prediction(found, observations=given, coords="latlon").axes
        assert len(std.lines[-1].get_xdata()) == 30
    many = pd.concat([floats] * 200)
    _, std, *_ = plot.prediction(found, observations=many, coords="latlon").axes
    assert not any(line.get_marker() == "o" for line in std.lines)


def test_what_cannot_be_drawn(floats):
    found = npax.interpolate(floats, GRID, **OPTIONS, model=cnp(3), coords="latlon")
    for words, wrong in {
        r"`found` has no 'salt_mean'; it has the means of: temp": {"y": "salt"},
        r"`x` must be one or two coordinates, got 3": {"x": ["lon", "lat", "depth"]},
        r"`found` has no 'depth' of `x`; it has": {"x": ["lon", "depth"]},
        r"`found` varies along 'lon', too, .*isel\(lon=0\)": {"x": "lat"},
    }.items():
        with pytest.raises(ValueError, match=words):
            plot.prediction(found, **{"x": ["lon", "lat"], **wrong})
    both = found.assign(salt_mean=found.temp_mean, salt_std=found.temp_std)
    with pytest.raises(ValueError, match=r"`y` must say what to draw; .* temp, salt"):
        plot.prediction(both)
    with pytest.raises(TypeError, match=r"`found` must be a DataFrame or an xarray Dataset.*numpy\.ndarray"):
        plot.prediction(np.zeros(3))

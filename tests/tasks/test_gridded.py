"""Blocks of a field whose every value says where it is."""

import inspect

import cftime
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import xarray as xr

from npax.tasks import Region, gridded

LAT, LON = np.arange(60.0, 49.9, -0.5), np.arange(-10.0, 10.1, 0.5)
TIME = np.datetime64("2022-07-01", "ns") + np.arange(8) * np.timedelta64(6, "h")
HOURS = 6.0 * np.arange(8)
REGION = Region((52.0, 56.0), (-4.0, 4.0))
SIZES = {"crop": (3, 4, 2), "low": 1, "high": 8}


def field(lat, lon, hours):
    return 100.0 + lat + 0.01 * lon + 20.0 * hours


def dataset(lat=LAT, lon=LON):
    t, i, j = np.meshgrid(HOURS, lat, lon, indexing="ij")
    height = 10.0 * lat[:, None] - lon
    return xr.Dataset(
        {"t2m": (("time", "lat", "lon"), field(i, j, t)), "elevation": (("lat", "lon"), height)},
        {"time": TIME, "lat": lat, "lon": lon},
    )


def drawn(tasks, n=64):
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(tasks.sample))(jr.split(jr.key(0), n)))


def places(tasks, x):
    """Latitude, longitude, hours since the start and elevation of rows of x."""
    columns = np.asarray(x, float) * tasks.scaling.x_std + tasks.scaling.x_mean
    columns[..., 2] -= (TIME[0] - np.datetime64(0, "ns")) / np.timedelta64(1, "h")
    return columns


@pytest.fixture(scope="module")
def tasks():
    return gridded(dataset(), "t2m", region=REGION, **SIZES)


def test_every_value_is_that_of_its_place(tasks):
    batch = drawn(tasks)
    for x, y, mask in ((batch.xc, batch.yc, batch.mask_c), (batch.xt, batch.yt, batch.mask_t)):
        lat, lon, hours, height = np.moveaxis(places(tasks, x)[mask], -1, 0)
        np.testing.assert_allclose(tasks.scaling.undo(y)[mask][:, 0], field(lat, lon, hours), atol=2e-3)
        np.testing.assert_allclose(height, 10 * lat - lon, atol=1e-3)
        assert lat.min() > 51.99 and lat.max() < 56.01 and lon.min() > -4.01 and lon.max() < 4.01
    lat, lon, _, _ = np.moveaxis(places(tasks, batch.xt)[batch.mask_t], -1, 0)
    assert np.ptp(lat) > 3.9 and np.ptp(lon) > 7.9  # all of the region comes up


def test_a_meridian_with_two_names_is_there_once():
    lon = np.arange(-180.0, 181.0, 30.0)
    whole = gridded(dataset(lon=lon), "t2m", region=Region((50.0, 60.0), (-180.0, 180.0)), **SIZES)
    assert len(whole.lon) == 12 and len(gridded(dataset(lon=lon), "t2m", **SIZES).lon) == 13
    region, small = Region((50.0, 60.0), (150.0, -150.0)), {"crop": (3, 3, 2), "low": 1, "high": 6}
    across = gridded(dataset(lon=lon), "t2m", region=region, **small)
    assert np.allclose(across.lon * across.scaling.x_std[1] + across.scaling.x_mean[1], [150, 180, 210], atol=1e-3)


@pytest.mark.parametrize("changes", [{"crop": (4, 4)}, {"crop": (4.0, 4, 2)}, {"stride": (1, 1)}, {"stride": 1}])
def test_blocks_are_three_whole_numbers(changes):
    with pytest.raises(ValueError, match=f"`{next(iter(changes))}` must be three whole numbers"):
        inspect.unwrap(gridded)(dataset(), "t2m", **{**SIZES, **changes})


def test_a_block_has_its_size_and_stride(tasks):
    whole = gridded(dataset(), "t2m", stride=(2, 3, 1), **SIZES)
    x, y = jax.jit(lambda key: whole.block(key))(jr.key(1))
    assert x.shape == (2, 3, 4, 4) and y.shape == (2, 3, 4, 1)
    lat, lon, hours, _ = np.moveaxis(places(whole, x), -1, 0)
    np.testing.assert_allclose(np.diff(lat, axis=1), -1.0, atol=1e-4)
    np.testing.assert_allclose(np.diff(lon, axis=2), 1.5, atol=1e-4)
    np.testing.assert_allclose(np.diff(hours, axis=0), 6.0, atol=0.1)
    batch = drawn(tasks)
    assert batch.xc.shape == (64, 8, 4) and batch.xt.shape == (64, 23, 4)


def test_the_training_region_has_unit_scale_and_others_are_told_apart_by_it(tasks):
    assert float(jnp.mean(tasks.values)) == pytest.approx(0, abs=1e-5)
    assert float(jnp.std(tasks.values)) == pytest.approx(1, abs=1e-5)
    west = gridded(dataset(), "t2m", region=Region((52.0, 56.0), (-10.0, -5.0)), scaling=tasks.scaling, **SIZES)
    assert west.scaling is tasks.scaling and float(west.lon.max()) < float(tasks.lon.min())
    own = gridded(dataset(), "t2m", region=Region((52.0, 56.0), (-10.0, -5.0)), **SIZES)
    assert abs(float(jnp.mean(own.lon))) < 1e-5 and float(jnp.mean(west.lon)) < -1


def test_missing_values_are_neither_context_nor_target():
    holes = dataset()
    holes["t2m"].values[:, :, ::2] = np.nan
    batch = drawn(gridded(holes, "t2m", **SIZES))
    assert np.isfinite(batch.yc).all() and np.isfinite(batch.yt).all()
    assert np.array_equal(batch.mask_c.sum(1) + batch.mask_t.sum(1), np.full(64, 12))  # half of the block


@pytest.mark.parametrize("turn", [0.0, 360.0])
def test_longitudes_wrap(turn):
    east = dataset(lon=np.concatenate([np.arange(0.0, 10.1, 0.5), np.arange(350.0, 360.0, 0.5)]))
    other = gridded(east, "t2m", region=Region((52.0, 56.0), (-4.0 + turn, 4.0 + turn)), **SIZES)
    lon = np.asarray(other.lon) * other.scaling.x_std[1] + other.scaling.x_mean[1]
    np.testing.assert_allclose(lon, np.arange(-4.0, 4.1, 0.5) + turn, atol=1e-3)


def test_infinite_values_are_missing_too():
    holes = dataset()
    holes["t2m"].values[:, :, ::2] = np.inf
    tasks = gridded(holes, "t2m", **SIZES)
    assert np.isfinite(tasks.scaling.y_mean + tasks.scaling.y_std).all()
    assert np.array_equal(drawn(tasks).mask_c.sum(1) + drawn(tasks).mask_t.sum(1), np.full(64, 12))


def test_time_is_counted_in_hours_whatever_its_kind():
    def hours(times):
        tasks = gridded(dataset().assign_coords(time=times), "t2m", **SIZES)
        return np.asarray(tasks.time, float) * tasks.scaling.x_std[2] + tasks.scaling.x_mean[2]

    since = np.arange(8) * np.timedelta64(6, "h")
    noleap = cftime.num2date(365 * 24 + HOURS, "hours since 1970-01-01", calendar="noleap")
    far = np.datetime64("6000-01-01", "s") + since
    np.testing.assert_allclose(hours(since.astype("timedelta64[ns]")), HOURS, atol=1e-4)
    np.testing.assert_allclose(hours(noleap), 365 * 24 + HOURS, rtol=1e-6)
    np.testing.assert_allclose(np.diff(hours(far)), 6.0, atol=1e-4)


def test_without_elevation_there_are_three_columns():
    plain = gridded(dataset().drop_vars("elevation").transpose("lat", "time", "lon"), "t2m", **SIZES)
    assert plain.dx == 3 and drawn(plain).xc.shape == (64, 8, 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"y": "sst"}, r"no 'sst'.*t2m"),
        ({"lat": "latitude"}, r"no 'latitude'"),
        ({"y": "elevation"}, r"dimensions time, lat, lon; it has lat, lon"),
        ({"region": Region((52.0, 52.5), (0.0, 4.0))}, r"spans \(3, 4, 2\).*has \(2, 9, 8\)"),
        ({"region": Region((56.0, 52.0), (0.0, 4.0))}, r"southern latitude first"),
        ({"high": 24}, "high=24"),
        ({"elevation": "t2m"}, "'t2m' must have the dimensions lat, lon; it has time, lat, lon"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        gridded(dataset(), **{"y": "t2m", **SIZES, **arguments})
    three = gridded(dataset(), "t2m", elevation=None, **SIZES).scaling
    with pytest.raises(ValueError, match="3 columns"):
        gridded(dataset(), "t2m", scaling=three, **SIZES)


def test_what_holds_no_field_is_refused():
    with pytest.raises(ValueError, match="'t2m' has no values in the grid"):
        gridded(dataset() * np.nan, "t2m", **SIZES)
    with pytest.raises(ValueError, match="'t2m' must hold numbers, it holds timedelta64"):
        gridded(dataset().assign(t2m=lambda d: d.t2m.astype("m8[s]").astype("m8[ns]")), "t2m", **SIZES)
    with pytest.raises(TypeError, match=r"got DataArray.*to_dataset"):
        gridded(dataset()["t2m"], "t2m", **SIZES)  # pyright: ignore

"""Lazy targets on a cluster: blocks carry what they need, and answer as the whole does."""

import pickle
from inspect import unwrap

import cloudpickle
import dask
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from distributed import Client, LocalCluster

import npax
from npax.estimators.moments import moments_at
from npax.inference import Prediction, Tiled


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"lon": rng.uniform(-5, 5, 6000), "lat": rng.uniform(40, 48, 6000)})
    return table.assign(temp=np.sin(table["lon"]) + table["lat"] / 10)


def grid(n, **chunks):
    lon, lat = np.linspace(-5, 5, n), np.linspace(40, 48, n)
    return xr.DataArray(np.zeros((n, n)), {"lat": lat, "lon": lon}, ("lat", "lon")).chunk(chunks)


def interpolate(table, target, small, tile_size=16, **options):
    return npax.interpolate(table, target, y="temp", model=small, strategy="tiled", tile_size=tile_size, **options)


def sent(out, block):
    """Bytes that a worker needs for one block, the model among them."""
    (alone,) = dask.optimize(out["temp_mean"].data.blocks[block])
    return len(cloudpickle.dumps(dict(alone.__dask_graph__())))


def test_a_block_carries_its_neighbourhood_alone(table, small):
    denser = pd.concat([table, table.assign(lon=-table["lon"])])
    context, twice = (
        len(pickle.dumps(Tiled(small, t[["lon", "lat"]].to_numpy(), t[["temp"]].to_numpy(), size=32).of(None)))
        for t in (table, denser)
    )
    assert twice > 1.8 * context
    model = len(pickle.dumps(small))
    out = interpolate(table, grid(24, lat=3, lon=3), small, tile_size=32)
    sizes = [sent(out, block) - model for block in [*np.ndindex(8, 8)][::5]]
    assert 0 < max(sizes) < context / 10  # of which it would carry all, did it carry the whole
    finer = interpolate(denser, grid(48, lat=3, lon=3), small, tile_size=32)
    found = [sent(finer, block) - model for block in [*np.ndindex(16, 16)][::19]]
    assert max(found) < 1.5 * max(sizes)  # as many cells in a smaller block


def test_a_target_that_is_chunked_along_some_of_its_dimensions(table, small):
    target = grid(5, lat=2, lon=5).to_dataset(name="elevation").assign_coords(level=[0.0, 1.0])
    table = table[:200].assign(level=np.arange(200) % 2)
    found, expected = (
        npax.interpolate(table, each, x=["lon", "lat", "level"], y="temp", model=small)["temp_mean"]
        for each in (target, target.drop_vars("elevation"))
    )
    assert found.chunks is not None and dict(found.sizes) == {"lat": 5, "lon": 5, "level": 2}
    np.testing.assert_allclose(found.transpose(*expected.dims).compute(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::npax.estimators.Extrapolation")  # numbers of any kind will do
def test_two_processes_write_what_one_would(table, small, tmp_path):
    near = table[(table["lon"].abs() < 1) & (table["lat"] < 42)]
    in_memory = interpolate(near, grid(12), small)
    out = interpolate(near, grid(12, lat=6, lon=6), small)
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        out.to_zarr(tmp_path / "map.zarr", zarr_format=3, consolidated=False)
    written = xr.load_dataset(tmp_path / "map.zarr", engine="zarr", consolidated=False)
    for name in ("temp_mean", "temp_std"):
        np.testing.assert_allclose(written[name], in_memory[name], rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::npax.estimators.Extrapolation")  # numbers of any kind will do
def test_lazy_coordinates_answer_alike(table, small):
    near = table[(table["lon"].abs() < 1) & (table["lat"] < 42)]
    in_memory = interpolate(near, grid(12), small)
    lon, lat = np.meshgrid(in_memory["lon"], in_memory["lat"])
    curved = xr.Dataset({"lon": (("j", "i"), lon), "lat": (("j", "i"), lat)}).chunk({"j": 6})
    out = interpolate(near, curved, small)
    assert out["temp_mean"].chunks == ((6, 6), (12,))
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_allclose(out["temp_mean"], in_memory["temp_mean"], rtol=1e-5, atol=1e-5)


def test_places_that_are_not_there_keep_their_rows():
    of_x = lambda x: Prediction(x, 2 * x, 3 * x)  # noqa: E731
    found = unwrap(moments_at)(of_x, np.array([[np.nan], [1.0], [np.nan], [2.0]]), True)
    np.testing.assert_array_equal(found, [[np.nan] * 2, [1, 2], [np.nan] * 2, [2, 4]])

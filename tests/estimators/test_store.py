"""Predictions on disk go on where they stopped, whatever stopped them, and hold one block in memory."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import dask.array as da
import equinox as eqx
import numpy as np
import pytest
import xarray as xr
from victim import GRID, observations, write

import npax
from npax import files, fingerprint as fingerprints
from npax.estimators import store as stores
from npax.estimators.grid import Grid
from npax.estimators.store import BLOCKS, DONE, Store
from npax.fingerprint import fingerprint
from npax.likelihoods import HeteroscedasticGaussian

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(stores, "BLOCK", 64)


@pytest.fixture(scope="module")
def whole(small, tmp_path_factory):
    """Uninterrupted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "BLOCK", 64)
        return write(tmp_path_factory.mktemp("whole") / "map.zarr", small).load()


def test_what_is_stored_is_what_is_returned_otherwise(small, whole):
    in_memory = npax.interpolate(observations(), GRID, y="temp", model=small)
    xr.testing.assert_allclose(whole.drop_attrs(), in_memory.drop_attrs(), rtol=1e-5)
    assert whole["temp_mean"].attrs == in_memory["temp_mean"].attrs and whole["temp_std"].dims == ("lat", "lon")


def progress(path):
    try:
        return json.loads((path / "zarr.json").read_text())["attributes"]
    except FileNotFoundError:
        return {DONE: 0}


def start(path, *manner):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(HERE / "victim.py"), str(path), *manner]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def test_kill_9_in_predicting_and_in_counting_loses_no_block(small, whole, tmp_path):
    path = tmp_path / "map.zarr"
    victim = start(path)
    while progress(path)[DONE] < 2 and victim.poll() is None:
        time.sleep(0.01)
    victim.kill()
    _, errors = victim.communicate()
    assert victim.returncode == -signal.SIGKILL, errors.decode()
    reached = progress(path)[DONE]
    assert 2 <= reached < progress(path)[BLOCKS]

    victim = start(path, "fsync", "3")  # half of the new metadata has reached the disk, under another name
    _, errors = victim.communicate()
    assert victim.returncode == -signal.SIGKILL, errors.decode()
    reached, before = progress(path)[DONE], reached
    assert before < reached < progress(path)[BLOCKS] and list(path.glob("*.partial-*"))
    seen = xr.load_dataset(path, engine="zarr")["temp_mean"]
    assert 0 < np.isfinite(seen).sum() < seen.size

    asked = []
    out = write(path, small, seen=asked.append)
    assert len(asked) == progress(path)[BLOCKS] - reached
    assert not list(path.glob("*.partial-*"))
    xr.testing.assert_equal(out.load().drop_attrs(), whole.drop_attrs())


def test_stopped_while_it_is_made(small, whole, tmp_path, monkeypatch):
    def die(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", lambda a, b: die() if Path(b).suffix == ".zarr" else os.rename(a, b))
        write(tmp_path / "map.zarr", small)
    assert not list(tmp_path.iterdir())
    gone = subprocess.Popen(["true"])
    gone.wait()
    (
        tmp_path / f"map.partial-{12 * '0'}-{files._HERE}-{gone.pid}.zarr"
    ).mkdir()  # what a process leaves that is killed there
    xr.testing.assert_equal(write(tmp_path / "map.zarr", small).load().drop_attrs(), whole.drop_attrs())
    assert [path.name for path in tmp_path.iterdir()] == ["map.zarr"]


def test_ctrl_c_leaves_a_store_to_go_on_with(small, whole, tmp_path):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with Ctrl-C ignored
    path, calls = tmp_path / "map.zarr", []

    def interrupt(places):
        calls.append(places)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        write(path, small, seen=interrupt)
    assert progress(path)[DONE] == 2
    out = write(path, small)
    assert out.attrs[DONE] == out.attrs[BLOCKS]
    xr.testing.assert_equal(out.load().drop_attrs(), whole.drop_attrs())


def test_a_finished_prediction_is_not_repeated(small, tmp_path):
    path = tmp_path / "map.zarr"
    first = write(path, small).load()

    def refuse(places):
        raise AssertionError("predicted again")

    with pytest.warns(UserWarning, match="holds all of this prediction: nothing is computed again"):
        again = write(path, small, seen=refuse)
    xr.testing.assert_identical(again.load(), first)
    assert first["temp_mean"].encoding["chunks"] == (6, 10)


@pytest.mark.parametrize(
    "change", ["model", "views", "observations", "grid", "option", "no store", "a file", "another zarr"]
)
def test_what_is_not_this_prediction_is_left_alone(small, tiny, tmp_path, change):
    path = tmp_path / "map.zarr"
    words = "another prediction"
    options = {"model": small, "observations": observations(), "target": GRID}
    if change in ("no store", "a file", "another zarr"):
        words = "no prediction that npax wrote"
        {
            "no store": lambda: path.mkdir(),
            "a file": lambda: path.write_text("text"),
            "another zarr": lambda: xr.Dataset({"a": ("x", [1.0])}).to_zarr(path, consolidated=False),
        }[change]()
    else:
        npax.interpolate(observations(), GRID, y="temp", model=small, store=path)
        options |= {
            "model": {"model": tiny},
            "views": {"views": npax.models.turned(small.dx, 2)},
            "observations": {"observations": observations().assign(temp=lambda table: -table["temp"])},
            "grid": {"target": {**GRID, "lon": GRID["lon"] + 1}},
            "option": {"include_noise": False},
        }[change]
    before = sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*"))
    with pytest.raises(FileExistsError, match=f"{words}.*Delete it, or choose another name"):
        npax.interpolate(options.pop("observations"), options.pop("target"), y="temp", store=path, **options)
    assert sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")) == before


def test_memory_is_that_of_a_block(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "BLOCK", 2048)
    table = observations()

    def predict(n, **options):
        grid = {"lat": np.linspace(40, 48, n), "lon": np.linspace(-5, 5, n)}
        npax.interpolate(table, grid, y="temp", model=tiny, **options)

    def peak(n, **options):
        tracemalloc.start()
        predict(n, **options)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    monkeypatch.setattr(Store, "_count", lambda self, done: None)
    predict(32, store=tmp_path / "first")  # compiles
    few, many = peak(64, store=tmp_path / "few"), peak(192, store=tmp_path / "many")
    assert many < 1.5 * few
    assert peak(192) > 3 * many  # in memory: all of it


def test_coordinates_that_are_not_in_memory(small, whole, tmp_path):
    lon, lat = np.meshgrid(GRID["lon"], GRID["lat"])
    curved = xr.Dataset({"lon": (("j", "i"), lon), "lat": (("j", "i"), lat)}).chunk({"j": 5})
    out = npax.interpolate(observations(), curved, y="temp", model=small, store=tmp_path / "map.zarr")
    assert np.array_equal(out["temp_mean"], whole["temp_mean"]) and np.array_equal(out["lon"], lon)
    with pytest.warns(UserWarning, match="nothing is computed again"):
        npax.interpolate(observations(), curved, y="temp", model=small, store=tmp_path / "map.zarr")


def test_coordinates_stay_coordinates(tiny, tmp_path):
    """Those that are no dimensions too, text among them, for whoever opens the store."""
    lon, lat = np.meshgrid(GRID["lon"], GRID["lat"])
    coords = {"lon": (("j", "i"), lon), "lat": (("j", "i"), lat), "time": np.datetime64("2020-01-01", "ns")}
    coords |= {"j": np.array([f"row {j}" for j in range(len(lat))]), "region": "east", "depth": ("level", [0.0, 5.0])}
    curved = xr.Dataset(coords=coords, attrs={"title": "a map"})
    for name, target in (("map.zarr", curved), ("lazy.zarr", curved.chunk({"j": 5}))):
        expected = npax.interpolate(observations(), curved, y="temp", model=tiny)
        npax.interpolate(observations(), target, y="temp", model=tiny, store=tmp_path / name)
        found = xr.open_zarr(tmp_path / name)
        assert set(found.coords) == set(coords) and found.attrs["title"] == "a map"
        xr.testing.assert_allclose(found.drop_attrs(), expected.drop_attrs(), rtol=1e-5, atol=1e-6)  # of values to 1


def test_attributes_of_netcdf(small, tmp_path):
    """They are numbers of NumPy; and those of how observations are stored say nothing of predictions."""
    given = {"units": "K", "flag": np.float32(-5), "flag_values": np.array([-5.0, 40.0], np.float32)}
    seen = observations().to_xarray().set_coords(["lat", "lon"])["temp"]
    seen.attrs = {**given, "_FillValue": -999.0, "missing_value": np.float32(-999), "valid_range": np.array([0, 1])}
    in_memory = npax.interpolate(seen, GRID, model=small)
    for out in (in_memory, npax.interpolate(seen, GRID, model=small, store=tmp_path / "map.zarr")):
        found = dict(out["temp_mean"].attrs)
        assert np.array_equal(found.pop("flag_values"), given["flag_values"])
        assert found == {"units": "K", "flag": -5, "long_name": "predicted mean of temp", "strategy": "exact"}
        about = {"units": "K", "long_name": "standard deviation of temp", "comment": "of a new observation"}
        assert out["temp_std"].attrs == about


def test_one_process_at_a_time_fills_a_store(small, whole, tmp_path):
    path = tmp_path / "map.zarr"

    def write_too(places):
        with pytest.raises(BlockingIOError, match="is being written by another process: wait for its end"):
            write(path, small)

    xr.testing.assert_equal(write(path, small, seen=write_too).load().drop_attrs(), whole.drop_attrs())


def test_two_processes_that_make_the_same_store(small, whole, tmp_path, monkeypatch):
    path, rename = tmp_path / "map.zarr", os.replace

    def late(partial, to):
        if Path(to) == path:
            monkeypatch.undo()
            monkeypatch.setattr(stores, "BLOCK", 64)
            write(path, small)
        rename(partial, to)

    monkeypatch.setattr(os, "replace", late)
    with pytest.warns(UserWarning, match="nothing is computed again"):
        out = write(path, small)
    xr.testing.assert_equal(out.load().drop_attrs(), whole.drop_attrs())
    assert [path.name for path in tmp_path.iterdir()] == ["map.zarr"]


def test_names_that_divide_groups_are_refused_before_the_work(small, tmp_path):
    named = observations().rename(columns={"temp": "T (mg/l)"})
    with pytest.raises(ValueError, match="A store takes no names with '/'"):
        npax.interpolate(named, GRID, y="T (mg/l)", model=small, store=tmp_path / "map.zarr")
    assert not (tmp_path / "map.zarr").exists()


def test_stacked_coordinates_are_refused_before_the_work(small, tmp_path):
    stacked = xr.Dataset(coords=GRID).stack(place=["lat", "lon"])
    with pytest.raises(ValueError, match="A store takes no stacked coordinates, got 'place'"):
        npax.interpolate(observations(), stacked, y="temp", model=small, store=tmp_path / "map.zarr")


def test_a_table_of_points_has_no_blocks(small, tmp_path):
    with pytest.raises(ValueError, match="`store` takes a gridded target"):
        npax.interpolate(observations(), observations(), y="temp", model=small, store=tmp_path / "map.zarr")


def test_settings_of_a_model_are_part_of_the_request():
    """Two models with the same numbers that predict otherwise."""
    one, other = (HeteroscedasticGaussian(1, std) for std in (0.01, 0.1))
    assert fingerprint((one,)) != fingerprint((other,))
    same = [eqx.nn.Lambda(lambda x: x) for _ in range(2)]  # at different addresses, as in another process
    assert fingerprint((eqx.nn.Sequential(same[:1]),)) == fingerprint((eqx.nn.Sequential(same[1:]),))


def test_a_store_is_a_folder_of_this_machine(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for address in ("s3://bucket/x.zarr", Path("s3://bucket/x.zarr")):
        with pytest.raises(ValueError, match="`store` must be a folder on this machine, got 's3:/"):
            npax.interpolate(observations(), GRID, y="temp", model=small, store=address)
    with pytest.raises(TypeError, match="`store` must be the path of a folder, got dict"):
        inspect.unwrap(npax.interpolate)(observations(), GRID, y="temp", model=small, store={})
    npax.interpolate(observations(), GRID, y="temp", model=small, store="~/x.zarr").close()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["x.zarr"]


def test_the_order_of_coordinates_makes_no_other_prediction(tiny, tmp_path):
    coordinates = {**GRID, "depth": 2.0}
    for ordered in (coordinates, dict(reversed(coordinates.items()))):
        target = xr.Dataset(coords=ordered)
        grid = Grid.of(target, ["lon", "lat"])
        Store(tmp_path / "map.zarr", grid._replace(sizes={d: grid.sizes[d] for d in ("lat", "lon")}), [], ())


def test_lazy_coordinates_are_read_by_the_chunk(monkeypatch, rng):
    """Once where they are small, and by whole chunks where they are not, with the same fingerprint."""

    def read(block):
        asked.append(block.shape)
        return block

    asked, values = [], rng.standard_normal((64, 40))
    lazy = da.from_array(values, chunks=(16, 40)).map_blocks(read, meta=np.zeros((0, 0)))
    monkeypatch.setattr(fingerprints, "PIECE", 80)
    assert fingerprint([xr.Variable(("j", "i"), lazy)]) == fingerprint([xr.Variable(("j", "i"), values)])
    assert asked == 4 * [(16, 40)]
    grid = Grid.of(xr.Dataset(coords={"lon": (("j", "i"), lazy), "lat": (("j", "i"), lazy)}), ["lon", "lat"])
    assert grid.lazy and not grid.read(values.size).lazy and grid.read(values.size - 1).lazy
    assert np.array_equal(grid.read(values.size).points()[:, 0], values.ravel())

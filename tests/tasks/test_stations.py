"""Scattered observations: days, neighbourhoods, files."""

import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import npax
from npax.tasks import StationTask, days, from_directory, neighbourhoods


def drawn(tasks, n=100):
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(tasks.sample))(jr.split(jr.key(0), n)))


def seen(batch):
    """Locations and values of all context points and targets, `[points dx]` and `[points dy]`."""
    x = np.concatenate([np.asarray(batch.xc)[batch.mask_c], np.asarray(batch.xt)[batch.mask_t]])
    return x, np.concatenate([np.asarray(batch.yc)[batch.mask_c], np.asarray(batch.yt)[batch.mask_t]])


def test_days_know_which_stations_are_silent(rng):
    x = rng.uniform(0, 50, (12, 2))
    y = 10.0 * np.arange(20)[:, None] + x[:, 0]
    y[rng.random(y.shape) < 0.3] = np.nan
    y[3], y[4, 1:] = np.nan, np.nan  # one without values, one with a single value: both are left out
    tasks, scaling = days(x, y, low=2, high=6)
    assert len(tasks) == 18 and isinstance(tasks, StationTask)
    batch = drawn(tasks)
    assert batch.xc.shape == (100, 6, 2) and batch.xt.shape == (100, 10, 2)
    places, values = seen(batch)
    places, values = places * scaling.x_std + scaling.x_mean, scaling.undo(values)
    day = (values[:, 0] - places[:, 0]) / 10
    np.testing.assert_allclose(day, np.round(day), atol=1e-3)
    assert set(np.round(day)) <= set(np.arange(20)) - {3, 4}
    observed = np.isfinite(y)
    for task in range(20):
        context, targets = np.asarray(batch.mask_c[task]), np.asarray(batch.mask_t[task])
        first = np.asarray(batch.xt[task, 0]) * scaling.x_std + scaling.x_mean
        which = round(float((scaling.undo(batch.yt[task, 0])[0] - first[0]) / 10))
        assert context.sum() + targets.sum() == observed[which].sum()
    later, same = days(x, y[10:], scaling=scaling, low=2, high=6)
    assert same is scaling and float(jnp.mean(later.y, where=later.valid[..., None])) > 0.3


def test_neighbourhoods_are_the_nearest_and_standardised(rng):
    x, east = rng.uniform(-30, 30, (200, 2)), slice(0, 40)
    y = np.stack([rng.normal(size=200), 5 + 3 * x[:, 0]], axis=1)
    tasks = neighbourhoods(x, y, centres=np.arange(40), size=10, low=2, high=5)
    assert tasks.x.shape == (40, 10, 2) and tasks.y.shape == (40, 10, 2)
    assert np.allclose(tasks.x.max(1), 2) and np.allclose(tasks.x.min(1), -2)
    assert np.allclose(tasks.y.mean(1), 0, atol=1e-5) and np.allclose(tasks.y.std(1), 1, atol=1e-5)
    slope = np.asarray((tasks.y[:, 1:, 1] - tasks.y[:, :1, 1]) / (tasks.x[:, 1:, 0] - tasks.x[:, :1, 0]))
    np.testing.assert_allclose(slope, slope[:, :1] * np.ones(9), rtol=0.05)  # a plane stays one
    near = np.argsort(np.linalg.norm(x[east, None] - x, axis=-1), axis=1)[:, :10]
    values = y[near, 0]
    expected = np.sort((values - values.mean(1, keepdims=True)) / values.std(1, keepdims=True), axis=1)
    found = np.sort(np.asarray(tasks.y)[..., 0], axis=1)
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], expected[np.argsort(expected[:, 0])], atol=1e-5)
    assert len(neighbourhoods(x, y, size=10, most=7, low=2, high=5)) == 7


def test_contexts_are_standardised_and_say_nothing_of_noise_elsewhere(rng):
    """By mean and deviation of the whole data set the last value would follow from the others."""
    tasks = neighbourhoods(rng.uniform(0, 1, (60, 2)), 5 + 3 * rng.normal(size=(60, 2)), size=9, low=8, high=8)
    batch = drawn(tasks, 400)
    assert np.abs(batch.yc.mean(1)).max() < 1e-5 and np.allclose(batch.yc.std(1), 1, atol=1e-4)
    ends = np.sort(batch.yc, axis=1)
    inside = (batch.yt > ends[:, :1]) & (batch.yt < ends[:, -1:])
    assert abs(inside.mean() - 7 / 9) < 0.06  # as exchangeable values are


def test_a_context_that_does_not_vary_keeps_its_unit(rng):
    y = np.concatenate([np.zeros((3, 8, 1)), rng.normal(size=(3, 1, 1))], axis=1)
    tasks = StationTask(rng.normal(size=(3, 9, 2)), y, np.ones((3, 9), bool), low=1, high=3, standardise=True)
    batch = drawn(tasks)
    for leaf in jax.tree.leaves(batch):
        assert np.isfinite(leaf).all()
    constant = (batch.yc == 0).all(axis=(1, 2))
    assert constant.any() and set(np.abs(batch.yt[constant]).max((1, 2))) <= {0.0, *np.abs(np.float32(y)).max((1, 2))}


def test_neighbourhoods_on_the_sphere_do_not_see_the_date_line(rng):
    lon = np.concatenate([rng.uniform(175, 180, 30), rng.uniform(-180, -175, 30)])
    x = np.stack([lon, rng.uniform(-3, 3, 60)], axis=1)
    moved = np.stack([lon % 360 - 100, x[:, 1]], axis=1)
    y = rng.normal(size=60)
    one, other = (neighbourhoods(a, y, size=8, coords="latlon", low=2, high=5) for a in (x, moved))
    assert one.x.shape[-1] == 3
    np.testing.assert_allclose(one.x, other.x, atol=1e-4)
    assert not np.allclose(one.x, neighbourhoods(x, y, size=8, low=2, high=5).x[..., :1], atol=0.1)


@pytest.mark.parametrize("number", [3, 5])
def test_days_go_along_on_the_sphere(number, rng):
    x = np.column_stack([rng.uniform(100, 120, 60), rng.uniform(-60, -40, 60), rng.uniform(0, 30, 60)])
    found = neighbourhoods(x, rng.normal(size=60), size=20, low=2, high=5, coords="latlon", most=number)
    assert found.x.shape == (number, 20, 3) and np.isfinite(found.x).all()


def test_rounding_errors_are_no_scale(rng):
    x, alike = rng.uniform(0, 1, (7, 2)), np.full(7, 0.1)
    assert alike.std() > 0
    assert np.abs(neighbourhoods(x, alike, size=7, low=2, high=5).y).max() < 1e-9
    tasks, scaling = days(x, np.tile(alike, (7, 1)), low=2, high=5)
    assert np.abs(tasks.y).max() < 1e-9 and scaling.y_std == (1.0,)


def test_infinite_values_are_missing_too(rng):
    x, y = rng.uniform(0, 50, (12, 2)), rng.normal(size=(9, 12))
    silent = rng.random(y.shape) < 0.3
    one, other = (days(x, np.where(silent, value, y), low=2, high=5) for value in (np.nan, np.inf))
    assert one[1] == other[1] and all(np.array_equal(getattr(one[0], a), getattr(other[0], a)) for a in ("y", "valid"))


def test_arrays_of_numpy_are_tasks(rng):
    x, y = rng.normal(size=(3, 9, 2)).astype("f4"), rng.normal(size=(3, 9, 1)).astype("f4")
    batch = drawn(StationTask(x, y, np.ones((3, 9), bool), low=2, high=5))
    assert set(seen(batch)[1].ravel()) <= set(y.ravel())
    with pytest.raises(ValueError, match=r"\[sets n\], got \(3, 9, 2\), \(3, 8, 1\) and \(3, 9\)"):
        StationTask(x, y[:, :8], np.ones((3, 9), bool), high=5)
    y[1, 2] = np.nan
    with pytest.raises(ValueError, match="`y` has NaN or infinity in 1 of 27 observations that are `valid`"):
        StationTask(x, y, np.ones((3, 9), bool), high=5)
    assert len(StationTask(x, y, np.isfinite(y[..., 0]), high=5)) == 3


@pytest.mark.parametrize("size", [2, 5, 9])
def test_few_neighbours_give_small_contexts(size, rng):
    tasks = neighbourhoods(rng.normal(size=(30, 2)), rng.normal(size=30), size=size, most=3)
    assert tasks.x.shape == (3, size, 2)
    for wrong in ({"size": size + 0.5}, {"most": 1.5}, {"seed": -1}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be a whole number"):
            inspect.unwrap(neighbourhoods)(np.ones((30, 2)), np.ones(30), **wrong)


def test_neighbourhoods_refuse_missing_values(rng):
    y = np.where(np.arange(20) == 3, np.nan, 1.0)
    with pytest.raises(ValueError, match="`y` holds NaN or infinity in 1 of 20 rows"):
        neighbourhoods(rng.uniform(size=(20, 2)), y, size=8, low=2, high=5)


@pytest.fixture
def folder(tmp_path, rng):
    """Three data sets of one kind, in three formats and sizes: y is a plane in x and y."""
    for name, n in (("a.csv", 12), ("b.parquet", 7)):
        table = pd.DataFrame({"east": rng.uniform(1000, 1100, n), "north": rng.uniform(0, 1, n)})
        table["lead"] = 4 + table.east / 100 + table.north
        table.loc[1, "lead"] = np.nan
        (table.to_csv if name.endswith("csv") else table.to_parquet)(tmp_path / name, index=False)
    grid = xr.Dataset(coords={"east": [0.0, 5.0, 10.0], "north": [0.0, 1.0]})
    (grid.east + grid.north).to_dataset(name="lead").to_netcdf(tmp_path / "c.nc")
    (tmp_path / "notes.txt").write_text("not a data set")
    return tmp_path


def test_a_directory_is_a_task_for_each_file(folder):
    tasks = from_directory(folder, x=["east", "north"], y="lead", low=2, high=4)
    assert len(tasks) == 3 and np.array_equal(tasks.valid.sum(1), [11, 6, 6])
    for x, y, valid in zip(tasks.x, tasks.y, tasks.valid, strict=True):
        x, y = np.asarray(x)[valid], np.asarray(y)[valid]
        assert np.allclose(x.max(0), 2) and np.allclose(x.min(0), -2)
        assert np.allclose(y.mean(0), 0, atol=1e-5) and np.allclose(y.std(0), 1, atol=1e-5)
        design = np.column_stack([x, np.ones(len(x))])
        assert np.abs(design @ np.linalg.lstsq(design, y, rcond=None)[0] - y).max() < 1e-4
    batch = drawn(tasks)
    assert np.isfinite(batch.yt).all() and set(batch.mask_c.sum(1) + batch.mask_t.sum(1)) == {11, 6}


def test_the_bounds_of_cells_are_no_observations(folder):
    tasks = from_directory(folder, x=["east", "north"], y="lead", low=2, high=4)
    with xr.open_dataset(folder / "c.nc") as found:
        grid = found.load()
    grid["east_bnds"] = ("east", "bnds"), np.zeros((3, 2))
    grid.to_netcdf(folder / "c.nc")
    again = from_directory(folder, x=["east", "north"], y="lead", low=2, high=4)
    assert np.array_equal(again.valid, tasks.valid) and np.array_equal(again.y, tasks.y)


def test_rows_with_some_of_the_columns_are_told(folder):
    table = pd.read_csv(folder / "a.csv").assign(zinc=1.0)
    table.loc[3:6, "zinc"], table.loc[1, "lead"] = np.nan, 3.0
    for file in folder.iterdir():
        file.unlink()
    table.to_csv(folder / "a.csv")
    with pytest.warns(UserWarning, match="4 of 12 rows hold some of lead, zinc and not all: they are left out"):
        tasks = from_directory(folder, x=["east", "north"], y=["lead", "zinc"])
    assert tasks.valid.sum() == 8


def test_endings_in_capitals_are_endings(folder):
    assert from_directory(folder, x="east", y="lead").x.shape[-1] == 1, "one name is a list of one"
    usual = from_directory(folder, x=["east", "north"], y="lead")
    for file in [*folder.iterdir()]:
        file.rename(file.with_suffix(file.suffix.upper()))
    capitals = from_directory(folder, x=["east", "north"], y="lead")
    assert np.array_equal(capitals.x, usual.x) and np.array_equal(capitals.y, usual.y)


def test_a_model_trains_on_a_directory_and_predicts(folder, getkey):
    tasks = from_directory(folder, x=["east", "north"], y=["lead"], low=2, high=4)
    model = npax.CNP(2, 1, encoder=(8,), size=8, decoder=(8,), key=getkey())
    fitted = npax.fit(model, tasks, steps=4, key=getkey(), batch_size=4, progress=False)
    assert np.isfinite(fitted.losses).all() and fitted.skipped == 0
    reg = npax.NeuralProcessRegressor(fitted.model).fit(np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0))
    mean, std = reg.predict(np.ones((3, 2)), return_std=True)
    assert mean.shape == (3,) and np.isfinite(mean).all() and (std > 0).all()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("east,north\n1,2\n", r"d\.csv' has no column 'lead'; it has: east, north"),
        ("east,north,lead\n2020-01-31,2,3\n2020-02-01,3,4\n", r"d\.csv' holds dates"),
        ("east,north,lead\n1,2,high\n2,3,4\n", r"'lead' of '.*d\.csv' is not of numbers"),
        ("east,north,lead\n1,,3\n2,3,4\n", r"d\.csv' has 1 rows where east, north is NaN"),
        ("east,north,lead\n1,2,\n2,3,4\n", r"d\.csv' has 1 values of lead"),
        ("", r"d\.csv' cannot be read"),
    ],
)
def test_a_bad_file_is_named(folder, content, words):
    (folder / "d.csv").write_text(content)
    with pytest.raises(ValueError, match=words):
        from_directory(folder, x=["east", "north"], y="lead")


def test_durations_are_no_numbers(folder):
    grid = xr.Dataset({"lead": ("east", np.array([1, 2, 3], "m8[s]").astype("m8[ns]"))}, {"east": [0.0, 5.0, 10.0]})
    grid.to_netcdf(folder / "d.nc")
    with pytest.raises(ValueError, match=r"d\.nc' holds dates or durations \(columns 'lead'\)"):
        from_directory(folder, x="east", y="lead")


def test_few_stations_give_small_contexts(rng):
    tasks, _ = days(rng.uniform(size=(6, 2)), rng.normal(size=(8, 6)))
    assert (tasks.low, tasks.high) == (4, 4)


def test_bad_arguments_are_named(tmp_path, rng):
    with pytest.raises(TypeError, match=r"`valid` must be of True and False, got .*: write `valid != 0`"):
        StationTask(np.zeros((1, 4, 1)), np.zeros((1, 4, 1)), np.full((1, 4), 255, np.uint8), high=2)
    with pytest.raises(FileNotFoundError, match="no 'nowhere'"):
        from_directory("nowhere", x=["x"], y="y")
    with pytest.raises(FileNotFoundError, match=r"holds none of \.csv"):
        from_directory(tmp_path, x=["x"], y="y")
    x, y = rng.uniform(size=(5, 2)), rng.normal(size=5)
    with pytest.raises(ValueError, match=r"\(times, 5\)"):
        days(x, y)
    with pytest.raises(ValueError, match=r"`x`.*\(stations, coordinates\), got \(5,\)"):
        days(x[:, 0], np.ones((3, 5)))
    with pytest.raises(ValueError, match="`x` holds NaN or infinity in 1 of 5 rows"):
        days(np.where(np.arange(5)[:, None] == 2, np.nan, x), np.ones((3, 5)))
    with pytest.raises(ValueError, match="`scaling` is of 2 columns of x, the stations have 1"):
        days(x[:, :1], rng.normal(size=(3, 5)), scaling=days(x, rng.normal(size=(3, 5)), low=1)[1])
    with pytest.raises(ValueError, match="no time"):
        days(x, np.full((3, 5), np.nan))
    with pytest.raises(ValueError, match=r"`size`.*got 6"):
        neighbourhoods(x, y, size=6)
    with pytest.raises(ValueError, match="`centres`"):
        neighbourhoods(x, y, size=3, centres=y > 99)

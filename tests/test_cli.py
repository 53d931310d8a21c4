import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import typer
import xarray as xr
from typer.testing import CliRunner
from untrained import cnp, hearing, small

import npax
import npax.plot
from npax.cli import _draw, _process, app, main
from npax.cli.predict import _thinned
from npax.cli.regular_grid import regular_grid
from npax.cli.several import repeat_option
from npax.cli.tables import as_table, check_columns, copied, read, with_dates, write
from npax.cli.train import trainings
from npax.estimators import DroppedRows, Extrapolation, PlanarDegrees


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A small model as a file; untrained, since the command does not care."""
    path = tmp_path_factory.mktemp("weights") / "small.safetensors"
    npax.save(path, cnp(3))
    return path


@pytest.fixture
def observations(tmp_path):
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(0, 4, 30), rng.uniform(0, 3, 30)
    table = pd.DataFrame({"lon": lon, "lat": lat, "temp": np.sin(lon) + lat, "name": "a"})
    table.to_csv(tmp_path / "obs.csv", index=False)
    return tmp_path / "obs.csv"


def run(*args):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        return CliRunner().invoke(app, [str(arg) for arg in args])


def predict(observations, weights, *args, x=("lon", "lat"), y="temp"):
    return run("predict", observations, "--x", *x, "--y", y, "--model", weights, *args)


def refused(result, *words):
    """Exit code 2, one message, no traceback."""
    text = re.sub(r"\s+", " ", result.output)
    assert result.exit_code == 2, text
    assert "Traceback" not in text
    for word in words:
        assert word in text, text


def test_version_and_help():
    assert run("--version").output.strip() == "npax 0.1.0"
    for command in ("demo", "predict", "train", "models"):
        assert command in run("--help").output
        assert run(command, "--help").exit_code == 0
    assert "predict {OBS} [OPTIONS]" in run("predict", "--help").output
    assert "--resolution 1" in run("predict", "--help").output
    assert "field-universal." in run("train", "--help").output


def test_the_package_runs_as_the_command_does():
    def told(*args):
        return subprocess.run([sys.executable, "-m", "npax", *args], capture_output=True, text=True)

    assert told("--version").stdout == "npax 0.1.0\n"
    assert told("predict").returncode == 2


def test_help_fills_the_lines_of_any_terminal():
    parts = [["predict"], ["average"], ["fill"], ["train"], ["bench"], ["bench", "speed"]]
    texts = {
        "predict": "zone are predicted in UTC: a grid of --resolution is in UTC",
        "bench": "leaves a checkpoint, and",
    }
    for command in parts:
        found = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "2000", "TERMINAL_WIDTH": "2000"}).output
        about = found[: found.index("╭")].splitlines()
        lines = [line.strip() for line in about if line.strip() and not line.startswith("  ")]
        assert all(line.endswith((".", ":")) or line.startswith(("Usage", "npax")) for line in lines), lines
        assert texts.get(" ".join(command), "") in found


def test_help_comes_before_the_seconds_that_jax_takes():
    code = "import sys, npax.cli; print('jax' in sys.modules); import npax.models; print('jax' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["False", "True"]


def test_mistakes_are_told_before_them_too(tmp_path):
    code = "import sys, npax.cli; npax.cli.app(sys.argv[1:], standalone_mode=False)"
    heavy = [
        "predict",
        tmp_path / "none.csv",
        "--x",
        "a",
        "b",
        "--y",
        "c",
        "--resolution",
        "1",
        "-o",
        tmp_path / "o.nc",
    ]
    program = f"import atexit, sys; atexit.register(lambda: print('jax' in sys.modules)); {code}"
    run = subprocess.run([sys.executable, "-c", program, *map(str, heavy)], capture_output=True, text=True)
    assert "There is no file" in run.stderr and run.stdout.strip() == "False"


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_columns_that_a_file_cannot_hold_are_refused_before_the_work(suffix, observations, tmp_path):
    when = pd.date_range("2020-01-01", periods=3, tz="Europe/Paris")
    points = tmp_path / "points.parquet"
    pd.DataFrame({"lon": [1.0, 2, 3], "lat": [1.0, 2, 2], "name": ["a", None, "c"], "when": when}).to_parquet(points)
    result = predict(observations, "no-such-model", "--at", points, "-o", tmp_path / f"out{suffix}")
    refused(result, "cannot hold the column 'when' of type datetime64", "write .csv or .parquet")


def test_names_that_are_modules_too_stay_what_they_are():
    code = "import npax.pretrained, npax.plot; print(npax.pretrained()); npax.fit(None)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "gp-universal" in run.stdout and "missing" in run.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("o --x lon lat --y t", "o --x lon --x lat --y t"),
        ("o --x lon --x lat --y t", "o --x lon --x lat --y t"),
        ("o --x=lon --x=lat -o f", "o --x=lon --x=lat -o f"),
        ("o --x=lon lat -o f", "o --x=lon --x lat -o f"),
        ("o --y t u --x a b c", "o --y t u --x a --x b --x c"),
        ("o --x", "o --x"),
    ],
)
def test_options_of_several_values(given, expected):
    assert repeat_option(given.split(), "--x") == expected.split()


def test_predicts_on_a_grid_and_draws_it(observations, weights, tmp_path):
    out, picture = tmp_path / "new" / "map.nc", tmp_path / "map.png"
    result = predict(observations, weights, "--resolution", 1, "-o", out, "--plot", picture, "--coords", "latlon")
    assert result.exit_code == 0, result.output
    grid = xr.load_dataset(out)
    assert dict(grid.sizes) == {"lat": 4, "lon": 5}
    assert np.isfinite(grid.temp_mean).all() and (grid.temp_std > 0).all()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_column_of_known_errors(observations, weights, tmp_path):
    table = pd.read_csv(observations).assign(se=np.linspace(0.1, 2.0, 30))
    table.to_csv(observations, index=False)
    model, out = tmp_path / "hears.safetensors", tmp_path / "out.csv"
    npax.save(model, small())
    result = predict(observations, model, "--error", "se", "--at", observations, "-o", out)
    assert result.exit_code == 0, result.output
    expected = npax.interpolate(table, table, ["lon", "lat"], "temp", error="se", model=model)
    assert np.allclose(pd.read_csv(out).temp_std, expected.temp_std, atol=1e-6)
    scores = npax.metrics.score_report(table.temp, expected.temp_mean, np.hypot(expected.temp_std, table.se))
    assert f"crps {scores['crps']:.4g}" in re.sub(r"\s+", " ", result.output)
    table.drop(columns="name").to_xarray().to_netcdf(tmp_path / "places.nc")
    result = predict(observations, model, "--error", "se", "--at", tmp_path / "places.nc", "-o", tmp_path / "out.nc")
    assert f"crps {scores['crps']:.4g}" in re.sub(r"\s+", " ", result.output)
    refused(predict(observations, model, "--error", "sd", "--at", observations, "-o", out), "'sd'", "se")
    refused(predict(observations, weights, "--error", "se", "--at", observations, "-o", out), "not made for any")


@pytest.mark.parametrize("size", [(3, 4), (1, 4), (3, 1), (1, 1)])
def test_grids_whose_axes_have_names_of_their_own_and_transects_are_drawn(size, observations, weights, tmp_path):
    lat, lon = (np.linspace(1.0, 2.0, n) for n in size)
    axes = xr.Dataset(coords={"lat": lat, "lon": lon})
    named = xr.Dataset(coords={"lat": ("row", lat), "lon": ("column", lon)})
    for i, grid in enumerate((axes, named)):
        grid.to_netcdf(tmp_path / "grid.nc")
        picture = tmp_path / f"{i}.png"
        result = predict(observations, weights, "--at", tmp_path / "grid.nc", "--plot", picture)
        assert result.exit_code == 0, result.output
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_values_that_are_no_numbers_are_not_scored(observations, weights, tmp_path):
    pd.DataFrame({"lon": [0.5, 1.5], "lat": [1.0, 2.0], "temp": ["missing", "1.0"]}).to_csv(tmp_path / "points.csv")
    out = tmp_path / "out.csv"
    result = predict(observations, weights, "--at", tmp_path / "points.csv", "-o", out)
    assert result.exit_code == 0 and "not scored" in result.output, result.output
    assert np.isfinite(pd.read_csv(out)["temp_mean"]).all()


def test_scores_on_what_was_given_are_no_test_and_told(observations, weights, tmp_path):
    own = pd.read_csv(observations)
    others = own.head(5).assign(temp=own.temp.head(5) + 1)
    pd.concat([own.head(7), others]).to_csv(tmp_path / "points.csv", index=False)
    result = predict(observations, weights, "--at", tmp_path / "points.csv", "-o", tmp_path / "out.csv")
    assert "scores of temp on 12 values" in result.output and "7 of them are observations" in result.output, (
        result.output
    )
    others.to_csv(tmp_path / "points.csv", index=False)
    result = predict(observations, weights, "--at", tmp_path / "points.csv", "-o", tmp_path / "out.csv")
    assert "scores of temp on 5 values" in result.output and "of them" not in result.output, result.output


def test_several_columns_are_each_predicted_as_alone(observations, tmp_path):
    """Each from the rows where it is known, with errors of its own, and scored by itself."""
    table = pd.read_csv(observations).assign(salt=lambda t: 30 + t.lon, some=0.1, more=0.3)
    table.loc[:4, "salt"] = np.nan
    table.to_csv(tmp_path / "both.csv", index=False)
    table.tail(7).assign(salt=31.0).to_csv(tmp_path / "points.csv", index=False)
    where = ["--at", tmp_path / "points.csv", "-o", tmp_path / "out.csv"]
    npax.save(tmp_path / "hears.safetensors", small())
    given = ["predict", tmp_path / "both.csv", "--x", "lon", "lat", "--model", tmp_path / "hears.safetensors", *where]
    with pytest.warns(DroppedRows, match="5 of 30 rows of 'salt' hold NaN"):
        result = run(*given, "--y", "temp", "salt", "--error", "some", "more")
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "scores of temp on 7 values" in told and "scores of salt on 7 values" in told
    assert told.count("of them are observations") == 1
    both = pd.read_csv(tmp_path / "out.csv")
    for name, error in (("temp", "some"), ("salt", "more")):
        table.dropna(subset=name).to_csv(tmp_path / "alone.csv", index=False)
        given[1] = tmp_path / "alone.csv"
        assert run(*given, "--y", name, "--error", error).exit_code == 0
        alone = pd.read_csv(tmp_path / "out.csv")
        for part in ("mean", "std"):
            np.testing.assert_allclose(both[f"{name}_{part}"], alone[f"{name}_{part}"], rtol=1e-5)
    refused(run(*given, "--y", "temp", "salt", "--error", "some"), "`error` must name a column for each of `y`")
    picture = ["--y", "temp", "salt", "--plot", tmp_path / "out.png"]
    refused(run(*given, *picture), "draws one column of values, got 2: temp, salt")
    refused(run(*given, "--y", "temp", "wrong"), "has no column 'wrong'")


def test_grids_with_values_of_their_own_are_scored_as_points_are(observations, weights, tmp_path):
    """Whatever the order of their dimensions."""
    points = pd.DataFrame({"lon": [0.5, 0.5, 1.5, 1.5], "lat": [1.0, 2.0, 1.0, 2.0], "temp": [1.0, np.nan, 3.0, 4.0]})
    points.to_csv(tmp_path / "points.csv", index=False)
    grid = points.set_index(["lon", "lat"]).to_xarray()
    grid.to_netcdf(tmp_path / "grid.nc")
    turned = xr.Dataset({"temp": grid.temp.T}, coords={"lon": grid.lon, "lat": grid.lat}).assign(other=grid.temp)
    turned.to_netcdf(tmp_path / "turned.nc")
    results = [
        predict(observations, weights, "--at", tmp_path / name, "-o", tmp_path / "out.nc")
        for name in ("points.csv", "grid.nc", "turned.nc")
    ]
    first, *others = (re.search(r"scores of temp on 3 values: .*", result.output) for result in results)
    assert first and all(other and other[0] == first[0] for other in others), [result.output for result in results]
    grid.expand_dims(time=2).to_netcdf(tmp_path / "times.nc")
    result = predict(observations, weights, "--at", tmp_path / "times.nc", "-o", tmp_path / "out.nc")
    assert result.exit_code == 0 and "has other dimensions: the prediction is" in result.output
    day = np.datetime64("2020-01-01", "ns")
    grid.assign(temp=(grid.temp.dims, np.full((2, 2), day))).to_netcdf(tmp_path / "dates.nc")
    result = predict(observations, weights, "--at", tmp_path / "dates.nc", "-o", tmp_path / "out.nc")
    assert result.exit_code == 0 and "not scored on it" in " ".join(result.output.split()), result.output


def test_rows_that_end_with_a_comma_keep_their_columns(observations, weights, tmp_path):
    lines = observations.read_text().splitlines()
    expected = predict(observations, weights, "--at", observations, "-o", tmp_path / "expected.csv")
    observations.write_text("\n".join([lines[0], *(f"{line}," for line in lines[1:])]))
    result = predict(observations, weights, "--at", observations, "-o", tmp_path / "out.csv")
    assert result.exit_code == expected.exit_code == 0, result.output
    pd.testing.assert_frame_equal(*(pd.read_csv(tmp_path / name) for name in ("out.csv", "expected.csv")))
    observations.write_text("\n".join([lines[0], *(f"{line},7" for line in lines[1:])]))
    result = predict(observations, weights, "--resolution", 1, "-o", tmp_path / "map.nc")
    refused(result, "obs.csv' cannot be read as a table: its rows have more values than its first line has names")


def test_semicolons_and_decimal_commas_are_read(observations, weights, tmp_path):
    expected = predict(observations, weights, "--at", observations, "-o", tmp_path / "expected.csv")
    observations.write_text(observations.read_text().replace(",", ";").replace(".", ","))
    result = predict(observations, weights, "--at", observations, "-o", tmp_path / "out.csv")
    assert result.exit_code == expected.exit_code == 0, result.output
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "lon, lat, t\n1, 2, 3\n4, , 6\n",
        ' lon ,lat ,"t"\r\n1,2,3\r\n4,,6\r\n',
        "# two floats\nlon,lat,t\n1,2,3\n4,,6\n",
        '\n# 5" of rain, #2\n\n#\nlon,lat,t\n\n1,2,3\n4,,6\n',
        "\ufeff# two floats\nlon,lat,t\n1,2,3,\n4,,6,\n",
    ],
)
def test_spaces_and_comments_are_no_part_of_a_table(text, tmp_path):
    (tmp_path / "floats.csv").write_text(text, encoding="utf-8", newline="")
    expected = pd.DataFrame({"lon": [1, 4], "lat": [2, np.nan], "t": [3, 6]})
    pd.testing.assert_frame_equal(read(tmp_path / "floats.csv"), expected)


def test_names_in_a_comment_are_asked_for(tmp_path):
    (tmp_path / "floats.csv").write_text("# lon,lat,t\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match=r"first line is '1,2,3': write the names there, without '#'"):
        read(tmp_path / "floats.csv")


def test_a_table_of_commas_may_have_other_marks_in_its_names_and_texts(tmp_path):
    for text in ('lon,"depth; m"\n1,2\n', "sea water,lon\na b,2\n", "water depth\n3\n"):
        (tmp_path / "floats.csv").write_text(text)
        assert len(read(tmp_path / "floats.csv")) == 1


@pytest.mark.filterwarnings("ignore::npax.estimators.DroppedRows")
def test_levels_of_an_index_and_truth_values_serve(observations, weights, tmp_path):
    table = pd.read_csv(observations).drop(columns="name").assign(temp=lambda t: t["temp"] > 1)
    table.to_parquet(tmp_path / "plain.parquet")
    table.set_index(["lon", "lat"]).to_parquet(tmp_path / "levels.parquet")
    flagged = table.astype({"temp": object})
    flagged.loc[30] = [1.0, 1.0, None]
    flagged.to_parquet(tmp_path / "missing.parquet")
    for name in ("plain", "levels", "missing"):
        args = "--resolution", 1, "-o", tmp_path / f"{name}.nc"
        result = predict(tmp_path / f"{name}.parquet", weights, *args)
        assert result.exit_code == 0, result.output
        picture = predict(tmp_path / f"{name}.parquet", weights, "--resolution", 1, "--plot", tmp_path / "map.png")
        assert picture.exit_code == 0, picture.output
    plain = xr.open_dataset(tmp_path / "plain.nc")
    assert all(plain.equals(xr.open_dataset(tmp_path / f"{name}.nc")) for name in ("levels", "missing"))


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_column_without_a_range_is_named(value, observations, weights, tmp_path):
    table = pd.read_csv(observations)
    table.assign(lon=np.where(np.isfinite(value), 0.0, value)).to_csv(observations, index=False)
    for output in ("map.nc", "map.zarr"):
        result = predict(observations, weights, "--resolution", 1, "-o", tmp_path / output)
        refused(result, "The column 'lon' has no finite range")


@pytest.mark.parametrize(
    ("option", "name", "words"), [("-o", "map.csv", "must end in .nc"), ("--plot", "map.xyz", ".png, .pdf or .svg")]
)
def test_the_demo_refuses_before_it_works(option, name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(run("demo", option, tmp_path / name), words)


@pytest.mark.parametrize(("lon", "ocean"), [(20.0, False), (-30.0, True)])  # the Sahara, the Atlantic
def test_land_hides_the_field_only_where_the_ocean_is_observed(
    lon, ocean, observations, weights, tmp_path, monkeypatch
):
    table = pd.read_csv(observations)
    table.assign(lon=table["lon"] + lon, lat=table["lat"] + 20).to_csv(observations, index=False)
    grid = xr.Dataset(
        {"temp": (("lat", "lon"), [[1.0, 2.0], [2.0, np.nan]])}, {"lat": [20.0, 22.0], "lon": [lon, lon + 2]}
    )
    grid.to_netcdf(tmp_path / "grid.nc")
    drawn = []

    def mean_and_std(*_, land, **__):
        drawn.append(land)
        return npax.plot.scattered([0.0], [0.0], [0.0], [0.0])

    monkeypatch.setattr("npax.plot.predictions.mean_and_std", mean_and_std)
    args = ["--coords", "latlon", "--plot", tmp_path / "map.png"]
    for result in (
        predict(observations, weights, "--resolution", 1, *args),
        run("fill", tmp_path / "grid.nc", *args, "--model", "field-universal"),
    ):
        assert result.exit_code == 0, result.output
    assert drawn == [ocean, ocean]


@pytest.mark.filterwarnings("ignore::npax.estimators.Extrapolation", "ignore::npax.estimators.PlanarDegrees")
def test_grids_end_at_the_poles_and_go_round_the_earth_once(observations, weights, tmp_path):
    table = pd.read_csv(observations)
    table.assign(lon=np.linspace(-180, 180, 30), lat=np.linspace(-78, 89.9, 30)).to_csv(observations, index=False)
    out, picture = tmp_path / "map.nc", tmp_path / "map.png"
    result = predict(observations, weights, "--resolution", 7, "-o", out, "--plot", picture, "--coords", "latlon")
    assert result.exit_code == 0, result.output
    grid = xr.load_dataset(out)
    np.testing.assert_allclose(grid.lat, np.arange(-84, 85, 7))
    np.testing.assert_allclose(grid.lon, np.arange(-182, 176, 7))
    table.assign(lat=np.linspace(-90, 90, 30)).to_csv(observations, index=False)
    assert predict(observations, weights, "--resolution", 30, "-o", out, "--coords", "latlon").exit_code == 0
    assert list(xr.load_dataset(out).lat) == [-90, -60, -30, 0, 30, 60, 90]
    assert predict(observations, weights, "--resolution", 60, "-o", out).exit_code == 0
    assert list(xr.load_dataset(out).lat) == [-120, -60, 0, 60, 120], "a plane has no poles"


def test_grids_begin_where_the_observations_do_and_have_short_coordinates():
    table = pd.DataFrame({"x": [0.3, 0.6], "y": [1e6, 1e6 + 1]})
    grid = regular_grid(table, ["x", "y"], [0.1])
    assert [str(x) for x in grid.x.values] == ["0.3", "0.4", "0.5", "0.6"]
    assert grid.y[0] == 1e6 and str(grid.y.values[3]) == "1000000.3" and grid.sizes["y"] == 11


def test_a_grid_across_the_date_line_takes_the_short_way():
    lat = np.linspace(-20, -14, 7)
    for lon, expected in (
        (np.r_[177.2, 178, 179, 180, -180, -179, -177.5], np.arange(177, 184)),
        (np.r_[-179.5, 179.5, 180.5, 181.5, 182, 183, 184], np.arange(179, 185)),
        (np.r_[-10.0, 0, 5, 10, 20, 25, 30], np.arange(-10, 31)),
        (np.linspace(-180, 179, 7), np.arange(-180, 180)),
    ):
        grid = regular_grid(pd.DataFrame({"lon": lon, "lat": lat}), ["lon", "lat"], [1.0], coords="latlon")
        np.testing.assert_allclose(grid.lon, expected)


def test_points_across_the_date_line_are_drawn_the_short_way(observations, weights, tmp_path, monkeypatch):
    table = pd.read_csv(observations)
    table.assign(lon=(table["lon"] + 358) % 360 - 180).to_csv(observations, index=False)
    points = pd.DataFrame({"lon": [179.0, -179.0, -178.5], "lat": [1.0, 2.0, 1.5]})
    points.to_csv(tmp_path / "points.csv", index=False)
    drawn, scattered = [], npax.plot.scattered
    monkeypatch.setattr(
        "npax.plot.predictions.scattered", lambda *a, **style: drawn.append(scattered(*a, **style)) or drawn[0]
    )
    args = ["--at", tmp_path / "points.csv", "--coords", "latlon", "--plot", tmp_path / "map.png"]
    result = predict(observations, weights, *args)
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(drawn[0].axes[0].collections[0].get_offsets()[:, 0], [179, 181, 181.5])


def test_grids_of_any_size_are_written_block_by_block(observations, weights, tmp_path, monkeypatch):
    monkeypatch.setattr(__import__("npax.estimators.store", fromlist=["BLOCK"]), "BLOCK", 8)
    monkeypatch.setattr(__import__("npax.cli.regular_grid", fromlist=["MOST_CELLS"]), "MOST_CELLS", 3)  # held in memory
    path, picture = tmp_path / "new" / "map.zarr", tmp_path / "map.png"
    result = predict(observations, weights, "--resolution", 1, "-o", path, "--plot", picture)
    assert result.exit_code == 0 and "strategy: exact" in result.output, result.output
    grid = xr.load_dataset(path, engine="zarr")
    assert dict(grid.sizes) == {"lat": 4, "lon": 5} and np.isfinite(grid.temp_mean).all()
    assert picture.read_bytes().startswith(b"\x89PNG")
    refused(predict(observations, weights, "--resolution", 0.5, "-o", path), "another prediction", "Delete it")
    at = predict(observations, weights, "--at", path, "-o", tmp_path / "again.nc")
    assert at.exit_code == 0, at.output
    np.testing.assert_allclose(xr.load_dataset(tmp_path / "again.nc").temp_mean, grid.temp_mean, rtol=1e-5)
    at = predict(observations, weights, "--at", observations, "-o", tmp_path / "points.zarr")
    assert at.exit_code == 0 and xr.load_dataset(tmp_path / "points.zarr", engine="zarr").sizes == {"row": 30}


def test_ctrl_c_says_how_to_go_on_with_a_store(observations, weights, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(npax.estimators, "interpolate", stopped)
    result = predict(observations, weights, "--resolution", 1, "-o", tmp_path / "map.zarr")
    assert result.exit_code == 130 and "The same command goes on" in result.output


def test_two_columns_of_one_name_are_refused(weights, tmp_path):
    (tmp_path / "twice.csv").write_text('lon,lat," lon",temp\n1,2,103,4\n2,3,104,5\n')
    result = predict(tmp_path / "twice.csv", weights, "--resolution", 1, "-o", tmp_path / "map.nc")
    refused(result, "several of its columns are named 'lon'")


def test_places_of_a_swath_without_a_coordinate_are_not_scored(observations, weights, tmp_path):
    lon, lat, temp = np.array([[[0.5, np.nan, 1.5]], [[1.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]])
    dims = ("row", "cell")
    swath = xr.Dataset({"temp": (dims, temp)}, coords={"lon": (dims, lon), "lat": (dims, lat)})
    swath.to_netcdf(tmp_path / "swath.nc")
    given = ["--at", tmp_path / "swath.nc", "-o", tmp_path / "out.nc", "--plot", tmp_path / "swath.png"]
    result = predict(observations, weights, *given)
    assert (tmp_path / "swath.png").exists()
    assert result.exit_code == 0 and "scores of temp on 2 values: rmse" in result.output, result.output


def test_a_file_gives_what_the_library_gives(observations, weights, tmp_path):
    points = pd.DataFrame({"lon": [0.5, 1.5], "lat": [1.0, 2.0], "temp": [1.0, np.nan], "site": ["p", "q"]})
    points.to_csv(tmp_path / "points.csv", index=False)
    outputs = [tmp_path / f"out{suffix}" for suffix in (".csv", ".parquet", ".nc", ".zarr")]
    for out in outputs:
        result = predict(observations, weights, "--at", tmp_path / "points.csv", "-o", out)
        assert result.exit_code == 0, result.output
        assert "scores of temp on 1 values: rmse" in result.output
    table = pd.read_csv(observations)
    mean, std = (
        npax.NeuralProcessRegressor(str(weights))
        .fit(table[["lon", "lat"]].to_numpy(), table["temp"].to_numpy())
        .predict(points[["lon", "lat"]].to_numpy(), return_std=True)
    )
    for found in map(read, outputs):
        np.testing.assert_allclose(np.asarray(found["temp_mean"]), mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.asarray(found["temp_std"]), std, rtol=1e-4, atol=1e-5)
        assert list(np.asarray(found["site"])) == ["p", "q"]


def test_covariates_come_with_the_places(observations, weights, tmp_path):
    table = pd.read_csv(observations)
    rng = np.random.default_rng(1)
    table = table.assign(elevation=rng.uniform(0, 1, len(table)), soil=rng.uniform(0, 1, len(table)))
    table["temp"] += 3 * table.elevation
    table.to_csv(observations, index=False)
    points = pd.DataFrame({"lon": [0.5, 1.5], "lat": [1.0, 2.0], "elevation": [0.2, 0.8], "soil": [0.1, 0.7]})
    points.to_csv(tmp_path / "points.csv", index=False)
    at = ("--at", tmp_path / "points.csv", "-o", tmp_path / "out.csv")
    result = predict(observations, weights, "--covariates", "elevation", "soil", *at)
    assert result.exit_code == 0, result.output
    options = {"x": ["lon", "lat"], "y": "temp", "covariates": ["elevation", "soil"], "model": str(weights)}
    expected = npax.interpolate(table, points, **options)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["temp_mean"], expected["temp_mean"], rtol=1e-4)
    refused(
        predict(observations, weights, "--covariates", "elevation", "--resolution", 1, "-o", tmp_path / "grid.nc"),
        "--covariates must be known where values are predicted",
    )
    refused(predict(observations, weights, "--covariates", "slope", *at), "slope", "obs.csv")
    ground = xr.Dataset({"soil": ("lat", [0.0, 1.0, 0.5])}, {"lon": [0.0, 1.0, 2.0], "lat": [0.0, 1.0, 3.0]})
    ground.to_netcdf(tmp_path / "ground.nc")
    table[["lon", "lat", "temp"]].to_csv(tmp_path / "without.csv", index=False)
    on_grid = ("--at", tmp_path / "ground.nc", "-o", tmp_path / "map.nc")
    result = predict(tmp_path / "without.csv", weights, "--covariates", "soil", *on_grid)
    assert result.exit_code == 0, result.output
    read_off = table.assign(soil=np.interp(table.lat, ground.lat, ground.soil))
    expected = npax.interpolate(read_off, ground, **options | {"covariates": "soil"})
    xr.testing.assert_allclose(xr.load_dataset(tmp_path / "map.nc").temp_mean, expected.temp_mean, rtol=1e-4)
    refused(predict(observations, weights, "--covariates", "slope", *on_grid), "slope", "ground.nc")
    points.drop(columns="soil").to_csv(tmp_path / "points.csv", index=False)
    refused(predict(observations, weights, "--covariates", "soil", *at), "soil", "points.csv")


def test_counts_have_rates(tmp_path):
    rng = np.random.default_rng(1)
    tested = rng.integers(5, 50, 40)
    table = pd.DataFrame({"x": rng.uniform(0, 9, 40), "cases": rng.binomial(tested, 0.3), "tested": tested})
    table.to_csv(tmp_path / "obs.csv", index=False)
    points = pd.DataFrame({"x": [0.5, 1.5], "cases": [1, 2]})
    points.to_csv(tmp_path / "points.csv", index=False)
    npax.save(tmp_path / "m.safetensors", hearing(3))
    given = [tmp_path / "obs.csv", "--x", "x", "--y", "cases", "--model", tmp_path / "m.safetensors"]
    given += ["--at", tmp_path / "points.csv", "-o", tmp_path / "out.csv", "--exposure", "tested"]
    result = run("predict", *given, "--counts", "poisson")
    assert result.exit_code == 0 and "scores" not in result.output, result.output
    options = {"counts": npax.counts.Poisson(), "exposure": "tested", "model": str(tmp_path / "m.safetensors")}
    expected = npax.interpolate(table, points, "x", "cases", **options)
    for name in ("cases_mean", "cases_std"):
        np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")[name], expected[name], rtol=1e-4)
    refused(run("predict", *given), "--exposure is of counts: say which, --counts poisson or --counts binomial")
    points = points.assign(tested=[10.0, 20.0])
    points.to_csv(tmp_path / "points.csv", index=False)
    for kind, counts in {"poisson": npax.counts.Poisson(), "binomial": npax.counts.Binomial()}.items():
        reg = npax.CountRegressor(counts, npax.NeuralProcessRegressor(str(tmp_path / "m.safetensors")))
        reg.fit(table[["x"]].to_numpy(), table["cases"], exposure=tested)
        scores = reg.score_report(points[["x"]].to_numpy(), points["cases"], exposure=points["tested"])
        result = run("predict", *given, "--counts", kind)
        assert f"scores of cases on 2 counts: rmse {scores['rmse']:.4g}, " in result.output, result.output
        assert f"nll {scores['nll']:.4g}" in result.output
    points.assign(cases=[1, -2]).to_csv(tmp_path / "points.csv", index=False)
    result = run("predict", *given, "--counts", "poisson")
    assert result.exit_code == 0 and "not scored on cases of the places" in result.output
    refused(run("predict", *given[:-1], "people", "--counts", "poisson"), "no column 'people'")


def test_quantiles_and_what_is_above_are_written(observations, weights, tmp_path):
    given = [observations, "--x", "lon", "lat", "--y", "temp", "--model", weights, "--at", observations, "-o"]
    asked = ["--quantiles", 0.025, 0.975, "--above", 16, -2.5]
    expected = ["temp_mean", "temp_std", "temp_q0.025", "temp_q0.975", "temp_above_16", "temp_above_-2.5"]
    for command, names in (("predict", [*pd.read_csv(observations), *expected]), ("average", expected)):
        result = run(command, *given, tmp_path / "out.csv", *asked)
        assert result.exit_code == 0, result.output
        found = pd.read_csv(tmp_path / "out.csv")
        assert list(found) == names and (found["temp_above_-2.5"] > 0.9).all()
        assert np.allclose(found["temp_q0.975"], found.temp_mean + 1.959964 * found.temp_std)
    refused(run("predict", *given, tmp_path / "out.csv", "--quantiles", 95), "`quantiles`", "above 0 and below 1")


@pytest.mark.parametrize("command", ["predict", "average"])
def test_what_was_computed_is_written_though_nobody_reads(command, observations, weights, tmp_path, monkeypatch):
    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr(_process.out, "print", closed)
    given = [observations, "--x", "lon", "lat", "--y", "temp", "--model", weights, "--at", observations, "-o"]
    assert run(command, *given, tmp_path / "out.csv").exit_code != 0
    assert "temp_mean" in pd.read_csv(tmp_path / "out.csv")


def test_what_is_above_is_drawn(monkeypatch):
    drawn = []
    monkeypatch.setattr(_draw, "_save", lambda figure, path: drawn.append(figure))
    names = ["temp_mean", "temp_std", "temp_above_16", "temp_above_-2.5"]
    table = pd.DataFrame(
        {"lon": [0.0, 1, 2], "lat": [0.0, 2, 1], **{name: [0.2, 0.5, 0.7] for name in names}, "temp": 1.0}
    )
    grid = xr.Dataset(dict.fromkeys(names, (("lat", "lon"), np.full((2, 3), 0.5))), {"lat": [0, 1], "lon": [0, 1, 2]})
    for prediction, x in ((table, ["lon"]), (table, ["lon", "lat"]), (grid, ["lon", "lat"])):
        _draw.draw(prediction, table, x, "temp", "planar", Path("a.png"), "temp")
    line, *maps = drawn
    told = ["probability of temp above 16", "probability of temp above -2.5"]
    assert [curve.get_label() for curve in line.axes[1].lines] == told
    assert [curve.get_ydata().tolist() for curve in line.axes[1].lines] == 2 * [[0.2, 0.5, 0.7]]
    for figure in maps:
        assert [ax.get_xlabel() for ax in figure.axes if ax.get_label() == "<colorbar>"][2:] == told


def test_positive_values_are_log_normal_where_asked(observations, weights, tmp_path):
    table = pd.read_csv(observations).assign(temp=lambda t: np.exp(t.temp / 10))
    table.to_csv(tmp_path / "obs.csv", index=False)
    given = [tmp_path / "obs.csv", "--x", "lon", "lat", "--y", "temp", "--model", weights, "--at", tmp_path / "obs.csv"]
    given += ["--lognormal", "-o", tmp_path / "out.csv"]
    options = {"x": ["lon", "lat"], "y": "temp", "lognormal": True, "model": weights}
    expected = {"predict": npax.interpolate(table, table, **options), "average": npax.average(table, table, **options)}
    for command, of_library in expected.items():
        result = run(command, *given)
        assert result.exit_code == 0, result.output
        found = pd.read_csv(tmp_path / "out.csv")
        for name in ("temp_mean", "temp_std"):
            np.testing.assert_allclose(found[name], of_library[name], rtol=1e-4)
    reg = npax.LogNormalRegressor(npax.NeuralProcessRegressor(str(weights)))
    scores = reg.fit(table[["lon", "lat"]], table.temp).score_report(table[["lon", "lat"]], table.temp)
    result = run("predict", *given)
    assert all(f"{name} {score:.4g}" in result.output for name, score in scores.items()), (result.output, scores)
    refused(run("predict", *given, "--counts", "poisson"), "leave --lognormal out")


@pytest.mark.parametrize("exposure", [True, False])
def test_rates_are_drawn_beside_rates(exposure, tmp_path, monkeypatch):
    from npax.cli import _draw

    drawn = []
    monkeypatch.setattr(_draw, "draw", lambda *of: drawn.append(of))
    table = pd.DataFrame({"x": np.arange(6.0), "cases": [3, 1, 4, 1, 5, 9], "people": [10.0, 20, 30, 40, 50, 60]})
    table.to_csv(tmp_path / "obs.csv", index=False)
    npax.save(tmp_path / "m.safetensors", hearing(3))
    given = [tmp_path / "obs.csv", "--x", "x", "--y", "cases", "--counts", "poisson", "--resolution", 1]
    given += ["--model", tmp_path / "m.safetensors", "--plot", tmp_path / "a.png"]
    result = run("predict", *given, *(["--exposure", "people"] if exposure else []))
    assert result.exit_code == 0, result.output
    (_, seen, *_, name) = drawn[0]
    rates = table.cases / (table.people if exposure else 1)
    assert name == "rate of cases" and np.allclose(seen.cases, rates)


def test_averages_of_several_columns_are_each_those_of_one(observations, weights, tmp_path):
    """Also where one is predicted in tiles and the other all at once, which is told."""
    table = pd.read_csv(observations).assign(salt=lambda t: 30 + t.lon)
    rng = np.random.default_rng(1)
    more = pd.DataFrame({"lon": rng.uniform(0, 4, 2500), "lat": rng.uniform(0, 3, 2500)})
    table = pd.concat([table, more.assign(temp=np.sin(9 * more.lon))])
    table.to_csv(tmp_path / "both.csv", index=False)
    table.tail(9)[["lon", "lat"]].assign(side="west").to_csv(tmp_path / "places.csv", index=False)
    given = ["average", tmp_path / "both.csv", "--x", "lon", "lat", "--model", weights]
    given += ["--at", tmp_path / "places.csv", "--by", "side"]
    with pytest.warns(DroppedRows, match="2500 of 2530 rows of 'salt'"):
        result = run(*given, "--y", "temp", "salt", "-o", tmp_path / "both.nc")
    told = " ".join(result.output.split())
    assert (
        result.exit_code == 0 and "strategy: temp tiled (a place sees the observations around it); salt exact" in told
    )
    both = xr.load_dataset(tmp_path / "both.nc")
    table.dropna(subset="salt").to_csv(tmp_path / "both.csv", index=False)
    assert run(*given, "--y", "salt", "-o", tmp_path / "one.nc").exit_code == 0
    one = xr.load_dataset(tmp_path / "one.nc")
    for part in ("mean", "std"):
        np.testing.assert_allclose(both[f"salt_{part}"], one[f"salt_{part}"], rtol=1e-4)
    refused(run(*given, "--y", "temp", "salt", "--plot", tmp_path / "a.png"), "draws one column of values, got 2")


def test_averages_over_regions(observations, weights, tmp_path):
    places = pd.read_csv(observations).assign(side=lambda t: np.where(t.lon > 2, "east", "west"), area=2.0)
    places.to_csv(tmp_path / "places.csv", index=False)
    given = [observations, "--x", "lon", "lat", "--y", "temp", "--model", weights, "--at", tmp_path / "places.csv"]
    expected = npax.average(places, places, ["lon", "lat"], "temp", by="side", weights="area", model=weights)
    result = run("average", *given, "--by", "side", "--weights", "area", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0 and f"east {expected.temp_mean['east']:.4g}" in " ".join(result.output.split())
    found = pd.read_csv(tmp_path / "out.csv", index_col="side")
    assert np.allclose(found, expected, rtol=1e-4) and list(found) == ["temp_mean", "temp_std"]
    result = run("average", *given, "--by", "side", "-o", tmp_path / "out.nc")
    assert result.exit_code == 0 and np.allclose(xr.load_dataset(tmp_path / "out.nc").temp_mean, expected.temp_mean)
    at = ("row", [1.0, 2.0, 3.0])
    cells = xr.Dataset({"sea": ("row", ["a", "b", "b"])}, coords={"lon": at, "lat": at})
    cells.to_netcdf(tmp_path / "cells.nc")
    of_grid = [*given[:-1], tmp_path / "cells.nc", "--by", "sea", "-o"]
    for name in ("a.csv", "a.nc"):
        assert run("average", *of_grid, tmp_path / name).exit_code == 0
    one, other = pd.read_csv(tmp_path / "a.csv"), xr.load_dataset(tmp_path / "a.nc")
    assert list(one.sea) == list(other.sea.to_numpy()) == ["a", "b"]
    assert np.allclose(one.temp_std, other.temp_std, rtol=1e-4)
    result = run("average", *given)
    assert result.exit_code == 0 and "temp_mean" in result.output
    coded = places.assign(code=np.where(places.lon > 2, 123456.0, 123457.0), sort=places.side.astype("category"))
    coded.to_parquet(tmp_path / "coded.parquet")
    result = run("average", *given[:-1], tmp_path / "coded.parquet", "--by", "code")
    assert "123456.0" in result.output and "123457.0" in result.output
    of_kinds = [*given[:-1], tmp_path / "coded.parquet", "--by", "sort", "-o"]
    assert run("average", *of_kinds, tmp_path / "sort.csv").exit_code == 0
    refused(run("average", *of_kinds, tmp_path / "sort.nc"), "cannot hold the column 'sort'")
    refused(run("average", *given, "--by", "basin"), "has no column 'basin'; it has")
    refused(run("average", *given, "--weights", "side"), "Column 'side' of", "not of numbers")
    refused(run("average", *given, "-o", tmp_path / "out.txt"), "must end in one of")


@pytest.mark.parametrize("by", [["side"], ["side", "month"], ["month"], []])
def test_averages_are_drawn(by, observations, weights, tmp_path):
    places = pd.read_csv(observations).assign(side=lambda t: np.where(t.lon > 2, "east", "west"))
    places.assign(month=np.resize([1, 2, 3], len(places))).to_csv(tmp_path / "places.csv", index=False)
    given = [observations, "--x", "lon", "lat", "--y", "temp", "--model", weights, "--at", tmp_path / "places.csv"]
    given += ["--plot", tmp_path / "a.png", "-o", tmp_path / "out.csv", *(["--by", *by] if by else [])]
    result = run("average", *given)
    assert result.exit_code == 0 and "picture: " in result.output, result.output
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert list(pd.read_csv(tmp_path / "out.csv")) == [*by, "temp_mean", "temp_std"]
    run("average", *given, "--quantiles", 0.025)
    assert list(pd.read_csv(tmp_path / "out.csv")) == [*by, "temp_mean", "temp_std", "temp_q0.025"]
    refused(run("average", *given, "--plot", tmp_path / "a.txt"), "must end in .png, .pdf or .svg")


def test_names_of_regions_are_read_as_they_are_written(observations, weights, tmp_path):
    """NA is Namibia, 01001 a code; whole numbers stay in their order; what is left empty is in no region."""
    table = pd.read_csv(observations)
    table["country"] = np.resize(["NA", "ZA", "BW", ""], len(table))
    table["code"], table["month"] = np.resize(["01001", "02"], len(table)), np.resize([2, 10], len(table))
    table.to_csv(tmp_path / "places.csv", index=False)
    given = [observations, "--x", "lon", "lat", "--y", "temp", "--model", weights, "--no-views"]
    given += ["--at", tmp_path / "places.csv", "-o", tmp_path / "out.csv", "--by"]
    for name, expected in {"country": ["BW", "NA", "ZA"], "code": ["01001", "02"], "month": ["2", "10"]}.items():
        result = run("average", *given, name)
        assert result.exit_code == 0, result.output
        found = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
        assert found[name].tolist() == expected
        assert (f"places in no region: {(table.country == '').sum()}" in result.output) == (name == "country")
        assert "strategy: exact (every place" in result.output


def test_columns_that_are_not_used_are_copied_as_they_are_written(observations, weights, tmp_path):
    table = pd.read_csv(observations).drop(columns="temp")
    others = {"well": ["007", "NA", "12"], "year": [2001, 1999, 2000], "depth": [0.5, 1.25, 2.0]}
    others |= {"rank": [1, None, 3], "level": [1.0, 2.0, 3.0], "open": [True, False, True], "none": [np.nan] * 3}
    others |= {"large": [1e20, 3.0, 2e5], "some": [True, None, False], "word": ["a", None, "b"]}
    table = table.head(3).assign(**others)
    table.to_csv(tmp_path / "places.csv", index=False)
    same = ["year", "depth", "rank", "level", "open", "none", "large"]
    given = [observations, "--x", "lon", "lat", "--y", "temp", "--model", weights, "--no-views"]
    for output in ("out.csv", "out.parquet", "out.nc"):
        result = run("predict", *given, "--at", tmp_path / "places.csv", "-o", tmp_path / output)
        assert result.exit_code == 0, result.output
        path = tmp_path / output
        found = as_table(read(path, lambda column: column.name == "well"))
        assert found.well.tolist() == ["007", "NA", "12"]
        assert output == "out.nc" or found.word.isna().tolist() == [False, True, False]
        pd.testing.assert_frame_equal(found[same], table[same], check_dtype=output != "out.nc")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["9007199254740993", "", "3"], [9007199254740993, None, 3]),
        (["NA", "NA", "NA"], ["NA", "NA", "NA"]),
        (["", "", ""], [None, None, None]),
        (["100", "NA", "2"], [100.0, None, 2.0]),
        (["10.00", "1e3", "5"], [10.0, 1000.0, 5.0]),
        (["True", "", "False"], [True, None, False]),
        (["001", "2", ""], ["001", "2", None]),
        (["a", "NA", ""], ["a", "NA", None]),
        (["1", "2", "A3"], ["1", "2", "A3"]),
    ],
)
def test_what_is_copied_keeps_what_is_written(written, expected, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,code\n" + "".join(f"{i},{text}\n" for i, text in enumerate(written)))
    found = read(path, lambda column: column.name == "code", copied).code
    assert [None if pd.isna(value) else value for value in found] == expected
    texts = [isinstance(value, str) for value in expected if value is not None]
    assert [isinstance(value, str) for value in found.dropna()] == texts


def test_names_that_are_numbers_stay_in_their_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("depth\n0.5\n10.5\n2.5\n")
    assert read(path, lambda column: True).depth.tolist() == [0.5, 10.5, 2.5]


def test_views_are_those_of_the_library(observations, tmp_path):
    table = pd.read_csv(observations)
    given = [observations, "--x", "lon", "lat", "--y", "temp", "--at", observations, "-o", tmp_path / "out.csv"]
    for options, views in ((["--no-views"], None), ([], "auto")):
        assert run("predict", *given, *options).exit_code == 0
        expected = npax.interpolate(table, table, x=["lon", "lat"], y="temp", views=views)
        np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv").temp_mean, expected.temp_mean, rtol=1e-4)


def test_regions_of_dates_are_named_as_they_were_written(weights, tmp_path):
    times = pd.date_range("2020-01-01T00:30", periods=6, freq="12h", tz="+02:00")
    table = pd.DataFrame({"t": [time.isoformat() for time in times], "temp": np.arange(6.0)})
    table.to_csv(tmp_path / "obs.csv", index=False)
    given = [tmp_path / "obs.csv", "--x", "t", "--y", "temp", "--model", weights, "--at", tmp_path / "obs.csv"]
    result = run("average", *given, "--by", "t", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0 and list(pd.read_csv(tmp_path / "out.csv").t) == list(table.t), result.output


def test_a_disk_without_room_is_told_in_a_line(observations, weights, tmp_path, monkeypatch):
    """By netCDF's library as an error of its own."""

    def full(*args, **kwargs):
        raise RuntimeError("NetCDF: HDF error")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full)
    result = predict(observations, weights, "--resolution", 1, "-o", tmp_path / "out.nc")
    refused(result, "NetCDF: HDF error, perhaps for want of room", "out.nc")


def test_strategy_and_noise_are_those_of_the_library(observations, weights, tmp_path):
    pd.DataFrame({"lon": [0.5, 1.5], "lat": [1.0, 2.0]}).to_csv(tmp_path / "points.csv", index=False)
    out = tmp_path / "out.csv"
    result = predict(
        observations, weights, "--at", tmp_path / "points.csv", "-o", out, "--strategy", "tiled", "--no-noise"
    )
    assert result.exit_code == 0 and "tiled" in result.output, result.output
    table = pd.read_csv(observations)
    reg = npax.NeuralProcessRegressor(str(weights), strategy="tiled")
    reg.fit(table[["lon", "lat"]].to_numpy(), table["temp"].to_numpy())
    _, std = reg.predict(np.array([[0.5, 1.0], [1.5, 2.0]]), return_std=True, include_noise=False)
    np.testing.assert_allclose(pd.read_csv(out)["temp_std"], std, rtol=1e-4)


def test_endings_in_capitals_are_endings(observations, weights, tmp_path):
    capitals, points = observations.rename(tmp_path / "OBS.CSV"), pd.read_csv(tmp_path / "OBS.CSV")[["lon", "lat"]]
    found = []
    for name in ("OUT.CSV", "OUT.PARQUET", "OUT.NC", "OUT.ZARR"):
        args = ["--at", capitals, "-o", tmp_path / name] + (
            ["--plot", tmp_path / "OUT.PNG"] if name == "OUT.NC" else []
        )
        result = predict(capitals, weights, *args)
        assert result.exit_code == 0, result.output
        found.append(as_table(read(tmp_path / name)))
        np.testing.assert_allclose(found[-1][["lon", "lat"]], points)
        np.testing.assert_allclose(found[-1]["temp_mean"], found[0]["temp_mean"], rtol=1e-5)
    assert (tmp_path / "OUT.PNG").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "OUT.ZARR").is_dir()


def test_one_coordinate_gives_a_curve(observations, weights, tmp_path):
    result = predict(observations, weights, "--resolution", 0.5, "--plot", tmp_path / "curve.svg", x=["lon"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "curve.svg").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": ["lon", "depth"]}, ["no column 'depth'", "lon, lat, temp, name"]),
        ({"y": "name"}, ["'name'", "not of numbers", "'a'"]),
        ({"args": ["--resolution", 1]}, ["Say what to write"]),
        ({"args": ["-o", "out.nc"]}, ["Say where to predict"]),
        ({"args": ["-o", "out.nc", "--resolution", 1, "--at", "grid.nc"]}, ["either --at FILE or --resolution"]),
        ({"args": ["--resolution", 1, "-o", "out.xyz"]}, ["out.xyz", ".csv, .parquet, .nc"]),
        ({"args": ["--resolution", 1, "--plot", "out.gif"]}, ["out.gif", ".png"]),
        ({"args": ["--resolution", 0, "-o", "out.nc"]}, ["above 0"]),
        ({"args": ["--resolution", 1e-7, "-o", "out.nc"]}, ["choose a larger one"]),
        (
            {"args": ["--resolution", 1, "-o", "out.nc", "--finetune", 9]},
            ["Fine-tuning needs at least", "observations"],
        ),
        ({"args": ["--at", "nowhere.nc", "-o", "out.nc"]}, ["no file 'nowhere.nc'"]),
        ({"args": ["--resolution", 1, "-o", "out.nc", "--coords", "polar"]}, ["polar"]),
    ],
)
def test_wrong_input_is_refused_clearly(change, words, observations, weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args = change.pop("args", ["--resolution", 1, "-o", "out.nc"])
    refused(predict(observations, weights, *args, **change), *words)
    assert not (tmp_path / "out.nc").exists()


def test_wrong_files_are_refused_clearly(observations, weights, tmp_path):
    args = ["--resolution", 1, "-o", tmp_path / "out.nc"]
    refused(predict(tmp_path / "nowhere.csv", weights, *args), "no file", "nowhere.csv")
    (tmp_path / "empty.csv").write_text("lon,lat,temp\n")
    refused(predict(tmp_path / "empty.csv", weights, *args), "no rows")
    (tmp_path / "nothing.csv").write_text("")
    refused(predict(tmp_path / "nothing.csv", weights, *args), "cannot be read as a table")
    (tmp_path / "text.csv").write_text("lon,lat,temp\n1,2,3\n1,2,warm\n")
    refused(predict(tmp_path / "text.csv", weights, *args), "'temp'", "'warm'")
    content = bytearray(weights.read_bytes())
    content[-3] ^= 1
    (tmp_path / "damaged.safetensors").write_bytes(content)
    refused(predict(observations, tmp_path / "damaged.safetensors", *args), "damaged")
    refused(predict(observations, "unknown-model", *args), "unknown-model")


def test_where_nothing_can_be_written_is_said_before_the_work(observations, weights, tmp_path, monkeypatch):
    monkeypatch.setattr("npax.estimators.interpolate", lambda *_, **__: pytest.fail("has begun to work"))
    inside = observations / "out"
    for args in (["-o", inside / "o.nc"], ["-o", inside / "o.zarr"], ["--plot", inside / "o.png"]):
        refused(predict(observations, weights, "--resolution", 1, *args), "cannot be written", "obs.csv/out")
    for name, option in (("map.nc", "-o"), ("map.csv", "-o"), ("map.png", "--plot")):
        (tmp_path / name).mkdir()
        refused(predict(observations, weights, "--resolution", 1, option, tmp_path / name), "is a folder: name a file")
    table = pd.read_csv(observations).rename(columns={"temp": "T (mg/l)"})
    table.to_csv(tmp_path / "named.csv", index=False)
    for name in ("other.nc", "other.zarr"):
        args = "--resolution", 1, "-o", tmp_path / name
        refused(predict(tmp_path / "named.csv", weights, *args, y="T (mg/l)"), "takes no names with '/'")
        args = "--at", tmp_path / "named.csv", "-o", tmp_path / name
        refused(predict(observations, weights, *args), "takes no names with '/', got 'T (mg/l)'")
    before = observations.read_bytes()
    refused(predict(observations, weights, "--resolution", 1, "-o", observations), "is what is read")
    points = observations.with_name("points.csv")
    points.write_bytes(before)
    refused(
        predict(observations, weights, "--at", points, "-o", tmp_path / "new" / ".." / "points.csv"), "is what is read"
    )
    assert observations.read_bytes() == points.read_bytes() == before


def test_degrees_in_a_plane_are_noted(observations, weights, tmp_path):
    table = pd.read_csv(observations)
    table.assign(lat=20 * table["lat"]).to_csv(observations, index=False)
    args = ["--resolution", 1, "-o", tmp_path / "out.nc"]
    with pytest.warns(PlanarDegrees, match="'lon' and 'lat' look like degrees"):
        assert predict(observations, weights, *args).exit_code == 0
    assert predict(observations, weights, *args, "--coords", "latlon").exit_code == 0


def test_pictures_are_of_no_more_cells_than_asked_for():
    for sizes in ((1, 900), (30, 30), (1, 30, 1, 30), (3,), ()):
        grid = xr.DataArray(np.zeros(sizes)).to_dataset(name="mean")
        drawn = _thinned(grid, most=100)["mean"]
        assert drawn.size <= 100 and (drawn.size == grid["mean"].size or drawn.size > 50)


def test_targets_outside_of_the_observations_are_noted(observations, weights, tmp_path):
    pd.DataFrame({"lon": [1.0, 11.0], "lat": [1.0, 1.0]}).to_csv(tmp_path / "points.csv", index=False)
    with pytest.warns(Extrapolation, match="1 of 2 targets lie outside the observations"):
        assert predict(observations, weights, "--at", tmp_path / "points.csv", "-o", tmp_path / "o.csv").exit_code == 0


@pytest.mark.parametrize("name", ["dates.csv", "dates.parquet", "dates.nc"])
def test_dates_are_refused_by_column_and_file(name, observations, weights, tmp_path):
    table = pd.read_csv(observations).assign(day=pd.date_range("2020-01-31", periods=30))
    path = tmp_path / name
    write(table, path)
    words = ("holds dates", "'day'", "np.timedelta64", name)
    args = ["--resolution", 1, "-o", tmp_path / "out.nc"]
    unit = ["--coords", "isotropic"]
    refused(predict(path, weights, *args, *unit, x=["lon", "day"]), *words)
    refused(predict(path, weights, *args, y="day"), *words)
    numbers = tmp_path / "numbers.csv"
    table.assign(day=np.arange(30.0)).to_csv(numbers, index=False)
    args = ["--at", path, "-o", tmp_path / "out.csv"]
    refused(predict(numbers, weights, *args, *unit, x=["lon", "day"]), *words)
    refused(predict(numbers, weights, *args, x=["lon", "day"]), "'day' is numbers in `observations` and dates")
    texts = tmp_path / "texts.csv"
    table.assign(day=table["day"].dt.strftime("%d/%m/%Y")).to_csv(texts, index=False)
    words = ("'day'", "not of numbers", "'31/01/2020'", "Dates are written 2020-01-31")
    refused(predict(texts, weights, *args, x=["lon", "day"]), *words)


def test_text_among_numbers_is_counted_and_has_a_remedy(observations, weights, tmp_path):
    table, path = pd.read_csv(observations).astype({"temp": object}), tmp_path / "mix.csv"
    for text, remedy in (("<12", "half of the limit"), ("1,5", "pandas.read_csv"), ("-", "Leave cells empty")):
        table.loc[[3, 5], "temp"] = text
        table.to_csv(path, index=False)
        words = ("Column 'temp' of", f"2 of 30 entries are text, the first '{text}' in row 4.", remedy)
        refused(predict(path, weights, "--resolution", 1, "-o", tmp_path / "out.nc"), *words)


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_dates_of_arrow_are_dates_in_files_too(unit, observations, weights, tmp_path):
    table = pd.read_csv(observations).assign(day=pd.date_range("2020-01-31", periods=30))
    table.astype({"day": pd.ArrowDtype(pa.timestamp(unit))}).to_parquet(tmp_path / "days.parquet")
    options = ("--x", "day", "--y", "temp", "--resolution", 1, "--model", weights, "-o", tmp_path / "out.csv")
    assert run("predict", tmp_path / "days.parquet", *options).exit_code == 0
    assert pd.read_csv(tmp_path / "out.csv").day[0] == "2020-01-31"


def test_the_one_wrong_date_is_named(observations, weights, tmp_path):
    days = pd.date_range("2020-01-31", periods=30).astype(str).to_series(index=range(30))
    days.iloc[[3, 7]] = "31.12.", None
    pd.read_csv(observations).assign(day=days).to_csv(tmp_path / "d.csv", index=False)
    options = ("--x", "day", "--y", "temp", "--resolution", 1, "-o", tmp_path / "o.nc", "--model", weights)
    refused(run("predict", tmp_path / "d.csv", *options), "'day'", "but for 1 of 30", "'31.12.' in row 4")


@pytest.mark.parametrize("name", ["dates.csv", "dates.parquet", "dates.nc"])
def test_dates_are_coordinates_of_units_of_their_own(name, observations, weights, tmp_path):
    """As days are, which begin anywhere; what is written has dates again."""
    days = np.random.default_rng(1).uniform(0, 20, 30).round(3)
    table = pd.read_csv(observations).drop(columns="name").assign(day=days)
    table.to_csv(tmp_path / "days.csv", index=False)
    start = pd.Timestamp("2020-01-31")
    write(table.assign(day=start + pd.to_timedelta(days, unit="D")), tmp_path / name)
    args = ["--at", tmp_path / "days.csv", "-o", tmp_path / "expected.csv"]
    assert predict(tmp_path / "days.csv", weights, *args, x=["lon", "day"]).exit_code == 0
    args = ["--at", tmp_path / name, "-o", tmp_path / "out.csv"]
    result = predict(tmp_path / name, weights, *args, x=["lon", "day"])
    assert result.exit_code == 0 and "30 of them are observations" in result.output, result.output
    expected, out = (pd.read_csv(tmp_path / f"{of}.csv") for of in ("expected", "out"))
    np.testing.assert_allclose(out["temp_mean"], expected["temp_mean"], rtol=1e-4, atol=1e-5)
    back = (pd.to_datetime(out["day"], format="ISO8601") - start) / pd.Timedelta("1D")
    np.testing.assert_allclose(back, days, atol=1e-6)


def test_dates_are_read_whatever_their_zone(tmp_path):
    texts = ["2020-01-31T00:00-00:00", "2020-01-31T12:00Z", "2020-01-31T12:00+02:00", None]
    pd.DataFrame({"day": texts, "n": 20200131, "text": "a"}).to_csv(tmp_path / "d.csv", index=False)
    table = with_dates(read(tmp_path / "d.csv"), ["day", "n", "text", "away"])
    expected = np.array(["2020-01-31T00:00", "2020-01-31T12:00", "2020-01-31T10:00", "NaT"], "datetime64[m]")
    np.testing.assert_array_equal(table["day"].to_numpy("datetime64[m]"), expected)
    assert table["n"].dtype.kind == "i" and set(table["text"]) == {"a"}
    years = pd.DataFrame({"year": ["2020", "2021"]})
    assert list(with_dates(years, ["year"])["year"]) == ["2020", "2021"]
    with pytest.raises(ValueError, match=r"with a zone, such as '.*00:00', and without one, such as '2020-01-31'"):
        with_dates(pd.DataFrame({"day": ["2020-01-31", *texts]}), ["day"])
    zones = pd.DataFrame({"day": pd.to_datetime(texts[1:3], utc=True).tz_convert("Europe/Berlin")})
    np.testing.assert_array_equal(with_dates(zones, ["day"])["day"].to_numpy("datetime64[m]"), expected[1:3])


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"])
def test_dates_may_be_written_the_day_first(form):
    days = pd.Series(pd.date_range("2020-01-31", periods=3, freq="32D"), name="day")
    texts = days.dt.strftime(form).str.replace(r"^0|(?<=\.)0", "", regex=True)  # 1.2.2020
    table = pd.DataFrame({"day": [*texts, None], "version": "1.2.3"})
    found = with_dates(table, ["day", "version"])
    assert list(found["day"][:3]) == list(days) and found["day"].isna()[3] and set(found["version"]) == {"1.2.3"}


@pytest.mark.parametrize("bad", ["01.31.2020", "30.02.2020", "2020-01-31", "1.2.20"])
def test_dates_that_are_none_are_not_read_otherwise(bad, tmp_path):
    """No day becomes a month, and no column is read in two ways."""
    table = pd.DataFrame({"day": ["01.02.2020", "02.02.2020", bad, "04.02.2020"]})
    assert list(with_dates(table, ["day"])["day"]) == list(table["day"])
    told = f"of dates, but for 1 of 4, first '{bad}' in row 3"
    if bad == "2020-01-31":
        told = f"of dates that are written in two ways: '01.02.2020' and, in 1 of 4 rows, '{bad}'. Write all alike"
    with pytest.raises(ValueError, match=told):
        check_columns(table, ["day"], tmp_path, dated=["day"])


def test_dates_of_a_zone_come_back_as_they_were(weights, tmp_path):
    days = [f"2020-07-{day:02d} 00:00:00+02:00" for day in range(1, 30)]
    pd.DataFrame({"day": days, "temp": np.sin(np.arange(29.0))}).to_csv(tmp_path / "d.csv", index=False)
    pd.DataFrame({"day": days[:3]}).to_csv(tmp_path / "at.csv", index=False)
    args = ["--at", tmp_path / "at.csv", "-o", tmp_path / "o.csv", "--plot", tmp_path / "o.png"]
    result = predict(tmp_path / "d.csv", weights, *args, x=["day"])
    assert result.exit_code == 0, result.output
    assert list(pd.read_csv(tmp_path / "o.csv")["day"]) == days[:3]
    pd.DataFrame({"day": ["2020-07-01"]}).to_csv(tmp_path / "at.csv", index=False)
    refused(predict(tmp_path / "d.csv", weights, *args[:4], x=["day"]), "with a zone on one side")


def test_coordinates_of_a_grid_that_are_no_numbers_are_refused(weights, tmp_path):
    field = xr.DataArray(np.zeros((3, 4)), {"day": list("abc"), "lat": np.arange(4.0)}, ("day", "lat"), "temp")
    field.to_netcdf(tmp_path / "d.nc")
    args = ["--resolution", 1, 1, "-o", tmp_path / "o.nc"]
    refused(predict(tmp_path / "d.nc", weights, *args, x=["day", "lat"]), "'day'", "not of numbers")


def test_grids_of_other_calendars_keep_them(rng, weights, tmp_path):
    """As climate models have them: a year without the last of February."""
    days = xr.date_range("2004-02-26", periods=6, calendar="noleap", use_cftime=True)
    field = xr.DataArray(rng.normal(size=(6, 4)), {"day": days, "lat": np.arange(4.0)}, ("day", "lat"), "temp")
    field.to_netcdf(tmp_path / "d.nc")
    for place in (["--resolution", 0.5, 1], ["--at", tmp_path / "d.nc"]):
        written = ["-o", tmp_path / "o.nc", "--plot", tmp_path / "o.png"]
        result = predict(tmp_path / "d.nc", weights, *place, *written, x=["day", "lat"])
        assert result.exit_code == 0, result.output
        found = xr.load_dataset(tmp_path / "o.nc")
        assert found.day.dt.calendar == "noleap" and len(found.day) == (11 if "--resolution" in place else 6)
        assert (found.temp_mean.sel(day=days).day == days).all()
    other = field.convert_calendar("standard", dim="day", use_cftime=False)
    other.to_netcdf(tmp_path / "other.nc")
    result = predict(
        tmp_path / "d.nc", weights, "--at", tmp_path / "other.nc", "-o", tmp_path / "p.nc", x=["day", "lat"]
    )
    refused(result, "calendar 'noleap'", "convert_calendar")


def test_messages_name_the_options_of_the_command(observations, weights, tmp_path):
    at = ["--at", observations, "-o", tmp_path / "o.csv"]
    refused(
        predict(observations, weights, *at, "--coords", "latlon", x=["lat", "lon"]), "With --coords latlon, longitude"
    )


def test_scores_of_other_units_are_noted(weights, tmp_path):
    rows = {name: ("row", np.arange(6.0) ** 2) for name in ("x", "temp")}
    observed, wanted = (xr.Dataset(rows).set_coords("x") for _ in "ow")
    observed["temp"].attrs, wanted["temp"].attrs = {"units": "degC"}, {"units": "K"}
    observed.to_netcdf(tmp_path / "o.nc")
    wanted.to_netcdf(tmp_path / "w.nc")
    at = ["--at", tmp_path / "w.nc", "-o", tmp_path / "p.nc"]
    assert "temp is in degC in the observations and in K" in predict(tmp_path / "o.nc", weights, *at, x=["x"]).output
    assert "temp is in" not in predict(tmp_path / "o.nc", weights, "--at", tmp_path / "o.nc", *at[2:], x=["x"]).output


def test_a_table_in_the_letters_of_windows_is_read_and_told(tmp_path):
    """As German spreadsheets write it; wherever in the file the first letter is that tells."""
    text = "Höhe;Ort;Größe\n1,5;Köln;2\n2,5;Århus;3\n"
    for name, content in {"d.csv": text, "late.csv": "a;Ort\n" + "1,5;Koln\n" * 200_000 + "2,5;Köln\n"}.items():
        for encoding in ("cp1252", "utf-8", "utf-8-sig"):
            (tmp_path / name).write_bytes(content.encode(encoding))
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                table = read(tmp_path / name, lambda column: column.name == "Ort")
            assert [str(one.message).endswith("those of Windows (cp1252).") for one in told] == [True] * (
                encoding[0] == "c"
            )
            assert "Köln" in set(table["Ort"]) and table.iloc[0, 0] == 1.5
    assert list(read(tmp_path / "d.csv").columns) == ["Höhe", "Ort", "Größe"]


def test_a_table_of_utf_16_is_refused_with_the_remedy(weights, tmp_path):
    (tmp_path / "d.csv").write_bytes("lon,lat,temp °C\n1,2,3\n".encode("utf-16"))
    args = ["--resolution", 1, "-o", tmp_path / "o.csv"]
    refused(predict(tmp_path / "d.csv", weights, *args), "not written in UTF-8", "iconv -f UTF-16 -t UTF-8")


def test_grids_of_dates_have_a_size_of_cells_for_each_coordinate(observations, weights, tmp_path):
    days = pd.date_range("2020-01-31 07:00", periods=30, freq="6h")
    pd.read_csv(observations).assign(day=days).to_csv(tmp_path / "dates.csv", index=False)
    args = ["--resolution", 2, 0.25, "-o", tmp_path / "out.nc", "--plot", tmp_path / "out.png"]
    result = predict(tmp_path / "dates.csv", weights, *args, x=["lon", "day"])
    assert result.exit_code == 0, result.output
    out = xr.load_dataset(tmp_path / "out.nc")
    assert list(out["lon"]) == [0, 2, 4]
    np.testing.assert_array_equal(out["day"], pd.date_range("2020-01-31 06:00", "2020-02-07 18:00", freq="6h"))
    assert np.isfinite(out["temp_mean"]).all()
    for wrong, words in (((1, 2, 3), "one for each of lon, day; got 3"), ((1, 0), "a number above 0, got 0")):
        args = ["--resolution", *wrong, "-o", tmp_path / "out.nc"]
        refused(predict(tmp_path / "dates.csv", weights, *args, x=["lon", "day"]), words)
    durations = pd.DataFrame({"age": pd.to_timedelta([1.3, 4.1, np.nan], unit="D")})
    np.testing.assert_array_equal(regular_grid(durations, ["age"], [2.0])["age"] / np.timedelta64(1, "D"), [0, 2, 4, 6])


def test_maps_of_dates(observations, weights, tmp_path):
    table = pd.read_csv(observations).drop(columns="name")
    table.assign(lon=table["lon"] + 177, day=pd.date_range("2020-01-31", periods=30)).to_csv(tmp_path / "d.csv")
    args = ["--resolution", 1, 1, 10, "-o", tmp_path / "out.nc", "--coords", "latlon"]
    result = predict(tmp_path / "d.csv", weights, *args, x=["lon", "lat", "day"])
    assert result.exit_code == 0, result.output
    out = xr.load_dataset(tmp_path / "out.nc")
    assert out["temp_mean"].dims == ("day", "lat", "lon") and np.isfinite(out["temp_mean"]).all()
    np.testing.assert_array_equal(out["day"], pd.date_range("2020-01-31", periods=4, freq="10D"))
    refused(predict(tmp_path / "d.csv", weights, *args, x=["day", "lat", "lon"]), "longitude comes first", "'day'")


def test_train_refuses_clearly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(run("train", "unknown"), "no preset 'unknown'", "gp-universal")
    refused(run("train", "gp-universal", "-o", "weights.bin"), "safetensors")
    (tmp_path / "file").touch()
    refused(run("train", "gp-universal", "-o", "file/weights.safetensors"), "cannot be written")
    refused(
        run("train", "gp-universal", "-o", "s3://bucket/w.safetensors"), "must be the path of a file on this machine"
    )
    refused(run("train", "gp-universal", "--checkpoint", "file"), "`--checkpoint` must be a folder", "'file'")
    refused(run("train", "gp-universal", "--seed", str(2**40)), "--seed")
    refused(run("bench", "gp1d", "--folder", "file", "--model", "cnp"), "`--folder` must be a folder", "'file'")
    refused(run("bench", "speed", "--folder", "file", "--largest", "1"), "`--folder` must be a folder", "'file'")
    refused(run("bench", "speed", "--folder", "new", "--largest", "10"), "`--largest` 10 leaves out every size")
    (tmp_path / "notes.md").mkdir()
    for command in ("report", "speed"):
        refused(run("bench", command, "-o", "notes.md"), "'notes.md' is a folder: name a file")
    (tmp_path / "runs" / "gp-universal").mkdir(parents=True)
    (tmp_path / "runs" / "gp-universal" / "step-000000010.safetensors").touch()
    refused(run("train", "gp-universal"), "--resume")


def test_train_saves_weights_with_a_card(weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _replace_training(monkeypatch, npax.load(weights))
    result = run("train", "gp_universal", "--steps", 4, "--seed", 3, "--batch-scale", 8)
    assert result.exit_code == 0, result.output
    card = npax.serialise.load_card("gp-universal.safetensors")
    assert (card["steps"], card["seed"], card["batch_scale"], card["validation"]) == (4, 3, 8, {"all": 1.0})
    assert isinstance(npax.load("gp-universal.safetensors"), npax.CNP)


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _replace_training(monkeypatch, error=KeyboardInterrupt)
    result = run("train", "gp-universal")
    assert result.exit_code == 130
    assert result.output.endswith("\n  npax train gp-universal --resume\n")
    given = ["--steps", 9, "--checkpoint", "a b", "--output", "w.safetensors", "--seed", 3, "--batch-scale", 2]
    again = shlex.split(run("train", "gp-universal", *given).output.splitlines()[-1])
    assert again == ["npax", "train", "gp-universal", "--resume", *map(str, given)]
    _replace_training(monkeypatch, error=KeyboardInterrupt, left=False)
    result = run("train", "gp-universal", "--checkpoint", "c")
    assert result.exit_code == 130 and "before the first checkpoint" in result.output


def _replace_training(monkeypatch, model=None, error=None, left=True):
    """A training that takes no time: what it is given and what becomes of its result is the matter here."""

    def training(*, steps, seed, batch_scale, checkpoint, resume):
        return npax.FitResult(model, np.zeros(steps), [(steps, {"all": 1.0})], steps, 0, 0.0)

    def stopped(*, checkpoint, **_):
        if left:
            checkpoint.mkdir(parents=True)
            (checkpoint / "step-000000010.safetensors").touch()
        raise error

    module = __import__("npax.cli.train", fromlist=["trainings"])
    monkeypatch.setattr(module, "trainings", lambda: {"gp-universal": stopped if error else training})


@pytest.mark.parametrize(("code", "at_once"), [(130, True), (2, False), (0, False)])
def test_after_ctrl_c_the_process_ends_at_once(code, at_once, monkeypatch):
    """Devices may still compute, with memory that an orderly end would free."""
    ends = []
    monkeypatch.setattr(sys, "argv", ["npax", "models"])
    monkeypatch.setattr("npax.cli.prepare", lambda: None)
    monkeypatch.setattr("npax.cli.app", lambda: sys.exit(code))
    monkeypatch.setattr("npax.cli.leave_at_once", ends.append)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == code and ends == [code] * at_once


def test_a_ctrl_c_that_python_drops_comes_again():
    code = """if True:
        import gc, signal, time
        from npax.cli._process import prepare

        def drop(*_):
            gc.callbacks.remove(drop)
            raise KeyboardInterrupt  # as when it comes while JAX's own callback runs

        signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
        prepare()
        gc.callbacks.append(drop)
        gc.collect()
        while True:
            time.sleep(0.01)"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and "KeyboardInterrupt" in run.stderr and "ignored" not in run.stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a file system that takes no files, whoever asks")
def test_folders_that_take_no_files_are_told_before_the_work():
    with pytest.raises(PermissionError, match=r"'/proc/x\.nc' cannot be written: the folder '/proc' is read-only"):
        _process.check_output(Path("/proc/x.nc"))
    with pytest.raises(PermissionError, match="`--checkpoint` must be a folder that can be written to, and '/proc' is"):
        _process.check_folder(Path("/proc/x"), "--checkpoint")


def test_what_ends_a_process_is_taken_for_ctrl_c():
    """By it schedulers end what ran out of time: trainings write a checkpoint then."""
    code = """if True:
        import signal
        from npax.cli._process import prepare

        prepare()
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            print("stopped")"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout == "stopped\n"


def test_messages_are_printed_as_they_are(capsys):
    name = r"a\[/b] :dog: [red]" + "x" * 200
    with pytest.raises(typer.Exit):
        _process.fail(name)
    _process._note(UserWarning(name), UserWarning, "", 0)
    assert capsys.readouterr().err.splitlines() == [f"error: {name}", f"note: {name}"]


def test_presets_are_the_functions_that_train():
    assert {"gp-universal", "field-universal"} <= set(trainings())
    assert "fit" not in trainings() and "validation-scores" not in trainings()


def test_models_are_listed():
    result = run("models")
    assert result.exit_code == 0
    assert all(name in result.output for name in npax.pretrained())


@pytest.mark.parametrize("tunables", ["", "glibc.malloc.check=0"])
def test_the_command_starts_anew_once_with_large_pages(tunables, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(os, "execv", lambda *args: started.append(args))
    monkeypatch.setattr(_process, "PAGES", tmp_path / "enabled")
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "tool", "train", "x y"])
    monkeypatch.setenv("GLIBC_TUNABLES", tunables)
    _process.PAGES.write_text("always [madvise] never")
    _process.ask_for_large_pages()
    _process.ask_for_large_pages()
    assert started == [(sys.executable, [sys.executable, "-m", "tool", "train", "x y"])]
    assert os.environ["GLIBC_TUNABLES"].removeprefix(tunables).lstrip(":") == "glibc.malloc.hugetlb=1"


@pytest.mark.parametrize("pages", ["[always] madvise never", "always madvise [never]", None])
def test_large_pages_are_not_asked_for_where_it_would_be_in_vain(pages, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "execv", lambda *args: pytest.fail("started anew"))
    monkeypatch.setattr(_process, "PAGES", tmp_path / "enabled")
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if pages:
        _process.PAGES.write_text(pages)
    _process.ask_for_large_pages()
    assert "GLIBC_TUNABLES" not in os.environ

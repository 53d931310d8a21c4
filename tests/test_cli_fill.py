"""`npax fill`: fields with gaps on the command line."""

import numpy as np
import pandas as pd
import pytest
import untrained
import xarray as xr
from test_cli import refused, run

import npax
from npax.cli.tables import write


@pytest.fixture
def field(tmp_path, rng):
    values = np.where(rng.random((2, 12, 16)) < 0.6, rng.standard_normal((2, 12, 16)), np.nan)
    axes = {"lat": np.linspace(40, 43, 12), "lon": np.linspace(10, 14, 16)}
    sst = xr.DataArray(values, dims=("time", "lat", "lon"), coords=axes, name="sst", attrs={"units": "K"})
    sst.to_netcdf(tmp_path / "sst.nc")
    return tmp_path / "sst.nc"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "pictures.safetensors"
    npax.save(path, untrained.pictures())
    return path


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_file_gives_what_the_library_gives(field, weights, tmp_path, suffix):
    output, picture = tmp_path / "new" / f"filled{suffix}", tmp_path / "new" / "filled.png"
    given = ("fill", field, "--y", "sst", "-o", output, "--plot", picture, "--coords", "latlon", "--model", weights)
    result = run(*given, "--quantiles", 0.1, 0.9, "--above", 1.5)
    assert result.exit_code == 0, result.output
    found = xr.load_dataset(output, engine="zarr" if suffix == ".zarr" else None)
    sst = xr.load_dataset(field).sst
    expected = npax.fill_gaps(sst, model=weights, quantiles=[0.1, 0.9], above=1.5)
    assert len(expected) == 5
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name])
        assert found[name].attrs == expected[name].attrs
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"{int(sst.notnull().sum())} of 384 pixels" in result.output


def test_maps_have_longitudes_across(field, weights, tmp_path, monkeypatch):
    from npax.cli import _draw

    drawn, turned = [], tmp_path / "turned.nc"
    monkeypatch.setattr(_draw, "draw_grid", lambda filled, x, *_: drawn.append(x))
    options = ("--plot", tmp_path / "a.png", "--coords", "latlon", "--model", weights)
    xr.load_dataset(field).transpose("time", "lon", "lat").to_netcdf(turned)
    assert run("fill", turned, *options).exit_code == 0 and drawn == [("lon", "lat")]
    xr.load_dataset(field).drop_vars(["lon", "lat"]).to_netcdf(turned)
    refused(run("fill", turned, *options), "`--coords latlon` draws a map", "they are lat, lon")


def test_the_first_picture_that_holds_anything_is_drawn_and_told(field, weights, tmp_path, monkeypatch):
    from npax.cli import _draw

    drawn, stack = [], tmp_path / "stack.nc"
    monkeypatch.setattr(_draw, "draw_grid", lambda filled, *_: drawn.append(filled.sst_mean))
    options = ("--plot", tmp_path / "a.png", "--model", weights)
    days = np.array(["2020-01-01", "2020-01-02"], "M8[D]").astype("M8[ns]")
    xr.load_dataset(field).assign_coords(time=days).pipe(lambda sst: sst.where(sst.time > days[0])).to_netcdf(stack)
    assert "(time 2020-01-02 00:00:00)" in run("fill", stack, *options).output and drawn[0].notnull().all()
    bands = xr.load_dataset(stack).rename(time="band").drop_vars("band").transpose("lat", "lon", "band")
    bands.to_netcdf(stack, mode="w")
    assert "(band 1)" in run("fill", stack, *options).output and drawn[1].notnull().all()
    bands.where(False).to_netcdf(stack, mode="w")
    with pytest.warns(UserWarning, match="nothing can be filled"):
        assert "(band 0)" in run("fill", stack, *options).output and drawn[2].isnull().all()


def test_stores_of_the_older_format_are_read_and_written_anew(field, weights, tmp_path):
    xr.load_dataset(field).chunk(lat=5).to_zarr(tmp_path / "old.zarr", zarr_format=2, consolidated=True)
    output = tmp_path / "filled.zarr"
    result = run("fill", tmp_path / "old.zarr", "-o", output, "--model", weights)
    assert result.exit_code == 0, result.output
    assert np.isfinite(xr.load_dataset(output, engine="zarr").sst_mean).all()


def test_what_is_stopped_in_writing_leaves_what_was_there(tmp_path, monkeypatch):
    table, path = pd.DataFrame({"a": [1.0, 2.0]}), tmp_path / "a.csv"
    write(table, path)
    before = path.read_bytes()

    def stopped(self, path, **options):
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", stopped)
    with pytest.raises(KeyboardInterrupt):
        write(2 * table, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("side", [None, list("abcdefghijkl"), np.arange("2020-01-01", "2020-01-13", dtype="M8[D]")])
@pytest.mark.filterwarnings("ignore:The coordinates `lat` are names")
def test_sides_without_numbers_are_drawn(field, weights, tmp_path, side):
    sst = xr.load_dataset(field).isel(time=0)
    sst = sst.drop_vars("lat") if side is None else sst.assign_coords(lat=side)
    sst.to_netcdf(tmp_path / "side.nc")
    result = run("fill", tmp_path / "side.nc", "--y", "sst", "--plot", tmp_path / "side.png", "--model", weights)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "side.png").read_bytes().startswith(b"\x89PNG")


def test_the_options_are_those_of_the_library(field, weights, tmp_path):
    out, plot = tmp_path / "[o].nc", tmp_path / "o.png"
    result = run("fill", field, "-o", out, "--plot", plot, "--model", weights, "--dims", "lon", "time", "--no-noise")
    assert result.exit_code == 0, result.output
    assert "[o].nc" in result.output and plot.read_bytes().startswith(b"\x89PNG")
    expected = npax.fill_gaps(xr.load_dataset(field).sst, dims=["lon", "time"], model=weights, include_noise=False)
    np.testing.assert_allclose(xr.load_dataset(out).sst_std, expected.sst_std)


def test_wrong_input(field, weights, tmp_path):
    refused(run("fill", field, "--y", "sst"), "Say what to write")
    xr.load_dataset(field).assign(ice=lambda file: file.sst).to_netcdf(tmp_path / "two.nc")
    refused(run("fill", tmp_path / "two.nc", "-o", tmp_path / "o.nc"), "Say by --y", "sst, ice")
    refused(run("fill", field, "-o", tmp_path / "o.nc", "--dims", "lat", "depth"), "depth")
    refused(run("fill", field, "--y", "ice", "-o", tmp_path / "o.nc"), "no variable 'ice'", "sst")
    refused(run("fill", field, "--y", "sst", "-o", tmp_path / "o.csv"), "must end in .nc or .zarr")
    refused(run("fill", tmp_path / "none.nc", "--y", "sst", "-o", tmp_path / "o.nc"), "no file")
    refused(run("fill", field, "-o", field), "is what is read")
    refused(run("fill", field, "-o", field / "o.nc"), "cannot be written")
    refused(run("fill", field, "--y", "sst", "--plot", tmp_path / "o.gif"), ".png, .pdf or .svg")
    refused(run("fill", field, "--y", "sst", "-o", tmp_path / "o.nc", "--model", "gp-universal"), "GridConvCNP")

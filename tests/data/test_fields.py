"""Readers of files that do not come with the package, on small files of the same form."""

import numpy as np
import pytest

from npax.data import era5_europe, era5_uk, ozone, rainfall


@pytest.fixture
def folder(tmp_path, rng):
    era5 = {
        "t2m": rng.normal(280, 5, (3, 4, 5)).astype(np.float32),
        "time": np.arange(3) * 21600 + 1656633600,
        "lat": np.linspace(60, 57, 4),
        "lon": np.linspace(-2, 2, 5),
        "elevation": rng.normal(size=(4, 5)).astype(np.float32),
    }
    np.savez(tmp_path / "era5_europe_2022_07.npz", **era5)
    days = np.array(["1987-06-03", "1987-06-04"])
    values = np.array([[40.0, np.nan, 50.0], [30.0, 20.0, np.nan]], np.float32)
    np.savez(tmp_path / "ozone_midwest.npz", lon=np.arange(3.0), lat=np.arange(3.0), ozone=values, date=days)
    rows = "longitude,latitude,elevation_m,precip_tenth_mm,trend\n-120.5,40.0,300,985.1,0.1\n-90.0,35.0,10,1200,0.2\n"
    (tmp_path / "na_rainfall.csv").write_text(rows)
    return tmp_path


def test_readers_give_what_the_files_hold(folder, monkeypatch):
    grid = era5_europe(folder)
    assert grid.t2m.dims == ("time", "lat", "lon") and grid.t2m.attrs["units"] == "K"
    assert grid.time.values[0] == np.datetime64("2022-07-01T00") and grid.elevation.shape == (4, 5)
    found = ozone(folder / "ozone_midwest.npz")
    assert found.ozone.shape == (2, 3) and np.isnan(found.ozone).sum() == 2 and found.date[1] == "1987-06-04"
    monkeypatch.setenv("NPAX_DATA", str(folder))
    np.testing.assert_allclose(rainfall().rain, [98.51, 120.0])
    np.testing.assert_allclose(rainfall().lon, [-120.5, -90.0])


@pytest.mark.parametrize("reader", [era5_uk, era5_europe, ozone, rainfall])
def test_a_missing_file_says_which_where_and_under_what_licence(reader, tmp_path, monkeypatch):
    monkeypatch.delenv("NPAX_DATA", raising=False)
    for where in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"put '\w+\.\w+' .*NPAX_DATA.*Licence: (GPL|Copernicus)"):
            reader(where)


def test_another_file_is_refused(folder):
    (folder / "na_rainfall.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no column longitude"):
        rainfall(folder)
    np.savez(folder / "ozone_midwest.npz", lon=np.arange(3))
    with pytest.raises(
        ValueError, match=r"does not hold Ozone.*lat.*It takes arrays lon \[site\], .* ozone \[day site\]"
    ):
        ozone(folder)
    (folder / "ozone_midwest.npz").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(ValueError, match="does not hold Ozone"):
        ozone(folder)


def test_a_damaged_table_is_named(folder):
    head = b"longitude,latitude,elevation_m,precip_tenth_mm\n"
    for content, words in (
        (b"\xff\xfe\x81", "cannot be read"),
        (head + b"1,2\n1,2,3,4\n", "cannot be read"),
        (head, "no rows"),
    ):
        (folder / "na_rainfall.csv").write_bytes(content)
        with pytest.raises(ValueError, match=rf"na_rainfall\.csv' .*{words}"):
            rainfall(folder)
    (folder / "na_rainfall.csv").write_bytes(head + b"1,2,3,40\n")
    assert rainfall(folder).rain.tolist() == [4.0], "one row is a table too"


def test_arrays_that_do_not_fit_together_are_refused(folder):
    with np.load(folder / "era5_europe_2022_07.npz") as file:
        arrays = dict(file)
    for name, wrong in (("t2m", arrays["t2m"][0]), ("t2m", arrays["t2m"][:, :3]), ("lon", arrays["lon"][1:])):
        np.savez(folder / "era5_europe_2022_07.npz", **{**arrays, name: wrong})
        with pytest.raises(ValueError, match=r"europe_2022_07\.npz' does not hold ERA5.*its \w+ has the shape \("):
            era5_europe(folder)

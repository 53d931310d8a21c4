"""Fields with gaps: xarray in, xarray out."""

import functools
import re
import sys
import threading
from inspect import unwrap
from time import sleep

import cftime
import dask
import numpy as np
import pytest
import untrained
import xarray as xr
from scipy.stats import norm

import npax
from npax.estimators.fill import picture_dims
from npax.inference import fill
from npax.training import Finetuned


@pytest.fixture(scope="module")
def model():
    return untrained.pictures()


@pytest.fixture
def field(rng):
    values = np.where(rng.random((3, 10, 12)) < 0.6, rng.standard_normal((3, 10, 12)), np.nan)
    values[2] = np.nan
    axes = {"time": np.arange("2020-01-01", "2020-01-04", dtype="M8[D]"), "lat": 50 - 0.25 * np.arange(10)}
    axes |= {"lon": 0.25 * np.arange(12), "height": 2.0}
    attrs = {"units": "K", "long_name": "sea surface temperature"}
    return xr.DataArray(values, coords=axes, dims=("time", "lat", "lon"), name="sst", attrs=attrs)


def test_each_picture_is_filled_by_itself(field, model):
    filled = npax.fill_gaps(field, model=model)
    assert set(filled.data_vars) == {"sst_mean", "sst_std"} and filled.sst_mean.dims == field.dims
    for time in range(2):
        alone = fill(model, field.to_numpy()[time])
        assert np.array_equal(filled.sst_mean[time], alone.mean) and np.array_equal(filled.sst_std[time], alone.std())
    assert filled[{"time": 2}].isnull().all(), "of a picture that is not seen at all nothing is said"


@pytest.mark.parametrize("noise", [True, False])
def test_quantiles_and_probabilities_are_those_of_the_normal_distribution(noise, field, model):
    field = field[:2]
    chunked, asked = field.chunk({"time": 1}), {"quantiles": [0.1, 0.5], "above": 0.2, "include_noise": noise}
    filled = npax.fill_gaps(field, model=model, **asked)
    assert list(filled) == ["sst_mean", "sst_std", "sst_q0.1", "sst_q0.5", "sst_above_0.2"]
    law = norm(filled.sst_mean, filled.sst_std)
    np.testing.assert_allclose(filled["sst_q0.1"], law.ppf(0.1), atol=1e-5)
    np.testing.assert_allclose(filled["sst_q0.5"], filled.sst_mean)
    np.testing.assert_allclose(filled["sst_above_0.2"], law.sf(0.2), atol=1e-5)
    assert filled["sst_above_0.2"].attrs["units"] == "1" and filled["sst_q0.1"].attrs["units"] == "K"
    lazy = npax.fill_gaps(chunked, model=model, **asked)
    assert lazy.chunks and lazy.compute().identical(filled)
    with pytest.raises(ValueError, match="`quantiles` must be probabilities"):
        npax.fill_gaps(field, model=model, quantiles=2.0)


def test_names_units_and_coordinates_are_kept(field, model):
    filled = npax.fill_gaps(field, model=model)
    assert all(filled[name].equals(field[name]) for name in ("time", "lat", "lon", "height"))
    assert filled.sst_mean.attrs == {"units": "K", "long_name": "predicted mean of sea surface temperature"}
    assert filled.sst_std.attrs == {
        "units": "K",
        "long_name": "standard deviation of sea surface temperature",
        "comment": "of a new observation",
    }
    unnamed = npax.fill_gaps(xr.DataArray(field.to_numpy()[0]), model=model)
    assert set(unnamed.data_vars) == {"y_mean", "y_std"}


def test_the_noiseless_field_is_surer(field, model):
    noisy, noiseless = (npax.fill_gaps(field[0], model=model, include_noise=noise).sst_std for noise in (True, False))
    assert (noiseless < noisy).all()


def test_other_dimensions_and_a_variable_of_a_dataset(field, model):
    turned = field.transpose("lat", "time", "lon").to_dataset()
    filled = npax.fill_gaps(turned, "sst", dims=("lat", "lon"), model=model)
    assert filled.sst_mean.dims == ("lat", "time", "lon")
    assert np.array_equal(filled.sst_mean.transpose(*field.dims), npax.fill_gaps(field, model=model).sst_mean, True)


def test_lazy_tasks_do_not_carry_the_field(field, model, monkeypatch):
    functions, apply = [], xr.apply_ufunc
    monkeypatch.setattr(
        xr, "apply_ufunc", lambda f, *args, **options: functions.append(f) or apply(f, *args, **options)
    )
    npax.fill_gaps(field.chunk({"time": 1}), model=model)
    held = [cell.cell_contents for function in functions for cell in function.__closure__]
    assert held and not any(isinstance(each, xr.DataArray | xr.Dataset) for each in held)


def test_lazy_fields_stay_lazy(field, model):
    lazy = npax.fill_gaps(field.chunk({"time": 1, "lat": 5}), model=model)
    assert dask.is_dask_collection(lazy.sst_mean.data)
    now = npax.fill_gaps(field, model=model)
    with dask.config.set(scheduler="threads"):
        assert np.array_equal(lazy.sst_mean.to_numpy(), now.sst_mean, True)


def test_fine_tuning_is_asked_for_by_the_number_of_steps(model, rng):
    rows, columns = np.mgrid[:24, :24]
    wave = np.sin(rows / 2) + np.cos(columns / 3)
    wave[5:9, 5:12] = np.nan
    filled = npax.fill_gaps(xr.DataArray(wave), model=model, finetune=2)
    assert np.isfinite(filled.y_mean).all()


def test_the_name_of_the_model_is_kept(field, model, tmp_path, monkeypatch):
    tuned = Finetuned(untrained.pictures(), 1, [])
    monkeypatch.setattr("npax.estimators.fill.finetune_pictures", lambda *_, **__: tuned)
    npax.save(tmp_path / "m.safetensors", model)
    assert npax.fill_gaps(field[0], model=tmp_path / "m.safetensors").model == str(tmp_path / "m.safetensors")
    for steps in (0, 1):
        assert npax.fill_gaps(field[0], model=model, finetune=steps).model == ""


def test_dates_and_names_may_be_the_sides_of_a_picture(field, model):
    section = field[:, 0]  # times and longitudes
    assert npax.fill_gaps(section, model=model).sst_mean.shape == (3, 12)
    named = section.assign_coords(time=["first", "second", "third"])
    with pytest.warns(UserWarning, match="`time` are names, such as 'first': .*npax.interpolate, with their places"):
        found = npax.fill_gaps(named, model=model)
    assert np.array_equal(found.sst_mean, npax.fill_gaps(section, model=model).sst_mean)
    gap = section.assign_coords(time=np.array(["2020-01-01", "2020-01-02", "2020-02-03"], "M8[ns]"))
    with pytest.raises(ValueError, match="not evenly spaced"):
        npax.fill_gaps(gap, model=model)


@pytest.mark.parametrize("dim", ["station", "Stations", "station_id", "obs"])
def test_stations_in_any_order_are_noted(dim, field, model, rng):
    """By what they are called, or by the places that lie beside them."""
    values = field.to_numpy()[0]
    series = xr.DataArray(values, dims=("time", dim), coords={"time": np.arange(10), dim: np.arange(12)}, name="sst")
    places = {"easting": (dim, rng.permutation(12)), "northing": (dim, rng.random(12))}
    words = f"The dimension `{dim}` has .* in any order.*npax.interpolate, with their places as coordinates; "
    if dim == "obs":
        words = "`obs` has coordinates in any order, 'easting' and 'northing': .*`field.drop_vars`"
        expected = npax.fill_gaps(series, model=model)  # nothing says that they are places
        npax.fill_gaps(series.assign_coords({**places, "northing": (dim, np.arange(12))}), model=model)
        npax.fill_gaps(
            series.rename(time="row", obs="time").assign_coords({name: ("time", of[1]) for name, of in places.items()}),
            model=model,
        )
    else:
        expected = npax.fill_gaps(series.rename({dim: "obs"}), model=model)
    for given in (series.assign_coords(places), series.drop_vars(dim).assign_coords(places)):
        with pytest.warns(UserWarning, match=words):
            found = npax.fill_gaps(given, model=model)
        assert np.array_equal(found.sst_mean, expected.sst_mean)


def test_a_field_without_a_name_is_called_y(field, model):
    unnamed = xr.DataArray(np.stack([field.to_numpy()[:2]] * 2), dims=("i", "j", "k", "l"))
    with pytest.warns(UserWarning, match="which dimensions of 'y' are those of a picture"):
        npax.fill_gaps(unnamed, model=model)


def test_clear_errors(field, model):
    uneven = field.assign_coords(lat=np.cumsum(np.arange(10.0)))
    for error, match, call in (
        (ValueError, "not evenly spaced", lambda: npax.fill_gaps(uneven, model=model)),
        (ValueError, "not evenly spaced", lambda: npax.fill_gaps(field.assign_coords(lat=np.ones(10)), model=model)),
        (ValueError, "two dimensions", lambda: npax.fill_gaps(field, dims=["lat"], model=model)),
        (ValueError, "npax.interpolate fills a series", lambda: npax.fill_gaps(field[:, 0, 0], model=model)),
        (ValueError, "depth", lambda: npax.fill_gaps(field, dims=["lat", "depth"], model=model)),
        (ValueError, "`y` must name", lambda: npax.fill_gaps(field.to_dataset().assign(ice=field), model=model)),
        (ValueError, "'ice'", lambda: npax.fill_gaps(field.to_dataset(), "ice", model=model)),
        (ValueError, "no 'ice'; it has 'sst'", lambda: npax.fill_gaps(field, "ice", model=model)),
        (ValueError, "two dimensions", lambda: npax.fill_gaps(field, dims=["lat", "lat"], model=model)),
        (ValueError, r"sortby\('lat'\)", lambda: npax.fill_gaps(field.isel(lat=[1, 0, *range(2, 10)]), model=model)),
        (ValueError, "numbers, got <U", lambda: npax.fill_gaps(field.astype(str), model=model)),
        (ValueError, "durations", lambda: npax.fill_gaps(field.astype("m8[s]").astype("m8[ns]"), model=model)),
        (ValueError, "`finetune`", lambda: npax.fill_gaps(field, model=model, finetune=-1)),
        (ValueError, "`finetune` .* got 1.5", lambda: unwrap(npax.fill_gaps)(field, model=model, finetune=1.5)),
        (TypeError, "DataArray", lambda: npax.fill_gaps(field.to_numpy(), model=model)),
        (TypeError, "GridConvCNP", lambda: npax.fill_gaps(field, model=untrained.cnp(3))),
        (FileNotFoundError, "field-universal", lambda: npax.fill_gaps(field, model="field-special")),
    ):
        with pytest.raises(error, match=match):
            call()


def test_time_is_no_side_of_a_picture(field, model):
    """Wherever it stands, by its dates or by its name; unless one says so."""
    expected = npax.fill_gaps(field, model=model).sst_mean
    last = field.transpose("lat", "lon", "time")
    for given in (last, last.drop_vars("time")):
        assert np.array_equal(npax.fill_gaps(given, model=model).sst_mean.transpose(*field.dims), expected, True)
    flat = last.expand_dims("level", -1)[:, 0]
    with pytest.raises(ValueError, match=r"`dims` must be two dimensions of `field`, got \['lat'\]"):
        npax.fill_gaps(flat.squeeze("level").expand_dims("month"), model=model)
    assert npax.fill_gaps(flat, dims=("lat", "time"), model=model).sst_mean.dims == ("lat", "time", "level")


@pytest.mark.parametrize(
    ("dims", "attrs", "picture"),
    [
        (("lat", "lon", "band"), {}, ("lat", "lon")),
        (("time", "Longitude", "LATITUDE", "depth"), {}, ("LATITUDE", "Longitude")),
        (("y", "x", "band"), {}, ("y", "x")),
        (("i", "j", "k"), {"i": {"units": "degrees_north"}, "j": {"standard_name": "longitude"}}, ("i", "j")),
        (("i", "j", "k"), {"i": {"axis": "Y"}, "j": {"standard_name": "projection_x_coordinate"}}, ("i", "j")),
        (("lat", "lon", "x", "y"), {}, ("lat", "lon")),
        (("lat", "i", "band"), {}, ("i", "band")),
        (("lat", "lon", "band"), {"band": {"units": "degrees_east"}}, ("lon", "band")),
        (("x", "i", "band"), {"x": {"axis": "Y"}}, ("i", "band")),
    ],
)
@pytest.mark.parametrize("coordinates", [True, False])
def test_a_picture_is_a_map_wherever_one_is_found(coordinates, dims, attrs, picture):
    field = xr.DataArray(np.zeros((3, 4, 5, 6)[: len(dims)]), dims=dims)
    if coordinates or attrs:
        axes = {dim: (dim, np.arange(size), attrs.get(dim, {})) for dim, size in field.sizes.items()}
        field = field.assign_coords(axes)
    assert picture_dims(field) == picture


def test_the_dimensions_of_curved_longitudes_and_latitudes_are_those_of_a_picture(field, model):
    curved = {
        name: (("j", "i"), grid) for name, grid in zip(("lon", "lat"), np.meshgrid(range(9), range(8)), strict=True)
    }
    members = xr.DataArray(np.zeros((8, 9, 3)), dims=("j", "i", "member"), name="sst")
    assert picture_dims(members.assign_coords(curved)) == ("j", "i")
    assert picture_dims(members.assign_coords(curved).transpose("i", "member", "j")) == ("i", "j")
    assert picture_dims(members.assign_coords(lon=curved["lon"])) == ("i", "member")
    stack = field.rename(time="member", lat="j", lon="i").drop_vars(("member", "j", "i"))
    with pytest.warns(UserWarning, match="which dimensions of 'sst' .* 'j' and 'i' are taken, .* by `dims`"):
        guessed = npax.fill_gaps(stack, model=model)
    assert np.array_equal(npax.fill_gaps(stack, dims=("j", "i"), model=model).sst_mean, guessed.sst_mean, True)


def test_a_map_is_filled_the_same_whichever_side_comes_first(field, model):
    for given in (field, field[0]):
        turned = given.transpose(..., "lon", "lat")
        xr.testing.assert_identical(
            npax.fill_gaps(turned, model=model), npax.fill_gaps(given, model=model).transpose(*turned.dims)
        )


@pytest.mark.parametrize("first", [354, 174])
@pytest.mark.parametrize("ordered", [True, False])
def test_the_remedy_for_longitudes_that_begin_anew(first, ordered, field, model):
    """In the order of the map, or in that of their numbers, as a part of a file from 0 to 360 is across Greenwich."""
    anew = field.assign_coords(
        lon=(first + np.arange(12.0)) % 360 if first > 180 else (first + 180 + np.arange(12.0)) % 360 - 180
    )
    broken = anew if ordered else anew.sortby("lon")
    with pytest.raises(ValueError, match="not evenly spaced") as refused:
        npax.fill_gaps(broken, model=model)
    remedy = re.search(r"`(field\.assign_coords.*?)`\.", str(refused.value))[1]
    found = npax.fill_gaps(eval(remedy, {"field": broken}), model=model).sst_mean
    expected = npax.fill_gaps(field, model=model).sst_mean
    assert np.allclose(np.diff(found.lon), 1) and np.allclose(found, expected, equal_nan=True)


def test_of_a_file_the_field_is_filled_and_what_it_refers_to_is_kept(field, model):
    """As by the conventions for climate and forecast (CF)."""
    single = field.astype(np.float32).assign_attrs(grid_mapping="crs")
    file = xr.Dataset({"sst": single, "crs": 0, "qc": ("time", [1, 0, 1])})
    for given in (file, file.set_coords("crs"), file.set_coords("crs").sst):
        filled = npax.fill_gaps(given, model=model)
        assert set(filled.data_vars) == {"sst_mean", "sst_std"} and "crs" in filled.coords
        assert all(part.attrs["grid_mapping"] == "crs" and part.dtype == np.float32 for part in filled.values())
    alone = npax.fill_gaps(file.sst, model=model)
    assert all("grid_mapping" not in part.attrs for part in alone.values())
    lazy = npax.fill_gaps(file.chunk(time=1), model=model)
    assert lazy.sst_mean.dtype == np.float32 and lazy.compute().drop_vars("crs").equals(alone)
    with pytest.raises(ValueError, match="`y` must name the variable to fill; the dataset has 'sst', 'other'"):
        npax.fill_gaps(xr.Dataset({"sst": single, "other": single}), model=model)


def test_a_stack_of_bands_is_filled_band_by_band(field, model):
    """Though the bands come last."""
    bands = field[:2].rename(time="band").assign_coords(band=[1, 2])
    expected = npax.fill_gaps(bands, model=model).sst_mean
    last = npax.fill_gaps(bands.transpose("lat", "lon", "band"), model=model).sst_mean
    assert np.array_equal(last.transpose(*expected.dims), expected)


def test_months_and_rounded_coordinates_are_even(field, model):
    months = np.array(["2020-01", "2020-02", "2020-03"], "M8[ns]")  # 31 and 29 days
    rounded = np.float32(170) + 1e-4 * np.arange(12, dtype=np.float32)
    section = field[:, 0].assign_coords(time=months, lon=rounded)
    assert np.array_equal(
        npax.fill_gaps(section, model=model).sst_mean, npax.fill_gaps(field[:, 0], model=model).sst_mean
    )
    with pytest.raises(ValueError, match="from 1 to 29 days"):
        npax.fill_gaps(
            section.assign_coords(time=np.array(["2020-01-31", "2020-02", "2020-03"], "M8[ns]")), model=model
        )


@pytest.mark.parametrize("name", ["lon", "x"])
def test_the_ends_of_longitudes_all_round_are_neighbours(name, field, model):
    """They see what lies beyond, each at the other; not where the map ends."""
    round_, part = (field[:1].assign_coords(lon=step * np.arange(12)).rename(lon=name) for step in (30.0, 29.0))
    units = {"units": "degrees_east"}
    round_, part = (given.assign_coords({name: given[name].assign_attrs(units)}) for given in (round_, part))
    flat = fill(model, np.pad(round_[0].to_numpy(), [(0, 0), (6, 6)], mode="wrap")).mean[:, 6:-6]
    assert np.array_equal(npax.fill_gaps(round_, model=model).sst_mean[0], flat)
    assert np.array_equal(npax.fill_gaps(part, model=model).sst_mean[0], fill(model, part[0].to_numpy()).mean)


def test_a_picture_of_one_value_has_no_scale(field, model):
    dry = xr.where(field.notnull(), 1e-5, field)[:1]
    with pytest.warns(UserWarning, match="All pixels that are seen in a picture are 1e-05: nothing says"):
        npax.fill_gaps(dry, model=model)


def test_a_field_without_gaps_is_told_and_what_may_stand_for_them(field, model):
    marked = field[:1].fillna(-327.68)
    with pytest.warns(UserWarning, match=r"No pixel of 'sst' is NaN.*Does -327.68, which is there \d+ times, stand"):
        found = npax.fill_gaps(marked, model=model)
    whole = (100 * marked).astype("int16")  # whose absolute value is too large for it
    with pytest.warns(UserWarning, match=r"Does -32768, .*`field.where\(field != -32768\)`"):
        npax.fill_gaps(whole, model=model)
    assert np.isfinite(found.sst_mean).all()
    with pytest.warns(UserWarning, match=r"No pixel of 'sst' is NaN: nothing is filled.$"):  # of two values neither
        npax.fill_gaps(field[:1].notnull(), model=model)


def test_infinite_pixels_are_gaps_and_told(field, model):
    gap, infinite = (field[:1].where(field[:1].lat < field.lat[0], value) for value in (np.nan, np.inf))
    with pytest.warns(UserWarning, match="pixels of `field` are infinite; they are filled as gaps"):
        found = npax.fill_gaps(infinite, model=model)
    xr.testing.assert_identical(found, npax.fill_gaps(gap, model=model))


def test_packed_numbers_are_refused(field, model):
    packed = field.assign_attrs(scale_factor=0.01, add_offset=20.0)
    with pytest.raises(ValueError, match=r"'sst' packed, by its attributes .*: 0\.01 times its numbers and 20"):
        npax.fill_gaps(packed.chunk(), model=model)
    assert npax.fill_gaps(field.assign_attrs(scale_factor=1.0, add_offset=0), model=model).sst_mean.shape == field.shape


@pytest.mark.parametrize("first", ["1677-08-30", "2262-04-08"])
def test_dates_that_nanoseconds_cannot_hold_are_even_too(first, field, model):
    days = np.datetime64(first, "s") + np.arange(10) * np.timedelta64(86_400, "s")
    filled = npax.fill_gaps(field[0].assign_coords(lat=days), model=model)
    assert np.isfinite(filled.sst_mean).all()


def test_objects_are_no_numbers(field, model):
    with pytest.raises(ValueError, match="`field` must hold numbers, got object"):
        npax.fill_gaps(field.astype(object), model=model)


def test_pictures_that_are_filled_together_share_the_cores(field, model, monkeypatch):
    """A window on each core, however many threads dask has."""
    filling = sys.modules[unwrap(fill).__module__]
    now, most, answer = set(), [], filling._answer

    def counted(*args):
        now.add(threading.get_ident())
        most.append(len(now))
        sleep(0.01)
        try:
            return answer(*args)
        finally:
            now.remove(threading.get_ident())

    monkeypatch.setattr(filling, "_answer", counted)
    monkeypatch.setattr(filling, "cores_each", lambda mesh: 2)
    monkeypatch.setattr(filling, "_workers", functools.cache(filling._workers.__wrapped__))
    stack = field[:2].isel(time=[0, 1] * 4).chunk({"time": 1})
    with dask.config.set(scheduler="threads", num_workers=8):
        assert np.isfinite(npax.fill_gaps(stack, model=model).sst_mean.to_numpy()).all()
    assert max(most) == 2


def test_a_name_that_is_taken_is_refused(field, model):
    with pytest.raises(ValueError, match="`field` has a coordinate 'sst_mean', as the result is to be named"):
        npax.fill_gaps(field.assign_coords(sst_mean=1.0), model=model)


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_marks_in_another_precision_are_found(attribute, field, model):
    single = field.fillna(9.96921e36).astype(np.float32).assign_attrs({attribute: 9.96921e36})
    with pytest.raises(ValueError, match=r"`field` holds 9\.96921e\+36, its attribute"):
        npax.fill_gaps(single, model=model)


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_numbers_that_stand_for_what_is_missing_are_refused(attribute, field, model):
    undecoded = field.fillna(-9999.0).assign_attrs({attribute: -9999.0})
    with pytest.raises(ValueError, match=rf"`field` holds -9999, its attribute `{attribute}`, \d+ times in 'sst'"):
        npax.fill_gaps(undecoded, model=model)
    with pytest.raises(ValueError, match="`field` holds -9999"):
        npax.fill_gaps(undecoded.chunk({"time": 1}), model=model).load()
    with pytest.raises(ValueError, match="`field` holds -9999"):  # before anything is trained on
        npax.fill_gaps(undecoded.chunk({"time": 1}), model=model, finetune=1)
    table = {"x": ["lat", "lon"], "y": "sst", "model": untrained.small()}
    with pytest.raises(ValueError, match="`observations` holds -9999"):
        npax.interpolate(undecoded[0], {"lat": [49.0], "lon": [1.0]}, **table)
    decoded = xr.decode_cf(undecoded.to_dataset()).sst
    assert np.array_equal(
        npax.fill_gaps(decoded, model=model).sst_mean, npax.fill_gaps(field, model=model).sst_mean, True
    )


def test_the_only_variable_needs_no_name(field, model):
    alone = npax.fill_gaps(field.to_dataset(), model=model)
    assert np.array_equal(alone.sst_mean, npax.fill_gaps(field, model=model).sst_mean, True)
    with pytest.raises(ValueError, match="`y` must name the variable to fill; the dataset has 'sst', 'other'"):
        npax.fill_gaps(field.to_dataset().assign(other=field), model=model)
    with pytest.raises(TypeError, match="An array becomes one by"):
        npax.fill_gaps(field.to_numpy(), model=model)


@pytest.mark.parametrize("turn", [False, True])
def test_the_two_names_of_one_meridian_are_one_pixel(turn, field, model):
    ring = field.assign_coords(lon=np.arange(0.0, 360.0, 30.0))[:2]
    ring[:, :, 0] = np.nan
    closed = xr.concat([ring, ring.isel(lon=[0]).assign_coords(lon=[360.0])], "lon")
    expected = npax.fill_gaps(ring, model=model)
    if turn:
        closed, expected = closed.transpose("time", "lon", "lat"), expected.transpose("time", "lon", "lat")
        expected = npax.fill_gaps(ring.transpose("time", "lon", "lat"), model=model)
    found = npax.fill_gaps(closed, model=model)
    for name in expected:
        assert np.allclose(found[name].isel(lon=slice(-1)), expected[name], equal_nan=True)
        assert found[name].isel(lon=0).equals(found[name].isel(lon=-1).assign_coords(lon=0.0))
    seen = closed.copy()
    seen[{"lon": -1}] = ring.isel(lon=3).to_numpy()  # one end sees what the other does not
    merged = ring.copy()
    merged[{"lon": 0}] = ring.isel(lon=3).to_numpy()
    again = npax.fill_gaps(merged.transpose(*seen.dims), model=model).sst_mean
    assert np.allclose(npax.fill_gaps(seen, model=model).sst_mean.isel(lon=slice(-1)), again, equal_nan=True)


def test_nothing_lazily_is_nothing(field, model):
    for empty in (field.isel(lat=slice(0, 0)), field.isel(time=slice(0, 0))):
        filled = npax.fill_gaps(empty.chunk(time=1), model=model)
        assert filled.sst_mean.chunks and filled.sst_mean.shape == empty.shape
        assert filled.compute().equals(npax.fill_gaps(empty, model=model))


def test_dates_of_other_calendars_are_looked_at_for_evenness(field, model):
    section = field[:, :, 0].rename(time="when")
    even, uneven = ([cftime.DatetimeNoLeap(2001, 1, day) for day in days] for days in ((1, 2, 3), (1, 2, 30)))
    filled = npax.fill_gaps(section.assign_coords(when=even), model=model, dims=("when", "lat"))
    assert filled.sst_mean.notnull().all()
    with pytest.raises(ValueError, match="`when` are not evenly spaced: their steps go from 1 to 28 days"):
        npax.fill_gaps(section.assign_coords(when=uneven), model=model, dims=("when", "lat"))


@pytest.mark.parametrize("name", ["ocean_time", "valid_time"])
def test_times_of_other_names_are_no_sides_of_pictures(name, field):
    bare = xr.DataArray(np.zeros((4, 5, 6)), dims=("eta_rho", "xi_rho", name))
    assert picture_dims(bare) == ("eta_rho", "xi_rho")
    told = xr.DataArray(np.zeros((4, 5, 6)), {"s": ("s", np.arange(6), {"axis": "T"})}, ("eta_rho", "xi_rho", "s"))
    assert picture_dims(told) == ("eta_rho", "xi_rho") and picture_dims(told.drop_vars("s")) == ("xi_rho", "s")


@pytest.mark.parametrize("scale", [np.array([0.01], "f4"), "0.01", np.float32(0.01)])
def test_packed_numbers_are_refused_however_their_scale_is_written(scale, field, model):
    with pytest.raises(ValueError, match=r"holds 'sst' packed.*: 0\.01 times its numbers"):
        npax.fill_gaps(field.assign_attrs(scale_factor=scale), model=model)
    npax.fill_gaps(field.assign_attrs(scale_factor=np.array([1.0]), add_offset="0"), model=model)


def test_numbers_that_stand_for_what_is_missing_are_told(field, model):
    marked = field[:1].copy()
    marked[0, 3, :5] = -999.0
    with pytest.warns(UserWarning, match="A picture of 'sst' holds -999"):
        npax.fill_gaps(marked, model=model)


def test_of_nothing_nothing_is_filled(field, model):
    with pytest.warns(UserWarning, match="No pixel of 'sst' is seen: nothing can be filled"):
        assert npax.fill_gaps(field * np.nan, model=model).sst_mean.isnull().all()


def test_pictures_in_pieces_are_filled_one_by_one(field, model):
    """Chunks of many pieces and of all times would become one."""
    filled = npax.fill_gaps(field.chunk(time=3, lat=4, lon=4), model=model).sst_mean
    assert filled.chunksizes == {"time": (1, 1, 1), "lat": (10,), "lon": (12,)}
    assert npax.fill_gaps(field.chunk(time=3), model=model).sst_mean.chunksizes["time"] == (3,)
    expected = npax.fill_gaps(field, model=model).sst_mean
    assert np.allclose(filled.isel(time=1), expected.isel(time=1), atol=1e-5)


def test_ranges_of_packed_numbers_are_not_those_of_predictions(field, model):
    about = {"valid_range": np.array([-32765, 32765], "i2"), "valid_min": 0, "valid_max": 1, "actual_range": [0, 1]}
    filled = npax.fill_gaps(field.assign_attrs(about), model=model)
    assert set(filled.sst_mean.attrs) == {"units", "long_name"}


def test_yes_and_no_are_no_texts(field, model):
    for name in ("include_noise", "mirrored"):
        with pytest.raises(ValueError, match=f"`{name}` must be True or False, got 'no'"):
            unwrap(npax.fill_gaps)(field, model=model, **{name: "no"})


def test_attributes_of_a_dataset_are_kept_and_bounds_are_no_field(field, model):
    bounds = xr.DataArray(np.zeros((field.sizes[field.dims[-2]], 2)), dims=(field.dims[-2], "nv"))
    dataset = xr.Dataset({"sst": field, "lat_bnds": bounds}, attrs={"title": "a picture"})
    dataset["sst"].attrs["bounds"] = "lat_bnds"
    found = npax.fill_gaps(dataset, model=model)
    assert found.attrs["title"] == "a picture" and set(found.data_vars) == {"sst_mean", "sst_std"}

"""Known standard errors of the observations, in arrays, tables and grids."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import npax
from npax.inference.anisotropy import matern32
from npax.metrics import crps

GRID = {"lat": np.linspace(0.0, 3.0, 5), "lon": np.linspace(0.0, 4.0, 6)}


@pytest.fixture
def table(rng):
    lon, lat = rng.uniform(0, 4, 30), rng.uniform(0, 3, 30)
    return pd.DataFrame({"lon": lon, "lat": lat, "temp": np.sin(lon) + lat, "se": rng.uniform(0.1, 1.0, 30)})


@pytest.fixture
def arrays(table):
    return table[["lon", "lat"]].to_numpy(), table["temp"].to_numpy(), table["se"].to_numpy()


@pytest.fixture(params=["exact", "tiled"])
def reg(small, request):
    return npax.NeuralProcessRegressor(small, strategy=request.param, tile_size=16)


def interpolate(observations, small, target=GRID, y="temp", **options):
    return npax.interpolate(observations, target, ["lon", "lat"], y, model=small, **options)


def told(reg, X):
    return np.stack([*reg.predict(X, return_std=True), reg.predict(X, return_std=True, include_noise=False)[1]])


def test_errors_are_in_the_unit_of_y(reg, arrays):
    X, y, error = arrays
    expected = told(reg.fit(X, y, error=error), X)
    found = told(reg.fit(X, 100 * y + 7, error=100 * error), X)
    assert np.abs((found - [[7], [0], [0]]) / 100 - expected).max() < 1e-5
    assert np.abs(told(reg.fit(X, 100 * y + 7, error=error), X) / 100 - expected).max() > 1e-3


def test_none_are_zeros_and_one_is_for_all(reg, arrays):
    X, y, _ = arrays
    assert np.abs(told(reg.fit(X, y, error=0), X) - told(reg.fit(X, y), X)).max() < 1e-6
    assert np.array_equal(told(reg.fit(X, y, error=0.3), X), told(reg.fit(X, y, error=np.full(30, 0.3)), X))


def test_every_column_has_its_own(reg, arrays):
    X, y, error = arrays
    both = np.stack([y, y**2], axis=1), np.stack([error, 3 * error], axis=1)
    found = reg.fit(X, both[0], error=both[1]).predict(X, return_std=True)
    for i in range(2):
        expected = clone(reg).fit(X, both[0][:, i], error=both[1][:, i]).predict(X, return_std=True)
        assert np.abs(found[0][:, i] - expected[0]).max() < 1e-5
        assert np.abs(found[1][:, i] - expected[1]).max() < 1e-5


def test_rows_that_are_left_out_take_theirs_along(reg, arrays):
    X, y, error = arrays
    gappy = y.copy()
    gappy[[3, 7]] = np.nan
    with pytest.warns(npax.estimators.DroppedRows):
        found = told(reg.fit(X, gappy, error=error), X)
    known = np.isfinite(gappy)
    assert np.array_equal(found, told(reg.fit(X[known], y[known], error=error[known]), X))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("then", [True, False])
def test_an_update_is_a_fit_on_all(small, arrays, first, then):
    X, y, error = arrays
    reg = npax.NeuralProcessRegressor(small)
    of_parts = [error[:20] if first else None, error[20:] if then else None]
    reg.fit(X[:20], y[:20], error=of_parts[0]).update(X[20:], y[20:], error=of_parts[1])
    joined = np.r_[error[:20] * first, error[20:] * then]
    expected = clone(reg).fit(X, y, error=joined)
    assert np.abs(told(reg, X) - told(expected, X)).max() < 1e-6
    assert (reg.error_ is None) == (not first and not then)


def test_samples_and_covariances_hear_of_them(reg, arrays):
    X, y, error = arrays
    answers = []
    for given in (None, error):
        reg.fit(X, y, error=given)
        answers.append((reg.sample_y(X[:3], 2, random_state=0), reg.predict(X[:3], return_cov=True)[1]))
    assert all(np.abs(a - b).max() > 1e-4 for a, b in zip(*answers, strict=True))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (np.ones(29), r"`error` must have the shape of `y`, \(30,\), or be one number; got the shape \(29,\)"),
        (-1.0, r"`error` must hold standard deviations, finite and not negative.*got -1.0 in row 0"),
        (np.r_[np.ones(29), np.nan], r"got nan in row 29. Where an error is not known leave the row out, or give 0"),
        (np.inf, r"got inf in row 0"),
        (["1"] * 30, "`error` must be numbers, got '1'"),
        (np.full(30, np.datetime64("2020-01-01")), "`error` holds dates"),
    ],
)
def test_wrong_errors_are_refused_and_change_nothing(small, arrays, error, words):
    X, y, _ = arrays
    reg = npax.NeuralProcessRegressor(small).fit(X, y)
    with pytest.raises(ValueError, match=words):
        reg.fit(X, y, error=error)
    assert reg.error_ is None and len(reg.X_) == 30


def test_models_that_hear_of_none_and_fine_tuning_refuse_them(small, tiny, arrays):
    X, y, error = arrays
    with pytest.raises(ValueError, match="this CNP was not made for any"):
        npax.NeuralProcessRegressor(tiny).fit(X, y, error=error)
    with pytest.raises(ValueError, match="`finetune` does not take a known `error`"):
        npax.NeuralProcessRegressor(small).fit(X, y, error=error, finetune=1)


def test_a_column_of_a_table(table, small, arrays):
    X, y, error = arrays
    found = interpolate(table, small, error="se")
    lon, lat = np.meshgrid(GRID["lon"], GRID["lat"])
    reg = npax.NeuralProcessRegressor(small).fit(X, y, error=error)
    mean, std = reg.predict(np.stack([lon.ravel(), lat.ravel()], axis=1), return_std=True)
    assert np.allclose(found.temp_mean.values.ravel(), mean) and np.allclose(found.temp_std.values.ravel(), std)
    assert not np.allclose(interpolate(table, small).temp_mean, found.temp_mean, atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, -1.0, np.inf])
def test_what_is_no_standard_error_is_refused_by_column_and_row(table, small, bad):
    table = table.set_index(np.arange(100, 130))
    table.loc[[107, 111], "se"] = bad
    with pytest.raises(ValueError, match=rf"'se' of `observations` must .*got {bad:g} in row 107, the first of 2"):
        interpolate(table, small, error="se")
    table.loc[[107, 111], "temp"] = np.nan
    with pytest.warns(npax.estimators.DroppedRows):
        assert np.isfinite(interpolate(table, small, error="se").temp_mean).all()


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
@pytest.mark.parametrize("size", [30.0, 1e6, 1e12])
def test_bad_observations_are_as_good_as_none(small, arrays, strategy, size):
    X, y, error = arrays
    reg = npax.NeuralProcessRegressor(small, strategy=strategy, tile_size=64)
    expected = told(reg.fit(X, y, error=error), X)
    more = np.r_[X, X[:10]], np.r_[y, y[:10] + size * np.linspace(-1, 1, 10)]
    found = told(reg.fit(*more, error=np.r_[error, np.full(10, size)]), X)
    assert np.abs(found - expected).max() < 0.02
    assert not np.allclose(told(reg.fit(*more), X), expected, atol=0.2)


@pytest.mark.filterwarnings("ignore:`error` is 1")
def test_errors_however_large_beside_the_values_have_finite_answers(small, arrays):
    X, y, _ = arrays
    for scale, error in ((1.0, 1e160), (1e-200, 1.0), (1e200, 1e-200)):
        assert np.isfinite(told(npax.NeuralProcessRegressor(small).fit(X, scale * y, error=error), X)).all()


def test_errors_of_another_unit_are_told(small, rng):
    X, noise = rng.uniform(size=(40, 2)), rng.normal(size=(40, 2))
    error = rng.uniform(0.5, 5.0, (40, 2))
    reg = npax.NeuralProcessRegressor(small)
    reg.fit(X, 7 + error * noise, error=error)  # nothing but errors
    reg.fit(X[:9], 7 + 0 * noise[:9, 0] + np.arange(9), error=100.0)  # too few to tell
    with pytest.warns(UserWarning, match="`error` is 2.*, and column 1 of `y` is between .* in the unit of `y`"):
        reg.fit(X, 7 + error * noise, error=error * [1, 100])
    reg.fit(X[:2], error[:2, 0] * noise[:2, 0], error=error[:2, 0])
    with pytest.warns(UserWarning, match="`error` is 100 .*, and `y` is between"):
        reg.update(X[2:], noise[2:, 0], error=100.0)


def test_scores_are_those_of_values_with_their_errors(small, arrays):
    X, y, error = arrays
    reg = npax.NeuralProcessRegressor(small).fit(X[:20], y[:20], error=error[:20])
    mean, std = reg.predict(X[20:], return_std=True)
    found = reg.score_report(X[20:], y[20:], error=error[20:])
    assert found == npax.metrics.score_report(y[20:], mean, np.hypot(std, error[20:]))
    assert found != reg.score_report(X[20:], y[20:])


def test_a_column_or_a_row_of_errors_is_one_all_the_same(small, arrays, table):
    X, y, error = arrays
    reg = npax.NeuralProcessRegressor(small)
    expected = told(reg.fit(X, y, error=error), X)
    for given in (table[["se"]], table["se"], table["se"].astype("Float64"), error[:, None], list(error)):
        assert np.array_equal(told(reg.fit(X, y, error=given), X), expected)
    assert np.array_equal(told(reg.fit(X, y[:, None], error=error), X)[..., 0], expected)


def test_variables_and_coordinates_of_grids(small, rng):
    field = xr.Dataset(
        {
            "temp": (("lat", "lon"), rng.normal(size=(5, 6))),
            "se": (("lat", "lon"), rng.uniform(0.1, 1.0, (5, 6))),
            "rain": (("lat", "lon"), rng.normal(size=(5, 6))),
        },
        GRID,
    )
    expected = interpolate(field.to_dataframe().reset_index(), small, error="se")
    assert np.allclose(interpolate(field, small, error="se").temp_mean, expected.temp_mean)
    array = field.temp.assign_coords(se=field.se)
    assert np.allclose(interpolate(array, small, y=None, error="se").temp_mean, expected.temp_mean)
    lazy = xr.Dataset(coords=GRID).chunk()
    lazy = interpolate(field, small, target=lazy.assign(m=lazy.lat * lazy.lon).chunk(lat=2), error="se")
    assert lazy.temp_mean.chunks and np.allclose(lazy.temp_mean, expected.temp_mean, atol=1e-5)
    by_row = field.assign(se=("lat", rng.uniform(0.1, 1.0, 5)))
    assert np.isfinite(interpolate(by_row, small, error="se").temp_mean).all()
    with pytest.raises(ValueError, match="does not vary along 'time', as 'se' does: leave 'se' out of `error`"):
        interpolate(field.assign(se=("time", [1.0, 2.0])), small, error="se")
    one = interpolate(field, small, error="se", coords="isotropic")
    two = interpolate(field, small, y=["temp", "rain"], error=["se", "se"], coords="isotropic")
    assert np.allclose(two.temp_mean, one.temp_mean, atol=1e-5)


def test_columns_that_are_not_there_are_named(table, small):
    rule = r"`error` must name a column for each of `y`, \['temp'\], and none of the others; got "
    for names in (["se", "sd"], ["temp"], ["lon"]):
        with pytest.raises(ValueError, match=rule):
            interpolate(table, small, error=names)
    for values in (0.5, np.float32(0.5)):
        with pytest.raises(TypeError, match="`error` is a name here"):
            interpolate(table, small, error=values)
    with pytest.raises(ValueError, match="sd"):
        interpolate(table, small, error="sd")


def test_a_store_of_other_errors_is_another_prediction(table, small, tmp_path):
    interpolate(table, small, error="se", store=tmp_path / "map.zarr")
    with pytest.raises(FileExistsError):
        interpolate(table, small, store=tmp_path / "map.zarr")


def test_errors_go_with_the_rows_of_their_labels(small, arrays):
    X, y, error = arrays
    y, error = pd.Series(y, [f"v{i}" for i in range(30)]), pd.Series(error, [f"v{i}" for i in range(30)])
    reg = npax.NeuralProcessRegressor(small)
    with pytest.raises(ValueError, match="`y` and `error` have the same labels in another order"):
        reg.fit(X, y, error=error.sort_values())
    reg.fit(X, y, error=error)
    with pytest.raises(ValueError, match="`y` and `error` have the same labels in another order"):
        reg.score_report(X, y, error=error[::-1])


@pytest.fixture(scope="module")
def series():
    """A noisy one, and the estimator that was told of no errors."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (3000, 1))
    y = np.sin(X[:, 0]) + 0.8 * rng.normal(size=3000)
    return X, y, npax.NeuralProcessRegressor(views=None).fit(X, y)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("known", [0.0, 0.01, 0.8])
def test_equal_errors_do_not_hinder_averaging(known, series):
    """A small one changes next to nothing; one of all of the noise, of which the network would otherwise hear three
    quarters, little, and it leaves none for new observations."""
    X, y, plain = series
    reg = npax.NeuralProcessRegressor(views=None).fit(X, y, error=known)
    places = np.linspace(1, 9, 30)[:, None]
    assert reg.averaged_ == plain.averaged_ > 1
    _, unsure = plain.predict(places, return_std=True, include_noise=False)
    assert np.mean(np.square((reg.predict(places) - plain.predict(places)) / unsure)) ** 0.5 < (
        0.02 if known < 0.1 else 0.2
    )
    (_, left), (_, all_of_it) = (one.predict(places, return_std=True) for one in (reg, plain))
    assert np.median(np.square(all_of_it) - np.square(left)) == pytest.approx(known**2, rel=0.1)


def test_huge_errors_leave_no_noise(series):
    X, y, _ = series
    with pytest.warns(UserWarning, match="`error` is 1e.200"):
        reg = npax.NeuralProcessRegressor(views=None).fit(X, y, error=1e200)
    places = np.linspace(1, 9, 30)[:, None]
    _, none_left = reg.predict(places, return_std=True)
    assert np.array_equal(none_left, reg.predict(places, return_std=True, include_noise=False)[1])


@pytest.mark.usefixtures("optimised")
def test_means_of_unequal_errors_are_seen_nearly_as_well_as_may_be():
    """Good and bad instruments on a line. Of tiles of single observations, the negative control, intervals are too
    wide."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (2200, 1))
    k = matern32(np.square(1.5 * (x - x.T)))[0]
    truth = np.linalg.cholesky(k + 1e-9 * np.eye(2200)) @ rng.normal(size=2200)
    error = np.where(rng.uniform(size=2000) < 0.2, 0.3, 3.0)
    y = truth[:2000] + np.hypot(error, 0.5) * rng.normal(size=2000)
    weighed = np.linalg.solve(k[:2000, :2000] + np.diag(error**2 + 0.25), k[:2000, 2000:])
    best = crps(truth[2000:], y @ weighed, np.sqrt(1 - np.sum(weighed * k[:2000, 2000:], axis=0)))

    def above(strategy):
        reg = npax.NeuralProcessRegressor(strategy=strategy).fit(x[:2000], y, error=error)
        return reg, crps(truth[2000:], *reg.predict(x[2000:], return_std=True, include_noise=False)) / best - 1

    reg, found = above("auto")
    assert reg.averaged_ > 3 and found < 0.2 and above("tiled")[1] > 2 * found
    new, function = (reg.predict(x[2000:], return_std=True, include_noise=noise)[1] for noise in (True, False))
    assert np.isclose(np.median(np.sqrt(new**2 - function**2)), 0.5, rtol=0.2)

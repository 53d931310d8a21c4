import dask.dataframe
import jaxtyping
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st
from scipy import integrate, stats

from npax import metrics

SCORES = [metrics.nll, metrics.crps, metrics.interval_score]
SERIES = pd.Series([1.0, 2, 4])
PAIRS = SERIES.set_axis(pd.MultiIndex.from_tuples([(0, 1), (1, 0), (1, 1)]))
TABLE = pd.DataFrame([[1.0, 2], [4, 8]], columns=["a", "b"])
GRID = xr.DataArray([[1.0, 2], [4, 8]], {"lat": [10, 20], "lon": [0, 5]})


def calibrated(rng, n=200_000):
    mean, std = rng.normal(size=n), rng.uniform(0.3, 3, n)
    return mean + std * rng.normal(size=n), mean, std


def test_errors_by_hand():
    assert metrics.rmse([1.0, 2.0, 5.0], [1.0, 2.0, 2.0]) == pytest.approx(3**0.5)
    assert metrics.mae([1.0, 2.0, 5.0], [1.0, 2.0, 2.0]) == pytest.approx(1.0)


def test_rmse_is_pooled_not_averaged_over_batches():
    y, mean = np.array([[0.0, 0.0], [4.0, 4.0]]), np.zeros((2, 2))
    assert metrics.rmse(y, mean) == pytest.approx(8**0.5)
    assert np.mean([metrics.rmse(a, b) for a, b in zip(y, mean, strict=True)]) == pytest.approx(2.0)


def test_nll_equals_scipy(rng):
    y, mean, std = calibrated(rng, 50)
    assert metrics.nll(y, mean, std) == pytest.approx(-stats.norm(mean, std).logpdf(y).mean(), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(y=st.floats(-8, 8), mean=st.floats(-3, 3), std=st.floats(0.05, 4))
def test_crps_equals_the_integral_that_defines_it(y, mean, std):
    cdf = stats.norm(mean, std).cdf
    below, _ = integrate.quad(lambda x: cdf(x) ** 2, mean - 12 * std - 12, y, limit=200, points=[mean])
    above, _ = integrate.quad(lambda x: (1 - cdf(x)) ** 2, y, mean + 12 * std + 12, limit=200, points=[mean])
    assert metrics.crps([y], [mean], [std]) == pytest.approx(below + above, rel=1e-5, abs=1e-7)


def test_crps_goes_to_the_absolute_error_as_the_std_goes_to_zero(rng):
    y, mean, _ = calibrated(rng, 100)
    assert metrics.crps(y, mean, np.full(100, 1e-9)) == pytest.approx(metrics.mae(y, mean), rel=1e-6)


@pytest.mark.parametrize(("y", "std"), [(1.0, 1e-320), (1e200, 1e-200), (0.0, 1e-320)])
def test_crps_of_nearly_nothing_is_the_error(y, std):
    assert metrics.crps([y], [0.0], [std]) == pytest.approx(y, abs=1e-319)


def test_crps_of_samples_agrees_with_the_closed_form(rng):
    y, mean, std = calibrated(rng, 200)
    samples = mean + std * rng.normal(size=(4000, 200))
    assert metrics.crps_samples(y, samples) == pytest.approx(metrics.crps(y, mean, std), rel=0.01)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 7), seed=st.integers(0, 99))
def test_crps_of_samples_equals_its_definition_over_all_pairs(n, seed):
    rng = np.random.default_rng(seed)
    y, samples = rng.normal(size=(3,)), rng.normal(size=(n, 3))
    pairs = np.abs(samples[:, None] - samples[None]).sum(axis=(0, 1)) / (n * (n - 1))
    expected = np.mean(np.abs(samples - y).mean(axis=0) - 0.5 * pairs)
    assert metrics.crps_samples(y, samples) == pytest.approx(expected, rel=1e-9)


def test_crps_of_few_samples_is_unbiased(rng):
    y, mean, std = calibrated(rng, 100_000)
    samples = mean + std * rng.normal(size=(2, 100_000))
    assert metrics.crps_samples(y, samples) == pytest.approx(metrics.crps(y, mean, std), rel=0.01)


def test_samples_are_converted_as_all_else():
    table = pd.DataFrame({"a": [1, pd.NA, 2], "b": [1, 2, 3]})
    with pytest.raises(ValueError, match="`samples` has 1 values that are not finite"):
        metrics.crps_samples([1.0, 2], table)
    with pytest.raises(TypeError, match="`samples` holds dates or durations"):
        metrics.crps_samples([1.0, 2], np.zeros((3, 2), "m8[s]"))
    with pytest.raises(TypeError, match="must be real numbers"):
        metrics.crps_samples([1.0, 2], np.ones((3, 2)) + 1j)
    with pytest.raises(ValueError, match="`y` has 1 values that are not finite"):
        metrics.nll(pd.Series([1, pd.NA], dtype=object), [1.0, 2], [1, 1])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_coverage_of_calibrated_predictions_is_the_level(level, rng):
    assert metrics.coverage(*calibrated(rng), level) == pytest.approx(level, abs=0.004)


def test_coverage_tells_wrong_widths(rng):
    y, mean, std = calibrated(rng)
    assert metrics.coverage(y, mean, std / 2) == pytest.approx(stats.norm.cdf(0.98) * 2 - 1, abs=0.004)
    assert metrics.coverage(y, mean, 2 * std) > 0.999


def test_interval_score_by_hand():
    half = stats.norm.ppf(0.975)
    assert metrics.interval_score([0.0, half + 1], [0.0, 0.0], [1.0, 1.0]) == pytest.approx(2 * half + 0.5 * 40)
    assert metrics.interval_score([2.0], [0.0], [1.0], level=0.5) == pytest.approx(
        2 * stats.norm.ppf(0.75) + 4 * (2 - stats.norm.ppf(0.75))
    )


@pytest.mark.parametrize("score", SCORES)
def test_proper_scores_prefer_the_truth(score, rng):
    y, mean, std = calibrated(rng)
    best = score(y, mean, std)
    for other in (score(y, mean + 0.5, std), score(y, mean, std / 1.5), score(y, mean, std * 1.5)):
        assert other > best + 0.01


@pytest.mark.parametrize("score", [metrics.crps, metrics.interval_score])
def test_scores_scale_with_the_units(score, rng):
    y, mean, std = calibrated(rng, 100)
    assert score(10 * y + 3, 10 * mean + 3, 10 * std) == pytest.approx(10 * score(y, mean, std))


def test_pit_of_calibrated_predictions_is_uniform(rng):
    y, mean, std = calibrated(rng, 5_000)
    assert stats.kstest(metrics.pit(y, mean, std), "uniform").pvalue > 0.01
    assert stats.kstest(metrics.pit(y, mean, 1.2 * std), "uniform").pvalue < 0.01


def test_calibration_curve_is_coverage_at_every_level(rng):
    y, mean, std = calibrated(rng, 1_000)
    levels, shares = metrics.calibration_curve(y, mean, 0.7 * std)
    assert shares == pytest.approx([metrics.coverage(y, mean, 0.7 * std, level) for level in levels])
    assert np.all(np.diff(shares) >= 0) and np.all(shares < levels)
    (level,), (share,) = metrics.calibration_curve(y, mean, 0.7 * std, np.array(0.95))
    assert level == 0.95 and share == shares[-1]


def test_report_has_the_six_scores(rng):
    y, mean, std = calibrated(rng, 30)
    report = metrics.score_report(y, mean, std)
    assert list(report) == ["rmse", "mae", "nll", "crps", "coverage", "interval"]
    assert all(type(value) is float for value in report.values())
    assert report["crps"] == metrics.crps(y, mean, std)


def test_integers_and_lists_are_taken():
    assert metrics.score_report([1, 2], [1, 3], [1, 1])["rmse"] == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-200, 1.0, 1e200, 1.7e308])
def test_errors_of_any_size_neither_overflow_nor_vanish(size):
    assert metrics.rmse([size, 0.0, -size, size], [0.0, 0.0, 0.0, 0.0]) == pytest.approx(size * 0.75**0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("y", "mean", "words"),
    [
        (SERIES, SERIES[::-1], "`y` and `mean` have the same labels in another order.*`.reindex_like`.*`.to_numpy"),
        (PAIRS, PAIRS[::-1], "same labels"),
        (TABLE, TABLE[::-1], "same labels"),
        (TABLE, TABLE[["b", "a"]], "same labels"),
        (GRID, GRID[::-1], "same labels"),
        (GRID, GRID[:, ::-1], "same labels"),
        (GRID, GRID.T, r"dimensions in another order, \('lat', 'lon'\) and \('lon', 'lat'\).*`.transpose`"),
        (GRID.drop_vars(["lat", "lon"]), GRID.T, "dimensions in another order"),
        (GRID[:, :1], GRID[:, :1].T, "dimensions in another order"),
    ],
)
def test_labels_in_another_order_are_refused(y, mean, words):
    for score in (metrics.rmse, metrics.mae):
        with pytest.raises(ValueError, match=words):
            score(y, mean)
        assert score(y, y.copy()) == 0.0
    with pytest.raises(ValueError, match="`y` and `std`"):
        metrics.nll(y, y, mean)


def test_samples_are_compared_by_the_labels_of_their_places():
    tables = pd.DataFrame([SERIES - 1, SERIES, SERIES + 1]), xr.concat([GRID, GRID + 1], "sample")
    for y, samples in zip((SERIES, GRID), tables, strict=True):
        assert np.isfinite(metrics.crps_samples(y, samples)) and np.isfinite(metrics.crps_samples(y, samples[::-1]))
        with pytest.raises(ValueError, match="`y` and `samples` have the same labels"):
            metrics.crps_samples(y[::-1], samples)
    with pytest.raises(ValueError, match="`y` and `samples` have their dimensions"):
        metrics.crps_samples(GRID.T, tables[1])


@pytest.mark.parametrize(
    ("y", "mean"),
    [
        (SERIES, SERIES.to_numpy()),
        (SERIES.to_list(), SERIES),
        (SERIES, SERIES.set_axis([5, 2, 9])),
        (SERIES, SERIES.set_axis(["a", "b", "c"])),
        (PAIRS, SERIES),
        (SERIES, xr.DataArray(SERIES.to_numpy(), {"x": [2, 1, 0]})),
        (GRID, GRID.drop_vars("lat")),
        (GRID, GRID.rename(lat="y", lon="x")),
        (TABLE, GRID),
        (dask.dataframe.from_pandas(TABLE, npartitions=1), TABLE),
    ],
)
def test_values_without_labels_in_common_are_compared_by_position(y, mean):
    assert metrics.rmse(y, mean) == metrics.rmse(mean, y) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.rmse([1.0, 2.0], [1.0]), "one shape"),
        (lambda: metrics.rmse([[1.0]], [1.0]), "one shape"),
        (lambda: metrics.rmse([], []), "empty"),
        (lambda: metrics.mae([np.nan], [1.0]), "`y` has 1 values that are not finite"),
        (lambda: metrics.rmse(np.ma.masked_greater([1.0, 9.0], 5.0), [1.0, 1.0]), "`y` has 1 values.* or masked"),
        (lambda: metrics.crps_samples([1.0], np.ma.masked_greater([[1.0], [9.0]], 5)), "`samples` has 1 .* or masked"),
        (lambda: metrics.nll([1.0], [1.0], [0.0]), "`std` must be above 0"),
        (lambda: metrics.crps([1.0], [1.0], [-1.0]), "`std` must be above 0"),
        (lambda: metrics.coverage([1.0], [1.0], [1.0], level=95.0), "`level`"),
        (lambda: metrics.crps_samples([1.0], [[1.0]]), "at least 2"),
        (lambda: metrics.crps_samples([1.0, 2.0], [[1.0], [2.0]]), r"shape of `y`, \[2\], behind.*transpose"),
        (lambda: metrics.crps_samples([1.0], [[np.nan], [1.0]]), "`samples` has 1 values"),
        (lambda: metrics.calibration_curve([1.0], [1.0], [1.0], levels=[0.0]), "`levels`"),
        (lambda: metrics.calibration_curve([1.0], [1.0], [1.0], levels=[0.5, np.nan]), "`levels`"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("level", [[0.5, 0.9], np.array([0.5]), "0.9", None, np.nan, 1])
@pytest.mark.parametrize("score", [metrics.coverage, metrics.interval_score])
def test_a_level_that_is_not_one_number_is_named(score, level, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as users run it
    with pytest.raises(ValueError, match="`level` must be one number between 0 and 1"):
        score([1.0], [1.0], [1.0], level)


def test_dates_and_durations_are_refused():
    """Their numbers depend on the resolution, and a missing one is a number."""
    days = np.array(["2020-01-01", "NaT"], "datetime64[ns]")
    for y in (days, days - days):
        with pytest.raises(TypeError, match="`y` holds dates or durations"):
            metrics.rmse(y, y)

"""Positive values whose logarithm is a field."""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
import untrained
from scipy import integrate, special, stats
from sklearn.base import clone
from sklearn.utils import estimator_checks

import npax
from npax import metrics
from npax.links import Log

X = np.random.default_rng(5).uniform(0, 3, (30, 2))
Y = np.exp(np.sin(X[:, 0]) + 0.1 * np.random.default_rng(6).normal(size=30))
T = np.random.default_rng(7).uniform(0, 3, (12, 2))


def of(model):
    return npax.LogNormalRegressor(npax.NeuralProcessRegressor(model))


def test_links_have_the_moments_of_the_log_normal_distribution(rng):
    mean, std = rng.normal(size=20), rng.uniform(1e-6, 2, 20)
    law = stats.lognorm(std, scale=np.exp(mean))
    found = Log().moments(mean, std)
    assert np.allclose(found[0], law.mean(), rtol=1e-12) and np.allclose(found[1], law.std(), rtol=1e-9)
    assert np.allclose(Log().of_moments(*found), [mean, std], rtol=1e-6)
    assert np.allclose(Log().slope(mean, std), law.mean())
    extreme = Log().moments(np.array([-690.0, 690, 0, 0]), np.array([1e-9, 1e-9, 1e3, 0]))
    assert np.isfinite(extreme).all() and np.allclose(extreme[0][:2], np.exp([-690.0, 690]), rtol=1e-12)


def test_the_logarithm_is_predicted(hearing):
    reg = of(hearing).fit(X, Y)
    level = npax.NeuralProcessRegressor(hearing).fit(X, np.log(Y))
    for noise in (True, False):
        mean, std = level.predict(T, return_std=True, include_noise=noise)
        law = stats.lognorm(std, scale=np.exp(mean))
        found = reg.predict(T, return_std=True, include_noise=noise)
        assert np.allclose(found[0], law.mean()) and np.allclose(found[1], law.std())
        assert np.array_equal(found[0], reg.predict(T, include_noise=noise))
        quantiles = reg.predict_quantiles(T, [0.1, 0.9], include_noise=noise)
        assert np.allclose(quantiles, np.stack([law.ppf(0.1), law.ppf(0.9)], axis=1))
        assert np.allclose(reg.exceedance(T, 1.5, include_noise=noise), law.sf(1.5))
        samples = level.sample_y(T, 4, 3, include_noise=noise)
        assert np.allclose(reg.sample_y(T, 4, 3, include_noise=noise), np.exp(samples))
    assert np.array_equal(reg.exceedance(T, [1.5])[:, 0], reg.exceedance(T, 1.5))


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e200])
def test_units_are_no_matter(unit, hearing):
    one, other = of(hearing).fit(X, Y), of(hearing).fit(X, unit * Y)
    for a, b in zip(one.predict(T, return_std=True), other.predict(T, return_std=True), strict=True):
        assert np.allclose(b / unit, a, rtol=1e-4)
    mean, std = other.predict_average(T, return_std=True)
    assert np.allclose(np.array([mean, std]) / unit, one.predict_average(T, return_std=True), rtol=1e-3)


def test_averages_are_those_of_values(hearing):
    """Their means are averages of `predict`; deviations, where the logarithm varies by little, those of the regressor
    of values, for the two are the same then."""
    reg, weights = of(hearing).fit(X, Y), np.random.default_rng(8).uniform(size=(2, 12))
    mean, std = reg.predict_average(T, weights, return_std=True)
    assert np.allclose(mean, (weights / weights.sum(axis=1, keepdims=True)) @ reg.predict(T))
    again, cov = reg.predict_average(T, weights, return_cov=True)
    assert np.allclose(again, mean) and np.allclose(np.sqrt(np.diag(cov)), std, rtol=1e-2)
    law = stats.lognorm(*_of_moments(mean, std))
    assert np.allclose(reg.predict_average_quantiles(T, [0.1, 0.9], weights), law.ppf([[0.1], [0.9]]).T)
    little = 1 + 1e-4 * np.sin(X[:, 0])
    values = npax.NeuralProcessRegressor(hearing).fit(X, little).predict_average(T, return_std=True)
    assert np.allclose(of(hearing).fit(X, little).predict_average(T, return_std=True), values, rtol=1e-2)


def _of_moments(mean, std):
    variance = np.log1p((std / mean) ** 2)
    return np.sqrt(variance), 0, np.exp(np.log(mean) - variance / 2)


def test_known_errors_are_relative(hearing):
    error = np.random.default_rng(9).uniform(0, 0.3, 30)
    relative = np.sqrt(np.log1p((error / Y) ** 2))
    level = npax.NeuralProcessRegressor(hearing).fit(X, np.log(Y), error=relative)
    found = of(hearing).fit(X, Y, error=error)
    assert np.allclose(found.regressor_.error_, relative)
    assert np.allclose(np.log(found.predict_quantiles(T, 0.5)), level.predict(T), atol=1e-5)
    gone = np.where(np.arange(30) == 4, np.nan, Y)
    with pytest.warns(npax.estimators.DroppedRows, match="1 of 30 rows"):
        assert len(of(hearing).fit(X, gone, error=error).regressor_.error_) == 29


def test_more_may_come(hearing):
    whole, some = of(hearing).fit(X, Y), of(hearing).fit(X[:20], Y[:20])
    assert np.allclose(some.update(X[20:], Y[20:]).predict(T), whole.predict(T))
    with pytest.warns(UserWarning, match="`y` holds 9999, 1 of 31 values"):
        some.update(X[:1], [9999.0])


def test_scores_are_those_of_log_normal_predictions(hearing, rng):
    reg, y = of(hearing).fit(X, Y), np.exp(rng.normal(size=12))
    mean, std = reg.regressor_.predict(T, return_std=True)
    law, scores = stats.lognorm(std, scale=np.exp(mean)), reg.score_report(T, y)
    low, high = law.ppf(0.025), law.ppf(0.975)
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    expected = {
        "rmse": np.sqrt(np.mean((y - law.mean()) ** 2)),
        "mae": np.mean(abs(y - law.mean())),
        "nll": -np.mean(law.logpdf(y)),
        "crps": metrics.crps_lognormal(y, mean, std),
        "coverage": np.mean((low <= y) & (y <= high)),
        "interval": np.mean(high - low + 40 * missed),
    }
    assert scores.keys() == expected.keys() and all(np.isclose(scores[k], expected[k]) for k in scores)
    assert scores["nll"] < reg.score_report(T, y, error=5 * y)["nll"] or scores["coverage"] < 1
    assert np.isclose(reg.score(T, y), 1 - np.sum((y - law.mean()) ** 2) / np.sum((y - y.mean()) ** 2))
    lost, weight = np.where(np.arange(12) < 2, np.nan, y), rng.uniform(size=12)
    with pytest.warns(npax.estimators.DroppedRows):
        assert np.isclose(reg.score(T, lost, weight), reg.score(T[2:], y[2:], weight[2:]))


@pytest.mark.parametrize(("y", "mean", "std"), [(1.0, 0.0, 1.0), (0.1, -1.0, 0.3), (30.0, 1.0, 1.5), (2.0, 0.7, 1e-3)])
def test_the_crps_is_its_integral(y, mean, std):
    law = stats.lognorm(std, scale=np.exp(mean))
    ends = [law.ppf(1e-13), *sorted([y, law.median()]), law.isf(1e-13) + y]
    parts = [
        integrate.quad(lambda x: (law.cdf(x) - (x >= y)) ** 2, *pair, limit=500)[0] for pair in itertools.pairwise(ends)
    ]
    assert np.isclose(metrics.crps_lognormal([y], [mean], [std]), sum(parts), rtol=1e-5)


def test_the_crps_of_a_mean_beyond_all_numbers_is_one():
    """At the median the half above it and the spread are all there is: both by the scaled error function."""
    found = metrics.crps_lognormal([1.0], [0.0], [40.0])
    assert np.isclose(np.log(found), 40**2 / 4 + np.log(special.erfcx(20.0)))
    assert metrics.crps_lognormal([1.0], [0.0], [80.0]) == np.inf


def test_what_has_no_logarithm_is_refused(hearing):
    zero = np.where(np.arange(30) % 7 == 3, 0.0, Y)
    with pytest.raises(
        ValueError, match=r"`y` must be positive, .* got 0 in row 3 and in 3 more. Of values below a limit"
    ):
        of(hearing).fit(X, zero)
    reg = of(hearing).fit(X, Y)
    with pytest.raises(ValueError, match="must be positive"):
        reg.update(X[:1], [-1.0])
    with pytest.raises(ValueError, match="must be positive, got 0"):
        reg.exceedance(T, 0.0)
    with pytest.raises(ValueError, match=r"`y` must be numbers, got 'a'"):
        reg.fit(X, np.full(30, "a"))
    with pytest.raises(ValueError, match=r"`y` must be numbers, got '<0.01'"):
        reg.fit(X, np.where(np.arange(30) == 7, "<0.01", Y.astype(str)))
    with pytest.raises(TypeError, match="`regressor` must be an instance of NeuralProcessRegressor"):
        npax.LogNormalRegressor(npax.CountRegressor()).fit(X, Y)
    assert np.allclose(clone(reg).fit(X, Y).predict(T), reg.predict(T))


@pytest.mark.parametrize(
    "check",
    ["estimators_dtypes", "dict_unchanged", "fit2d_1sample", "n_features_in", "estimators_unfitted", "requires_y_none"],
)
def test_scikit_learns_own_checks(check):
    reg = npax.LogNormalRegressor(npax.NeuralProcessRegressor(untrained.hearing(20)))
    try:
        getattr(estimator_checks, f"check_{check}")("LogNormalRegressor", reg)
    except ValueError as error:  # of one sample
        assert check == "fit2d_1sample" and "1 sample" in str(error)


def test_by_name(hearing):
    soil = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "zinc": Y, "lead": Y})
    places = pd.DataFrame({"x": T[:, 0], "y": T[:, 1], "field": np.arange(12) // 6})
    reg, options = of(hearing).fit(X, Y), {"x": ["x", "y"], "lognormal": True, "model": hearing}
    asked = {"quantiles": [0.025, 0.5], "above": 1.5}
    found = npax.interpolate(soil, places, y="zinc", **options, **asked)
    expected = [*reg.predict(T, return_std=True), *reg.predict_quantiles(T, [0.025, 0.5]).T]
    expected.append(reg.exceedance(T, 1.5, include_noise=True))
    assert np.allclose(found.filter(like="zinc"), np.stack(expected, axis=1))
    averages = npax.average(soil, places, y="zinc", by="field", **options, **asked)
    shares = (places.field.to_numpy() == [[0], [1]]) * 1.0
    assert np.allclose(averages.iloc[:, :2], np.stack(reg.predict_average(T, shares, return_std=True), axis=1))
    assert np.allclose(averages.iloc[:, 2:4], reg.predict_average_quantiles(T, [0.025, 0.5], shares))
    for words, wrong in {
        r"`lognormal` takes one column `y`, got \['zinc', 'lead'\]": {"y": ["zinc", "lead"]},
        "`counts` have distributions of their own": {"counts": npax.counts.Poisson()},
        "`lognormal` must be True or False": {"lognormal": "yes"},
        "A threshold of log-normal values must be positive, got -1": {"above": -1},
    }.items():
        with pytest.raises(ValueError, match=words):
            inspect.unwrap(npax.interpolate)(soil, places, **{"y": "zinc", **options, **wrong})

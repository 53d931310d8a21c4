"""Rates of counts, from the estimator."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
import untrained
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks

import npax
from npax.counts import Binomial, Poisson
from npax.fingerprint import fingerprint
from npax.inference import Columns, Planar, Prediction, linearised
from npax.inference.counted import Counted

CHECKS = [
    "estimators_overwrite_params",
    "estimators_unfitted",
    "get_params_invariance",
    "no_attributes_set_in_init",
    "parameters_default_constructible",
    "positive_only_tag_during_fit",
    "requires_y_none",
    "set_params",
    "supervised_y_2d",
]


def surveyed(rng, counts, n=80):
    """Places, exposures and counts, whose level is smooth."""
    X = rng.uniform(-1, 1, (n, 2))
    exposure = rng.integers(1, 20, n).astype(float)
    level = np.sin(3 * X[:, 0]) + X[:, 1]
    return X, counts.draw(rng, exposure, counts.rate(level)), exposure, level


def matern32(a, b, scale):
    r = np.sqrt(3 * np.square((a[:, None] - b) / scale).sum(axis=-1))
    return (1 + r) * np.exp(-r)


def crps(level, mean, std):
    return npax.metrics.crps(level, mean, std)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(
    ("counts", "n", "middle", "most"),
    [(Poisson(), 150, -1.0, 1.25), (Binomial(), 150, 0.0, 1.25), (Poisson(), 200, -1.5, 1.4)],
    ids=["some cases", "shares", "rare cases"],
)
def test_levels_are_nearly_those_of_the_gaussian_process_that_they_were_drawn_from(counts, n, middle, most):
    """Which knows its covariance, and has the best normal posterior; and better than logarithms of observed rates."""
    rng, k, scores = np.random.default_rng(3), None, []
    for scale in (0.3, 0.6, 0.9):
        X = rng.uniform(-1, 1, (n + 150, 2))
        k = matern32(X, X, scale)
        level = middle + np.linalg.cholesky(k + 1e-9 * np.eye(len(X))) @ rng.normal(size=len(X))
        exposure = rng.integers(1, 12, len(X)).astype(float)
        if n > 150:
            exposure[:] = 1.0
        y, k = counts.draw(rng, exposure, counts.rate(level)), k + 9.0  # its mean is not known

        def exact(seen, at=slice(None, n), k=k):
            gain = k[at, :n] @ np.linalg.inv(k[:n, :n] + np.diag(np.square(seen.error)))
            variance = np.diag(k)[at] - np.einsum("ij,ij->i", gain, k[at, :n])
            std = np.sqrt(np.maximum(variance, 1e-9))[:, None]
            return Prediction((gain @ seen.value)[:, None], std, std)

        best = exact(linearised(counts, y[:n], exposure[:n], exact).seen, slice(n, None))
        reg = npax.CountRegressor(counts).fit(X[:n], y[:n], exposure=exposure[:n])
        found = reg.regressor_.predict(X[n:], return_std=True, include_noise=False)
        share = (y[:n] + 0.5) / (exposure[:n] + 1.0)
        observed = np.log(share) if isinstance(counts, Poisson) else np.log(share / (1 - share))
        error = (exposure[:n] * (share if isinstance(counts, Poisson) else share * (1 - share))) ** -0.5
        rough = npax.NeuralProcessRegressor().fit(X[:n], observed, error=error)
        naive = rough.predict(X[n:], return_std=True, include_noise=False)
        of_best = best.mean[:, 0], best.function_std[:, 0]
        covered = npax.metrics.coverage(level[n:], *found)
        scores.append([crps(level[n:], *moments) for moments in (of_best, found, naive)] + [covered])
    best, ours, naive, covered = np.mean(scores, axis=0)
    assert covered > 0.85
    assert ours < most * best
    assert naive > 1.1 * ours


@pytest.mark.parametrize("counts", [Poisson(), Binomial()], ids=["poisson", "binomial"])
def test_what_it_says_is_of_the_levels_of_the_regressor(counts, hearing, rng):
    X, y, exposure, _ = surveyed(rng, counts)
    at = rng.uniform(-1, 1, (7, 2))
    reg = npax.CountRegressor(counts, npax.NeuralProcessRegressor(hearing)).fit(X, y, exposure=exposure)
    mean, std = reg.regressor_.predict(at, return_std=True)
    drawn = counts.rate(mean + std * rng.normal(size=(100_000, 7)))
    rate, of_rate = reg.predict(at, return_std=True)
    assert np.allclose(rate, drawn.mean(axis=0), rtol=0.03)
    assert np.allclose(rate, reg.predict(at)) and of_rate.shape == (7,)
    assert np.allclose(reg.predict_quantiles(at, [0.1, 0.9]), np.quantile(drawn, [0.1, 0.9], axis=0).T, rtol=0.03)
    mean, std = reg.regressor_.predict(at, return_std=True, include_noise=False)
    above = reg.exceedance(at, 0.4, include_noise=False)
    assert np.allclose(above, norm.sf(counts.level(0.4), mean, std))
    samples = reg.sample_y(at, 16, exposure=np.arange(1.0, 8.0))
    assert samples.shape == (7, 16) and (samples == np.round(samples)).all() and (samples >= 0).all()
    assert np.array_equal(samples, reg.sample_y(at, 16, exposure=np.arange(1.0, 8.0)))
    assert reg.n_features_in_ == 2 and reg.n_iter_ >= 1


def test_scores_are_those_of_counts(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Poisson())
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(X, y, exposure=exposure)
    report = reg.score_report(X, y, exposure=exposure)
    assert report["rmse"] == npax.metrics.rmse(y, exposure * reg.predict(X))
    table, counted = pd.DataFrame(X).add_prefix("x"), reg.score(X, y, exposure=exposure)
    named = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(table, y, exposure=exposure)
    assert (
        named.score_report(table, y, exposure=exposure) == report
        and named.score(table, y, exposure=exposure) == counted
    )
    mean, std = reg.regressor_.predict(X, return_std=True)
    assert np.isclose(report["nll"], -Poisson().log_evidence(y, exposure, mean, std).mean())
    assert 0 <= report["coverage"] <= 1 and report["crps"] < report["mae"] and report["interval"] > 0
    lost = y.copy()
    lost[3] = np.nan
    with pytest.warns(npax.estimators.DroppedRows):
        fewer = reg.score_report(X, lost, exposure=exposure)
        weighted = reg.score(X, lost, sample_weight=exposure, exposure=exposure)
    assert fewer["rmse"] == npax.metrics.rmse(np.delete(y, 3), np.delete(exposure * reg.predict(X), 3))
    nobody, none = exposure.copy(), y.copy()
    nobody[3] = none[3] = 0
    with pytest.warns(npax.estimators.DroppedRows):
        assert np.isclose(reg.score(X, none, sample_weight=exposure, exposure=nobody), weighted)
    rest = np.delete(np.arange(80), 3)
    assert weighted == reg.score(X[rest], y[rest], sample_weight=exposure[rest], exposure=exposure[rest])


def test_rows_without_a_count_are_left_out_and_more_may_come(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Poisson())
    lost = y.copy()
    lost[[2, 70]] = np.nan
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing))
    with pytest.warns(npax.estimators.DroppedRows, match="2 of 80"):
        mean = reg.fit(X, lost, exposure=exposure).predict(X)
    rest = np.delete(np.arange(80), [2, 70])
    assert np.array_equal(mean, clone(reg).fit(X[rest], y[rest], exposure=exposure[rest]).predict(X))
    some = clone(reg).fit(X[:50], y[:50], exposure=exposure[:50])
    more = some.update(X[50:], y[50:], exposure=exposure[50:])
    assert np.allclose(more.predict(X), clone(reg).fit(X, y, exposure=exposure).predict(X))
    before = dict(vars(some))
    with pytest.raises(ValueError, match="not negative"):
        some.update(X[:1], [-1.0], exposure=1.0)
    assert vars(some).keys() == before.keys() and len(some.y_) == 80


def test_slopes_of_covariates_are_logarithms_of_ratios(rng):
    X = rng.uniform(-1, 1, (200, 3))
    exposure = np.full(200, 30.0)
    level = np.sin(3 * X[:, 0]) - 1.0 + 0.8 * X[:, 2]
    table = pd.DataFrame(X, columns=["x", "y", "altitude"])
    positive = Binomial().draw(rng, exposure, Binomial().rate(level))
    reg = npax.CountRegressor(Binomial(), npax.NeuralProcessRegressor(covariates=["altitude"]))
    reg.fit(table, positive, exposure=pd.Series(exposure))
    assert abs(reg.regressor_.coef_[0] - 0.8) < 3 * reg.regressor_.coef_std_[0] < 0.6
    assert list(reg.feature_names_in_) == ["x", "y", "altitude"]
    assert np.corrcoef(reg.predict(table), Binomial().rate(level))[0, 1] > 0.97


@pytest.mark.parametrize("counts", [Poisson(), Binomial()], ids=["poisson", "binomial"])
@pytest.mark.parametrize("y", [np.zeros(40), np.ones(40), np.eye(40)[0]], ids=["none", "all", "one"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_rarest_and_the_most_certain_have_finite_rates(counts, y, hearing, rng):
    X = rng.uniform(-1, 1, (40, 2))
    reg = npax.CountRegressor(counts, npax.NeuralProcessRegressor(hearing)).fit(X, y)
    for a in (*reg.predict(X, return_std=True), reg.predict_quantiles(X, 0.5), reg.exceedance(X, 0.1)):
        assert np.isfinite(a).all()
    assert np.isfinite(list(reg.score_report(X, y).values())).all()


def test_few_events_leave_doubt():
    """Four events at 300 places: sums of places say what single ones do not; rounds settle, and rates add up."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = np.zeros(300)
    y[[3, 90, 150, 260]] = 1.0
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(coords="isotropic")).fit(X, y)
    low, high = reg.predict_quantiles(X, [0.025, 0.975], include_noise=False).T
    assert 0.6 < reg.predict(X, include_noise=False).sum() / 4 < 1.6
    assert np.median(high / low) > 4


@pytest.mark.parametrize("kind", [Poisson(), Binomial()], ids=["cases", "shares"])
def test_repeated_counts_of_a_place_are_their_sum(kind, rng):
    """However large they are; with other covariates they are other counts."""
    X, y, exposure, _ = surveyed(rng, kind)
    each = y + 9  # of fewer near places would be summed
    of_each = Counted(np.repeat(X, 3, axis=0), np.add.outer(each, np.arange(3.0)).ravel(), np.repeat(exposure + 40, 3))
    found = of_each.pooled(kind, Planar(units=(1.0, 1.0)), Columns([0, 1], []))
    order = np.argsort(X[:, 0])
    for got, expected in zip(found, (X, 3 * each + 3, 3 * exposure + 120, np.full(80, 3.0), np.ones(80)), strict=True):
        np.testing.assert_allclose(got, expected[order])
    beside = of_each._replace(x=np.column_stack([of_each.x, np.tile([0.0, 1.0, 2.0], len(X))]))
    assert beside.pooled(kind, Planar(units=(1.0, 1.0)), Columns([0, 1], [2])) is beside


@pytest.mark.parametrize(("n", "usual"), [(260, 0.3), (1000, 0.05)])
def test_an_outbreak_is_seen(n, usual):
    """Five weeks of thirty cases, among one in three weeks or in twenty; and it is none elsewhere."""
    rng, weeks = np.random.default_rng(0), np.arange(float(n))[:, None]
    rate = np.full(n, usual)
    rate[n // 2 : n // 2 + 5] = 30.0
    reg = npax.CountRegressor().fit(weeks, rng.poisson(rate))
    low, middle, high = reg.predict_quantiles(weeks, [0.025, 0.5, 0.975], include_noise=False).T
    inside = slice(n // 2 + 1, n // 2 + 4)
    assert (middle[inside] > 12).all() and (high[inside] > 30).all() and (low[inside] < 30).all()
    assert np.median(middle[:100]) < 3 * usual and np.mean((low < usual) & (usual < high)) > 0.9


def test_a_count_that_would_hardly_be_seen_is_told_with_its_place(rng):
    """One of a thousand among fives; in an outbreak (above) and where rates differ as much by chance none is."""
    weeks, cases = np.arange(100.0)[:, None], rng.poisson(5.0, 100).astype(float)
    cases[40] = 1000.0
    with pytest.warns(UserWarning, match=r"The count 1000 of an exposure of 1 at \[40.\] would hardly be seen"):
        reg = npax.CountRegressor().fit(weeks, cases)
    assert reg.predict(weeks, include_noise=False)[[20, 60]].max() < 10
    npax.CountRegressor().fit(weeks, rng.poisson(5.0 * np.exp(2.0 * rng.normal(size=100))))


@pytest.mark.parametrize(
    ("counts", "y", "exposure", "most"),
    [(Poisson(), 0.0, 1.0, 0.0125), (Binomial(), 0.0, 5.0, 0.0025), (Binomial(), 5.0, 5.0, 0.0025)],
    ids=["no cases", "none positive", "all positive"],
)
def test_where_nothing_differs_there_is_doubt(counts, y, exposure, most):
    """Up to the upper limit of Jeffreys' interval of 200 counts as one, within a factor of two."""
    reg = npax.CountRegressor(counts).fit(np.arange(200.0)[:, None], np.full(200, y), exposure=exposure)
    low, high = reg.predict_quantiles([[50.5], [100.5]], [0.025, 0.975], include_noise=False).T
    end = 1 - low if y else high
    assert ((end > most / 2) & (end < 2 * most)).all() and ((high - low) > 0.5 * end).all()


def test_sums_of_repeated_counts_keep_their_overdispersion():
    """Forty clinics, sixty weeks: each week's level has a noise of 0.7, which sums would hide."""
    rng = np.random.default_rng(0)
    clinics = rng.uniform(size=(40, 2))
    smooth = np.sin(4 * clinics[:, 0]) + np.cos(3 * clinics[:, 1]) - 0.5
    y = rng.poisson(np.exp(np.repeat(smooth, 60) + 0.7 * rng.normal(size=2400)))
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(coords="isotropic"))
    reg.fit(np.repeat(clinics, 60, axis=0), y)
    assert len(reg.regressor_.X_) == 40
    level, std = reg.regressor_.predict(clinics, return_std=True)
    _, of_smooth = reg.regressor_.predict(clinics, return_std=True, include_noise=False)
    assert np.allclose(np.sqrt(std**2 - of_smooth**2), 0.7, atol=0.1)
    assert abs((level - smooth).mean()) < 0.1  # the mean rate lies above it, by half the variance
    expected = np.exp(smooth + 0.7**2 / 2)
    assert abs(reg.predict(clinics).mean() / expected.mean() - 1) < 0.1
    drawn = np.log(reg.sample_y(clinics[:2], 64, exposure=1e6)).std(axis=1)
    assert np.allclose(drawn, 0.7, rtol=0.35)


@pytest.mark.usefixtures("optimised")
def test_counts_of_a_place_in_several_rows_say_what_their_sum_does():
    """Places differ by more than the smooth rate, and all rows of one have its rate."""
    rng, times = np.random.default_rng(2), 8
    X, exposure, at = rng.uniform(size=(300, 2)), np.full(300, 4.0), rng.uniform(size=(100, 2))
    y = rng.poisson(exposure * np.exp(np.sin(5 * X[:, 0]) + 0.6 * rng.normal(size=300)))
    parts = rng.multinomial(y, np.full(times, 1 / times)).T
    whole, apart = (npax.CountRegressor(regressor=npax.NeuralProcessRegressor(views=None)) for _ in "ab")
    whole.fit(X, y, exposure=exposure)
    apart.fit(np.tile(X, (times, 1)), parts.ravel(), exposure=np.tile(exposure / times, times))
    for noise in (True, False):
        (a, std), (b, other) = (
            reg.regressor_.predict(at, return_std=True, include_noise=noise) for reg in (whole, apart)
        )
        assert abs(np.mean(a - b)) < 0.05 and np.allclose(other, std, rtol=0.35)
    one = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(views=None))
    one.fit(np.r_[X, X[:1]], np.r_[y[:1] - y[0] // 2, y[1:], y[0] // 2], exposure=np.r_[2.0, exposure[1:], 2.0])
    for found, expected in zip(one.predict(at, return_std=True), whole.predict(at, return_std=True), strict=True):
        assert np.allclose(found, expected, rtol=0.05)


def test_alike_counts_have_their_rate():
    """Their levels hardly move from those of each alone, whose errors are far too large: that is no end."""
    reg = npax.CountRegressor().fit(np.arange(60.0)[:, None], np.full(60, 5))
    rate = reg.predict(np.array([[10.5], [40.5]]), include_noise=False)
    assert np.allclose(rate, 5, rtol=0.08)
    reg.fit(np.arange(60.0)[:, None], np.full(60, 100_000), exposure=1e7)
    rate, std = reg.predict(np.array([[10.5]]), return_std=True, include_noise=False)
    assert np.allclose(rate, 0.01, rtol=0.01) and std < 1e-4


def test_exposures_that_were_given_to_fit_are_asked_for_again(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Poisson())
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(X, y, exposure=exposure)
    for method in (reg.update, reg.score, reg.score_report):
        with pytest.raises(ValueError, match="`exposure` was given to `fit`: give that of these counts, too"):
            method(X, y)
    assert len(reg.y_) == 80
    reg = reg.fit(X, y)
    assert np.isfinite(reg.score(X, y)) and len(reg.update(X, y).y_) == 160


def test_overdispersion_does_not_depend_on_the_order_of_the_rows(hearing, monkeypatch):
    """Of many counts some are looked at: not every third, which may be of one kind."""
    monkeypatch.setattr(sys.modules["npax.estimators.counts"], "LOOKED_AT", 100)
    rng = np.random.default_rng(0)
    places, kind = np.repeat(rng.uniform(size=(100, 2)), 3, axis=0), np.tile([0.0, 1.5, 1.5], 100)
    y = np.minimum(rng.poisson(3 * np.exp(kind * rng.normal(size=300))), 30)
    order = rng.permutation(300)

    def found(rows):
        reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(places[rows], y[rows])
        return reg._overdispersion(reg.regressor_, places[rows], y[rows].astype(float), np.ones(300))

    assert found(order) == pytest.approx(found(np.arange(300)), rel=1e-5)


def test_where_nobody_was_asked_nothing_is_known(hearing, rng):
    X, y, tested, _ = surveyed(rng, Binomial())
    none = np.arange(80) % 7 == 3
    reg = npax.CountRegressor(Binomial(), npax.NeuralProcessRegressor(hearing))
    with pytest.warns(npax.estimators.DroppedRows, match="11 of 80 rows"):
        reg.fit(X, np.where(none, 0, y), exposure=np.where(none, 0, tested))
    assert len(reg.y_) == len(reg.exposure_) == 69
    with pytest.raises(ValueError, match="`exposure`, how many were tested, must be positive"):
        reg.fit(X, np.where(none, 1, y), exposure=np.where(none, 0, tested))


def test_fractions_are_no_counts(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Poisson())
    with pytest.warns(UserWarning, match="which is no whole number: .* Give counts and their `exposure`, not rates"):
        npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(X, y / exposure)


def test_labels_in_another_order_are_refused(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Poisson())
    X, people = pd.DataFrame(X, columns=["east", "north"]), pd.Series(exposure)
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(X, pd.Series(y), exposure=people)
    words = "have the same labels in another order"
    with pytest.raises(ValueError, match=f"`X` and `exposure` {words}"):
        reg.fit(X, y, exposure=people.sample(frac=1, random_state=0))
    with pytest.raises(ValueError, match=f"`y` and `exposure` {words}"):
        reg.fit(X.to_numpy(), pd.Series(y), exposure=people[::-1])
    with pytest.raises(ValueError, match=f"`X` and `y` {words}"):
        reg.fit(X.iloc[::-1], pd.Series(y), exposure=exposure)
    shares = pd.DataFrame([exposure, exposure])
    for of in (reg, reg.regressor_):
        with pytest.raises(ValueError, match=f"`X` and `weights` {words}"):
            of.predict_average(X.iloc[::-1], shares)
    both = reg.predict_average(X.iloc[::-1], shares[shares.columns[::-1]])
    assert np.allclose(both, reg.predict_average(X, shares))


def test_average_rates_have_a_covariance(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Poisson())
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(X, y, exposure=exposure)
    weights = np.stack([exposure, X[:, 0] > 0])
    rate, std = reg.predict_average(X, weights, return_std=True)
    again, cov = reg.predict_average(X, weights, return_cov=True)
    assert np.array_equal(rate, again) and np.allclose(np.sqrt(np.diag(cov)), std) and cov.shape == (2, 2)
    assert np.array_equal(reg.predict_average(X, return_cov=True)[1].shape, ())


def test_scores_of_searches_have_exposures(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Poisson())
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(X, y, exposure=exposure)
    assert np.isclose(reg.score(X, y, exposure=exposure), r2_score(y, exposure * reg.predict(X)))
    with config_context(enable_metadata_routing=True):
        asked = clone(reg).set_fit_request(exposure=True).set_score_request(exposure=True)
        found = cross_val_score(asked, X, y, cv=2, params={"exposure": exposure})
    half = clone(reg).fit(X[40:], y[40:], exposure=exposure[40:])
    assert np.isclose(found[0], half.score(X[:40], y[:40], exposure=exposure[:40]))


def test_names_are_those_of_the_last_fit(hearing, rng):
    X, y, _, _ = surveyed(rng, Poisson())
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing))
    reg.fit(pd.DataFrame(X, columns=["east", "north"]), y)
    assert list(reg.feature_names_in_) == ["east", "north"]
    assert not hasattr(reg.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_own_checks(check):
    """Those that are not of the regressor, of a model that takes as many columns as they use; all of them pass."""
    reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(untrained.hearing(20)))
    getattr(estimator_checks, f"check_{check}")("CountRegressor", reg)


def test_what_is_wrong_is_said_by_name(hearing, rng):
    X, y, exposure, _ = surveyed(rng, Binomial())
    reg = npax.CountRegressor(Binomial(), npax.NeuralProcessRegressor(hearing))
    with pytest.raises(ValueError, match=r"`exposure` must be one number or have the length of the counts, 80; got"):
        reg.fit(X, y, exposure=exposure[1:])
    with pytest.raises(ValueError, match="from 0 to `exposure`"):
        reg.fit(X, exposure + 1, exposure=exposure)
    with pytest.raises(ValueError, match=r"got the share .* in row .* Multiply shares by how many were tested"):
        reg.fit(X, y / exposure)
    with pytest.raises(ValueError, match="`exposure` must be one number or an array, got None"):
        reg.fit(X, y, exposure=None)
    reg.fit(X, y, exposure=exposure)
    with pytest.raises(ValueError, match="A share of positives must be above 0 and below 1, got 1"):
        reg.exceedance(X, [0.1, 1.0])
    with pytest.raises(ValueError, match="`exposure` must be finite and not negative, got -1"):
        reg.sample_y(X[:2], exposure=-1.0)
    with pytest.raises(TypeError, match=r"`counts` must be an instance of AbstractCounts; got 'negative binomial'\.$"):
        npax.CountRegressor("negative binomial").fit(X, y)
    for given in (Poisson, "poisson"):
        with pytest.raises(TypeError, match=r"`counts` must be an instance .*; write `npax.counts.Poisson\(\)`\."):
            npax.CountRegressor(given).fit(X, y)
    with pytest.raises(TypeError, match=r"is the second argument: `CountRegressor\(counts, regressor\)`"):
        npax.CountRegressor(npax.NeuralProcessRegressor()).fit(X, y)
    for other in (npax.CountRegressor(), "gp-universal"):
        with pytest.raises(TypeError, match="`regressor` must be an instance of NeuralProcessRegressor"):
            npax.CountRegressor(regressor=other).fit(X, y)
    with pytest.raises(ValueError, match="takes known errors"):
        npax.CountRegressor(regressor=npax.NeuralProcessRegressor(untrained.cnp(3))).fit(X, y)


def test_rounds_that_do_not_settle_are_warned_of(hearing, rng, monkeypatch):
    X, y, exposure, _ = surveyed(rng, Poisson())
    monkeypatch.setattr("npax.inference.counted.SETTLED", 0.0)
    monkeypatch.setattr("npax.inference.counted.ROUNDS", 2)
    with pytest.warns(ConvergenceWarning, match="not settled after 2 rounds"):
        reg = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(hearing)).fit(X, y, exposure=exposure)
    with pytest.raises(ConvergenceWarning):  # as an error it leaves all as it was
        reg.update(X[:3] + 0.01, y[:3], exposure=exposure[:3])
    assert len(reg.y_) == len(reg.regressor_.X_) == 80


def test_stores_tell_counts_of_a_users_own_apart(hearing, rng):
    """By what they hold: of a class that is no dataclass the text says nothing."""

    class Reported(Poisson):
        def __init__(self, share):
            object.__setattr__(self, "share", share)

    X, y, exposure, _ = surveyed(rng, Poisson())
    found = []
    for counts in (Reported(0.5), Reported(0.5), Reported(0.7)):
        reg = npax.CountRegressor(counts, npax.NeuralProcessRegressor(hearing)).fit(X, y, exposure=exposure)
        found.append(fingerprint(reg._request()))
    assert found[0] == found[1] != found[2]


def test_overdispersion_is_beside_the_smooth_rate(rng):
    mean = 0.3 * rng.normal(size=4000)
    y = rng.poisson(20 * np.exp(mean + 0.5 * rng.normal(size=4000) - 0.125)).astype(float)  # a noise of mean one
    told = lambda x: Prediction(x, np.full_like(x, 0.5), np.full_like(x, 0.01))  # noqa: E731
    regressor = types.SimpleNamespace(_predictor=lambda: told)
    found, shared = npax.CountRegressor()._overdispersion(regressor, mean[:, None], y, np.full(4000, 20.0))
    assert np.isclose(found, 0.25, rtol=0.1) and shared == 0

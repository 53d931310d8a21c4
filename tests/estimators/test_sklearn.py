import importlib
import pickle
import re
import warnings
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from untrained import cnp, untrained

import npax
from npax.estimators import DroppedRows, Extrapolation
from npax.inference import Exact, LatLon, Planar
from npax.models import turned
from npax.packed import DamagedFile
from npax.training import Finetuned

EXPECTED_FAILURES = {
    "check_regressors_train": "scores an untrained model",
}


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 10, (60, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=60), rng.uniform(0, 10, (7, 2))


@pytest.fixture
def reg(small):
    return npax.NeuralProcessRegressor(small)


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
def test_columns_have_units_of_their_own_or_one_unit(strategy, small, data):
    X, y, Xs = data

    def mean(coords, scale):
        reg = npax.NeuralProcessRegressor(small, coords=coords, strategy=strategy, tile_size=32)
        return reg.fit(X * scale + 5.0, y).predict(Xs * scale + 5.0)

    for coords, same, other in (("planar", [1000.0, 0.1], None), ("isotropic", [1000.0, 1000.0], [1.0, 2.0])):
        assert np.allclose(mean(coords, [1.0, 1.0]), mean(coords, same), atol=1e-4)
        assert other is None or not np.allclose(mean(coords, [1.0, 1.0]), mean(coords, other), atol=1e-2)


class Counts(npax.likelihoods.AbstractLikelihood):
    dy: int = 1
    size: int = 1

    def __call__(self, raw):
        return dist.Poisson(jnp.exp(jnp.clip(raw, -5.0, 3.0))).to_event(1)


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
def test_counts_are_not_standardised(strategy, rng):
    """What the model sees of them, and what it says, are counts."""
    model = untrained(lambda key: npax.CNP(2, 1, encoder=(16,), size=16, decoder=(16,), likelihood=Counts(), key=key))
    X, y = rng.uniform(0, 10, (60, 2)), rng.poisson(20.0, 60).astype(float)
    reg = npax.NeuralProcessRegressor(model, strategy=strategy).fit(X, y)
    low, half = X.min(axis=0), np.ptp(X, axis=0) / 2
    scaled = (X - low - half) * 2 / half
    mean = reg.predict(X[:7])
    assert (mean > 0).all() and mean.max() <= np.exp(3.0) + 1e-4
    if strategy == "exact":
        as_they_are = npax.NeuralProcessRegressor(model, normalize=False).fit(scaled, y)
        assert np.allclose(mean, as_they_are.predict(scaled[:7]), rtol=1e-3)
        samples = reg.sample_y(X[:7], 4)
        assert np.array_equal(samples, np.round(samples)) and (samples >= 0).all()


@pytest.fixture
def of_counts():
    return untrained(lambda key: npax.CNP(2, 1, encoder=(16,), size=16, decoder=(16,), likelihood=Counts(), key=key))


def test_samples_of_counts_are_not_gaussian(of_counts, rng):
    X, y = rng.uniform(0, 10, (60, 2)), rng.poisson(20.0, 60)
    with pytest.raises(ValueError, match="Samples in tiles are Gaussian, and Counts, the likelihood of the model"):
        npax.NeuralProcessRegressor(of_counts, strategy="tiled").fit(X, y).sample_y(X[:3])


@pytest.mark.parametrize("value", [-1.0, 0.5])
def test_values_that_cannot_be_observed_are_refused(of_counts, rng, value):
    X, y = rng.uniform(0, 10, (60, 2)), rng.poisson(20.0, 60).astype(float)
    reg = npax.NeuralProcessRegressor(of_counts).fit(X, y)
    y[7] = value
    with pytest.raises(ValueError, match=rf"values that Counts, .* cannot observe, such as \[{value}\]"):
        reg.fit(X, y)
    with pytest.raises(ValueError, match="cannot observe"):
        reg.update(X, np.stack([y, y], axis=1)[:, 0])


def test_a_model_without_a_noiseless_function_says_so(of_counts, rng):
    """Its standard deviations would be taken for those of a rate."""
    X, y = rng.uniform(0, 10, (60, 2)), rng.poisson(20.0, 60)
    reg = npax.NeuralProcessRegressor(of_counts).fit(X, y)
    std = reg.predict(X[:3], return_std=True)[1]
    for ask in (partial(reg.predict, return_std=True), partial(reg.predict_quantiles, q=[0.1]), reg.sample_y):
        with pytest.warns(UserWarning, match="`include_noise=False` changes nothing: .* Counts, does not"):
            warnings.filterwarnings("ignore", "Quantiles and probabilities are those of a normal")
            found = ask(X[:3], include_noise=False)
    assert np.array_equal(found[:, 0] >= 0, [True] * 3)
    assert len(reg.predict(X[:3], include_noise=False)) == 3, "no warning where no deviation is asked for"
    for ask in (lambda: reg.predict_quantiles(X[:3], 0.5), lambda: reg.exceedance(X[:3], 2)):
        with pytest.warns(
            UserWarning, match="are those of a normal distribution .*; its likelihood, Counts, is another"
        ):
            ask()
    table = pd.DataFrame(X, columns=["a", "b"]).assign(n=y)
    with pytest.warns(UserWarning, match="are those of a normal distribution"):
        npax.interpolate(table, table[["a", "b"]][:3], ["a", "b"], "n", model=of_counts, coords="planar", above=2.0)
    grid = xr.Dataset(coords={"a": [1.0, 2.0], "b": [3.0]})
    for target in (table.drop(columns="n")[:3], grid):
        with pytest.warns(UserWarning, match="`include_noise=False` changes nothing"):
            out = npax.interpolate(
                table, target, x=["a", "b"], y="n", coords="planar", model=of_counts, include_noise=False
            )
    assert out.n_std.shape == (2, 1) and np.isfinite(std).all()


@pytest.mark.parametrize("as_object", [False, True])
def test_text_is_no_number(reg, data, as_object):
    X, y, _ = data
    text = X.astype(str).astype(object) if as_object else X.astype(str)
    with pytest.raises(ValueError, match="`X` must be numbers, got '"):
        reg.fit(text, y)
    with pytest.raises(ValueError, match="`y` must be numbers, got '"):
        reg.fit(X, y.astype(str))
    with pytest.raises(ValueError, match="`X` must be numbers, got '"):
        reg.fit(X.astype(np.dtypes.StringDType()), y)
    with pytest.raises(ValueError, match="`y` must be numbers, got '"):
        clone(reg).fit(X, y).score(X, y.astype(str), sample_weight=np.ones(len(y)))


def test_noise_is_there_or_not(reg, data):
    X, *_ = data
    for ask in (
        lambda: reg.predict_quantiles(X[:2], 0.5, include_noise="no"),
        lambda: reg.sample_y(X[:2], 1, 0, include_noise=1000.0),
    ):
        with pytest.raises(ValueError, match="`include_noise` must be True or False, got"):
            ask()


def test_scikit_learns_own_checks():
    wide = npax.NeuralProcessRegressor(cnp(20))  # as many columns as the checks use
    results = check_estimator(wide, expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert len(results) > 40


def test_shapes_follow_y(reg, data):
    X, y, Xs = data
    reg.fit(X, y)
    mean, std = reg.predict(Xs, return_std=True)
    assert mean.shape == std.shape == (7,) and mean.dtype == np.float64
    assert reg.predict(Xs, return_cov=True)[1].shape == (7, 7)
    assert reg.predict_quantiles(Xs, [0.1, 0.5]).shape == (7, 2) and reg.predict_quantiles(Xs, 0.5).shape == (7,)
    assert reg.sample_y(Xs, 3).shape == (7, 3)
    reg.fit(X, np.stack([y, 2 * y], axis=1))
    mean, std = reg.predict(Xs, return_std=True)
    assert mean.shape == std.shape == (7, 2)
    assert reg.predict(Xs, return_cov=True)[1].shape == (7, 7, 2)
    assert reg.predict_quantiles(Xs, [0.1, 0.5]).shape == (7, 2, 2)
    assert reg.sample_y(Xs, 3).shape == (7, 2, 3)


def test_parts_of_the_prediction_agree(reg, data):
    X, y, Xs = data
    reg.fit(X, y)
    mean, std = reg.predict(Xs, return_std=True)
    assert np.allclose(reg.predict_quantiles(Xs, [0.05, 0.5]), norm.ppf([0.05, 0.5], mean[:, None], std[:, None]))
    assert np.allclose(np.diag(reg.predict(Xs, return_cov=True)[1]), std**2)
    assert (reg.predict(Xs, return_std=True, include_noise=False)[1] < std).all()
    report = reg.score_report(Xs, mean)
    assert report["rmse"] == 0 and set(report) >= {"mae", "nll", "crps", "coverage", "interval"}


def test_the_strategy_is_chosen_unless_told(reg, rng, monkeypatch):
    import sys

    X, y = rng.uniform(size=(50, 1)), np.arange(50.0)
    assert reg.fit(X, y).strategy_ == "exact"
    exact = reg.predict(X)
    monkeypatch.setattr(sys.modules["npax.estimators.observed"], "choose", lambda *_: "tiled")
    assert np.allclose(reg.predict(X), exact, atol=1e-3) and reg.strategy_ == "tiled"  # a tile holds all 50
    reg.set_params(strategy="exact").predict(X)
    assert reg.strategy_ == "exact"


@pytest.mark.usefixtures("optimised")
def test_a_place_has_one_answer_whatever_is_asked_beside_it(small, rng):
    """A thousand observations: at many targets tiles would take less time."""
    X, at = rng.uniform(size=(1400, 3)), rng.uniform(size=(20_000, 3))
    reg = npax.NeuralProcessRegressor(small).fit(X, rng.normal(size=1400))
    assert reg.strategy_ == "exact"
    whole, some = (reg.predict(places, return_std=True) for places in (at, at[:100]))
    assert np.allclose(whole[0][:100], some[0], atol=1e-5) and np.allclose(whole[1][:100], some[1], rtol=1e-4)


@pytest.mark.parametrize("columns", [1, 2])
def test_scores_leave_out_what_is_missing(columns, small, rng):
    X, y = rng.uniform(size=(30, 2)), rng.normal(size=(30, columns))
    y, weight = y[:, 0] if columns == 1 else y, rng.uniform(size=30)
    reg = npax.NeuralProcessRegressor(small).fit(X, y)
    expected = [r2_score(y, reg.predict(X), sample_weight=w) for w in (None, weight)]
    assert np.allclose([reg.score(X, y), reg.score(X, y, weight)], expected)
    lost, rest = y.copy(), np.arange(30) > 2
    lost[:3] = np.nan
    with pytest.warns(npax.estimators.DroppedRows):
        assert np.isclose(reg.score(X, lost, weight), reg.score(X[rest], y[rest], weight[rest]))


@pytest.mark.parametrize(("n", "size"), [(1, 128), (50, 1)])
def test_joint_predictions_in_the_smallest_tiles(n, size, tiny, rng):
    X = rng.uniform(size=(n, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reg = npax.NeuralProcessRegressor(tiny, strategy="tiled", tile_size=size).fit(X, rng.normal(size=n))
        _, cov = reg.predict(X[:3], return_cov=True)
        assert np.isfinite(cov).all() and np.isfinite(reg.sample_y(X[:3], 2)).all()
        assert np.isfinite(reg.predict_average(X[:3], return_std=True)).all()


def test_a_pretrained_model_is_asked_in_several_views(data, monkeypatch):
    X, y, Xs = data
    model = npax.load("gp-universal")

    def answer(*args, **options):
        reg = npax.NeuralProcessRegressor(*args, **options).fit(X, y)
        return reg.views_, np.stack(reg.predict(Xs, return_std=True))

    for options, views in (({}, 4), ({"views": turned(3)[:2]}, 2), ({"strategy": "tiled", "tile_size": 32}, 4)):
        number, found = answer(**options)
        assert number == views
        seen = npax.Symmetrised(model, options.pop("views", turned(3)))
        assert np.allclose(found, answer(seen, **options)[1], rtol=1e-5)
    number, found = answer(views=None)
    assert number == 1 and np.array_equal(found, answer(model)[1]) and not np.allclose(found, answer()[1], rtol=1e-4)
    assert answer(normalize=False)[0] == 1
    monkeypatch.setattr(importlib.import_module("npax.estimators.views"), "UP_TO", len(X) - 1)
    assert answer()[0] == 1
    for wrong in ("four", "", 4, [np.eye(3)]):
        with pytest.raises(ValueError, match=r"`views` must be .* a sequence of npax\.models\.View; got"):
            answer(views=wrong)


@pytest.mark.usefixtures("optimised")
def test_a_long_series_is_seen_in_its_details(rng):
    """Eighty periods: the whole of them in [-2, 2] is finer than the shipped model resolves."""
    x = rng.random((800, 1))
    y = np.sin(160 * np.pi * x[:, 0]) + 0.1 * rng.normal(size=800)
    reg = npax.NeuralProcessRegressor().fit(x[:700], y[:700])
    assert reg.strategy_ == "tiled"
    assert npax.metrics.rmse(y[700:], reg.predict(x[700:])) < 0.3
    raw = npax.NeuralProcessRegressor(normalize=False).fit(x[:700], y[:700])
    assert raw.strategy_ == "exact"  # a tile would not show it larger


def test_fine_tuning_is_part_of_fit_where_asked_for(small, rng):
    X = rng.uniform(0, 10, (200, 2))
    y = np.sin(X[:, 0])
    reg = npax.NeuralProcessRegressor(small, tile_size=32, strategy="tiled").fit(X, y, finetune=8)
    assert [step for step, _ in reg.finetuned_.validation] == [*range(9)]
    assert reg.model_ is reg.finetuned_.model and np.isfinite(reg.predict(X[:5])).all()
    assert reg.fit(X, y).finetuned_ is None and reg.model_ is small
    with pytest.raises(ValueError, match="`finetune` must be a whole number, at least 0"):
        reg.fit(X, y, finetune=-1)
    with pytest.raises(ValueError, match="`finetune` must be a whole number, at least 0; got True"):
        reg.fit(X, y, finetune=True)
    with pytest.raises(ValueError, match="`gaps` say what to fine-tune on, and `finetune` is 0"):
        reg.fit(X, y, gaps=npax.training.RoundGaps())


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("spoilt", ["trained", "came"])
def test_of_means_the_model_that_predicts_better_is_used(spoilt, monkeypatch, rng):
    """Fine-tuning sees single observations, of which another model may be the better one."""
    sound = npax.load("gp-universal")
    other = eqx.tree_at(lambda m: m.head.layers[-1].bias, sound, replace_fn=lambda bias: bias + 1.0)
    came, trained = (sound, other) if spoilt == "trained" else (other, sound)
    X = rng.uniform(size=(1000, 1))
    y = np.sin(5 * X[:, 0]) + rng.normal(size=1000)
    held_out = np.arange(1000) % 20 == 0
    found = Finetuned(trained, 1, [], held_out)
    monkeypatch.setattr("npax.estimators.sklearn.train_on_gaps", lambda *args, **options: found)
    reg = npax.NeuralProcessRegressor(came).fit(X, y, finetune=1)
    assert reg.averaged_ > 1 and reg.model_ is sound and len(reg.X_) == 1000
    few = npax.NeuralProcessRegressor(came, strategy="tiled").fit(X, y, finetune=1)
    assert few.model_ is trained, "of single observations fine-tuning knows best"


def test_without_normalising_the_model_sees_the_data_as_they_are(small, tiny, rng):
    """Against the model itself: exact, in tiles that hold all, and fine-tuned; and the units do matter."""
    X, Xs = rng.uniform(-1, 1, (200, 2)), rng.uniform(-1, 1, (7, 2))
    y = 3 + np.sin(3 * X[:, 0])
    xc, xt = (np.pad(x, ((0, 0), (0, 1))).astype(np.float32) for x in (X[:40], Xs))
    raw = eqx.filter_jit(small)(xc, y[:40, None].astype(np.float32), xt)
    reg = npax.NeuralProcessRegressor(small, normalize=False, strategy="exact").fit(X[:40], y[:40])
    mean, std = reg.predict(Xs, return_std=True)
    assert np.allclose(mean, raw.mean[:, 0], rtol=1e-3, atol=1e-6)
    assert np.allclose(std, np.sqrt(raw.variance[:, 0]), rtol=1e-3)
    tiled = clone(reg).set_params(strategy="tiled").fit(X[:40], y[:40])
    assert np.allclose(tiled.predict(Xs), mean, rtol=1e-3, atol=1e-6)
    covariances = [r.predict(Xs, return_cov=True)[1] for r in (reg, tiled)]
    assert np.allclose(*covariances, rtol=1e-3, atol=1e-6) and np.ptp(covariances[0] - np.diag(std**2)) > 0
    assert not np.allclose(clone(reg).set_params(normalize=True).fit(X[:40], y[:40]).predict(Xs), mean, rtol=0.05)
    assert not np.allclose(clone(reg).fit(2 * X[:40], y[:40]).predict(2 * Xs), mean, rtol=0.05)
    tuned = clone(reg).set_params(model=tiny, strategy="tiled", tile_size=32).fit(X, y, finetune=8)
    assert len(tuned.finetuned_.validation) == 9 and np.isfinite(tuned.predict(Xs)).all()


def test_update_equals_fit_on_all(reg, data):
    X, y, Xs = data
    together = clone(reg).fit(X, y).predict(Xs)
    partly = reg.fit(X[:40], y[:40])
    assert not np.allclose(partly.predict(Xs), together)
    assert partly.update(X[40:], y[40:]) is partly
    assert np.array_equal(partly.predict(Xs), together)
    with pytest.raises(ValueError, match="columns that it had"):
        partly.update(X, np.stack([y, y], axis=1))
    with pytest.warns(DroppedRows, match="1 of 1 rows"):
        partly.update(X[:1], [np.nan])
    assert np.array_equal(partly.predict(Xs), together), "a sensor that failed stops no stream"


def test_samples_are_reproducible(reg, data):
    X, y, Xs = data
    reg.fit(X, y)
    assert np.array_equal(reg.sample_y(Xs, 2), reg.sample_y(Xs, 2, random_state=0))
    assert not np.array_equal(reg.sample_y(Xs, 2), reg.sample_y(Xs, 2, random_state=1))
    for kind in (np.random.default_rng, np.random.RandomState):
        assert np.array_equal(*(reg.sample_y(Xs, 2, random_state=kind(3)) for _ in range(2)))


def test_lives_in_scikit_learn(reg, data):
    X, y, Xs = data
    pipeline = make_pipeline(StandardScaler(), TransformedTargetRegressor(reg, func=np.sinh, inverse_func=np.arcsinh))
    assert pipeline.fit(X, y).predict(Xs).shape == (7,)
    assert len(cross_val_score(reg, X, y, cv=3)) == 3
    assert clone(reg).get_params()["model"] is not None
    assert np.array_equal(pickle.loads(pickle.dumps(reg.fit(X, y))).predict(Xs), reg.predict(Xs))


def test_tables_keep_names(reg, data):
    X, y, Xs = data
    table = pd.DataFrame(X, columns=["east", "north"])
    reg.fit(table, pd.Series(y))
    assert list(reg.feature_names_in_) == ["east", "north"]
    assert reg.predict(pd.DataFrame(Xs, columns=["east", "north"])).shape == (7,)
    assert reg.score_report(table, pd.Series(y)) == clone(reg).fit(X, y).score_report(X, y)
    with pytest.raises(ValueError, match="feature names"):
        reg.predict(pd.DataFrame(Xs, columns=["north", "east"]))
    with pytest.raises(ValueError, match="column 'town' of `X` must be numbers, got"):
        reg.fit(pd.DataFrame({"town": ["Oslo", "Bergen"], "east": [0.0, 1.0]}), [1.0, 2.0])


@pytest.mark.filterwarnings("ignore:All values of `y`")
def test_a_prediction_amid_another_keeps_the_strategies_apart(reg, data, monkeypatch):
    """As another thread may ask while the first prepares its answer."""
    X, y, _ = data
    module = importlib.import_module("npax.estimators.sklearn")
    tiled, strategies = module.Tiled, ["exact"]
    monkeypatch.setattr(module.Observed, "strategy", property(lambda _: strategies[-1]))
    reg.fit(X[:1], y[:1])
    strategies.append("tiled")

    def slow(*args, **options):
        strategies.append("exact")
        reg.predict(X[:1])
        strategies.append("tiled")
        return tiled(*args, **options)

    monkeypatch.setattr(module, "Tiled", slow)
    assert reg.predict(X[:3]).shape == (3,)
    assert {name: type(found) for name, found in reg._predictors.items()} == {"exact": module.Exact, "tiled": tiled}


def test_marks_of_pandas_are_missing_values(reg, data):
    X, y, Xs = data
    marked = pd.Series(y).astype(object).where(np.arange(len(y)) > 1, pd.NA)
    with pytest.warns(DroppedRows, match="2 of 60 rows"):
        found = clone(reg).fit(X, marked).predict(Xs)
    assert np.array_equal(found, clone(reg).fit(X[2:], y[2:]).predict(Xs))
    columns = pd.DataFrame(X).add_prefix("x").astype(object)
    assert np.array_equal(clone(reg).fit(columns, y).predict(columns), clone(reg).fit(X, y).predict(X))
    columns.iloc[5, 0] = pd.NA
    with pytest.raises(ValueError, match="columns 'x0'"):
        clone(reg).fit(columns, y)


def test_missing_values_are_counted_or_refused(reg, data):
    X, y, Xs = data
    clean = clone(reg).fit(X[2:], y[2:]).predict(Xs)
    y = np.r_[np.nan, np.inf, y[2:]]
    with pytest.warns(DroppedRows, match="2 of 60 rows"):
        reg.fit(X, y)
    assert np.array_equal(reg.predict(Xs), clean) and len(reg.X_) == 58
    with pytest.raises(ValueError, match="2 of 60 rows"):
        reg.set_params(on_missing="raise").fit(X, y)
    with pytest.raises(ValueError, match="3 of 3 rows"):
        reg.set_params(on_missing="drop").fit(X[:3], np.full(3, np.nan))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros(5), np.zeros(5), "Expected 2D array"),
        (np.zeros((5, 1)), np.zeros(4), "inconsistent numbers of samples"),
        (np.zeros((0, 2)), np.zeros(0), "minimum of 1 is required"),
        (np.array([[0.0], [np.nan]]), np.zeros(2), "contains NaN"),
        (np.array([[0.0], [np.inf]]), np.zeros(2), "contains NaN or infinity"),
        (np.array([["a"], ["b"]]), np.zeros(2), "must be numbers"),
        (np.zeros((2, 1)), np.array(["a", "b"]), "`y` must be numbers"),
        (np.zeros((2, 4)), np.zeros(2), "up to 3 coordinates, got 4"),
    ],
)
def test_bad_observations(reg, X, y, message):
    with pytest.raises(ValueError, match=message):
        reg.fit(X, y)


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"coords": "latlon"}, [[0.0, 91.0]], "Latitudes lie between"),
        ({"coords": "latlon"}, [[0.0]], "takes longitude and latitude"),
        ({"coords": "latlon"}, [[0.0, 1.0, 2.0, 3.0]], "up to 3 coordinates, got 4"),
        ({"coords": "polar"}, [[0.0]], "`coords` must be"),
        ({"strategy": "fast"}, [[0.0]], "`strategy` must be"),
        ({"on_missing": "fill"}, [[0.0]], "`on_missing` must be"),
    ],
)
def test_bad_options(reg, options, X, message):
    for n in (1, 100):
        with pytest.raises(ValueError, match=message):
            reg.set_params(**options).fit(np.repeat(X, n, axis=0), np.zeros(n))


DAYS = np.datetime64("2020-01-01") + np.arange(3)


@pytest.mark.parametrize(
    ("X", "columns"),
    [
        (DAYS[:, None], "0"),
        ((DAYS - DAYS[0])[:, None], "0"),
        (pd.DataFrame({"east": np.zeros(3), "day": DAYS}), "'day'"),
        (pd.DataFrame({"day": pd.to_datetime(DAYS).tz_localize("UTC")}), "'day'"),
        (pd.DataFrame({"east": np.zeros(3), "month": pd.period_range("2020-01", periods=3, freq="M")}), "'month'"),
        ([[0.0, pd.Timestamp(day)] for day in DAYS], "1"),
        ([[0.0, day] for day in DAYS], "1"),
        ([[0.0, day.item()] for day in DAYS], "1"),
    ],
    ids=["dates", "durations", "table", "zone", "periods", "Timestamps", "beside numbers", "standard library"],
)
def test_dates_are_not_taken_for_numbers(reg, X, columns):
    with pytest.raises(ValueError, match=rf"`X` holds dates or durations \(columns {columns}\).*np.timedelta64"):
        reg.fit(X, np.arange(3))
    reg.fit(np.zeros((3, np.shape(X)[1])), np.arange(3))
    with pytest.raises(ValueError, match="`X` holds dates"):
        reg.predict(getattr(X, "to_numpy", lambda: X)())


def test_complex_numbers_are_refused_by_their_type(reg):
    """scikit-learn shows all of them."""
    for X, y, where in ((np.ones((3, 1)), np.ones(3) + 1j, "`y`"), (np.ones((3, 1)) + 1j, np.ones(3), "`X`")):
        with pytest.raises(ValueError, match=rf"not supported: {where} is of complex128; .*`\.real` and `\.imag`"):
            reg.fit(X, y)
    table = pd.DataFrame({"x": np.arange(3.0), "y": np.ones(3) + 1j})
    with pytest.raises(ValueError, match="the column 'y' of `observations` is of complex128; give real and"):
        npax.interpolate(table, table, "x", "y", model=reg.model)


def test_dates_are_not_predicted(reg):
    with pytest.raises(ValueError, match="`y` holds dates"):
        reg.fit(np.zeros((3, 1)), DAYS)


def test_bad_requests(reg, data):
    X, y, Xs = data
    with pytest.raises(NotFittedError):
        reg.predict(Xs)
    reg.fit(X, y)
    with pytest.raises(ValueError, match="expecting 2 features"):
        reg.predict(Xs[:, :1])
    with pytest.raises(ValueError, match="contains NaN"):
        reg.predict(Xs * np.nan)
    with pytest.raises(ValueError, match="At most one"):
        reg.predict(Xs, return_std=True, return_cov=True)
    for q in (0.0, [0.5, 1.0], [[0.5]]):
        with pytest.raises(ValueError, match="`q` must be probabilities"):
            reg.predict_quantiles(Xs, q)
    with pytest.raises(ValueError, match="`n_samples` must be a whole number, at least 1"):
        reg.sample_y(Xs, 0)


@pytest.mark.filterwarnings("ignore:All values of `y`")
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.linspace(0, 1, 9)[:, None], np.full(9, 4.2)),
        (np.zeros((6, 2)), np.arange(6.0)),
        (np.array([[3.0]]), np.array([-2.0])),
        (1e9 + np.arange(9.0)[:, None], np.arange(9.0)),
        (np.arange(9)[:, None], np.arange(9)),
        (np.arange(9.0)[:, None], 1e12 * np.arange(9.0)),
    ],
    ids=["constant y", "duplicates that differ", "one point", "far away", "integers", "huge y"],
)
def test_odd_observations_give_finite_answers(reg, X, y):
    mean, std = reg.fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.abs(mean - np.mean(y)).max() < 10 * (np.std(y) + 1)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(9, 4.2), "All values of `y` are 4.2: nothing says how large deviations are.* a unit in which"),
        (4.2 + 1e-15 * np.arange(9), "All values of `y` are 4.2"),
        (np.stack([np.arange(9.0), np.zeros(9)], axis=1), "All values of column 1 of `y` are 0"),
    ],
)
@pytest.mark.parametrize("strategy", ["exact", "tiled"])
def test_values_that_do_not_vary_have_no_scale(tiny, strategy, y, words, recwarn):
    """Which is told once, however many tiles and predictions; as they are, they need none."""
    X = np.arange(9.0)[:, None]
    reg = npax.NeuralProcessRegressor(tiny, strategy=strategy, tile_size=3).fit(X, y)
    reg.update([[9.0]], y[:1]).predict(X)
    assert len(recwarn) == 1 and re.match(words, str(recwarn.pop().message))
    clone(reg).set_params(normalize=False).fit(X, y).predict(X)
    clone(reg).fit(X, np.arange(9.0))
    assert not recwarn


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
@pytest.mark.parametrize("c", [1e-300, 1e-165, 1e155, 1e306])
def test_no_unit_of_y_is_too_large_or_too_small(tiny, data, strategy, c):
    X, y, Xs = data
    plain = npax.NeuralProcessRegressor(tiny, strategy=strategy, tile_size=3).fit(X, y)
    scaled = clone(plain).fit(X, c * y)
    for a, b in zip(plain.predict(Xs, return_std=True), scaled.predict(Xs, return_std=True), strict=True):
        np.testing.assert_allclose(b / c, a, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(scaled.sample_y(Xs, 2) / c, plain.sample_y(Xs, 2), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(scaled.predict_quantiles(Xs, 0.9) / c, plain.predict_quantiles(Xs, 0.9), rtol=1e-3)


def test_no_targets(reg, data):
    X, y, Xs = data
    reg.fit(X, y)
    mean, std = reg.predict(Xs[:0], return_std=True)
    assert mean.shape == std.shape == (0,)
    assert reg.sample_y(Xs[:0], 2).shape == (0, 2)
    assert reg.predict(Xs[:0], return_cov=True)[1].shape == (0, 0)


def test_models_by_name_and_path(small, data, tmp_path, reg):
    X, y, Xs = data
    path = tmp_path / "m.safetensors"
    npax.save(path, small)
    for model in (path, str(path)):
        found = npax.NeuralProcessRegressor(model).fit(X, y).predict(Xs)
        assert np.allclose(found, reg.fit(X, y).predict(Xs))
    with pytest.raises(FileNotFoundError, match="gp-universl"):
        npax.NeuralProcessRegressor("gp-universl").fit(X, y)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        npax.NeuralProcessRegressor(tmp_path / "nowhere.safetensors").fit(X, y)
    content = bytearray(path.read_bytes())
    content[-3] ^= 255
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match="damaged"):
        npax.NeuralProcessRegressor(path).fit(X, y)
    with pytest.raises(TypeError, match="`model` must be"):
        npax.NeuralProcessRegressor(3).fit(X, y)


def test_on_the_globe_the_dateline_is_no_border(small, rng):
    X = np.stack([rng.uniform(170, 190, 40), rng.uniform(-10, 10, 40)], axis=1)
    y = np.sin(X[:, 0])
    reg = npax.NeuralProcessRegressor(small, coords="latlon").fit(X, y)
    turned = np.stack([(X[:, 0] + 180) % 360 - 180, X[:, 1]], axis=1)
    wrapped = npax.NeuralProcessRegressor(small, coords="latlon").fit(turned, y)
    assert np.allclose(reg.predict(X), wrapped.predict(X), atol=1e-3)


def everywhere(rng, n):
    """Longitudes, latitudes and days."""
    north = np.degrees(np.arcsin(rng.uniform(-1, 1, n)))
    return np.stack([rng.uniform(-180, 180, n), north, rng.uniform(0, 90, n)], axis=1)


@pytest.mark.parametrize("n", [60, 400])
def test_around_the_globe_there_is_no_border_in_time_either(n, small, rng):
    X, XT = everywhere(rng, n), everywhere(rng, 50)
    y = np.sin(np.radians(X[:, 0])) + X[:, 2] / 90
    reg = npax.NeuralProcessRegressor(small, coords="latlon", tile_size=32).fit(X, y)
    mean, std = reg.predict(XT, return_std=True)
    assert reg.strategy_ == "tiled" and np.isfinite(mean).all() and np.isfinite(std).all()
    turned = npax.NeuralProcessRegressor(small, coords="latlon", tile_size=32).fit(X + np.array([360, 0, 1e4]), y)
    assert np.allclose(turned.predict(XT + np.array([-720, 0, 1e4])), mean, atol=1e-3)
    with pytest.raises(ValueError, match='strategy="tiled"'):
        reg.set_params(strategy="exact").fit(X, y)
    samples = npax.NeuralProcessRegressor(small, coords="latlon").fit(X, y).sample_y(XT[:5], 3)
    assert samples.shape == (5, 3) and np.isfinite(samples).all()


def test_a_region_seen_for_a_while_is_as_its_map_is(small, rng):
    """Small, around a place far from the equator: as kilometres on a plane are, time beside them."""
    X = np.column_stack([rng.uniform(-1, 1, (80, 2)), rng.uniform(0, 90, 80)])
    y = np.sin(3 * X[:, 0]) + X[:, 2] / 90
    lonlat = X * [0.5 / np.cos(np.radians(60)), 0.5, 1] + [179.9, 60, 0]
    positions = LatLon().positions(lonlat)
    east, north, _, day = LatLon().adapted(positions, y[:, None]).units
    units = (east * np.radians(0.5), north * np.radians(0.5), day)
    found = npax.NeuralProcessRegressor(small, coords="latlon").fit(lonlat, y)
    expected = Exact(small, X, y[:, None], Planar(units=units))(X[:20])
    mean, std = found.predict(lonlat[:20], return_std=True)
    assert found.strategy_ == "exact"
    assert np.allclose(mean, expected.mean[:, 0], atol=0.05) and np.allclose(std, expected.std()[:, 0], atol=0.05)
    other = Exact(small, X, y[:, None], Planar(units=(units[0], *units[::-1][:2])))(X[:20])
    assert np.abs(other.mean - expected.mean).max() > 0.05


def test_what_is_kept_does_not_change_with_the_users_array(small, rng):
    X = rng.uniform(0, 10, (60, 2))
    reg = npax.NeuralProcessRegressor(small, strategy="tiled", tile_size=16).fit(X, np.sin(X[:, 0]))
    kept = reg.X_.copy()
    X[:] = 7.0
    assert np.array_equal(reg.X_, kept)


def test_options_that_are_set_after_a_fit_are_checked_and_do_not_mix(reg, data):
    """Another strategy is taken at once, another unit with the next update: it was, in part, where the strategy was set
    as well."""
    X, y, Xs = data
    y = 100 + 5 * y
    expected = clone(reg).set_params(strategy="tiled", tile_size=16).fit(X, y).predict(Xs)
    reg.set_params(tile_size=16, strategy="exact").fit(X, y)
    found = reg.set_params(strategy="tiled", normalize=False).predict(Xs)
    assert reg.strategy_ == "tiled" and np.array_equal(found, expected)
    first = clone(reg).fit(X[:50], y[:50]).update(X[50:], y[50:])
    assert np.array_equal(reg.fit(X[:50], y[:50]).update(X[50:], y[50:]).predict(Xs), first.predict(Xs))
    assert not np.allclose(first.predict(Xs), expected, atol=1)
    with pytest.raises(ValueError, match=r"`strategy` must be one of .*; got 'exactly'"):
        reg.set_params(strategy="exactly").predict(Xs)
    with pytest.raises(ValueError, match=r"`on_missing` must be one of .*; got '\?'"):
        reg.set_params(strategy="auto", on_missing="?").update(X, y)


@pytest.mark.parametrize("far", [400.0, -1e6])
def test_what_lies_far_from_all_others_is_told(reg, data, far):
    X, y, _ = data
    stray = np.r_[X, [[5.0, far]]], np.r_[y, 0.0]
    told = r"Column 1 of `X` is from .* for 90% of the observations, and 1 of 61 lie far away, from .* to"
    with pytest.warns(UserWarning, match=told):
        reg.fit(*stray)
    with pytest.warns(UserWarning, match="'north' of `X` is from"):
        reg.fit(pd.DataFrame(stray[0], columns=["east", "north"]), stray[1])
    clusters, layers = X + [0.0, 1e4] * (np.arange(60)[:, None] < 20), np.c_[X[:, 0], np.arange(60) == 7]
    for untold in (clusters, layers):
        reg.fit(untold, y)
    clone(reg).set_params(tile_size=16, strategy="tiled").fit(*stray)


def test_an_update_that_fails_changes_nothing(small, rng):
    X = rng.uniform(-80, 80, (20, 2))
    reg = npax.NeuralProcessRegressor(small, coords="latlon").fit(X, np.sin(X[:, 0]))
    before = reg.predict(X[:3])
    with pytest.raises(ValueError, match="latitude"):
        reg.update([[0.0, 100.0]], [1.0])
    assert np.array_equal(reg.predict(X[:3]), before)


@pytest.mark.parametrize(
    ("params", "X"),
    [
        ({"coords": "latlon"}, [[0.0, 100.0], [1.0, 1.0]]),
        ({"model": "no-such-model"}, [[0.0, 1.0], [1.0, 1.0]]),
        ({}, [[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 3.0, 2.0]]),
    ],
)
def test_a_fit_that_fails_changes_nothing(params, X, small, rng):
    reg = npax.NeuralProcessRegressor(small).fit(rng.uniform(size=(9, 2)), rng.normal(size=9))
    before = reg.predict([[0.3, 0.4]])
    with pytest.raises((ValueError, FileNotFoundError)):
        reg.set_params(**params).fit(X, [1.0, 2.0])
    assert reg.predict([[0.3, 0.4]]) == before and reg.update([[0.5, 0.5]], [1.0]).X_.shape == (10, 2)


def test_missing_values_of_tables_are_missing(reg):
    table = pd.DataFrame({"east": pd.array([1, 2, None, 4], "Int64"), "north": 0.0})
    with pytest.raises(ValueError, match=r"`X` contains NaN or infinity in 1 of 4 rows \(columns 'east'\)"):
        reg.fit(table, np.arange(4))
    with pytest.warns(DroppedRows, match="1 of 4 rows"):
        assert len(reg.fit(table[["north"]], table["east"]).y_) == 3


def test_masked_values_are_missing(small, rng):
    X, y = rng.uniform(0, 10, (20, 2)), np.ma.masked_greater(np.arange(20.0), 16.0)
    with pytest.warns(DroppedRows, match="3 of 20 rows"):
        reg = npax.NeuralProcessRegressor(small).fit(X, y)
    assert len(reg.y_) == 17
    with pytest.raises(ValueError, match=r"`X` contains NaN or infinity in 2 of 20 rows \(columns 1\)"):
        npax.NeuralProcessRegressor(small).fit(
            np.ma.masked_array(X, [[False, i < 2] for i in range(20)]), y.filled(0.0)
        )


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
def test_targets_however_far_have_finite_predictions(small, rng, strategy):
    X = rng.uniform(0, 10, (40, 2))
    reg = npax.NeuralProcessRegressor(small, strategy=strategy, tile_size=16).fit(X, np.sin(X[:, 0]))
    with pytest.warns(Extrapolation, match="3 of 3 targets"):
        mean, std = reg.predict([[1e9, 5.0], [-1e30, 1e300], [9.96921e36, 0.0]], return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


@pytest.mark.parametrize("coords", ["planar", "latlon"])
def test_targets_outside_of_the_observations_are_counted(tiny, coords, rng):
    """Where intervals are asked for, and until there are observations."""
    X = np.concatenate([[[0.0, 0.0], [10.0, 10.0]], rng.uniform(0, 10, (40, 2))])
    reg = npax.NeuralProcessRegressor(tiny, coords=coords).fit(X, np.sin(X[:, 0]))
    inside, outside = [[12.0, 5.0], [5.0, -2.0]], [[15.0, 5.0], [5.0, 20.0]]
    reg.predict(inside, return_std=True)
    for ask in (reg.predict, reg.sample_y, lambda X: reg.predict_quantiles(X, 0.9)):
        with pytest.warns(Extrapolation, match="2 of 4 targets.*too narrow.*do not rely on the standard deviations"):
            ask(inside + outside)
    reg.update(outside, [0.0, 0.0]).predict(inside + outside)


@pytest.mark.parametrize("normalize", ["yes", 1, None])
def test_normalize_is_true_or_false(small, normalize):
    with pytest.raises(ValueError, match="`normalize` must be True or False"):
        npax.NeuralProcessRegressor(small, normalize=normalize).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("size", [0, 2.5])
def test_the_size_of_tiles_is_a_whole_number(small, size):
    with pytest.raises(ValueError, match="`tile_size` must be a whole number"):
        npax.NeuralProcessRegressor(small, tile_size=size).fit([[0.0], [1.0]], [0.0, 1.0])


def test_models_of_pictures_are_for_pictures():
    with pytest.raises(ValueError, match="fill_gaps"):
        npax.NeuralProcessRegressor("field-universal").fit(np.zeros((3, 2)), np.zeros(3))


def test_tiles_have_the_units_of_all_that_is_observed(small, rng):
    """Also where a trend is taken off: they are found once."""
    X = rng.uniform(-2, 2, (400, 2))
    y = 5 * X[:, 0] + np.sin(6 * X[:, 1]) + 0.1 * rng.normal(size=400)
    found = npax.NeuralProcessRegressor(small, strategy="tiled", tile_size=16).fit(X, y).predict(X[:9] + 0.1)
    system = npax.inference.adapted(npax.inference.Planar(), X, y[:, None], None, True)
    by_itself = npax.inference.Tiled(small, X, y[:, None], system, size=16)(X[:9] + 0.1)
    np.testing.assert_allclose(found, by_itself.mean[:, 0], rtol=1e-6)


def test_columns_that_are_never_known_together_are_to_be_fitted_one_by_one(small, rng):
    y = np.where(np.arange(2) == np.arange(6)[:, None] % 2, 1.0, np.nan)
    with pytest.raises(ValueError, match=r"6 of 6 rows of `y` hold NaN or infinity\. Fit each column by itself"):
        npax.NeuralProcessRegressor(small).fit(rng.uniform(size=(6, 2)), y)

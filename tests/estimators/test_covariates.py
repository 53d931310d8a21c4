"""Columns that are no coordinates, but say something of `y`."""

import sys

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import untrained
import xarray as xr

import npax
from npax.estimators import Extrapolation
from npax.likelihoods import AbstractLikelihood

AT = np.random.default_rng(1).uniform(-0.9, 0.9, (9, 4))


def surveyed(rng, n=80):
    """Two coordinates and two covariates; `y` has a field and both."""
    X = rng.uniform(-1, 1, (n, 4))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + X[:, 2:] @ [2.0, -1.0] + 0.1 * rng.normal(size=n)


@pytest.fixture(params=["exact", "tiled"])
def strategy(request):
    return request.param


@pytest.fixture
def make(small, strategy):
    return lambda **given: npax.NeuralProcessRegressor(small, strategy=strategy, tile_size=24, **given)


def test_the_network_answers_what_they_leave(make, rng):
    X, y = surveyed(rng)
    reg = make(covariates=[2, 3]).fit(X, y)
    assert reg.coef_.shape == (2,) and np.allclose(reg.coef_, [2, -1], atol=0.2)
    field = make().fit(X[:, :2], y - X[:, 2:] @ reg.coef_)
    mean, std = reg.predict(AT, return_std=True)
    expected, of_field = field.predict(AT[:, :2], return_std=True)
    wider = reg._predictor().drift.widened.item()
    of_field *= wider
    drift, doubt = AT[:, 2:] @ reg.coef_, reg._predictor().doubt(AT)[..., 0] * np.std(y)
    assert np.allclose(mean, expected + drift, atol=1e-4)
    assert np.all(doubt.any(axis=1)) and np.allclose(std, np.hypot(of_field, np.linalg.norm(doubt, axis=1)), atol=1e-4)
    cov = reg.predict(AT, return_cov=True)[1]
    assert np.allclose(np.diag(cov), std**2, rtol=1e-4)
    assert np.allclose(cov, wider**2 * field.predict(AT[:, :2], return_cov=True)[1] + doubt @ doubt.T, atol=1e-4)
    of_field = expected[:, None] + wider * (field.sample_y(AT[:, :2], 3) - expected[:, None])
    of_slopes = reg.sample_y(AT, 3) - of_field - drift[:, None]
    drawn = np.linalg.lstsq(doubt, of_slopes)[0]
    assert np.allclose(of_slopes, doubt @ drawn, atol=1e-3) and 0 < np.abs(drawn).max() < 5
    quantiles = reg.predict_quantiles(AT, [0.1, 0.5])
    assert np.allclose(quantiles, np.column_stack([mean - 1.2816 * std, mean]), atol=1e-4)
    assert reg.score_report(AT, mean)["rmse"] == 0


def test_names_and_numbers_are_one(make, rng):
    X, y = surveyed(rng)
    table = pd.DataFrame(X[:, [2, 0, 3, 1]], columns=["elevation", "x", "soil", "y"])
    named = make(covariates=["elevation", "soil"]).fit(table, y)
    numbered = make(covariates=(-2, 3)).fit(X, y)
    at = pd.DataFrame(AT[:, [2, 0, 3, 1]], columns=table.columns)
    assert np.allclose(named.predict(at), numbered.predict(AT), atol=1e-5)
    assert np.allclose(named.coef_, numbered.coef_, rtol=1e-4)


def test_columns_of_y_have_slopes_of_their_own(make, rng):
    X, y = surveyed(rng)
    reg = make(covariates=[2, 3]).fit(X, np.column_stack([y, -2 * y]))
    assert reg.coef_.shape == (2, 2) and np.allclose(reg.coef_[1], -2 * reg.coef_[0], rtol=1e-3)
    mean = reg.predict(AT)
    assert np.allclose(mean[:, 0], make(covariates=[2, 3]).fit(X, y).predict(AT), atol=1e-4)
    part = reg._predictor()
    if reg.strategy_ == "tiled":
        part = part.part(AT).of(None).of(part.model)
    assert np.allclose(part(AT).mean, mean, atol=1e-5)
    assert reg.sample_y(AT, 2).shape == (9, 2, 2) and reg.predict(AT, return_cov=True)[1].shape == (9, 9, 2)


def test_more_observations_tell_more_of_slopes(make, rng):
    X, y = surveyed(rng)
    reg = make(covariates=[2, 3]).fit(X[:50], y[:50]).update(X[50:], y[50:])
    whole = make(covariates=[2, 3]).fit(X, y)
    assert np.allclose(reg.coef_, whole.coef_) and np.allclose(reg.predict(AT), whole.predict(AT))


def test_without_any_nothing_changes(make, rng):
    X, y = surveyed(rng)
    reg = make().fit(X[:, :2], y)
    assert reg.coef_.shape == (0,)
    assert np.array_equal(make(covariates=None).fit(X[:, :2], y).predict(AT[:, :2]), reg.predict(AT[:, :2]))


def test_they_may_be_many_beside_degrees(make, rng):
    X = np.column_stack([rng.uniform(-10, 10, (60, 2)), rng.normal(size=(60, 5))])
    reg = make(coords="latlon", covariates=range(2, 7)).fit(X, X[:, 2] + 0.1 * rng.normal(size=60))
    assert np.allclose(reg.coef_, [1, 0, 0, 0, 0], atol=0.1) and np.isfinite(reg.predict(X)).all()


def test_known_errors_go_with_them(small, rng):
    X, y = surveyed(rng)
    told = npax.NeuralProcessRegressor(small, covariates=[2, 3]).fit(X, y, error=0.1)
    assert np.allclose(told.coef_, [2, -1], atol=0.2)


def test_gaps_to_learn_from_are_cut_into_what_they_leave(small, rng, monkeypatch):
    def stopped(model, x, y, **options):
        assert np.array_equal(x, X[:, :2]) and np.all(np.abs(np.corrcoef(y[:, 0], X[:, 2:].T)[0, 1:]) < 0.3)
        raise InterruptedError

    X, y = surveyed(rng)
    monkeypatch.setattr(sys.modules["npax.estimators.sklearn"], "train_on_gaps", stopped)
    with pytest.raises(InterruptedError):
        npax.NeuralProcessRegressor(small, covariates=[2, 3]).fit(X, y, finetune=8)


def test_far_beyond_those_that_were_observed_there_is_a_warning(make, rng):
    X, y = surveyed(rng)
    reg = make(covariates=[2, 3]).fit(X, y)
    reg.predict(AT)
    with pytest.warns(Extrapolation, match=r"3 of 9 targets have covariates \(2\) outside"):
        reg.predict(AT + np.where(np.arange(9) < 3, 3.0, 0.0)[:, None] * [0, 0, 1, 0])


def test_of_a_covariate_that_was_the_same_everywhere_other_values_are_told(make, rng):
    """Nothing says what it does: by that, its slope is zero."""
    X, y = surveyed(rng)
    reg = make(covariates=[2]).fit(np.column_stack([X[:, :2], np.full(len(X), 7.0)]), y)
    reg.predict(np.column_stack([AT[:, :2], np.full(len(AT), 7.0)]))
    with pytest.warns(Extrapolation, match=r"9 of 9 targets have covariates \(2\) outside"):
        reg.predict(np.column_stack([AT[:, :2], np.full(len(AT), 8.0)]))


@pytest.mark.parametrize(
    ("covariates", "kind", "words"),
    [
        (["soil"], ValueError, "has no 'soil'; it has 'a', 'b', 'c', 'd'"),
        ([False, False, True, True], TypeError, "not a mask"),
        (["c", 2], ValueError, "name every column once"),
        ("c", TypeError, "a list of columns"),
        (2, TypeError, "a list of columns"),
        ([4], ValueError, "0 to 3; got 4"),
        ([1.5], TypeError, "numbers or names"),
        ([0, 1, 2, 3], ValueError, "leave a column of coordinates"),
    ],
)
def test_columns_that_cannot_be(covariates, kind, words, small, rng):
    X, y = surveyed(rng)
    with pytest.raises(kind, match=words):
        npax.NeuralProcessRegressor(small, covariates=covariates).fit(pd.DataFrame(X, columns=[*"abcd"]), y)


def test_names_need_a_table(small, rng):
    with pytest.raises(ValueError, match="where `X` has no names, got 'soil'"):
        npax.NeuralProcessRegressor(small, covariates=["soil"]).fit(*surveyed(rng))


@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e100, 1e300])
def test_any_unit_of_y_will_do(small, unit, rng):
    X, y = surveyed(rng)
    reg = npax.NeuralProcessRegressor(small, covariates=[2, 3])
    plain, found = (reg.fit(X, scaled).predict(AT, return_std=True) for scaled in (y, unit * y))
    assert np.allclose(np.array(found) / unit, plain, rtol=1e-4, atol=1e-5)


def test_slopes_have_standard_deviations(small, rng):
    X, y = surveyed(rng)
    reg = npax.NeuralProcessRegressor(small, covariates=[2, 3]).fit(X, y)
    assert reg.coef_std_.shape == (2,) and np.all(np.abs(reg.coef_ - [2, -1]) < 4 * reg.coef_std_)
    assert np.all(np.isinf(reg.fit(X[:4], y[:4]).coef_std_)) and not reg.coef_.any()


def test_too_many_coordinates_are_told_of_them(small, rng):
    X, y = surveyed(rng)
    with pytest.raises(ValueError, match="make some of them `covariates`"):
        npax.NeuralProcessRegressor(small).fit(X, y)


class Counts(AbstractLikelihood):
    dy: int = 1

    @property
    def size(self):
        return 1

    def __call__(self, raw):
        return dist.Poisson(jnp.exp(raw)).to_event(1)


def test_counts_have_no_drift(rng):
    model = untrained.untrained(
        lambda key: npax.CNP(2, 1, encoder=(8,), size=8, decoder=(8,), likelihood=Counts(), key=key)
    )
    X, _ = surveyed(rng)
    with pytest.raises(ValueError, match=r"added to `y`, and Counts"):
        npax.NeuralProcessRegressor(model, covariates=[2, 3]).fit(X, rng.poisson(3, len(X)))


@pytest.fixture
def stations(rng):
    X, y = surveyed(rng)
    return pd.DataFrame(np.column_stack([X, y]), columns=["x", "y", "elevation", "soil", "rain"])


@pytest.fixture
def ground(rng):
    axes = {"x": np.linspace(-0.9, 0.9, 7), "y": np.linspace(-0.9, 0.9, 5)}
    soil = ("x", rng.uniform(-0.9, 0.9, 7))
    return xr.Dataset({"elevation": (("y", "x"), rng.uniform(-0.9, 0.9, (5, 7))), "soil": soil}, axes)


@pytest.mark.parametrize("covariates", ["elevation", ["elevation", "soil"]])
def test_tables_and_grids_have_them(stations, ground, covariates, small, strategy, tmp_path):
    given = {"x": ["x", "y"], "y": "rain", "covariates": covariates, "model": small, "tile_size": 24}
    given["strategy"] = strategy
    table = ground.to_dataframe().reset_index()
    points = npax.interpolate(stations, table, **given)
    ground["elevation"][2, 3] = np.nan
    grid = npax.interpolate(stations, ground, **given)
    expected = points.set_index(["y", "x"]).to_xarray().drop_vars(["elevation", "soil"])
    assert np.isnan(grid.rain_mean[2, 3]) and int(grid.rain_mean.isnull().sum()) == 1
    missing = grid.rain_mean.isnull()
    xr.testing.assert_allclose(grid[["rain_mean", "rain_std"]], expected.where(~missing), atol=1e-5)
    lazy = npax.interpolate(stations, ground.chunk(x=3), **given)
    assert lazy.rain_mean.chunks is not None
    xr.testing.assert_allclose(lazy.compute(), grid, atol=1e-5)
    stored = npax.interpolate(stations, ground, store=tmp_path / "rain.zarr", **given)
    xr.testing.assert_allclose(stored.compute(), grid, atol=1e-5)
    with pytest.raises(FileExistsError, match="another prediction"):
        npax.interpolate(stations, ground, store=tmp_path / "rain.zarr", **{**given, "covariates": ["soil"]})


def test_of_a_large_grid_what_can_be_predicted_is_counted(stations, small):
    """Not the cells without a covariate."""
    axes = {"x": np.linspace(2.5, 3.5, 100), "y": np.linspace(-0.9, 0.9, 100)}
    soil = np.zeros((100, 100))
    soil[:, :75] = np.nan
    far = xr.Dataset({"soil": (("y", "x"), soil)}, axes)
    with pytest.warns(Extrapolation, match=r"About 2,[45]\d\d of 2,[45]\d\d targets"):
        npax.interpolate(stations, far, x=["x", "y"], y="rain", covariates="soil", model=small)


def test_names_that_are_not_there(stations, ground, small):
    given = {"x": ["x", "y"], "y": "rain", "model": small}
    with pytest.raises(ValueError, match="`target` has no 'slope'"):
        npax.interpolate(stations.assign(slope=1.0), ground, covariates="slope", **given)
    table = ground.assign(slope=ground.soil).to_dataframe().reset_index()
    with pytest.raises(ValueError, match="`observations` has no 'slope'"):
        npax.interpolate(stations, table, covariates="slope", **given)
    with pytest.raises(ValueError, match="`observations` has no 'slope'"):
        npax.interpolate(stations, ground, covariates="slope", **given)
    with pytest.raises(ValueError, match=r"once, got .* covariates=\['x'\]"):
        npax.interpolate(stations, ground, covariates="x", **given)
    with pytest.raises(ValueError, match=r"`error` must name a column .* none of the others"):
        npax.interpolate(stations, ground, covariates="soil", error="soil", **given)
    with pytest.raises(ValueError, match="A store takes no names with '/'"):
        other = {"covariates": "a/b", "store": "never.zarr"}
        npax.interpolate(stations.assign(**{"a/b": 1.0}), ground, **other, **given)
    with pytest.raises(ValueError, match=r"NaN or infinity in 80 of 80 rows \(columns 'soil'\)"):
        npax.interpolate(stations.assign(soil=np.nan), ground, covariates="soil", **given)
    with pytest.raises(ValueError, match="'soil' of `observations` is not of numbers"):
        npax.interpolate(stations.assign(soil="clay"), ground, covariates="soil", **given)

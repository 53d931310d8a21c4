import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import npax
from npax import demo


@pytest.fixture(scope="module")
def floats():
    """A smooth field on the sphere seen with noise: X [n 2], y [n], and where to predict it."""
    rng = np.random.default_rng(0)
    lat = np.degrees(np.arcsin(rng.uniform(-1, 1, 900)))
    X = np.column_stack([rng.uniform(20, 380, 900), lat])
    truth = demo.baselines.chords(X) @ [3.0, -2.0, 5.0]
    return X, truth + 0.3 * rng.normal(size=900), truth


@pytest.fixture(scope="module")
def months(floats):
    """The same, with days beside them along which the field grows."""
    X, y, truth = floats
    day = np.random.default_rng(1).uniform(0, 90, len(X))
    return np.column_stack([X, day]), y + 0.05 * day, truth + 0.05 * day


@pytest.mark.parametrize("places", ["floats", "months"])
@pytest.mark.parametrize("baseline", [demo.InverseDistance(), demo.SubsetGP(300)], ids=lambda b: type(b).__name__)
def test_baselines_are_fair(baseline, places, request):
    X, y, truth = request.getfixturevalue(places)
    mean, std = baseline.fit(X[:700], y[:700]).predict(X[700:])
    scores = npax.metrics.score_report(y[700:], mean, std)
    assert scores["rmse"] < 0.3 * np.std(y)
    assert 0.88 < scores["coverage"] < 0.99
    assert np.corrcoef(mean, truth[700:])[0, 1] > 0.97


def test_baselines_do_not_see_the_frame_of_longitudes(floats):
    X, y, _ = floats
    baseline = demo.InverseDistance().fit(X[:700], y[:700])
    for here, there in zip(baseline.predict(X[700:]), baseline.predict(X[700:] - [360, 0]), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-5)


def test_inverse_distance_finds_how_far_a_day_is(months):
    X, y, truth = months
    with_it, without = (
        np.std(demo.InverseDistance().fit(X[:700, :d], y[:700]).predict(X[700:, :d])[0] - truth[700:]) for d in (3, 2)
    )
    assert with_it < 0.6 * without


def test_inverse_distance_of_fewer_than_its_neighbours(floats):
    X, y = (a[:10] for a in floats[:2])
    mean, std = demo.InverseDistance(16).fit(X, y).predict(X + 1.0)
    assert np.isfinite(mean).all() and (std > 0).all()


def test_inverse_distance_is_exact_at_an_observation(floats):
    X, y, _ = floats
    mean, _ = demo.InverseDistance().fit(X, y).predict(X[:5])
    np.testing.assert_allclose(mean, y[:5], atol=1e-3)


class Constant:
    """Stands in for the neural process: the demo around it is the matter here."""

    def __init__(self, model, **_):
        pass

    def fit(self, X, y):
        self.mean, self.std = y.mean(), y.std()
        return self

    def predict(self, X, return_std):
        return np.full(len(X), self.mean), np.full(len(X), self.std)


@pytest.fixture
def result(tmp_path, monkeypatch):
    monkeypatch.setattr(demo.argo, "NeuralProcessRegressor", Constant)
    monkeypatch.setattr(demo.argo, "SubsetGP", lambda size, seed: demo.SubsetGP(200, seed))
    console = Console(width=140, record=True, file=io.StringIO())
    result = demo.run(tmp_path / "argo.nc", tmp_path / "argo.png", observations=3000, console=console)
    return result, console.export_text()


def test_demo_compares_and_writes_a_map(result, tmp_path):
    result, printed = result
    ours, nearest, gp = result.rows
    assert nearest.scores["rmse"] < ours.scores["rmse"] and gp.scores["rmse"] < ours.scores["rmse"]
    for heading in ("RMSE", "NLL", "CRPS", "95 % cov.", "seconds"):
        assert heading in printed
    assert (tmp_path / "argo.png").read_bytes().startswith(b"\x89PNG")
    written = xr.load_dataset(tmp_path / "argo.nc")
    assert dict(written.sizes) == {"lat": 180, "lon": 360}
    assert written.temp_mean.attrs["units"] == "degree_Celsius" and str(written.time.values).startswith("2016-02-15T12")
    assert "Argo Program" in written.attrs["acknowledgement"]
    np.testing.assert_allclose(written.temp_std, result.std, rtol=1e-6)
    assert not npax.data.is_land(*np.meshgrid(result.lon, result.lat))[np.isfinite(result.mean)].any()
    assert 20_000 < np.isfinite(result.mean).sum() < 46_000


def test_holdout_is_drawn_by_seed_and_held_out():
    X, y, held_out = demo.argo.split(0, 0.1, None)
    assert X.shape == (32_436, 3) and len(y) == 32_436 and held_out.sum() == 3_244
    again, other = demo.argo.split(0, 0.1, None), demo.argo.split(1, 0.1, None)
    np.testing.assert_array_equal(X, again[0])
    assert not np.array_equal(X, other[0])


@pytest.mark.parametrize("holdout", [0.0, 1.0, -0.1, 10.0])
def test_holdout_is_a_share(holdout):
    with pytest.raises(ValueError, match="`holdout`"):
        demo.run(None, None, holdout=holdout)

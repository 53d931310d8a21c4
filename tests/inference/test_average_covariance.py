"""Averages over regions, against the closed form of a Gaussian process."""

import sys

import numpy as np
import pytest
import untrained

import npax
from npax.inference import Columns, Drift, Exact, Planar, Tiled, WithDrift, average_covariance, average_std, covariance


@pytest.fixture(scope="module")
def seen():
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, (12, 1))
    return x, np.sin(2 * x)


def closed_form(gp, predictor, xt):
    """The covariance of the function, in float64."""

    def kernel(a, b):
        return np.exp(-0.5 * ((a - b.T) / gp.scale) ** 2)

    (context,) = predictor.contexts
    xc, xt = context.x[context.mask, :1].astype(float), predictor.frame(xt)
    across = kernel(xt, xc)
    known = np.linalg.solve(kernel(xc, xc) + gp.noise**2 * np.eye(len(xc)), across.T)
    return (kernel(xt, xt) - across @ known) * context.standardiser.std**2


def halves(x):
    """All of a line, its left and its right half, a part of it that is weighed by its place, and one place."""
    x = x[:, 0]
    weights = np.array([x < np.inf, x < 0, x >= 0, (x > 1) * x, np.arange(len(x)) == 3], float)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [Exact, Tiled])
@pytest.mark.parametrize("n", [60, 3000])
def test_of_a_gp_they_have_its_posterior_covariance(gp, seen, kind, n):
    """And not that of independent places, nor of one that are all alike."""
    x = np.linspace(-2, 2, n)[:, None]
    weights, predictor = halves(x), kind(gp, *seen)
    found = average_covariance(predictor, x, weights, predictor(x))[..., 0]
    truth = weights @ closed_form(gp, Exact(gp, *seen), x) @ weights.T
    std, of_truth = np.sqrt(np.diag(found)), np.sqrt(np.diag(truth))
    assert np.allclose(std, of_truth, rtol=0.05)
    assert np.abs(found / np.outer(std, std) - truth / np.outer(of_truth, of_truth)).max() < 0.05
    assert np.linalg.eigvalsh(found).min() > -1e-9
    alone = predictor(x).function_std[:, 0]
    assert (of_truth[:3] > 1.5 * np.sqrt(np.square(weights[:3]) @ np.square(alone))).all()
    assert (of_truth[:3] < 0.9 * weights[:3] @ alone).all()


def test_one_place_has_the_predicted_variance(seen):
    model, x = untrained.small(), np.linspace(-2, 2, 7)[:, None]
    predictor = Exact(model, *seen)
    prediction = predictor(x)
    found = average_covariance(predictor, x, np.eye(7), prediction)[..., 0]
    assert np.allclose(np.diag(found), prediction.function_variance[:, 0])


@pytest.mark.parametrize("order", [1, -1])
def test_sums_of_weights_of_both_signs(gp, seen, order):
    """Weighted sums of any weights: differences of regions by themselves, and of twice as much."""
    x = np.linspace(-2, 2, 50)[::order][:, None]
    left, right = halves(x)[1:3]
    predictor = Exact(gp, *seen)
    found = average_covariance(predictor, x, np.stack([left, right, 2 * (left - right)]), predictor(x))[..., 0]
    assert found[2, 2] == pytest.approx(4 * (found[0, 0] + found[1, 1] - 2 * found[0, 1]), rel=0.05)


def test_each_column_has_its_own(gp, seen):
    x, y = seen
    at, both = np.linspace(-2, 2, 30)[:, None], np.concatenate([y, 100 * np.cos(5 * x) + 3], axis=1)
    reg = npax.NeuralProcessRegressor(gp, views=None).fit(x, both)
    weights, predictor = halves(at), reg._predictor()
    told = at, predictor(at)
    joint = np.einsum("ki,ijc,lj->klc", weights, covariance(predictor, *told, include_noise=False), weights)
    found = average_covariance(predictor, at, weights, told[1])
    assert found.shape == (5, 5, 2)
    assert np.allclose(np.einsum("kkc->kc", found), np.einsum("kkc->kc", joint), rtol=0.05)


def test_slopes_that_are_not_known_are_shared_by_all(gp, seen, rng):
    x, y = seen
    z, at, of_z = rng.normal(size=(12, 1)), np.linspace(-2, 2, 40)[:, None], rng.normal(size=(40, 1))
    drift = Drift(Planar(), x, z, y)
    predictor = WithDrift(Exact(gp, x, y - drift(z)), drift, Columns([0], [1]))
    table = np.concatenate([at, of_z], axis=1)
    prediction, weights = predictor(table), halves(at)
    found = average_covariance(predictor, table, weights, prediction)[..., 0]
    joint = covariance(predictor, table, prediction, include_noise=False)[..., 0]
    assert np.allclose(np.diag(found), np.diag(weights @ joint @ weights.T), rtol=0.05)
    without = average_covariance(predictor.field, at, weights, predictor.field(at))[..., 0]
    assert (np.diag(found) > np.diag(without)).all()


def test_one_place_beside_many_covariates_has_the_predicted_variance(gp, seen, rng):
    """What the field has of it is wider by what slopes took of the degrees of freedom."""
    x, y = seen
    z, at, of_z = rng.normal(size=(12, 5)), np.linspace(-2, 2, 7)[:, None], rng.normal(size=(7, 5))
    drift = Drift(Planar(), x, z, y)
    assert drift.widened > 1.1
    predictor = WithDrift(Exact(gp, x, y - drift(z)), drift, Columns([0], [1, 2, 3, 4, 5]))
    table = np.concatenate([at, of_z], axis=1)
    prediction, field = predictor(table), predictor.field(at)
    unknown = np.square(drift.doubt(at, of_z)).sum(axis=1) * np.square(drift.unit)
    assert np.allclose(prediction.function_variance, np.square(drift.widened) * field.function_variance + unknown)
    assert np.allclose(prediction.variance, np.square(drift.widened) * field.variance + unknown)
    found = average_covariance(predictor, table, np.eye(7), prediction)[..., 0]
    assert np.allclose(np.diag(found), prediction.function_variance[:, 0])
    assert np.allclose(np.diag(covariance(predictor, table, prediction, include_noise=False)[..., 0]), np.diag(found))


def test_of_regions_without_weight_nothing_varies(gp, seen):
    x = np.linspace(-2, 2, 9)[:, None]
    predictor = Exact(gp, *seen)
    assert not average_covariance(predictor, x, np.zeros((2, 9)), predictor(x)).any()
    assert average_covariance(predictor, x[:0], np.zeros((2, 0)), predictor(x[:0])).shape == (2, 2, 1)


@pytest.mark.parametrize("c", [1e-170, 1e200])
def test_standard_deviations_are_of_any_unit(gp, seen, c):
    x, y = seen
    at = np.linspace(-2, 2, 9)[:, None]
    found, expected = (
        average_std(predictor, at, halves(at), predictor(at)) for predictor in (Exact(gp, x, c * y), Exact(gp, x, y))
    )
    assert np.allclose(found / c, expected)


def test_what_a_network_answers_far_away_is_no_covariance(gp, seen, monkeypatch):
    """A response that is off by little everywhere: over the whole it would add up to more than is true."""
    x = np.linspace(-60, 60, 1001)[:, None]
    predictor = Exact(gp, *seen)
    prediction, whole = predictor(x), np.full((1, 1001), 1 / 1001)
    true = average_std(predictor, x, whole, prediction)
    averages = sys.modules["npax.inference.averages"]
    responses_of = averages.responses_of
    with monkeypatch.context() as patch:
        for off in (-0.02, 0.02):

            def wrong_by(*given, off=off):
                response_to = responses_of(*given)
                return lambda j: lambda rows: response_to(j)(rows) + off

            patch.setattr(averages, "responses_of", wrong_by)
            assert np.allclose(average_std(predictor, x, whole, prediction), true, rtol=0.2)
            patch.setattr(averages, "LOST", 0.0)
            assert not np.allclose(average_std(predictor, x, whole, prediction), true, rtol=0.5)
            patch.setattr(averages, "LOST", 0.05)

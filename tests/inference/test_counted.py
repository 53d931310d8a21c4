"""Counts as normal observations of their level: against the greatest evidence bound, with an exact Gaussian process."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import nbinom, norm

from npax.counts import Binomial, Poisson
from npax.inference import Columns, Counted, LatLon, Planar, Prediction, linearised

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
KINDS = {
    "poisson": (Poisson(), [0.0, 3.0, 1.0, 9.0, 2.0, 0.0]),
    "binomial": (Binomial(), [0.0, 3.0, 1.0, 5.0, 2.0, 0.0]),
}
EXPOSURE = np.array([1.0, 3.0, 2.0, 6.0, 4.0, 2.0])


def covariance():
    x = np.linspace(0, 1, 6)
    return np.exp(-np.abs(x[:, None] - x) / 0.5) + 1.0


def exact(k, noise=0.0):
    """The answers of a Gaussian process without a mean, at the places of the observations."""

    def predict(seen):
        gain = k @ np.linalg.inv(k + np.diag(np.square(seen.error) + noise**2))
        variance = np.diag(k - gain @ k)
        return Prediction(*(a[:, None] for a in (gain @ seen.value, np.sqrt(variance + noise**2), np.sqrt(variance))))

    return predict


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_rounds_end_at_the_greatest_evidence_bound(kind, noise):
    """Over all normal distributions of the levels; those of the counts vary by the noise, too."""
    counts, y = KINDS[kind][0], np.array(KINDS[kind][1])
    k = covariance() + noise**2 * np.eye(6)
    y_prior, e_prior = counts.with_prior(y, EXPOSURE)
    lower = np.linalg.cholesky(k)

    def bound(parameters):
        mean = parameters[:6]
        root = np.zeros((6, 6))
        root[np.tril_indices(6)] = parameters[6:]
        std = np.linalg.norm(root, axis=1)
        levels = mean[:, None] + std[:, None] * NODES
        likely = counts.log_prob(y_prior[:, None], e_prior[:, None], levels) @ WEIGHTS / WEIGHTS.sum()
        white, shrunk = np.linalg.solve(lower, mean), np.linalg.solve(lower, root)
        logs = 2 * np.log(np.abs(np.diag(shrunk))).sum()
        return -likely.sum() + (white @ white + np.square(shrunk).sum() - 6 - logs) / 2

    start = np.append(np.zeros(6), (0.5 * lower)[np.tril_indices(6)])
    best = minimize(bound, start, method="L-BFGS-B", options={"maxiter": 2000, "maxfun": 200_000, "ftol": 1e-14}).x
    found = linearised(counts, y, EXPOSURE, exact(covariance(), noise))
    gain = k @ np.linalg.inv(k + np.diag(np.square(found.seen.error)))
    assert found.settled and found.number < 12
    std = np.sqrt(np.diag(k - gain @ k))
    assert np.allclose(gain @ found.seen.value, best[:6], atol=0.02)
    root = np.zeros((6, 6))
    root[np.tril_indices(6)] = best[6:]
    assert np.allclose(std, np.linalg.norm(root, axis=1), rtol=0.02)


def test_of_many_events_the_logarithm_of_the_observed_rate():
    y = np.array([1e6, 2e6, 5e5])
    found = linearised(Poisson(), y, np.full(3, 1e4), exact(4 * np.eye(3)))
    assert np.allclose(found.seen.value, np.log(y / 1e4), atol=1e-5)
    assert np.allclose(found.seen.error, y**-0.5, rtol=1e-3)


def test_probabilities_of_counts_are_those_of_what_was_predicted_without_looking():
    """Gamma distributed rates have negative binomial counts; the level of one is nearly normal where it is narrow."""
    y, mean, shape = np.array([3.0, 40.0, 5.0, 900.0]), 30.0, 400.0
    std = shape**-0.5
    field = Prediction(*(np.full((4, 1), a) for a in (np.log(mean) - std**2 / 2, std, 0.0)))
    found = linearised(Poisson(), y, np.ones(4), lambda seen: field)
    assert np.allclose(found.log_evidence[:3], nbinom.logpmf(y[:3], shape, shape / (shape + mean)), rtol=0.05)
    assert found.log_evidence[3] < -500


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_counted_levels_are_low_and_finite(kind):
    counts = KINDS[kind][0]
    found = linearised(counts, np.zeros(6), EXPOSURE, exact(covariance()))
    assert found.settled and np.isfinite(found.seen.value).all() and np.isfinite(found.seen.error).all()
    assert counts.rate(exact(covariance())(found.seen).mean).max() < 0.2


def test_what_does_not_settle_is_told():
    """Of answers that turn over with every round."""
    sign = [1.0]

    def predict(seen):
        sign[0] *= -1
        return Prediction(*(np.full((6, 1), a) for a in (5 * sign[0], 0.1, 0.1)))

    heard = []
    found = linearised(Poisson(), np.ones(6), EXPOSURE, predict, heard.append)
    assert not found.settled and found.number == len(heard)


def test_small_counts_are_pooled_where_they_are_near(rng):
    x = rng.uniform(size=(300, 3))
    x[:, 2] = rng.integers(0, 2, 300)  # a covariate: a class
    y = rng.binomial(1, 0.3, 300).astype(float)
    table = Counted(x, y, np.ones(300))
    found = table.pooled(Binomial(), Planar(), Columns([0, 1], [2]))
    assert found.y.sum() == y.sum() and found.exposure.sum() == 300
    assert 60 < len(found.y) < 200 and found.exposure.max() <= 6
    assert np.allclose(found.exposure @ found.x / 300, x.mean(axis=0))
    assert set(found.x[:, 2]) == {0.0, 1.0}  # classes are not mixed
    more = table._replace(y=y + 0.5)
    assert more.pooled(Poisson(), Planar(), Columns([0, 1], [2])) is more
    large = table._replace(y=30 * y, exposure=np.full(300, 100.0))
    assert large.pooled(Binomial(), Planar(), Columns([0, 1], [2])) is large


def test_sums_are_at_their_means_by_exposure(rng):
    x, exposure = rng.uniform(size=(200, 3)), rng.uniform(0.2, 5.0, 200)
    table = Counted(x, rng.poisson(0.2 * exposure).astype(float), exposure)
    found = table.pooled(Poisson(), Planar(), Columns([0, 1], [2]))
    assert len(found.y) < 150 and np.allclose(found.exposure @ found.x, exposure @ x)


@pytest.mark.parametrize(
    ("n", "rate", "number"),
    [(300, 0.5, (120, 250)), (300, 3.0, (300, 300)), (4000, 0.1, (125, 250)), (4000, 0.6, (600, 1200))],
)
def test_sums_have_two_events_or_are_few(n, rate, number, rng):
    x = np.stack([rng.uniform(-180, 180, n), rng.uniform(-80, 80, n)], axis=1)
    y = rng.poisson(rate, n).astype(float)
    found = Counted(x, y, np.ones(n)).pooled(Poisson(), LatLon(), Columns([0, 1], []))
    assert number[0] <= len(found.y) <= number[1] and found.y.sum() == y.sum() and found.exposure.sum() == n
    expected = found.exposure * y.mean()
    assert len(found.y) == n or (expected >= min(2, y.sum() / 250) - 1e-9).all()


def test_series_are_summed_to_two_events_or_fifty_sums_or_half_an_event():
    weeks = np.arange(300.0)[:, None]
    for apart, number in ((1, 150), (3, 100), (6, 100), (30, 20), (100, 20)):
        y = (weeks[:, 0] % apart == 0).astype(float)
        found = Counted(weeks, y, np.ones(300)).pooled(Poisson(), Planar(), Columns([0], []))
        assert 0.5 * number <= len(found.y) <= number and found.exposure.max() <= 2 * found.exposure.min()


@pytest.mark.parametrize(("rate", "number"), [(0.1, (500, 1000)), (3.0, (4000, 4000)), (0.6, (500, 1300))])
def test_beside_covariates_many_counts_become_up_to_a_thousand_or_have_two_events(rate, number, rng):
    x = np.stack([rng.uniform(-180, 180, 4000), rng.uniform(-80, 80, 4000), rng.uniform(size=4000)], axis=1)
    y = rng.poisson(rate, 4000).astype(float)
    found = Counted(x, y, np.ones(4000)).pooled(Poisson(), LatLon(), Columns([0, 1], [2]))
    assert number[0] <= len(found.y) <= number[1] and found.y.sum() == y.sum()


def test_an_outbreak_is_not_summed_with_the_weeks_around_it():
    weeks, y = np.arange(260.0)[:, None], np.zeros(260)
    y[::4], y[120:125] = 1.0, 30.0
    found = Counted(weeks, y, np.ones(260)).pooled(Poisson(), Planar(), Columns([0], []))
    inside = (found.x[:, 0] >= 120) & (found.x[:, 0] <= 124)
    assert (found.exposure[inside] == 1).sum() >= 3 and (found.exposure == 1).sum() <= 5
    assert found.y[found.exposure == 1].min() >= 30


@pytest.mark.parametrize(("seen", "alone"), [(7.0, 0), (8.0, 3)])
def test_weeks_of_eight_cases_stay_by_themselves(seen, alone):
    weeks, y = np.arange(260.0)[:, None], np.zeros(260)
    y[::4], y[120:125] = 1.0, seen
    found = Counted(weeks, y, np.ones(260)).pooled(Poisson(), Planar(), Columns([0], []))
    assert (found.exposure == 1).sum() == alone


def test_an_outbreak_among_very_rare_cases_is_cut_where_it_is():
    """Ten weeks and more of these are one sum, so that no cut through its middle leaves enough on both sides."""
    weeks, y = np.arange(1000.0)[:, None], np.zeros(1000)
    y[::20], y[503:508] = 1.0, 30.0
    found = Counted(weeks, y, np.ones(1000)).pooled(Poisson(), Planar(), Columns([0], []))
    assert (found.exposure[found.y == 30] == 1).sum() >= 3 and (found.exposure == 1).sum() <= 5


@pytest.mark.parametrize("of_east", [29, 30, 31])
def test_means_of_places_across_the_date_line_lie_there(of_east):
    lon = 180 + (np.arange(60) - of_east + 0.5) / 30
    x = np.stack([(lon + 180) % 360 - 180, np.full(60, 10.0)], axis=1)
    y = (np.arange(60) % 4 == 0).astype(float)
    found = Counted(x, y, np.ones(60)).pooled(Binomial(), LatLon(), Columns([0, 1], []))
    assert len(found.y) < 30 and (np.abs(found.x[:, 0]) > 178.9).all() and np.allclose(found.x[:, 1], 10, atol=0.01)
    assert np.isclose(found.exposure @ (found.x[:, 0] % 360) / 60, lon.mean())


def test_rounds_are_no_worse_than_the_logarithm_of_rates(rng):
    """A negative control: normal approximations about each count alone are biased where counts are small."""
    n = 60
    x = np.linspace(0, 1, n)
    k = np.exp(-np.abs(x[:, None] - x) / 0.3) + 4.0
    losses = []
    for _ in range(10):
        level = np.linalg.cholesky(k - 4.0 + 1e-9 * np.eye(n)) @ rng.normal(size=n) - 0.5
        y = rng.poisson(np.exp(level)).astype(float)
        seen = linearised(Poisson(), y, np.ones(n), exact(k)).seen
        alone = seen._replace(value=np.log(y + 0.5), error=(y + 0.5) ** -0.5)
        losses.append([-norm.logpdf(level, *(a[:, 0] for a in exact(k)(s)[:2])).mean() for s in (seen, alone)])
    ours, others = np.mean(losses, axis=0)
    assert ours < others - 0.3

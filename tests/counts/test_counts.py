"""Counts of a rate: against SciPy's distributions and its quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import integrate, stats

from npax.counts import Binomial, Poisson

KINDS = [Poisson(), Binomial()]


def pmf(counts, y, exposure, rate):
    return (
        stats.poisson.logpmf(y, exposure * rate)
        if isinstance(counts, Poisson)
        else stats.binom.logpmf(y, exposure, rate)
    )


def integral(f, mean, std):
    """The mean of `f` where a level is normal."""

    def density(t):
        return f(t) * stats.norm.pdf(t, mean, std)

    return integrate.quad(density, mean - 12 * std, mean + 12 * std, points=[mean], limit=500, epsabs=0, epsrel=1e-9)[0]


@pytest.fixture(params=KINDS, ids=lambda counts: type(counts).__name__)
def counts(request):
    return request.param


def test_probabilities_are_scipys(counts):
    level, exposure, y = np.linspace(-3, 2, 7), np.arange(3.0, 10.0), np.arange(7.0)[::-1].clip(max=3)
    assert np.allclose(counts.log_prob(y, exposure, level), pmf(counts, y, exposure, counts.rate(level)), atol=1e-12)
    assert np.allclose([counts.level(rate) for rate in counts.rate(level)], level)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(KINDS), st.floats(-4, 3), st.floats(0.01, 1.5), st.integers(0, 30), st.integers(0, 300))
def test_means_over_levels_are_integrals(counts, mean, std, y, more):
    exposure = y + more + 1.0
    m, s, y, e = (np.array([float(a)]) for a in (mean, std, y, exposure))
    rate, spread = counts.moments(m, s)
    first = integral(counts.rate, mean, std)
    assert np.isclose(rate[0], first, rtol=1e-6)
    assert np.isclose(spread[0] ** 2, integral(lambda t: np.square(counts.rate(t) - first), mean, std), rtol=1e-4)
    assert np.allclose(counts.of_moments(rate, spread), (m, s), rtol=1e-6, atol=1e-6)
    h = 1e-4
    slope = integral(lambda t: (counts.rate(t + h) - counts.rate(t - h)) / (2 * h), mean, std)
    assert np.isclose(counts.slope(m, s)[0], slope, rtol=1e-5)
    # As a sum over a fine grid: the integrand may be far narrower than the distribution of the level.
    at, width = counts.posterior(y, e, m, s)
    grid = at + width * np.linspace(-12, 12, 4001)
    likely = pmf(counts, y, e, counts.rate(grid)) + stats.norm.logpdf(grid, mean, std)
    evidence = np.log(integrate.trapezoid(np.exp(likely - likely.max()), grid)) + likely.max()
    assert np.isclose(counts.log_evidence(y, e, m, s)[0], evidence, atol=1e-4)


def test_without_doubt_the_working_response_of_a_generalised_linear_model(counts):
    level, y, e = np.array([-1.0, 0.5]), np.array([2.0, 3.0]), np.array([10.0, 4.0])
    rate = counts.rate(level)
    variance = e * rate if isinstance(counts, Poisson) else e * rate * (1 - rate)
    value, error = counts.linearised(y, e, level, np.zeros(2))
    assert np.allclose(value, level + (y - e * rate) / variance) and np.allclose(error, variance**-0.5)


def test_evidence_of_large_counts_is_finite(counts):
    y, e = np.array([0.0, 3e5]), np.array([1e6, 1e6])
    found = counts.log_evidence(y, e, np.array([-1.0, -1.0]), np.array([2.0, 2.0]))
    level = counts.level(0.3)
    wide = stats.norm.logpdf(level, -1, 2) - np.log(2.0)  # the level is all but known: a density, over counts
    per_count = np.log(1e6 * counts.slope(np.array([level]), np.zeros(1))[0])
    assert np.isfinite(found).all()
    assert np.isclose(found[1], wide + np.log(2.0) - per_count, atol=0.01)


def test_draws_have_the_rate(counts, rng):
    drawn = counts.draw(rng, np.full((20_000, 2), 5.0), np.array([0.1, 0.6]))
    assert np.allclose(drawn.mean(axis=0), [0.5, 3.0], atol=0.06)
    assert (drawn == np.round(drawn)).all()


def test_a_prior_is_worth_half_an_event(counts):
    y, e = counts.with_prior(np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]))
    assert np.isclose(y.sum(), 0.5) and np.allclose(y / e, (y / e)[0])
    y, e = counts.with_prior(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    assert isinstance(counts, Poisson) or np.isclose((e - y).sum(), 0.5)


def test_overdispersion_is_what_counts_vary_beyond_chance(counts, rng):
    exposure = rng.integers(1, 30, 20_000).astype(float)
    for noise in (0.0, 0.3):
        levels = -0.5 - counts.curved * noise**2 / 2 + noise * rng.normal(size=20_000)
        y = counts.draw(rng, exposure, counts.rate(levels))
        found = counts.overdispersion(y, exposure, np.full(20_000, -0.5), np.zeros(20_000))
        assert np.isclose(found, noise**2, atol=0.02)
    single = counts.draw(rng, np.ones(9), np.full(9, 0.5))
    assert isinstance(counts, Poisson) or counts.overdispersion(single, np.ones(9), np.zeros(9), np.zeros(9)) == 0


def test_overdispersion_of_small_exposures_is_as_large(counts, rng):
    """Single trials of shares show none of it, and pairs half."""
    n, noise = 100_000, 0.5
    y = counts.draw(rng, np.full(n, 2.0), counts.rate(-0.5 - counts.curved * noise**2 / 2 + noise * rng.normal(size=n)))
    assert np.isclose(counts.overdispersion(y, np.full(n, 2.0), np.full(n, -0.5), np.zeros(n)), noise**2, atol=0.04)


def test_what_counts_of_a_place_share_is_told_from_what_each_has(counts, rng):
    n, shared, own, exposure = 20_000, 0.4, 0.3, np.full((20_000, 3), 5.0)
    levels = shared * rng.normal(size=(n, 1)) + own * rng.normal(size=(n, 3)) - counts.curved * (shared**2 + own**2) / 2
    y = counts.draw(rng, exposure, counts.rate(levels))
    given = (a.ravel() for a in (y, exposure, np.zeros((n, 3)), np.zeros((n, 3))))
    found = counts.shared_overdispersion(*given, list(np.arange(3 * n).reshape(n, 3)))
    assert np.isclose(found, shared**2, atol=0.035)


def test_nothing_overflows(counts):
    mean, std = np.array([-1e6, 1e6, 0.0]), np.array([1.0, 1.0, 1e3])
    value, error = counts.linearised(np.ones(3), np.ones(3), mean, std)
    for a in (*counts.moments(mean, std), counts.slope(mean, std), value, error):
        assert np.isfinite(a).all()


def test_what_cannot_be_is_refused_by_name():
    one = np.ones(1)
    for counts, y, e, words in (
        (Poisson(), -one, one, "`y` must hold counts, finite and not negative; got -1 in row 0"),
        (Poisson(), one, 0 * one, "`exposure` must be positive and finite; got 0 in row 0. Leave out"),
        (Poisson(), one, np.array([[1.0], [0], [np.nan]])[:, 0], "got 0 in row 1 and in 1 more. Leave out"),
        (Binomial(), 3 * one, 2 * one, "`y` must hold numbers of positives, from 0 to `exposure`.*got 3 of 2"),
        (Binomial(), one, np.nan * one, "`exposure`, how many were tested, must be positive"),
    ):
        with pytest.raises(ValueError, match=words):
            counts.refuse_impossible(y, e)
    with pytest.raises(ValueError, match="must be positive, got -1"):
        Poisson().level(-1.0)
    with pytest.raises(ValueError, match="above 0 and below 1, got 1"):
        Binomial().level(1.0)

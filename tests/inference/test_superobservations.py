"""Means of near observations in place of noisy ones."""

import itertools
import warnings

import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

import npax
from npax.inference import Exact, LatLon, Planar, Tiled, superobservations
from npax.inference.anisotropy import Blocks, Fit, fitted, gaussian, matern12, matern32
from npax.inference.groups import Groups, groups, halved
from npax.inference.superobservations import FEWEST, how_many
from npax.metrics import crps


def function(x):
    return np.sin(3 * x[:, :1])


def noisy(rng, n, noise, d=1, of=function):
    x = rng.uniform(-2, 2, (n, d))
    return x, of(x) + noise * rng.normal(size=(n, 1))


def averaged(x, y, system=None):
    return superobservations(system or Planar(units=(1.0,) * x.shape[1]), x, y)


@given(st.integers(1, 200), st.sampled_from([1, 2, 3]), st.integers(2, 40), st.integers(0, 100), st.booleans())
@settings(deadline=None, max_examples=40)
def test_groups_are_near_ones_of_about_the_same_number(n, d, number, seed, repeated):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (n, d)).astype(float) if repeated else rng.normal(size=(n, d))
    found = groups(points, number)
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(n))
    if repeated:  # what coincides stays together
        places = [{tuple(p) for p in points[rows]} for rows in found]
        assert sum(map(len, places)) == len(set.union(*places))
    else:
        sizes = np.array([len(rows) for rows in found])
        assert sizes.min() >= min(n, number / 2) and sizes.max() <= 2 * number
    order = rng.permutation(n)
    again = {frozenset(order[rows].tolist()) for rows in groups(points[order], number)}
    assert again == {frozenset(rows.tolist()) for rows in found}


@given(st.integers(1, 300), st.sampled_from([1, 2, 3]), st.integers(1, 40), st.integers(0, 100))
@settings(deadline=None, max_examples=40)
def test_groups_have_about_the_same_weight_and_what_has_it_alone_stays_alone(n, d, number, seed):
    rng = np.random.default_rng(seed)
    points, weight = rng.normal(size=(n, d)), np.exp(2 * rng.normal(size=n))
    found = groups(points, number, weight)
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(n))
    heard = np.minimum(weight, number)
    assert max(heard[rows].sum() for rows in found) <= 1.5 * number * (1 + 1e-9)
    assert len(found) <= max(3 * heard.sum() / number, 1) + np.sum(weight > number / 3)


def test_means_by_weight_and_their_variances():
    """Of two groups, against the formulas, and of equal weights the plain means."""
    rows, weight = [np.array([0, 3]), np.array([2, 1, 4])], np.array([1.0, 2.0, 0.5, 3.0, 1.5])
    y, variance = np.array([1.0, 5.0, 2.0, -1.0, 4.0])[:, None], np.array([1.0, 0.5, 2.0, 1 / 3, 2 / 3])[:, None]
    seen = Groups(rows, weight)
    assert np.allclose(seen.means(y)[:, 0], [(1 - 3) / 4, (1 + 10 + 6) / 4])
    assert np.allclose(seen.variances(variance)[:, 0], [(1 + 3) / 16, (0.5 + 2 + 1.5) / 16])
    assert np.allclose(Groups(rows, np.ones(5)).means(y)[:, 0], [0, 11 / 3])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    n=st.integers(1, 200),
    d=st.integers(1, 3),
    number=st.sampled_from([1, 2, 3, 7, 16]),
    weighted=st.booleans(),
    repeated=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_groups_are_boxes_halved_one_by_one(n, d, number, weighted, repeated, seed):
    """Of weights whose sums are exact, for which ties are ties."""
    rng = np.random.default_rng(seed)
    points = np.round(3 * rng.normal(size=(n, d))) if repeated else rng.normal(size=(n, d))
    weight = rng.choice([0.0, 0.25, 0.5, 1.0, 8.0], n) if weighted else np.ones(n)

    def first(rows):
        running = np.append(0.0, np.cumsum(np.minimum(weight[rows], number)))
        parts = round(running[-1] / number)
        half = running[-1] * (parts // 2) / max(parts, 1)
        return round(np.interp(half, running, np.arange(len(running)))) if parts > 1 else 0

    found, expected = groups(points, number, weight if weighted else None), list(halved(points, first))
    assert len(found) == len(expected) and all(map(np.array_equal, found, expected))


def test_along_a_line_groups_are_intervals(rng):
    x = rng.normal(size=(100, 1))
    intervals = sorted((x[rows].min(), x[rows].max()) for rows in groups(x, 8))
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(intervals))


@pytest.mark.parametrize("kernel", [matern12, matern32, gaussian])
def test_the_slope_of_a_covariance(kernel):
    squares, h = np.array([1e-2, 0.3, 4.0, 30.0]), 1e-6
    above, below = kernel(squares + h)[0], kernel(squares - h)[0]
    assert np.allclose(kernel(squares)[1], (below - above) / (2 * h), atol=1e-6)
    assert kernel(np.zeros(1))[0] == 1 and np.isfinite(kernel(np.zeros(1))[1]).all()


@pytest.mark.parametrize(("kernel", "other"), [(matern12, matern32), (matern32, matern12)])
def test_a_rough_function_is_told_from_a_smooth_one_and_noise(kernel, other, rng):
    x = rng.uniform(-2, 2, (800, 1))
    k = kernel(np.square(2 * (x - x.T)))[0] + 1e-3 * np.eye(800)
    y = np.linalg.cholesky(k) @ rng.normal(size=(800, 1))
    fit = fitted(x, y, kernel, Blocks.of(x, y))
    assert fit.log_likelihood > fitted(x, y, other, Blocks.of(x, y)).log_likelihood
    assert np.isclose(fit.varied(np.array([0.1])), (1 - kernel(np.square([0.2]))[0].item()) / 1e-3, rtol=0.5)


def test_as_many_as_noise_allows(rng):
    """None without noise, nor of few, nor where nothing varies; more with more noise; never too few means."""
    number = [how_many(*noisy(rng, 3000, noise))[0] for noise in (0.0, 0.03, 0.3)]
    assert number[0] == 1 and number == sorted(number) and number[2] >= 4
    assert how_many(*noisy(rng, 3000, 3.0))[0] >= 4
    assert all(n // how_many(*noisy(rng, n, 3.0))[0] >= FEWEST for n in (2 * FEWEST, 1000, 5000))
    assert how_many(*noisy(rng, 2 * FEWEST - 1, 3.0)) == (1, None)
    assert how_many(rng.normal(size=(1000, 2)), np.zeros((1000, 1))) == (1, None)


def test_a_walk_is_averaged_while_little_of_it_is_lost_beside_the_noise_of_means(rng):
    """Of k steps half the variance is k q / 2, and the noise of their mean has s² / k: a tenth is near k² = s²/5q."""
    walk = np.cumsum(0.001**0.5 * rng.normal(size=(4000, 1)), axis=0)
    y = walk + 0.2 * rng.normal(size=walk.shape)
    assert how_many(np.arange(4000.0)[:, None], (y - y.mean()) / y.std())[0] in (2, 4)


@pytest.mark.parametrize(("kernel", "least", "most"), [(gaussian, 8, 64), (matern32, 1, 2)])
def test_smooth_functions_are_averaged_as_far_as_they_are_not_bent(kernel, least, most, rng):
    """A rough one of the same length, the negative control, loses more by it."""
    x = rng.uniform(-2, 2, (4000, 2))
    few = rng.uniform(-2, 2, (400, 2))
    root = np.linalg.cholesky(kernel(cdist(few, few, "sqeuclidean"))[0] + 1e-6 * np.eye(400))
    y = kernel(cdist(x, few, "sqeuclidean"))[0] @ np.linalg.solve(root.T, rng.normal(size=(400, 1)))
    number, fit = how_many(x, y / y.std() + 0.2 * rng.normal(size=y.shape))
    assert least <= number <= most and fit.kernel is kernel


def test_what_is_bent_is_what_differences_are_beside_twice_those_of_half_the_distance(rng):
    fit = Fit(gaussian, 1.5, 0.1, 0.0, 0.0)
    x = np.array([0.0, 0.4, 0.8])
    k = gaussian(np.square(1.5 * (x[:, None] - x)))[0]
    line = np.array([1.0, -2.0, 1.0])
    assert np.isclose(fit.bent(np.array([0.4]))[0], line @ k @ line / 2 / 0.1)


def test_what_is_rough_is_no_noise(rng):
    """A random walk, seen without any: a smooth covariance takes its steps for noise."""
    x = np.linspace(-2, 2, 4000)[:, None]
    assert how_many(x, np.cumsum(rng.normal(size=(4000, 1)), axis=0))[0] == 1


def test_means_are_means(rng):
    x, y = noisy(rng, 2000, 1.0)
    found = averaged(x, np.column_stack([y, 2 * y]))
    assert found.number >= 2 and np.isclose(found.number, 2000 / len(found.x))
    assert np.allclose(found.y[:, 1], 2 * found.y[:, 0]) and np.isclose(np.std(found.y[:, 0]), 0.7, atol=0.1)
    assert np.sqrt(np.mean(np.square(found.y[:, :1] - function(found.x)))) < 1.3 / np.sqrt(found.number)
    noise = found.noise(np.array([[-1.0], [0.0], [50.0]]))
    assert np.allclose(noise, [1.0, 2.0], rtol=0.25)


def instruments(rng, n):
    """One in five is good."""
    return np.where(rng.uniform(size=(n, 1)) < 0.2, 0.3, 3.0)


@pytest.mark.parametrize("known", [None, lambda rng, n: rng.uniform(0.5, 2.0, (n, 1)), instruments])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_what_is_told_of_means_is_how_far_they_are_off(known, noise, rng):
    """By chance, and as far as the function varies within groups; and the noise is found beside known errors."""
    error = None if known is None else known(rng, 4000)
    each = np.full((4000, 1), noise) if error is None else np.hypot(noise, error)
    x, y = noisy(rng, 4000, each)
    found = superobservations(Planar(units=(1.0,)), x, y, error)
    chance = (2 / 4000) ** 0.5 * np.mean(each**2)
    assert found.number > 2 and np.isclose(np.median(found.noise.std) ** 2, noise**2, atol=4 * chance)
    off = found.y - function(found.x)
    assert 0.95 < np.std(off / found.error) < 1.3  # not all of the noise that is found is told
    if known is instruments:  # without the errors, the negative control, means are farther off
        plain = averaged(x, y)
        assert np.median(np.abs(plain.y - function(plain.x))) > 1.1 * np.median(np.abs(off))


def test_of_noise_among_which_nothing_is_seen_nothing_is_told(rng):
    """The function may be part of it."""
    x, y = noisy(rng, 3000, 1.0, of=lambda x: np.zeros_like(x))
    found = averaged(x, y)
    assert found.number > 1 and found.error is None and found.fit is None
    known = np.full_like(y, 0.5)
    told = superobservations(Planar(units=(1.0,)), x, y, known)
    assert np.allclose(told.error**2 * 0.9 * told.number, 0.25, rtol=0.4)


def test_noise_beside_errors_is_found_by_likelihood(rng):
    """Values whose variance is 1 but for the errors: of function and noise the half each, a tenth, nine tenths."""
    x, error = rng.uniform(-2, 2, (1500, 1)), rng.uniform(0.1, 1.5, (1500, 1))
    root = np.linalg.cholesky(matern32(np.square(8 * (x - x.T)))[0] + 1e-9 * np.eye(1500))
    for noise in (0.1, 0.5, 0.9):
        y = (1 - noise) ** 0.5 * root @ rng.normal(size=(1500, 1))
        y += np.sqrt(noise + error**2) * rng.normal(size=(1500, 1))
        fit = fitted(x, y, matern32, Blocks.of(x, y), error)
        assert np.isclose(fit.unknown, noise, atol=0.12)


@pytest.mark.parametrize("lattice", [False, True])
def test_a_part_knows_the_noise_of_its_places(lattice, rng):
    """Also where several groups are as near, and where there are no places."""
    x = (
        np.stack(np.meshgrid(*2 * [np.arange(60.0)]), axis=-1).reshape(-1, 2)
        if lattice
        else rng.uniform(0, 60, (3600, 2))
    )
    found = averaged(x, np.sin(x[:, :1] / 9) + rng.normal(size=(3600, 1)))
    some = x[x[:, 0] < 10]
    part = found.noise.part(some)
    assert found.number > 1 and len(part.points) < len(found.x)
    assert np.array_equal(part(some), found.noise(some))
    assert found.noise.part(x[:0])(x[:0]).shape == (0, 1)


def test_of_few_places_none_are_averaged(rng):
    """However often each is observed: a few means would not tell how much varies."""
    x, y = np.repeat(rng.uniform(size=(5, 2)), 200, axis=0), rng.normal(size=(1000, 1))
    assert averaged(x, y).number == 1 and averaged(np.zeros((1000, 2)), y).number == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of repeated places
        reg = npax.NeuralProcessRegressor().fit(x, np.repeat(np.arange(5.0), 200) + 0.1 * y[:, 0])
        assert np.allclose(reg.predict(x[::200]), np.arange(5.0), atol=0.3)
    many = np.repeat(rng.uniform(-2, 2, (600, 1)), 5, axis=0)
    found = averaged(many, function(many) + rng.normal(size=(3000, 1)))
    assert FEWEST <= len(found.x) <= 600


def repeated(rng, places=40, most=12, noise=0.5, d=2):
    """Places in a random order, observed once to `most` times each."""
    x = np.repeat(rng.uniform(-2, 2, (places, d)), rng.integers(1, most + 1, places), axis=0)
    x = x[rng.permutation(len(x))]
    return x, function(x) + noise * rng.normal(size=(len(x), 1))


def by_place(x, *columns):
    return [[column[(x == place).all(axis=1)] for column in columns] for place in np.unique(x, axis=0)]


def test_repeated_observations_are_their_means(rng):
    """That of each place, with the noise within all of them over the root of their number; where errors are known, the
    means by weight, and errors of all that is known."""
    x, y = repeated(rng)
    found = averaged(x, y)
    assert len(found.x) == 40 and found.number == len(x) / 40
    within = by_place(x, y)
    assert np.allclose(found.y[:, 0], [of.mean() for (of,) in within])
    pooled = sum(np.sum(np.square(of - of.mean())) for (of,) in within) / (len(x) - 40)
    assert np.allclose(found.error[:, 0], [np.sqrt(pooled / len(of)) for (of,) in within], rtol=0.05)
    assert np.allclose(found.noise(x)[:, 0], np.sqrt(pooled), rtol=0.05)

    error = rng.choice([0.3, 2.0], y.shape)
    y = function(x) + error * rng.normal(size=y.shape)
    found = superobservations(Planar(units=(1.0, 1.0)), x, y, error)
    for of, e, mean, told in zip(*zip(*by_place(x, y, error), strict=True), found.y, found.error, strict=True):
        weight = 1 / np.square(e)
        assert np.isclose(mean[0], np.sum(weight * of) / weight.sum(), atol=0.3 * weight.sum() ** -0.5)
        assert np.isclose(told[0], weight.sum() ** -0.5, rtol=0.3)  # what varies beyond them by chance is told, too

    order = rng.permutation(len(x))
    again = superobservations(Planar(units=(1.0, 1.0)), x[order], y[order], error[order])
    assert np.allclose(again.y, found.y) and np.allclose(again.error, found.error)


def test_the_order_of_rows_on_a_lattice_is_no_matter_beside_known_errors(rng):
    """Many stand at one height, and weigh differently."""
    x = np.stack(np.meshgrid(np.linspace(-2, 2, 24), np.linspace(-2, 2, 24)), axis=-1).reshape(-1, 2)
    error = np.exp(rng.normal(size=(len(x), 1)))
    y, order = np.sin(x[:, :1]) + error * rng.normal(size=error.shape), rng.permutation(len(x))
    one, other = (superobservations(Planar(units=(1.0, 1.0)), x[i], y[i], error[i]) for i in (slice(None), order))
    assert one.number == other.number > 1
    rows = [np.lexsort(np.round(found.x, 9).T) for found in (one, other)]
    for a, b in zip((one.x, one.y, one.error), (other.x, other.y, other.error), strict=True):
        assert np.allclose(a[rows[0]], b[rows[1]])


def test_repeats_stay_as_they_are_where_they_do_not_tell_the_noise_or_the_network_does_not_hear_of_it(rng):
    x, y = repeated(rng)
    assert superobservations(Planar(units=(1.0, 1.0)), x, y, hears=False).number == 1
    once = np.unique(x, axis=0, return_index=True)[1]
    few = np.append(once, once[:15])
    assert averaged(x[few], y[few]).number == 1


@pytest.mark.filterwarnings("ignore:.* are copies of others")
def test_repeats_that_are_all_the_same_have_no_noise(rng):
    x = np.repeat(rng.uniform(-2, 2, (20, 1)), 4, axis=0)
    found = averaged(x, function(x))
    assert len(found.x) == 20 and found.error is None and not found.noise(x).any()
    reg = npax.NeuralProcessRegressor().fit(x, function(x)[:, 0])
    assert np.allclose(reg.predict(x), function(x)[:, 0], atol=0.1)


@pytest.mark.filterwarnings("ignore:.* are copies of others")
@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_samples_beside_repeats_have_the_noise_within_them(noise, rng):
    """Which may be less than the network finds between places; then samples must not have its."""
    x = np.repeat(np.linspace(0, 10, 20), 3)[:, None]
    reg = npax.NeuralProcessRegressor().fit(x, np.cos(x[:, 0]) + noise * rng.normal(size=60))
    at = np.linspace(0.2, 9.8, 5)[:, None]
    _, std = reg.predict(at, return_std=True)
    spread = reg.sample_y(at, 128).std(axis=1) / std
    assert reg.averaged_ == 3 and np.allclose(spread, 1, atol=0.25)


def test_many_repeats_are_predicted_from_as_from_their_means(rng):
    """Of which tiles of single observations, the negative control, see a few places each."""
    places, at = rng.uniform(-2, 2, (100, 2)), rng.uniform(-2, 2, (50, 2))
    x = np.repeat(places, 20, axis=0)
    y = function(x)[:, 0] + 0.4 * rng.normal(size=2000)
    means = npax.NeuralProcessRegressor().fit(places, y.reshape(100, 20).mean(axis=1), error=0.4 / 20**0.5)
    mean, std = means.predict(at, return_std=True, include_noise=False)

    def away(strategy, **error):
        reg = npax.NeuralProcessRegressor(strategy=strategy).fit(x, y, **error)
        other, of_other = reg.predict(at, return_std=True, include_noise=False)
        return np.sqrt(np.mean(np.square((other - mean) / std))), np.median(of_other / std)

    for error in ({}, {"error": 0.4}):
        off, wider = away("auto", **error)
        assert off < 0.3 and 0.8 < wider < 1.25
    assert away("tiled", error=0.4)[1] > 1.25


def test_tiles_larger_than_all_places_reach_without_end(small, rng):
    x, y = noisy(rng, 400, 0.3)
    reg = npax.NeuralProcessRegressor(small, tile_size=512).fit(x, y[:, 0])
    assert reg.strategy_ == "exact"


def test_noise_may_differ_from_place_to_place(rng):
    x = rng.uniform(-2, 2, (4000, 1))
    y = function(x) + np.where(x < 0, 0.3, 1.5) * rng.normal(size=(4000, 1))
    left, right = averaged(x, y).noise(np.array([[-1.0], [1.0]]))[:, 0]
    assert np.isclose(left, 0.3, rtol=0.3) and np.isclose(right, 1.5, rtol=0.3)


def test_on_the_globe_means_lie_between_and_so_do_longitudes(rng):
    """Around the pole and the line where longitudes begin anew, whose mean is no longitude between."""
    system = LatLon(units=(1.0, 1.0, 1.0, 0.01))
    for middle in ([0.0, 90.0], [180.0, 20.0]):
        far = rng.uniform(-3, 3, (1500, 2))
        lon = rng.uniform(-180, 180, 1500) if middle[1] == 90 else middle[0] + far[:, 0]
        lat = 90 - np.abs(far[:, 1]) if middle[1] == 90 else middle[1] + far[:, 1]
        x = np.column_stack([lon, lat, rng.uniform(0, 1, 1500)])
        found = averaged(x, far[:, 1:] / 3 + rng.normal(size=(1500, 1)), system)
        cos = system.positions(found.x)[:, :3] @ system.positions(np.array([[*middle, 0.0]]))[0, :3]
        assert found.number > 1 and np.degrees(np.arccos(cos)).max() < 5


def test_far_from_zero_differences_stay(rng):
    x, y = noisy(rng, 1000, 1.0)
    near, far = averaged(x, y), averaged(x + 1e9, y)
    assert near.number > 1 and np.allclose(np.sort(far.x - 1e9, axis=0), np.sort(near.x, axis=0), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_any_unit_will_do(scale, rng):
    x, y = noisy(rng, 800, 1.0)
    reg = npax.NeuralProcessRegressor().fit(x, y[:, 0])
    other = npax.NeuralProcessRegressor().fit(x, scale * y[:, 0])
    assert reg.averaged_ > 1
    for mine, others in zip(reg.predict(x[:5], return_std=True), other.predict(x[:5], return_std=True), strict=True):
        assert np.allclose(others / scale, mine, rtol=1e-3)
    assert np.isfinite(other.sample_y(x[:2], 2)).all() and other.sample_y(x[:2], 2).any()


def best(x, y, xt, noise):
    """The mean and the standard deviation of a Gaussian process that knows noise and covariance."""
    k, across = (matern32(np.square(1.5 * (a - x.T)))[0] for a in (x, xt))
    known = cho_factor(k + noise**2 * np.eye(len(x)))
    variance = 1 - np.einsum("ij,ji->i", across, cho_solve(known, across.T))
    return (across @ cho_solve(known, y))[:, 0], np.sqrt(variance)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("noise", [0.3, 2.0])
def test_a_noisy_series_is_seen_nearly_as_well_as_may_be(noise, rng):
    """The shipped model: a few percent above the best. Tiles of observations, the negative control, see noise."""
    x = rng.uniform(-2, 2, (2200, 1))
    root = np.linalg.cholesky(matern32(np.square(1.5 * (x - x.T)))[0] + 1e-9 * np.eye(2200))
    truth = root @ rng.normal(size=(2200, 1))
    x, xt, y, yt = x[:2000], x[2000:], truth[:2000] + noise * rng.normal(size=(2000, 1)), truth[2000:, 0]

    def above(strategy):
        reg = npax.NeuralProcessRegressor(strategy=strategy).fit(x, y[:, 0])
        found = reg.predict(xt, return_std=True, include_noise=False)
        return reg, crps(yt, *found) / crps(yt, *best(x, y, xt, noise)) - 1

    reg, found = above("auto")
    assert found < 0.25 and above("tiled")[1] > 2 * found
    new = yt + noise * rng.normal(size=200)
    assert reg.averaged_ >= 4 and 0.9 < reg.score_report(xt, new)["coverage"] < 0.99
    _, std = reg.predict(xt, return_std=True)
    _, of_function = reg.predict(xt, return_std=True, include_noise=False)
    assert np.allclose(np.sqrt(std**2 - of_function**2), noise, rtol=0.25)


@pytest.mark.parametrize("strategy", ["exact", "tiled"])
def test_joint_predictions_are_of_single_observations(strategy, rng):
    """Samples and covariances have the noise of one, on the diagonal alone."""
    model = npax.load("gp-universal")
    seen = averaged(*noisy(rng, 600, 1.0))
    kind = Exact if strategy == "exact" else Tiled
    predictor = kind(model, seen.x[::5], seen.y[::5], Planar(units=(1.0,)), noise=seen.noise)  # few are as good here
    at = np.array([[-1.0], [1.0]])
    prediction = predictor(at)
    with_noise, without = (
        npax.inference.covariance(predictor, at, prediction, include_noise=noise)[..., 0] for noise in (True, False)
    )
    assert np.allclose(with_noise - without, np.diag(np.square(seen.noise(at)[:, 0])), atol=1e-6)
    samples, functions = (
        npax.inference.joint_samples(predictor, at, 64, jr.key(0), include_noise=noise)[..., 0]
        for noise in (True, False)
    )
    assert np.allclose(samples.std(axis=0), prediction.std()[:, 0], rtol=0.3)  # of 64: off by a tenth
    assert np.allclose(functions.std(axis=0), prediction.std(include_noise=False)[:, 0], rtol=0.5)


@pytest.mark.parametrize("kwargs", [{"strategy": "exact"}, {"strategy": "tiled"}, {"normalize": False}])
def test_only_where_the_strategy_is_left_open(kwargs, rng):
    x, y = noisy(rng, 600, 2.0)
    reg = npax.NeuralProcessRegressor(**kwargs).fit(x, y[:, 0])
    assert reg.averaged_ == 1
    assert npax.NeuralProcessRegressor().fit(x, y[:, 0]).averaged_ > 1


def test_the_process_of_means_has_their_noise(rng):
    """That of an observation, which has four times the variance of the function, by their number."""
    x = rng.uniform(-2, 2, (2500, 1))
    covariance = matern32(np.square(4 * (x - x.T)))[0] + 1e-9 * np.eye(2500)
    y = np.linalg.cholesky(covariance) @ rng.normal(size=x.shape) + 2 * rng.normal(size=x.shape)
    found = superobservations(Planar(units=(1.0,)), x, y)
    assert found.number > 7 and found.fit is not None
    assert np.isclose(np.log(found.fit.noise), np.log(4 / found.number), atol=1)


def test_of_few_places_a_few_repeats_tell_no_noise(rng):
    """Half as many more as places, but fewer than 16."""
    places = rng.uniform(-2, 2, (12, 1))
    for more, several in ((8, False), (24, True)):
        x = np.concatenate([places, places[np.arange(more) % 12]])
        found = superobservations(Planar(units=(1.0,)), x, np.sin(x) + 0.5 * rng.normal(size=x.shape))
        assert (found.number > 1) == several


def spectrum(rng, depth):
    """3,000 places with noise, and a line that is some 20 of them wide."""
    x = np.sort(rng.uniform(0, 300, (3000, 1)), axis=0)
    f = 1 + 0.1 * np.sin(x / 50) - depth * np.exp(-0.5 * (x - 140) ** 2)
    return x, f, f + 0.05 * rng.normal(size=x.shape)


def test_what_stands_out_in_few_places_is_not_averaged_away(rng):
    """A line is seen as it is, beside it means are; without it, the negative control, all are means."""
    (x, _, y), (_, _, flat) = spectrum(rng, 0.7), spectrum(rng, 0.0)
    found, order = superobservations(Planar(units=(1.0,)), x, y), rng.permutation(len(x))
    alone = found.x[np.isin(found.x, x)]
    assert np.sum(np.abs(alone - 140) < 1.5) > 0.6 * np.sum(np.abs(x - 140) < 1.5)
    assert found.number > 3 and not np.isin(found.x[np.abs(found.x[:, 0] - 140) > 10], x).any()
    again = superobservations(Planar(units=(1.0,)), x[order], y[order])
    assert np.allclose(np.sort(again.x, axis=0), np.sort(found.x, axis=0))
    assert not np.isin(superobservations(Planar(units=(1.0,)), x, flat).x, x).any()


def test_outliers_are_averaged(rng):
    x, _, y = spectrum(rng, 0.0)
    y[::100] += 1.0
    found = superobservations(Planar(units=(1.0,)), x, y)
    assert found.number > 3 and np.isin(found.x, x).mean() < 0.1


@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("length", [0.3, 1.0])
def test_of_a_field_that_is_alike_everywhere_nothing_stands_out(length, noise, rng):
    x = rng.uniform(-2, 2, (2000, 2))
    r = np.sqrt(3) * cdist(x, x) / length
    y = np.linalg.cholesky((1 + r) * np.exp(-r) + 1e-9 * np.eye(2000)) @ rng.normal(size=(2000, 1))
    y += noise * rng.normal(size=y.shape)
    found = superobservations(Planar(units=(1.0, 1.0)), x, y)
    assert found.number == 1 or not np.isin(found.x, x).all(axis=1).any()


@pytest.mark.usefixtures("optimised")
def test_the_shipped_model_sees_a_line(rng):
    x, f, y = spectrum(rng, 0.7)
    reg = npax.NeuralProcessRegressor().fit(x, y[:, 0])
    line = np.abs(x[:, 0] - 140) < 3
    assert reg.averaged_ > 3 and reg.strategy_ == "tiled"
    assert np.sqrt(np.mean((reg.predict(x[line]) - f[line, 0]) ** 2)) < 0.05


@pytest.mark.parametrize("speed", [0.3, 3.0, 30.0])
def test_the_noise_is_told_however_slow_the_function(rng, speed):
    """One that is about a line among the places has a process that varies far more elsewhere: no matter."""
    x = rng.uniform(size=(2000, 1))
    y = 10 * np.sin(speed * (x + 0.3)) + rng.normal(size=(2000, 1))
    seen = superobservations(Planar(), x, y)
    assert seen.number > 1 and np.allclose(seen.noise(x[:50]), 1.0, atol=0.1)


def test_features_do_not_hide_the_noise(rng):
    """Where they stand out observations stay alone, and say nothing of it."""
    x = np.linspace(0, 1, 4000)[:, None]
    lines = np.exp(-0.5 * np.square((x - [0.1, 0.4, 0.6, 0.85]) / (3 / 4000))).sum(axis=1, keepdims=True)
    for field in (9 * np.cos(3 * x), 9 * x):
        seen = superobservations(Planar(), x, field - 14 * lines + rng.normal(size=x.shape))
        assert seen.features and np.all(np.abs(seen.noise(x[::50]) - 1) < 0.25)

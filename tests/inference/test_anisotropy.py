"""How much faster a function varies along some coordinates than along others."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from scipy.optimize import check_grad
from scipy.special import expit

from npax.inference import Exact, LatLon, Planar, Tiled, anisotropy
from npax.inference.anisotropy import Fit, matern32, relative_speeds
from npax.serialise import load


def field(rng, x, speeds, noise=0.1):
    """Of a Gaussian process with Matern 3/2 covariance, seen with noise."""
    r = np.sqrt(3 * np.square((x[:, None] - x) * speeds).sum(axis=-1))
    root = np.linalg.cholesky((1 + r) * np.exp(-r) + 1e-9 * np.eye(len(x)))
    return root @ rng.normal(size=(len(x), 1)) + noise * rng.normal(size=(len(x), 1))


def groups(d):
    return [(i,) for i in range(d)]


@pytest.mark.parametrize("speeds", [(1.0, 1.0), (0.2, 2.0), (3.0, 1.0, 0.3)])
@pytest.mark.parametrize("noise", [0.1, 0.7])
def test_the_speeds_of_a_field_are_found(speeds, noise, rng):
    speeds = np.array(speeds)
    x = rng.uniform(-2, 2, (1200, len(speeds)))
    found = relative_speeds(x, field(rng, x, speeds, noise), None, groups(len(speeds)))
    assert found.max() == 1 and np.allclose(np.log(found), np.log(speeds / speeds.max()), atol=0.6)


def test_the_slope_of_the_likelihood(rng):
    x, y = rng.normal(size=(3, 12, 2)), rng.normal(size=(3, 12, 2))
    squares = np.stack([anisotropy.squares(x[..., [i]]) for i in range(2)])
    block = squares, y, rng.uniform(size=y.shape), 0.7
    for guess in rng.normal(size=(3, 3)):
        assert (
            check_grad(lambda g: anisotropy._loss(g, *block)[0], lambda g: anisotropy._loss(g, *block)[1], guess) < 1e-5
        )


def test_the_likelihood_is_that_of_the_differences(rng):
    """Integrated over the mean and maximised over the variance, up to a constant: of contrasts, by a normal density."""
    x, y, noise = rng.normal(size=(1, 9, 1)), rng.normal(size=(1, 9, 1)), 0.3
    contrasts = np.linalg.qr(np.column_stack([np.ones(9), rng.normal(size=(9, 8))]))[0][:, 1:].T

    def expected(speed):
        r = np.sqrt(3) * np.exp(speed) * np.abs(x[0] - x[0].T)
        k = contrasts @ ((1 + r) * np.exp(-r) + (noise + anisotropy.NUGGET) * np.eye(9)) @ contrasts.T
        z = contrasts @ y[0]
        return 4 * np.log(z.T @ np.linalg.solve(k, z)).item() + np.linalg.slogdet(k)[1] / 2

    def found(speed):
        squares = anisotropy.squares(x)[None]
        return anisotropy._loss(np.array([speed, np.log(noise)]), squares, y, np.zeros_like(y), 1.0)[0]

    assert found(1.0) - found(-0.5) == pytest.approx(expected(1.0) - expected(-0.5))


@pytest.mark.parametrize("number", [2, 3])
def test_further_length_scales_that_gain_nothing_are_as_likely_as_they_cost(number, rng):
    """Of coordinates that are copies of each other."""
    x, y = rng.normal(size=(3, 12, 1)), rng.normal(size=(3, 12, 1))
    block = np.stack([anisotropy.squares(x)] * number), y, np.zeros_like(y), 1.0
    unlike = anisotropy._likeliest(np.append(np.zeros(number), np.log(0.3)), block)
    found = anisotropy._probability(unlike, block)
    assert found == pytest.approx(expit(-anisotropy.COST * (number - 1)), rel=0.02)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_search_ends_at_the_highest_of_several_summits(sign):
    """From coordinates alike alone it ended, of these data with the days counted down, at one that is 50 lower."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.uniform(low, high, 200) for low, high in ((140, 220), (-30, 60), (0, 365))])
    y = np.sin(np.radians(3 * x[:, 0])) * np.cos(np.radians(2 * x[:, 1])) + 0.5 * np.sin(x[:, 2] / 20)
    y = y[:, None] + 0.1 * np.random.default_rng(5).normal(size=(200, 1))
    system = LatLon()
    units = np.array(system.adapted(system.positions(x * [1, 1, sign]), y).units)
    assert 0.01 < units[3] / units[0] < 0.02  # of one day and the globe's radius; 0.0016 there


@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_happens_nothing_is_learned(seed):
    """Rain, or cases: zero in most places, and rare and large along one coordinate as along another where there is."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (1500, 2))
    y = np.square(np.maximum(field(rng, x, [1 / 0.4, 1 / 2.0], noise=0.0) - 1.5, 0))
    first, second = relative_speeds(x, y / y.std(), None, groups(2))
    assert second / first < 0.4  # 1 where blocks without any rain count


@given(st.integers(0, 30), st.sampled_from([2, 3, 12]), st.integers(0, 100))
@settings(deadline=None, max_examples=25)
def test_any_observations_have_finite_speeds(n, d, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-2, 3, (n, d)).astype(float), rng.integers(0, 2, (n, 1)).astype(float)
    for values, error in ((y, None), (0 * y, None), (y, 1e6 * np.ones_like(y))):
        found = relative_speeds(x, values, error, groups(d))
        assert np.isfinite(found).all() and found.max() == 1 and found.min() > 0


def test_a_constant_column_changes_nothing(rng):
    x = rng.uniform(-2, 2, (300, 2))
    y, beside = field(rng, x, [1.0, 4.0]), np.column_stack([x[:, 0], np.full(300, 0.7), x[:, 1]])
    found = relative_speeds(beside, y, None, groups(3))
    assert found[1] == 1 and np.array_equal(found[[0, 2]], relative_speeds(x, y, None, groups(2)))


def test_the_order_of_observations_does_not_matter(rng):
    x = rng.uniform(-2, 2, (300, 2))
    y, order = field(rng, x, [1.0, 4.0]), rng.permutation(300)
    assert np.array_equal(relative_speeds(x, y, None, groups(2)), relative_speeds(x[order], y[order], None, groups(2)))


@pytest.mark.parametrize("system", [LatLon(), Planar()])
def test_neither_do_the_order_and_the_origin_of_stations_that_report_at_regular_times(system, rng):
    """Many of their observations are equally near to one another."""
    stations, times = rng.uniform([-10, 50], [2, 58], (30, 2)), np.arange(10.0)
    x = np.column_stack([np.repeat(stations, 10, axis=0), np.tile(times, 30)])
    y = np.sin(x[:, :1] / 2) + np.cos(0.9 * x[:, 1:2]) + np.sin(0.9 * x[:, 2:]) / 2 + rng.normal(0, 0.3, (300, 1))

    def units(x, y):
        y = (y - y.mean()) / y.std()
        return np.array(system.adapted(system.positions(x), y).units)

    expected = units(x, y)
    assert np.ptp(np.log(expected)) > 0.1
    for _ in range(4):
        order, moved = rng.permutation(300), [0.0, 0.0, rng.uniform(-1e4, 1e4)]
        np.testing.assert_allclose(units(x[order] + moved, y[order]), expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_units_are_found_whatever_the_columns_come_in(scale, rng):
    x = rng.uniform(-2, 2, (300, 2))
    y = field(rng, x, [0.3, 2.0])
    plain, other = (
        np.array(Planar().adapted(x * unit, y).units) for unit in (np.ones(2), np.array([scale, 1 / scale]))
    )
    assert np.allclose(other * [scale, 1 / scale], plain)
    system = Planar().adapted(x, y)
    assert system.adapted(x, -y) is system and Planar(isotropic=True).adapted(x, y) == Planar(isotropic=True)


def northward(system, x, y):
    """How many times as fast values vary to the north as to the east."""
    east, north, up, *_ = system.adapted(system.positions(x), y).units
    assert east == up
    return north / east


@pytest.mark.parametrize("speeds", [(1.0, 1.0), (1.0, 3.0), (3.0, 1.0)])
@pytest.mark.parametrize("beside", [0, 1])
def test_on_a_part_of_the_globe_north_is_found_to_be_unlike_east(speeds, beside, rng):
    """Around 50 degrees of latitude, where a degree of longitude is 0.64 of one of latitude; with a third column."""
    plane = rng.uniform(-2, 2, (600, 2 + beside))
    y = field(rng, plane, [*speeds, *[0.5] * beside])
    x = np.column_stack([170 + plane[:, 0] / np.cos(np.radians(50)), 50 + plane[:, 1], plane[:, 2:]])
    ratio = northward(LatLon(), x, y)
    assert np.isclose(np.log(ratio), np.log(speeds[1] / speeds[0]), atol=0.4)
    moved = northward(LatLon(), x + np.eye(2 + beside)[0] * 123, y)
    assert np.isclose(ratio, moved, rtol=0.07)  # a step of what it is rounded to


def test_all_around_the_globe_north_is_along_its_axis(rng):
    """Climate by latitude. The centroid, which is anywhere, does not matter."""
    x = np.column_stack([rng.uniform(-180, 180, 400), np.degrees(np.arcsin(rng.uniform(-1, 1, 400)))])
    y = np.sin(np.radians(6 * x[:, 1:])) + 0.2 * np.sin(np.radians(x[:, :1])) + 0.1 * rng.normal(size=(400, 1))
    assert northward(LatLon(), x, y) > 2
    frame = LatLon().frame(LatLon().positions(x))
    assert np.allclose(frame.rotation[:, 1], [0, 0, 1], atol=1e-12)


def test_along_a_meridian_nothing_is_said_of_the_east(rng):
    x = np.column_stack([np.full(60, 20.0), np.linspace(-40, 40, 60)])
    y = np.sin(x[:, 1:] / 5)
    for places in (x, x[:, ::-1]):
        assert northward(LatLon(), places, y) == 1
    deep = np.column_stack([x, rng.uniform(0, 1000, 60)])
    assert northward(LatLon(), deep, y) == 1


@pytest.mark.parametrize("kind", [Exact, Tiled])
@pytest.mark.parametrize("system", [LatLon(), LatLon(units=(1.0, 1.0, 1.0))], ids=["found", "alike"])
def test_what_varies_faster_to_the_north_is_seen_better_for_it(kind, system, rng):
    """The shipped model; beside one scale for all directions, a negative control."""
    model = load("gp-universal")
    x = np.column_stack([rng.uniform(0, 30, 400), rng.uniform(30, 60, 400)])
    truth = np.sin(x[:, 1:] / 1.2) + 0.3 * np.sin(x[:, :1] / 8)
    y = truth[:200] + 0.1 * rng.normal(size=(200, 1))
    rmse = np.sqrt(np.mean(np.square(kind(model, x[:200], y, system)(x[200:]).mean - truth[200:])))
    assert (rmse < 0.15) == (system.units is None)


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_a_column_that_says_nothing_costs_little(kind, rng):
    """The shipped model beside a second column without effect, and one that is scaled by itself."""
    model = load("gp-universal")
    x, xt = rng.uniform(-2, 2, (200, 2)), rng.uniform(-2, 2, (200, 2))
    every = np.sin(3 * np.concatenate([x, xt])[:, :1])
    y = every[:200] + 0.1 * rng.normal(size=(200, 1))

    def rmse(x, xt, system=Planar()):  # noqa: B008
        return np.sqrt(np.mean(np.square(kind(model, x, y, system)(xt).mean - every[200:])))

    with_it, fixed = rmse(x, xt), rmse(x, xt, Planar(units=(1.0, 1.0)))
    assert with_it < 1.5 * rmse(x[:, :1], xt[:, :1]) and with_it < 0.7 * fixed


def test_errors_are_those_of_their_observations_in_any_order(rng):
    """Without them, the negative control, it is not seen what varies four times as fast along one coordinate."""
    x, order = rng.uniform(-2, 2, (300, 2)), rng.permutation(300)
    error = rng.choice([0.01, 3.0], (300, 1))
    y = np.sin(4 * x[:, :1]) + np.sin(x[:, 1:]) + error * rng.normal(size=error.shape)
    found, again = (relative_speeds(x[i], y[i], error[i], groups(2)) for i in (slice(None), order))
    assert np.allclose(np.log(found), [0, -np.log(4)], atol=0.3) and np.array_equal(found, again)
    assert np.abs(np.log(relative_speeds(x, y, None, groups(2))) - [0, -np.log(4)]).max() > 0.8


def test_of_noise_little_is_learned():
    """On average of ten: 0.06; by the guesses themselves, without how probable they are, 0.25."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(-2, 2, (40, 2)), rng.normal(size=(40, 1))
        found.append(np.ptp(np.log(relative_speeds(x, y, None, groups(2)))))
    assert np.mean(found) < 0.15


def test_all_noise_is_the_unknown_and_the_known_beside_the_function():
    """Of values whose function and unknown noise have the variance 1."""
    fit, known = Fit(matern32, 1.0, 0.6, 0.0, 0.0), np.array([0.0, 0.5, 4.0])
    assert np.allclose(fit.beside(known), (fit.unknown + known) / (1 - fit.unknown))


def test_rounding_errors_of_observations_change_no_factor(rng):
    x = rng.uniform(-2, 2, (300, 2))
    y = np.sin(4 * x[:, :1]) + np.sin(x[:, 1:]) + 0.3 * rng.normal(size=(300, 1))
    rounded = y * (1 + 1e-13 * rng.normal(size=y.shape))
    found = relative_speeds(x, y, None, groups(2))
    assert np.ptp(found) > 0.1 and np.array_equal(found, relative_speeds(x, rounded, None, groups(2)))


def test_the_prior_is_students():
    """Of a likelihood that counts for nothing: up to a constant, of the logarithms around their mean."""
    x, y = np.random.default_rng(0).normal(size=(2, 2, 9, 1))
    block = np.stack([anisotropy.squares(x)] * 3), y, np.zeros_like(y), 0.0

    def density(speeds):
        return -anisotropy._loss(np.append(speeds, 0.0), *block)[0]

    apart, t = np.array([1.5, -0.5, -1.0]), stats.t(anisotropy.FREEDOM, scale=anisotropy.SPREAD)
    assert np.isclose(density(apart + 0.7) - density(np.zeros(3)), np.sum(t.logpdf(apart) - t.logpdf(0)))


def test_columns_that_are_copies_say_no_more_than_one(rng):
    x = rng.uniform(-2, 2, (30, 2))
    y = np.sin(3 * x[:, :1]) + 0.5 * rng.normal(size=(30, 1))
    one, many = (relative_speeds(x, np.repeat(y, k, axis=1), None, groups(2)) for k in (1, 5))
    assert np.ptp(one) > 0.05 and np.allclose(one, many, rtol=0.07)  # a step of what is rounded

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.linear_model import LinearRegression

from npax.inference import Drift, Planar, anisotropy
from npax.inference.anisotropy import matern12


def matern32(distance):
    r = np.sqrt(3) * distance
    return (1 + r) * np.exp(-r)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def drawn(rng, n, noise=0.2, length=1.0):
    """Places, a rough field at them with noise, and the covariance of both."""
    x = rng.uniform(-2, 2, (n, 2))
    covariance = matern32(cdist(x, x) / length) + noise**2 * np.eye(n)
    return x, np.linalg.cholesky(covariance) @ rng.normal(size=n), covariance


def slopes(x, z, y, error=None):
    z, y = z.reshape(len(x), -1), y.reshape(len(x), -1)
    return Drift(Planar(isotropic=True), x, z, y, error).coef


@pytest.mark.parametrize("n", [40, 200, 1000])
def test_slopes_are_those_of_generalised_least_squares(n, rng):
    """With the covariance that is known here, and well within its standard errors."""
    x, field, covariance = drawn(rng, n)
    z = np.column_stack([rng.normal(size=n), x[:, 0] + 0.5 * rng.normal(size=n)])
    y = 5 + field + z @ [1.5, -0.7]
    design = np.column_stack([np.ones(n), z])
    information = design.T @ np.linalg.solve(covariance, design)
    expected = np.linalg.solve(information, design.T @ np.linalg.solve(covariance, y))[1:]
    errors = np.sqrt(np.diag(np.linalg.inv(information)))[1:]
    assert np.all(np.abs(slopes(x, z, y)[0] - expected) < 0.8 * errors)


def test_what_the_field_has_is_not_taken_for_the_covariates(rng):
    """A covariate that rises to the east, as the field happens to: least squares takes one for the other."""
    field = 0.0
    while np.abs(np.corrcoef(field, x[:, 0])[0, 1] if np.ndim(field) else 0.0) < 0.7:
        x, field, _ = drawn(rng, 300, length=3.0)
    z = x[:, 0] + 0.4 * rng.normal(size=300)
    y = field + z
    ordinary = LinearRegression().fit(z[:, None], y).coef_[0]
    assert abs(ordinary - 1) > 0.25
    assert abs(slopes(x, z, y).item() - 1) < 0.1


def test_units_and_origins_do_not_matter(rng):
    x, field, _ = drawn(rng, 120)
    z = rng.normal(size=(120, 2))
    y = field + z @ [1.0, 0.5]
    plain = slopes(x, z, y)
    moved = slopes(1e5 + 1e3 * x, 7 + z * [1e-6, 1e4], 1e8 + 1e5 * y)
    assert np.allclose(moved, plain * 1e5 / [1e-6, 1e4], rtol=1e-3)
    order = rng.permutation(120)
    assert np.allclose(slopes(x[order], z[order], y[order]), plain, rtol=1e-9)


def test_each_column_has_slopes_of_its_own(rng):
    x, field, _ = drawn(rng, 100)
    z = rng.normal(size=(100, 2))
    y = np.column_stack([field + z[:, 0], 3 * field - z[:, 1]])
    assert np.allclose(slopes(x, z, y), [[1, 0], [0, -1]], atol=0.2)


def test_what_is_known_to_be_wrong_hardly_counts(rng):
    x, field, _ = drawn(rng, 200)
    z, bad = rng.normal(size=200), rng.random(200) < 0.5
    error = np.where(bad, 20.0, 0.0)
    y = field + z + np.where(bad, -10 * z + 10 * rng.normal(size=200), 0.0)
    told, untold = slopes(x, z, y, error[:, None]).item(), slopes(x, z, y).item()
    assert abs(told - 1) < 0.15 and abs(untold - 1) > 0.5


@pytest.mark.parametrize("n", [1, 4, 5, 60])
def test_covariates_and_values_that_say_nothing_are_finite(n, rng):
    x, z, y = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=n)
    constant = np.full(n, 3.0)
    assert slopes(x, constant, y).item() == 0.0
    assert slopes(x, z, constant).item() == 0.0
    twice = slopes(x, np.column_stack([z, z]), y)
    assert np.isfinite(twice).all() and np.allclose(twice[:, 0], twice[:, 1])
    assert np.isfinite(slopes(x * 0.0, z, y)).all() and np.isfinite(slopes(x, z, 2 * z)).all()
    assert np.isfinite(slopes(x, 1e200 * z, 1e-200 * y)).all()


def test_the_drift_is_that_of_its_slopes(rng):
    x, field, _ = drawn(rng, 60)
    z = 10 + rng.normal(size=(60, 2))
    drift = Drift(Planar(), x, z, np.column_stack([field + z[:, 0], field]))
    at = rng.normal(size=(7, 2))
    assert np.allclose(drift(at), (at - z.mean(axis=0)) @ drift.coef.T)


def test_the_doubt_is_what_a_gaussian_process_has_beside_one_that_knows_the_slopes(rng):
    """With the kernel that was fitted: universal kriging's variance less that of simple kriging with a known mean."""
    x, field, _ = drawn(rng, 50)
    z, at, z_at = rng.normal(size=(50, 2)), rng.uniform(-2, 2, (20, 2)), rng.normal(size=(20, 2))
    drift = Drift(Planar(isotropic=True), x, z, (field + z @ [1.0, -1.0])[:, None])
    (column,) = drift.each
    fit, points = column.expected.fit, column.expected.points
    kernel = lambda a, b: fit.kernel(fit.speed**2 * cdist(a, b, "sqeuclidean"))[0]  # noqa: E731
    near = kernel(column.expected.frame(at), points)
    covariance = kernel(points, points) + (fit.noise + 1e-6) * np.eye(50)
    of_z = lambda z: drift.of_z(z)  # noqa: E731

    def variance(design, design_at, prior):
        """Of the mean: a flat prior on the first column, unit ones (in `prior`) on the others."""
        solved = np.linalg.solve(covariance, design)
        information = design.T @ solved + np.diag(prior)
        beyond = design_at - near @ solved
        return np.einsum("ip,pq,iq->i", beyond, np.linalg.inv(information), beyond)

    rest = (drift.of_y(field[:, None] + z @ [[1.0], [-1.0]]) - of_z(z) @ drift.slopes)[:, 0]
    one, one_at = np.ones((50, 1)), np.ones((20, 1))
    solved = np.linalg.solve(covariance, np.column_stack([one, rest]))
    scale = rest @ (solved[:, 1] - solved[:, 0] * (solved[:, 1].sum() / solved[:, 0].sum())) / 47
    both = variance(np.column_stack([one, of_z(z)]), np.column_stack([one_at, of_z(z_at)]), [0, scale, scale])
    alone = variance(one, one_at, [0])
    found = np.square(drift.doubt(at, z_at)).sum(axis=1)[:, 0]
    assert np.allclose(found, scale * (both - alone), rtol=0.1)


def test_little_doubt_where_covariates_are_as_expected(rng):
    x, field, _ = drawn(rng, 60)
    z = np.sin(x[:, :1]) + 0.01 * rng.normal(size=(60, 1))
    drift = Drift(Planar(), x, z, (field + z[:, 0])[:, None])
    near, off = (np.abs(drift.doubt(x, z + move)).mean() for move in (0.0, 1.0))
    assert near < 0.2 * off


def test_many_observations_tell_slopes_all_of_them(rng):
    """Beyond those that are seen together: a class of which there are few, by generalised least squares."""
    n = 1300
    x, field, covariance = drawn(rng, n, noise=0.5)
    z = np.zeros((n, 1))
    z[rng.permutation(n)[:6]] = 1.0
    y = (field + 3 * z[:, 0])[:, None]
    drift = Drift(Planar(isotropic=True), x, z, y)
    error = 1 / np.sqrt(z[:, 0] @ np.linalg.solve(covariance, z[:, 0]))
    assert abs(drift.coef.item() - 3) < 3 * error and np.isclose(drift.coef_std.item(), error, rtol=0.4)
    some = x[::100]
    found = drift.doubt(some, np.ones((13, 1)))
    assert np.allclose(np.abs(found[:, 0, 0]) * drift.unit, drift.coef_std.item(), rtol=0.2)
    assert np.allclose(drift.part(some).doubt(some, np.ones((13, 1))), found)
    assert len(drift.part(some[:1]).each[0].expected.points) < 300
    assert drift.part(some[:0]).doubt(some[:0], np.ones((0, 1))).shape == (0, 1, 1)


@pytest.mark.parametrize("slope", [1.0, 30.0, 1e4])
def test_strong_slopes_are_known_as_well_as_weak_ones(slope, rng):
    """As where the covariate is what a model predicts."""
    x, field, covariance = drawn(rng, 40, noise=0.1)
    z = rng.normal(size=40)
    drift = Drift(Planar(isotropic=True), x, z[:, None], (field + slope * z)[:, None])
    design = np.column_stack([np.ones(40), z])
    error = np.sqrt(np.linalg.inv(design.T @ np.linalg.solve(covariance, design))[1, 1])
    assert abs(drift.coef.item() - slope) < 3 * error and np.isclose(drift.coef_std.item(), error, rtol=0.5)


def test_many_slopes_are_known_about_as_well_as_they_can_be(rng):
    x, field, covariance = drawn(rng, 100, noise=0.3)
    z = rng.normal(size=(100, 40))
    y = field + z @ np.full(40, 0.5)
    drift = Drift(Planar(isotropic=True), x, z, y[:, None])
    design = np.column_stack([np.ones(100), z])
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ np.linalg.solve(covariance, design))))[1:]
    assert 0.7 < np.sqrt(np.mean(drift.coef_std**2) / np.mean(errors**2)) < 1.4
    assert np.sqrt(np.mean((drift.coef - 0.5) ** 2)) < 1.4 * np.sqrt(np.mean(errors**2))


def test_what_many_slopes_leave_varies_as_much_as_the_field_once_it_is_widened(rng):
    """Of noise beside twenty covariates that say nothing of it."""
    x, z, y = rng.uniform(-2, 2, (60, 2)), rng.normal(size=(60, 20)), rng.normal(size=(60, 8))
    drift = Drift(Planar(isotropic=True), x, z, y)
    left = (y - drift(z)).var(axis=0, ddof=1)
    own = y.var(axis=0, ddof=1).mean()
    assert left.mean() < 0.75 * own and np.mean(left * np.square(drift.widened)) == pytest.approx(own, rel=0.15)


def test_slopes_of_which_nothing_is_told_move_values_by_no_more_than_these_vary(rng):
    """Of twenty, by eight observations."""
    x, z, y = rng.uniform(-2, 2, (8, 2)), rng.normal(size=(8, 20)), rng.normal(size=(8, 1))
    drift = Drift(Planar(isotropic=True), x, z, y)
    assert 0.6 < np.square(drift.coef_std * z.std(axis=0)).sum() / y.var() < 1.0


def test_by_what_covariates_differ_from_the_expected_is_told_by_the_noise_beside_known_errors(rng):
    """Of all covariates of an observation alike, by the weights that it has in kriging."""
    x, z, y = rng.uniform(-2, 2, (40, 2)), rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    drift = Drift(Planar(isotropic=True), x, z, y, rng.uniform(0.1, 2.0, (40, 1)))
    expected = drift.each[0].expected
    noise = (drift.of_z(z) - expected(x)) / expected.weights
    assert np.allclose(noise[:, 0], noise[:, 1]) and noise.min() > 0


def test_groups_that_vary_more_than_others_count_for_less(rng):
    """One in nine, of two hundred times the standard deviation: as one of all it would be off by 0.2."""
    x = rng.uniform(-2, 2, (1152, 2))
    z, far = rng.normal(size=(1152, 1)), (x > 2 / 3).all(axis=1)[:, None]
    y = z + np.where(far, 20.0, 0.1) * rng.normal(size=(1152, 2))
    off = Drift(Planar(isotropic=True), x, z, y).coef - 1
    assert np.sqrt(np.mean(off**2)) < 0.1


def test_units_are_those_of_what_the_slopes_leave(rng):
    """Which varies fast along the one coordinate, and the covariate along the other."""
    x, speeds = rng.uniform(-2, 2, (400, 2)), np.array([0.3, 3.0])
    covariance = anisotropy.matern32(cdist(x * speeds, x * speeds, "sqeuclidean"))[0] + 0.01 * np.eye(400)
    z = np.sin(6 * x[:, :1])
    y = np.linalg.cholesky(covariance) @ rng.normal(size=(400, 1)) + 10 * z
    units = Drift(Planar(), x, z, y).coordinates.units
    assert np.isclose(np.log(units[1] / units[0]), np.log(10), atol=0.6)


@pytest.mark.parametrize("slope", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("kernel", [matern12, anisotropy.matern32])
def test_the_likelier_of_two_covariances_is_taken(kernel, slope, rng):
    """Of what the slopes leave, whatever they are."""
    x, z = rng.uniform(-2, 2, (500, 2)), rng.normal(size=(500, 1))
    covariance = kernel(cdist(x, x, "sqeuclidean"))[0] + 1e-4 * np.eye(500)
    y = np.linalg.cholesky(covariance) @ rng.normal(size=(500, 1)) + slope * z
    drift = Drift(Planar(isotropic=True), x, z, y)
    assert drift.each[0].expected.fit.kernel is kernel


def test_columns_together_are_what_each_is_alone(rng):
    """With errors of its own."""
    x, z = rng.uniform(-2, 2, (80, 2)), rng.normal(size=(80, 2))
    error = rng.choice([0.1, 3.0], (80, 2))
    y = np.sin(2 * x) + z + error * rng.normal(size=(80, 2))
    both, *alone = (Drift(Planar(isotropic=True), x, z, y[:, c], error[:, c]) for c in ([0, 1], [0], [1]))
    assert np.allclose(both.coef, np.concatenate([drift.coef for drift in alone]))
    assert np.allclose(both.coef_std, np.concatenate([drift.coef_std for drift in alone]))


def test_of_very_many_observations_all_tell_slopes(rng):
    """More groups than are looked at on the way; white noise beside a covariate that few have."""
    x, z, y = rng.uniform(-2, 2, (18_000, 1)), np.zeros((18_000, 1)), rng.normal(size=(18_000, 1))
    z[rng.permutation(18_000)[:60]] = 1.0
    drift = Drift(Planar(), x, z, y + 3 * z)
    assert np.isclose(drift.coef_std.item(), 60**-0.5, rtol=0.15)

"""The pretraining prior against an exact Gaussian process in float64."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
import scipy.spatial
import scipy.stats
from laws import normal
from tinygp import kernels

from npax.tasks import AsPrior, GPPosteriorTask, GPPrior, GPTask, RBFPrior, designs
from npax.tasks.designs import _lattice, draw_places
from npax.tasks.posterior import draw_and_condition
from npax.tasks.prior import LONGEST, SHORTEST, Component, Field, _shortest, draw_component, draw_noise

DRAWS = 2_000


@pytest.fixture(scope="module")
def sample():
    """2,000 tasks of at most 24 context points and 12 targets, as a compiled function of a key."""
    with jax.numpy_dtype_promotion("standard"):
        draw = jax.jit(lambda key: jax.vmap(GPPrior(24, 12).sample)(jr.split(key, DRAWS)))
        return draw.lower(jr.key(0)).compile()


@pytest.fixture(scope="module")
def draws(sample):
    return jax.tree.map(np.asarray, sample(jr.key(0)))


def test_the_posterior_is_that_of_an_exact_gaussian_process(getkey, rng):
    x = rng.uniform(-2, 2, (30, 2))
    r2 = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    k = 1.3 * np.exp(-0.5 * r2 / 0.8**2)
    noise = np.exp(rng.normal(size=20) - 3)
    mask = np.arange(20) < 14
    k_cc, k_ct, k_tt = k[:20, :20], k[:20, 20:], np.diag(k)[20:]
    operands = (a.astype(np.float32) for a in (k_cc, k_ct, k_tt, noise))
    y, mean, variance = jax.jit(draw_and_condition)(getkey(), *operands, mask)

    seen = k[:14, :14] + np.diag(noise[:14])
    gain = np.linalg.solve(seen, k_ct[:14]).T
    assert reference.relative(mean, gain @ np.asarray(y, np.float64)[:14]) < 1e-4
    assert reference.relative(variance, k_tt - np.sum(gain * k_ct[:14].T, axis=-1)) < 1e-4


def test_context_values_have_the_covariance_of_the_kernel(getkey):
    r = np.abs(np.linspace(-1, 1, 6)[:, None] - np.linspace(-1, 1, 6)[None])
    k = np.exp(-r)
    operands = [jnp.asarray(a, jnp.float32) for a in (k, k[:, :1], k[0, :1], np.full(6, 0.25))]
    draw = jax.jit(jax.vmap(lambda key: draw_and_condition(key, *operands, jnp.ones(6, bool))[0]))
    y = np.asarray(draw(jr.split(getkey(), 20_000)))
    assert np.allclose(np.cov(y.T), k + 0.25 * np.eye(6), atol=0.05)


@pytest.mark.parametrize(
    ("family", "kernel"),
    [
        (0, kernels.ExpSquared(0.7)),
        (1, kernels.Exp(0.7)),
        (2, kernels.Matern32(0.7)),
        (3, kernels.Matern52(0.7)),
        (4, kernels.RationalQuadratic(scale=0.7, alpha=1.8)),
    ],
    ids=["squared-exponential", "matern-12", "matern-32", "matern-52", "rational-quadratic"],
)
def test_the_kernels_are_those_of_tinygp(family, kernel, getkey):
    x, y = normal(getkey(), (7, 1)), normal(getkey(), (5, 1))
    padded = [np.pad(a, ((0, 0), (0, 2))) for a in (x, y)]
    component = component_of(family, inverse_scale=jnp.full(3, 1 / 0.7))
    true = jax.jit(lambda x, y: 2.0 * kernel(x[:, 0], y[:, 0]))(x, y)
    assert reference.relative(covariance(component, *padded), true) < 1e-5


def test_the_periodic_kernel_is_the_textbooks(getkey):
    x, y = (np.asarray(normal(getkey(), (n, 3))) for n in (7, 5))
    component = component_of(5, inverse_scale=jnp.zeros(3), wave_number=jnp.full(3, 2 * np.pi / 0.9))
    sines = np.sin(np.pi * (x[:, None].astype(np.float64) - y[None]) / 0.9)
    true = 2.0 * np.exp(-2 * np.sum(sines**2, axis=-1) * 1.4**2)
    assert reference.relative(covariance(component, x, y), true) < 1e-5


@pytest.mark.parametrize(("dx", "share"), [(1, 0.0), (2, 0.2 * 2 / 3), (3, 0.2)])
def test_some_columns_have_no_effect(dx, share, getkey):
    drawn = components(getkey(), dx, SHORTEST)
    across = np.asarray(drawn.inverse_scale)[:, :dx] * 4 + np.asarray(drawn.wave_number)[:, :dx]
    without = (across < 4 * np.exp(-3.0) + 1e-6)[isotropic(drawn)]
    assert abs(without.any(axis=1).mean() - share) < 0.03 and without.sum(axis=1).max() <= 1


@pytest.mark.parametrize("dx", [2, 3])
def test_half_of_the_kernels_have_other_lengths_along_other_axes(dx, getkey):
    drawn = components(getkey(), dx, SHORTEST)
    assert abs(isotropic(drawn).mean() - 0.5) < 0.1  # and all periodic ones without an envelope
    scales = np.log(np.asarray(drawn.inverse_scale)[~isotropic(drawn), :dx])
    wide = scipy.stats.norm(scale=0.5 * 2**0.5).sf(np.log(8.0)) * 2
    assert np.mean(np.ptp(scales, axis=1) > np.log(8.0)) > 0.1 > 10 * wide


def isotropic(drawn):
    """Whose lengths along two of the three axes are the same: a third may have no effect."""
    return np.diff(np.sort(np.asarray(drawn.inverse_scale), axis=1), axis=1).min(axis=1) == 0


@eqx.filter_jit
def components(key, dx, shortest):
    return jax.vmap(lambda key: draw_component(key, jnp.arange(3) < dx, shortest))(jr.split(key, 2000))


@pytest.mark.parametrize("shortest", [SHORTEST, 0.8])
def test_length_scales_and_periods_begin_at_the_shortest(shortest, getkey):
    drawn = components(getkey(), 1, np.float32(shortest))
    aperiodic = np.asarray(drawn.family) != 5
    equal = np.ptp(np.asarray(drawn.inverse_scale), axis=1) == 0  # those that are alike along all axes
    scales = np.sort(1 / np.asarray(drawn.inverse_scale)[aperiodic & equal, 0])
    assert shortest * 0.999 < scales[0] < 1.1 * shortest and 0.9 * LONGEST < scales[-1] < LONGEST * 1.001
    low, high = (np.log(LONGEST / shortest) * share + np.log(shortest) for share in (0.24, 0.54))
    nearer = 0.5 * 0.3 + 0.5 * scipy.stats.norm(0.5, 0.2).cdf([0.24, 0.54]) @ [-1, 1]
    assert abs(np.mean((np.log(scales) > low) & (np.log(scales) < high)) - nearer) < 0.05
    periods = 2 * np.pi / np.asarray(drawn.wave_number)[~aperiodic, 0]
    assert max(0.2, 2 * shortest) * 0.999 < periods.min() and periods.max() < 3.001


@pytest.mark.parametrize(
    ("n", "dx", "shortest"), [(29, 1, SHORTEST), (30, 1, 2 / 15), (200, 1, SHORTEST), (100, 2, 0.4)]
)
def test_of_many_points_most_fields_are_no_finer_than_the_spacing(n, dx, shortest):
    drawn = jax.jit(jax.vmap(lambda key: _shortest(key, jnp.arange(400) < n, jnp.asarray(dx))))
    found = np.asarray(drawn(jr.split(jr.key(0), 2000)))
    fine, coarse = np.isclose(found, SHORTEST), np.isclose(found, shortest)
    assert np.all(fine | coarse) and abs(coarse.mean() - (1 if shortest == SHORTEST else 2 / 3)) < 0.04


def test_the_variance_of_a_field_is_its_covariance_with_itself(getkey):
    x = normal(getkey(), (9, 3))

    @eqx.filter_jit
    def both(key):
        field = Field.draw(key, jnp.ones(9, bool), jnp.asarray(3), jnp.asarray(False))
        return jnp.diagonal(field(x, x)), field.variance(x)

    for key in jr.split(getkey(), 20):
        found, true = both(key)
        assert reference.relative(found, true) < 1e-5


covariance = eqx.filter_jit(Component.__call__)


def component_of(family, *, inverse_scale, wave_number=None):
    return Component(
        family=jax.device_put(np.int32(family)),
        inverse_scale=inverse_scale,
        wave_number=jnp.zeros(3) if wave_number is None else wave_number,
        roughness=jax.device_put(np.float32(1.4)),
        alpha=jax.device_put(np.float32(1.8)),
        variance=jax.device_put(np.float32(2.0)),
    )


def test_all_draws_are_finite_and_of_the_promised_shapes(draws):
    task = draws.task
    assert task.xc.shape == (DRAWS, 24, 3) and task.yc.shape == (DRAWS, 24, 1) and task.mask_c.shape == (DRAWS, 24)
    assert task.xt.shape == (DRAWS, 12, 3) and task.yt.shape == draws.mean.shape == draws.noise.shape == (DRAWS, 12, 1)
    for leaf in jax.tree.leaves(draws):
        assert np.isfinite(np.asarray(leaf, np.float32)).all()
    assert (draws.variance > 0).all() and (draws.noise > 0).all()
    assert np.asarray(task.mask_t).all(axis=1).mean() > 0.995  # hardly any factorisation breaks down


def test_contexts_of_every_size_occur(draws):
    mask = np.asarray(draws.task.mask_c)
    sizes = mask.sum(axis=1)
    assert set(sizes) == set(range(25))
    assert 0.01 < (sizes == 0).mean() < 0.2
    assert (np.sort(mask, axis=1)[:, ::-1] == mask).all()  # the valid points come first
    with jax.numpy_dtype_promotion("standard"):
        large = jax.jit(jax.vmap(GPPrior(24, 2, low=20)._size))(jr.split(jr.key(1), 500))
    assert set(np.asarray(large)) == {20, 21, 22, 23, 24}


def test_all_dimensions_occur_and_the_rest_is_zero(draws):
    used = np.abs(np.asarray(draws.task.xt)).max(axis=1) > 0
    dimension = used.sum(axis=1)
    assert (np.sort(used, axis=1)[:, ::-1] == used).all()
    assert np.allclose(np.bincount(dimension, minlength=4)[1:] / DRAWS, [0.35, 0.4, 0.25], atol=0.05)
    context = np.abs(np.asarray(draws.task.xc)).max(axis=1) > 0
    assert (context <= used).all()
    assert np.abs(np.asarray(draws.task.xc)).max() <= 2.0 + 1e-5


def test_half_of_the_contexts_are_standardised(draws):
    mask = np.asarray(draws.task.mask_c)
    y = np.where(mask, np.asarray(draws.task.yc)[..., 0], np.nan)[mask.sum(axis=1) >= 5]
    unit = (np.abs(np.nanmean(y, axis=1)) < 1e-3) & (np.abs(np.nanstd(y, axis=1) - 1) < 1e-3)
    assert 0.35 < unit.mean() < 0.55


def test_targets_are_draws_from_their_posterior(draws):
    z = ((draws.task.yt - draws.mean) / np.sqrt(draws.variance))[draws.task.mask_t]
    assert abs(z.mean()) < 0.03 and abs(z.var() - 1) < 0.05
    assert scipy.stats.kstest(z[::12, 0], "norm").pvalue > 1e-3


def test_context_informs_about_near_targets(draws):
    """A negative control: the posterior is narrower than the prior somewhere, and its mean is not constant."""
    ratio = draws.variance[..., 0] / draws.variance.max(axis=(1, 2))[:, None]
    assert (ratio < 0.2).mean() > 0.05
    assert np.asarray(draws.mean).std(axis=1).max() > 0.5


def test_the_same_key_gives_the_same_tasks(sample, draws):
    again, other = (jax.tree.map(np.asarray, sample(jr.key(seed))) for seed in (0, 1))
    assert eqx.tree_equal(again, draws)
    assert not eqx.tree_equal(other, draws)


def test_other_tasks_take_the_form_of_the_prior(getkey):
    """Coordinates are padded, the shapes are the prior's, and half are normalised, the posterior with them."""
    plain = GPPosteriorTask(GPTask(RBFPrior(), dx=2, nc=8, low=3, grid=3))
    tasks = jax.jit(jax.vmap(AsPrior(plain).sample))(jr.split(getkey(), 400))
    tasks = jax.tree.map(np.asarray, tasks)
    task, mask = tasks.task, tasks.task.mask_c[..., None]
    assert task.xc.shape == (400, 8, 3) and task.xt.shape == (400, 17, 3) and tasks.mean.shape == (400, 17, 1)
    assert not np.any(task.xc[..., 2]) and not np.any(task.xt[..., 2])
    average, spread = (f(task.yc, axis=1, where=mask) for f in (np.mean, np.std))
    low = np.min(task.xc[..., :2], axis=1, where=mask, initial=9)
    high = np.max(task.xc[..., :2], axis=1, where=mask, initial=-9)
    normalised = np.abs(average[:, 0]) < 1e-5
    assert 0.4 < normalised.mean() < 0.6
    assert np.allclose(spread[normalised], 1.0, atol=1e-4)
    assert np.allclose(low[normalised], -2, atol=1e-4) and np.allclose(high[normalised], 2, atol=1e-4)
    assert np.abs(task.xt).max(axis=(1, 2))[~normalised].max() <= 2
    # What the posterior says of the context's own values: their noise has the standard deviation 0.1 before scaling.
    z = (task.yc - tasks.mean[:, :8]) / np.sqrt(tasks.noise[:, :8])
    error = (task.yt - tasks.mean) / np.sqrt(tasks.variance)
    assert np.std(z[task.mask_c]) < 1.0 and abs(np.std(error) - 1) < 0.1
    assert np.allclose(tasks.noise[~normalised], 0.01) and np.any(np.abs(tasks.noise[normalised] - 0.01) > 1e-3)


@pytest.fixture(scope="module")
def places():
    """Places of 400 tasks in space: 400 observations and 200 targets each."""
    draw = jax.jit(jax.vmap(lambda key: draw_places(key, jnp.array(3), jnp.ones(400, bool), 200)))
    return [np.asarray(a, np.float64) for a in draw(jr.split(jr.key(3), 400))]


def test_half_of_the_designs_in_space_lie_on_spheres_as_longitudes_and_latitudes_do(places):
    off = np.array([_off_a_sphere(np.concatenate(each)) for each in zip(*places, strict=True)])
    on = off < 1e-3
    assert 0.4 < on.mean() < 0.6
    assert np.median(off[~on]) > 0.1  # a negative control
    longest = np.ptp(places[0], axis=1).max(axis=1)
    assert np.allclose(longest[on], 4.0, atol=1e-4)  # as in the frame of LatLon


def _off_a_sphere(x):
    """How far points lie from the sphere that fits them best: |x|² = 2 c·x + d."""
    basis = np.concatenate([2 * x, np.ones((len(x), 1))], axis=1)
    square = np.sum(x**2, axis=1)
    return np.sqrt(np.mean((basis @ np.linalg.lstsq(basis, square, rcond=None)[0] - square) ** 2))


def test_two_designs_of_five_draw_targets_as_observations_are_drawn(places):
    """The others reach beyond the observations' box."""
    xc, xt = places
    outside = (xt > xc.max(axis=1, keepdims=True)) | (xt < xc.min(axis=1, keepdims=True))
    assert np.isfinite(xt).all() and np.abs(xc).max() < 2 + 1e-4
    share = (outside.any(axis=2).mean(axis=1) < 0.06).mean()
    assert 0.3 < share < 0.5


def test_in_half_of_the_tasks_some_targets_lie_where_observations_do():
    """To the bit, at observations alone: what is masked has places too."""
    nc, seen = 60, 20
    mask = jnp.arange(nc) < seen
    draw = jax.jit(jax.vmap(lambda key, dx: draw_places(key, dx, mask, 50), in_axes=(0, None)))
    for dx in (1, 2, 3):
        xc, xt = (np.asarray(a) for a in draw(jr.split(jr.key(4), 200), jnp.array(dx)))
        same = np.all(xt[:, :, None] == xc[:, None], axis=-1)
        share = same[:, :, :seen].any(axis=2).mean(axis=1)
        assert 0.35 < np.mean(share > 0.03) < 0.75  # on grids with repeats others do by chance
        assert 0.15 < np.median(share[share > 0.03]) < 0.25
        elsewhere = same[:, :, seen:].any(axis=2) & ~same[:, :, :seen].any(axis=2)
        assert elsewhere.mean() < 0.03


@pytest.fixture(scope="module")
def lattices():
    """200 lattices of 60 observations in 150 places, for one, two and three axes."""

    @jax.jit
    def draw(dx):
        return jax.vmap(lambda key: _lattice(key, 150, dx, jnp.float32(60)))(jr.split(jr.key(0), 200))

    return {dx: np.asarray(draw(jnp.asarray(dx))) for dx in (1, 2, 3)}


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_no_node_of_a_lattice_is_seen_twice(lattices, dx):
    seen = lattices[dx][:, :60]
    assert np.abs(lattices[dx]).max() < 2 + 1e-5 and np.all(seen[:, :, dx:] == 0)
    nearest = np.array([scipy.spatial.KDTree(x).query(x, 2)[0][:, 1].min() for x in seen])
    assert nearest.min() > 1e-3
    assert np.all(np.ptp(seen[:, :, :dx], axis=1).max(axis=1) > 3), "they fill the domain"


def _steps(x):
    """Between neighbours on a line, in multiples of the least, and whether these are whole numbers."""
    steps = np.diff(np.sort(x, axis=1), axis=1)
    steps = steps / steps.min(axis=1, keepdims=True)
    return steps, np.abs(steps - np.rint(steps)).max(axis=1) < 0.02


def test_lattices_on_a_line_are_complete_or_have_gaps_or_are_shaken(lattices):
    steps, even = _steps(lattices[1][:, :60, 0])
    complete = even & (steps.max(axis=1) < 1.02)
    assert 0.25 < complete.mean() < 0.45 and 0.25 < (even & ~complete).mean() < 0.45  # a third each


def test_lattices_in_the_plane_have_rows_and_some_are_turned(lattices):
    rows = np.array([[len(np.unique(x[:60, axis].round(4))) for axis in (0, 1)] for x in lattices[2]])
    upright = np.all(rows < 40, axis=1)
    assert 0.35 < upright.mean() < 0.65  # neither shaken (a third) nor turned (a quarter)
    assert np.all(rows[upright].prod(axis=1) >= 60) and np.ptp(rows[upright][:, 0] / rows[upright][:, 1]) > 1


def test_targets_may_lie_on_nodes_that_are_not_seen(lattices):
    """Of lattices with gaps; of complete ones the places beyond the nodes are anywhere."""
    x = lattices[1][:, :, 0]
    steps, even = _steps(x[:, :60])
    with_gaps, on_nodes = even & (steps.max(axis=1) > 1.5), []
    for row in x[with_gaps]:
        unit = np.diff(np.sort(row[:60])).min()
        places = (row[60:] - row[0]) / unit
        on_nodes.append(np.sum(np.abs(places - np.rint(places)) < 0.02))
    assert np.mean(np.array(on_nodes) > 10) > 0.7


@pytest.mark.parametrize(
    "sizes, message",
    [
        ((8, 8, 20), "low <= nc"),
        ((8, 0), "`nt` must be a whole number"),
        ((0, 8), "`nc` must be a whole number, at least 1"),
        ((8, 8, -1), "`low` must be a whole number"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        GPPrior(*sizes)


def test_the_box_tells_nothing_of_the_points_in_it(monkeypatch):
    """Sizes and points once shared their random bits: narrow boxes had their clusters on one side."""
    of = {}

    def noting(name, given):
        def draw(key, *_):
            of[name] = key
            return given

        return draw

    for name, given in {"sides": 1.0, "design": jnp.ones((8, 3)), "targets": jnp.ones((3, 3))}.items():
        monkeypatch.setattr(designs, f"_draw_{name}", noting(name, given))
    with jax.disable_jit():
        draw_places(jr.key(0), jnp.array(2), jnp.ones(5, bool), 3)
    used = [{*map(bytes, np.asarray(jr.key_data(jr.split(key, 8)))), bytes(jr.key_data(key))} for key in of.values()]
    assert len(used) == 3 and len(set.union(*used)) == 3 * 9


def test_more_than_three_coordinates_are_refused():
    with pytest.raises(ValueError, match="`tasks` must have at most 3 coordinates, got 4"):
        jax.eval_shape(AsPrior(GPPosteriorTask(GPTask(RBFPrior(), dx=4))).sample, jr.key(0))


def test_noise_is_often_as_strong_as_the_field():
    std = np.sqrt(jax.vmap(lambda key: draw_noise(key, 3, jnp.bool(True))[0])(jr.split(jr.key(0), 4000)))
    assert 0.0029 < std.min() < 0.0031 and 0.99 < std.max() <= 1.0
    above = 0.3 * np.log(2.5) / np.log(50) + 0.5 * 0.6 / 0.9
    assert abs(np.mean(std > 0.4) - above) < 0.03 and abs(np.mean(std < 0.02) - 0.2) < 0.03


@pytest.fixture(scope="module")
def with_errors():
    draw = jax.jit(jax.vmap(GPPrior(24, 12, low=24, errors=0.5).sample))
    with jax.numpy_dtype_promotion("standard"):
        return jax.tree.map(np.asarray, draw(jr.split(jr.key(0), DRAWS)))


def test_half_of_the_tasks_have_known_errors_if_asked_for(with_errors):
    error = with_errors.task.error_c
    assert error.shape == with_errors.task.yc.shape and np.all(np.isfinite(error)) and np.all(error >= 0)
    assert abs(np.mean(np.any(error > 0, axis=(1, 2))) - 0.5) < 0.04
    with pytest.raises(ValueError, match=r"`errors` must be a share of the tasks, from 0 to 1, got 1.5"):
        GPPrior(24, 12, errors=1.5)


def test_without_them_tasks_are_as_before(with_errors, draws):
    assert draws.task.error_c is None
    draw = jax.jit(jax.vmap(GPPrior(24, 12, low=24).sample))
    with jax.numpy_dtype_promotion("standard"):
        plain = jax.tree.map(np.asarray, draw(jr.split(jr.key(0), DRAWS)))
    none = ~np.any(with_errors.task.error_c > 0, axis=(1, 2))
    assert np.allclose(with_errors.task.yc[none], plain.task.yc[none], atol=1e-3)
    assert not np.allclose(with_errors.task.yc[~none], plain.task.yc[~none], atol=0.1)


def test_squares_of_values_grow_by_those_of_their_errors(with_errors, rng):
    """The slope of one on the other, in tasks that are not standardised; for errors of other points it is zero."""
    yc, error = (a[..., 0] for a in (with_errors.task.yc, with_errors.task.error_c))
    own = (np.ptp(error, axis=1) > 0.3) & (np.abs(yc.mean(axis=1)) > 1e-3)
    square_y, square_error = np.square(yc[own]), np.square(error[own])
    unit = np.square(np.max(square_error, axis=1, keepdims=True))

    def slope(square_error):
        off = (square_error - np.mean(square_error, axis=1, keepdims=True)) / unit
        return np.sum(off * square_y) / np.sum(off * square_error)

    assert own.sum() > 200
    of_others = np.mean([slope(rng.permuted(square_error, axis=1)) for _ in range(50)])
    assert 0.8 < slope(square_error) < 1.25 and abs(of_others) < 0.1


def test_known_errors_are_divided_by_what_values_are_divided_by(monkeypatch):
    """By the scale of the prior's task, and by that of its form."""

    @jax.jit
    def sample(scale):
        monkeypatch.setattr(sys.modules["npax.tasks.prior"], "_spread", lambda *_: (0.0, scale))
        return AsPrior(GPPrior(6, 3, low=6, errors=1.0)).sample(jr.key(0))

    with jax.numpy_dtype_promotion("standard"):
        one, half = (sample(np.float32(scale)) for scale in (1.0, 2.0))
    assert np.all(one.task.error_c > 0)
    for name in ("yc", "yt", "error_c"):
        assert np.allclose(4 * getattr(half.task, name), getattr(one.task, name), rtol=1e-5)
    assert np.allclose(4 * half.mean, one.mean, rtol=1e-5)
    for name in ("variance", "noise"):
        assert np.allclose(16 * getattr(half, name), getattr(one, name), rtol=1e-5)


def test_draws_by_themselves_are_compiled_once(compilations, getkey):
    prior = GPPrior(8, 4)
    prior.sample(getkey())
    before, key = compilations.count, getkey()
    prior.sample(key)
    assert before and compilations.count == before
